"""12.1, 12.2: numbers by which planners name things, and where a named thing is.

Axes: A queries, C cow slots, S station slots, P plant slots.
A cell's id is its index + 1 and never changes; objects are numbered on from there, cows of the start first, then the
agents, then whatever comes later.  Tables and furnaces are also known by local ids 1, 2, 3 … of their own.
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.macrafter.types import MATERIAL_NAMES, THING_NAMES, Material, State, Thing, material_of

ANY = -1
"""12.2: a type that is not given; it fits everything."""


KINDS = {name: code for code, name in (*enumerate(MATERIAL_NAMES), *THING_NAMES.items())}
"""Codes of all types by name."""


@struct.dataclass
class Places:
    """Where the things asked for are."""

    found: Bool[Array, " A"]
    x: Int[Array, " A"]  # int32, -1: not found
    y: Int[Array, " A"]


def kind_of(name: str | None) -> int:
    """12.2: the code of a type as planners write it; ANY without a name, NONE (fits no cell) for one that is unknown.

    Capitals do not matter, blanks stand for underscores.  An agent is called agent, player, by its number, or
    `agent_` with its number.
    """
    if not name:
        return ANY
    name = name.strip().lower().replace(" ", "_")
    if name == "agent" or name.removeprefix("agent_").isdecimal():
        return int(Thing.PLAYER)
    return KINDS.get(name, int(Material.NONE))


def agent_ids(state: State) -> Int[Array, " A"]:
    """12.1: ids of all agents."""
    return state.agent_id + jnp.arange(state.x.shape[0], dtype=jnp.int32)


def resolve(state: State, kind: Int[Array, " A"], ident: Int[Array, " A"]) -> Places:
    """12.2: the first that fits: a station by its local id, an object or agent by its id, a cell by what it is now.

    `kind` is a `Material`, a `Thing` or ANY.  A removed agent or cow is not found.
    """
    height = state.material.shape[1]
    is_any = kind == ANY
    cell, found = _station(state, kind, ident)
    x, y = cell // height, cell % height

    cow, is_cow = _index_of(state.cow_id, ident)
    is_cow &= ((kind == Thing.COW) | is_any) & (ident > 0)
    plant, is_plant = _index_of(state.plant_id, ident)
    is_plant &= ((kind == Thing.PLANT) | is_any) & (ident > 0)
    agents = state.x.shape[0]
    agent = jnp.clip(ident, 0, jnp.iinfo(jnp.int32).max) - state.agent_id
    is_agent = ((kind == Thing.PLAYER) | is_any) & (agent >= 0) & (agent < agents)
    agent = jnp.clip(agent, 0, agents - 1)
    is_agent &= ~state.removed[agent]
    index = jnp.clip(ident, 1, state.material.size) - 1
    material = material_of(state.material.reshape(-1)[index])
    is_cell = (index + 1 == ident) & (is_any | (material == kind))

    plants = state.plant[plant].astype(jnp.int32)
    for fits, at_x, at_y in (
        (is_cow, state.cow_x[cow], state.cow_y[cow]),
        (is_plant, plants // height, plants % height),
        (is_agent, state.x[agent], state.y[agent]),
        (is_cell, index // height, index % height),
    ):
        x = jnp.where(found, x, jnp.where(fits, at_x.astype(jnp.int32), -1))
        y = jnp.where(found, y, jnp.where(fits, at_y.astype(jnp.int32), -1))
        found |= fits
    return Places(found, x, y)


def _station(state: State, kind: Int[Array, " A"], ident: Int[Array, " A"]) -> tuple[Array, Array]:
    """Cell of a table or furnace by local id, and whether there is one."""
    slots = state.table.shape[0]
    slot = jnp.clip(ident, 1, slots) - 1
    cell = jnp.where(kind == Material.TABLE, state.table[slot], state.furnace[slot]).astype(jnp.int32)
    is_station = (kind == Material.TABLE) | (kind == Material.FURNACE)
    return cell, is_station & (slot + 1 == ident) & (cell >= 0)


def _index_of(ids: Int[Array, " C"], ident: Int[Array, " A"]) -> tuple[Int[Array, " A"], Bool[Array, " A"]]:
    """Slot that holds each id, and whether one does."""
    same = ids == ident[:, None]  # [A, C]
    slots = jnp.arange(ids.shape[0], dtype=jnp.int32)
    slot = jnp.max(jnp.where(same, slots, -1), axis=1, initial=-1)
    return jnp.maximum(slot, 0), slot >= 0
