"""Classic Overcooked: codes, state and what a step reports.

Axes: A players, C = W H cells in reading order, K players that are looked at.
Section numbers refer to docs/envs/overcooked.md.
"""

from enum import IntEnum

import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxcoop.cooperation import Attempts, Totals

TERRAIN = " XOTDPS"
"""1: terrain characters by code."""


class Terrain(IntEnum):
    """1: what a cell is."""

    FLOOR = 0
    COUNTER = 1
    ONIONS = 2
    TOMATOES = 3
    DISHES = 4
    POT = 5
    SERVING = 6


class Action(IntEnum):
    """What a player can do; any other number stays.  The first four are `Direction`s."""

    NORTH = 0
    SOUTH = 1
    EAST = 2
    WEST = 3
    STAY = 4
    INTERACT = 5


ACTION_NAMES = ("north", "south", "east", "west", "stay", "interact")

MAX_INGREDIENTS = 3

RECIPES = ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3))
"""2: onions and tomatoes of each soup, by size."""


class Item(IntEnum):
    """2: what can be held, lie on a counter or be in a pot; `SOUP + r` is soup r of `RECIPES`."""

    NONE = 0
    ONION = 1
    TOMATO = 2
    DISH = 3
    SOUP = 4


FULL = Item.SOUP + 5
"""Soups from here on have three ingredients."""

ITEMS = Item.SOUP + len(RECIPES)
"""Number of item codes."""

INGREDIENTS = (Item.ONION, Item.TOMATO)

ONIONS_IN, TOMATOES_IN = (np.array([0] * Item.SOUP + [recipe[k] for recipe in RECIPES], np.int8) for k in (0, 1))
"""Ingredients of the soups, by item."""

READY = 1
"""Clock of a pot whose soup is ready; `READY + k`: k steps before that; 0: nothing cooks in it."""

MAX_TIME = 126
"""Longest time of cooking; what is left of it goes into observations of int8."""

EVENTS = (
    "tomato_pickup",
    "useful_tomato_pickup",
    "tomato_drop",
    "useful_tomato_drop",
    "potting_tomato",
    "onion_pickup",
    "useful_onion_pickup",
    "onion_drop",
    "useful_onion_drop",
    "potting_onion",
    "dish_pickup",
    "useful_dish_pickup",
    "dish_drop",
    "useful_dish_drop",
    "soup_pickup",
    "soup_delivery",
    "soup_drop",
    "optimal_onion_potting",
    "optimal_tomato_potting",
    "viable_onion_potting",
    "viable_tomato_potting",
    "catastrophic_onion_potting",
    "catastrophic_tomato_potting",
    "useless_onion_potting",
    "useless_tomato_potting",
)
"""7: names of what an interaction is logged as, in the order of the bits of `Events.logged`."""


class Stage(IntEnum):
    """8: what a pot waits for."""

    FILL = 0  # for ingredients, or somebody who starts it half full
    START = 1  # for empty hands that start it
    COOK = 2  # for nobody
    SERVE = 3  # for a dish


STAGES = ("fill", "start", "cook", "serve")


@struct.dataclass
class Counts:
    """What happened in the episode so far; int32."""

    deliveries: Int[Array, ""]  # soups
    unordered: Int[Array, ""]  # those that nobody had ordered, worth 0
    placements: Int[Array, ""]  # ingredients put into pots
    cooked: Int[Array, ""]  # soups whose cooking began
    pickups: Int[Array, ""]  # soups taken out of pots
    collisions: Int[Array, ""]  # steps in which nobody moved because two met


@struct.dataclass
class State:
    """2: an episode."""

    cell: Int[Array, " A"]  # int16
    facing: Int[Array, " A"]  # Direction; int8
    held: Int[Array, " A"]  # item; int8
    item: Int[Array, " C"]  # item on each cell; only counters and pots have any; int8
    clock: UInt8[Array, " C"]  # of pots: 0 idle, `READY`, or `READY` and the steps that are left
    t: Int[Array, ""]  # steps taken; int32
    score: Float[Array, ""]  # sparse reward of the team so far
    shaped: Float[Array, ""]  # sum of all players' shaped rewards so far, not multiplied
    counts: Counts
    attempts: Totals


@struct.dataclass
class Events:
    """What happened in a step."""

    sparse: Float[Array, " A"]  # value of what each player delivered
    shaped: Float[Array, " A"]  # 6; not multiplied
    logged: UInt32[Array, " A"]  # bit k: `EVENTS[k]`
    moved: Bool[Array, " A"]  # stands in another cell
    collided: Bool[Array, ""]  # 4.2: two players met, so nobody moved
    attempts: Attempts  # 8


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    steps: Int[Array, ""]
    score: Float[Array, ""]
    shaped: Float[Array, ""]
    counts: Counts
    attempts: Totals
