"""Where the axis of a batch goes: last, for functions of many small arrays.

A loop over 3 agents, 4 orders or 16 items is too short for a vector unit; a loop over the episodes of a batch is not.
So a function of arrays whose *first* axes are named lets any further axes be, and `batch_last` puts the batch there.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jaxtyping import Array


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


def along(values: Any, like: Array, axis: int = 0) -> np.ndarray:
    """A constant vector that runs along one axis of `like`."""
    values = np.asarray(values)
    return values.reshape((1,) * axis + (-1,) + (1,) * (like.ndim - axis - 1))
