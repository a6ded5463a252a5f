"""Cow balancing (11): every tenth step cows appear in empty meadows and vanish from crowded ones, one chunk at a time.

Axes: A agents, W x H cells, C cow slots of which the first C0 hold the cows of the start, K chunks of 12 x 12 cells
(x outer, those at the far edges clipped), N words of 32 chunks.

What happens in one chunk changes nothing in another one.  The few chunks where something may happen are found for
all chunks at once; a loop then goes through them.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from jaxcoop.core import bits
from jaxcoop.envs.macrafter.config import CHUNK, chunk_grid
from jaxcoop.envs.macrafter.types import Material, has_plant, material_of

EVERY = 10
"""Balancing happens in steps whose number is a multiple of this."""

MEADOW = 30
"""Grass cells from which on a chunk without cows may get one."""

DISTANCE = 5
"""Cows appear and vanish no closer to any player than this (Manhattan)."""

SPAWN_BELOW = round(0.01 * 2**32)
DESPAWN_BELOW = round(0.1 * 2**32)
NEVER = 2**32 - 1
"""A word with which nothing happens."""

DAYLIGHT_PERIOD = 300
LAST_BRIGHT, FIRST_BRIGHT = 147, 273
"""4: steps of a period up to which, and from which on again, daylight is 1/2 or more."""


FarTest = Callable[[Array, Array], Array]
"""Whether every player is far enough from a cell (x, y)."""


@struct.dataclass
class BalanceDraws:
    """Random numbers of one balancing.

    A word below 1 % (10 %) of 2^32 lets a cow appear (vanish); given that, its remainder is as good as uniform and
    picks the grass cell (the cow).
    """

    word: UInt32[Array, " K"]


@struct.dataclass
class Herd:
    """The cow slots."""

    x: Int[Array, " C"]  # int16; -1: free slot
    y: Int[Array, " C"]
    id: Int[Array, " C"]  # 12.1: int32; -1: free slot
    next_id: Int[Array, ""]  # 12.1: the next object's id; int32


def num_chunks(width: int, height: int) -> int:
    """K."""
    columns, rows = chunk_grid(width, height)
    return columns * rows


def chunk_of(x: Int[Array, "..."], y: Int[Array, "..."], height: int) -> Int[Array, "..."]:
    """Index of the chunk of cells; negative for (-1, -1)."""
    rows = -(-height // CHUNK)
    return x // CHUNK * rows + y // CHUNK


def sample_draws(key: Array, width: int, height: int, is_due: Bool[Array, ""] | None = None) -> BalanceDraws:
    """The draws of one step; with `is_due`, words with which nothing happens unless it holds, at next to no cost."""
    shape = (num_chunks(width, height),)
    if is_due is None:
        return BalanceDraws(word=jax.random.bits(key, shape, jnp.uint32))

    def sample_once(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        del carry
        return jax.random.bits(key, shape, jnp.uint32), jnp.zeros((), jnp.bool_)

    # a loop of one round, as in `balance`
    idle = jnp.full(shape, NEVER, jnp.uint32)
    return BalanceDraws(word=jax.lax.while_loop(lambda carry: carry[1], sample_once, (idle, is_due))[0])


def most_cows(t: Int[Array, ""]) -> Int[Array, ""]:
    """floor(1.5 + daylight) after `t` steps: more cows than this in a chunk may lose one; int32."""
    phase = t % DAYLIGHT_PERIOD
    is_bright = (phase <= LAST_BRIGHT) | (phase >= FIRST_BRIGHT)
    return jnp.where(is_bright, jnp.int32(2), jnp.int32(1))


def balance(
    material: UInt8[Array, "W H"],
    herd: Herd,
    x: Int[Array, " A"],
    y: Int[Array, " A"],
    touched: UInt32[Array, " N"],
    t: Int[Array, ""],
    draws: BalanceDraws,
    is_due: Bool[Array, ""],
    start_slots: int,
) -> Herd:
    """The herd after balancing step number `t`; as it was unless `is_due`.

    `material` holds the bytes of `types.State`; players include removed ones, those that never had a cell (-1) are
    ignored.  `touched`: chunks that have held any object.  Cows that appear get the next ids and go behind those
    that have appeared before, in the slots from C0 = `start_slots` on; when the last slot is taken these move up.
    A cow for which there is no free slot does not appear.
    """
    chunks = jnp.arange(num_chunks(*material.shape), dtype=jnp.int32)
    word = draws.word

    def is_far(place_x: Int[Array, ""], place_y: Int[Array, ""]) -> Bool[Array, ""]:
        distance = jnp.abs(x.astype(jnp.int32) - place_x) + jnp.abs(y.astype(jnp.int32) - place_y)
        return ((distance >= DISTANCE) | (x < 0)).all()

    def balance_once(carry: tuple[Herd, Array]) -> tuple[Herd, Array]:
        herd, _ = carry
        cows = _cows_of_chunks(herd, *material.shape)
        held = bits.unpack(touched, len(chunks))
        shrinks = held & (word < DESPAWN_BELOW) & (cows > most_cows(t))
        grows = held & (word < SPAWN_BELOW) & (cows == 0)
        herd = _for_each(shrinks, herd, lambda herd, chunk: _remove_cow(herd, chunk, word[chunk], material, is_far))
        # Chunks go by index, not by first touch: this only decides which of two cows of one step is the elder.
        herd = _for_each(
            grows, herd, lambda herd, chunk: _add_cow(herd, chunk, word[chunk], material, is_far, start_slots)
        )
        return herd, jnp.zeros((), jnp.bool_)

    # a loop of one round, since `cond` does its work for every episode of a batch even when none is due
    return jax.lax.while_loop(lambda carry: carry[1], balance_once, (herd, is_due))[0]


def _for_each(chunks: Bool[Array, " K"], herd: Herd, change: Callable[[Herd, Array], Herd]) -> Herd:
    """Change the herd for each of the marked chunks, which are few."""
    ids = jnp.arange(chunks.shape[0], dtype=jnp.int32)

    def next_chunk(todo: Array) -> Array:
        return jnp.where(todo, ids, len(ids)).min()

    def change_one(carry: tuple[Herd, Array, Array]) -> tuple[Herd, Array, Array]:
        herd, todo, chunk = carry
        todo = todo & (ids != chunk)
        return change(herd, chunk), todo, next_chunk(todo)

    start = (herd, chunks, next_chunk(chunks))
    return jax.lax.while_loop(lambda carry: carry[2] < len(ids), change_one, start)[0]


def _cows_of_chunks(herd: Herd, width: int, height: int) -> Int[Array, " K"]:
    """Number of cows in each chunk."""
    count = num_chunks(width, height)
    # narrow numbers, as this is K * C comparisons
    index = jnp.int8 if count < 128 else jnp.int16
    number = jnp.uint8 if herd.x.shape[0] < 256 else jnp.uint16
    chunk = chunk_of(herd.x, herd.y, height).astype(index)
    return (chunk == jnp.arange(count, dtype=index)[:, None]).sum(1, dtype=number).astype(jnp.int32)


def _corner(chunk: Int[Array, ""], height: int) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """First cell of a chunk."""
    rows = -(-height // CHUNK)
    return chunk // rows * CHUNK, chunk % rows * CHUNK


def _remove_cow(
    herd: Herd, chunk: Int[Array, ""], word: UInt32[Array, ""], material: UInt8[Array, "W H"], is_far: FarTest
) -> Herd:
    """11: a random cow of the chunk vanishes, unless a player is near."""
    corner_x, corner_y = _corner(chunk, material.shape[1])
    is_in = (herd.x >= corner_x) & (herd.x < corner_x + CHUNK) & (herd.y >= corner_y) & (herd.y < corner_y + CHUNK)
    slot = _pick(is_in, word)[1]
    vanishes = is_in & (jnp.arange(is_in.shape[0]) == slot)
    vanishes = vanishes & is_far(herd.x[slot].astype(jnp.int32), herd.y[slot].astype(jnp.int32))
    return Herd(
        x=jnp.where(vanishes, jnp.int16(-1), herd.x),
        y=jnp.where(vanishes, jnp.int16(-1), herd.y),
        id=jnp.where(vanishes, jnp.int32(-1), herd.id),
        next_id=herd.next_id,
    )


def _add_cow(
    herd: Herd,
    chunk: Int[Array, ""],
    word: UInt32[Array, ""],
    material: UInt8[Array, "W H"],
    is_far: FarTest,
    start_slots: int,
) -> Herd:
    """11: a cow appears on a random grass cell of a chunk without cows, if it is a meadow and the cell is good."""
    total, x, y, has_room = _pick_grass(material, *_corner(chunk, material.shape[1]), word)
    slots = jnp.arange(herd.x.shape[0], dtype=jnp.int32)
    is_later = slots >= start_slots
    is_free = is_later & (herd.x < 0)
    is_full = is_later[-1] & ~is_free[-1]
    behind = jnp.where(is_later & ~is_free, slots, start_slots - 1).max() + 1  # behind the last later cow
    gap = jnp.where(is_free, slots, -1).max()
    place = jnp.where(is_full, len(slots) - 1, behind)
    appears = (total >= MEADOW) & has_room & is_far(x, y) & (gap >= 0)

    def enter(old: Array, new: Array) -> Array:
        closed = jnp.where(is_full & (slots >= gap), jnp.roll(old, -1), old)
        return jnp.where(appears, jnp.where(slots == place, new.astype(old.dtype), closed), old)

    return Herd(
        x=enter(herd.x, x),
        y=enter(herd.y, y),
        id=enter(herd.id, herd.next_id),
        next_id=herd.next_id + appears.astype(jnp.int32),
    )


def _pick_grass(
    material: UInt8[Array, "W H"], corner_x: Int[Array, ""], corner_y: Int[Array, ""], word: UInt32[Array, ""]
) -> tuple[Int[Array, ""], Int[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """Number of grass cells of a chunk without cows, one of them (x, y), and whether no plant stands there."""
    width, height = min(CHUNK, material.shape[0]), min(CHUNK, material.shape[1])
    # the slice of a chunk at the far edge begins before the chunk
    left = jnp.minimum(corner_x, material.shape[0] - width)
    top = jnp.minimum(corner_y, material.shape[1] - height)
    cells = jax.lax.dynamic_slice(material, (left, top), (width, height))
    columns, rows = left + jnp.arange(width, dtype=jnp.int32), top + jnp.arange(height, dtype=jnp.int32)
    grass = (material_of(cells) == Material.GRASS) & (columns >= corner_x)[:, None] & (rows >= corner_y)
    total, place = _pick(grass.reshape(-1), word)
    x, y = left + place // height, top + place % height
    return total, x, y, ~has_plant(material[x, y])


def _pick(mask: Bool[Array, " M"], word: UInt32[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """How many entries are marked, and the index of one of them that the word picks (0 if there is none)."""
    sets = bits.pack(mask)
    counts = jax.lax.population_count(sets).astype(jnp.int32)
    total = counts.sum(dtype=jnp.int32)
    rank = (word % jnp.maximum(total, 1).astype(jnp.uint32)).astype(jnp.int32)
    # the set of 32 entries that the rank falls into; unrolled, as few numbers for each episode fuse well
    chosen, first, before = sets[0], jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)
    start = jnp.zeros((), jnp.int32)
    for k in range(1, sets.shape[0]):
        start = start + counts[k - 1]
        is_past = rank >= start
        chosen = jnp.where(is_past, sets[k], chosen)
        first = jnp.where(is_past, jnp.int32(bits.WORD * k), first)
        before = jnp.where(is_past, start, before)
    rank = rank - before
    # the bit with that rank, by halving
    for half in (16, 8, 4, 2, 1):
        low = chosen & jnp.uint32((1 << half) - 1)
        count = jax.lax.population_count(low).astype(jnp.int32)
        is_high = rank >= count
        chosen = jnp.where(is_high, chosen >> half, low)
        first = jnp.where(is_high, first + half, first)
        rank = jnp.where(is_high, rank - count, rank)
    return total, jnp.where(total > 0, first, 0)
