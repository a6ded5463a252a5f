"""12.4: how far it is to everywhere: steps of each agent until it is close enough to each cell.

Axes: A agents, W x H cells, N words of a map of bits (as in `paths`), M = W * H cells as tasks, P bits of a distance.
Section numbers refer to the MA-Crafter behaviour notes, docs/envs/macrafter.md.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.envs.macrafter import paths
from jaxcoop.envs.macrafter.skills import open_ground
from jaxcoop.envs.macrafter.types import State

UNREACHED = -1


def steps_to_cells(state: State, reach: int, asks: Bool[Array, " A"]) -> Int[Array, "A M"]:
    """Steps of each agent to the nearest cell within Manhattan distance `reach` of each cell; int32.

    An agent may cross what the planner of `navigate` crosses.  UNREACHED where there is no way, and for agents that do
    not ask or were removed.
    """
    width, height = state.material.shape
    free = open_ground(state).words
    start = jnp.stack([state.x, state.y], axis=-1).astype(jnp.int32)
    asks = asks & ~state.removed
    planes, seen = jax.vmap(lambda start, asks: _wave(free, width, width * height, reach, start, asks))(start, asks)
    bits = jax.vmap(lambda words: _unpack(words, width, height))
    weights = 1 << jnp.arange(planes.shape[1], dtype=jnp.int32)
    steps = (jax.vmap(bits)(planes).astype(jnp.int32) * weights[:, None]).sum(1)
    return jnp.where(bits(seen), steps, UNREACHED)


def _wave(
    free: UInt32[Array, " N"], width: int, cells: int, reach: int, start: Int[Array, " 2"], asks: Bool[Array, ""]
) -> tuple[UInt32[Array, "P N"], UInt32[Array, " N"]]:
    """Bits of the number of the wave that first comes within `reach` of each cell, and the cells that one comes to."""
    size = free.shape[0]
    margin = paths.margin_of(size, width)
    digits = jnp.arange(cells.bit_length(), dtype=jnp.uint32)
    begin = paths.disk(size, width, start, jnp.zeros((), jnp.int32)) & jnp.where(asks, ~jnp.uint32(0), 0)

    def around(words: Array) -> Array:
        for _ in range(reach):
            right, left, down, up = paths.shifts(paths.padded_by(words, margin), margin)
            words = words | right | left | down | up
        return words

    def wave(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        reached, last, planes, seen, number = carry
        near = around(last) & ~seen
        is_set = (number >> digits) & 1 > 0
        planes = jnp.where(is_set[:, None], planes | near, planes)
        right, left, down, up = paths.shifts(paths.padded_by(last, margin), margin)
        new = (right | left | down | up) & free & ~reached
        return reached | new, new, planes, seen | near, number + 1

    planes = jnp.zeros((digits.shape[0], size), jnp.uint32)
    carry = (begin, begin, planes, jnp.zeros_like(begin), jnp.zeros((), jnp.uint32))
    _, _, planes, seen, _ = jax.lax.while_loop(lambda carry: (carry[1] != 0).any(), wave, carry)
    return planes, seen


def _unpack(words: UInt32[Array, " N"], width: int, height: int) -> Bool[Array, " M"]:
    """The cells of a map of bits, columns one after another."""
    lines = words.reshape(-1, width + 1)[:, :width]  # [L, W]
    rows = jnp.arange(paths.WORD, dtype=jnp.uint32)
    cells = (lines[:, :, None] >> rows) & 1  # [L, W, 32]
    return cells.transpose(1, 0, 2).reshape(width, -1)[:, :height].reshape(-1) > 0
