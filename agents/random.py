"""Random policies: the reference points of every table.

Axes: K agents that act in one step.
"""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.core import Turn

WORD_BITS = 32


def uniform_actions(key: Array, shape: tuple[int, ...], num_actions: int) -> Int[Array, " K"]:
    """Independent uniform actions.

    A power of two up to 2^16 takes its exact bits, several actions from one random word; other sizes scale a 24-bit
    uniform, so that no probability is off by more than 2^-24.
    """
    bits = max(1, (num_actions - 1).bit_length())
    if num_actions != 1 << bits or bits > 16:
        return (jax.random.uniform(key, shape) * num_actions).astype(jnp.int32)
    per_word = WORD_BITS // bits
    words = jax.random.bits(key, (-(-shape[0] // per_word),), jnp.uint32)
    shifts = jnp.arange(per_word, dtype=jnp.uint32) * bits
    actions = (words[None, :] >> shifts[:, None]) & jnp.uint32(num_actions - 1)
    return actions.reshape(-1)[: shape[0]].astype(jnp.int32)


def uniform_legal(uniforms: Float[Array, " K"], legal: Bool[Array, "K num_actions"]) -> Int[Array, " K"]:
    """Uniform over the legal actions of each row; a row without any gives the last action."""
    rank = jnp.cumsum(legal.astype(jnp.int32), axis=-1)  # [K, num_actions]
    chosen = (uniforms * rank[:, -1].astype(jnp.float32)).astype(jnp.int32)
    return jnp.minimum((rank <= chosen[:, None]).sum(-1, dtype=jnp.int32), legal.shape[-1] - 1)


@dataclasses.dataclass(frozen=True)
class RandomPolicy:
    """Uniform over all actions (`over="any"`) or over the legal ones (`over="legal"`)."""

    over: Literal["any", "legal"] = "any"

    def __post_init__(self) -> None:
        """Check the option."""
        if self.over not in ("any", "legal"):
            raise ValueError(f"over {self.over!r}: must be 'any' or 'legal'")

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Draw afresh for every acting agent."""
        if self.over == "any":
            return uniform_actions(key, turn.agents.shape, turn.legal.shape[-1]), memory
        return uniform_legal(jax.random.uniform(key, turn.agents.shape), turn.legal), memory
