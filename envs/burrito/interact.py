"""4: what an interaction does, as one table over (terrain, hand, content of the cell).

The table is made here once, from rules that read like the text; a step looks it up for each player.
"""

import dataclasses
from functools import lru_cache

import numpy as np
from jaxtyping import Int

from jaxcoop.envs.burrito.types import ITEM_NAMES, TERMS, Dish, Item, Terrain

I, T = Item, Terrain  # noqa: E741  the rules below are full of them

COOKED = (I.STEAK, I.FRIED_MUSHROOM, I.BOILED_RICE)

# Contents of a cell: an `Item`, or one of these where the clock matters.
_FOOD = len(Item)  # + 4 k + phase: COOKED[k] that is cooking, ready, in warning, burnt
CHOPPED = _FOOD + 4 * len(COOKED)  # + 0, 1: meat, mushroom that has got all its chops
LAST_RINSE = CHOPPED + 2  # a dirty plate that one more rinse makes clean
CONTENTS = LAST_RINSE + 1
"""Number of contents."""

COOKING, READY, WARNING, BURNT = range(4)
"""Phases of food on the fire."""

DIRTY = (I.DIRTY_PLATE, I.STACK_PLATE)
INGREDIENTS = (I.MEAT, I.MUSHROOM, I.TORTILLA, I.RICE, I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM)

WITH_TORTILLA = {
    I.CLEAN_PLATE: I.TORTILLA_PLATE,
    I.RICE_PLATE: I.RICE_TORTILLA_PLATE,
    I.STEAK_PLATE: I.STEAK_TORTILLA_PLATE,
    I.FRIED_MUSHROOM_PLATE: I.FRIED_MUSHROOM_TORTILLA_PLATE,
    I.STEAK_RICE_PLATE: I.STEAK_BURRITO,
    I.FRIED_MUSHROOM_RICE_PLATE: I.MUSHROOM_BURRITO,
}
"""4.1, 4.3: a plate and a tortilla."""

WITH_RICE = {
    I.CLEAN_PLATE: I.RICE_PLATE,
    I.TORTILLA_PLATE: I.RICE_TORTILLA_PLATE,
    I.FRIED_MUSHROOM_TORTILLA_PLATE: I.MUSHROOM_BURRITO,
    I.STEAK_TORTILLA_PLATE: I.STEAK_BURRITO,
    I.STEAK_PLATE: I.STEAK_RICE_PLATE,
    I.FRIED_MUSHROOM_PLATE: I.FRIED_MUSHROOM_RICE_PLATE,
}
"""4.7: a plate and rice from the pot."""

WITH_GRILLED = {
    I.STEAK: {
        I.CLEAN_PLATE: I.STEAK_PLATE,
        I.TORTILLA_PLATE: I.STEAK_TORTILLA_PLATE,
        I.RICE_PLATE: I.STEAK_RICE_PLATE,
        I.RICE_TORTILLA_PLATE: I.STEAK_BURRITO,
    },
    I.FRIED_MUSHROOM: {
        I.CLEAN_PLATE: I.FRIED_MUSHROOM_PLATE,
        I.TORTILLA_PLATE: I.FRIED_MUSHROOM_TORTILLA_PLATE,
        I.RICE_PLATE: I.FRIED_MUSHROOM_RICE_PLATE,
        I.RICE_TORTILLA_PLATE: I.MUSHROOM_BURRITO,
    },
}
"""4.8: a plate and food from the grill."""

SUPPLIES = {T.MEAT: I.MEAT, T.MUSHROOM: I.MUSHROOM, T.RICE: I.RICE, T.TORTILLA: I.TORTILLA}
CHOPPED_FORM = {I.MEAT: I.CHOPPED_MEAT, I.MUSHROOM: I.CHOPPED_MUSHROOM}
GRILLED_FORM = {I.CHOPPED_MEAT: I.STEAK, I.CHOPPED_MUSHROOM: I.FRIED_MUSHROOM}
SERVED = {I.STEAK_BURRITO: Dish.STEAK, I.MUSHROOM_BURRITO: Dish.MUSHROOM}


@dataclasses.dataclass
class Effect:
    """What one interaction changes; by default nothing."""

    hand: int  # Item afterwards
    lies: int  # Item on the cell afterwards
    clock: int = 0  # added to the clock of the cell
    resets: bool = False  # the clock starts anew at 0
    takes_plate: bool = False  # one plate less in the stack
    dish: int = 0  # Dish that is served
    ends_phase: bool = False  # 3.1: players with a higher index lose their interaction
    events: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


def effect(terrain: Terrain, hand: Item, content: int) -> Effect:
    """4.1 to 4.11."""
    item, phase = item_of(content), phase_of(content)
    result = Effect(hand, item)
    match terrain:
        case T.COUNTER:
            _counter(result, hand, item)
        case T.MEAT | T.MUSHROOM | T.RICE | T.TORTILLA:
            _supply(result, hand, SUPPLIES[terrain])
        case T.DIRTY_PLATES if not hand:
            result.events = ("dirty_plate_pickup",)
            if content:  # plates in the stack
                result.hand, result.takes_plate = I.STACK_PLATE, True
        case T.SINK:
            _sink(result, hand, content)
        case T.TRASH if hand:
            _trash(result, hand)
        case T.POT | T.GRILL:
            _fire(result, terrain, hand, item, phase)
        case T.SERVING if hand in SERVED:
            result.hand, result.dish, result.terms = I.NONE, SERVED[hand], ("serve_dish",)
        case T.BOARD:
            _board(result, hand, content)
    return result


def item_of(content: int) -> Item:
    """The item of a content."""
    if content >= LAST_RINSE:
        return I.DIRTY_PLATE
    if content >= CHOPPED:
        return (I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM)[content - CHOPPED]
    return COOKED[(content - _FOOD) // 4] if content >= _FOOD else I(content)


def phase_of(content: int) -> int:
    """The phase of food on the fire; -1: something else."""
    return (content - _FOOD) % 4 if _FOOD <= content < CHOPPED else -1


def name_of(item: int) -> str:
    """Name as in events."""
    return ITEM_NAMES[I.DIRTY_PLATE if item == I.STACK_PLATE else item]


def _counter(result: Effect, hand: Item, item: Item) -> None:
    """4.1."""
    product = WITH_TORTILLA.get(hand) if item == I.TORTILLA else None
    if hand == I.TORTILLA and item == I.CLEAN_PLATE:
        product = I.TORTILLA_PLATE
    if product is not None:
        result.hand, result.lies = product, I.NONE
        return
    result.hand, result.lies = item, hand
    if hand:
        result.events = (f"{name_of(hand)}_drop",)
        if item:
            result.events = (f"{name_of(hand)}_pickup", f"{name_of(hand)}_drop")
    elif item:
        result.events = (f"{name_of(item)}_pickup",)


def _supply(result: Effect, hand: Item, item: Item) -> None:
    """4.2, 4.3."""
    if not hand:
        result.hand, result.events, result.terms = item, (f"{name_of(item)}_pickup",), (f"pickup_{name_of(item)}",)
    elif item == I.TORTILLA and hand in WITH_TORTILLA:
        result.hand, result.terms = WITH_TORTILLA[hand], ("place_tortilla_on_plate",)


def _sink(result: Effect, hand: Item, content: int) -> None:
    """4.5."""
    item = item_of(content)
    if not hand and item == I.CLEAN_PLATE:
        result.hand, result.lies = I.CLEAN_PLATE, I.NONE
        result.events, result.terms = ("clean_plate_pickup",), ("pickup_dish_from_sink",)
    elif not hand and item in DIRTY:
        result.clock, result.events, result.terms = 1, ("plate_rinsing",), ("wash_dish",)
        if content == LAST_RINSE:
            result.lies, result.resets, result.clock = I.CLEAN_PLATE, True, 0
    elif hand in DIRTY and not item:
        result.hand, result.lies, result.resets = I.NONE, I.DIRTY_PLATE, True
        result.events = ("dirty_plate_drop",)


def _trash(result: Effect, hand: Item) -> None:
    """4.6."""
    if hand in (*INGREDIENTS, I.CHARCOAL):
        result.hand, result.events = I.NONE, (f"{name_of(hand)}_drop", "object_in_trash")
        result.terms = ("place_charcoal_on_trash",) if hand == I.CHARCOAL else ()
    elif hand not in (I.CLEAN_PLATE, *DIRTY, I.FIRE_EXT):
        result.hand, result.events = I.DIRTY_PLATE, ("object_in_trash",)


def _fire(result: Effect, terrain: Terrain, hand: Item, item: Item, phase: int) -> None:
    """4.7, 4.8."""
    place = "pot" if terrain == T.POT else "grill"
    raw = {I.RICE: I.BOILED_RICE} if terrain == T.POT else GRILLED_FORM
    meals = {I.BOILED_RICE: WITH_RICE} if terrain == T.POT else WITH_GRILLED
    burns = phase == BURNT
    if hand == I.FIRE_EXT and burns:
        result.lies, result.resets = I.CHARCOAL, True
        result.events = result.terms = ("extinguish_fire",)
    elif phase in (READY, WARNING) and hand in meals.get(item, {}):
        product = meals[item][hand]
        result.hand, result.lies, result.resets = product, I.NONE, True
        result.events = (f"{name_of(product)}_{place}_pickup",)
        result.terms = (f"pickup_cooked_ingredient_from_{place}",)
        if hand != I.CLEAN_PLATE:
            result.terms += ("food_assembly",)
    elif hand in raw and item in (I.NONE, I.CHARCOAL):
        result.hand, result.lies, result.resets = item, raw[hand], True
        result.events = ("potting_rice" if terrain == T.POT else f"{name_of(raw[hand])}_cooking",)
        result.terms = (f"place_ingredient_on_{place}",)
    elif terrain == T.POT and hand in INGREDIENTS and hand not in raw and not burns:
        result.ends_phase = True
    elif not hand and item == I.CHARCOAL:
        result.hand, result.lies = I.CHARCOAL, I.NONE


def _board(result: Effect, hand: Item, content: int) -> None:
    """4.10."""
    item = item_of(content)
    if not hand and content >= CHOPPED:
        result.hand, result.lies, result.resets = item, I.NONE, True
        result.events = (f"{name_of(item)}_pickup",)
        result.terms = ("pickup_chopped_ingredient_from_chopboard",)
    elif not hand and item in CHOPPED_FORM.values():
        result.clock, result.events, result.terms = 1, ("onion_chopping",), ("chop_ingredient",)
    elif hand in CHOPPED_FORM and not item:
        result.hand, result.lies, result.resets = I.NONE, CHOPPED_FORM[hand], True
        result.events = (f"{name_of(hand)}_chopping",)


UNLOGGED = ("clean_plate_drop",)
"""4: a drop that the reference has no event for."""

DELIVERY_EVENTS = ("dish_delivery", "in_order_dish_delivery", "correct_dish_delivery")


@dataclasses.dataclass(frozen=True)
class Tables:
    """`effect` for every case; `changes` and `reports` are flat over (terrain, hand, content).

    Bits of a word of `changes`: hand 5, lies 5, clock 1, resets 1, takes_plate 1, dish 2, ends_phase 1; of `reports`:
    first event + 1 in 8, second event + 1 in 8, first term + 1 in 5, food_assembly in 1.
    """

    changes: Int[np.ndarray, " K"]
    reports: Int[np.ndarray, " K"]
    events: tuple[str, ...]


@lru_cache(maxsize=1)
def tables() -> Tables:
    """The tables of the kitchen."""
    cases = [
        effect(terrain, hand, content) if exists(terrain, hand, content) else Effect(hand, item_of(content))
        for terrain in T
        for hand in I
        for content in range(CONTENTS)
    ]
    used = {name for case in cases for name in case.events} | set(DELIVERY_EVENTS)
    events = tuple(sorted(used - set(UNLOGGED)))
    changes, reports = np.zeros(len(cases), np.int32), np.zeros(len(cases), np.int32)
    for k, case in enumerate(cases):
        word = case.hand | case.lies << 5 | case.clock << 10 | case.resets << 11 | case.takes_plate << 12
        changes[k] = word | case.dish << 13 | case.ends_phase << 15
        logged = [events.index(name) + 1 for name in case.events if name not in UNLOGGED] + [0, 0]
        terms = [TERMS.index(name) + 1 for name in case.terms if name != "food_assembly"] + [0]
        reports[k] = logged[0] | logged[1] << 8 | terms[0] << 16 | ("food_assembly" in case.terms) << 21
    return Tables(changes, reports, events)


def exists(terrain: Terrain, hand: Item, content: int) -> bool:
    """Whether the case can occur: food on the fire is never held and lies nowhere else."""
    return hand not in COOKED and (terrain in (T.POT, T.GRILL) or item_of(content) not in COOKED)


EVENTS = tables().events
"""10: names of all events that can be logged, sorted."""
