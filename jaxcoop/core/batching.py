"""Where the axis of a batch goes: last, for functions of many small arrays.

A loop over 3 agents, 4 orders or 16 items is too short for a vector unit; a loop over the episodes of a batch is not.
So a function of arrays whose *first* axes are named lets any further axes be, and `batch_last` puts the batch there.
Maps of C cells are long enough: [N, C] stay as they are, and `read` and `write` use one index into all of them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array

MOST_CELLS = 2**31 - 1
"""Cells of all maps of a batch that one int32 index can tell apart."""


def put_batch(x: Array, batched: bool, size: int, axis: int) -> Array:
    """`x` with its batch axis, in front or new, at `axis`: 0 or -1."""
    if not batched:
        x = jnp.broadcast_to(x, (size, *x.shape))
    return jnp.moveaxis(x, 0, axis)


def batch_last(function: Callable[..., Any], *, alone: bool = False) -> Callable[..., Any]:
    """`function` with its batch axis, when `vmap` brings one, moved to the end of every argument and result.

    `alone`: a batch is a program of its own (`apart`).
    """

    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        last = jax.tree.map(lambda x, batched: put_batch(x, batched, axis_size, -1), args, tuple(in_batched))
        out = batch(*last)
        return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), out), jax.tree.map(lambda _: True, out)

    single, batch = custom_vmap(function), custom_vmap(partial(apart, function) if alone else function)
    single.def_vmap(rule)
    batch.def_vmap(rule)  # a batch of batches
    return single


def apart(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` as a program of its own: its results are computed once, in the order of their axes.

    The CPU compiler puts everything that leads to a value into each of the many loops that use it, in the order that
    suits these, and drops its own barriers before it does so.  It does not look into branches.  So here is one that is
    always taken, which the compiler does not know.
    """
    some = jax.tree.leaves(args)[0].reshape(-1)[0].astype(jnp.int32)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(function, *args))
    return jax.lax.cond((some | 1) != 0, function, lambda *_: zeros, *args)


batch_alone = partial(batch_last, alone=True)
"""`batch_last` whose batches are programs of their own."""


def kept(function: Callable[..., Any], *, is_batch: bool = False) -> Callable[..., Any]:
    """`function` for long arrays: the axis of a batch stays in front, and its results are computed once (`apart`)."""
    single = custom_vmap(partial(apart, function) if is_batch else function)

    @single.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda batched: 0 if batched else None, tuple(in_batched))
        out = kept(jax.vmap(function, axes, axis_size=axis_size), is_batch=True)(*args)
        return out, jax.tree.map(lambda _: True, out)

    return single


def along(values: Any, like: Array, axis: int = 0) -> np.ndarray:
    """A constant vector that runs along one axis of `like`."""
    values = np.asarray(values)
    return values.reshape((1,) * axis + (-1,) + (1,) * (like.ndim - axis - 1))


def _flat_index(plane: Array, cell: Array, rows: bool) -> Array:
    """Index into all maps `plane` [*batch, C] of cells [*batch, ...] (`rows`) or [..., *reversed batch]; int32."""
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
    """Entries of a map [C] at cells of any shape, which must be inside.

    `rows`: long arrays, whose batch axis stays in front.
    """
    return _on_plane(partial(_read, rows=rows), rows, False)(plane, cell)


def write(plane: Array, cell: Array, value: Array, *, rows: bool = False, largest: bool = False) -> Array:
    """A map [C] with values written at cells of any shape; those outside are left out.

    `largest`: only over smaller values.  `rows`: as in `read`.
    """
    return _on_plane(partial(_write, rows=rows, largest=largest), rows, True)(plane, cell, value)
