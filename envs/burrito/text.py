"""The kitchen in words: what planners read of a state, and what the skills are called; host side, in our own words.

Axes: A players, C cells.  Positions are (x, y), x to the right and y downwards.  Players are called by their index.
Take a state of one episode to the host first (`jax.device_get`).
"""

from typing import Protocol

import numpy as np

from jaxcoop.envs.burrito.layouts import Kitchen
from jaxcoop.envs.burrito.types import (
    BURNT,
    CHOPS,
    COOK,
    DISH_NAMES,
    ORDER_LOSS,
    READY,
    RINSES,
    TERRAIN,
    WARNING,
    Dish,
    Item,
    State,
    Terrain,
)
from jaxcoop.envs.kitchen.grid import Direction

TERRAIN_WORDS = {
    Terrain.FLOOR: "floor",
    Terrain.COUNTER: "counter",
    Terrain.SERVING: "serving window",
    Terrain.MEAT: "meat dispenser",
    Terrain.MUSHROOM: "mushroom dispenser",
    Terrain.TORTILLA: "tortilla dispenser",
    Terrain.RICE: "rice dispenser",
    Terrain.DIRTY_PLATES: "stack of dirty plates",
    Terrain.POT: "pot",
    Terrain.BOARD: "chopping board",
    Terrain.GRILL: "grill",
    Terrain.SINK: "sink",
    Terrain.TRASH: "trash",
}
"""1.1 in words."""

ITEM_WORDS = {
    Item.NONE: "nothing",
    Item.DIRTY_PLATE: "dirty plate",
    Item.CLEAN_PLATE: "clean plate",
    Item.MEAT: "meat",
    Item.MUSHROOM: "mushroom",
    Item.TORTILLA: "tortilla",
    Item.RICE: "rice",
    Item.CHOPPED_MEAT: "chopped meat",
    Item.CHOPPED_MUSHROOM: "chopped mushroom",
    Item.RICE_PLATE: "plate with boiled rice",
    Item.STEAK_PLATE: "plate with steak",
    Item.FRIED_MUSHROOM_PLATE: "plate with fried mushroom",
    Item.TORTILLA_PLATE: "plate with tortilla",
    Item.RICE_TORTILLA_PLATE: "plate with boiled rice and tortilla",
    Item.STEAK_TORTILLA_PLATE: "plate with steak and tortilla",
    Item.FRIED_MUSHROOM_TORTILLA_PLATE: "plate with fried mushroom and tortilla",
    Item.STEAK_RICE_PLATE: "plate with steak and boiled rice",
    Item.FRIED_MUSHROOM_RICE_PLATE: "plate with fried mushroom and boiled rice",
    Item.STEAK_BURRITO: "steak burrito",
    Item.MUSHROOM_BURRITO: "mushroom burrito",
    Item.CHARCOAL: "charcoal",
    Item.STEAK: "steak",
    Item.FRIED_MUSHROOM: "fried mushroom",
    Item.BOILED_RICE: "boiled rice",
    Item.FIRE_EXT: "fire extinguisher",
    Item.STACK_PLATE: "dirty plate",
}
"""1.2 in words."""

SKILL_WORDS = (
    "fry a chopped ingredient on a grill",
    "boil rice in a pot",
    "chop an ingredient on a board",
    "put out a fire with the extinguisher",
    "stay for a step",
    "wash a dirty plate in the sink",
    "throw charcoal into the trash",
    "serve a burrito",
    "get meat",
    "get a mushroom",
    "get a tortilla",
    "get rice",
    "get a dirty plate",
    "get a clean plate",
    "get the fire extinguisher",
    "get a chopped mushroom",
    "get chopped meat",
    "get a plate with one ingredient",
    "get a plate with two ingredients",
    "get a mushroom burrito",
    "get a steak burrito",
    "plate a fried mushroom from a grill",
    "plate steak from a grill",
    "plate boiled rice from a pot",
    "take charcoal off a grill or pot",
    "pass the held item over a shared counter",
    "put the held item down on a counter",
)
"""8.1: the 27 skills in words, by number."""

STATIONS = (Terrain.POT, Terrain.GRILL, Terrain.BOARD, Terrain.SINK, Terrain.DIRTY_PLATES)
"""Stations whose content is listed, in this order."""

_MARKS = "0123456789abcdefghijklmnopqrstuv"


class Place(Protocol):
    """What texts need to know of their environment."""

    @property
    def kitchen(self) -> Kitchen:
        """The layout."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of every episode."""
        ...


def player_name(agent: int) -> str:
    """Name of a player everywhere in texts."""
    return f"player {agent}"


def scene_text(env: Place, state: State, agent: int | None = None) -> str:
    """The whole scene, for one player (`agent`, who is called "you") or for somebody who looks on.

    Raises `ValueError` for a player that there is not.
    """
    count = len(state.cell)
    if agent is not None and not 0 <= agent < count:
        raise ValueError(f"agent {agent!r}: must be from 0 to {count - 1}, or None for an onlooker")
    return "\n".join(
        [
            f"Step {int(state.t)} of {env.horizon}. Score of the team: {float(state.score):g}.",
            *map_lines(env.kitchen, state),
            "Players:",
            *(_player_line(env.kitchen, state, k, k == agent) for k in range(count)),
            "Stations:",
            *_station_lines(env.kitchen, state),
            "On counters:",
            *_counter_lines(env.kitchen, state),
            "Orders, the next one to serve first:",
            *order_lines(state),
        ]
    )


def map_lines(kitchen: Kitchen, state: State) -> list[str]:
    """The floor plan with the players on it, y at the left and the last digit of x above, and a legend."""
    marks = kitchen.grid.characters.copy()
    for k, cell in enumerate(np.asarray(state.cell)):
        marks[cell] = _MARKS[k]
    rows = marks.reshape(kitchen.grid.height, kitchen.grid.width)
    margin = len(str(kitchen.grid.height - 1))
    there = [terrain for terrain in Terrain if terrain != Terrain.FLOOR and (kitchen.terrain == terrain).any()]
    return [
        "Map (x grows to the right, y downwards):",
        " " * (margin + 1) + "".join(str(x % 10) for x in range(kitchen.grid.width)),
        *(f"{y:>{margin}} {''.join(row)}" for y, row in enumerate(rows)),
        "Legend: " + ", ".join(f"{TERRAIN[code]} {TERRAIN_WORDS[code]}" for code in there) + ", 0 1 ... players",
    ]


def position(kitchen: Kitchen, cell: int) -> str:
    """A cell as it is written in texts."""
    return f"({cell % kitchen.grid.width}, {cell // kitchen.grid.width})"


def _player_line(kitchen: Kitchen, state: State, agent: int, is_reader: bool) -> str:
    cell, facing = int(state.cell[agent]), Direction(int(state.facing[agent]))
    holds = ITEM_WORDS[Item(int(state.held[agent]))]
    return (
        f"- {player_name(agent)}{' (you)' if is_reader else ''} at {position(kitchen, cell)}, holds {holds}, "
        f"faces {facing.name.lower()}: {_ahead(kitchen, state, cell, facing)}"
    )


def _ahead(kitchen: Kitchen, state: State, cell: int, facing: Direction) -> str:
    """What is in front of a player."""
    ahead = int(kitchen.grid.ahead[facing, cell])
    if ahead == cell:
        return "the edge of the kitchen"
    others = np.flatnonzero(np.asarray(state.cell) == ahead)
    if len(others):
        return player_name(int(others[0]))
    terrain = Terrain(int(kitchen.terrain[ahead]))
    content = content_text(kitchen, state, ahead)
    return f"{TERRAIN_WORDS[terrain]} {position(kitchen, ahead)}" + (f", {content}" if content else "")


def content_text(kitchen: Kitchen, state: State, cell: int) -> str:
    """What is on or in a cell, with its phase and timer; empty for places that never hold anything."""
    terrain, item, clock = Terrain(int(kitchen.terrain[cell])), Item(int(state.item[cell])), int(state.clock[cell])
    if terrain == Terrain.DIRTY_PLATES:
        return _count(int(state.plates), "plate")
    if terrain not in (Terrain.COUNTER, *STATIONS):
        return ""
    if item == Item.NONE:
        return "empty"
    name = ITEM_WORDS[item]
    if terrain in (Terrain.POT, Terrain.GRILL) and item != Item.CHARCOAL:
        return f"{name}, {_fire_phase(clock)}"
    if terrain == Terrain.BOARD:
        return f"{name}, {clock} of {CHOPS} chops" + (", ready to take" if clock >= CHOPS else "")
    if terrain == Terrain.SINK:
        return f"{name}, ready to take" if item == Item.CLEAN_PLATE else f"{name}, {clock} of {RINSES} rinses"
    return name


def _fire_phase(clock: int) -> str:
    """3.4: the phase of food on the fire."""
    if clock < READY:
        return f"cooking, {clock} of {COOK} steps"
    if clock >= BURNT:
        return "on fire"
    phase = "ready" if clock < WARNING else "about to burn"
    return f"{phase}, on fire in {_count(BURNT - clock, 'step')}"


def _station_lines(kitchen: Kitchen, state: State) -> list[str]:
    return [
        f"- {TERRAIN_WORDS[terrain]} {position(kitchen, int(cell))}: {content_text(kitchen, state, int(cell))}"
        for terrain in STATIONS
        for cell in np.flatnonzero(kitchen.terrain == terrain)
    ] or ["- none"]


def _counter_lines(kitchen: Kitchen, state: State) -> list[str]:
    """Counters with something on them."""
    cells = np.flatnonzero((kitchen.terrain == Terrain.COUNTER) & (np.asarray(state.item) != Item.NONE))
    lines = [f"- {position(kitchen, int(cell))}: {content_text(kitchen, state, int(cell))}" for cell in cells]
    return lines or ["- nothing"]


def order_lines(state: State) -> list[str]:
    """3.3: the orders with the steps that remain for each."""
    orders = [
        f"- {DISH_NAMES[dish].replace('_', ' ')}, {_count(-(-int(left) // ORDER_LOSS), 'step')} left"
        for dish, left in zip(np.asarray(state.dish).tolist(), state.left)
        if dish != Dish.NONE
    ]
    return orders or ["- none"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
