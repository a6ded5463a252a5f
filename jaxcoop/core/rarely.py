"""Functions that few episodes of a batch need: the others do not pay for them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

BLOCK = 64
"""Episodes that an accelerator works on side by side; a CPU takes one after another."""


def rarely(function: Callable[..., Any], asks: Bool[Array, ""], *args: Any) -> Any:
    """`function(*args)` where `asks`, else zeros; in a batch it runs for those that ask only."""

    single = custom_vmap(partial(_if_asked, function))

    @single.def_vmap
    def rule(size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        out = _batch(function)(*_full(size, in_batched, args))
        return out, jax.tree.map(lambda _: True, out)

    return single(asks, *args)


def _if_asked(function: Callable[..., Any], asks: Bool[Array, ""], *args: Any) -> Any:
    return jax.lax.cond(asks, function, lambda *_: _zeros(jax.eval_shape(function, *args)), *args)


def _batch(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` for arguments with a batch axis; a batch of batches becomes one long batch."""

    @custom_vmap
    def batch(*args: Any) -> Any:
        return jax.lax.platform_dependent(
            *args, cpu=partial(_in_blocks, function, 1), default=partial(_in_blocks, function, BLOCK)
        )

    @batch.def_vmap
    def rule(size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), _full(size, in_batched, args))
        out = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), batch(*flat))
        return out, jax.tree.map(lambda _: True, out)

    return batch


def _in_blocks(function: Callable[..., Any], block: int, asks: Bool[Array, " B"], *args: Any) -> Any:
    """`function` for those of a batch that ask, a block at a time."""
    if asks.shape[0] == 1:  # the loop below would not depend on its turn, and the compiler would compute it in advance
        out = _if_asked(function, asks[0], *jax.tree.map(lambda x: x[0], args))
        return jax.tree.map(lambda x: x[None], out)
    size, count = asks.shape[0], asks.sum(dtype=jnp.int32)
    rank = jnp.cumsum(asks, dtype=jnp.int32)
    order = jnp.full((size + block,), size, jnp.int32)
    order = order.at[jnp.where(asks, rank - 1, size + block)].set(jnp.arange(size, dtype=jnp.int32), mode="drop")

    def work(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        start, out = carry
        rows = jax.lax.dynamic_slice_in_dim(order, start, block)
        found = jax.vmap(function)(*jax.tree.map(lambda x: x[jnp.minimum(rows, size - 1)], args))
        return start + block, jax.tree.map(lambda all_, some: all_.at[rows].set(some, mode="drop"), out, found)

    start = (jnp.zeros((), jnp.int32), _zeros(jax.eval_shape(jax.vmap(function), *args)))
    return jax.lax.while_loop(lambda carry: carry[0] < count, work, start)[1]


def _full(size: int, in_batched: Any, args: Any) -> Any:
    """Arguments with the batch axis where they lack it."""

    def widened(x: Array, batched: bool) -> Array:
        return x if batched else jnp.broadcast_to(x, (size, *x.shape))

    return jax.tree.map(widened, args, tuple(in_batched))


def _zeros(shapes: Any) -> Any:
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
