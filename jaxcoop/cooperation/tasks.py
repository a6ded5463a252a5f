"""The task table: every cooperative task of a state, in a fixed number of slots.

Axes: M task slots.  The id of a task is its slot; environments fix what slot belongs to what (a face of a block, a
cell of the map, a pair of forks).
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int


@struct.dataclass
class TaskTable:
    """Tasks g of G_t with their requirements (COOP², section 4).  Made on demand, never part of a state."""

    active: Bool[Array, " M"]  # g is in G_t
    kind: Int[Array, " M"]  # the environment's code: material, face, …
    place: Int[Array, "M 2"]  # where it is, in the environment's coordinates
    required: Int[Array, " M"]  # p(g): agents that it takes
    capability: Int[Array, " M"]  # what each of them needs to have, the environment's code; -1: nothing
    value: Float[Array, " M"]  # r(g): what it is worth when done


def no_tasks() -> TaskTable:
    """The table of an environment without cooperative tasks, M = 0."""
    none = jnp.zeros((0,), jnp.int32)
    return TaskTable(
        active=jnp.zeros((0,), jnp.bool_),
        kind=none,
        place=jnp.zeros((0, 2), jnp.int32),
        required=none,
        capability=none,
        value=jnp.zeros((0,), jnp.float32),
    )
