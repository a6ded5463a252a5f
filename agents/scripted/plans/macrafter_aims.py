"""What each agent of MA-Crafter needs next for itself.

Axes: A agents, T station slots.  Everybody makes its own tools, one after the other: wood for all of them first, then
stone, then what the squad collects together.
"""

from enum import IntEnum

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter.needs import FURNACE_STONE, NEAR, TABLE_WOOD, USES, Team
from jaxcoop.agents.scripted.macrafter.squads import PICKAXES, Squads
from jaxcoop.agents.scripted.macrafter.vitals import LIFE, WOUND
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.types import Item, Material, State

LOW = {Item.DRINK: 3, Item.FOOD: 3, Item.ENERGY: 2}
"""Levels up to which an agent looks after itself, unless it lasts until the end anyway."""


class Aim(IntEnum):
    """What a plan is for."""

    REST = 0
    STONE = 1
    WOOD = 2
    MEET = 3  # collect with the squad
    CRAFT = 4
    SLEEP = 5
    EAT = 6
    DRINK = 7
    ORE = 8  # for which it lacks the tool: a mistake


@struct.dataclass
class Wants:
    """Where each agent stands."""

    aim: Int[Array, " A"]  # without regard to the squad; Aim
    is_free: Bool[Array, " A"]  # has nothing more urgent to do than to meet the squad
    tier: Int[Array, " A"]  # the next of `PICKAXES` to make, 3: none
    puts: Bool[Array, " A"]  # it puts up a station for it
    station: Int[Array, " A"]  # slot of the nearest one
    is_there: Bool[Array, " A"]  # which is near enough to use
    lacks: dict[int, Bool[Array, " A"]]  # whether the agent needs coal or iron for its next tool


def wants_of(settings: Settings, squads: Squads, state: State, team: Team) -> Wants:
    """The next thing for everybody."""
    held = state.inventory.astype(jnp.int32)
    wood, stone, coal, iron = (held[:, item] for item in (Item.WOOD, Item.STONE, Item.COAL, Item.IRON))
    missing = jnp.stack([(held[:, tool] == 0) & want for tool, want in zip(PICKAXES, squads.wants, strict=True)])
    tier = jnp.where(missing.any(0), jnp.argmax(missing, 0), 3).astype(jnp.int32)
    at_furnace = tier == 2
    distance, there = (
        jnp.where(at_furnace, squads.by_agent(a), squads.by_agent(b))
        for a, b in ((team.furnace, team.table), (team.at_furnace, team.at_table))
    )
    puts = (distance > NEAR) & ~there

    # The first table stands where the trees are, another one where the stone is; both are paid for at once.
    table = TABLE_WOOD * ((tier < 2) & puts) + TABLE_WOOD * ((tier == 0) & missing[1])
    lacks_wood = wood < missing.sum(0) + table
    furnace = FURNACE_STONE * (at_furnace & puts)
    uses = jnp.asarray(np.concatenate([USES, np.zeros((1, 4), np.int32)]))[tier]
    lacks_stone = stone < uses[:, 1] + furnace
    lacks = {int(Material.COAL): coal < uses[:, 2], int(Material.IRON): iron < uses[:, 3]}
    ready = (tier < 3) & ~lacks_wood & ~lacks_stone & ~lacks[Material.COAL] & ~lacks[Material.IRON]

    chops = squads.by_agent(team.able[Material.TREE]) & (Material.TREE in squads.alone)
    mines = squads.by_agent(team.able[Material.STONE]) & (Material.STONE in squads.alone)
    aim = jnp.where(mines, int(Aim.STONE), jnp.where(chops, int(Aim.WOOD), int(Aim.REST)))
    aim = jnp.where(lacks_stone & mines, int(Aim.STONE), aim)
    aim = jnp.where(lacks_wood & chops, int(Aim.WOOD), aim)
    aim = jnp.where(ready, int(Aim.CRAFT), aim)
    grows = (tier < 2) & ((lacks_wood & chops) | (lacks_stone & mines))
    care = _cares(settings, state, held)
    return Wants(
        aim=jnp.where(care > 0, care, aim).astype(jnp.int32),
        is_free=(care == 0) & ~ready & ~grows & ~state.removed,
        tier=tier,
        puts=puts,
        station=_nearest_station(settings, state, at_furnace),
        is_there=there,
        lacks=lacks,
    )


def _cares(settings: Settings, state: State, held: Int[Array, "A 16"]) -> Int[Array, " A"]:
    """What an agent has to do to stay alive; 0: nothing."""
    health = WOUND * (held[:, Item.HEALTH] - 1)
    left = settings.max_steps - state.t

    def is_low(item: Item) -> Bool[Array, " A"]:
        return (held[:, item] <= LOW[item]) & (held[:, item] * LIFE[item] + health < left) & settings.vitals

    care = jnp.where(is_low(Item.ENERGY) | state.sleeping, int(Aim.SLEEP), 0)
    care = jnp.where(is_low(Item.FOOD), int(Aim.EAT), care)
    care = jnp.where(is_low(Item.DRINK), int(Aim.DRINK), care)
    return jnp.where(state.sleeping, int(Aim.SLEEP), care)


def _nearest_station(settings: Settings, state: State, at_furnace: Bool[Array, " A"]) -> Int[Array, " A"]:
    """Slot of the nearest table or furnace; anything without one."""
    cell = jnp.where(at_furnace[:, None], state.furnace, state.table).astype(jnp.int32)  # [A, T]
    x, y = state.x.astype(jnp.int32)[:, None], state.y.astype(jnp.int32)[:, None]
    gap = jnp.abs(cell // settings.height - x) + jnp.abs(cell % settings.height - y)
    return jnp.argmin(jnp.where(cell >= 0, gap, 2**15), 1).astype(jnp.int32)
