"""A team that draws its macro-skills.

Axes: A players.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.random import uniform_legal
from jaxcoop.core.skills import Report
from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.types import State


@dataclasses.dataclass(frozen=True)
class RandomSkills:
    """Whoever has nothing to do starts one of the skills of the mask (8.3), STAY among them."""

    env: Burrito

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def plan(
        self, key: Array, memory: None, state: State, idle: Bool[Array, " A"], report: Report
    ) -> tuple[Int[Array, "A 1"], Bool[Array, " A"], None]:
        """Draw for everybody; only the idle start theirs."""
        del report
        draws = jax.random.uniform(key, idle.shape)
        return uniform_legal(draws, self.env.skills.feasible(state))[:, None], jnp.zeros_like(idle), memory
