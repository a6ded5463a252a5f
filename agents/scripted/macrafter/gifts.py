"""What members of a squad hand to each other: tools, ingredients, food and drink.

Axes: A agents, Q squads, S places in a squad, W width of an op row.  Sharing takes one step and knows no distance (9).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter.needs import CRAFT_ITEMS, Needs, Team, spare
from jaxcoop.agents.scripted.macrafter.squads import PICKAXES, Squads
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import Item, Material

THIRSTY, HUNGRY = 3, 1
"""Levels up to which a member is given something."""


def gifts(
    squads: Squads, team: Team, needs: Needs, crafter: Int[Array, " Q"], at_water: Bool[Array, " A"]
) -> tuple[Bool[Array, " A"], Int[Array, "A 5"]]:
    """Who hands something over, and the op.  Tools come first, then what the crafter needs, then drink and food."""
    shape = team.x.shape
    gives = jnp.zeros(shape, jnp.bool_)
    to = item = quantity = jnp.zeros(shape, jnp.int32)

    def offer(who: Array, receiver: Array, what: int, amount: Array | int) -> None:
        nonlocal gives, to, item, quantity
        new = who & team.alive & ~gives & (jnp.arange(squads.size) != receiver[:, None]) & (receiver >= 0)[:, None]
        gives = gives | new
        to = jnp.where(new, receiver[:, None], to)
        item = jnp.where(new, what, item)
        quantity = jnp.where(new, amount, quantity)

    for number, tool in enumerate(PICKAXES):
        count = team.items[:, :, tool]
        lacks = team.alive & (count == 0)
        if squads.wants[number]:
            offer((count > 1) & lacks.any(axis=1)[:, None], jnp.argmax(lacks, axis=1), tool, 1)
    for number, what in enumerate(CRAFT_ITEMS):
        held = jnp.take_along_axis(team.items[:, :, what], jnp.maximum(crafter, 0)[:, None], axis=1)
        lack = jnp.where(crafter[:, None] >= 0, needs.now[:, number, None] - held, 0)
        offer((spare(team, what) > 0) & (lack > 0), crafter, what, jnp.minimum(spare(team, what), lack))
    stones = team.items[:, :, Item.STONE]
    stranded = team.able[Material.STONE] & (stones == 0)  # without a stone nobody crosses water
    offer((stones >= 4) & stranded.any(axis=1)[:, None], jnp.argmax(stranded, axis=1), Item.STONE, 2)
    for what, low, rich, amount, giver in (
        (Item.DRINK, THIRSTY, 7, 4, squads.by_squad(at_water)),
        (Item.FOOD, HUNGRY, 6, 3, jnp.ones(shape, jnp.bool_)),
    ):
        level = jnp.where(team.alive, team.items[:, :, what], 9)
        poor = level.min(axis=1) <= low
        offer(giver & (level >= rich) & poor[:, None], jnp.argmin(level, axis=1), what, amount)
    receiver = jnp.take_along_axis(jnp.asarray(squads.members), to, axis=1)
    rows = jnp.stack([jnp.full(shape, Op.SHARE, jnp.int32), receiver, item, quantity, jnp.full(shape, -1)], axis=-1)
    return squads.by_agent(gives), squads.by_agent(rows.astype(jnp.int32))
