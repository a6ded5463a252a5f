"""Classic Overcooked in words: what a planner reads of a kitchen and of a state.  Host side, numpy only.

Positions are `(x, y)` from the top left corner, players are called `player_<index>`.  The wording is our own.
"""

from typing import TYPE_CHECKING

import numpy as np

from jaxcoop.envs.kitchen.grid import Direction
from jaxcoop.envs.overcooked.types import (
    EVENTS,
    FULL,
    MAX_INGREDIENTS,
    ONIONS_IN,
    READY,
    RECIPES,
    TOMATOES_IN,
    Item,
    State,
    Terrain,
)

if TYPE_CHECKING:
    from jaxcoop.envs.overcooked.env import Overcooked

PLACES = {
    Terrain.ONIONS: "onion dispensers",
    Terrain.TOMATOES: "tomato dispensers",
    Terrain.DISHES: "dish dispensers",
    Terrain.POT: "pots",
    Terrain.SERVING: "serving windows",
}

_SIMPLE = {Item.ONION: "onion", Item.TOMATO: "tomato", Item.DISH: "dish"}


def player_name(player: int) -> str:
    """Name of a player everywhere: player_0, player_1, …"""
    return f"player_{player}"


def contents(item: int) -> str:
    """The ingredients of a soup: "2 onions and 1 tomato"."""
    amounts = ((int(ONIONS_IN[item]), "onion", "onions"), (int(TOMATOES_IN[item]), "tomato", "tomatoes"))
    return " and ".join(f"{n} {one if n == 1 else many}" for n, one, many in amounts if n)


def item_text(item: int) -> str:
    """An item with its article; "nothing" for none."""
    if item == Item.NONE:
        return "nothing"
    if item >= Item.SOUP:
        return f"a soup of {contents(item)}"
    return f"{'an' if item == Item.ONION else 'a'} {_SIMPLE[Item(item)]}"


def pot_text(item: int, clock: int) -> str:
    """What is in a pot and what becomes of it."""
    if item == Item.NONE:
        return "empty"
    if clock > READY:
        left = clock - READY
        return f"cooking {contents(item)}, ready in {left} {'step' if left == 1 else 'steps'}"
    if clock == READY:
        return f"a soup of {contents(item)} is ready; it takes a dish to get it out"
    return f"holds {contents(item)}, {'full' if item >= FULL else 'not full'}, not cooking"


def scene(env: "Overcooked", state: State, player: int) -> str:
    """A state as one player reads it, one sentence or list entry a line."""
    grid, kitchen = env.kitchen.grid, env.kitchen
    cell, facing, held, item, clock = (
        np.asarray(x) for x in (state.cell, state.facing, state.held, state.item, state.clock)
    )
    lines = [f"Step {int(state.t)} of {env.max_steps}. Points so far: {float(state.score):g}.", "Players:"]
    for i in range(env.num_agents):
        looks = Direction(int(facing[i])).name.lower()
        front = int(grid.ahead[facing[i], cell[i]])
        you = " (you)" if i == player else ""
        lines.append(
            f"- {player_name(i)}{you}: at {_at(env, int(cell[i]))}, looks {looks} at {_front(env, front)}, "
            f"holds {item_text(int(held[i]))}"
        )
    lines.append("Pots:")
    lines += [f"- pot at {_at(env, int(p))}: {pot_text(int(item[p]), int(clock[p]))}" for p in kitchen.pots]
    lying = [int(c) for c in np.flatnonzero((kitchen.terrain == Terrain.COUNTER) & (item > 0))]
    lines.append("On counters:" if lying else "Nothing lies on the counters.")
    lines += [f"- {item_text(int(item[c]))} at {_at(env, c)}" for c in lying]
    return "\n".join(lines)


def task_text(env: "Overcooked") -> str:
    """The kitchen and the job, as text."""
    kitchen, grid = env.kitchen, env.kitchen.grid
    lines = [
        f"The kitchen has {grid.width} x {grid.height} cells, (0, 0) is the top left one, x grows to the east and y to "
        f"the south. {env.num_agents} {'player works' if env.num_agents == 1 else 'players work'} in it for "
        f"{env.max_steps} steps.",
        "Map (X counter, O onions, T tomatoes, D dishes, P pot, S serving window, blank floor):",
        *grid.rows,
    ]
    for terrain, name in PLACES.items():
        cells = np.flatnonzero(kitchen.terrain == terrain)
        if len(cells):
            lines.append(f"{name[0].upper()}{name[1:]}: {', '.join(_at(env, int(c)) for c in cells)}.")
    if len(kitchen.orders) == len(RECIPES):
        lines.append("Every soup is ordered. Soups and what they are worth:")
    else:
        lines.append("Soups that are ordered, and what they are worth; others are worth nothing:")
    lines += [
        f"- {contents(soup)}: {kitchen.values[soup]:g} points, cooks {int(kitchen.times[soup])} steps"
        for soup in kitchen.orders
    ]
    begins = (
        f"It begins to cook by itself when it has {MAX_INGREDIENTS} ingredients."
        if env.old_dynamics
        else "An interaction with empty hands makes it cook, with any number of ingredients."
    )
    lines += [
        f"Put up to {MAX_INGREDIENTS} ingredients into a pot, one at a time. {begins} When the soup is ready, get it "
        "with a dish and hand it in at a serving window.",
        "Each player carries one thing. An interaction acts on the cell that the player looks at: it takes from "
        "dispensers and counters, and puts down on free counters.",
    ]
    return "\n".join(lines)


def event_names(logged: int) -> tuple[str, ...]:
    """Names of the events of a player in a step (7)."""
    return tuple(name for bit, name in enumerate(EVENTS) if logged >> bit & 1)


def _at(env: "Overcooked", cell: int) -> str:
    return f"({cell % env.kitchen.grid.width}, {cell // env.kitchen.grid.width})"


def _front(env: "Overcooked", cell: int) -> str:
    """What a player looks at."""
    terrain = Terrain(int(env.kitchen.terrain[cell]))
    named = {Terrain.FLOOR: "the floor", Terrain.COUNTER: "the counter"}
    name = named.get(terrain) or f"the {PLACES[terrain][:-1]}"
    return f"{name} {_at(env, cell)}"
