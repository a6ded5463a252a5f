"""The Burrito kitchen: codes, state and what a step reports.

Axes: A players, C = W H cells in reading order, Q = 4 places of the order list.
Section numbers refer to the Burrito behaviour notes, docs/envs/burrito.md.
"""

from enum import IntEnum

from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxcoop.cooperation import Attempts, Totals

TERRAIN = " XSMZTRDPBGWU"
"""1.1: terrain characters by code."""


class Terrain(IntEnum):
    """1.1: what a cell is."""

    FLOOR = 0
    COUNTER = 1
    SERVING = 2
    MEAT = 3
    MUSHROOM = 4
    TORTILLA = 5
    RICE = 6
    DIRTY_PLATES = 7
    POT = 8
    BOARD = 9
    GRILL = 10
    SINK = 11
    TRASH = 12


class Action(IntEnum):
    """1.3: what a player can do; any other number stays.  The first four are `Direction`s."""

    NORTH = 0
    SOUTH = 1
    EAST = 2
    WEST = 3
    STAY = 4
    INTERACT = 5


ACTION_NAMES = ("north", "south", "east", "west", "stay", "interact")


class Item(IntEnum):
    """1.2: what can be held or lie on a cell."""

    NONE = 0
    DIRTY_PLATE = 1
    CLEAN_PLATE = 2
    MEAT = 3
    MUSHROOM = 4
    TORTILLA = 5
    RICE = 6
    CHOPPED_MEAT = 7
    CHOPPED_MUSHROOM = 8
    RICE_PLATE = 9
    STEAK_PLATE = 10
    FRIED_MUSHROOM_PLATE = 11
    TORTILLA_PLATE = 12
    RICE_TORTILLA_PLATE = 13
    STEAK_TORTILLA_PLATE = 14
    FRIED_MUSHROOM_TORTILLA_PLATE = 15
    STEAK_RICE_PLATE = 16
    FRIED_MUSHROOM_RICE_PLATE = 17
    STEAK_BURRITO = 18
    MUSHROOM_BURRITO = 19
    CHARCOAL = 20
    STEAK = 21  # on a grill only
    FRIED_MUSHROOM = 22  # on a grill only
    BOILED_RICE = 23  # in a pot only
    FIRE_EXT = 24
    STACK_PLATE = 25  # a dirty plate from the D stack; behaves as DIRTY_PLATE, only observations tell them apart (2)


ITEM_NAMES = (
    "none",
    "dirty_plate",
    "clean_plate",
    "meat",
    "mushroom",
    "tortilla",
    "rice",
    "chopped_meat",
    "chopped_mushroom",
    "boiled_rice-plate",
    "chopped_steak-plate",
    "fried_mushroom-plate",
    "tortilla-plate",
    "boiled_rice-tortilla-plate",
    "chopped_steak-tortilla-plate",
    "fried_mushroom-tortilla-plate",
    "chopped_steak-boiled_rice-plate",
    "fried_mushroom-boiled_rice-plate",
    "steak_burrito",
    "mushroom_burrito",
    "charcoal",
    "chopped_steak",
    "fried_mushroom",
    "boiled_rice",
    "fire_ext",
)
"""1.2: names by `Item`; a `STACK_PLATE` is called a dirty plate too."""


class Dish(IntEnum):
    """3.3: what can be ordered."""

    NONE = 0
    STEAK = 1
    MUSHROOM = 2


DISH_NAMES = ("none", "steak_burrito", "mushroom_burrito")

CHOPS, RINSES = 2, 3
COOK, WAIT, WARN = 80, 80, 60

# The three timers of food on the fire run one after the other, so that one clock tells all of them (3.4): food that was
# put on in step t has clock k in state t + k.
READY = COOK
WARNING = COOK + 1 + WAIT
BURNT = WARNING + 1 + WARN
"""Clock of food on the fire from which on it is ready, in warning, burnt; it stands still then."""

ORDER_TIME, ORDER_LOSS, ORDER_PLACES = 1200, 2, 4
PLATE_LIMIT = 4
MAX_PLAYERS = 16

TERMS = (
    "place_tortilla_on_plate",
    "pickup_dish_from_sink",
    "pickup_chopped_ingredient_from_chopboard",
    "place_ingredient_on_grill",
    "pickup_cooked_ingredient_from_grill",
    "place_ingredient_on_pot",
    "pickup_cooked_ingredient_from_pot",
    "extinguish_fire",
    "place_charcoal_on_trash",
    "wash_dish",
    "pickup_tortilla",
    "pickup_rice",
    "pickup_meat",
    "pickup_mushroom",
    "chop_ingredient",
    "food_assembly",
    "serve_dish",
)
"""6: terms of the shaped reward that a player earns by an interaction."""


@struct.dataclass
class Draws:
    """3.2: the randomness of a step: of players who want the same cell those with the larger number win."""

    priority: UInt32[Array, " A"]


@struct.dataclass
class Counts:
    """What happened in the episode so far; int32."""

    in_order: Int[Array, ""]  # dishes delivered in order (4.9)
    out_of_order: Int[Array, ""]
    unordered: Int[Array, ""]
    fires: Int[Array, ""]  # foods that burnt
    extinguished: Int[Array, ""]
    expired: Int[Array, ""]  # orders that nobody served


@struct.dataclass
class State:
    """2: an episode."""

    cell: Int[Array, " A"]  # int16
    facing: Int[Array, " A"]  # Direction; int8
    held: Int[Array, " A"]  # Item; int8
    item: Int[Array, " C"]  # Item lying on each cell; int8
    clock: UInt8[Array, " C"]  # chops, rinses, or time on the fire (`READY`, …); 0 without such an item
    plates: Int[Array, ""]  # dirty plates in the stack; int8
    dish: Int[Array, " Q"]  # Dish of each order, first the next one, NONE at the end; int8
    left: Int[Array, " Q"]  # its remaining time, 0 without an order; int16
    next_recipe: Int[Array, ""]  # cursor into the recipe cycle; int8
    streak: Int[Array, ""]  # in-order deliveries in a row; int16
    t: Int[Array, ""]  # steps taken; int32
    score: Float[Array, ""]  # sparse reward of the team so far
    counts: Counts
    attempts: Totals


@struct.dataclass
class Events:
    """What happened in a step."""

    sparse: Float[Array, " A"]  # 5: everybody gets half of each delivery
    shaped: Float[Array, " A"]  # 6
    terms: UInt32[Array, " A"]  # bit k: `TERMS[k]`
    logged: Int[Array, "A 3"]  # 10: indices into `EVENTS`, -1: none; int8
    moved: Bool[Array, " A"]
    burning: Int[Array, ""]  # 3.4: burnt foods that cost a penalty in this step; int32
    attempts: Attempts


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    steps: Int[Array, ""]
    score: Float[Array, ""]
    counts: Counts
    attempts: Totals
