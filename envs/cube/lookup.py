"""Who is where: look-ups between agents and blocks.

Axes: A agents, B blocks, S side of the grid, N episodes of a batch.  Functions of this room take arrays whose *first*
axes are named and let any further axes be; so the same code serves one episode and a batch whose axis is the last one.

Why the batch goes last, and why pairs are compared in loops: a loop over blocks whose body compares all agents of all
episodes with one block is elementwise and fills the vector unit; reducing an array of pairs does not (measured: 4 to 10
times slower for 128 agents and 28 blocks).  A loop is also a fence: the compiler copies whatever it can fuse into every
place that uses it, but never a loop.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.core.batching import along, batch_last

PAIRS = 1024
"""Up to this many pairs are compared; more go through a table."""

MAPPED_AGENTS = 256
"""Larger teams look each other up in a map of the grid."""


def fold(function: Callable[..., Any], carry: Any, *rows: Any) -> Any:
    """`carry = function(carry, *(x[i] for x in rows))` for each i in turn."""
    return jax.lax.scan(lambda c, xs: (function(c, *xs), None), carry, tuple(map(jnp.asarray, rows)))[0]


def inside(row: Array, col: Array, block_row: Array, block_col: Array, weight: Any) -> Bool[Array, "..."]:
    """Whether cells lie in blocks; all arguments broadcast against each other.

    Unsigned differences make one comparison of two: a cell before the block is far behind it.
    """
    unsigned = {1: jnp.uint8, 2: jnp.uint16}[row.dtype.itemsize]
    bound = jnp.asarray(weight).astype(unsigned)
    return ((row - block_row).astype(unsigned) < bound) & ((col - block_col).astype(unsigned) < bound)


def block_at(
    row: Int[Array, " A"], col: Int[Array, " A"], block_row: Array, block_col: Array, weights: tuple[int, ...]
) -> Int[Array, " A"]:
    """The block that each cell lies in, -1 for none.  int16."""

    def look_up(row: Array, col: Array, block_row: Array, block_col: Array) -> Array:
        def look(found: Array, block: Any, *square: Any) -> Array:
            return jnp.where(inside(row, col, *square), block, found)

        nothing = jnp.full(row.shape, -1, jnp.int16)
        ids = np.arange(len(weights), dtype=np.int16)
        return fold(look, nothing, ids, block_row, block_col, np.array(weights, row.dtype))

    return batch_last(look_up)(row, col, block_row, block_col)


def occupants(
    side: int, row: Array, col: Array, at_row: Array, at_col: Array
) -> tuple[Bool[Array, " A"], Bool[Array, " A"]]:
    """For agent i and the cell `(at_row[i], at_col[i])`: is anybody there, and is anybody there with an index above i.

    Outside the grid nobody is.
    """
    n, cells = row.shape[0], side * side
    ids = np.arange(n, dtype=np.int16)
    if n > MAPPED_AGENTS:
        top = through_table(cells, cell(side, row, col), along(ids, row), cell(side, at_row, at_col), -1, "max")
    else:
        narrow = np.int16 if cells < 2**15 else np.int32
        here, asked = cell(side, row, col).astype(narrow), cell(side, at_row, at_col)
        asked = jnp.where(asked == cells, -1, asked).astype(narrow)
        nobody = jnp.full(asked.shape, -1, jnp.int16)
        top = fold(lambda top, where, who: jnp.where(asked == where, who, top), nobody, here, ids)
    return top >= 0, top > along(ids, top)


def _table(size: int, named: Int[Array, " N"], values: Any, empty: int, method: str) -> Array:
    """[E, size]: for each episode, values gathered under a number by "add", "min" or "max"."""
    values = jnp.broadcast_to(jnp.asarray(values), named.shape).reshape(named.shape[0], -1)
    index = _inside_table(named, size)
    episode = np.arange(index.shape[1], dtype=np.int32)
    table = jnp.full((index.shape[1], size), empty, values.dtype)
    return getattr(table.at[episode, index], method)(values, mode="drop")


def _inside_table(number: Array, size: int) -> Int[Array, "N E"]:
    """Numbers with one further axis; those below 0, which would wrap around, beyond the end."""
    return jnp.where(number < 0, size, number.astype(jnp.int32)).reshape(number.shape[0], -1)


def through_table(
    size: int, named: Int[Array, " N"], values: Any, asked: Int[Array, " A"], empty: int, method: str
) -> Int[Array, " A"]:
    """Values gathered under a number by "add", "min" or "max", read at the numbers `asked` for.  Type of `values`.

    `empty` where nobody names the number, and for numbers below 0 or from `size` on.
    """
    table, index = _table(size, named, values, empty, method), _inside_table(asked, size)
    episode = np.arange(index.shape[1], dtype=np.int32)
    return table.at[episode, index].get(mode="fill", fill_value=empty).reshape(asked.shape)


def cell(side: int, row: Array, col: Array) -> Int[Array, "..."]:
    """Number of a cell in row-major order; cells outside the grid get S * S."""
    is_in = (row >= 0) & (row < side) & (col >= 0) & (col < side)
    return jnp.where(is_in, row.astype(jnp.int32) * side + col, side * side)


def take(values: Any, index: Int[Array, " A"]) -> Array:
    """`values[index]` along the first axis; 0 for an index that does not exist.

    `values` is a constant vector or has the further axes of `index`.
    """
    values = jnp.asarray(values)
    m = values.shape[0]
    if m * index.shape[0] <= PAIRS:
        if values.ndim == 1 and index.ndim > 1:
            values = values.reshape(m, *(1,) * (index.ndim - 1))
        hit = index[None] == along(np.arange(m), index[None]).astype(index.dtype)  # [M, A]
        if values.dtype == jnp.bool_:
            return (hit & values[:, None]).any(0)
        return jnp.where(hit, values[:, None], 0).sum(0, dtype=values.dtype)
    where = jnp.clip(index, 0, m - 1).astype(jnp.int32)
    found = values[where] if values.ndim == 1 else jnp.take_along_axis(values, where, 0)
    return jnp.where((index >= 0) & (index < m), found, 0).astype(values.dtype)


def tally(named: Int[Array, " N"], num_tasks: int) -> Int[Array, " M"]:
    """How many entries of `named` are each task; -1 is none.  int16."""
    shape = (num_tasks, *named.shape[1:])
    if named.shape[0] * num_tasks > PAIRS:
        return _table(num_tasks, named, jnp.int16(1), 0, "add").T.reshape(shape)
    none = jnp.zeros(shape, jnp.int16)
    tasks = along(np.arange(num_tasks, dtype=np.int16), none)
    return fold(lambda count, task: count + (tasks == task), none, named)


def count_same(named: Int[Array, " N"], asked: Int[Array, " A"], num_tasks: int, count: Any = 1) -> Int[Array, " A"]:
    """How many entries of `named` are each of the tasks `asked` for; 0 for -1.  What
    entries count is `count`; its type, int16 for a Python number."""
    count = np.int16(count) if isinstance(count, int) else count
    if named.shape[0] * asked.shape[0] > PAIRS:
        return through_table(num_tasks, named, count, asked, 0, "add")
    counts = jnp.broadcast_to(jnp.asarray(count), named.shape)
    zero = jnp.zeros((), counts.dtype)
    none = jnp.zeros(asked.shape, counts.dtype)
    total = fold(lambda total, task, c: total + jnp.where(asked == task, c, zero), none, named, counts)
    return jnp.where(asked < 0, zero, total)


def first_same(named: Int[Array, " A"], num_tasks: int) -> Int[Array, " A"]:
    """The first agent that names the same task; -1 for an agent that names none.  int16."""
    n = named.shape[0]
    ids = np.arange(n, dtype=np.int16)
    if n * n > PAIRS:
        first = through_table(num_tasks, named, along(ids, named), named, n - 1, "min")
    else:
        last = jnp.full(named.shape, n - 1, jnp.int16)
        first = fold(lambda f, task, who: jnp.where(named == task, jnp.minimum(f, who), f), last, named, ids)
    return jnp.where(named < 0, np.int16(-1), first)
