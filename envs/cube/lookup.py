"""Who is where: look-ups between agents and blocks, by comparing all pairs or through a map; and the batch axis.

Axes: A agents, B blocks, S side of the grid, N episodes of a batch.  Functions of this room take arrays whose *first*
axes are named and let any further axes be; so the same code serves one episode and a batch whose axis is the last one.

Why the batch goes last: rules compare few agents with few blocks, loops over 6 or 9 entries do not fill a vector unit,
loops over 1,024 episodes do (measured: 8 times faster than with the batch in front).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int

from jaxcoop import cooperation

PAIRS_OF_AGENTS = 1024
"""Up to this many pairs of agents are compared; larger teams look each other up in a map of the grid."""


def is_small(num_agents: int) -> bool:
    """Whether a team compares all pairs, with the batch axis last."""
    return num_agents * num_agents <= PAIRS_OF_AGENTS


def batch_last(function: Callable[..., Any], num_agents: int) -> Callable[..., Any]:
    """`function` with its batch axis, when `vmap` brings one, moved to the end of every argument and result.

    Large teams fill the vector unit by themselves and keep the usual order.
    """
    if not is_small(num_agents):
        return function
    moved = custom_vmap(function)

    @moved.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        def put_last(x: Array, batched: bool) -> Array:
            return jnp.moveaxis(x, 0, -1) if batched else jnp.broadcast_to(x[..., None], (*x.shape, axis_size))

        out = moved(*jax.tree.map(put_last, args, tuple(in_batched)))
        return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out), jax.tree.map(lambda _: True, out)

    return moved


def along(values: Any, like: Array, axis: int = 0) -> np.ndarray:
    """A constant vector that runs along one axis of `like`."""
    values = np.asarray(values)
    return values.reshape((1,) * axis + (-1,) + (1,) * (like.ndim - axis - 1))


def inside(row: Array, col: Array, block_row: Array, block_col: Array, weight: Any) -> Bool[Array, "..."]:
    """Whether cells lie in blocks; all arguments broadcast against each other.

    Unsigned differences make one comparison of two: a cell before the block is far behind it.
    """
    unsigned = {1: jnp.uint8, 2: jnp.uint16}[row.dtype.itemsize]
    bound = jnp.asarray(weight).astype(unsigned)
    return ((row - block_row).astype(unsigned) < bound) & ((col - block_col).astype(unsigned) < bound)


def occupants(
    side: int, row: Array, col: Array, at_row: Array, at_col: Array
) -> tuple[Bool[Array, " A"], Bool[Array, " A"]]:
    """For agent i and the cell `(at_row[i], at_col[i])`: is anybody there, and is anybody there with an index above i.

    Agents and cells outside the grid: False, except that two that are equally far outside may meet; mask them.
    """
    n = row.shape[0]
    if is_small(n):
        there = (row[:, None] == at_row[None]) & (col[:, None] == at_col[None])  # [A who, A asks]
        above = np.arange(n)[:, None] > np.arange(n)
        return there.any(0), (there & above.reshape(n, n, *(1,) * (row.ndim - 1))).any(0)
    ids = jnp.arange(n, dtype=jnp.int16)
    grid = jnp.full((side * side,), -1, jnp.int16).at[cell(side, row, col)].max(ids, mode="drop")
    top = grid.at[cell(side, at_row, at_col)].get(mode="fill", fill_value=-1)
    return top >= 0, top > ids


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
    if is_small(index.shape[0]):
        if values.ndim == 1 and index.ndim > 1:
            values = values.reshape(m, *(1,) * (index.ndim - 1))
        hit = index[None] == along(np.arange(m), index[None]).astype(index.dtype)  # [M, A]
        if values.dtype == jnp.bool_:
            return (hit & values[:, None]).any(0)
        return jnp.where(hit, values[:, None], 0).sum(0, dtype=values.dtype)
    exists = (index >= 0) & (index < m)
    return jnp.where(exists, values[jnp.clip(index, 0, m - 1)], 0).astype(values.dtype)


def count_same(named: Int[Array, " A"], asked: Int[Array, " A"], num_tasks: int) -> Int[Array, " A"]:
    """How many entries of `named` are each of the tasks `asked` for; 0 for -1.  int32."""
    if is_small(named.shape[0]):
        same = (named[:, None] == asked[None]) & (asked[None] >= 0)
        return same.astype(jnp.int8).sum(0, dtype=jnp.int8).astype(jnp.int32)
    return cooperation.tally(named.astype(jnp.int32), asked.astype(jnp.int32), num_tasks)


def first_same(named: Int[Array, " A"], num_tasks: int) -> Int[Array, " A"]:
    """The first agent that names the same task; -1 for an agent that names none.  int32."""
    n = named.shape[0]
    if is_small(n):
        same = named[:, None] == named[None]
        ids = along(np.arange(n, dtype=np.int8), same)
        first = jnp.where(same, ids, np.int8(n)).min(0)
        return jnp.where(named < 0, np.int8(-1), first).astype(jnp.int32)
    return cooperation.first_with(named.astype(jnp.int32), num_tasks)
