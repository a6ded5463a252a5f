"""What is near: waves over the open ground.

Axes: A agents, Q squads, N words of a map of bits (`jaxcoop.agents.scripted.macrafter.waves`).  A wave stops at `RANGE`
steps: what is farther away is left for later.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.agents.scripted.macrafter import waves

RANGE = 64
"""Steps that agents look ahead."""

_STRIDE = 37
"""By how many words the choice among equals starts after that of the row before, so that rows differ in it."""


class Nearest(NamedTuple):
    """The nearest cell of a set."""

    found: Bool[Array, " A"]
    x: Int[Array, " A"]
    y: Int[Array, " A"]
    steps: Int[Array, " A"]  # until the agent stands beside it


def nearest(
    width: int,
    ground: UInt32[Array, " N"],
    goals: UInt32[Array, "A N"],
    x: Int[Array, " A"],
    y: Int[Array, " A"],
    asks: Bool[Array, " A"],
) -> Nearest:
    """The cell of each agent's goals beside which it can come first, starting at (x, y); of several any."""
    size = ground.shape[0]
    begin = waves.single(width, size, jnp.where(asks, x, -1), y)
    agents = begin.shape[0]

    def wave(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        reached, last, touched, steps, count = carry
        around = waves.grown(last, width)
        waits = ~(touched != 0).any(1)
        hit = jnp.where(waits[:, None], around & goals, touched)
        steps = jnp.where(waits, count, steps)
        new = around & ground & ~reached
        new = jnp.where((waits & ~(hit != 0).any(1))[:, None], new, jnp.uint32(0))
        return reached | new, new, hit, steps, count + 1

    zero = jnp.zeros((agents,), jnp.int32)
    start = (begin, begin, jnp.zeros_like(goals), zero, jnp.zeros((), jnp.int32))
    *_, touched, steps, _ = jax.lax.while_loop(lambda c: (c[1] != 0).any() & (c[4] < RANGE), wave, start)
    words = jnp.arange(size, dtype=jnp.int32)
    turn = (words - _STRIDE * jnp.arange(agents, dtype=jnp.int32)[:, None]) % size
    word = jnp.argmin(jnp.where(touched != 0, turn, size), 1).astype(jnp.int32)
    bits = jnp.take_along_axis(touched, word[:, None], 1)[:, 0]
    bit = jax.lax.population_count(~bits & (bits - 1)).astype(jnp.int32)
    line = width + 1
    found = (bits != 0) & asks
    return Nearest(found, word % line, word // line * waves.WORD + bit, jnp.where(found, steps, 0))


def flood(width: int, ground: UInt32[Array, " N"], begin: UInt32[Array, "Q N"]) -> UInt32[Array, "Q N"]:
    """What can be reached from each set."""

    def wave(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        reached, last, count = carry
        new = waves.grown(last, width) & ground & ~reached
        return reached | new, new, count + 1

    start = (begin, begin, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(lambda c: (c[1] != 0).any() & (c[2] < RANGE), wave, start)[0]


def disk(width: int, size: int, x: Int[Array, " A"], y: Int[Array, " A"]) -> UInt32[Array, "A N"]:
    """The cells within two steps of (x, y): whatever is collected from beside it."""
    cells = waves.single(width, size, x, y)
    cells = cells | waves.grown(cells, width)
    return cells | waves.grown(cells, width)


def unpack(words: UInt32[Array, "Q N"], width: int, height: int) -> Bool[Array, "Q W H"]:
    """Sets as maps."""
    lines = words.reshape(words.shape[0], -1, width + 1)[:, :, :width]  # [Q, L, W]
    rows = jnp.arange(waves.WORD, dtype=jnp.uint32)
    cells = (lines[..., None] >> rows) & 1  # [Q, L, W, 32]
    return cells.transpose(0, 2, 1, 3).reshape(words.shape[0], width, -1)[:, :, :height] > 0
