"""Positions of objects, touched chunks, and the ids of objects and stations.

Axes: A agents, C cow slots, S station slots, P plant slots, N words of 32 chunks.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.core import bits
from jaxcoop.core.batching import along
from jaxcoop.envs.macrafter.claims import Pair
from jaxcoop.envs.macrafter.config import CHUNK, Settings, chunk_grid
from jaxcoop.envs.macrafter.types import PLACES, PLANTS, STATIONS, State

FEW = 8
"""Up to this many entries are handled by comparison, which vectorises over a batch; more by sorting and scattering."""


def positions(settings: Settings, state: State) -> Pair:
    """Cell index of each actor, W*H for free slots and agents that are removed; int16."""
    nowhere = jnp.int16(settings.cells)
    cows = jnp.where(state.cow_x >= 0, state.cow_x * settings.height + state.cow_y, nowhere)
    return Pair(cows, jnp.where(state.removed, nowhere, state.x * settings.height + state.y))


def touch(
    settings: Settings, touched: UInt32[Array, " N"], x: Array, y: Array, there: Bool[Array, "..."]
) -> UInt32[Array, " N"]:
    """11: the set of touched chunks with those of the cells (x, y) where `there`."""
    columns, rows = chunk_grid(settings.width, settings.height)
    # unsigned, since that divides faster
    chunk = (x.astype(jnp.uint16) // CHUNK) * jnp.uint16(rows) + y.astype(jnp.uint16) // CHUNK
    bit = jnp.where(there, jnp.uint32(1) << (chunk % bits.WORD).astype(jnp.uint32), jnp.uint32(0))
    word = chunk // bits.WORD
    words = []
    for number in range(bits.num_words(columns * rows)):
        mine = jnp.where(word == number, bit, jnp.uint32(0))
        words.append(touched[number] | jax.lax.reduce(mine, jnp.uint32(0), jax.lax.bitwise_or, (0,)))
    return jnp.stack(words)


def appended(known: Array, slot: Int[Array, " M"], values: Array) -> Array:
    """A list with `values` written at `slot`; -1: nowhere."""
    if slot.shape[0] > 2 * FEW:
        return known.at[jnp.where(slot >= 0, slot, known.shape[0])].set(values, mode="drop")
    place = jnp.arange(known.shape[0], dtype=slot.dtype)
    for k in range(slot.shape[0]):
        known = jnp.where(place == slot[k], values[k], known)
    return known


def station_slots(used: Int[Array, ""], placed: Int[Array, " A"]) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
    """12.1: slots of the stations placed in this step (cell indices, -1: none), in the order of cells, and the cells.

    `used`: slots taken before.  -1: no slot, as for a station that comes when all are taken; it gets no local id.
    """
    size = placed.shape[0]
    if size <= FEW:
        rank = jnp.zeros_like(placed)
        for k in range(size):
            rank = rank + ((placed[k] >= 0) & (placed[k] < placed)).astype(jnp.int16)
        cells = placed
    else:
        last = jnp.int16(jnp.iinfo(jnp.int16).max)
        cells = jnp.sort(jnp.where(placed >= 0, placed, last), axis=0)
        cells = jnp.where(cells == last, jnp.int16(-1), cells)
        rank = along(np.arange(size, dtype=np.int16), cells)
    slot = used.astype(jnp.int16) + rank
    return jnp.where((cells >= 0) & (slot < STATIONS), slot, jnp.int16(-1)), cells


@struct.dataclass
class NewIds:
    """12.1: what gets an id in a step: lists of slots (-1: none) and what is written there."""

    table: tuple[Int[Array, " A"], Int[Array, " A"]]  # slot and cell; int16
    furnace: tuple[Int[Array, " A"], Int[Array, " A"]]
    plant: tuple[Int[Array, " P"], Int[Array, " P"], Int[Array, " P"]]  # slot and cell (int16), id (int32)
    next_id: Int[Array, ""]


def new_ids(
    used: dict[str, Int[Array, ""]],
    next_id: Int[Array, ""],
    placed: Int[Array, " A"],
    what: Int[Array, " A"],
    early: Bool[Array, " A"] | None,
) -> NewIds:
    """12.1: ids for what players placed in this step: plants, and local ids of stations.

    `used`: slots taken before of tables, furnaces, plants; `placed`: cell where the agent placed something, -1 none;
    `what`: number in `PLACES`; `early`: by request (S3), None if nobody.  Plants beyond the slots get no id of their
    own.
    """
    is_plant = (placed >= 0) & (what == PLACES.index("plant"))
    if early is not None:  # in order of creation
        is_plant, placed_twice = jnp.concatenate([is_plant & early, is_plant & ~early]), jnp.concatenate([placed] * 2)
    else:
        placed_twice = placed
    order = is_plant.astype(jnp.int16)
    rank = jnp.cumsum(order, axis=0, dtype=jnp.int16) - order
    slot = used["plant"].astype(jnp.int16) + rank
    none = jnp.int16(-1)
    return NewIds(
        plant=(jnp.where(is_plant & (slot < PLANTS), slot, none), placed_twice, next_id + rank.astype(jnp.int32)),
        next_id=next_id + order.sum(0, dtype=jnp.int32),
        **{
            name: station_slots(used[name], jnp.where(what == PLACES.index(name), placed, none))
            for name in ("table", "furnace")
        },
    )


def used_slots(state: State) -> dict[str, Int[Array, ""]]:
    """Slots taken by tables, furnaces and plants; int32."""
    return {name: (getattr(state, name) >= 0).sum(dtype=jnp.int32) for name in ("table", "furnace", "plant")}


def with_ids(state: State, new: NewIds) -> State:
    """12.1: the state with new ids."""
    slot, cell, ident = new.plant
    return dataclasses.replace(
        state,
        table=appended(state.table, *new.table),
        furnace=appended(state.furnace, *new.furnace),
        plant=appended(state.plant, slot, cell),
        plant_id=appended(state.plant_id, slot, ident),
        next_id=new.next_id,
    )
