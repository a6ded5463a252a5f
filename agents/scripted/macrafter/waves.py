"""Ways to the nearest of many cells, for many walkers at once, on maps of bits.

Axes: K walkers, W columns (x), H rows (y), L = ceil(H / 32) words of one column, N = L * (W + 1) words of a map; bit
y % 32 of word y // 32 * (W + 1) + x is cell (x, y) (the layout of `jaxcoop.envs.macrafter.paths`).

A wave runs out from the goals.  A cell takes 1, 2 or 4 steps to enter, so a cell that the wave has reached at time t
passes it on at time t + 1, t + 2 or t + 4.  The way of a walker begins with the neighbour from which the wave arrives.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.envs.macrafter.types import DELTA_X, DELTA_Y

WORD = 32
BLOCK = 32
"""Walkers whose waves run side by side on a CPU, so that their maps stay in its cache."""
NOWHERE = -1


@struct.dataclass
class Terrain:
    """What it takes each walker to enter each cell; cells in no set cannot be entered."""

    one: UInt32[Array, "K N"]
    two: UInt32[Array, "K N"]
    four: UInt32[Array, "K N"]


@struct.dataclass
class Way:
    """Where each walker goes first."""

    direction: Int[Array, " K"]  # 0 to 3 as in `types.DIRECTION_NAMES`, NOWHERE; int32
    length: Int[Array, " K"]  # steps to the goal; int32, 0 without a way


def num_words(width: int, height: int) -> int:
    """N."""
    return -(-height // WORD) * (width + 1)


def pack(cells: Bool[Array, "W H"]) -> UInt32[Array, " N"]:
    """The map of bits of a set of cells."""
    width, height = cells.shape
    lines = -(-height // WORD)
    padded = jnp.pad(cells, ((0, 1), (0, lines * WORD - height))).reshape(width + 1, lines, WORD)
    weights = jnp.left_shift(jnp.uint32(1), jnp.arange(WORD, dtype=jnp.uint32))
    words = jnp.sum(jnp.where(padded, weights, jnp.uint32(0)), axis=-1, dtype=jnp.uint32)
    return words.T.reshape(-1)


def inside(width: int, height: int) -> np.ndarray:
    """All cells of the map, uint32[N]."""
    words = np.zeros((-(-height // WORD), width + 1), np.uint32)
    for line in range(words.shape[0]):
        rows = min(WORD, height - line * WORD)
        words[line, :width] = (1 << rows) - 1
    return words.reshape(-1)


def single(width: int, size: int, x: Int[Array, " K"], y: Int[Array, " K"]) -> UInt32[Array, "K N"]:
    """One cell each, nothing for x < 0."""
    word = y // WORD * (width + 1) + x
    bit = jnp.left_shift(jnp.uint32(1), (y & (WORD - 1)).astype(jnp.uint32))
    here = (jnp.arange(size, dtype=jnp.int32) == word[:, None]) & (x >= 0)[:, None]
    return jnp.where(here, bit[:, None], jnp.uint32(0))


def union(width: int, size: int, x: Int[Array, " K"], y: Int[Array, " K"]) -> UInt32[Array, " N"]:
    """The set of the cells (x, y), at most one entry for each; x < 0 names none."""
    word = jnp.where(x < 0, size, y // WORD * (width + 1) + x)
    bit = jnp.left_shift(jnp.uint32(1), (y & (WORD - 1)).astype(jnp.uint32))
    return jnp.zeros((size,), jnp.uint32).at[word].add(bit, mode="drop")


def contains(sets: UInt32[Array, "K N"], width: int, x: Int[Array, "K M"], y: Int[Array, "K M"]) -> Bool[Array, "K M"]:
    """Whether the cells (x, y) are in the sets; cells outside the map are in none."""
    lines = sets.shape[1] // (width + 1)
    is_inside = (x >= 0) & (x < width) & (y >= 0) & (y < lines * WORD)
    word = jnp.where(is_inside, y // WORD * (width + 1) + x, 0)
    found = jnp.take_along_axis(sets, word, axis=1)
    return is_inside & ((found >> (y & (WORD - 1)).astype(jnp.uint32)) & 1 > 0)


def grown(words: UInt32[Array, "... N"], width: int) -> UInt32[Array, "... N"]:
    """The neighbours of the cells of a set, in four directions; also ones below the last row of the map."""
    return _moved(words, 1) | _moved(words, -1) | _vertical(words, width)


def block(words: UInt32[Array, "... N"], width: int) -> UInt32[Array, "... N"]:
    """The 3 x 3 blocks around the cells of a set; also cells below the last row of the map."""
    columns = words | _vertical(words, width)
    return columns | _moved(columns, 1) | _moved(columns, -1)


def _vertical(words: UInt32[Array, "... N"], width: int) -> UInt32[Array, "... N"]:
    """The neighbours above and below."""
    line = width + 1
    down, up = words << 1, words >> 1
    if words.shape[-1] > line:  # several words in a column
        down = down | _moved(words, line) >> (WORD - 1)
        up = up | _moved(words, -line) << (WORD - 1)
    return down | up


def _moved(words: UInt32[Array, "... N"], by: int) -> UInt32[Array, "... N"]:
    """Words moved to higher (by > 0) or lower places; zeros come in."""
    nothing = jnp.zeros((*words.shape[:-1], abs(by)), jnp.uint32)
    if by > 0:
        return jnp.concatenate([nothing, words[..., :-by]], axis=-1)
    return jnp.concatenate([words[..., -by:], nothing], axis=-1)


def ways(
    width: int,
    terrain: Terrain,
    goals: UInt32[Array, "K N"],
    x: Int[Array, " K"],
    y: Int[Array, " K"],
    facing: Int[Array, " K"],
    asks: Bool[Array, " K"],
) -> Way:
    """The first step of each walker that asks to the nearest of its goals that can be entered.

    Of several first steps the one in the direction that the walker faces is taken, else the first direction.  A walker
    that does not ask, stands on a goal or has no way gets NOWHERE.
    """
    direction, length = _waves(width)(
        terrain.one, terrain.two, terrain.four, goals, x.astype(jnp.int32), y.astype(jnp.int32), facing, asks
    )
    return Way(direction, length)


@lru_cache
def _waves(width: int) -> Callable[..., tuple[Array, Array]]:
    """All waves of a batch as one function: mapped over episodes, their walkers join one long list.

    On a CPU the list is worked off in blocks; a block ends with the last of its walkers.
    """

    def in_blocks(*queries: Array) -> tuple[Array, Array]:
        count = queries[-1].shape[0]
        if count <= BLOCK:
            return _run(width, *queries)
        asks = queries[-1]
        order = jnp.argsort(~asks, stable=True)  # those that ask come first, so that most blocks are full or empty
        extra = -count % BLOCK
        order = jnp.pad(order, (0, extra))
        is_real = jnp.arange(count + extra) < count

        def block(entry: tuple[Array, Array]) -> tuple[Array, Array]:
            rows, real = entry
            *chosen, asking = (q[rows] for q in queries)
            return _run(width, *chosen, asking & real)

        found = jax.lax.map(block, (order.reshape(-1, BLOCK), is_real.reshape(-1, BLOCK)))
        back = jnp.zeros((count,), jnp.int32).at[order[:count]].set(jnp.arange(count, dtype=jnp.int32))
        direction, length = (f.reshape(-1)[back] for f in found)
        return direction, length

    def side_by_side(*queries: Array) -> tuple[Array, Array]:
        return _run(width, *queries)

    @custom_vmap
    def waves(*queries: Array) -> tuple[Array, Array]:
        return jax.lax.platform_dependent(*queries, cpu=in_blocks, default=side_by_side)

    @waves.def_vmap
    def rule(size: int, is_batched: tuple[bool, ...], *queries: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
        full = [q if b else jnp.broadcast_to(q, (size, *q.shape)) for q, b in zip(queries, is_batched, strict=True)]
        direction, length = waves(*(q.reshape(-1, *q.shape[2:]) for q in full))
        return (direction.reshape(size, -1), length.reshape(size, -1)), (True, True)

    return waves


def _run(width: int, *queries: Array) -> tuple[Array, Array]:
    """Direction and length of each walker's way; the queries are the arguments of `ways`."""
    one, two, four, goals, x, y, facing, asks = queries
    can_enter = one | two | four
    source = goals & can_enter & jnp.where(asks, jnp.uint32(0xFFFFFFFF), jnp.uint32(0))[:, None]
    near_x, near_y = x[:, None] + jnp.asarray(DELTA_X, jnp.int32), y[:, None] + jnp.asarray(DELTA_Y, jnp.int32)
    asks = asks & ~contains(goals, width, x[:, None], y[:, None])[:, 0]
    priority = jnp.where(jnp.arange(4) == facing[:, None], 0, jnp.arange(1, 5)).astype(jnp.int32)

    def wave(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        t, last, before, third, fourth, direction, length, _ = carry
        t = t + 1
        passed_on = (last & one) | (before & two) | (fourth & four)
        came = contains(passed_on, width, near_x, near_y)
        best = jnp.argmin(jnp.where(came, priority, 9), axis=1).astype(jnp.int32)
        arrives = came.any(axis=1) & (direction < 0) & asks
        direction = jnp.where(arrives, best, direction)
        length = jnp.where(arrives, t, length)
        reached = last | (grown(passed_on, width) & can_enter)
        waits = asks & (direction < 0)
        runs = ((reached != fourth).any(axis=1) & waits).any()
        return t, reached, last, before, third, direction, length, runs

    nothing = jnp.zeros_like(source)
    nobody = jnp.full(asks.shape, NOWHERE, jnp.int32)
    start = (jnp.zeros((), jnp.int32), source, nothing, nothing, nothing, nobody, jnp.zeros_like(nobody), asks.any())
    end = jax.lax.while_loop(lambda carry: carry[-1], wave, start)
    return end[5], end[6]
