"""2: what collecting each resource takes, as a short text or a TOML file, and the sizes that follow from the world's.

A task text lists `resource:agents` or `resource:agents:tools`, joined by commas; tools joined by `+` are all needed, by
`|` any of them will do: `tree:1,coal:2:wood_pickaxe,iron:3:stone_pickaxe|iron_pickaxe`.  A resource that is not
listed takes one agent and no tool.
"""

import dataclasses
import math
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxcoop.core.registry import brief, unknown
from jaxcoop.envs.macrafter.types import Item, Material, Thing

COLLECTABLE: Mapping[str, int] = MappingProxyType(
    {
        "tree": Material.TREE,
        "stone": Material.STONE,
        "coal": Material.COAL,
        "iron": Material.IRON,
        "diamond": Material.DIAMOND,
        "water": Material.WATER,
        "cow": Thing.COW,
    }
)
"""What can be collected, with its code; the first five are scored tasks."""

TOOLS: Mapping[str, int] = MappingProxyType(
    {"wood_pickaxe": Item.WOOD_PICKAXE, "stone_pickaxe": Item.STONE_PICKAXE, "iron_pickaxe": Item.IRON_PICKAXE}
)

BASE_POINTS: Mapping[int, int] = MappingProxyType(
    {Material.TREE: 1, Material.STONE: 10, Material.COAL: 25, Material.IRON: 25, Material.DIAMOND: 80}
)
"""13: points of a unit before the factors for agents and tool."""

MAX_AGENTS = 1024
MAX_FILE = 1_000_000
"""Bytes of a file of requirements."""

MAX_CELLS = 32_767
"""Cells are numbered with int16."""

CHUNK = 12
"""11: side of a chunk."""

TASKS: Mapping[str, str] = MappingProxyType(
    {
        "paper": "tree:1,stone:1:wood_pickaxe,coal:2:wood_pickaxe,iron:3:stone_pickaxe,diamond:3:iron_pickaxe",
        # The original mentions three levels (mostly 1, mostly 2, up to 3 or 4 agents) without giving numbers; these
        # are our own.
        "level1": "tree:1,stone:1:wood_pickaxe,coal:1:wood_pickaxe,iron:1:stone_pickaxe,diamond:2:iron_pickaxe",
        "level2": "tree:1,stone:2:wood_pickaxe,coal:2:wood_pickaxe,iron:2:stone_pickaxe,diamond:2:iron_pickaxe",
        "level3": "tree:1,stone:2:wood_pickaxe,coal:3:wood_pickaxe,iron:3:stone_pickaxe,diamond:4:iron_pickaxe",
    }
)
"""Named task texts."""


@dataclasses.dataclass(frozen=True)
class Requirement:
    """What collecting one resource takes."""

    agents: int = 1  # p
    tools: tuple[str, ...] = ()
    any_tool: bool = False  # one of the tools is enough

    @property
    def tier(self) -> int:
        """13: 0 without a tool, 1 to 3 for the pickaxes; the best one of several."""
        return max((list(TOOLS).index(tool) + 1 for tool in self.tools), default=0)

    def text(self, resource: str) -> str:
        """Entry of a task text."""
        joined = ("|" if self.any_tool else "+").join(self.tools)
        return f"{resource}:{self.agents}" + (f":{joined}" if joined else "")


def checked(resource: str, agents: Any, tools: tuple[Any, ...], any_tool: bool) -> Requirement:
    """A requirement; raises `ValueError` for an unknown resource or tool and for a number of agents out of range."""
    if resource not in COLLECTABLE:
        raise unknown("resource", resource, COLLECTABLE)
    if isinstance(agents, bool) or not isinstance(agents, int) or not 1 <= agents <= MAX_AGENTS:
        raise ValueError(f"agents {brief(agents)} of {resource}: must be a whole number from 1 to {MAX_AGENTS:,}")
    for tool in tools:
        if not isinstance(tool, str) or tool not in TOOLS:
            raise unknown(f"tool of {resource}", tool, TOOLS)
    if len(set(tools)) != len(tools):
        raise ValueError(f"tools {list(tools)} of {resource}: each may be named once")
    return Requirement(agents, tuple(str(tool) for tool in tools), any_tool and len(tools) > 1)


def parsed_text(text: str) -> dict[str, Requirement]:
    """Requirements of a task text; raises `ValueError` naming what is wrong with it."""
    found: dict[str, Requirement] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        parts = entry.split(":")
        if len(parts) not in (2, 3):
            raise ValueError(
                f"requirements {brief(entry)}: must be resource:agents or resource:agents:tools, a name "
                f"({', '.join(TASKS)}) or the path of a TOML file"
            )
        resource, number, tools = parts[0], parts[1], parts[2] if len(parts) == 3 else ""
        if resource in found:
            raise ValueError(f"requirements {brief(entry)}: {resource} is listed twice")
        if "|" in tools and "+" in tools:
            raise ValueError(f"tools {brief(tools)} of {resource}: join them by + (all) or by | (any), not by both")
        names = tuple(filter(None, tools.replace("|", "+").split("+")))
        agents = int(number) if re.fullmatch(r"-?[0-9]{1,9}", number.strip()) else number
        found[resource] = checked(resource, agents, names, "|" in tools)
    return found


def parsed_file(path: Path) -> dict[str, Requirement]:
    """Requirements of a TOML file with a table `resources.<name>` for each: `agents`, `tools`, `mode` ("all", "any").

    Raises `ValueError` for a file that cannot be read, for unknown keys and for values out of range.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise ValueError(f"it has {path.stat().st_size:,} bytes; must be at most {MAX_FILE:,}")
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"requirements {brief(str(path))}: the file cannot be read ({error})") from None
    for key in content:
        if key != "resources":
            raise unknown(f"key in {path}", key, ("resources",))
    resources = content.get("resources", {})
    if not isinstance(resources, dict):
        raise ValueError(f"resources {brief(resources)} in {path}: must be tables [resources.<name>]")
    found: dict[str, Requirement] = {}
    for resource, entry in resources.items():
        if not isinstance(entry, dict):
            raise ValueError(
                f"{brief(resource)} {brief(entry)} in {path}: must be a table with agents and perhaps tools"
            )
        for key in entry:
            if key not in ("agents", "tools", "mode"):
                raise unknown(f"key of {resource} in {path}", key, ("agents", "tools", "mode"))
        mode, tools = entry.get("mode", "all"), entry.get("tools", [])
        if not isinstance(mode, str) or mode not in ("all", "any"):
            raise unknown(f"mode of {resource}", mode, ("all", "any"))
        tools = [tools] if isinstance(tools, str) else tools
        if not isinstance(tools, list):
            raise ValueError(f"tools {brief(tools)} of {resource}: must be a list of {', '.join(TOOLS)}")
        found[resource] = checked(resource, entry.get("agents", 1), tuple(tools), mode == "any")
    return found


def canonical(tasks: str) -> str:
    """The task text that a preset name, a task text or the path of a TOML file stands for, in a fixed order.

    Raises `ValueError` for anything else.
    """
    if not isinstance(tasks, str):
        raise ValueError(f"requirements {brief(tasks)}: must be a text; names: {', '.join(TASKS)}")
    if tasks in TASKS:
        return TASKS[tasks]
    if tasks.lower().endswith(".toml"):
        found = parsed_file(Path(tasks))
    elif ":" in tasks or not tasks:
        found = parsed_text(tasks)
    else:
        raise unknown("requirements", tasks, (*TASKS, "a task text", "a .toml file"))
    return ",".join(found[name].text(name) for name in COLLECTABLE if name in found)


@lru_cache(maxsize=64)
def requirements(tasks: str) -> Mapping[int, Requirement]:
    """Requirement of every collectable code under a task text."""
    found = parsed_text(tasks)
    return MappingProxyType({code: found.get(name, Requirement()) for name, code in COLLECTABLE.items()})


@lru_cache(maxsize=64)
def half_points(tasks: str) -> np.ndarray:
    """13: v of a unit of each `Material` in halves of a point, int32[13]; 0 where nothing is scored.

    v = base * p * (1 + tier / 2), so halves are exact.
    """
    halves = np.zeros(len(Material), np.int32)
    for code, base in BASE_POINTS.items():
        need = requirements(tasks)[code]
        halves[code] = base * need.agents * (2 + need.tier)
    halves.setflags(write=False)
    return halves


def offsets(distance: int) -> np.ndarray:
    """7: steps (dx, dy) to the R = 2D(D+1) cells within Manhattan distance D but the own one, in order; int16[R, 2]."""
    span = range(-distance, distance + 1)
    return np.array([(dx, dy) for dx in span for dy in span if 0 < abs(dx) + abs(dy) <= distance], np.int16).reshape(
        -1, 2
    )


def chunk_grid(width: int, height: int) -> tuple[int, int]:
    """11: chunks along x and along y."""
    return -(-width // CHUNK), -(-height // CHUNK)


def cow_slots(width: int, height: int, mode: str) -> tuple[int, int]:
    """Slots for cows of the start and for later ones (C0, C1); C = C0 + C1.

    A start has Binomial(grass cells, 0.015) cows; grass is 0.43 +- 0.06 of a 64 x 64 world, and the smaller the world,
    the more its share varies.  Six standard deviations are kept: more cows come up in less than one of 1e6 worlds and
    are left out.  Balancing keeps about one cow to two chunks (11).
    """
    cells = width * height
    grass, spread = 0.45 * cells, 0.06 * 64 * math.sqrt(cells)
    grass, spread = (0.75 * cells, 0.1 * cells) if cells <= 24 * 24 else (grass, spread)
    mean = 0.015 * grass
    first = mean + 5.8 * math.sqrt(mean + (0.015 * spread) ** 2) + (2 if cells <= 24 * 24 else 0)
    columns, rows = chunk_grid(width, height)
    late = 0.85 * columns * rows
    return (0 if mode == "grassland" else 8 * round(first / 8 + 0.25)), 8 * math.ceil(late / 8)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the rules need to know of an environment; static."""

    agents: int
    width: int
    height: int
    tasks: str  # canonical task text
    mode: str = "default"
    vitals: bool = True
    distance: int = 1  # D
    team_score: bool = True
    balance: bool = True
    bag: int = 0  # 0: no limit
    max_steps: int = 200
    end_on_death: bool = True
    terminate_on_diamond: bool = False

    @property
    def cells(self) -> int:
        """W * H; as an index it means nowhere."""
        return self.width * self.height

    @property
    def cow_slots(self) -> tuple[int, int]:
        """C0 and C1."""
        return cow_slots(self.width, self.height, self.mode)

    @property
    def actors(self) -> int:
        """Cows and agents in the order in which they act: C0 cows of the start, A agents, C1 later cows."""
        return self.agents + sum(self.cow_slots)
