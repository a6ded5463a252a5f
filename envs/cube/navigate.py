"""Shortest paths for `navigate`: the first step of each agent toward its target cells (9.5).

Axes: A agents, B blocks, S side of the map, W = ceil(S / word bits) words of a row, L lanes (one search each), C lanes
that are searched together, M episodes.

The notes describe a breadth-first search from the agent: neighbours right, down, up, left; first in, first out; a cell
is marked when it is queued; the first target that leaves the queue decides.  Cells of one distance leave the queue in
the lexicographic order of their smallest shortest paths, so the step that counts is the first direction, in that order,
that lies on any shortest path to any nearest target.  Searching from the targets gives it without a queue: grow the set
of cells within distance 0, 1, 2, … of the targets until it touches a neighbour of the agent; the first neighbour in the
set, in the order above, is the step.  A map is S W words with a bit per cell, so growing it takes a few operations per
word.  Who stands on the agent's own cell does not matter, because no shortest path comes back to it: all agents of an
episode share one map of free cells.

`first_steps` is batched by a rule of its own (`custom_vmap`): the searches of all episodes become lanes of one array,
those that nobody asked for are left out, and the rest run in groups that fit the cache, each until its last one ends.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int, UInt

from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Action

ORDER = (Action.RIGHT, Action.DOWN, Action.UP, Action.LEFT)
"""9.5: the order in which neighbours are queued."""

CACHE_WORDS = 1 << 13
"""Words of one bit map per group of lanes; three such maps are read again and again, and should stay in the cache."""

MIN_LANES, MAX_LANES = 16, 2048

SMALL_WORDS = 32
"""Up to this many words per map all are looked at to see whether a search has come to its agent."""

BURST = 8
"""Distances between two looks at who has stopped growing."""


@struct.dataclass
class Strip:
    """Target cells of each agent: `height` cells in a column, (row, col) the topmost; none where height is 0."""

    row: Int[Array, " A"]  # int32
    col: Int[Array, " A"]
    height: Int[Array, " A"]


def is_on(strip: Strip, row: Int[Array, " A"], col: Int[Array, " A"]) -> Bool[Array, " A"]:
    """Whether each agent stands on one of its target cells."""
    return (col == strip.col) & (row >= strip.row) & (row < strip.row + strip.height)


def greedy_steps(strip: Strip, row: Int[Array, " A"], col: Int[Array, " A"]) -> Int[Array, " A"]:
    """9.5: where no target can be reached, straight at the nearest one (Manhattan; in a strip there is only one)."""
    up_down = jnp.clip(row, strip.row, strip.row + strip.height - 1) - row
    across = strip.col - col
    sideways = jnp.where(across > 0, Action.RIGHT, Action.LEFT)
    vertical = jnp.where(up_down > 0, Action.DOWN, Action.UP)
    is_sideways = (jnp.abs(across) >= jnp.abs(up_down)) & (across != 0)
    return jnp.where(is_sideways, sideways, vertical).astype(jnp.int32)


def first_steps(
    side: int,
    weights: np.ndarray,
    strip: Strip,
    row: Int[Array, " A"],
    col: Int[Array, " A"],
    block_row: Int[Array, " B"],
    block_col: Int[Array, " B"],
    seeks: Bool[Array, " A"],
    *,
    open_targets: bool,
) -> Int[Array, " A"]:
    """The first step of each agent in `seeks` on its way to its nearest target; STAY if there is no way, or not asked.

    `weights` are the sides of the B blocks; row -1 marks agents and blocks that are not on the map.  Blocked are the
    cells of all blocks and agents; with `open_targets` (the first revision) never a target.  An agent that seeks has a
    cell, one target or more, all of them on the map, and does not stand on one.
    """
    search = _batched_search(side, weights, open_targets)
    world = (row, col, block_row, block_col)
    lanes = (strip.row, strip.col, strip.height, row, col, seeks)
    return search(*(x[None] for x in (*world, *lanes)))[0]


def _batched_search(side: int, weights: np.ndarray, open_targets: bool):  # noqa: ANN202  # a custom_vmap object
    """The search of M episodes, arrays `[M, A or B]`; more batch axes join M."""

    @custom_vmap
    def search(row, col, block_row, block_col, *lanes):  # noqa: ANN001, ANN002, ANN202
        def run(seeks: Bool[Array, "M A"]) -> Int[Array, "M A"]:
            free = jax.vmap(lambda *world: _free_cells(side, weights, *world))(row, col, block_row, block_col)
            episode = jnp.broadcast_to(jnp.arange(row.shape[0], dtype=jnp.int32)[:, None], row.shape)
            flat = tuple(x.reshape(-1).astype(jnp.int32) for x in (*lanes[:-1], episode))
            return _search_lanes(side, open_targets, free, flat, seeks.reshape(-1)).reshape(row.shape)

        # Here the whole batch decides, so this branch is really not taken when nobody navigates.
        return jax.lax.cond(lanes[-1].any(), run, lambda seeks: jnp.zeros(seeks.shape, jnp.int32), lanes[-1])

    @search.def_vmap
    def rule(axis_size, in_batched, *arrays):  # noqa: ANN001, ANN002, ANN202
        full = [x if batched else jnp.broadcast_to(x, (axis_size, *x.shape)) for x, batched in zip(arrays, in_batched)]
        out = search(*(x.reshape(-1, x.shape[-1]) for x in full))
        return out.reshape(full[0].shape), True

    return search


def _word(side: int) -> jnp.dtype:
    """A row of up to 16 cells in half a word: twice as many lanes per vector operation."""
    return jnp.dtype(jnp.uint16 if side <= 16 else jnp.uint32)


def _cells(
    side: int, row: Int[Array, " L"], col: Int[Array, " L"], height: Int[Array, " L"], width: Int[Array, " L"] | int
) -> UInt[Array, "S W L"]:
    """The cells of one rectangle per lane as bits."""
    word = _word(side)
    size = word.itemsize * 8
    rows = jnp.arange(side, dtype=jnp.int32)[:, None, None]
    start = col - jnp.arange(-(-side // size), dtype=jnp.int32)[:, None] * size  # [W, L]
    one = jnp.ones((), jnp.uint32)

    def below(bit: Array) -> Array:
        """All bits under `bit`; a shift by the whole word leaves 0 - 1."""
        return ((one << jnp.clip(bit, 0, size).astype(jnp.uint32)) - one).astype(word)

    bits = below(start + width) & ~below(start)
    return jnp.where((rows >= row) & (rows < row + height), bits, jnp.zeros((), word))


def _free_cells(
    side: int,
    weights: np.ndarray,
    row: Int[Array, " A"],
    col: Int[Array, " A"],
    block_row: Int[Array, " B"],
    block_col: Int[Array, " B"],
) -> UInt[Array, "S W"]:
    """The cells of one episode without a block or an agent, as bits."""

    def union(row: Array, col: Array, extent: Array) -> UInt[Array, "S W"]:
        rows, cols = row.astype(jnp.int32), col.astype(jnp.int32)
        cells = _cells(side, rows, cols, jnp.where(rows < 0, 0, extent), extent)
        return jax.lax.reduce(cells, jnp.zeros((), cells.dtype), jax.lax.bitwise_or, (2,))

    ones = jnp.ones(row.shape, jnp.int32)
    taken = union(row, col, ones) | union(block_row, block_col, jnp.asarray(weights, jnp.int32))
    zero = jnp.zeros((1,), jnp.int32)
    board = _cells(side, zero, zero, zero + side, side)[:, :, 0]
    return board & ~taken


def _search_lanes(
    side: int,
    open_targets: bool,
    free: UInt[Array, "M S W"],
    lanes: tuple[Int[Array, " L"], ...],
    seeks: Bool[Array, " L"],
) -> Int[Array, " L"]:
    """Run the lanes that seek, moved together, in groups; STAY for the others."""
    total = seeks.shape[0]
    size = CACHE_WORDS // (free.shape[1] * free.shape[2])
    size = min(max(size, MIN_LANES), MAX_LANES, total)
    if size == total:
        return _search_group(side, open_targets, free, lanes, seeks)
    # Lanes of one group wait for the last of them, so those of a length belong together; the idle ones come last.
    top, left, height, row, col, _ = lanes
    far = jnp.abs(jnp.clip(row, top, top + height - 1) - row) + jnp.abs(left - col)
    lane = jnp.argsort(jnp.where(seeks, far, 2 * side)).astype(jnp.int32)
    count = seeks.sum(dtype=jnp.int32)
    padded = -(-total // size) * size
    lane = jnp.pad(lane, (0, padded - total), constant_values=total)

    def group(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        start, found = carry
        mine = jax.lax.dynamic_slice(lane, (start,), (size,))
        is_used = start + jnp.arange(size, dtype=jnp.int32) < count
        steps = _search_group(side, open_targets, free, tuple(x[mine] for x in lanes), is_used)
        return start + size, jax.lax.dynamic_update_slice(found, steps, (start,))

    start = (jnp.zeros((), jnp.int32), jnp.zeros((padded,), jnp.int32))
    _, found = jax.lax.while_loop(lambda carry: carry[0] < count, group, start)
    return jnp.zeros((total,), jnp.int32).at[lane].set(found, mode="drop")


def _search_group(
    side: int,
    open_targets: bool,
    free: UInt[Array, "M S W"],
    lanes: tuple[Int[Array, " C"], ...],
    seeks: Bool[Array, " C"],
) -> Int[Array, " C"]:
    """Grow the target sets of C lanes together until each has touched its agent or stopped growing."""
    top, left, height, row, col, episode = lanes
    targets = _cells(side, top, left, jnp.where(seeks, height, 0), 1)
    way = jnp.moveaxis(free[episode], 0, -1)  # [S, W, C]
    way = way | targets if open_targets else way
    beside = _grown(_cells(side, row, col, jnp.ones_like(row), 1)) & way

    def is_apart(cells: UInt[Array, "S W C"]) -> Bool[Array, " C"]:
        """Lanes that have not touched their agent: all words on small maps, the few around it on large ones."""
        if side * cells.shape[1] <= SMALL_WORDS:
            return _is_empty(cells & beside)
        return ~jnp.stack([_holds(cells, *cell) & is_way for cell, is_way in zip(around, is_ways)]).any(0)

    def grow(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, cells, going = carry
        grown = jnp.where(going, cells | (_grown(cells) & way), cells)
        return count + 1, grown, going & is_apart(grown)

    def burst(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        """A few distances, then a look at who has stopped growing, which costs as much as a distance."""
        cells, going = carry
        start = (jnp.zeros((), jnp.int32), cells, going)
        _, grown, going = jax.lax.while_loop(lambda x: (x[0] < BURST) & x[2].any(), grow, start)
        return grown, going & ~_is_empty(cells ^ grown)

    around = [(row + int(DELTA_ROW[action]), col + int(DELTA_COL[action])) for action in ORDER]
    is_ways = [_holds(way, *cell) for cell in around]
    reached = targets & way
    going = is_apart(reached) & ~_is_empty(beside) & ~_is_empty(reached)
    cells, _ = jax.lax.while_loop(lambda carry: carry[1].any(), burst, (reached, going))

    step = jnp.zeros_like(row)
    for action, cell, is_way in zip(ORDER[::-1], around[::-1], is_ways[::-1]):
        step = jnp.where(_holds(cells, *cell) & is_way, int(action), step)
    return step


def _grown(cells: UInt[Array, "S W C"]) -> UInt[Array, "S W C"]:
    """The four neighbours of each cell; may leave the map to the right, where no cell is free."""
    last = cells.dtype.itemsize * 8 - 1
    across = (cells << 1) | (cells >> 1)
    if cells.shape[1] > 1:
        edge = jnp.zeros_like(cells[:, :1])
        across = across | jnp.concatenate([edge, cells[:, :-1] >> last], 1)
        across = across | jnp.concatenate([cells[:, 1:] << last, edge], 1)
    edge = jnp.zeros_like(cells[:1])
    return across | jnp.concatenate([cells[1:], edge]) | jnp.concatenate([edge, cells[:-1]])


def _is_empty(cells: UInt[Array, "S W C"]) -> Bool[Array, " C"]:
    zero = jnp.zeros((), cells.dtype)
    return jax.lax.reduce(cells, zero, jax.lax.bitwise_or, (0, 1)) == zero


def _holds(cells: UInt[Array, "S W C"], row: Int[Array, " C"], col: Int[Array, " C"]) -> Bool[Array, " C"]:
    """Whether the cell of each lane is in its set; False outside the map."""
    side, words, lanes = cells.shape
    size = cells.dtype.itemsize * 8
    is_inside = (row >= 0) & (row < side) & (col >= 0) & (col < words * size)
    word = cells[jnp.where(is_inside, row, 0), jnp.where(is_inside, col // size, 0), jnp.arange(lanes)]
    return is_inside & (word >> (col % size).astype(cells.dtype) & 1 != 0)
