"""When agents eat, drink and sleep.

Axes: A agents, G goals, Q squads, S places in a squad.
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool

from jaxcoop.agents.scripted.macrafter.maps import Goal, Maps
from jaxcoop.agents.scripted.macrafter.squads import Squads
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.types import Item, State

LOW = {Item.FOOD: 150, Item.DRINK: 120, Item.ENERGY: 100}
"""Steps of life left without it at which an agent looks after each need; until then the work goes on."""
FULL = {Item.FOOD: 6, Item.DRINK: 9}
SIP, BITE = 6, 3
"""Levels up to which an agent takes what is within its reach anyway."""
TIRED = 4
"""Energy up to which an agent sleeps when others of its squad do."""
LIFE = {Item.FOOD: 26, Item.DRINK: 21, Item.ENERGY: 31}
"""6: steps that a unit lasts."""
WOUND = 16
"""6: steps between two losses of health."""


@struct.dataclass
class Cares:
    """What agents do for themselves."""

    drinks: Bool[Array, " A"]  # goes to the water
    eats: Bool[Array, " A"]  # goes for a cow
    sleeps: Bool[Array, " A"]  # lies down, or sleeps on
    drinks_here: Bool[Array, " A"]  # water is within reach and wanted
    eats_here: Bool[Array, " A"]


def cares_of(
    settings: Settings,
    state: State,
    squads: Squads,
    maps: Maps,
    no_way: Bool[Array, "A G"],
    drinks: Bool[Array, " A"],
    eats: Bool[Array, " A"],
) -> Cares:
    """Who has to look after itself; nobody who survives the rest of the episode anyway.

    `drinks`, `eats`: who was about to in the last step.
    """
    held = state.inventory.astype(jnp.int32)
    x, y = state.x.astype(jnp.int32), state.y.astype(jnp.int32)

    health = WOUND * (held[:, Item.HEALTH] - 1)
    lasts = {item: held[:, item] * steps + health for item, steps in LIFE.items()}
    is_safe = jnp.stack(list(lasts.values()), axis=1).min(axis=1) >= settings.max_steps - state.t
    minds = ~is_safe & ~state.removed & settings.vitals
    food, drink, energy = held[:, Item.FOOD], held[:, Item.DRINK], held[:, Item.ENERGY]
    drinks = (
        minds & ~no_way[:, Goal.WATER] & ((lasts[Item.DRINK] < LOW[Item.DRINK]) | (drinks & (drink < FULL[Item.DRINK])))
    )
    eats = (
        minds
        & ~no_way[:, Goal.COW]
        & ((lasts[Item.FOOD] < LOW[Item.FOOD]) | (eats & (food < FULL[Item.FOOD])))
        & ~(drinks & (drink < food))
    )
    drinks = drinks & ~eats
    others = squads.by_agent(
        jnp.broadcast_to(squads.by_squad(state.sleeping).any(axis=1)[:, None], squads.members.shape)
    )
    tired = (lasts[Item.ENERGY] < LOW[Item.ENERGY]) | (others & (energy <= TIRED))
    sleeps = state.sleeping | (minds & tired & ~drinks & ~eats)
    return Cares(
        drinks=drinks,
        eats=eats,
        sleeps=sleeps,
        drinks_here=minds
        & maps.beside(Goal.WATER, settings.width, x, y)
        & ((drink <= SIP) | (drinks & (drink < 9)) | (state.sleeping & (drink < 9))),
        eats_here=minds & maps.beside(Goal.COW, settings.width, x, y) & ((food <= BITE) | eats),
    )
