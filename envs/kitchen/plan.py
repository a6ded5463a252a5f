"""Joint plans: priority inheritance with backtracking (PIBT) with fixed priorities.

Axes: A players, C cells, then those of a batch.  Times are steps of the plan.

A plan is made until everybody stands on its goal at once or 1,000 steps are made.  It is never stored.  The grid is
bipartite, so every step brings the most important player who moves nearer to its goal or leaves it where it is, then
the next one, and so on: nothing comes back, and a step in which nobody moves is followed by none in which somebody
does, whatever the order of ties.  That is the end of a plan that does not reach its goals.  So it suffices to keep
where everybody is in the plan, and to look ahead only where an action depends on what comes.
"""

from dataclasses import replace
from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from jaxcoop.core.batching import along
from jaxcoop.envs.kitchen.grid import Direction, Grid

LIMIT = 1000
"""Steps after which a plan ends that has not reached its goals."""

STAY = 4
"""Action of a player who stays; the others are `Direction`s."""

RESHUFFLE = 0.1
"""Probability that priorities are drawn anew when a plan is made."""

_ORDERS = list(permutations(Direction))

FIXED = _ORDERS.index((Direction.WEST, Direction.EAST, Direction.NORTH, Direction.SOUTH))
"""Number of the order of ties without randomness."""


def _first_of() -> UInt8[np.ndarray, "24 16"]:
    """`[order, directions as bits]`: the first of them, `STAY` if there are none."""
    table = np.full((len(_ORDERS), 16), STAY, np.uint8)
    for k, order in enumerate(_ORDERS):
        for bits in range(1, 16):
            table[k, bits] = next(d for d in order if bits >> d & 1)
    return table


FIRST = _first_of()


@struct.dataclass
class Plan:
    """A plan in execution."""

    goal: Int[Array, " A"]  # cells; -1: nothing planned yet; int16
    facing: Int[Array, " A"]  # Direction to look in at the goal; int8
    rank: Int[Array, " A"]  # priority, the largest first; int8
    at: Int[Array, " A"]  # where everybody is in the plan at time `time`; int16
    time: Int[Array, ""]  # int16
    ahead: Int[Array, " A"]  # how far beyond `time` each player has come, for others may lag behind; int16
    seed: UInt32[Array, ""]  # of the order of ties


@struct.dataclass
class PlanDraws:
    """The random numbers of one `follow`."""

    reshuffle: Bool[Array, ""]  # priorities are drawn anew if a plan is made
    order: UInt32[Array, " A"]  # their new order
    seed: UInt32[Array, ""]


def no_plan(players: int) -> Plan:
    """Before the first plan; priorities are the indices."""
    none = jnp.full((players,), -1, jnp.int16)
    return Plan(
        goal=none,
        facing=none.astype(jnp.int8),
        rank=jnp.arange(players, dtype=jnp.int8),
        at=none,
        time=jnp.zeros((), jnp.int16),
        ahead=jnp.zeros((players,), jnp.int16),
        seed=jnp.zeros((), jnp.uint32),
    )


def ranks(order: UInt32[Array, " A"]) -> Int[Array, " A"]:
    """A permutation from random numbers: how many are smaller; int8."""
    players = order.shape[0]
    ids = np.arange(players)
    same = order[None] == order[:, None]
    earlier = along(ids, same, axis=1) < along(ids, same)
    return ((order[None] < order[:, None]) | (same & earlier)).sum(1, dtype=jnp.int8)


def look_up(table: np.ndarray, *index: Array) -> Array:
    """Entries of a constant table; indices must be inside."""
    flat = index[0].astype(jnp.int32)
    for size, more in zip(table.shape[1:], index[1:], strict=True):
        flat = flat * size + more
    return jnp.asarray(table.reshape(-1)).at[flat].get(mode="promise_in_bounds")


def follow(
    grid: Grid,
    plan: Plan,
    cell: Int[Array, " A"],
    facing: Int[Array, " A"],
    goal: Int[Array, " A"],
    goal_facing: Int[Array, " A"],
    draws: PlanDraws | None,
) -> tuple[Int[Array, " A"], Plan]:
    """What everybody does now (`Direction` or `STAY`; int32), and the plan afterwards.

    A new plan is made if the goals have changed.  Without `draws` ties go west, east, north, south and priorities stay.
    """
    is_new = ((plan.goal != goal) | (plan.facing != goal_facing)).any(0)
    rank, seed = plan.rank, plan.seed
    if draws is not None:
        rank = jnp.where(is_new & draws.reshuffle, ranks(draws.order), rank)
        seed = jnp.where(is_new, draws.seed, seed)
    at = jnp.where(is_new, cell, plan.at).astype(jnp.int16)
    time = jnp.where(is_new, 0, plan.time).astype(jnp.int16)
    ahead = jnp.where(is_new, 0, plan.ahead).astype(jnp.int16)

    ended = (at == goal).all(0) | (time >= LIMIT)
    look = _Look(
        at=at,
        goal=goal,
        rank=rank,
        seed=None if draws is None else seed,
        time=time,
        ahead=ahead,
        is_set=(facing == goal_facing),
        cell=cell,
        ended=ended,
        here=at,
        there=at,
        changes=jnp.zeros(at.shape, jnp.bool_),
    )
    look = _one_more(grid, jnp.int16(0), look)
    first = look.at
    here, there, changes = _looked_ahead(grid, look)
    is_there = cell == here
    onward = jnp.where(is_there, jnp.where(changes, there, cell), here)
    moves = _direction(grid, cell, onward)
    turns = is_there & ~changes & (facing != goal_facing)
    action = jnp.where(turns, goal_facing, moves).astype(jnp.int32)

    ahead = ahead + (is_there | ~changes).astype(jnp.int16)
    all_ahead = (ahead > 0).all(0)
    return action, Plan(
        goal=goal.astype(jnp.int16),
        facing=goal_facing.astype(jnp.int8),
        rank=rank,
        at=jnp.where(all_ahead, first, at),
        time=time + all_ahead.astype(jnp.int16),
        ahead=ahead - all_ahead.astype(jnp.int16),
        seed=seed,
    )


@struct.dataclass
class _Look:
    """A look ahead in plans: where all are after some steps from `time`, and what was seen on the way."""

    at: Array
    goal: Array
    rank: Array
    seed: Array | None
    time: Array
    ahead: Array
    is_set: Array  # the player looks as it shall at the goal
    cell: Array  # where the player really is
    ended: Array
    here: Array  # where each player is now, by the plan
    there: Array  # and next
    changes: Array  # whether it ever moves again, as far as was looked


def _needs(k: Array, look: _Look) -> Bool[Array, "..."]:
    """Whose actions depend on more than the first k steps, by plan.

    Somebody who stands and looks as it shall does nothing in any case.
    """
    stands = (k > look.ahead) & (look.here == look.there) & look.is_set & (look.cell == look.here)
    return ~((look.changes & (k > look.ahead)) | stands).all(0) & ~look.ended


def _one_more(grid: Grid, k: Array, look: _Look) -> _Look:
    """The look ahead with step k."""
    order = orders(look.seed, look.time + k, look.at.shape[0])
    nxt = jnp.where(look.ended, look.at, step(grid, look.at, look.goal, look.rank, order))
    moved = nxt != look.at
    return replace(
        look,
        at=nxt,
        here=jnp.where(k < look.ahead, nxt, look.here),
        there=jnp.where(k <= look.ahead, nxt, look.there),
        changes=look.changes | ((k >= look.ahead) & moved),
        ended=look.ended | ~moved.any(0) | (nxt == look.goal).all(0) | (look.time + k + 1 >= LIMIT),
    )


MANY, PART = 128, 8
"""Of at least so many plans only this part is looked at further at once: few need it, and a loop waits for the last."""


def _looked_ahead(grid: Grid, look: _Look) -> tuple[Array, Array, Array]:
    """`here`, `there` and `changes` after as many steps as are needed; one has been made."""

    def to_the_end(look: _Look) -> _Look:
        def go_on(carry: tuple[Array, _Look]) -> tuple[Array, _Look]:
            return carry[0] + jnp.int16(1), _one_more(grid, *carry)

        return jax.lax.while_loop(lambda carry: _needs(*carry).any(), go_on, (jnp.int16(1), look))[1]

    count = look.time.size
    if count < MANY:
        look = to_the_end(look)
        return look.here, look.there, look.changes
    shape = look.here.shape
    flat = jax.tree.map(lambda x: x.reshape(-1, count) if x.shape == shape else x.reshape(count), look)

    def next_part(carry: tuple[Array, _Look]) -> tuple[Array, _Look]:
        is_open, look = carry
        which = jnp.nonzero(is_open, size=count // PART, fill_value=count)[0]
        some = to_the_end(jax.tree.map(lambda x: x.at[..., which].get(mode="clip"), look))
        look = jax.tree.map(lambda x, part: x.at[..., which].set(part, mode="drop"), look, some)
        return is_open.at[which].set(False, mode="drop"), look

    # Each plan is looked at once: whether one is done depends on how many steps its part has made.
    start = (_needs(jnp.int16(1), flat), flat)
    flat = jax.lax.while_loop(lambda carry: carry[0].any(), next_part, start)[1]
    return flat.here.reshape(shape), flat.there.reshape(shape), flat.changes.reshape(shape)


def _direction(grid: Grid, cell: Array, to: Array) -> Array:
    """The direction from a cell to a neighbour, `STAY` to any other cell; int32."""
    found = jnp.full(cell.shape, STAY, jnp.int32)
    for direction in Direction:
        found = jnp.where(look_up(grid.steps[direction], cell) == to, int(direction), found)
    return jnp.where(cell == to, STAY, found)


def orders(seed: UInt32[Array, ""] | None, time: Int[Array, ""], players: int) -> Array | int:
    """Number of the order in which each player tries directions that are equally good; without a seed the fixed one."""
    if seed is None:
        return FIXED
    # A finalizer of a hash function (lowbias32): each step and player of a plan has numbers of its own.
    who = along(np.arange(1, players + 1, dtype=np.uint32) * np.uint32(0x85EBCA6B), seed[None])
    bits = seed[None] ^ (time.astype(jnp.uint32)[None] * np.uint32(0x9E3779B9) + who)
    bits = (bits ^ bits >> 16) * np.uint32(0x7FEB352D)
    bits = (bits ^ bits >> 15) * np.uint32(0x846CA68B)
    return ((bits >> 16) * np.uint32(len(_ORDERS)) >> 16).astype(jnp.int32)


def step(grid: Grid, at: Int[Array, " A"], goal: Int[Array, " A"], rank: Int[Array, " A"], order: Any) -> Array:
    """One step of the plan: where everybody is next."""
    if at.shape[0] == 1:
        return _walk(grid, at, _pick(order, look_up(grid.closer, goal, at)))
    return (_pair if at.shape[0] == 2 else _team)(grid, at, goal, rank, order)


def _pick(order: Any, directions: Array) -> Array:
    """The first of directions that are given as bits, `STAY` if there are none; int32."""
    return look_up(FIRST, jnp.broadcast_to(order, directions.shape), directions).astype(jnp.int32)


def _walk(grid: Grid, cell: Array, direction: Array) -> Array:
    """Where a direction leads from a cell; `STAY` leads nowhere."""
    moved = look_up(grid.steps, jnp.minimum(direction, 3), cell)
    return jnp.where(direction == STAY, cell, moved)


def _bit(direction: Array) -> Array:
    return jnp.where(direction == STAY, 0, 1 << direction)


def _pair(grid: Grid, at: Array, goal: Array, rank: Array, order: Any) -> Array:
    """Two players: the one with the higher priority goes first, and may push the other."""
    swapped = rank[1] > rank[0]

    def sorted_out(x: Array) -> tuple[Array, Array]:
        return jnp.where(swapped, x[1], x[0]), jnp.where(swapped, x[0], x[1])

    high, low = sorted_out(at)
    order_high, order_low = sorted_out(jnp.broadcast_to(order, at.shape))
    near_high, near_low = (d.astype(jnp.int32) for d in sorted_out(look_up(grid.closer, goal, at)))
    first = _pick(order_high, near_high)
    second = _pick(order_high, near_high & ~_bit(first))
    wanted = _walk(grid, high, first)

    # The other one stands there: it goes wherever it can, but not to where the first one comes from.
    pushes = wanted == low
    others = look_up(grid.exits, low).astype(jnp.int32) & ~_bit(first ^ 1)
    nearer = near_low & others
    away = _pick(order_low, jnp.where(nearer > 0, nearer, others))
    pushed = pushes & (others > 0)
    high_next = jnp.where(pushes & ~pushed, _walk(grid, high, second), wanted)

    # Nobody pushes it: it goes on by itself.
    own = _pick(order_low, near_low)
    own = jnp.where(_walk(grid, low, own) == high_next, _pick(order_low, near_low & ~_bit(own)), own)
    direction = jnp.where(pushed, away, jnp.where(pushes, STAY, own))
    low_next = _walk(grid, low, direction)
    return jnp.stack([jnp.where(swapped, low_next, high_next), jnp.where(swapped, high_next, low_next)])


_OWN = 4
"""Bit of the own cell among the candidates."""


def _team(grid: Grid, at: Array, goal: Array, rank: Array, order: Any) -> Array:
    """Any number of players: the recursion of the method with its calls on a stack of parents."""
    players = at.shape[0]
    ids = along(np.arange(players, dtype=np.int32), at)
    near = look_up(grid.closer, goal, at).astype(jnp.int32)
    far = look_up(grid.exits, at).astype(jnp.int32) & ~near
    order = jnp.broadcast_to(order, at.shape)
    none = jnp.full(at.shape[1:], -1, jnp.int32)

    def of(values: Array, who: Array) -> Array:
        """The value of one player."""
        return jnp.where(ids == who, values, 0).sum(0, dtype=values.dtype)

    def goes_on(carry: Any) -> Array:
        return ((carry[0] < 0).any(0) | (carry[3] >= 0)).any()

    def go_on(carry: Any) -> Any:
        nxt, tried, parent, current = carry
        # Without a call in progress the most important player without a next cell begins.
        open_rank = jnp.where(nxt < 0, rank.astype(jnp.int32), -1)
        top = open_rank.max(0)
        chosen = jnp.where(open_rank == top, ids, players).min(0)
        who = jnp.where((current < 0) & (top >= 0), chosen, current)
        is_on = who >= 0
        cell, done = of(at, who), of(tried, who)
        nearer, further = of(near, who) & ~done, of(far, who) & ~done
        directions = jnp.where(nearer > 0, nearer, further)
        takes_own = (nearer == 0) & (done >> _OWN & 1 == 0)
        direction = jnp.where(takes_own, STAY, _pick(of(order, who), directions))
        has_any = takes_own | (directions > 0)
        to = _walk(grid, cell, direction)
        is_own = ids == who
        tried = jnp.where(is_own, done | jnp.where(takes_own, 1 << _OWN, _bit(direction)), tried)
        is_taken = ((nxt == to) & ~is_own).any(0)
        there = (at == to) & ~is_own
        swaps = (there & (nxt == cell)).any(0)
        fits = is_on & has_any & ~is_taken & ~swaps
        waits = (there & (nxt < 0)).any(0)  # for somebody who has to go first
        nxt = jnp.where(is_own & fits, to, nxt)
        other = jnp.where(there, ids, 0).sum(0, dtype=jnp.int32)
        parent = jnp.where((ids == other) & fits & waits, who, parent)
        fails = is_on & ~has_any
        nxt = jnp.where(is_own & fails, cell, nxt)
        back = of(parent, who)
        current = jnp.where(fits, jnp.where(waits, other, -1), jnp.where(fails, back, who))
        return nxt, tried, parent, current

    start = (jnp.full_like(at, -1), jnp.zeros(at.shape, jnp.int32), jnp.full(at.shape, -1, jnp.int32), none)
    return jax.lax.while_loop(goes_on, go_on, start)[0]
