"""3: what players see: the lossless encoding as planes of small numbers.

Axes: A players, K players that look, H rows, W columns, C = W H cells, L = 5 A + 16 layers.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.overcooked.interact import CHANGES, COOKING, PHASES, Tables
from jaxcoop.envs.overcooked.layouts import Kitchen
from jaxcoop.envs.overcooked.rules import field, front_of, look_up
from jaxcoop.envs.overcooked.types import (
    ITEMS,
    ONIONS_IN,
    READY,
    TOMATOES_IN,
    Action,
    Item,
    State,
    Terrain,
)

URGENT = 40
"""The last layer is on when fewer steps than this are left."""

TERRAIN_LAYERS = (Terrain.POT, Terrain.COUNTER, Terrain.ONIONS, Terrain.TOMATOES, Terrain.DISHES, Terrain.SERVING)

LAYERS = (
    "own_cell",
    "other_cell",
    *(f"{who}_faces_{direction}" for who in ("own", "other") for direction in ("north", "south", "east", "west")),
    "pots",
    "counters",
    "onion_dispensers",
    "tomato_dispensers",
    "dish_dispensers",
    "serving",
    "onions_in_pot",
    "tomatoes_in_pot",
    "onions_in_soup",
    "tomatoes_in_soup",
    "time_left",
    "soup_done",
    "dishes",
    "onions",
    "tomatoes",
    "urgency",
)
"""Names of the layers for two players."""


def observe(
    kitchen: Kitchen, max_steps: int, state: State, agents: Int[Array, " K"] | None = None
) -> Int[Array, "K H W L"]:
    """The layers of each player, itself first and then the others in order; int8."""
    grid, team = kitchen.grid, state.cell.shape[0]
    is_pot = jnp.asarray(kitchen.terrain == Terrain.POT)
    is_at = state.cell[:, None] == np.arange(grid.cells, dtype=np.int16)  # [A, C]
    carried = jnp.where(is_at, state.held[:, None], 0).sum(0, dtype=jnp.int8)
    # Nobody stands on a counter or a pot, so that one plane holds what lies and what is carried.
    item = state.item + carried
    onions, tomatoes = look_up(ONIONS_IN, item), look_up(TOMATOES_IN, item)
    is_open = is_pot & (state.clock == 0)  # takes ingredients, unless it is full
    done = (item >= Item.SOUP) & jnp.where(is_pot, state.clock == READY, True)
    planes = [
        *(jnp.asarray(kitchen.terrain == terrain) for terrain in TERRAIN_LAYERS),
        jnp.where(is_open, onions, 0),
        jnp.where(is_open, tomatoes, 0),
        jnp.where(is_open, 0, onions),
        jnp.where(is_open, 0, tomatoes),
        jnp.where(state.clock > 0, state.clock - np.uint8(READY), np.uint8(0)),
        done,
        item == Item.DISH,
        item == Item.ONION,
        item == Item.TOMATO,
        jnp.broadcast_to(max_steps - state.t < URGENT, item.shape),
    ]
    shared = jnp.stack([plane.astype(jnp.int8) for plane in planes], -1)  # [C, 16]
    faces = is_at[:, None] & (state.facing[:, None, None] == np.arange(4, dtype=np.int8)[:, None])  # [A, 4, C]
    agents = jnp.arange(team, dtype=jnp.int32) if agents is None else agents
    # Row k: k, then the others in order.
    order = np.array([[k, *(i for i in range(team) if i != k)] for k in range(team)], np.int32)
    order = jnp.asarray(order)[agents]  # [K, A]
    own = jnp.moveaxis(is_at[order], 1, -1)  # [K, C, A]
    looks = jnp.moveaxis(faces[order].reshape(len(agents), 4 * team, grid.cells), 1, -1)
    shared = jnp.broadcast_to(shared, (len(agents), *shared.shape))
    layers = jnp.concatenate([own.astype(jnp.int8), looks.astype(jnp.int8), shared], -1)
    return layers.reshape(len(agents), grid.height, grid.width, layers.shape[-1])


def legal(kitchen: Kitchen, tables: Tables, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 6"]:
    """Staying, directions that turn the player or lead to floor, and interactions that do something."""
    cell, facing, held = (x if agents is None else x[agents] for x in (state.cell, state.facing, state.held))
    directions = np.arange(4, dtype=np.int8)
    turns = facing[:, None] != directions
    is_floor = look_up(kitchen.grid.steps.T, cell) != cell[:, None]
    front = front_of(kitchen, cell, facing)
    case = (look_up(kitchen.terrain, front).astype(jnp.int32) * ITEMS + held) * ITEMS + state.item[front]
    case = case * PHASES + jnp.minimum(state.clock[front], COOKING)
    acts = field(look_up(tables.changes, case), CHANGES)
    found = jnp.ones((cell.shape[0], len(Action)), jnp.bool_)
    return found.at[:, :4].set(turns | is_floor).at[:, Action.INTERACT].set(acts)
