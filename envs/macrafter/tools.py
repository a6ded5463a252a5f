"""Tools that tasks require: who holds them, and what has to be done to make them.

Axes: A agents, T = 3 tools, G = 2^T sets of tools, P = 2 T ops, W = 5 words of an op row.
A set of tools has bit t for number t of `TOOL_ITEMS`.  A requirement is a set, with `ANY` where one of them is enough.
Functions of requirements and sets work on arrays of numpy and of jax.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.macrafter.config import TOOLS, Requirement
from jaxcoop.envs.macrafter.players import CRAFTS
from jaxcoop.envs.macrafter.requests import RECIPES
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import PLACES, Action, Item, Material

TOOL_NAMES = tuple(TOOLS)
TOOL_ITEMS = tuple(TOOLS.values())
TOOL_CRAFTS = tuple(Action[f"MAKE_{name.upper()}"] for name in TOOL_NAMES)
STATIONS = (Material.TABLE, Material.FURNACE)
"""Utilities, in the order of axes over them."""

ALL = (1 << len(TOOL_NAMES)) - 1
ANY = ALL + 1
WIDTH = 5


def required_tools(need: Requirement) -> int:
    """The requirement of a resource as a number."""
    return sum(1 << TOOL_NAMES.index(tool) for tool in need.tools) | (ANY if need.any_tool else 0)


def tools_held(inventory: Any) -> Any:
    """The set of tools in inventories [..., 16]."""
    return sum((inventory[..., item] > 0) * (1 << number) for number, item in enumerate(TOOL_ITEMS))


def is_met(required: Any, tools: Any) -> Any:
    """Whether a set of tools is what is required."""
    is_any, wanted = (required & ANY) != 0, required & ALL
    return (is_any & (wanted & tools != 0)) | ((is_any == 0) & (wanted & ~tools == 0))


def tools_missing(required: Any, tools: Any) -> Any:
    """The set of tools that has to be made: all that are not held, or the first one where any will do."""
    is_any, wanted = (required & ANY) // ANY, required & ALL & ~tools
    first = wanted & -wanted
    return (wanted + is_any * (first - wanted)) * (1 - is_met(required, tools))


@struct.dataclass
class Preparation:
    """What agents can do now towards each set of tools."""

    count: Int[Array, "A G"]  # ops
    makes: Bool[Array, "A G"]  # they make all tools of the set
    ops: Int[Array, "A G P W"]  # rows of -1 after the last one


def preparations(inventory: Int[Array, "A 16"], near: Bool[Array, "A 2"]) -> Preparation:
    """Ops towards each set of tools, tool by tool, each with what the tools before it leave.

    A tool is made if the inventory covers it, after a station that is not near and that the inventory covers as well;
    else the first thing that is missing is collected, of the tool before that of the station.
    """
    agents = inventory.shape[0]
    sets = np.arange(ALL + 1)
    held = jnp.broadcast_to(inventory.astype(jnp.int32)[:, None], (agents, len(sets), len(Item)))
    close = jnp.broadcast_to(near[:, None], (agents, len(sets), len(STATIONS)))
    ops = jnp.full((agents, len(sets), 2 * len(TOOL_ITEMS), WIDTH), -1, jnp.int32)
    count, makes = jnp.zeros((agents, len(sets)), jnp.int32), jnp.ones((agents, len(sets)), jnp.bool_)
    slot = np.arange(2 * len(TOOL_ITEMS))

    def put(ops: Array, count: Array, who: Array, row: Array | np.ndarray) -> tuple[Array, Array]:
        here = who[..., None] & (slot == count[..., None])
        return jnp.where(here[..., None], row[..., None, :], ops), count + who

    for number, (item, craft) in enumerate(zip(TOOL_ITEMS, TOOL_CRAFTS, strict=True)):
        asks = jnp.asarray((sets >> number & 1 == 1)[None])
        recipe, station = CRAFTS[craft]
        at = STATIONS.index(station)
        what = PLACES.index(station.name.lower())
        price, extra = np.zeros((2, len(Item)), np.int32)
        for ingredient, amount in recipe:
            price[ingredient] = amount
        extra[RECIPES[what][0]] = RECIPES[what][1]
        need = price + jnp.where(close[..., at, None], 0, extra)  # [A, G, 16]
        can = asks & (held >= need).all(-1)
        places = can & ~close[..., at]
        ops, count = put(ops, count, places, np.array([Op.PLACE, what, -1, -1, -1], np.int32))
        ops, count = put(ops, count, can, np.array([Op.CRAFT, craft, -1, -1, -1], np.int32))
        short = [held[..., ingredient] < need[..., ingredient] for ingredient in _ingredients(recipe, what)]
        first = jnp.zeros_like(count)
        for ingredient, lacks in reversed(list(zip(_ingredients(recipe, what), short, strict=True))):
            first = jnp.where(lacks, int(ingredient), first)
        row = jnp.stack([jnp.full_like(first, Op.COLLECT), first, *[jnp.full_like(first, -1)] * 3], axis=-1)
        ops, count = put(ops, count, asks & ~can, row)
        gain = np.zeros(len(Item), np.int32)
        gain[item] = 1
        held = held + jnp.where(can[..., None], gain - need, 0)
        close = close.at[..., at].set(close[..., at] | can)
        makes &= can | ~asks
    return Preparation(count=count, makes=makes, ops=ops)


def _ingredients(recipe: tuple[tuple[Item, int], ...], place: int) -> list[Item]:
    """What a tool and its station take, in the order in which it is collected."""
    own = [ingredient for ingredient, _ in recipe]
    return [*own, *(item for item in (RECIPES[place][0],) if item not in own)]
