"""What scripted planners that make whole plans share: who asks for what, plans op by op, answers.

Axes: A agents, L ops of a plan, W words of an op row, S words of a specification.
They follow `jaxcoop.cognition.play.PlanMaker`, so that whole episodes stay on the device.
"""

from typing import NamedTuple

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import plans
from jaxcoop.cognition.mail import GOT_REPAIR
from jaxcoop.cognition.state import State
from jaxcoop.cognition.types import Answer, Call, Plan, PlanStatus, Verdict, no_plan


class Questions(NamedTuple):
    """What the team is asked."""

    plans: Bool[Array, " A"]  # for a plan, right away or instead of the present one
    decides: Bool[Array, " A"]  # resume or replan
    repairs: Bool[Array, " A"]  # for a plan after a repair request
    advised: Bool[Array, " A"]  # and the channel has one for the agent
    holds: Bool[Array, " A"]  # has committed a plan that it is not asked to give up


def questions_of(state: State, asks: Bool[Array, " A"]) -> Questions:
    """What each agent wants to know, and who has a plan."""
    minds, held = state.minds, state.current
    plan, decide = asks & (minds.kind == Call.PLAN), asks & (minds.kind == Call.DECIDE)
    repairs = plan & ((minds.got & GOT_REPAIR) > 0)
    has_plan = (held.number > 0) & (held.status <= PlanStatus.EXECUTING)
    return Questions(
        plans=plan | decide,
        decides=decide,
        repairs=repairs,
        advised=repairs & state.channel.advised,
        holds=has_plan & ~plan,
    )


@struct.dataclass
class Draft:
    """Plans that are being written; what does not fit any more is left out."""

    ops: Int[Array, "A L W"]
    length: Int[Array, " A"]

    def add(self, who: Bool[Array, " A"], *words: Array | int) -> "Draft":
        """One more op for the agents in `who`: its kind and first arguments, each for all or for every agent."""
        agents, most, width = self.ops.shape
        columns = [jnp.broadcast_to(jnp.asarray(word, jnp.int32), (agents,)) for word in words]
        columns += [jnp.full((agents,), -1, jnp.int32)] * (width - len(words))
        row = jnp.stack(columns, -1)
        who = who & (self.length < most)
        here = who[:, None] & (jnp.arange(most) == self.length[:, None])
        return Draft(jnp.where(here[..., None], row[:, None], self.ops), self.length + who)

    def plan(self, name: Array, first: Array | int = -1, second: Array | int = -1) -> Plan:
        """The plans, for these tasks."""
        words = (name, first, second)
        spec = jnp.stack([jnp.broadcast_to(jnp.asarray(word, jnp.int32), self.length.shape) for word in words], -1)
        return Plan(spec=spec, ops=self.ops, length=self.length)


def blank(agents: int, ops: int, width: int) -> Draft:
    """Nothing is written yet."""
    empty = no_plan(agents, ops, width)
    return Draft(empty.ops, empty.length)


def answers(
    state: State, asked: Questions, plan: Plan, is_pointless: Bool[Array, " A"], follows: Bool[Array, " A"]
) -> Answer:
    """A plan for who asks for one, the advised one for who follows it; who decides replans if going on is pointless.

    Calls for text are taken: what is said is the plan itself.
    """
    plan = plans.where(asked.advised & follows, state.channel.plan, plan)
    decision = jnp.where(is_pointless, int(Verdict.REPLAN), int(Verdict.RESUME))
    return Answer(
        verdict=jnp.where(asked.decides, decision, int(Verdict.OK)).astype(jnp.int32),
        latency=jnp.zeros_like(plan.length),
        plan=plan,
    )
