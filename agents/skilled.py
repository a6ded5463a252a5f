"""A team whose decisions are skills: a planner names symbolic actions, the environment's skills carry them out.

Axes: A agents, W width of an op row.
"""

import dataclasses
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.core import Env, Turn
from jaxcoop.core.skills import Report, Skills, Status

SKILLS = 1
"""Stream of the skills' draws beside the key of the planner."""


class SkillPlanner(Protocol):
    """Decides what the agents do next, as a pure function; sees the whole state (a centralised planner)."""

    def init(self, key: Array) -> Any:
        """What the planner remembers at the start of an episode."""
        ...

    def plan(
        self, key: Array, memory: Any, state: Any, idle: Bool[Array, " A"], report: Report
    ) -> tuple[Int[Array, "A W"], Bool[Array, " A"], Any]:
        """Ops, the agents that start theirs now, and the new memory.

        `idle`: agents whose op has ended (or that never had one); they start the op of their row whatever the second
        result says.  Any other agent named there drops what it is doing.
        """
        ...


@struct.dataclass
class SkilledMemory:
    """What a skilled team remembers."""

    skill: Any  # of the environment's skills, leading axis A
    plan: Any  # of the planner
    running: Bool[Array, " A"]  # the agent has an op


@dataclasses.dataclass(frozen=True)
class SkilledPolicy:
    """Plays an environment through its skills.  Raises `ValueError` if the environment has none."""

    env: Env
    planner: SkillPlanner

    def __post_init__(self) -> None:
        """Check that there are skills."""
        self.skills  # noqa: B018  raises if there are none

    @property
    def skills(self) -> Skills:
        """Of the environment."""
        skills = self.env.skills
        if skills is None:
            raise ValueError(f"{self.env.name} has no skills; a skilled team needs symbolic actions")
        return skills

    def init(self, key: Array) -> SkilledMemory:
        """Nobody runs anything."""
        nobody = jnp.zeros((self.env.num_agents,), jnp.bool_)
        return SkilledMemory(skill=self.skills.idle(), plan=self.planner.init(key), running=nobody)

    def act(self, key: Array, memory: SkilledMemory, turn: Turn) -> tuple[Any, SkilledMemory]:
        """See what has ended, let the planner choose, compile everybody's skill into a primitive."""
        report = self.skills.check(turn.state, memory.skill)
        idle = ~memory.running | (report.status != Status.PENDING)
        ops, changed, plan = self.planner.plan(key, memory.plan, turn.state, idle, report)
        draws = self.skills.sample_draws(jax.random.fold_in(key, SKILLS), turn.state)
        skill = self.skills.begin(turn.state, memory.skill, ops, idle | changed, draws)
        command, skill = self.skills.command(turn.state, skill, draws)
        return command, SkilledMemory(skill=skill, plan=plan, running=jnp.ones_like(idle))
