"""The axis of a batch: last for what concerns agents, first for maps.

Axes: A agents, R cells that each of them looks at, W*H cells of a map, N episodes of a batch.

Functions of small arrays have the batch last (`jaxcoop.core.batching`).  Maps [N, W*H] stay as they are and are read
and written by one index into all of them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array

from jaxcoop.core import batching
from jaxcoop.core.batching import apart, put_batch

batch_last = partial(batching.batch_last, alone=True)

MOST_CELLS = 2**31 - 1
"""Cells of all maps of a batch that one int32 index can tell apart."""


def kept(function: Callable[..., Any], *, is_batch: bool = False) -> Callable[..., Any]:
    """`function` for long arrays: the axis of a batch stays in front, and its results are computed once (`apart`)."""
    single = custom_vmap(partial(apart, function) if is_batch else function)

    @single.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda batched: 0 if batched else None, tuple(in_batched))
        out = kept(jax.vmap(function, axes, axis_size=axis_size), is_batch=True)(*args)
        return out, jax.tree.map(lambda _: True, out)

    return single


def _flat_index(plane: Array, cell: Array, rows: bool) -> Array:
    """Index into all maps `plane` [*batch, W*H] of cells [*batch, ...] (`rows`) or [..., *reversed batch]; int32."""
    batch, cells = plane.shape[:-1], plane.shape[-1]
    start = jax.lax.iota(jnp.int32, math.prod(batch)).reshape(batch) * cells
    start = start.reshape(*batch, *(1,) * (cell.ndim - len(batch))) if rows else jnp.transpose(start)
    return start + cell.astype(jnp.int32)


def _read(plane: Array, cell: Array, *, rows: bool) -> Array:
    index = _flat_index(plane, cell, rows)
    return plane.reshape(-1).at[index].get(mode="promise_in_bounds")


def _write(plane: Array, cell: Array, value: Array, *, rows: bool, largest: bool) -> Array:
    is_in = (cell >= 0) & (cell < plane.shape[-1])
    index = jnp.where(is_in, _flat_index(plane, cell, rows), plane.size)
    flat = plane.reshape(-1).at[index]
    value = jnp.broadcast_to(value, cell.shape)
    return (flat.max(value, mode="drop") if largest else flat.set(value, mode="drop")).reshape(plane.shape)


def _on_plane(function: Callable[..., Array], rows: bool, plane_out: bool) -> Callable[..., Array]:
    """`function` of a map and of arrays of cells, with the batch axis of the latter at the end unless `rows`."""
    moved = custom_vmap(function)

    @moved.def_vmap
    def rule(axis_size: int, in_batched: Any, plane: Array, *args: Array) -> tuple[Array, bool]:
        if axis_size * plane.size > MOST_CELLS:
            axes = [0 if batched else None for batched in in_batched]
            return jax.vmap(function, in_axes=axes)(plane, *args), True
        plane = put_batch(plane, in_batched[0], axis_size, 0)
        axis = 0 if rows else -1
        out = moved(plane, *(put_batch(x, b, axis_size, axis) for x, b in zip(args, in_batched[1:])))
        return out if rows or plane_out else jnp.moveaxis(out, -1, 0), True

    return moved


def read(plane: Array, cell: Array, *, rows: bool = False) -> Array:
    """Entries of a map [W*H] at cells of any shape, which must be inside.

    `rows`: long arrays, whose batch axis stays in front.
    """
    return _on_plane(partial(_read, rows=rows), rows, False)(plane, cell)


def write(plane: Array, cell: Array, value: Array, *, rows: bool = False, largest: bool = False) -> Array:
    """A map [W*H] with values written at cells of any shape; those outside are left out.

    `largest`: only over smaller values.  `rows`: as in `read`.
    """
    return _on_plane(partial(_write, rows=rows, largest=largest), rows, True)(plane, cell, value)
