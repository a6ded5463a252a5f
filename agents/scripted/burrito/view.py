"""The kitchen as the players see it who are looking for something to do.

Axes: A players, K = 27 skills, I items, D = 2 kinds of dishes.  Section numbers refer to the behaviour notes,
docs/envs/burrito.md.
"""

import dataclasses
from collections.abc import Iterable
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.burrito.offers import NOWHERE, Map, Offers, Skill, map_of
from jaxcoop.agents.scripted.burrito.stock import BURRITOS, CHOPPED, LACKS_RICE, NEVER, Stock, first_place
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.interact import WITH_GRILLED, WITH_RICE, WITH_TORTILLA
from jaxcoop.envs.burrito.types import Item, State

LATE = 60
"""Steps before the end from which on dishes are served in any order."""
LATER = 8
"""What one place in the queue of dishes takes off the value of preparing it."""
GET_MEAT = ((Skill.GET_STEAK, Item.STEAK), (Skill.GET_FRIED_MUSHROOM, Item.FRIED_MUSHROOM))
"""How a kind of dish gets its meat."""
DISPENSERS = (Skill.GRAB_MEAT, Skill.GRAB_MUSHROOM)


def among(items: Iterable[Item]) -> Bool[np.ndarray, " I"]:
    """Table: whether a thing is one of these."""
    return np.isin(np.arange(len(Item)), np.array(tuple(items)))


@dataclasses.dataclass(frozen=True)
class View:
    """State, and what the others are about to do.  Members are arrays; those with the axis A differ by player."""

    env: Burrito
    state: State
    stock: Stock
    offers: Offers
    aims: Int[Array, " A"]  # `Skill` of everybody who has one; STAY: none

    @cached_property
    def map(self) -> Map:
        """Of the layout."""
        return map_of(self.env)

    @cached_property
    def held(self) -> Int[Array, " A"]:
        """Item in each hand; int32."""
        return self.state.held.astype(jnp.int32)

    @cached_property
    def bare(self) -> Bool[Array, " A"]:
        """Empty hands."""
        return self.held == Item.NONE

    @cached_property
    def is_local(self) -> Bool[Array, "A I"]:
        """Whether each player can get to the station of a thing."""
        return jnp.asarray(self.map.is_local)[jnp.asarray(self.map.region)[self.state.cell]]

    @cached_property
    def mine(self) -> Bool[Array, " A"]:
        """Players who can use what they hold."""
        return self.here(self.held)

    def aiming(self, *skills: Skill) -> Int[Array, ""]:
        """Players who are at these skills."""
        return jnp.isin(self.aims, np.array(skills)).sum(dtype=jnp.int32)

    def holding(self, *items: Item) -> Bool[Array, " A"]:
        """Players with one of these in hand."""
        return jnp.asarray(among(items))[self.held]

    def here(self, item: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Whether each player can use their thing."""
        known = jnp.take_along_axis(self.is_local, jnp.maximum(item, 0)[:, None], 1)[:, 0]
        return known & (item > Item.NONE)

    def gives(self, lying: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Whether something can be handed over where this lies: nothing, or what is of use in exchange."""
        is_chopped = jnp.asarray(among(CHOPPED))[jnp.maximum(lying, 0)]
        return (lying == Item.NONE) | (self.here(lying) & (~is_chopped | (self.stock.grills > 0)))

    def grabs(self, skill: Skill, item: Item, value: Array | int, may: Array) -> Int[Array, " A"]:
        """Value of taking a thing to use it here, or to hand it over if there is room for it."""
        after = self.offers.after[:, skill]
        room = self.is_local[:, item] | (self.gives(after) & (after != NOWHERE))
        return jnp.where(self.bare & may & room, value, 0)

    @cached_property
    def meat_place(self) -> Int[Array, " D"]:
        """Place of the first dish to come whose meat (mushroom) is neither there nor about to be fetched."""
        coming = jnp.stack([((self.aims == skill) & self.bare).sum(dtype=jnp.int32) for skill in DISPENSERS])
        return first_place(self.stock.wants > (self.stock.meat + coming)[:, None])

    @cached_property
    def rice_place(self) -> Int[Array, ""]:
        """The same for rice."""
        coming = ((self.aims == Skill.GRAB_RICE) & self.bare).sum(dtype=jnp.int32)
        return first_place(self.stock.wants.sum(0) > self.stock.rice + coming)

    @cached_property
    def serves(self) -> Bool[Array, " D"]:
        """Whether a dish is to be served now: the first order's, and any other if that one cannot be made any more."""
        stock = self.stock
        late = self.env.max_steps - self.state.t < LATE
        stuck = (stock.bases == 0) & (stock.plate[jnp.maximum(stock.first, 0)] == 0)
        return (stock.first == np.arange(2)) | ((stuck | late) & (stock.orders > 0))

    @cached_property
    def early(self) -> Bool[Array, " A"]:
        """Players with a dish that is not to be served yet."""
        return (self.holding(BURRITOS[0]) & ~self.serves[0]) | (self.holding(BURRITOS[1]) & ~self.serves[1])

    @cached_property
    def plates(self) -> Bool[Array, " D"]:
        """Whether meat of that kind may go on a plate: a dish needs it, or it keeps others from the grills.

        One plate is left for a dish of the other kind that comes earlier.
        """
        needed = (self.stock.plate < NEVER) | (self.stock.grills == 0)
        return needed & (self.stock.bases > (self.stock.rivals > 0))

    @cached_property
    def get_meat(self) -> Int[Array, " D"]:
        """Value of putting fried meat (mushroom) on a plate."""
        left = jnp.stack([self.stock.ready[d] > self.aiming(skill) for d, (skill, _) in enumerate(GET_MEAT)])
        return jnp.where(left & self.plates, 130 - LATER * self.stock.plate, 0)

    @cached_property
    def get_rice(self) -> Int[Array, " I"]:
        """Value of putting rice on a plate; higher for the first order's."""
        is_left = self.stock.ready[2] > self.aiming(Skill.GET_RICE)
        is_first = [among(LACKS_RICE[2 * d : 2 * d + 2]) & (self.stock.first == d) for d in range(2)]
        return jnp.where(among(WITH_RICE) & is_left, 100 + 40 * (is_first[0] | is_first[1]), 0)

    @cached_property
    def get_tortilla(self) -> Int[np.ndarray, " I"]:
        """Value of putting a tortilla on a plate."""
        return np.where(among(WITH_TORTILLA), np.where(among([Item.CLEAN_PLATE]), 70, 90), 0)

    @cached_property
    def gain(self) -> Int[Array, " I"]:
        """The best that can be done with a plate now."""
        meat = [jnp.where(among(WITH_GRILLED[food]), self.get_meat[d], 0) for d, (_, food) in enumerate(GET_MEAT)]
        hopes = jnp.where(self.hopes, 50, 0)
        return jnp.stack([*meat, self.get_rice, jnp.asarray(self.get_tortilla), hopes]).max(0)

    @cached_property
    def hopes(self) -> Bool[Array, " I"]:
        """Plates for which something is ready, or almost."""
        soon = self.stock.soon > 0
        meat = [among(WITH_GRILLED[food]) & soon[d] & self.plates[d] for d, (_, food) in enumerate(GET_MEAT)]
        return jnp.stack([*meat, among(WITH_RICE) & soon[2]]).any(0)
