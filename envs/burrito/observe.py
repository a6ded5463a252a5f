"""7: what players see of the kitchen, in three encodings, and the order list.

Axes: K players that are asked for, A players, H W rows and columns, C = W H cells in reading order, L entries of the
vector, S cells of stations.

`lossless` is a map of 12 channels that tells all but the times of the orders and the plates in the stack, `onehot` a
map of 48 layers of 0 and 1 in which held items are invisible, `nopos` a vector that hardly tells places.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.burrito.layouts import Kitchen
from jaxcoop.envs.burrito.types import (
    BURNT,
    CHOPS,
    COOK,
    ITEM_NAMES,
    READY,
    TERRAIN,
    WAIT,
    WARNING,
    Dish,
    Item,
    State,
    Terrain,
)

ENCODINGS = ("lossless", "onehot", "nopos")

CHANNELS = (
    "self",
    "structure",
    "dispenser",
    "item",
    "tool",
    "main_timer",
    "wait_timer",
    "warn_timer",
    "burnt",
    "player",
    "held",
    "facing",
)
"""7.1: channels of `lossless`."""

_NO_TERRAIN = dict.fromkeys(Terrain, 0)
STRUCTURE = _NO_TERRAIN | {Terrain.COUNTER: 1, Terrain.SERVING: 2}
DISPENSER = _NO_TERRAIN | {Terrain.MEAT: 3, Terrain.MUSHROOM: 4, Terrain.TORTILLA: 5, Terrain.RICE: 6}
TOOL = _NO_TERRAIN | {
    Terrain.DIRTY_PLATES: 1,
    Terrain.POT: 2,
    Terrain.BOARD: 3,
    Terrain.GRILL: 4,
    Terrain.SINK: 5,
    Terrain.TRASH: 6,
}
"""7.1: codes of terrain in the three channels about it."""

OWN_CODES = {
    Item.CHOPPED_MUSHROOM: 23,
    Item.STEAK: 22,
    Item.FRIED_MUSHROOM: 24,
    Item.BOILED_RICE: 25,
    Item.FIRE_EXT: 40,
    Item.STACK_PLATE: 1,
}
"""7.1: items whose code is not their number."""

FACING_CODES = (1, 3, 2, 4)
"""7.1: code of each `Direction`."""

# `charcoal-plate` is an object of the original that nothing makes.
OBJECTS = (*ITEM_NAMES[1 : Item.STEAK], "charcoal-plate", *ITEM_NAMES[Item.STEAK :])
FLAGS = ("is_ready", "is_warning", "is_waiting_for_pickup", "is_burnt", "is_extinguished")
LAYERS = (
    "self",
    "player",
    *(f"facing_{letter}" for letter in "NSEW"),
    *(f"terrain_{character}" for character in TERRAIN[1:]),
    *OBJECTS,
    *FLAGS,
)
"""7.2: layers of `onehot`; 7.3 counts the same objects."""

VECTOR_STATIONS = (Terrain.POT, Terrain.BOARD, Terrain.GRILL, Terrain.SINK)
VECTOR_FLAGS = tuple(FLAGS.index(name) for name in (FLAGS[0], FLAGS[2], FLAGS[1], *FLAGS[3:]))
"""7.3 names the flags of a station in another order than 7.2."""

WATCHED = ((5, 1), (5, 2), (5, 3))
"""7.3: (x, y) of the cells whose objects are counted apart, whatever the layout."""


@struct.dataclass
class Obs:
    """7: what K players see; the grid or the vector, as the encoding has it."""

    orders: Int[Array, "K 8"]  # 7.4: two bits [steak, mushroom] for each place of the order list; int8
    grid: Int[Array, "K H W 12"] | Int[Array, "K H W 48"] | None = None  # `CHANNELS` or `LAYERS`; int8
    vector: Int[Array, "K L"] | None = None  # int16


def observe(kitchen: Kitchen, encoding: str, state: State, agents: Int[Array, " K"] | None = None) -> Obs:
    """What the given players, by default all, see in the `encoding`: lossless, onehot or nopos."""
    cell = state.cell if agents is None else state.cell[agents]
    orders = jnp.stack([state.dish == Dish.STEAK, state.dish == Dish.MUSHROOM], -1).reshape(-1).astype(jnp.int8)
    orders = jnp.broadcast_to(orders, (cell.shape[0], *orders.shape))
    if encoding == "nopos":
        seen = _vector(kitchen, state)
        return Obs(orders, vector=jnp.broadcast_to(seen, (cell.shape[0], *seen.shape)))
    common = _channels(kitchen, state) if encoding == "lossless" else _layers(kitchen, state)
    players = jnp.arange(cell.shape[0], dtype=jnp.int32)
    common = jnp.broadcast_to(common, (players.shape[0], *common.shape))  # [K, C, channels]
    seen = common.at[players, cell.astype(jnp.int32), 0].set(jnp.int8(1))
    return Obs(orders, grid=seen.reshape(-1, kitchen.grid.height, kitchen.grid.width, common.shape[-1]))


def _channels(kitchen: Kitchen, state: State) -> Int[Array, "C 12"]:
    """7.1 without the layer of the observing player; int8.

    Four channels of a cell are one int32 word, the lowest byte first: choosing among three words for each cell is
    several times faster than joining twelve bytes, and somewhat faster than joining three words.
    """
    item, clock = state.item, state.clock.astype(jnp.int32)
    is_food = _is_food(item)
    # Where nothing has a timer the clock is 0.
    main = jnp.minimum(clock, COOK) - (item == Item.STACK_PLATE)
    wait = jnp.where(clock > READY, jnp.minimum(clock - READY - 1, WAIT), -1)
    wait, warn = (jnp.where(is_food, timer, 0) for timer in (wait, jnp.maximum(clock - WARNING, 0) - 1))
    structure, tool = _terrain_words(kitchen)
    terrain_and_item = structure | _code(item) << 24
    tool_and_timers = tool | (main & 255) << 8 | (wait & 255) << 16 | warn << 24
    burnt = ((clock >= BURNT) | (item == Item.CHARCOAL)).astype(jnp.int32)
    word = np.arange(3)
    words = jnp.where(word == 1, tool_and_timers[:, None], burnt[:, None])
    words = jnp.where(word == 0, terrain_and_item[:, None], words)  # [C, 3]
    ids = jnp.arange(1, state.cell.shape[0] + 1, dtype=jnp.int32)
    players = ids << 8 | _code(state.held) << 16 | jnp.asarray(FACING_CODES, jnp.int32)[state.facing] << 24
    # Players are never in one cell, so that adding is setting their three bytes.
    words = words.at[state.cell.astype(jnp.int32), 2].add(players)
    return jax.lax.bitcast_convert_type(words, jnp.int8).reshape(-1, len(CHANNELS))


def _is_food(item: Int[Array, " C"]) -> Bool[Array, " C"]:
    """Which items are food on the fire."""
    return (item >= Item.STEAK) & (item <= Item.BOILED_RICE)


def _code(item: Int[Array, "..."]) -> Int[Array, "..."]:
    """7.1: codes of items; int32."""
    code = item.astype(jnp.int32)
    for own, number in OWN_CODES.items():  # comparisons run side by side over cells and batch, look-ups do not
        code = jnp.where(item == own, number, code)
    return code


@cache
def _terrain_words(kitchen: Kitchen) -> tuple[Int[np.ndarray, " C"], Int[np.ndarray, " C"]]:
    """What the terrain adds to the first two words of `_channels`; int32."""
    structure, dispenser, tool = (
        np.array([codes[terrain] for terrain in kitchen.terrain.tolist()], np.int32)
        for codes in (STRUCTURE, DISPENSER, TOOL)
    )
    return structure << 8 | dispenser << 16, tool


def _layers(kitchen: Kitchen, state: State) -> Int[Array, "C 48"]:
    """7.2 without the layer of the observing player; int8."""
    cells = jnp.arange(kitchen.grid.cells, dtype=state.cell.dtype)
    is_here = state.cell[:, None] == cells  # [A, C]
    is_facing = state.facing[:, None] == jnp.arange(4, dtype=state.facing.dtype)  # [A, 4]
    facing = (is_here[:, :, None] & is_facing[:, None]).any(0)
    terrain = kitchen.terrain[:, None] == np.arange(1, len(TERRAIN))
    layers = (
        jnp.zeros((kitchen.grid.cells, 1), jnp.bool_),
        is_here.any(0)[:, None],
        facing,
        jnp.asarray(terrain),
        _objects(state.item),
        _flags(state.item, state.clock),
    )
    return jnp.concatenate(layers, -1).astype(jnp.int8)


def _objects(item: Int[Array, " C"]) -> Bool[Array, "C 25"]:
    """Which of `OBJECTS` lies on each cell."""
    place = jnp.asarray([ITEM_NAMES.index(name) if name in ITEM_NAMES else -1 for name in OBJECTS], jnp.int8)
    item = jnp.where(item == Item.STACK_PLATE, jnp.int8(Item.DIRTY_PLATE), item)
    return item[:, None] == place


def _flags(item: Int[Array, " C"], clock: Int[Array, " C"]) -> Bool[Array, "C 5"]:
    """2: `FLAGS` of what lies on each cell."""
    is_food, is_charcoal = _is_food(item), item == Item.CHARCOAL
    is_chopped = ((item == Item.CHOPPED_MEAT) | (item == Item.CHOPPED_MUSHROOM)) & (clock >= CHOPS)
    is_done, is_burnt = is_food & (clock >= READY), is_food & (clock >= BURNT)
    is_warning = is_food & (clock >= WARNING) & ~is_burnt
    is_waiting = is_done & ~is_warning & ~is_burnt
    return jnp.stack(
        [is_done | is_chopped | is_charcoal, is_warning, is_waiting, is_burnt | is_charcoal, is_charcoal], -1
    )


def _vector(kitchen: Kitchen, state: State) -> Int[Array, " L"]:
    """7.3: stations that are occupied, their flags, numbers of objects in the kitchen and on the watched cells."""
    stations, watched = _listed(kitchen)
    objects, flags = _objects(state.item), _flags(state.item, state.clock)
    parts = (
        state.item[stations] != Item.NONE,  # [S]
        flags[stations][:, np.array(VECTOR_FLAGS)].reshape(-1),
        objects.sum(0, dtype=jnp.int16),
        objects[watched].sum(0, dtype=jnp.int16),
        jnp.zeros((2 * len(OBJECTS),), jnp.int16),  # the original counts what players hold, always to 0
    )
    return jnp.concatenate([part.astype(jnp.int16) for part in parts])


@cache
def _listed(kitchen: Kitchen) -> tuple[Int[np.ndarray, " S"], Int[np.ndarray, "..."]]:
    """Cells of the stations of 7.3, kind by kind, and the watched cells that the grid has; int32."""
    stations = [np.flatnonzero(kitchen.terrain == terrain) for terrain in VECTOR_STATIONS]
    watched = [kitchen.grid.cell(x, y) for x, y in WATCHED if kitchen.grid.is_inside(x, y)]
    return np.concatenate(stations).astype(np.int32), np.array(watched, np.int32)
