"""Shortest walks for a whole team at once: how far every cell is from the nearest of some cells.

Axes: F fields, S side of the grid; further axes are those of a batch (see `jaxcoop.envs.cube.lookup`).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int


def field_type(side: int) -> np.dtype:
    """The narrowest type for distances: no walk without a detour is longer than half of the cells."""
    return np.dtype(np.int8 if side * side // 2 < 126 else np.int16)


def far(side: int) -> int:
    """The distance of a cell from which no walk leads there."""
    return 126 if field_type(side).itemsize == 1 else 30_000


def distances(goals: Bool[Array, "F S S"], is_open: Bool[Array, "F S S"]) -> Int[Array, "F S S"]:
    """Steps from each cell to the nearest goal over open cells; `far` where there is no way.

    Goals count where they are open.  Distances run along all lines of cells, down, up, right and left, and again until
    nothing changes: about once for every second turn of the longest walk, far less often than there are cells on it.
    """
    side = goals.shape[1]
    dtype, none = field_type(side), far(side)
    wall = jnp.where(is_open, 0, none).astype(dtype)

    def relax(field: Array, axis: int, line: Array, before: Array) -> Array:
        """One line from the one before it."""
        take = partial(jax.lax.dynamic_index_in_dim, axis=axis)
        near = jnp.minimum(take(field, line), take(field, before) + dtype.type(1))
        return jax.lax.dynamic_update_index_in_dim(field, jnp.maximum(near, take(wall, line)), line, axis)

    def sweep(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        old, _ = carry
        field = old
        for axis in (1, 2):
            field = jax.lax.fori_loop(1, side, lambda i, f, axis=axis: relax(f, axis, i, i - 1), field)
            field = jax.lax.fori_loop(1, side, lambda i, f, axis=axis: relax(f, axis, side - 1 - i, side - i), field)
        return field, (field != old).any()

    start = jnp.maximum(jnp.where(goals, 0, none).astype(dtype), wall)
    field, _ = jax.lax.while_loop(lambda carry: carry[1], sweep, (start, (start < none).any()))
    return field
