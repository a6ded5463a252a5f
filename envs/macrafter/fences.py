"""Points at which values are computed once and kept.

Axes: any.
"""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

T = TypeVar("T")


def once(values: T, t: Int[Array, ""]) -> T:
    """The same values, each read back through a look-up; `t` is any count that is never negative.

    The CPU compiler puts everything that leads to a value into each of the many loops that use it, and drops its
    own barriers before it does so.  It cannot see through a look-up whose index depends on the state.  Worth it for
    small arrays with many uses.
    """
    zero = jnp.minimum(t, 0)

    def read(x: Array) -> Array:
        flat = x.reshape(-1)
        index = jnp.arange(flat.shape[0], dtype=jnp.int32) + zero
        return flat.at[index].get(mode="promise_in_bounds").reshape(x.shape)

    return jax.tree.map(read, values)
