"""4.1, 7: what an interaction does, as one table over (terrain, hand, item of the cell, phase of the pot).

The table is made once for each kitchen, from rules that read like the text; a step looks it up for each player.
"""

import dataclasses
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from jaxcoop.envs.overcooked.layouts import Kitchen
from jaxcoop.envs.overcooked.types import (
    EVENTS,
    FULL,
    INGREDIENTS,
    ITEMS,
    ONIONS_IN,
    READY,
    RECIPES,
    TOMATOES_IN,
    Item,
    Terrain,
)

I, T = Item, Terrain  # noqa: E741  the rules below are full of them

IDLE, DONE, COOKING = range(3)
"""Phases of a pot, the smaller of its clock and 2."""

PHASES = 3

NAMES = {I.ONION: "onion", I.TOMATO: "tomato", I.DISH: "dish"}
SUPPLIES = {T.ONIONS: I.ONION, T.TOMATOES: I.TOMATO, T.DISHES: I.DISH}

# Fields of a word of `Tables.changes`: the lowest bit of each, widths as in `change_word`.
HAND, LIES, CLOCK, CHANGES, PLACES, STARTS, TAKES, DELIVERS, DISH = 0, 4, 8, 16, 17, 18, 19, 20, 21


@dataclasses.dataclass
class Effect:
    """What one interaction changes; by default nothing."""

    hand: int  # item afterwards
    lies: int  # item on the cell afterwards
    clock: int  # of the cell afterwards; that of a pot that is cooking already stays as it is
    places: bool = False  # an ingredient into a pot
    starts: bool = False  # the pot begins to cook
    takes: bool = False  # a soup out of a pot
    delivers: bool = False
    dish: bool = False  # a dish from the dispenser
    events: tuple[str, ...] = ()  # of `EVENTS`, those that depend on others' hands left out


class Tables(NamedTuple):
    """Words by `(terrain, hand, item, phase)`, flat."""

    changes: Int[np.ndarray, " N"]  # fields from `HAND` on; 0 in `CHANGES`: nothing happens
    reports: Int[np.ndarray, " N"]  # bit k: `EVENTS[k]`


def name_of(item: int) -> str:
    """Name as in events."""
    return NAMES[Item(item)] if item < I.SOUP else "soup"


def with_one_more(content: int, ingredient: int) -> int:
    """The soup that a pot holds (NONE: it is empty) after an ingredient."""
    recipe = (ONIONS_IN[content] + (ingredient == I.ONION), TOMATOES_IN[content] + (ingredient == I.TOMATO))
    return I.SOUP + RECIPES.index(recipe)


def effect(kitchen: Kitchen, old_dynamics: bool, terrain: int, hand: int, item: int, phase: int) -> Effect:
    """4.1; `phase` is IDLE except for pots."""
    result = Effect(hand, item, READY if phase == DONE else 0)
    match terrain:
        case T.COUNTER if hand and not item:
            result.hand, result.lies, result.events = I.NONE, hand, (f"{name_of(hand)}_drop",)
        case T.COUNTER if item and not hand:
            result.hand, result.lies, result.events = item, I.NONE, (f"{name_of(item)}_pickup",)
        case T.ONIONS | T.TOMATOES | T.DISHES if not hand:
            result.hand, result.dish = SUPPLIES[T(terrain)], terrain == T.DISHES
            # The reference logs no tomato that is taken from the dispenser.
            result.events = () if terrain == T.TOMATOES else (f"{name_of(result.hand)}_pickup",)
        case T.SERVING if hand >= I.SOUP:
            result.hand, result.delivers, result.events = I.NONE, True, ("soup_delivery",)
        case T.POT if hand == I.DISH and phase == DONE:
            result.hand, result.lies, result.clock = item, I.NONE, 0
            result.takes, result.events = True, ("soup_pickup",)
        case T.POT if not hand and item and phase == IDLE and not old_dynamics:
            result.starts, result.clock = True, READY + int(kitchen.times[item])
        case T.POT if hand in INGREDIENTS and phase == IDLE and item < FULL:
            soup = with_one_more(item, hand)
            result.hand, result.lies, result.places = I.NONE, soup, True
            result.events = potting(kitchen, hand, item, soup)
            if old_dynamics and soup >= FULL:
                result.starts, result.clock = True, READY + int(kitchen.times[soup])
    return result


def potting(kitchen: Kitchen, ingredient: int, before: int, after: int) -> tuple[str, ...]:
    """7: what adding an ingredient is logged as, by what the pot can be worth before and after it."""
    old, new, name = kitchen.best[before], kitchen.best[after], NAMES[Item(ingredient)]
    judged = {"optimal": old == new, "viable": new > 0, "catastrophic": old > 0 and new == 0, "useless": old == 0}
    return (f"potting_{name}", *(f"{kind}_{name}_potting" for kind, holds in judged.items() if holds))


def change_word(result: Effect, is_change: bool) -> int:
    """An effect as a word."""
    flags = (is_change, result.places, result.starts, result.takes, result.delivers, result.dish)
    word = result.hand << HAND | result.lies << LIES | result.clock << CLOCK
    return word | sum(int(flag) << bit for bit, flag in enumerate(flags, start=CHANGES))


@lru_cache(maxsize=64)
def tables(kitchen: Kitchen, old_dynamics: bool) -> Tables:
    """All words of a kitchen; int32."""
    shape = (len(T), ITEMS, ITEMS, PHASES)
    changes, reports = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for case in np.ndindex(shape):
        terrain, hand, item, phase = case
        result = effect(kitchen, old_dynamics, terrain, hand, item, phase)
        is_change = (result.hand, result.lies) != (hand, item) or result.starts
        changes[case] = change_word(result, is_change)
        reports[case] = sum(1 << EVENTS.index(event) for event in result.events)
    return Tables(changes.reshape(-1), reports.reshape(-1))
