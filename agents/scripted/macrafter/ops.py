"""Op rows: how decisions are said to the skills.

Axes: A agents, Q squads, S places in a squad, W width of an op row.  All of these ops end after one step.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter import waves
from jaxcoop.agents.scripted.macrafter.maps import Maps, at
from jaxcoop.agents.scripted.macrafter.squads import Squads
from jaxcoop.agents.scripted.macrafter.targets import Target
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import DELTA_X, DELTA_Y, PLACES, Action, Item, Material, State

WIDTH = 5


def row(kind: Op, *arguments: int) -> np.ndarray:
    """An op row."""
    return np.array([kind, *arguments, *[-1] * (WIDTH - 1 - len(arguments))], np.int32)


def where(who: Bool[Array, " A"], row: Array | np.ndarray, ops: Int[Array, "A W"]) -> Int[Array, "A W"]:
    """The ops with `row` for some agents."""
    return jnp.where(who[:, None], row, ops)


def joint(squads: Squads, target: Target) -> Int[Array, "A W"]:
    """The op that collects the squad's target."""
    item = jnp.full_like(target.kind, -1)
    for kind, what in (
        (Material.TREE, Item.WOOD),
        (Material.STONE, Item.STONE),
        (Material.COAL, Item.COAL),
        (Material.IRON, Item.IRON),
        (Material.DIAMOND, Item.DIAMOND),
    ):
        item = jnp.where(target.kind == kind, what, item)
    one, none = jnp.ones_like(item), jnp.full_like(item, -1)
    rows = jnp.stack([one * Op.COLLECT, item, target.cell + 1, one, none], axis=1)
    return squads.by_agent(jnp.broadcast_to(rows[:, None], (squads.count, squads.size, WIDTH)))


def first_steps(settings: Settings, state: State, maps: Maps, way: waves.Way) -> Int[Array, "A W"]:
    """The op that takes each agent nearer to its goal; NOOP without a way."""
    width = settings.width
    d = jnp.maximum(way.direction, 0)
    x = state.x.astype(jnp.int32) + jnp.asarray(DELTA_X, jnp.int32)[d]
    y = state.y.astype(jnp.int32) + jnp.asarray(DELTA_Y, jnp.int32)[d]
    cleared, water, agent = (
        at(jnp.broadcast_to(cells, maps.own.shape), width, x, y)
        for cells in (maps.tree | maps.stone | maps.cow, maps.water, maps.agent)
    )
    bridge = water & (state.facing == d) & ~agent
    one, none = jnp.ones_like(d), jnp.full_like(d, -1)
    ops = jnp.stack([one * Op.MOVE, d + Action.MOVE_LEFT, one, none, none], axis=1)
    ops = where(cleared & ~agent, row(Op.COLLECT, -1, -1, 1), ops)
    ops = where(bridge, row(Op.PLACE, PLACES.index("stone")), ops)
    return where(way.direction == waves.NOWHERE, row(Op.NOOP), ops)
