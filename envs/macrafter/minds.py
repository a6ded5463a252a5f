"""MA-Crafter as the cognitive layer sees it: agents with plans of symbolic actions.

Axes: A agents, L ops of a plan, W words of an op.  Numbers are sections of docs/coop2.md.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.cognition import domain
from jaxcoop.cognition.domain import Domain, Profile
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation, Guidance
from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.cooperation import Attempts, no_attempts
from jaxcoop.core import Step
from jaxcoop.envs.macrafter import goals, repair
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.skills import OWN_TARGET, Memory, Op
from jaxcoop.envs.macrafter.types import RESOURCES, Action, Command, Item, State


@dataclasses.dataclass(frozen=True)
class CrafterMinds(Domain):
    """One MA-Crafter environment; a specification is (number in `goals.NAMES`, type of the object, its id)."""

    env: MACrafter
    profile: Profile = domain.MACRAFTER
    tasks: tuple[str, ...] = goals.NAMES
    fallback: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] = (
        (len(goals.NAMES), -1, -1),
        ((int(Op.MOVE), int(Action.MOVE_LEFT), 2), (int(Op.COLLECT), int(Item.WOOD))),
    )

    @property
    def num_tasks(self) -> int:
        """Cells of the map."""
        return self.env.width * self.env.height

    @property
    def num_kinds(self) -> int:
        """Materials and things."""
        return repair.NUM_KINDS

    def complete(self, plan: Plan) -> Plan:
        """The op that a task asks for."""
        return goals.complete(plan)

    def announce(self, memory: Memory, plan: Plan) -> Memory:
        """The scored resource that each agent's plan is for."""
        kind, ident = plan.spec[:, 1], plan.spec[:, 2]
        return dataclasses.replace(memory, plan=jnp.where(_is_scored(kind, ident), ident, OWN_TARGET))

    def no_goal(self) -> UInt32[Array, " A"]:
        """Nothing was achieved yet."""
        return goals.no_progress(self.env.num_agents)

    def watch(
        self, goal: UInt32[Array, " A"], before: State, after: State, ops: Int[Array, "A W"]
    ) -> UInt32[Array, " A"]:
        """What plans have achieved."""
        return goal | goals.progress(before, after, ops)

    def missed(self, goal: UInt32[Array, " A"], plan: Plan) -> Bool[Array, " A"]:
        """Plans that did not achieve their task."""
        return goals.missed(plan.spec, goal)

    def step(self, state: State, command: Command, draws: Any) -> tuple[Step, Attempts]:
        """Collects of scored resources, whether they got anything or not."""
        step, _, attempts = self.env.advance(state, command, draws)
        return step, no_attempts(self.env.num_agents) if attempts is None else attempts

    def targets(self, state: State, views: PlanViews) -> Int[Array, "A 2"]:
        """The scored resource that a plan is for, by its cell."""
        del state
        kind, ident = views.plan.spec[:, 1], views.plan.spec[:, 2]
        aims = _is_scored(kind, ident)[:, None]
        return jnp.where(aims, jnp.stack([ident - 1, kind], -1), -1)

    def score(self, state: State) -> Array:
        """Team score."""
        return state.score

    def evaluate(self, config: RepairConfig, state: State, views: PlanViews) -> Evaluation:
        """Predicted collections."""
        return repair.evaluate(self.env, config, state, views)

    def guide(self, config: RepairConfig, state: State, views: PlanViews, evaluation: Evaluation) -> Guidance:
        """Reachable shared targets."""
        return repair.guide(self.env, config, state, views, evaluation).guidance


def _is_scored(kind: Int[Array, " A"], ident: Int[Array, " A"]) -> Bool[Array, " A"]:
    """Whether specifications name a scored resource."""
    return (kind[:, None] == np.array(RESOURCES)).any(1) & (ident >= 1)
