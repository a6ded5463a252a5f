"""12.4: the planner's shortest paths, with the tie-breaking of its search, on maps of bits.

Axes: W columns (x), H rows (y), A agents, B episodes, L = ceil(H / 32) words of one column, N = L * (W + 1) words of a
map; bit y % 32 of word y // 32 * (W + 1) + x is cell (x, y).  The last word of each W + 1 is 0, so that a look over
the right or left edge finds nothing.

The reference searches with A* for each goal cell around the target: 4 neighbours in the order up, down, left, right,
priority (path so far + Manhattan distance to the goal, order of insertion).  Only the first step is ever used.  The
same step follows without a queue:

* The chosen goal is the first one, in the order of cells, that a breadth-first wave from the agent touches.
* Every ancestor of the goal in the search tree lies on a shortest path, and only entries of such cells compete.  Of
  two cells at the same distance from the agent the search pops the one nearer to the goal first; if both are equally
  near, the one whose own parent was popped first; if the parent is the same, by the order of neighbours.  The parent of
  a cell is the first of its predecessors to be popped.
* So walking back from the goal with *all* predecessors that can still be the parent needs one look per layer: if any
  predecessor is nearer to the goal than the layer, keep those; otherwise all are farther by one, keep them all.  The
  first cells that are left tie in everything but the order of neighbours.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, UInt32

WORD = 32
NO_PATH = -1
NEAR = 0  # already within the radius; 1 to 4 are the primitive moves left, right, up, down
NEIGHBOURS = ((0, -1, 3), (0, 1, 4), (-1, 0, 1), (1, 0, 2))  # (dx, dy, primitive) in the order of the search


@struct.dataclass
class Ground:
    """The cells that the planner may cross."""

    words: UInt32[Array, " N"]
    width: int = struct.field(pytree_node=False)  # W


@struct.dataclass
class Route:
    """Where to go first, and how far it is."""

    move: Int[Array, " A"]  # int32: NO_PATH, NEAR, or the primitive 1 to 4
    length: Int[Array, " A"]  # int32: steps to the goal cell; 0 if near, -1 without a path


def ground(free: Bool[Array, "W H"]) -> Ground:
    """The map of bits from the free cells."""
    width, height = free.shape
    lines = -(-height // WORD)
    padded = jnp.pad(free, ((0, 1), (0, lines * WORD - height))).reshape(width + 1, lines, WORD)
    weights = jnp.left_shift(jnp.uint32(1), jnp.arange(WORD, dtype=jnp.uint32))
    words = jnp.sum(jnp.where(padded, weights, jnp.uint32(0)), axis=-1, dtype=jnp.uint32)
    return Ground(words.T.reshape(-1), width)


def without(free: Ground, x: Int[Array, " K"], y: Int[Array, " K"]) -> Ground:
    """The map less the cells (x, y) of objects, at most one in a cell; x = -1 names none."""
    word = y // WORD * (free.width + 1) + x
    bit = jnp.left_shift(jnp.uint32(1), (y & (WORD - 1)).astype(jnp.uint32))
    # bits of a word differ, so their sum is their union
    taken = jnp.zeros_like(free.words).at[jnp.where(x < 0, free.words.shape[0], word)].add(bit, mode="drop")
    return Ground(free.words & ~taken, free.width)


def routes(
    free: Ground,
    start: Int[Array, "A 2"],
    target: Int[Array, "A 2"],
    radius: Int[Array, " A"],
    asks: Bool[Array, " A"],
) -> Route:
    """First step of each agent that asks from `start` (x, y) to within Manhattan distance `radius` of `target`.

    Goals are the free cells there; with radius 0 or less just the target's own cell, even if it is not free.  An agent
    that does not ask costs nothing and gets NO_PATH, as does one that cannot get there or stands outside the map.
    """
    limit = free.width + free.words.shape[0] * WORD
    start, target = start.astype(jnp.int32), target.astype(jnp.int32)
    radius = jnp.clip(radius, 0, limit).astype(jnp.int32)
    is_near = jnp.abs(start - target).sum(-1, dtype=jnp.int32) <= radius
    found = _searches(free.width)(free.words[None], start[None], target[None], radius[None], (asks & ~is_near)[None])
    is_near = is_near & asks
    return Route(*(jnp.where(is_near, NEAR, field[0]) for field in found))


@lru_cache
def _searches(width: int) -> Callable[..., tuple[Array, Array]]:
    """All searches of B episodes with A agents each as one function, for maps of W columns.

    Searches differ in length, so side by side (`vmap`) each would take as long as the longest one of the batch.  On
    a CPU they run one after another, and only those that are asked for; accelerators need the width.
    """

    def in_turn(*queries: Array) -> tuple[Array, Array]:
        asks = queries[-1].reshape(-1)
        words, (start, target, radius) = queries[0], (q.reshape(-1, *q.shape[2:]) for q in queries[1:-1])
        count, agents = asks.shape[0], queries[-1].shape[1]
        rank = jnp.cumsum(asks, dtype=jnp.int32)
        places = jnp.where(asks, rank - 1, count)
        order = jnp.zeros(count, jnp.int32).at[places].set(jnp.arange(count, dtype=jnp.int32), mode="drop")

        def one(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            i, moves, lengths = carry
            j = order[i]
            move, length = _search(words[j // agents], width, start[j], target[j], radius[j], jnp.ones((), jnp.bool_))
            return i + 1, moves.at[j].set(move), lengths.at[j].set(length)

        nothing = jnp.full(count, NO_PATH, jnp.int32)
        end = jax.lax.while_loop(lambda carry: carry[0] < rank[-1], one, (jnp.zeros((), jnp.int32), nothing, nothing))
        return end[1].reshape(-1, agents), end[2].reshape(-1, agents)

    def side_by_side(words: Array, *queries: Array) -> tuple[Array, Array]:
        return jax.vmap(lambda w, *q: jax.vmap(lambda *one: _search(w, width, *one))(*q))(words, *queries)

    @custom_vmap
    def searches(*queries: Array) -> tuple[Array, Array]:
        return jax.lax.platform_dependent(*queries, cpu=in_turn, default=side_by_side)

    @searches.def_vmap
    def rule(size: int, is_batched: tuple[bool, ...], *queries: Array) -> tuple[tuple[Array, Array], tuple[bool, bool]]:
        full = [q if b else jnp.broadcast_to(q, (size, *q.shape)) for q, b in zip(queries, is_batched, strict=True)]
        found = searches(*(q.reshape(-1, *q.shape[2:]) for q in full))
        move, length = (f.reshape(size, -1, f.shape[-1]) for f in found)
        return (move, length), (True, True)

    return searches


def _search(
    free: UInt32[Array, " N"],
    width: int,
    start: Int[Array, " 2"],
    target: Int[Array, " 2"],
    radius: Int[Array, ""],
    asks: Bool[Array, ""],
) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Move and length of one query; the start is not within the radius."""
    around = disk(free.shape[0], width, target, radius)
    open_cells = jnp.where(radius == 0, free | around, free)
    begin = disk(free.shape[0], width, start, jnp.zeros((), jnp.int32))
    odd, reached, length, found = _wave(open_cells, width, begin, around & open_cells, asks)
    goal, has_goal = _first_cell(found, width)
    layer = _walk_back(odd, reached, width, goal, jnp.where(has_goal, length, 0))
    move = jnp.full((), NO_PATH, jnp.int32)
    for dx, dy, primitive in reversed(NEIGHBOURS):
        move = jnp.where(_at(layer, width, start + jnp.array([dx, dy], jnp.int32)), primitive, move)
    return jnp.where(has_goal, move, NO_PATH), jnp.where(has_goal, length, -1)


def _wave(
    open_cells: Array, width: int, begin: Array, goals: Array, asks: Bool[Array, ""]
) -> tuple[Array, Array, Array, Array]:
    """Breadth-first from `begin` until a goal is touched or nothing is left.

    Returns bit 1 of every reached cell's distance, the reached cells, the distance of the last wave and the goals it
    touched.  On a grid neighbours differ by one in distance, so bit 1 tells a cell's predecessors from its successors.
    """
    margin = margin_of(open_cells.shape[0], width)

    def wave(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        odd, padded, length, _ = carry
        reached = _inner(padded, margin)
        right, left, down, up = shifts(padded, margin)
        new = (right | left | down | up) & open_cells & ~reached
        length = length + 1
        # one reduction instead of two: bit 0 something is new, bit 1 a goal is
        news = jnp.where(new != 0, jnp.uint32(1), jnp.uint32(0)) | jnp.where(new & goals != 0, 2, 0).astype(jnp.uint32)
        odd = jnp.where((length & 2) > 0, odd | new, odd)
        return odd, padded_by(reached | new, margin), length, jax.lax.reduce_or(news, axes=(0,))

    start = (jnp.zeros_like(begin), padded_by(begin, margin), jnp.zeros((), jnp.int32), asks.astype(jnp.uint32))
    odd, padded, length, news = jax.lax.while_loop(lambda carry: carry[3] == 1, wave, start)
    reached = _inner(padded, margin)
    # the goals were touched by the last wave, so all that are reached are equally far
    return odd, reached, length, jnp.where(news >= 2, reached & goals, jnp.uint32(0))


def _walk_back(odd: Array, reached: Array, width: int, goal: Int[Array, " 2"], length: Int[Array, ""]) -> Array:
    """The cells next to the start with which a path can begin that the search may choose; padded."""
    size = reached.shape[0]
    margin = margin_of(size, width)
    x, first = _places(size, width)
    ones = jnp.uint32(0xFFFFFFFF)
    # where a predecessor that is nearer to the goal lies, if it lies to the right of its cell, and so on
    to_right = jnp.where(x <= goal[0], ones, jnp.uint32(0))
    to_left = jnp.where(x >= goal[0], ones, jnp.uint32(0))
    to_down, to_up = _below(first, goal[1] + 1), ~_below(first, goal[1])
    even_cells, odd_cells = reached & ~odd, reached & odd

    def back(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        padded, distance = carry
        before = jnp.where(((distance - 1) & 2) > 0, odd_cells, even_cells)
        right, left, down, up = shifts(padded, margin)
        nearer = ((right & to_right) | (left & to_left) | (down & to_down) | (up & to_up)) & before
        any_nearer = jax.lax.reduce_or(nearer, axes=(0,)) != 0
        layer = jnp.where(any_nearer, nearer, (right | left | down | up) & before)
        return padded_by(layer, margin), distance - 1

    last = padded_by(disk(size, width, goal, jnp.zeros((), jnp.int32)), margin)
    return jax.lax.while_loop(lambda carry: carry[1] > 1, back, (last, length))[0]


def margin_of(size: int, width: int) -> int:
    """Words of zeros around a map so that every neighbour's word can be read."""
    return width + 1 if size > width + 1 else 1


def padded_by(words: UInt32[Array, " N"], margin: int) -> UInt32[Array, " P"]:
    """The words with `margin` zeros before and behind."""
    nothing = jnp.zeros(margin, jnp.uint32)
    return jnp.concatenate([nothing, words, nothing])  # measured: a third faster than `pad`


def _inner(padded: UInt32[Array, " P"], margin: int) -> UInt32[Array, " N"]:
    return padded[margin : padded.shape[0] - margin]


def shifts(padded: UInt32[Array, " P"], margin: int) -> tuple[Array, Array, Array, Array]:
    """The cells right of, left of, below and above those of the map."""
    size = padded.shape[0] - 2 * margin
    words = _inner(padded, margin)
    down, up = words << 1, words >> 1
    if margin > 1:  # several words in a column
        down = down | padded[:size] >> (WORD - 1)
        up = up | padded[2 * margin :] << (WORD - 1)
    return padded[margin - 1 : margin - 1 + size], padded[margin + 1 : margin + 1 + size], down, up


def _places(size: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Column and first row of each word."""
    index = np.arange(size, dtype=np.int32)
    return index % (width + 1), index // (width + 1) * WORD


def _below(first: np.ndarray, y: Int[Array, "..."]) -> UInt32[Array, " N"]:
    """The rows with numbers smaller than y, for words that begin with row `first`."""
    count = jnp.clip(y - first, 0, WORD)
    half = count // 2  # a shift by the full width is undefined: two halves
    return ~(jnp.uint32(0xFFFFFFFF) << half.astype(jnp.uint32) << (count - half).astype(jnp.uint32))


def disk(size: int, width: int, centre: Int[Array, " 2"], radius: Int[Array, ""]) -> UInt32[Array, " N"]:
    """All cells within Manhattan distance `radius`, in the rows of the words even where the map has none."""
    x, first = _places(size, width)
    reach = radius - jnp.abs(x - centre[0])
    rows = _below(first, centre[1] + reach + 1) & ~_below(first, centre[1] - reach)
    return jnp.where((reach >= 0) & (x < width), rows, jnp.uint32(0))


def _first_cell(words: UInt32[Array, " N"], width: int) -> tuple[Int[Array, " 2"], Bool[Array, ""]]:
    """The first cell of a set (by x, then y), and whether there is one."""
    x, first = _places(words.shape[0], width)
    rows = words.shape[0] // (width + 1) * WORD
    lowest = jax.lax.population_count(~words & (words - 1)).astype(jnp.int32)
    nowhere = jnp.full((), (width + 1) * rows, jnp.int32)
    cell = jnp.min(jnp.where(words != 0, x * rows + first + lowest, nowhere))
    return jnp.stack([cell // rows, cell % rows]), cell < nowhere


def _at(padded: UInt32[Array, " P"], width: int, cell: Int[Array, " 2"]) -> Bool[Array, ""]:
    """Whether a cell is in the set; one just outside the map is not."""
    x, y = cell[0], cell[1]
    margin = 1 if padded.shape[0] == width + 3 else width + 1
    index = margin + jnp.maximum(y, 0) // WORD * (width + 1) + x
    word = padded[jnp.clip(index, 0, padded.shape[0] - 1)]
    return ((word >> (y & (WORD - 1)).astype(jnp.uint32)) & 1 > 0) & (y >= 0)
