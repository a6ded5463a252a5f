"""DPBench dining table: the rules, as pure functions of the table.

Axes: N philosophers (= forks).  Section numbers are those of docs/environments/dining.md.
Every rule costs O(N) for a timestep of all philosophers and O(1) for the turn of one.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.envs.dining.types import BY_LEFT_USER, BY_RIGHT_USER, FREE, Action, Table

MASK_LIMIT = 64
"""Up to this many philosophers a turn writes by mask (vectorises over a batch); above, by index (O(1))."""


def empty_table(num_philosophers: int) -> Table:
    """2: all forks free, everybody hungry, no meals."""
    off = jnp.zeros((num_philosophers,), jnp.bool_)
    return Table(
        fork=jnp.zeros((num_philosophers,), jnp.int8),
        left=off,
        right=off,
        eating=off,
        meals=jnp.zeros((num_philosophers,), jnp.int32),
    )


def from_left(x: Array) -> Array:
    """Value at the left neighbour (i-1) for every i."""
    return jnp.roll(x, 1)


def from_right(x: Array) -> Array:
    """Value at the right neighbour (i+1) for every i."""
    return jnp.roll(x, -1)


def free_for_requests(table: Table, dropped: Bool[Array, " N"], drop: Array, releases: str) -> Array:
    """Forks that a grab of this timestep finds free, as (from the left user, from the right user) pairs [2, N].

    `dropped[f]`: a RELEASE of this timestep frees fork f; `drop` [2, N]: by its left, by its right user.
    releases = "first": all releases come before all grabs (package 0.2).  "after": grabs look at the table
    before the releases.  "index_order": one pass in id order, so a grab sees lower ids' releases only (0.1.0).
    """
    free = table.fork == FREE
    if releases == "first":
        free = free | dropped
        return jnp.stack([free, free])
    if releases == "after":
        return jnp.stack([free, free])
    first = jnp.arange(free.shape[0]) == 0  # fork 0: its left user 0 comes before its right user N-1
    by_left, by_right = drop
    return jnp.stack([free | (by_right & ~first), free | (by_left & first)])


def simultaneous_step(
    table: Table, actions: Int[Array, " N"], *, meals: str = "held", releases: str = "first"
) -> Table:
    """4: everybody acts at once.

    Conflicting grabs go to the lower id.  `meals` = "held": the eater keeps its forks for one more timestep
    (package); any other value: the meal is eaten and both forks put down within the timestep (paper).
    """
    ids = jnp.arange(actions.shape[0])
    is_first, is_last = ids == 0, ids == actions.shape[0] - 1
    was_eating = table.eating

    # 4.1-1: releases, an eater's too
    release = actions == Action.RELEASE
    drop_left, drop_right = release & table.left, from_left(release & table.right)  # by fork
    dropped = drop_left | drop_right

    # 4.1-2 and 3: requests for free forks; the lower id of a fork's two users wins
    free = free_for_requests(table, dropped, jnp.stack([drop_left, drop_right]), releases)
    want_left = (actions == Action.GRAB_LEFT) & free[0]
    want_right = (actions == Action.GRAB_RIGHT) & from_right(free[1])
    get_left = want_left & (is_first | ~from_left(want_right))
    get_right = want_right & ~(is_last & from_right(want_left))
    fork = jnp.where(dropped, jnp.int8(FREE), table.fork)
    fork = jnp.where(get_left, jnp.int8(BY_LEFT_USER), fork)
    fork = jnp.where(from_left(get_right), jnp.int8(BY_RIGHT_USER), fork)
    own_left = fork == BY_LEFT_USER
    own_right = from_right(fork) == BY_RIGHT_USER

    if meals != "held":
        fed = own_left & own_right
        cleared = fed | from_left(fed)
        return Table(
            fork=jnp.where(cleared, jnp.int8(FREE), fork),
            left=own_left & ~fed,
            right=own_right & ~fed,
            eating=jnp.zeros_like(fed),
            meals=table.meals + fed.astype(jnp.int32),
        )

    # 4.2: closed form of the sweep in id order.  An old eater frees its two forks whoever holds them now; a
    # neighbour that was looked at before keeps its flag: a phantom fork (4.3).
    left = own_left & ~was_eating & ~(from_left(was_eating) & ~is_first)
    right = own_right & ~was_eating & ~(from_right(was_eating) & is_last)
    eating = left & right
    cleared = was_eating | from_left(was_eating)
    return Table(
        fork=jnp.where(cleared, jnp.int8(FREE), fork),
        left=left,
        right=right,
        eating=eating,
        meals=table.meals + eating.astype(jnp.int32),
    )


def write(x: Array, index: Int[Array, ""], value: Array) -> Array:
    """`x` with one entry replaced."""
    if x.shape[0] <= MASK_LIMIT:
        return jnp.where(jnp.arange(x.shape[0]) == index, value, x)
    return x.at[index].set(value)


def sequential_turn(
    table: Table, philosopher: Int[Array, ""], action: Int[Array, ""], *, meals: str = "held"
) -> tuple[Table, Int[Array, ""]]:
    """5: one philosopher acts on the current table; also returns the change of the number that wait.

    `meals` = "held": an eater keeps both forks until its own next turn (package); "instant": meal and putting
    down within the turn; "round_end": forks are kept until `settle` (both are readings of the paper).
    """
    i, j = philosopher, (philosopher + 1) % table.fork.shape[0]
    left, right, was_eating = table.left[i], table.right[i], table.eating[i]
    left_fork, right_fork = table.fork[i], table.fork[j]
    single_before = ~was_eating & (left ^ right)

    # 5-1: the action
    grab_left = (action == Action.GRAB_LEFT) & (left_fork == FREE)
    grab_right = (action == Action.GRAB_RIGHT) & (right_fork == FREE)
    release = action == Action.RELEASE
    left_fork = jnp.where(grab_left, jnp.int8(BY_LEFT_USER), left_fork)
    right_fork = jnp.where(grab_right, jnp.int8(BY_RIGHT_USER), right_fork)
    left_fork = jnp.where(release & left, jnp.int8(FREE), left_fork)
    right_fork = jnp.where(release & right, jnp.int8(FREE), right_fork)
    left = (left | grab_left) & ~release
    right = (right | grab_right) & ~release

    # 5-2: a hungry philosopher with both forks eats;  5-3: one that was eating puts both down
    both = left & right & ~was_eating
    fed = both if meals != "round_end" else jnp.zeros_like(both)
    done = was_eating if meals == "held" else fed
    eating = fed if meals == "held" else jnp.zeros_like(both)
    left, right = left & ~done, right & ~done
    left_fork = jnp.where(done, jnp.int8(FREE), left_fork)
    right_fork = jnp.where(done, jnp.int8(FREE), right_fork)
    nxt = Table(
        fork=write(write(table.fork, i, left_fork), j, right_fork),
        left=write(table.left, i, left),
        right=write(table.right, i, right),
        eating=write(table.eating, i, eating),
        meals=write(table.meals, i, table.meals[i] + fed.astype(jnp.int32)),
    )
    single_after = ~eating & (left ^ right)
    return nxt, single_after.astype(jnp.int32) - single_before.astype(jnp.int32)


def apply_turns(table: Table, philosophers: Int[Array, " M"], actions: Int[Array, " M"]) -> Table:
    """5: turns of the listed philosophers one after the other, in list order."""

    def one(table: Table, turn: tuple[Array, Array]) -> tuple[Table, None]:
        return sequential_turn(table, *turn)[0], None

    return jax.lax.scan(one, table, (philosophers, actions))[0]


def settle(table: Table) -> Table:
    """Everyone with both forks eats and puts them down (the paper's end of a sequential round)."""
    fed = table.left & table.right
    return Table(
        fork=jnp.where(fed | from_left(fed), jnp.int8(FREE), table.fork),
        left=table.left & ~fed,
        right=table.right & ~fed,
        eating=table.eating,
        meals=table.meals + fed.astype(jnp.int32),
    )


def holds_exactly_one(table: Table) -> Bool[Array, " N"]:
    """Hungry and, by the own flags, with exactly one fork in hand."""
    return ~table.eating & (table.left ^ table.right)


def is_circular_wait(table: Table) -> Bool[Array, ""]:
    """6: everybody is hungry and holds exactly one fork; two fork patterns for every N."""
    return jnp.all(holds_exactly_one(table))


def resolve(table: Table) -> Table:
    """7.3: the table of a non-terminal deadlock is cleared; meals stay."""
    return empty_table(table.fork.shape[0]).replace(meals=table.meals)


def apply_backoff(
    table: Table,
    hold_counts: Int[Array, " N"],
    uniforms: Float[Array, " N"],
    threshold: int,
    probability: float,
) -> tuple[Table, Int[Array, " N"]]:
    """7.4: who has held exactly one fork `threshold` times in a row drops it with the given probability.

    One uniform per philosopher; those of philosophers below the threshold are not used.
    """
    single = holds_exactly_one(table)
    counts = jnp.where(single, hold_counts + 1, 0)
    gives_up = single & (counts >= threshold) & (uniforms < probability)
    freed = (gives_up & table.left) | from_left(gives_up & table.right)
    nxt = table.replace(
        fork=jnp.where(freed, jnp.int8(FREE), table.fork),
        left=table.left & ~gives_up,
        right=table.right & ~gives_up,
        eating=table.eating & ~gives_up,
    )
    return nxt, jnp.where(gives_up, 0, counts)
