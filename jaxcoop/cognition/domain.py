"""An environment as the cognitive layer sees it.

Axes: A agents, L ops of a plan, W words of an op.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation, Guidance
from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.cooperation import Attempts, no_attempts
from jaxcoop.core import Step
from jaxcoop.core.skills import Skills


@dataclasses.dataclass(frozen=True)
class Profile:
    """The rules in which the two reference systems differ; numbers are sections of docs/coop2.md."""

    name: str
    marked_only: bool  # 1.2: of the messages to an agent that executes, only marked ones interrupt it
    at_commit: bool  # 2: a plan is registered when committed, not when its first step is made
    stamps_next: bool  # 2: an op counts as started when the one before it ends
    statements_fail: bool  # 6.2: a failed statement of a repair ends the run


CUBE = Profile("cube", marked_only=False, at_commit=False, stamps_next=True, statements_fail=True)
MACRAFTER = Profile("macrafter", marked_only=True, at_commit=True, stamps_next=False, statements_fail=False)


def _whole(x: Array) -> Array:
    return jnp.round(x * THOUSANDTHS).astype(jnp.int32) if jnp.issubdtype(x.dtype, jnp.floating) else x


THOUSANDTHS = 1000


class Domain:
    """Base of frozen, hashable dataclasses; pure methods for one episode."""

    env: Any  # an `Env`
    profile: Profile  # which rules hold
    tasks: tuple[str, ...]  # names of what a plan can be for; word 0 of a specification is an index into them
    fallback: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
    """6.2: specification and ops of the plan of an agent whose plan call failed."""

    @property
    def num_tasks(self) -> int:
        """Slots of the task table that a repair tells apart."""
        raise NotImplementedError

    @property
    def num_kinds(self) -> int:
        """Target types of tasks."""
        raise NotImplementedError

    @property
    def skills(self) -> Skills:
        """The symbolic actions of the environment."""
        skills = self.env.skills
        if skills is None:
            raise ValueError(f"{self.env.name} has no skills; agents that make plans need symbolic actions")
        return skills

    def complete(self, plan: Plan) -> Plan:
        """6.3: plans as they are committed; most environments leave them as they are."""
        return plan

    def announce(self, memory: Any, plan: Plan) -> Any:
        """The memory of the skills with what the agents' plans are for, where the environment wants to know."""
        del plan
        return memory

    def no_goal(self) -> Any:
        """What the check of a plan's goal has seen of a new plan; leaves have the leading axis A."""
        return ()

    def watch(self, goal: Any, before: Any, after: Any, ops: Int[Array, "A W"]) -> Any:
        """The same after one more step; `before` and `after` are states, `ops` what the agents did."""
        del before, after, ops
        return goal

    def missed(self, goal: Any, plan: Plan) -> Bool[Array, " A"]:
        """2: plans whose ops all succeeded and that did not achieve what they were for."""
        del goal
        return jnp.zeros(plan.length.shape, jnp.bool_)

    def shown(self, state: Any) -> Any:
        """What prompts are written from: the state with floats as thousandths, since requests hold whole numbers."""
        return jax.tree.map(_whole, state)

    def step(self, state: Any, command: Any, draws: Any) -> tuple[Step, Attempts]:
        """One primitive step, and its attempt events (8.3)."""
        return self.env.step(state, command, draws), no_attempts(self.env.num_agents)

    def targets(self, state: Any, views: PlanViews) -> Int[Array, "A 2"]:
        """7: slot and kind of the task that each agent's plan aims at; -1, -1 for none."""
        del state
        return jnp.full((views.number.shape[0], 2), -1, jnp.int32)

    def score(self, state: Any) -> Array:
        """The team's score so far."""
        raise NotImplementedError

    def evaluate(self, config: RepairConfig, state: Any, views: PlanViews) -> Evaluation:
        """COOP²-Repair: which constraints the committed plans will fail; N = A * L rows."""
        raise NotImplementedError

    def guide(self, config: RepairConfig, state: Any, views: PlanViews, evaluation: Evaluation) -> Guidance:
        """COOP²-Repair: what the channel is advised to do."""
        raise NotImplementedError
