"""Positions of objects, touched chunks, and the ids of objects and stations.

Axes: A agents, C cow slots, S station slots, P plant slots, N words of 32 chunks.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.core import bits
from jaxcoop.envs.macrafter.claims import Pair
from jaxcoop.envs.macrafter.config import CHUNK, Settings, chunk_grid
from jaxcoop.envs.macrafter.types import PLACES, State

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
    chunk = (x // CHUNK) * rows + y // CHUNK
    bit = jnp.uint32(1) << (chunk % bits.WORD).astype(jnp.uint32)
    words = []
    for word in range(bits.num_words(columns * rows)):
        mine = jnp.where(there & (chunk // bits.WORD == word), bit, jnp.uint32(0))
        words.append(touched[word] | jax.lax.reduce(mine, jnp.uint32(0), jax.lax.bitwise_or, (0,)))
    return jnp.stack(words)


def appended(known: Array, slot: Int[Array, " M"], values: Array) -> Array:
    """A list with `values` written at `slot`; slots beyond its end are left out."""
    if slot.shape[0] > 2 * FEW:
        return known.at[slot].set(values, mode="drop")
    place = jnp.arange(known.shape[0], dtype=jnp.int32)
    for k in range(slot.shape[0]):
        known = jnp.where(place == slot[k], values[k], known)
    return known


def listed_stations(known: Int[Array, " S"], placed: Int[Array, " A"]) -> Int[Array, " S"]:
    """12.1: the list of stations with those placed in this step (cell indices, -1: none), in the order of cells.

    A station for which there is no slot left gets no local id.
    """
    used = (known >= 0).sum(dtype=jnp.int32)
    size = placed.shape[0]
    if size <= FEW:
        rank = jnp.zeros((size,), jnp.int32)
        for k in range(size):
            rank = rank + ((placed[k] >= 0) & (placed[k] < placed)).astype(jnp.int32)
        slot, cells = used + rank, placed
    else:
        last = jnp.int16(jnp.iinfo(jnp.int16).max)
        cells = jnp.sort(jnp.where(placed >= 0, placed, last))
        cells = jnp.where(cells == last, jnp.int16(-1), cells)
        slot = used + jnp.arange(size, dtype=jnp.int32)
    return appended(known, jnp.where(cells >= 0, slot, known.shape[0]), cells)


def with_ids(state: State, placed: Int[Array, " A"], what: Int[Array, " A"], early: Bool[Array, " A"]) -> State:
    """12.1: the state with ids for what players placed in this step: plants, and local ids of stations.

    `placed`: cell where the agent placed something, -1 none; `what`: number in `PLACES`; `early`: by request (S3).
    Plants beyond the slots get no id of their own.
    """
    is_plant = (placed >= 0) & (what == PLACES.index("plant"))
    order = jnp.concatenate([is_plant & early, is_plant & ~early]).astype(jnp.int32)  # [2A]: in order of creation
    rank = jnp.cumsum(order, dtype=jnp.int32) - order
    used = (state.plant >= 0).sum(dtype=jnp.int32)
    slot = jnp.where(order > 0, used + rank, state.plant.shape[0])
    stations = {
        name: listed_stations(known, jnp.where(what == PLACES.index(name), placed, jnp.int16(-1)))
        for name, known in (("table", state.table), ("furnace", state.furnace))
    }
    return dataclasses.replace(
        state,
        plant=appended(state.plant, slot, jnp.concatenate([placed, placed])),
        plant_id=appended(state.plant_id, slot, state.next_id + rank),
        next_id=state.next_id + order.sum(dtype=jnp.int32),
        **stations,
    )
