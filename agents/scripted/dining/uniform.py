"""Random philosophers under other readings of "legal action" (section 14.1 of docs/envs/dining.md).

Axes: K philosophers that decide now.
"""

import dataclasses
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.random import uniform_legal
from jaxcoop.core import Turn
from jaxcoop.core.registry import unknown
from jaxcoop.envs.dining.types import Action, Obs

ActionSet = Literal["not_held", "available", "any_release", "no_wait"]


@dataclasses.dataclass(frozen=True)
class UniformOver:
    """Uniform over another reading of "the legal actions" (14.1); each starts from the usual mask.

    The usual mask is grabs of free forks, RELEASE with a fork in hand, WAIT.  "not_held": grabs of all forks
    not in the own hand; "available": grabs of all available forks; "any_release": RELEASE always; "no_wait":
    WAIT only when nothing else is legal.  Raises `ValueError` for another set.
    """

    over: ActionSet

    def __post_init__(self) -> None:
        """Check the set."""
        if self.over not in get_args(ActionSet):
            raise unknown("over", self.over, get_args(ActionSet))

    def mask(self, obs: Obs, legal: Bool[Array, "K 4"]) -> Bool[Array, "K 4"]:
        """The action set of each philosopher."""
        left, right, release, wait = (legal[:, action] for action in Action)
        match self.over:
            case "not_held":
                left, right = ~obs.holding_left, ~obs.holding_right
            case "available":
                left, right = obs.left_available, obs.right_available
            case "any_release":
                release = jnp.ones_like(release)
            case "no_wait":
                wait = ~(left | right | release)
        return jnp.stack([left, right, release, wait], axis=-1)

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Draw afresh for every acting philosopher."""
        uniforms = jax.random.uniform(key, turn.agents.shape)
        return uniform_legal(uniforms, self.mask(turn.obs, turn.legal)), memory
