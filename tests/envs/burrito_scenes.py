"""Scenes in the Burrito kitchen for tests: players in front of things, and one compiled step for each configuration.

XXBBXDSSXX   The kitchen `OPEN`; x to the right, y down, (0, 0) is the top left corner.
X        X
X        W
X  RZMT  X
U        X
X        X
XXPPXXGGXX
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxcoop.envs.burrito import Burrito, interact
from jaxcoop.envs.burrito.types import CHOPS, RINSES, TERMS, Action, Draws, Item, Terrain

NORTH, SOUTH, EAST, WEST, STAY, INTERACT = map(int, Action)
OPEN = Burrito()
BOARD, STACK, WINDOW, SINK, TRASH, POT, GRILL = (2, 0), (5, 0), (6, 0), (9, 2), (0, 4), (2, 6), (6, 6)
RICE, MUSHROOM, MEAT, TORTILLA, COUNTER = (3, 3), (4, 3), (5, 3), (6, 3), (0, 1)


def scene(*targets, env=OPEN, held=(), lying=(), **fields):
    """A state: each player beside the cell (x, y) it looks at, or anywhere (None); `lying`: (x, y) -> item or (item,
    clock) in an otherwise empty kitchen; `fields` of the state.
    """
    state, grid = env.reset(jax.random.key(0)), env.kitchen.grid
    cells, facings = [], []
    for target in targets:
        cell, facing = (None, NORTH) if target is None else _beside(grid, grid.cell(*target), cells)
        cells.append(cell)
        facings.append(facing)
    free = (int(c) for c in np.flatnonzero(grid.floor)[::-1] if c not in cells)
    cells = [next(free) if cell is None else cell for cell in cells]
    item, clock = np.zeros(grid.cells, np.int8), np.zeros(grid.cells, np.uint8)
    for place, thing in dict(lying).items():
        item[grid.cell(*place)], clock[grid.cell(*place)] = thing if isinstance(thing, tuple) else (thing, 0)
    hands = [*held, *[0] * (env.num_agents - len(held))]
    fields = {"cell": cells, "facing": facings, "held": hands, "item": item, "clock": clock} | fields
    return state.replace(**{name: jnp.asarray(value, getattr(state, name).dtype) for name, value in fields.items()})


def _beside(grid, target, taken):
    """A free cell from which somebody looks at the target, and the direction."""
    around = [(int(grid.ahead[d, target]), d ^ 1) for d in range(4)]
    return next((cell, d) for cell, d in around if grid.floor[cell] and cell not in taken)


@cache
def compiled(env):
    """`env.step` with a priority for each player."""
    return jax.jit(lambda state, actions, priority: env.step(state, actions, Draws(priority)))


def step(state, *actions, env=OPEN, priority=None):
    """One step, with numpy leaves."""
    priority = np.zeros(env.num_agents, np.uint32) if priority is None else np.asarray(priority, np.uint32)
    return jax.device_get(compiled(env)(state, np.asarray(actions, np.int32), priority))


def there(state, place, env=OPEN):
    """(item, clock) of a cell."""
    cell = env.kitchen.grid.cell(*place)
    return int(state.item[cell]), int(state.clock[cell])


def hands(state):
    return [Item(h) for h in np.asarray(state.held).tolist()]


def places(state, env=OPEN):
    return [(c % env.kitchen.grid.width, c // env.kitchen.grid.width) for c in np.asarray(state.cell).tolist()]


def events_of(done, player=0):
    """Names of the events of a player."""
    return {interact.EVENTS[k] for k in np.asarray(done.events.logged)[player].tolist() if k >= 0}


def terms_of(done, player=0):
    """Names of the terms of a player."""
    return {name for k, name in enumerate(TERMS) if int(np.asarray(done.events.terms)[player]) >> k & 1}


FOODS = {Terrain.POT: [Item.BOILED_RICE], Terrain.GRILL: [Item.STEAK, Item.FRIED_MUSHROOM]}
PORTABLE = [item for item in Item if item not in interact.COOKED]


def random_states(env, rng, count):
    """Drawn states [count]: anything that can lie somewhere or be held, players anywhere, two to four orders."""
    grid, terrain, team = env.kitchen.grid, env.kitchen.terrain, env.num_agents
    item, clock = np.zeros((count, grid.cells), np.int8), np.zeros((count, grid.cells), np.uint8)
    for cell in np.flatnonzero(terrain):
        kind = Terrain(terrain[cell])
        if kind == Terrain.COUNTER:
            item[:, cell] = rng.choice(PORTABLE, count)
        elif kind == Terrain.BOARD:
            item[:, cell] = rng.choice([0, Item.CHOPPED_MEAT, Item.CHOPPED_MUSHROOM], count)
            clock[:, cell] = rng.integers(0, CHOPS + 1, count)
        elif kind == Terrain.SINK:
            item[:, cell] = rng.choice([0, Item.DIRTY_PLATE, Item.CLEAN_PLATE], count)
            clock[:, cell] = np.where(item[:, cell] == Item.DIRTY_PLATE, rng.integers(0, RINSES, count), 0)
        elif kind in FOODS:
            item[:, cell] = rng.choice([0, Item.CHARCOAL, *FOODS[kind] * 3], count)
            clock[:, cell] = np.where(
                item[:, cell] >= Item.STEAK, rng.choice([1, 79, 80, 160, 161, 221, 222], count), 0
            )
    clock *= item > 0
    floor = np.flatnonzero(grid.floor).astype(np.int16)
    left = rng.integers(1, 600, (count, 4)) * 2
    orders = np.arange(4) < rng.integers(2, 5, (count, 1))
    fields = {
        "cell": np.stack([rng.permutation(floor)[:team] for _ in range(count)]),
        "facing": rng.integers(0, 4, (count, team)),
        "held": rng.choice(PORTABLE, (count, team)),
        "item": item,
        "clock": clock,
        "plates": rng.integers(0, 5, count),
        "dish": orders * rng.integers(1, 3, (count, 4)),
        "left": orders * left,
        "streak": rng.integers(0, 7, count),
    }
    start = jax.tree.map(lambda x: np.broadcast_to(x, (count, *x.shape)), env.reset(jax.random.key(0)))
    return start.replace(**{name: value.astype(getattr(start, name).dtype) for name, value in fields.items()})
