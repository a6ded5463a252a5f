"""DPBench dining table: the rules, as pure functions of the table.

Axes: N philosophers (= forks), W words of 32 of them.  Section numbers are those of docs/envs/dining.md.
All but the meal counts is computed on sets of philosophers, 32 at a time (`core.bits`).  A timestep of all
philosophers costs O(N), the turn of one O(1).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.core import bits
from jaxcoop.envs.dining.types import Action, Table

Words = UInt32[Array, " W"]


def empty_table(num_philosophers: int) -> Table:
    """2: all forks free, everybody hungry, no meals."""
    nobody = bits.empty(num_philosophers)
    return Table(nobody, nobody, nobody, nobody, nobody, jnp.zeros((num_philosophers,), jnp.int32))


def fed_meals(table: Table, fed: Words) -> Int[Array, " N"]:
    """Meal counts after the philosophers `fed` have eaten."""
    return table.meals + bits.unpack(fed, table.meals.shape[0]).astype(jnp.int32)


def free_for_requests(table: Table, dropped: tuple[Words, Words], first: Words, releases: str) -> tuple[Words, Words]:
    """Forks that a grab of this timestep finds free: for their left users, for their right users.

    `dropped`: forks freed by a RELEASE of their left, of their right user.
    releases = "first": all releases come before all grabs (package 0.2).  "after": grabs look at the table
    before the releases.  "index_order": one pass in id order, so a grab sees lower ids' releases only (0.1.0).
    """
    held = table.by_left | table.by_right
    by_left, by_right = dropped
    if releases == "first":
        held = held & ~(by_left | by_right)
        return ~held, ~held
    if releases == "after":
        return ~held, ~held
    # fork 0 is the exception: its left user 0 comes before its right user N-1
    return ~held | (by_right & ~first), ~held | (by_left & first)


def simultaneous_step(
    table: Table, actions: Int[Array, " N"], *, meals: str = "held", releases: str = "first"
) -> Table:
    """4: everybody acts at once.

    Conflicting grabs go to the lower id.  `meals` = "held": the eater keeps its forks for one more timestep
    (package); any other value: the meal is eaten and both forks put down within the timestep (paper).
    """
    n = actions.shape[0]
    first, last = bits.constant(n, [0]), bits.constant(n, [n - 1])

    def of_left(x: Words) -> Words:  # who sits right of a member; what a right user does, by fork
        return bits.from_previous(x, n)

    def of_right(x: Words) -> Words:
        return bits.from_next(x, n)

    # Two bits tell the four actions apart; any other number waits.
    codes = jnp.where((actions >= 0) & (actions <= Action.WAIT), actions, Action.WAIT)
    low, high = bits.pack(codes & 1 != 0), bits.pack(codes >> 1 != 0)
    grab_left, grab_right, release = ~low & ~high, low & ~high, high & ~low

    # 4.1-1: releases, an eater's too
    dropped = release & table.left, of_left(release & table.right)
    all_dropped = dropped[0] | dropped[1]

    # 4.1-2 and 3: requests for free forks; the lower id of a fork's two users wins
    free_left, free_right = free_for_requests(table, dropped, first, releases)
    want_left = grab_left & free_left & bits.everybody(n)
    want_right = grab_right & of_right(free_right & bits.everybody(n))
    get_left = want_left & (first | ~of_left(want_right))
    get_right = want_right & ~(last & of_right(want_left))
    by_left = (table.by_left & ~all_dropped) | get_left
    by_right = (table.by_right & ~all_dropped) | of_left(get_right)
    own_left, own_right = by_left, of_right(by_right)

    if meals != "held":
        fed = own_left & own_right
        cleared = fed | of_left(fed)
        return Table(
            by_left=by_left & ~cleared,
            by_right=by_right & ~cleared,
            left=own_left & ~fed,
            right=own_right & ~fed,
            eating=jnp.zeros_like(fed),
            meals=fed_meals(table, fed),
        )

    # 4.2: closed form of the sweep in id order.  An old eater frees its two forks whoever holds them now; a
    # neighbour that was looked at before keeps its flag: a phantom fork (4.3).
    ate = table.eating
    left = own_left & ~ate & ~(of_left(ate) & ~first)
    right = own_right & ~ate & ~(of_right(ate) & last)
    eating = left & right
    cleared = ate | of_left(ate)
    return Table(
        by_left=by_left & ~cleared,
        by_right=by_right & ~cleared,
        left=left,
        right=right,
        eating=eating,
        meals=fed_meals(table, eating),
    )


def sequential_turn(
    table: Table, philosopher: Int[Array, ""], action: Int[Array, ""], *, meals: str = "held"
) -> tuple[Table, Int[Array, ""]]:
    """5: one philosopher acts on the current table; also returns the change of the number that wait.

    `meals` = "held": an eater keeps both forks until its own next turn (package); "instant": meal and putting
    down within the turn; "round_end": forks are kept until `settle` (both are readings of the paper).
    """
    i, j = philosopher, (philosopher + 1) % table.meals.shape[0]
    left, right = bits.get(table.left, i), bits.get(table.right, i)
    was_eating = bits.get(table.eating, i)
    own_left, own_right = bits.get(table.by_left, i), bits.get(table.by_right, j)
    others_left, others_right = bits.get(table.by_right, i), bits.get(table.by_left, j)
    single_before = ~was_eating & (left ^ right)

    # 5-1: the action
    grab_left = (action == Action.GRAB_LEFT) & ~own_left & ~others_left
    grab_right = (action == Action.GRAB_RIGHT) & ~own_right & ~others_right
    release = action == Action.RELEASE
    own_left, own_right = (
        (own_left | grab_left) & ~(release & left),
        (own_right | grab_right) & ~(release & right),
    )
    left, right = (left | grab_left) & ~release, (right | grab_right) & ~release

    # 5-2: a hungry philosopher with both forks eats;  5-3: one that was eating puts both down
    both = left & right & ~was_eating
    fed = both if meals != "round_end" else jnp.zeros_like(both)
    done = was_eating if meals == "held" else fed
    eating = fed if meals == "held" else jnp.zeros_like(both)
    nxt = Table(
        by_left=bits.put(table.by_left, i, own_left & ~done),
        by_right=bits.put(table.by_right, j, own_right & ~done),
        left=bits.put(table.left, i, left & ~done),
        right=bits.put(table.right, i, right & ~done),
        eating=bits.put(table.eating, i, eating),
        meals=add_one(table.meals, i, fed),
    )
    single_after = ~eating & ~done & (left ^ right)
    return nxt, single_after.astype(jnp.int32) - single_before.astype(jnp.int32)


def add_one(counts: Int[Array, " N"], index: Int[Array, ""], when: Bool[Array, ""]) -> Int[Array, " N"]:
    """`counts` with one entry raised if `when`; by mask for small teams, by index (O(1)) for large ones."""
    if counts.shape[0] <= bits.MASK_LIMIT * bits.WORD:
        return counts + ((jnp.arange(counts.shape[0]) == index) & when).astype(jnp.int32)
    return counts.at[index].add(when.astype(jnp.int32))


def apply_turns(table: Table, philosophers: Int[Array, " M"], actions: Int[Array, " M"]) -> Table:
    """5: turns of the listed philosophers one after the other, in list order."""

    def one(table: Table, turn: tuple[Array, Array]) -> tuple[Table, None]:
        return sequential_turn(table, *turn)[0], None

    return jax.lax.scan(one, table, (philosophers, actions))[0]


def settle(table: Table) -> Table:
    """Everyone with both forks eats and puts them down (the paper's end of a sequential round)."""
    fed = table.left & table.right
    cleared = fed | bits.from_previous(fed, table.meals.shape[0])
    return Table(
        by_left=table.by_left & ~cleared,
        by_right=table.by_right & ~cleared,
        left=table.left & ~fed,
        right=table.right & ~fed,
        eating=table.eating,
        meals=fed_meals(table, fed),
    )


def holds_exactly_one(table: Table) -> Words:
    """Hungry and, by the own flags, with exactly one fork in hand."""
    return ~table.eating & (table.left ^ table.right)


def is_circular_wait(table: Table) -> Bool[Array, ""]:
    """6: everybody is hungry and holds exactly one fork; two fork patterns for every N."""
    return bits.count(holds_exactly_one(table)) == table.meals.shape[0]


def resolve(table: Table) -> Table:
    """7.3: the table of a non-terminal deadlock is cleared; meals stay."""
    return empty_table(table.meals.shape[0]).replace(meals=table.meals)


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
    n = hold_counts.shape[0]
    single = bits.unpack(holds_exactly_one(table), n)
    counts = jnp.where(single, hold_counts + 1, 0)
    drops = single & (counts >= threshold) & (uniforms < probability)
    gives_up = bits.pack(drops)
    freed = (gives_up & table.left) | bits.from_previous(gives_up & table.right, n)
    nxt = table.replace(
        by_left=table.by_left & ~freed,
        by_right=table.by_right & ~freed,
        left=table.left & ~gives_up,
        right=table.right & ~gives_up,
    )
    return nxt, jnp.where(drops, 0, counts)
