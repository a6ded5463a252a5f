"""13: rewards of the original, and who leaves the world (5, S6).

Axes: A agents.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.core.batching import along
from jaxcoop.envs.macrafter.objects import FEW
from jaxcoop.envs.macrafter.types import RESOURCE_ITEMS, Achievement, Action, Item, Material, Thing

ACHIEVEMENT_WEIGHTS = {
    Achievement.COLLECT_WOOD: 5,
    Achievement.COLLECT_SAPLING: 1,
    Achievement.COLLECT_STONE: 50,
    Achievement.COLLECT_COAL: 50,
    Achievement.COLLECT_IRON: 50,
    Achievement.COLLECT_DIAMOND: 10,
    Achievement.COLLECT_DRINK: 1,
    Achievement.EAT_COW: 1,
    Achievement.MAKE_WOOD_PICKAXE: 20,
    Achievement.MAKE_STONE_PICKAXE: 30,
    Achievement.MAKE_IRON_PICKAXE: 7,
    Achievement.PLACE_TABLE: 10,
    Achievement.PLACE_FURNACE: 5,
    Achievement.PLACE_STONE: 1,
}
ITEM_WEIGHTS = {Item.WOOD: 5, Item.STONE: 20, Item.COAL: 20, Item.IRON: 50, Item.DIAMOND: 100}
FACTOR = 10
MOVE, OTHER = 3, 1
"""Rewards for moving, and for anything else but doing nothing."""

UNITS_WITHOUT_SCORE = {
    Material.TREE: 5,
    Material.STONE: 50,
    Material.COAL: 50,
    Material.IRON: 50,
    Material.DIAMOND: 10,
    Material.WATER: 1,
    Thing.COW: 1,
}
"""What a collector gets for a unit when there is no team score."""


@struct.dataclass
class Pay:
    """Rewards of a step and what has to be remembered of them."""

    reward: Float[Array, " A"]
    paid: Int[Array, "A 5"]  # int8
    unlocked: UInt32[Array, ""]


def collector_units(amounts: dict[int, Int[Array, " A"]]) -> Float[Array, " A"]:
    """Reward of collectors without a team score, from the units of each kind that they got."""
    total = sum(number * UNITS_WITHOUT_SCORE[kind] for kind, number in amounts.items())
    return jnp.asarray(total).astype(jnp.float32)


def bits_of(achievements: Int[Array, "A 22"]) -> UInt32[Array, " A"]:
    """Achievements with a count above 0, as bits."""
    bit = along(np.uint32(1) << np.arange(len(Achievement), dtype=np.uint32), achievements, 1)
    return jnp.where(achievements > 0, bit, jnp.uint32(0)).sum(1, dtype=jnp.uint32)


def new_to_team(has: UInt32[Array, " A"], unlocked: UInt32[Array, ""]) -> tuple[UInt32[Array, " A"], UInt32[Array, ""]]:
    """Bits of each agent that neither the team nor an agent with a lower id has, and the team's bits after that."""
    if has.shape[0] > FEW:
        up_to = jax.lax.associative_scan(jnp.bitwise_or, has, axis=0)
        before = jnp.concatenate([jnp.zeros_like(has[:1]), up_to[:-1]]) | unlocked
        return has & ~before, unlocked | up_to[-1]
    new = []
    for i in range(has.shape[0]):
        new.append(has[i] & ~unlocked)
        unlocked = unlocked | has[i]
    return jnp.stack(new), unlocked


def non_collector_pay(
    action: Int[Array, " A"],
    entitled: Bool[Array, " A"],
    has: UInt32[Array, " A"],
    inventory: Int[Array, "A 16"],
    paid: Int[Array, "A 5"],
    unlocked: UInt32[Array, ""],
) -> Pay:
    """Reward for the kind of action, for achievements new to the team, and for more of a resource than last time.

    `action`: effective primitive; `entitled`: who is listed and does not collect; `has`: achievements with a count
    above 0.  One that several have is paid to the lowest id.  What the action itself brings is paid at the next step.
    """
    is_move = (action >= Action.MOVE_LEFT) & (action <= Action.MOVE_DOWN)
    total = jnp.where(is_move, jnp.int32(MOVE), jnp.where(action == Action.NOOP, jnp.int32(0), jnp.int32(OTHER)))
    new, unlocked = new_to_team(jnp.where(entitled, has, jnp.uint32(0)), unlocked)
    for goal, weight in ACHIEVEMENT_WEIGHTS.items():
        total = total + ((new >> goal) & 1).astype(jnp.int32) * (FACTOR * weight)
    counts = inventory[:, RESOURCE_ITEMS[0] : RESOURCE_ITEMS[-1] + 1]
    for number, item in enumerate(RESOURCE_ITEMS):
        rose = inventory[:, item] > paid[:, number]
        total = total + rose.astype(jnp.int32) * (FACTOR * ITEM_WEIGHTS[item])
    return Pay(
        reward=jnp.where(entitled, total, 0).astype(jnp.float32),
        paid=jnp.where(entitled[:, None], jnp.clip(counts, -127, 127).astype(jnp.int8), paid),
        unlocked=unlocked,
    )
