"""3 to 6: one step of the kitchen.

Axes: A players, C cells, Q places of the order list.  Functions of arrays without C let the axes of a batch follow.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8

from jaxcoop.core.batching import along, read
from jaxcoop.envs.burrito import interact
from jaxcoop.envs.burrito.types import (
    BURNT,
    CHOPS,
    ORDER_LOSS,
    ORDER_PLACES,
    ORDER_TIME,
    PLATE_LIMIT,
    READY,
    RINSES,
    TERMS,
    WARNING,
    Action,
    Dish,
    Item,
    State,
    Terrain,
)

if TYPE_CHECKING:
    from jaxcoop.envs.burrito.layouts import Kitchen

RECIPES = tuple(Dish.STEAK if letter == "S" else Dish.MUSHROOM for letter in "SMMMSSMSMSMSM")
"""9: the cycle of recipes."""

TIPS = ((792, 8), (396, 5), (0, 3))
"""5: remaining time of the served order, and the tip from it on."""

UNROLLED = 4
"""Up to this many players act one after the other in one program; more in a loop."""


@struct.dataclass
class Book:
    """The orders."""

    dish: Int[Array, " Q"]
    left: Int[Array, " Q"]
    next_recipe: Int[Array, ""]
    streak: Int[Array, ""]


@struct.dataclass
class Fronts:
    """What players have in front of them."""

    cell: Int[Array, " A"]  # int16
    terrain: Int[Array, " A"]  # int32
    item: Int[Array, " A"]  # int8
    clock: UInt8[Array, " A"]


@struct.dataclass
class Stock:
    """What all players share."""

    plates: Int[Array, ""]
    book: Book


@struct.dataclass
class Act:
    """What one player's interaction did."""

    hand: Int[Array, ""]
    item: Int[Array, ""]  # in front of the player afterwards
    clock: UInt8[Array, ""]
    writes: Bool[Array, ""]  # whether it changed what is there
    reports: Int[Array, ""]  # word of `interact.tables`, 0: no interaction
    dish: Int[Array, ""]  # served, else Dish.NONE
    place: Int[Array, ""]  # of its order, ORDER_PLACES: nobody ordered it
    left: Int[Array, ""]  # remaining time of that order
    streak: Int[Array, ""]  # after the delivery


def content_of(item: Int[Array, "..."], clock: UInt8[Array, "..."]) -> Int[Array, "..."]:
    """What lies in cells, as the tables count it; int8."""
    small = np.int8
    phase = sum(((clock >= bound).astype(small) for bound in (READY, WARNING, BURNT)), jnp.zeros_like(item))
    is_food = (item >= Item.STEAK) & (item <= Item.BOILED_RICE)
    content = jnp.where(is_food, small(len(Item) - 4 * Item.STEAK) + small(4) * item + phase, item)
    is_chopped = (clock == CHOPS) & ((item == Item.CHOPPED_MEAT) | (item == Item.CHOPPED_MUSHROOM))
    content = jnp.where(is_chopped, small(interact.CHOPPED - Item.CHOPPED_MEAT) + item, content)
    return jnp.where((clock == RINSES - 1) & (item == Item.DIRTY_PLATE), small(interact.LAST_RINSE), content)


def case_of(
    terrain: Int[Array, "..."],
    held: Int[Array, "..."],
    item: Int[Array, "..."],
    clock: UInt8[Array, "..."],
    plates: Int[Array, "..."],
) -> Int[Array, "..."]:
    """The index into `interact.tables` of an interaction; what a stack holds are its plates."""
    in_stack = (plates > 0).astype(jnp.int32)
    content = jnp.where(terrain == Terrain.DIRTY_PLATES, in_stack, content_of(item, clock))
    return (terrain * len(Item) + held) * interact.CONTENTS + content


def look_up(table: np.ndarray, index: Any) -> Array:
    """Entries of a constant table; indices must be inside."""
    return jnp.asarray(table).at[index].get(mode="promise_in_bounds")


def fronts(kitchen: "Kitchen", state: State) -> Fronts:
    """What everybody faces; of one episode, batched by `vmap`."""
    ahead = kitchen.grid.ahead
    cell = look_up(ahead.reshape(-1), state.facing.astype(jnp.int32) * ahead.shape[1] + state.cell)
    terrain = look_up(kitchen.terrain, cell).astype(jnp.int32)
    return Fronts(cell, terrain, read(state.item, cell), read(state.clock, cell))


def wishes(kitchen: "Kitchen", state: State, actions: Int[Array, " A"]) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
    """3.2: where everybody looks, and the cell where each would go; of one episode, batched by `vmap`."""
    steps = kitchen.grid.steps
    is_direction = (actions >= 0) & (actions < Action.STAY)
    facing = jnp.where(is_direction, actions, state.facing).astype(jnp.int8)
    ahead = look_up(steps.reshape(-1), facing.astype(jnp.int32) * steps.shape[1] + state.cell)
    return facing, jnp.where(is_direction, ahead, state.cell)


def interactions(stock: Stock, front: Fronts, held: Int[Array, " A"], acts: Bool[Array, " A"]) -> tuple[Stock, Act]:
    """3, step 2: the players in `acts` act on what is in front of them, in order.  Fields of `Act` have the axis A.

    Those who face the same cell have the same `item` and `clock` in the end.
    """
    team = held.shape[0]
    ended = jnp.zeros(acts.shape[1:], jnp.bool_)

    def one(carry: Any, k: Any) -> tuple[Any, Act]:
        stock, front, ended = carry
        stock, act, ends = _interact(stock, jax.tree.map(lambda x: x[k], front), held[k], acts[k] & ~ended)
        same = (front.cell == front.cell[k]) & act.writes
        front = replace(
            front, item=jnp.where(same, act.item, front.item), clock=jnp.where(same, act.clock, front.clock)
        )
        return (stock, front, ended | ends), act

    carry = (stock, front, ended)
    if team > UNROLLED:
        carry, act = jax.lax.scan(one, carry, jnp.arange(team))
    else:
        done = []
        for k in range(team):
            carry, act = one(carry, k)
            done.append(act)
        act = jax.tree.map(lambda *x: jnp.stack(x), *done)
    stock, front, _ = carry
    return stock, replace(act, item=front.item, clock=front.clock)


def _interact(stock: Stock, front: Fronts, hand: Array, is_acting: Array) -> tuple[Stock, Act, Array]:
    """4: one player."""
    found = interact.tables()
    case = case_of(front.terrain, hand, front.item, front.clock, stock.plates)
    change = jnp.where(is_acting, look_up(found.changes, case), 0)
    report = jnp.where(is_acting, look_up(found.reports, case), 0)
    clock = jnp.where(change >> 11 & 1, 0, front.clock + (change >> 10 & 1).astype(jnp.uint8))
    dish = (change >> 13 & 3).astype(jnp.int8)
    book, place, left = deliver(stock.book, dish)
    plates = stock.plates - (change >> 12 & 1).astype(jnp.int8)
    plates = jnp.where(dish > 0, jnp.minimum(plates + 1, PLATE_LIMIT), plates).astype(jnp.int8)
    act = Act(
        hand=jnp.where(is_acting, (change & 31).astype(jnp.int8), hand),
        item=(change >> 5 & 31).astype(jnp.int8),
        clock=clock.astype(jnp.uint8),
        writes=is_acting & (front.terrain != Terrain.DIRTY_PLATES),
        reports=report,
        dish=dish,
        place=place,
        left=left,
        streak=book.streak,
    )
    return Stock(plates, book), act, (change >> 15 & 1) > 0


def deliver(book: Book, dish: Int[Array, ""]) -> tuple[Book, Array, Array]:
    """4.9: the orders after a dish (NONE: no delivery), the place of its order and the time that this had left."""
    places = along(np.arange(ORDER_PLACES, dtype=np.int8), book.dish)

    def served() -> tuple[Book, Array, Array]:
        place = jnp.where((book.dish == dish) & (dish > 0), places, ORDER_PLACES).min(0)
        left = jnp.where(places == place, book.left, 0).sum(0, dtype=jnp.int16)
        streak = jnp.where(dish > 0, jnp.where(place == 0, book.streak + 1, 0), book.streak).astype(jnp.int16)
        count = (book.dish > 0).sum(0, dtype=jnp.int32)
        # The orders behind it move up, and a new one follows.
        kept = Book(
            dish=jnp.where(places >= place, _moved_up(book.dish), book.dish),
            left=jnp.where(places >= place, _moved_up(book.left), book.left),
            next_recipe=book.next_recipe,
            streak=streak,
        )
        return _filled(kept, jnp.where(place < ORDER_PLACES, count, 0)), place, left

    def nothing() -> tuple[Book, Array, Array]:
        return book, jnp.full_like(dish, ORDER_PLACES), jnp.zeros(dish.shape, jnp.int16)

    # Most steps bring no delivery in any episode of a batch.
    return jax.lax.cond((dish > 0).any(), served, nothing)


def _moved_up(values: Int[Array, " Q"]) -> Int[Array, " Q"]:
    return jnp.concatenate([values[1:], jnp.zeros_like(values[:1])])


def _without(book: Book, gone: Bool[Array, " Q"]) -> Book:
    """The orders without those that are `gone`; the others move up."""
    places = along(np.arange(ORDER_PLACES, dtype=np.int8), gone)
    before = [(~gone[:q]).sum(0, dtype=jnp.int8) for q in range(ORDER_PLACES)]
    dish, left = jnp.zeros_like(book.dish), jnp.zeros_like(book.left)
    for q in range(ORDER_PLACES):
        goes_to = (places == before[q]) & ~gone[q]
        dish, left = jnp.where(goes_to, book.dish[q], dish), jnp.where(goes_to, book.left[q], left)
    return replace(book, dish=dish, left=left)


def _filled(book: Book, wanted: Int[Array, ""]) -> Book:
    """3.3: new orders at the end of the list until there are as many as wanted."""
    places = along(np.arange(ORDER_PLACES, dtype=np.int32), book.dish)
    count = (book.dish > 0).sum(0, dtype=jnp.int32)
    is_new = (places >= count) & (places < wanted)
    recipe = book.next_recipe + 1 + jnp.maximum(places - count, 0)
    recipe = jnp.where(recipe >= len(RECIPES), recipe - len(RECIPES), recipe)
    last = book.next_recipe + jnp.maximum(wanted - count, 0)
    return replace(
        book,
        dish=jnp.where(is_new, look_up(np.array(RECIPES, np.int8), recipe), book.dish),
        left=jnp.where(is_new, np.int16(ORDER_TIME), book.left),
        next_recipe=jnp.where(last >= len(RECIPES), last - len(RECIPES), last).astype(jnp.int8),
    )


def pass_time(book: Book, t: Int[Array, ""]) -> tuple[Book, Int[Array, ""]]:
    """3.3: the orders at the end of the step that leads to time t, and how many ran out."""
    book = replace(book, left=jnp.maximum(book.left - ORDER_LOSS, 0))
    is_order = book.dish > 0
    gone = is_order & (book.left == 0)
    wanted = 3 * (t > 550).astype(jnp.int32) + (t > 700)

    def changed() -> tuple[Book, Array]:
        expired = gone.sum(0, dtype=jnp.int32)
        streak = jnp.where(expired > 0, 0, book.streak).astype(jnp.int16)
        return _filled(_without(replace(book, streak=streak), gone), wanted), expired

    # The list changes in few steps, in all episodes of a batch at about the same time.
    short = is_order.sum(0, dtype=jnp.int32) < wanted
    return jax.lax.cond(gone.any() | short.any(), changed, lambda: (book, jnp.zeros(t.shape, jnp.int32)))


def cook(
    kitchen: "Kitchen", item: Int[Array, " C"], clock: UInt8[Array, " C"]
) -> tuple[UInt8[Array, " C"], Int[Array, ""], Int[Array, ""]]:
    """3.4: the clocks after a step, how many foods cost a penalty in it, and how many have caught fire."""
    is_food = (item >= Item.STEAK) & (item <= Item.BOILED_RICE)
    after = jnp.where(is_food & (clock < BURNT), clock + np.uint8(1), clock)
    fires = np.flatnonzero((kitchen.terrain == Terrain.POT) | (kitchen.terrain == Terrain.GRILL))
    is_food, clock = is_food[fires], clock[fires]
    burning, caught = is_food & (clock >= BURNT), is_food & (clock == BURNT - 1)
    return after, burning.sum(dtype=jnp.int32), caught.sum(dtype=jnp.int32)


def multiplier(streak: Int[Array, "..."], params: tuple[tuple[int, int], ...]) -> Int[Array, "..."]:
    """5: what a tip is multiplied with; the last value beyond the table."""
    found = jnp.full(streak.shape, params[-1][1], jnp.int32)
    for most, value in reversed(params[:-1]):
        found = jnp.where(streak <= most, value, found)
    return found


def delivery(act: Act, params: tuple[tuple[int, int], ...], unordered: float) -> Array:
    """5: what each player's delivery is worth, 0 without one; float32[A]."""
    tip = jnp.zeros(act.left.shape, jnp.int32) + TIPS[-1][1]
    for least, value in reversed(TIPS[:-1]):
        tip = jnp.where(act.left >= least, value, tip)
    worth = (80 + multiplier(act.streak, params) * tip).astype(jnp.float32)
    worth = jnp.where(act.place < ORDER_PLACES, worth, np.float32(unordered))
    return jnp.where(act.dish > 0, worth, np.float32(0))


def shaped(act: Act, weights: np.ndarray) -> Array:
    """6: what each player earns by the terms; `weights` [A, number of terms]; float32[A]."""
    team, count = weights.shape
    table = np.concatenate([np.zeros((team, 1)), weights], 1).astype(np.float32).reshape(-1)
    term = act.reports >> 16 & 31
    value = look_up(table, along(np.arange(team, dtype=np.int32) * (count + 1), term) + term)
    assembly = along(weights[:, TERMS.index("food_assembly")].astype(np.float32), term)
    return value + jnp.where(act.reports >> 21 & 1, assembly, np.float32(0))
