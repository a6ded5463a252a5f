"""What the cognitive layer is made of: stages, plans, answers, views of plans.

Axes: A agents, L ops of a plan, W words of an op row (`Skills.width`), S = 3 words of a specification.
"""

from enum import IntEnum

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

SPEC = 3
"""S: words of a specification: number of the task's name in `Domain.tasks`, and two arguments, -1 where unused."""

NEVER = 2**31 - 1
"""As a time in milliseconds: not before something else happens."""


class Stage(IntEnum):
    """COOP², section 4: what an agent is doing; W and X are ready for the next primitive step."""

    REASONING = 0
    WAITING = 1
    EXECUTING = 2
    INTERRUPTED = 3


STAGES = "RWXI"
"""Letters of `Stage`."""


class PlanStatus(IntEnum):
    """State of a plan."""

    PENDING = 0
    EXECUTING = 1
    SUCCESS = 2
    FAILED = 3
    INTERRUPTED = 4


class Ended(IntEnum):
    """Why a plan ended other than by success; numbers above are reasons of the environment's skills, less `SKILL`."""

    NONE = 0
    REPLANNED = 1
    EPISODE_ENDED = 2
    GOAL_MISSED = 3
    SKILL = 4


class Call(IntEnum):
    """Kinds of calls to a planner."""

    TEXT = 0  # free text that is sent to others
    PLAN = 1  # a new plan
    DECIDE = 2  # after a message: resume or replan
    STATEMENT = 3  # in a repair channel


class Verdict(IntEnum):
    """What an answer says; a call of another kind than DECIDE takes everything but ERROR for OK."""

    OK = 0
    ERROR = 1  # the call failed: the fallback plan, the fixed text, or resume
    RESUME = 2
    REPLAN = 3  # with the plan of the answer
    REPLAN_EMPTY = 4  # without one: a plan call follows


class Mail(IntEnum):
    """Types of messages."""

    LEADER_BROADCAST = 0
    FOLLOWER_RESPONSE = 1
    BROADCAST_CHAIN = 2
    REPAIR_REQUEST = 3
    OTHER = 4


class Plan(struct.PyTreeNode):
    """A team's plans, or with the axis A left out one plan."""

    spec: Int[Array, "A S"]  # what it is for
    ops: Int[Array, "A L W"]  # rows of the environment's skills; kind -1 beyond the end
    length: Int[Array, " A"]  # number of ops


class Answer(struct.PyTreeNode):
    """Answers to the calls of a team; only rows of agents that asked mean anything."""

    verdict: Int[Array, " A"]  # Verdict
    latency: Int[Array, " A"]  # milliseconds
    plan: Plan  # of PLAN calls and of REPLAN


class PlanViews(struct.PyTreeNode):
    """The plans of a team as a check before a step sees them."""

    is_viewed: Bool[Array, " A"]  # ready, with a plan that is pending or executing
    is_pending: Bool[Array, " A"]  # committed, no step of it made yet
    number: Int[Array, " A"]  # plan_id
    index: Int[Array, " A"]  # the current op; those from it on remain
    plan: Plan


def no_plan(agents: int, ops: int, width: int) -> Plan:
    """Nobody has a plan."""
    return Plan(
        spec=jnp.full((agents, SPEC), -1, jnp.int32),
        ops=jnp.full((agents, ops, width), -1, jnp.int32),
        length=jnp.zeros((agents,), jnp.int32),
    )


def is_ready(stage: Int[Array, "..."]) -> Bool[Array, "..."]:
    """Ready for the next primitive step."""
    return (stage == Stage.WAITING) | (stage == Stage.EXECUTING)
