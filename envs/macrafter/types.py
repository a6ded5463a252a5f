"""MA-Crafter, a cooperative crafting world: codes, state and what a step reports.

Axes: A agents, W x H cells (x is the column and the first axis, y the row, growing downwards), C cow slots, R = 2D(D+1)
cells in reach of a collector, S station slots, P plant slots, N words of 32 chunks.
A cell has the index `x * H + y`; its id as a task is the index, its id in prompts is one more (12.1).
Section numbers refer to the MA-Crafter behaviour notes, docs/envs/macrafter.md.
"""

from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt16, UInt32


class Material(IntEnum):
    """1: what a cell is made of."""

    NONE = 0
    WATER = 1
    GRASS = 2
    STONE = 3
    PATH = 4
    SAND = 5
    TREE = 6
    LAVA = 7
    COAL = 8
    IRON = 9
    DIAMOND = 10
    TABLE = 11
    FURNACE = 12


class Thing(IntEnum):
    """1: codes of objects, continuing the materials; the others of the original never appear."""

    PLAYER = 13
    COW = 14
    PLANT = 18


class Action(IntEnum):
    """1: the primitive actions; any other number does nothing."""

    NOOP = 0
    MOVE_LEFT = 1
    MOVE_RIGHT = 2
    MOVE_UP = 3
    MOVE_DOWN = 4
    DO = 5
    SLEEP = 6
    PLACE_STONE = 7
    PLACE_TABLE = 8
    PLACE_FURNACE = 9
    PLACE_PLANT = 10
    MAKE_WOOD_PICKAXE = 11
    MAKE_STONE_PICKAXE = 12
    MAKE_IRON_PICKAXE = 13
    MAKE_WOOD_SWORD = 14
    MAKE_STONE_SWORD = 15
    MAKE_IRON_SWORD = 16
    SHARE = 17


class Item(IntEnum):
    """1: inventory entries."""

    HEALTH = 0
    FOOD = 1
    DRINK = 2
    ENERGY = 3
    SAPLING = 4
    WOOD = 5
    STONE = 6
    COAL = 7
    IRON = 8
    DIAMOND = 9
    WOOD_PICKAXE = 10
    STONE_PICKAXE = 11
    IRON_PICKAXE = 12
    WOOD_SWORD = 13
    STONE_SWORD = 14
    IRON_SWORD = 15


class Achievement(IntEnum):
    """1: counters of what an agent has done."""

    COLLECT_COAL = 0
    COLLECT_DIAMOND = 1
    COLLECT_DRINK = 2
    COLLECT_IRON = 3
    COLLECT_SAPLING = 4
    COLLECT_STONE = 5
    COLLECT_WOOD = 6
    DEFEAT_SKELETON = 7
    DEFEAT_ZOMBIE = 8
    EAT_COW = 9
    EAT_PLANT = 10
    MAKE_IRON_PICKAXE = 11
    MAKE_IRON_SWORD = 12
    MAKE_STONE_PICKAXE = 13
    MAKE_STONE_SWORD = 14
    MAKE_WOOD_PICKAXE = 15
    MAKE_WOOD_SWORD = 16
    PLACE_FURNACE = 17
    PLACE_PLANT = 18
    PLACE_STONE = 19
    PLACE_TABLE = 20
    WAKE_UP = 21


class Reason(IntEnum):
    """10: why an action failed.  The last three are those of symbolic actions."""

    NONE = 0
    NOTHING_IN_RANGE = 1
    MISSING_TOOL = 2
    TOO_FEW_AGENTS = 3
    NO_SHARE_REQUEST = 4
    HEALTH_NOT_SHAREABLE = 5
    INVALID_INDEX = 6
    SELF_SHARE = 7
    REMOVED = 8
    NONE_AVAILABLE = 9
    REQUIREMENTS = 10
    MISSING_RESOURCES = 11
    NO_ADJACENT_TARGET = 12
    UNKNOWN_ITEM = 13
    NO_PATH = 20
    TIMEOUT = 21
    COLLECTED_OTHER = 22


def _names(enum: type[IntEnum]) -> tuple[str, ...]:
    return tuple(member.name.lower() for member in enum)


MATERIAL_NAMES = _names(Material)
ACTION_NAMES = _names(Action)
ITEM_NAMES = _names(Item)
ACHIEVEMENT_NAMES = _names(Achievement)
THING_NAMES = {thing.value: thing.name.lower() for thing in Thing}
DIRECTION_NAMES = ("left", "right", "up", "down")

DELTA_X = np.array([-1, 1, 0, 0], np.int16)
DELTA_Y = np.array([0, 0, -1, 1], np.int16)
"""1: the step of each direction; the move of direction d is action d + 1."""

DOWN = 3
"""1: initial facing."""

CAPS = np.array([9] * 4 + [20] * 12, np.int32)
"""1: largest number of each item."""

START_INVENTORY = np.array([9] * 4 + [0] * 12, np.int8)

RESOURCES = (Material.TREE, Material.STONE, Material.COAL, Material.IRON, Material.DIAMOND)
"""2: the scored resources."""

RESOURCE_ITEMS = (Item.WOOD, Item.STONE, Item.COAL, Item.IRON, Item.DIAMOND)
"""13: what the scored resources give, and whose rise is rewarded."""

PLACES = ("stone", "table", "furnace", "plant")
"""8: what can be placed; `PLACE_STONE + k` places number k."""

MATERIAL_MASK = 0x0F
RESOURCE_SHIFT = 4
RESOURCE_MASK = 0x70
PLANT_BIT = 0x80
"""A cell's byte: its material in bits 0 to 3, in bits 4 to 6 one more than the index into `RESOURCES` of the resource
that was last consumed there (0: none), in bit 7 whether a plant stands there."""

STATIONS = 32
"""S: tables, and furnaces, that get a local id."""

PLANTS = 8
"""P: plants that get an id.  Saplings are in no world, only in inventories given from outside."""


def material_of(cells: UInt8[Array, "..."]) -> UInt8[Array, "..."]:
    """`Material` of cells of the map."""
    return cells & MATERIAL_MASK


def has_plant(cells: UInt8[Array, "..."]) -> Bool[Array, "..."]:
    """Whether a plant stands there."""
    return cells >= PLANT_BIT


@struct.dataclass
class Command:
    """What the symbolic layer asks for in one step: primitives with requests beside them (5)."""

    action: Int[Array, " A"]  # Action; int32
    share: Int[Array, "A 4"]  # 9: present (not 0), recipient, Item, quantity; int32
    place: Int[Array, " A"]  # 8.2: number in `PLACES`, below 0: no request; int32
    target: Int[Array, " A"]  # 14: cell index of the collect target that is declared, -1: none; int32
    plan: Int[Array, " A"]  # 14: cell index of the task that the agent's plan names, -1: none; int32


@struct.dataclass
class Last:
    """10: how the actions of the last step ended; zeros before the first step, as for an agent that is removed."""

    status: Int[Array, " A"]  # 1 success, 0 failed, -1 not listed (removed before the step); int8
    reason: Int[Array, " A"]  # Reason, int8
    need: Int[Array, " A"]  # TOO_FEW_AGENTS: p, else 0; int8
    have: Int[Array, " A"]  # TOO_FEW_AGENTS: able agents, else 0; int8 (127 stands for more too)
    changed: UInt16[Array, " A"]  # bit k: the number of Item k is another one than before the step
    risen: UInt32[Array, " A"]  # bit k: Achievement k has risen
    took: UInt16[Array, " A"]  # bit k: collected a cell of Material k; bit 14: a cow
    blocked: Int[Array, " A"]  # 7: block note, MISSING_TOOL or TOO_FEW_AGENTS, also beside a success; -1 none; int8
    blocked_need: Int[Array, " A"]  # of that note; int8
    blocked_have: Int[Array, " A"]
    placed: Int[Array, " A"]  # cell index where something was placed, by request or not; -1 none; int16
    shared: Int[Array, " A"]  # quantity that a share request moved, -99: none did; int16


@struct.dataclass
class State:
    """4: an episode."""

    material: UInt8[Array, "W H"]  # bytes of cells, see `MATERIAL_MASK`
    cow_x: Int[Array, " C"]  # -1: free slot; int16.  First C0 slots: cows of the start; the rest: later ones, which
    cow_y: Int[Array, " C"]  # move after the players; both in order of creation
    cow_id: Int[Array, " C"]  # 12.1: int32, -1: free slot
    x: Int[Array, " A"]  # int16, where it was last once removed; -1: found no grass to start on (removed)
    y: Int[Array, " A"]
    facing: Int[Array, " A"]  # direction; int8
    inventory: Int[Array, "A 16"]  # int8
    achievements: Int[Array, "A 22"]  # int16
    counters: Int[Array, "A 4"]  # 6: hunger, thirst, fatigue, recover in units of 1/2; int16
    sleeping: Bool[Array, " A"]
    last_health: Int[Array, " A"]  # 6, V4; int8
    removed: Bool[Array, " A"]
    paid: Int[Array, "A 5"]  # 13: `RESOURCE_ITEMS` when last rewarded; int8
    unlocked: UInt32[Array, ""]  # 13: bit k: the team has been rewarded for Achievement k
    touched: UInt32[Array, " N"]  # 11: bit k of word w: some object has been in chunk 32 w + k (chunk x outer, y inner)
    t: Int[Array, ""]  # steps taken; int32
    score: Float[Array, ""]  # 13: team score
    next_id: Int[Array, ""]  # 12.1: the next object's id; int32
    agent_id: Int[Array, ""]  # 12.1: id of agent 0, those of the others follow; int32
    table: Int[Array, " S"]  # cell index of the table with local id k + 1, -1: none; int16
    furnace: Int[Array, " S"]
    plant: Int[Array, " P"]  # cell index of a plant, -1: none; int16
    plant_id: Int[Array, " P"]  # 12.1: int32
    last: Last
    attempts: Any  # 14: running totals of the attempt events (jaxcoop.cooperation.Totals)


@struct.dataclass
class Draws:
    """The random numbers of a step."""

    cow: Int[Array, " C"]  # direction that each cow tries, -1: stays; int8
    balance: Any  # 11: draws of the cow balancing (balance.BalanceDraws); None when it is off


@struct.dataclass
class Events:
    """What happened in a step."""

    collected: Int[Array, "A R"]  # 7: Material (or Thing.COW) of the cells in reach that the agent got; 0 none; int8
    died: Bool[Array, " A"]  # removed in this step
    placed: Int[Array, " A"]  # as in `Last`
    diamonds: Int[Array, ""]  # diamonds received by all agents


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    steps: Int[Array, ""]
    score: Float[Array, ""]
    achievements: Int[Array, "A 22"]
    deaths: Int[Array, ""]
    attempts: Any  # as in the state


def as_command(actions: Int[Array, " A"]) -> Command:
    """Primitives without requests."""
    none = jnp.full(actions.shape, -1, jnp.int32)
    return Command(actions, jnp.zeros((*actions.shape, 4), jnp.int32), none, none, none)
