"""Numbers and tables of MA-Crafter for the plain simulator (sections 1, 2, 10 and 13)."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

MATERIALS = [
    "none",
    "water",
    "grass",
    "stone",
    "path",
    "sand",
    "tree",
    "lava",
    "coal",
    "iron",
    "diamond",
    "table",
    "furnace",
]
WATER, GRASS, STONE, PATH, SAND, TREE, LAVA, COAL, IRON, DIAMOND, TABLE, FURNACE = range(1, 13)
COW = 14
WALKABLE = frozenset((GRASS, PATH, SAND))

LEFT, RIGHT, UP, DOWN = range(4)
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
SEARCH = (DOWN, RIGHT, LEFT, UP)  # 8.2: after the faced cell

ACTIONS = [
    "noop",
    "move_left",
    "move_right",
    "move_up",
    "move_down",
    "do",
    "sleep",
    "place_stone",
    "place_table",
    "place_furnace",
    "place_plant",
    "make_wood_pickaxe",
    "make_stone_pickaxe",
    "make_iron_pickaxe",
    "make_wood_sword",
    "make_stone_sword",
    "make_iron_sword",
    "share",
]
ACTION = {name: number for number, name in enumerate(ACTIONS)}

ITEMS = [
    "health",
    "food",
    "drink",
    "energy",
    "sapling",
    "wood",
    "stone",
    "coal",
    "iron",
    "diamond",
    "wood_pickaxe",
    "stone_pickaxe",
    "iron_pickaxe",
    "wood_sword",
    "stone_sword",
    "iron_sword",
]
ITEM = {name: number for number, name in enumerate(ITEMS)}
CAPS = (9,) * 4 + (20,) * 12
START = (9,) * 4 + (0,) * 12

ACHIEVEMENTS = [
    "collect_coal",
    "collect_diamond",
    "collect_drink",
    "collect_iron",
    "collect_sapling",
    "collect_stone",
    "collect_wood",
    "defeat_skeleton",
    "defeat_zombie",
    "eat_cow",
    "eat_plant",
    "make_iron_pickaxe",
    "make_iron_sword",
    "make_stone_pickaxe",
    "make_stone_sword",
    "make_wood_pickaxe",
    "make_wood_sword",
    "place_furnace",
    "place_plant",
    "place_stone",
    "place_table",
    "wake_up",
]
ACHIEVEMENT = {name: number for number, name in enumerate(ACHIEVEMENTS)}


class Reason(IntEnum):
    """Why an action failed or a collection was blocked (section 10)."""

    NONE = 0
    NOTHING_IN_RANGE = 1
    MISSING_TOOL = 2
    REQUIRES_AGENTS = 3
    NO_SHARE_REQUEST = 4
    HEALTH_NOT_SHAREABLE = 5
    INVALID_INDEX = 6
    SELF_SHARE = 7
    REMOVED = 8
    NONE_AVAILABLE = 9
    REQUIREMENTS_NOT_MET = 10
    MISSING_PLACE_RESOURCES = 11
    NO_ADJACENT_TARGET = 12
    UNKNOWN_ITEM = 13


class Task(NamedTuple):
    """What the collection of a resource takes."""

    agents: int = 1
    tools: tuple[str, ...] = ()
    any_tool: bool = False  # one of the tools is enough

    def can(self, inventory: Sequence[int]) -> bool:
        """Whether somebody with these things may take part."""
        held = [inventory[ITEM[tool]] > 0 for tool in self.tools]
        return not held or (any(held) if self.any_tool else all(held))


def tasks_of(text: str) -> dict[int, Task]:
    """Tasks of a text like `tree:1,coal:2:wood_pickaxe`; several tools are joined by + (all) or | (any)."""
    tasks = {}
    for entry in filter(None, text.split(",")):
        resource, agents, tools = [*entry.split(":"), ""][:3]
        names = tuple(filter(None, tools.replace("|", "+").split("+")))
        tasks[COW if resource == "cow" else MATERIALS.index(resource)] = Task(int(agents), names, "|" in tools)
    return tasks


PAPER_TASKS = {
    TREE: Task(1),
    STONE: Task(1, ("wood_pickaxe",)),
    COAL: Task(2, ("wood_pickaxe",)),
    IRON: Task(3, ("stone_pickaxe",)),
    DIAMOND: Task(3, ("iron_pickaxe",)),
}


class Yield(NamedTuple):
    """What every participant of a collection receives."""

    item: int
    amount: int
    achievement: int


def _yield(item: str, amount: int, achievement: str) -> Yield:
    return Yield(ITEM[item], amount, ACHIEVEMENT[achievement])


YIELDS = {
    WATER: _yield("drink", 1, "collect_drink"),
    STONE: _yield("stone", 1, "collect_stone"),
    TREE: _yield("wood", 1, "collect_wood"),
    COAL: _yield("coal", 1, "collect_coal"),
    IRON: _yield("iron", 1, "collect_iron"),
    DIAMOND: _yield("diamond", 1, "collect_diamond"),
    COW: _yield("food", 6, "eat_cow"),
}
BECOMES = {WATER: WATER, STONE: PATH, TREE: GRASS, COAL: PATH, IRON: PATH, DIAMOND: PATH}


class Placing(NamedTuple):
    """Cost and ground of a placed thing; `becomes` None: an object."""

    item: int
    amount: int
    on: frozenset[int]
    becomes: int | None
    achievement: int


PLACE = (
    Placing(ITEM["stone"], 1, WALKABLE | {WATER, LAVA}, STONE, ACHIEVEMENT["place_stone"]),
    Placing(ITEM["wood"], 2, WALKABLE, TABLE, ACHIEVEMENT["place_table"]),
    Placing(ITEM["stone"], 4, WALKABLE, FURNACE, ACHIEVEMENT["place_furnace"]),
    Placing(ITEM["sapling"], 1, frozenset((GRASS,)), None, ACHIEVEMENT["place_plant"]),
)


class Recipe(NamedTuple):
    """Station and ingredients of a tool."""

    station: int
    ingredients: tuple[int, ...]  # one unit of each
    item: int
    achievement: int


def _recipe(tool: str, station: int, *ingredients: str) -> Recipe:
    return Recipe(station, tuple(ITEM[name] for name in ingredients), ITEM[tool], ACHIEVEMENT[f"make_{tool}"])


MAKE = (
    _recipe("wood_pickaxe", TABLE, "wood"),
    _recipe("stone_pickaxe", TABLE, "wood", "stone"),
    _recipe("iron_pickaxe", FURNACE, "wood", "coal", "iron"),
    _recipe("wood_sword", TABLE, "wood"),
    _recipe("stone_sword", TABLE, "wood", "stone"),
    _recipe("iron_sword", FURNACE, "wood", "coal", "iron"),
)

_BASE = {"wood": 1, "stone": 10, "coal": 25, "iron": 25, "diamond": 80}
_TIER = {"wood_pickaxe": 1, "stone_pickaxe": 2, "iron_pickaxe": 3}


def unit_score(item: int, task: Task) -> float:
    """13: points of one unit for one participant."""
    tier = max((_TIER[tool] for tool in task.tools), default=0)
    return round(_BASE.get(ITEMS[item], 0) * task.agents * (1 + 0.5 * tier), 3)


PLAIN_SCORE = {"wood": 5, "stone": 50, "coal": 50, "iron": 50, "diamond": 10, "food": 1, "drink": 1}
"""A collector's pay for one unit where there is no team score."""

_PAY = {
    **{"collect_wood": 5, "collect_sapling": 1, "collect_stone": 50, "collect_coal": 50, "collect_iron": 50},
    **{"collect_diamond": 10, "collect_drink": 1, "eat_cow": 1, "make_wood_pickaxe": 20, "make_stone_pickaxe": 30},
    **{"make_iron_pickaxe": 7, "place_table": 10, "place_furnace": 5, "place_stone": 1},
}
ACHIEVEMENT_PAY = tuple(10 * _PAY.get(name, 0) for name in ACHIEVEMENTS)
ITEM_PAY = tuple(
    (ITEM[name], 10 * w) for name, w in (("wood", 5), ("stone", 20), ("coal", 20), ("iron", 50), ("diamond", 100))
)
