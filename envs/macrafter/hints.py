"""16: what an agent's prompt tells of its surroundings; host side, plain numpy.

Axes: W columns, H rows.  A view is 7 rows of 9 cells centred on the agent.  Take a state of one episode to the host
first (`jax.device_get`), so that every look-up is an array read.
"""

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from jaxcoop.envs.macrafter.config import half_points, requirements
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.skills import BLOCKING
from jaxcoop.envs.macrafter.types import (
    ITEM_NAMES,
    MATERIAL_MASK,
    MATERIAL_NAMES,
    PLANT_BIT,
    RESOURCES,
    Material,
    State,
    Thing,
)

VIEW_COLUMNS, VIEW_ROWS = 9, 7
MAX_TESTED, MAX_TARGETS, MAX_UTILITIES = 48, 8, 3
UTILITY_RADIUS = 1
STATIONS = (Material.TABLE, Material.FURNACE)
UNREACHED = -1


@dataclasses.dataclass(frozen=True)
class Entity:
    """Something in a cell."""

    kind: Literal["material", "object", "agent"]
    id: int  # 12.1
    name: str  # material or object; the number of an agent


@dataclasses.dataclass(frozen=True)
class Target:
    """Something to collect."""

    object_type: str
    item_id: int
    position: tuple[int, int]
    distance: int  # steps to the nearest cell from which it can be collected
    score: float  # points of a unit (13)
    required_agents: int
    required_tool: str | None  # several: joined by + (all) or | (any)
    tool_ready: bool  # the agent holds what is required

    @property
    def purpose(self) -> str:
        """Why one would collect it: "score", or "survival" for food."""
        return "survival" if self.object_type == "cow" else "score"


@dataclasses.dataclass(frozen=True)
class Utility:
    """A table or furnace."""

    object_type: str
    item_id: int  # local id (12.1); 0 when there were none left
    stable_id: int  # id of its cell
    position: tuple[int, int]
    distance: int  # steps until it is within distance 1


class Surroundings:
    """The view of one agent and what it can reach; what is not asked for is not computed.

    An agent that was removed still has the view from its last cell.  Raises `ValueError` for an agent that is not
    one of the team.
    """

    def __init__(self, env: MACrafter, state: State, agent: int) -> None:
        if not 0 <= agent < env.num_agents:
            raise ValueError(f"agent {agent}: must be from 0 to {env.num_agents - 1}")
        self.env, self.state, self.agent = env, state, agent
        self.x, self.y = int(state.x[agent]), int(state.y[agent])
        self.cells = np.asarray(state.material)
        self.inventory = np.asarray(state.inventory)[agent]

    def cells_in_view(self) -> Iterator[tuple[int, int]]:
        """Cells of the view that are inside the world, row by row."""
        left, top = self.x - VIEW_COLUMNS // 2, self.y - VIEW_ROWS // 2
        for y in range(max(top, 0), min(top + VIEW_ROWS, self.cells.shape[1])):
            for x in range(max(left, 0), min(left + VIEW_COLUMNS, self.cells.shape[0])):
                yield x, y

    def view(self) -> list[list[list[Entity]]]:
        """7 rows of 9 cells, each with its material and who or what is on it; empty outside the world."""
        rows: list[list[list[Entity]]] = [[[] for _ in range(VIEW_COLUMNS)] for _ in range(VIEW_ROWS)]
        for x, y in self.cells_in_view():
            cell = rows[y - self.y + VIEW_ROWS // 2][x - self.x + VIEW_COLUMNS // 2]
            cell.append(Entity("material", self.cell_id(x, y), MATERIAL_NAMES[self.material(x, y)]))
            cell += self.things.get((x, y), ())
        return rows

    @cached_property
    def things(self) -> dict[tuple[int, int], list[Entity]]:
        """Objects and agents of the whole world by their cell."""
        state, height = self.state, self.cells.shape[1]
        found: dict[tuple[int, int], list[Entity]] = {}
        for slot in np.flatnonzero(np.asarray(state.cow_x) >= 0):
            place = int(state.cow_x[slot]), int(state.cow_y[slot])
            found.setdefault(place, []).append(Entity("object", int(state.cow_id[slot]), "cow"))
        for slot in np.flatnonzero(np.asarray(state.plant) >= 0):
            place = divmod(int(state.plant[slot]), height)
            found.setdefault(place, []).append(Entity("object", int(state.plant_id[slot]), "plant"))
        for i in np.flatnonzero(~np.asarray(state.removed)):
            place = int(state.x[i]), int(state.y[i])
            found.setdefault(place, []).append(Entity("agent", int(state.agent_id) + int(i), str(i)))
        return found

    def reachable(self) -> list[Target]:
        """At most 8 resources and cows in view that the agent can get to, the nearest first.

        Of the first 48 in the order (tool held, distance in a straight line, name, id, points) those with a way are
        taken, and put in the same order by the length of the way.
        """
        guesses = sorted(self.candidates(), key=_order)[:MAX_TESTED]
        found: list[Target] = []
        for target in guesses:
            steps = self.steps_to(target.position, self.env.distance)
            if steps != UNREACHED:
                found.append(dataclasses.replace(target, distance=steps))
                if len(found) == MAX_TARGETS:
                    break
        return sorted(found, key=_order)

    def candidates(self) -> Iterator[Target]:
        """Every scored cell and cow in view, with the distance in a straight line less the reach."""
        needs, points = requirements(self.env.settings.tasks), half_points(self.env.settings.tasks)
        for x, y in self.cells_in_view():
            material = self.material(x, y)
            cows = [thing.id for thing in self.things.get((x, y), ()) if thing.name == "cow"]
            listed = [(material, MATERIAL_NAMES[material], self.cell_id(x, y), points[material] / 2)]
            listed = listed if material in RESOURCES else []
            listed += [(int(Thing.COW), "cow", ident, 0.0) for ident in cows]
            for code, name, ident, score in listed:
                need = needs[code]
                held = [bool(self.inventory[ITEM_NAMES.index(tool)] > 0) for tool in need.tools]
                yield Target(
                    object_type=name,
                    item_id=ident,
                    position=(x, y),
                    distance=max(0, self.straight(x, y) - self.env.distance),
                    score=round(float(score), 3),
                    required_agents=need.agents,
                    required_tool=("|" if need.any_tool else "+").join(need.tools) or None,
                    tool_ready=not held or (any(held) if need.any_tool else all(held)),
                )

    def stations(self) -> Iterator[Utility]:
        """Tables and furnaces in view, with the distance in a straight line."""
        for x, y in self.cells_in_view():
            material = self.material(x, y)
            if material in STATIONS:
                index = x * self.cells.shape[1] + y
                slots = self.state.table if material == Material.TABLE else self.state.furnace
                local = np.flatnonzero(np.asarray(slots) == index)
                local = int(local[0]) + 1 if local.size else 0
                yield Utility(MATERIAL_NAMES[material], local, index + 1, (x, y), self.straight(x, y))

    def utilities(self) -> list[Utility]:
        """At most 3 tables and furnaces in view that the agent can get to, the nearest first."""
        known = [(self.steps_to(station.position, UTILITY_RADIUS), station) for station in self.stations()]
        found = [dataclasses.replace(station, distance=steps) for steps, station in known if steps != UNREACHED]
        return sorted(found, key=lambda u: (u.distance, u.object_type, u.item_id))[:MAX_UTILITIES]

    def straight(self, x: int, y: int) -> int:
        """Manhattan distance to a cell."""
        return abs(x - self.x) + abs(y - self.y)

    def material(self, x: int, y: int) -> int:
        """`Material` of a cell."""
        return int(self.cells[x, y]) & MATERIAL_MASK

    def cell_id(self, x: int, y: int) -> int:
        """12.1."""
        return x * self.cells.shape[1] + y + 1

    def crossable(self) -> np.ndarray:
        """12.4: cells that the planner may cross, bool[W, H]; the agent's own is one."""
        free = ~np.isin(self.cells & MATERIAL_MASK, BLOCKING) & (self.cells < PLANT_BIT)
        for place in self.things:
            free[place] = False
        free[self.x, self.y] = True
        return free

    @cached_property
    def waves(self) -> list[int]:
        """12.4: the cells at each distance from the agent that it can get to; bit x * (H + 1) + y of an integer.

        Whole maps as integers make a wave a few operations; the row H is never free, so columns do not touch.
        """
        free = np.pad(self.crossable(), ((0, 0), (0, 1)))
        left = int.from_bytes(np.packbits(free, bitorder="little").tobytes(), "little")
        column = free.shape[1]
        wave, found = 1 << (self.x * column + self.y), []
        while wave:
            found.append(wave)
            left &= ~wave
            wave = (wave << 1 | wave >> 1 | wave << column | wave >> column) & left
        return found

    def steps_to(self, place: tuple[int, int], radius: int) -> int:
        """12.4: steps to the nearest cell within `radius` of a place, UNREACHED if there is no way."""
        x, y = place
        if self.straight(x, y) <= radius:
            return 0
        width, height = self.cells.shape
        goals = 0
        for column in range(max(x - radius, 0), min(x + radius + 1, width)):
            reach = radius - abs(column - x)
            for row in range(max(y - reach, 0), min(y + reach + 1, height)):
                goals |= 1 << (column * (height + 1) + row)
        return next((steps for steps, wave in enumerate(self.waves) if wave & goals), UNREACHED)


def _order(target: Target) -> tuple[bool, int, str, int, float]:
    """Targets whose tool is held come first, then the nearer ones."""
    return not target.tool_ready, target.distance, target.object_type, target.item_id, -target.score
