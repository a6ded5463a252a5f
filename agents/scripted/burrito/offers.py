"""What each macro-skill would lead each player to: how far away, and what lies there.

Axes: A players, C cells, T cells that can be a target, K = 27 skills, G connected parts of the floor, I items.
Section numbers refer to the behaviour notes, docs/envs/burrito.md.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.burrito import rules
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.skills import UNREACHABLE
from jaxcoop.envs.burrito.skillset import SKILLS, for_hand, words
from jaxcoop.envs.burrito.types import Item, State, Terrain


class Skill(IntEnum):
    """8.1, in short."""

    FRY = 0
    BOIL = 1
    CHOP = 2
    PUT_OUT_FIRE = 3
    STAY = 4
    WASH = 5
    TRASH = 6
    SERVE = 7
    GRAB_MEAT = 8
    GRAB_MUSHROOM = 9
    GRAB_TORTILLA = 10
    GRAB_RICE = 11
    GRAB_DIRTY_PLATE = 12
    GRAB_CLEAN_PLATE = 13
    GRAB_FIRE_EXT = 14
    GRAB_CHOPPED_MUSHROOM = 15
    GRAB_CHOPPED_MEAT = 16
    GRAB_ONE = 17
    GRAB_TWO = 18
    GRAB_MUSHROOM_BURRITO = 19
    GRAB_STEAK_BURRITO = 20
    GET_FRIED_MUSHROOM = 21
    GET_STEAK = 22
    GET_RICE = 23
    GRAB_CHARCOAL = 24
    PASS = 25
    PUT_DOWN = 26


FAR = 10_000
"""Distance of a skill that cannot be started."""

NOWHERE = -1
"""In place of an item: there is no such cell."""

_PLATE, _RICE, _TORTILLA = (Terrain.GRILL,), (Terrain.POT,), (Terrain.TORTILLA,)

STATIONS: dict[Item, tuple[Terrain, ...]] = {
    Item.DIRTY_PLATE: (Terrain.SINK,),
    Item.STACK_PLATE: (Terrain.SINK,),
    Item.CLEAN_PLATE: _PLATE,
    Item.MEAT: (Terrain.BOARD,),
    Item.MUSHROOM: (Terrain.BOARD,),
    Item.RICE: _RICE,
    Item.CHOPPED_MEAT: (Terrain.GRILL,),
    Item.CHOPPED_MUSHROOM: (Terrain.GRILL,),
    Item.RICE_PLATE: _PLATE,
    Item.TORTILLA_PLATE: _PLATE,
    Item.RICE_TORTILLA_PLATE: _PLATE,
    Item.STEAK_PLATE: _RICE,
    Item.FRIED_MUSHROOM_PLATE: _RICE,
    Item.STEAK_TORTILLA_PLATE: _RICE,
    Item.FRIED_MUSHROOM_TORTILLA_PLATE: _RICE,
    Item.STEAK_RICE_PLATE: _TORTILLA,
    Item.FRIED_MUSHROOM_RICE_PLATE: _TORTILLA,
    Item.STEAK_BURRITO: (Terrain.SERVING,),
    Item.MUSHROOM_BURRITO: (Terrain.SERVING,),
    Item.CHARCOAL: (Terrain.TRASH,),
    Item.FIRE_EXT: (Terrain.GRILL, Terrain.POT),
}
"""Where things go next; a thing without an entry is of no use to the cook."""


@dataclass(frozen=True)
class Map:
    """What the layout fixes."""

    region: Int[np.ndarray, " C"]  # part of the floor, -1: not floor
    distance: Int[np.ndarray, "C T"]  # steps to where somebody stands to use a target; FAR: no way
    pass_cell: Int[np.ndarray, " C"]  # what PASS aims at from there; -1: nothing
    is_local: Bool[np.ndarray, "G I"]  # the station for an item can be reached
    near_grill: Bool[np.ndarray, " C"]  # somebody who can reach a grill can reach the cell
    is_shared: Bool[np.ndarray, " C"]  # can be reached from several parts


@lru_cache(maxsize=64)
def map_of(env: Burrito) -> Map:
    """Of a kitchen."""
    targets, kitchen = env.skills.targets, env.kitchen
    reach = targets.rank != UNREACHABLE
    ways = kitchen.grid.distances[np.arange(kitchen.grid.cells)[:, None], targets.stand]
    best = np.where(targets.is_pass, targets.rank, UNREACHABLE).argmin(1)
    can_pass = (reach & targets.is_pass).any(1)
    regions = range(int(kitchen.regions.max()) + 1)
    example = [int(np.flatnonzero(kitchen.regions == g)[0]) for g in regions]
    is_local = np.ones((len(example), len(Item)), np.bool_)
    for g, here in enumerate(example):
        for item, stations in STATIONS.items():
            is_local[g, item] = np.isin(targets.terrain[reach[here]], stations).any()
    near_grill = np.zeros((kitchen.grid.cells,), np.bool_)
    users = np.zeros((kitchen.grid.cells,), np.int32)
    for here in example:
        users[targets.cells[reach[here]]] += 1
        if np.isin(targets.terrain[reach[here]], Terrain.GRILL).any():
            near_grill[targets.cells[reach[here]]] = True
    return Map(
        region=kitchen.regions,
        distance=np.where(reach, ways, FAR).astype(np.int32),
        pass_cell=np.where(can_pass, targets.cells[best], -1).astype(np.int32),
        is_local=is_local,
        near_grill=near_grill,
        is_shared=users > 1,
    )


@struct.dataclass
class Offers:
    """For every player and skill."""

    distance: Int[Array, "A K"]  # steps to where the skill is done, FAR: it cannot be started
    item: Int[Array, "A K"]  # `Item` that lies on its target
    is_shared: Bool[Array, "A K"]  # its target can be reached from several parts of the kitchen
    after: Int[Array, "A K"]  # what lies where PASS aims from there, NOWHERE: there is no such cell


def offers_of(env: Burrito, state: State) -> Offers:
    """8.3: the targets that the skills would choose now."""
    targets, plan = env.skills.targets, map_of(env)
    content = rules.content_of(state.item[targets.cells], state.clock[targets.cells])  # [T]
    allows, others = jnp.asarray(words().target)[:, targets.terrain, content]  # [T]
    word = for_hand(jnp.asarray(words().allowed)[state.held][:, None], allows, others)  # [A, T]
    word = word & jnp.where(targets.is_pass, -1, ~(1 << Skill.PASS))
    may = (word[..., None] >> np.arange(len(SKILLS)) & 1) > 0  # [A, T, K]
    rank = jnp.asarray(targets.rank.astype(np.int32))[state.cell]  # [A, T]
    rank = jnp.where(may, rank[..., None], UNREACHABLE)
    chosen = rank.argmin(1)  # [A, K]
    found = rank.min(1) < UNREACHABLE
    here = state.cell[:, None]
    distance = jnp.where(found, jnp.asarray(plan.distance)[here, chosen], FAR)
    stand = jnp.where(found, jnp.asarray(targets.stand.astype(np.int32))[here, chosen], here)
    passing = jnp.asarray(plan.pass_cell)[stand]
    target = jnp.asarray(targets.cells.astype(np.int32))[chosen]
    lying = state.item.astype(jnp.int32)
    return Offers(
        distance=jnp.where(np.arange(len(SKILLS)) == Skill.STAY, 0, distance),
        item=jnp.where(found, lying[target], NOWHERE),
        is_shared=found & jnp.asarray(plan.is_shared)[target],
        after=jnp.where(passing >= 0, lying[passing], NOWHERE),
    )
