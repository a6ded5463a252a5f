"""Orders as cooperative tasks (`jaxcoop.cooperation`).

Axes: A players, M = Q = 4 tasks: task q is the order in place q of the list.

An interaction works on a dish when it takes, puts, treats or serves something that belongs to it: one of its
ingredients, raw or not, its plate, clean or dirty, or any part of it on a plate.  What goes into the trash, charcoal
and the extinguisher belong to no dish.  A player is at the place of an order (spatial) when an interaction with what it
faces would work on its dish, acts on it (temporal) when it does so in this step, and is able to (dependency) when it
holds something that belongs to the dish.  An order takes one player, or two where no connected part of the floor
touches everything that its dish needs, so that things have to be handed over.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation import Attempts, TaskTable
from jaxcoop.core.batching import along
from jaxcoop.envs.burrito import interact, rules
from jaxcoop.envs.burrito.types import ORDER_PLACES, Dish, Item, State, Terrain

if TYPE_CHECKING:
    from jaxcoop.envs.burrito.layouts import Kitchen

I = Item  # noqa: E741
_STEAK = (I.MEAT, I.CHOPPED_MEAT, I.STEAK, I.STEAK_PLATE, I.STEAK_TORTILLA_PLATE, I.STEAK_RICE_PLATE, I.STEAK_BURRITO)
_MUSHROOM = (
    I.MUSHROOM,
    I.CHOPPED_MUSHROOM,
    I.FRIED_MUSHROOM,
    I.FRIED_MUSHROOM_PLATE,
    I.FRIED_MUSHROOM_TORTILLA_PLATE,
    I.FRIED_MUSHROOM_RICE_PLATE,
    I.MUSHROOM_BURRITO,
)
_NOTHING = (I.NONE, I.CHARCOAL, I.FIRE_EXT)

VALUE = np.float32(80)
"""5: what a delivery in any order is worth without its tip."""


def belongs(item: int) -> int:
    """To which dishes an item belongs, bit `dish - 1` each."""
    if item in _NOTHING:
        return 0
    return 1 << (Dish.STEAK - 1) if item in _STEAK else 1 << (Dish.MUSHROOM - 1) if item in _MUSHROOM else 3


@lru_cache(maxsize=1)
def _works() -> tuple[np.ndarray, np.ndarray]:
    """For each case of `interact.tables`: the dishes that it works on as bits, and whether it does anything."""
    works, does = [], []
    for terrain in Terrain:
        for hand in Item:
            for content in range(interact.CONTENTS):
                done = interact.effect(terrain, hand, content)
                before = interact.item_of(content)
                is_moved = done.hand != hand or done.lies != before or done.clock > 0 or done.dish > 0
                taken = done.hand if done.hand and done.hand != hand else hand if done.dish else done.lies
                is_waste = terrain == Terrain.TRASH or not is_moved or not interact.exists(terrain, hand, content)
                works.append(0 if is_waste else belongs(taken))
                does.append(interact.exists(terrain, hand, content) and (is_moved or done.ends_phase))
    return np.array(works, np.int8), np.array(does, np.bool_)


def _case(front: rules.Fronts, held: Int[Array, " A"], plates: Int[Array, ""]) -> Int[Array, " A"]:
    """The case of `interact.tables` that each player's interaction would be."""
    return rules.case_of(front.terrain, held, front.item, front.clock, plates)


def has_effect(kitchen: "Kitchen", state: State) -> Bool[Array, " A"]:
    """Whether an interaction of each player would do anything, taken alone."""
    return rules.look_up(_works()[1], _case(rules.fronts(kitchen, state), state.held, state.plates))


def _dishes(front: rules.Fronts, held: Int[Array, " A"], plates: Int[Array, ""]) -> Int[Array, " A"]:
    """The dishes that each player's interaction would work on, as bits."""
    return rules.look_up(_works()[0], _case(front, held, plates))


def _first(orders: Int[Array, " Q"], dishes: Int[Array, " A"]) -> Int[Array, " A"]:
    """The first order for one of the dishes, -1: none; int32."""
    found = jnp.full(dishes.shape, -1, jnp.int32)
    for place in reversed(range(ORDER_PLACES)):
        found = jnp.where(_is_for(orders[place], dishes), place, found)
    return found


def _is_for(order: Int[Array, ""], dishes: Int[Array, " A"]) -> Bool[Array, " A"]:
    """Whether an order is for one of the dishes."""
    return (order > 0) & ((dishes >> jnp.maximum(order - 1, 0)) & 1 > 0)


def aims(kitchen: "Kitchen", state: State, is_acting: Bool[Array, " A"]) -> Int[Array, " A"]:
    """The order that each player's interaction works on: the first that it can be meant for; -1: none."""
    dishes = _dishes(rules.fronts(kitchen, state), state.held, state.plates)
    return jnp.where(is_acting, _first(state.dish, dishes), -1)


def attempt_events(
    kitchen: "Kitchen",
    front: rules.Fronts,
    held: Int[Array, " A"],
    stock: rules.Stock,
    is_acting: Bool[Array, " A"],
    serves: Bool[Array, " A"],
) -> Attempts:
    """The attempt events of a step; `serves`: players that deliver what was ordered."""
    dishes, orders = _dishes(front, held, stock.plates), stock.book.dish
    named = jnp.where(is_acting, _first(orders, dishes), -1)
    team = named.shape[0]
    same = (named[None] == named[:, None]) & (named >= 0)
    earlier = along(np.arange(team), same, axis=1) < along(np.arange(team), same)
    task = jnp.where((same & earlier).any(1), -1, named)
    first = jnp.where(same, along(np.arange(team), same, axis=1), team).min(1).astype(jnp.int32)
    dish = jnp.zeros(named.shape, jnp.int8)
    for place in range(ORDER_PLACES):
        dish = jnp.where(task == place, orders[place], dish)
    belonging = rules.look_up(np.array([belongs(item) for item in Item], np.int8), held)
    required = jnp.where(dish > 0, _required(kitchen, dish), 0)
    near, able = (_is_for(dish[:, None], has[None]).sum(1, dtype=jnp.int32) for has in (dishes, belonging))
    attempting = jnp.where(task >= 0, same.sum(1, dtype=jnp.int32), 0)
    needed = jnp.maximum(required, 1).astype(jnp.float32)
    return Attempts(
        task=task,
        required=required,
        attempting=attempting,
        success=(same & serves[None]).any(1) & (task >= 0),
        score=jnp.stack([(count / needed).astype(jnp.float32) for count in (near, attempting, able)], 1),
        event=jnp.where(named >= 0, first, -1),
    )


def task_table(kitchen: "Kitchen", state: State) -> TaskTable:
    """The orders: `kind` is the `Dish`, `place` the first serving window, `capability` the burrito to bring."""
    window = int(np.flatnonzero(kitchen.terrain == Terrain.SERVING)[0])
    place = np.array([window % kitchen.grid.width, window // kitchen.grid.width], np.int32)
    kind = state.dish.astype(jnp.int32)
    burrito = jnp.where(kind == Dish.STEAK, int(Item.STEAK_BURRITO), int(Item.MUSHROOM_BURRITO))
    return TaskTable(
        active=kind > 0,
        kind=kind,
        place=jnp.broadcast_to(place, (ORDER_PLACES, 2)),
        required=jnp.where(kind > 0, _required(kitchen, kind), 0),
        capability=jnp.where(kind > 0, burrito, -1),
        value=_values(kind),
    )


def _values(kind: Int[Array, " M"]) -> Float[Array, " M"]:
    return jnp.where(kind > 0, VALUE, np.float32(0))


def _required(kitchen: "Kitchen", dish: Int[Array, "..."]) -> Int[Array, "..."]:
    """p(g) of a dish; int32."""
    steak, mushroom = (_hands(kitchen, d) for d in (Dish.STEAK, Dish.MUSHROOM))
    return jnp.where(dish == Dish.STEAK, np.int32(steak), np.int32(mushroom))


@lru_cache(maxsize=256)
def _hands(kitchen: "Kitchen", dish: Dish) -> int:
    """How many players a dish takes: 2 where no part of the floor touches everything that it needs."""
    source = Terrain.MEAT if dish == Dish.STEAK else Terrain.MUSHROOM
    needed = {source, *(Terrain.RICE, Terrain.TORTILLA, Terrain.BOARD, Terrain.GRILL, Terrain.POT, Terrain.SERVING)}
    grid = kitchen.grid
    for region in range(int(kitchen.regions.max()) + 1):
        touched = np.unique(grid.ahead[:, kitchen.regions == region])
        plates = {item for cell, item in kitchen.objects if cell in touched}
        has_plates = Item.CLEAN_PLATE in plates or Terrain.SINK in kitchen.terrain[touched]
        if has_plates and needed <= set(kitchen.terrain[touched]):
            return 1
    return 2
