"""16: numeric views for learners, and which primitives can have an effect.

Axes: A agents, K of them that are asked for, W x H cells, V = 9 x 7 cells of a view, T = A - 1 teammates at most.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8

from jaxcoop.envs.macrafter import requests
from jaxcoop.envs.macrafter.claims import is_agent, is_cow, occupancy
from jaxcoop.envs.macrafter.collect import reach
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.objects import positions
from jaxcoop.envs.macrafter.players import CRAFTS, neighbourhood
from jaxcoop.envs.macrafter.types import (
    CAPS,
    DELTA_X,
    DELTA_Y,
    ITEM_NAMES,
    MATERIAL_NAMES,
    PLANT_BIT,
    RESOURCES,
    Action,
    Item,
    Material,
    State,
    Thing,
    material_of,
)

VIEW = (9, 7)
"""Columns and rows of a view, the agent in the middle."""


@struct.dataclass
class Obs:
    """What K agents see; X x Y is 9 x 7 around the agent, or the whole map."""

    material: UInt8[Array, "K X Y"]  # `Material`, 0 outside the world
    thing: UInt8[Array, "K X Y"]  # `Thing` in the cell, 0 none
    agent: Int[Array, "K X Y"]  # one more than the id of the agent in the cell, 0 none; int16
    inventory: Float[Array, "K 16"]  # units / cap
    facing: Int[Array, " K"]  # direction; int8
    sleeping: Bool[Array, " K"]
    daylight: Float[Array, " K"]  # 0 to 1
    x: Int[Array, " K"]  # own cell; int16
    y: Int[Array, " K"]


def legend() -> dict[str, Any]:
    """What the entries of the observations mean, as plain data."""
    things = {0: "none", **{thing.value: thing.name.lower() for thing in Thing}}
    return {
        "axes": {
            "local": ["agent", f"x - 4 .. x + 4 ({VIEW[0]})", f"y - 3 .. y + 3 ({VIEW[1]})"],
            "full": ["agent", "x", "y"],
        },
        "material": dict(enumerate(MATERIAL_NAMES)),
        "thing": things,
        "agent": "one more than the id of the agent in the cell, 0 none",
        "inventory": {name: f"units / {int(cap)}" for name, cap in zip(ITEM_NAMES, CAPS)},
        "facing": {0: "left", 1: "right", 2: "up", 3: "down"},
        "sleeping": "whether the agent is asleep",
        "daylight": "0 (dark) to 1",
        "x": "own column",
        "y": "own row",
    }


def daylight(t: Int[Array, ""]) -> Float[Array, ""]:
    """4: brightness after `t` steps, 0 to 1; it influences the balancing of cows only (`balance.most_cows`)."""
    phase = (t % 300).astype(jnp.float32) / jnp.float32(300)
    return 1 - jnp.abs(jnp.cos(jnp.float32(np.pi) * (phase + jnp.float32(0.3)))) ** 3


def observe(settings: Settings, state: State, agents: Int[Array, " K"] | None = None, *, full: bool = False) -> Obs:
    """Observations of the given agents (default: all); a removed agent sees the surroundings of its last cell."""
    rows = jnp.arange(settings.agents, dtype=jnp.int32) if agents is None else agents
    occupants = occupancy(settings, positions(settings, state))
    cells = state.material.reshape(-1)
    x, y = state.x[rows], state.y[rows]
    shape = (rows.shape[0], settings.width, settings.height)
    if full:
        cell = jnp.arange(settings.cells, dtype=jnp.int32).reshape(1, *shape[1:])
        inside = jnp.ones(cell.shape, jnp.bool_)
    else:
        dx = jnp.arange(VIEW[0], dtype=jnp.int32)[:, None] - VIEW[0] // 2
        dy = jnp.arange(VIEW[1], dtype=jnp.int32)[None, :] - VIEW[1] // 2
        vx, vy = x.astype(jnp.int32)[:, None, None] + dx, y.astype(jnp.int32)[:, None, None] + dy
        inside = (vx >= 0) & (vx < settings.width) & (vy >= 0) & (vy < settings.height)
        cell = jnp.where(inside, vx * settings.height + vy, 0)
        shape = (rows.shape[0], *VIEW)
    byte, occupant = cells[cell], occupants[cell].astype(jnp.int16)
    is_player = is_agent(settings, occupant)
    thing = jnp.where(byte >= PLANT_BIT, jnp.uint8(Thing.PLANT), jnp.uint8(0))
    thing = jnp.where(is_cow(settings, occupant), jnp.uint8(Thing.COW), thing)
    thing = jnp.where(is_player, jnp.uint8(Thing.PLAYER), thing)

    def seen(values: Array) -> Array:
        return jnp.broadcast_to(jnp.where(inside, values, jnp.zeros((), values.dtype)), shape)

    return Obs(
        material=seen(material_of(byte)),
        thing=seen(thing),
        agent=seen(jnp.where(is_player, occupant - jnp.int16(sum(settings.cow_slots)), jnp.int16(0))),
        inventory=state.inventory[rows].astype(jnp.float32) / jnp.asarray(CAPS, jnp.float32),
        facing=state.facing[rows],
        sleeping=state.sleeping[rows],
        daylight=jnp.broadcast_to(daylight(state.t), rows.shape),
        x=x,
        y=y,
    )


def legal(settings: Settings, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 18"]:
    """Which primitives can have an effect now, noop always.

    A move turns the agent at least.  `do` needs something collectable in reach (others may be needed too), placing its
    ingredients and the faced cell, making its ingredients and station.  Sharing needs a request beside it.
    """
    rows = jnp.arange(settings.agents, dtype=jnp.int32) if agents is None else agents
    x, y, inventory = state.x[rows], state.y[rows], state.inventory[rows].astype(jnp.int32)
    cells = state.material.reshape(-1)
    spots = positions(settings, state)
    occupants = occupancy(settings, spots)
    there = ~state.removed[rows]
    is_tired = inventory[:, Item.ENERGY] < CAPS[Item.ENERGY]
    awake = there & ~(state.sleeping[rows] & is_tired)

    near = reach(settings, x, y)
    at = jnp.minimum(near, jnp.int16(settings.cells - 1))
    material = material_of(cells[at])
    found = is_cow(settings, occupants[at])
    for kind in (*RESOURCES, Material.WATER):
        found = found | (material == kind)
    facing = state.facing[rows].astype(jnp.int32) & 3
    fx, fy = x + jnp.asarray(DELTA_X)[facing], y + jnp.asarray(DELTA_Y)[facing]
    inside = (fx >= 0) & (fx < settings.width) & (fy >= 0) & (fy < settings.height)
    faced = jnp.where(inside, fx * settings.height + fy, jnp.int16(0))
    is_empty = inside & (occupants[faced] == 0) & (cells[faced] < PLANT_BIT)
    block = neighbourhood(settings, x, y)
    around = material_of(cells[jnp.minimum(block, jnp.int16(settings.cells - 1))])

    mask = {action: jnp.zeros(rows.shape, jnp.bool_) for action in Action}
    mask[Action.NOOP] = jnp.ones(rows.shape, jnp.bool_)
    for action in (Action.MOVE_LEFT, Action.MOVE_RIGHT, Action.MOVE_UP, Action.MOVE_DOWN):
        mask[action] = awake
    mask[Action.DO] = there & (found & (near < settings.cells)).any(-1)
    mask[Action.SLEEP] = awake & is_tired
    for number in range(len(requests.RECIPES)):
        what = jnp.full(rows.shape, number, jnp.int32)
        fits = is_empty & requests.allowed_ground(what, material_of(cells[faced]))
        mask[Action(Action.PLACE_STONE + number)] = awake & fits & requests.has_ingredients(what, inventory)
    for make, (recipe, station) in CRAFTS.items():
        can = awake & ((around == station) & (block < settings.cells)).any(-1)
        for item, amount in recipe:
            can = can & (inventory[:, item] >= amount)
        mask[make] = can
    return jnp.stack([mask[action] for action in Action], axis=-1)
