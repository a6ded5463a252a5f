"""Counting who names a task, at a cost that grows with the number of agents only.

Axes: N entries that name tasks (-1: none), R tasks that are asked for, M task slots.
Both functions compare all pairs where these are few, which vectorises over a batch of episodes, and otherwise write
into one array of M slots; the results are the same.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

PAIRS = 1024
"""Up to this many pairs are compared: with 4,096 slots comparing is the faster one up to about 32 agents."""


def tally(named: Int[Array, " N"], asked: Int[Array, " R"], num_tasks: int) -> Int[Array, " R"]:
    """How many entries of `named` are each of the tasks `asked` for; 0 for -1 (and every number below 0).

    Numbers from `num_tasks` on are not allowed in either.
    """
    if named.shape[0] * asked.shape[0] <= PAIRS:
        same = (named[None, :] == asked[:, None]) & (asked[:, None] >= 0)
        return same.sum(-1, dtype=jnp.int32)
    # A negative number would wrap around to the end, so nobody's entry goes beyond it and is dropped.
    slots = jnp.zeros((num_tasks,), jnp.int32).at[jnp.where(named < 0, num_tasks, named)].add(1, mode="drop")
    return jnp.where(asked < 0, 0, slots[asked])


def first_with(named: Int[Array, " N"], num_tasks: int) -> Int[Array, " N"]:
    """For each entry the first one that names the same task; -1 for an entry that names none.

    `first_with(named, M) == arange(N)` picks one representative of each task that is named.
    """
    n = named.shape[0]
    ids = jnp.arange(n, dtype=jnp.int32)
    if n * n <= PAIRS:
        same = named[None, :] == named[:, None]
        first = jnp.where(same, ids[None, :], n).min(-1)
    else:
        slots = jnp.full((num_tasks,), n, jnp.int32)
        slots = slots.at[jnp.where(named < 0, num_tasks, named)].min(ids, mode="drop")
        first = slots[named]
    return jnp.where(named < 0, -1, first)


def any_with(named: Int[Array, " N"], flags: Bool[Array, " N"], asked: Int[Array, " R"], num_tasks: int) -> Array:
    """bool[R]: whether some entry that names the task has its flag set."""
    return tally(jnp.where(flags, named, -1), asked, num_tasks) > 0
