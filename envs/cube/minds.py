"""CUBE as the cognitive layer sees it: agents with plans of symbolic actions.

Axes: A agents, L ops of a plan, W words of an op.  Numbers are sections of docs/coop2.md.
"""

import dataclasses
from typing import Any

from jaxtyping import Array, Int

from jaxcoop.cognition import domain
from jaxcoop.cognition.domain import Domain, Profile
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation, Guidance
from jaxcoop.cognition.types import PlanViews
from jaxcoop.cooperation import Attempts
from jaxcoop.core import Step
from jaxcoop.envs.cube import guidance, repair
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.guidance import TASKS
from jaxcoop.envs.cube.skills import Op
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.types import Action, Command, State


@dataclasses.dataclass(frozen=True)
class CubeMinds(Domain):
    """One CUBE environment; a specification is (number in `TASKS`, block, unused)."""

    env: Cube
    profile: Profile = domain.CUBE
    tasks: tuple[str, ...] = TASKS
    fallback: tuple[tuple[int, ...], tuple[tuple[int, ...], ...]] = (
        (len(TASKS), -1, -1),
        ((int(Op.MOVE), int(Action.RIGHT), 2), (int(Op.MOVE), int(Action.DOWN), 1)),
    )

    @property
    def num_tasks(self) -> int:
        """Faces of blocks."""
        return NUM_FACES * self.env.num_blocks

    @property
    def num_kinds(self) -> int:
        """Weights of blocks."""
        return repair.num_kinds(self.env)

    def step(self, state: State, command: Command, draws: Any) -> tuple[Step, Attempts]:
        """The pushes, whether they moved anything or not."""
        step = self.env.step(state, command, draws)
        return step, step.events.attempts

    def targets(self, state: State, views: PlanViews) -> Int[Array, "A 2"]:
        """The face that a plan's ops name, and its weight."""
        del state
        return repair.targets(self.env, views)

    def score(self, state: State) -> Array:
        """Value delivered."""
        return state.score

    def evaluate(self, config: RepairConfig, state: State, views: PlanViews) -> Evaluation:
        """Predicted pushes."""
        return repair.evaluate(self.env, config, state, views)

    def guide(self, config: RepairConfig, state: State, views: PlanViews, evaluation: Evaluation) -> Guidance:
        """Aligned pushes."""
        del config
        return guidance.guide(self.env, state, views, evaluation)
