"""What there is in the kitchen, and what the next orders lack.

Axes: A players, C cells, I items, N = 4 dishes to come, D = 2 kinds of dishes (steak, mushroom).
Section numbers refer to the behaviour notes, docs/envs/burrito.md.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.burrito.offers import map_of
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.rules import RECIPES
from jaxcoop.envs.burrito.types import BURNT, CHOPS, ORDER_PLACES, READY, Dish, Item, State, Terrain

DISHES = (Dish.STEAK, Dish.MUSHROOM)
AHEAD = ORDER_PLACES
"""The cook prepares so many dishes, ordered or still to be ordered."""
NEVER = AHEAD + 5
"""Place of the first dish that lacks something, if none does."""
SOON = 15
"""Steps before it is ready from which on food is waited for."""

RAW = (Item.MEAT, Item.MUSHROOM)
CHOPPED = (Item.CHOPPED_MEAT, Item.CHOPPED_MUSHROOM)
COOKED = (Item.STEAK, Item.FRIED_MUSHROOM, Item.BOILED_RICE)
BURRITOS = (Item.STEAK_BURRITO, Item.MUSHROOM_BURRITO)
PLATED = (
    (Item.STEAK_PLATE, Item.STEAK_TORTILLA_PLATE, Item.STEAK_RICE_PLATE, Item.STEAK_BURRITO),
    (
        Item.FRIED_MUSHROOM_PLATE,
        Item.FRIED_MUSHROOM_TORTILLA_PLATE,
        Item.FRIED_MUSHROOM_RICE_PLATE,
        Item.MUSHROOM_BURRITO,
    ),
)
"""Plates with what makes a kind of dish."""
BASES = (Item.CLEAN_PLATE, Item.TORTILLA_PLATE, Item.RICE_PLATE, Item.RICE_TORTILLA_PLATE)
"""Plates that can become either dish."""
DIRTY = (Item.DIRTY_PLATE, Item.STACK_PLATE)
WITH_RICE = (Item.RICE_PLATE, Item.RICE_TORTILLA_PLATE, Item.STEAK_RICE_PLATE, Item.FRIED_MUSHROOM_RICE_PLATE)
LACKS_RICE = (Item.STEAK_PLATE, Item.STEAK_TORTILLA_PLATE, PLATED[1][0], PLATED[1][1])


@struct.dataclass
class Stock:
    """Everything that counts; int32."""

    lying: Int[Array, " I"]  # things on cells
    held: Int[Array, " I"]  # things in hands
    ready: Int[Array, " 3"]  # `COOKED` food that can be taken
    soon: Int[Array, " 3"]  # or almost
    fires: Int[Array, ""]
    charcoal: Int[Array, ""]  # on stations
    grills: Int[Array, ""]  # free
    pots: Int[Array, ""]
    boards: Int[Array, ""]
    sinks: Int[Array, ""]
    unfinished: Int[Array, ""]  # things on boards that need more chops
    rinsing: Int[Array, ""]  # dirty plates in sinks
    waiting: Int[Array, " D"]  # chopped food that lies where it is handed over
    stack: Int[Array, ""]  # dirty plates in the stack
    first: Int[Array, ""]  # index of the first order's dish in `DISHES`, -1: no order
    orders: Int[Array, " D"]  # how often each is ordered
    wants: Int[Array, "D N"]  # how often each is among the first n + 1 dishes to come
    meat: Int[Array, " D"]  # portions of meat (mushroom), raw to served up
    rice: Int[Array, ""]  # portions of rice
    fry: Int[Array, " D"]  # place of the first dish whose meat is not yet on a grill, or chopped and on its way there
    plate: Int[Array, " D"]  # place of the first dish whose meat is not yet on a plate
    rivals: Int[Array, " D"]  # dishes before that one that lack a plate too, of the other kind
    bases: Int[Array, ""]  # plates that can become any dish, dirty ones too
    bases_there: Int[Array, ""]  # clean ones in reach of grills

    def count(self, items: tuple[Item, ...]) -> Int[Array, ""]:
        """Things of these kinds, lying and held."""
        return (self.lying + self.held)[np.array(items)].sum()


def upcoming(state: State) -> Int[Array, " N"]:
    """The dishes of the orders, then those that the cycle brings next (3.3)."""
    orders = (state.dish > 0).sum()
    place = np.arange(AHEAD)
    later = jnp.asarray(np.array(RECIPES, np.int32))[(state.next_recipe + 1 + place - orders) % len(RECIPES)]
    return jnp.where(place < orders, state.dish.astype(jnp.int32), later)


def stock_of(env: Burrito, state: State) -> Stock:
    """Count."""
    plan, terrain = map_of(env), env.kitchen.terrain
    kinds = np.arange(len(Item))
    item, clock = state.item.astype(jnp.int32), state.clock.astype(jnp.int32)
    is_item = item[:, None] == kinds  # [C, I]
    lying = is_item.sum(0, dtype=jnp.int32)
    hands = state.held[:, None] == kinds
    held = hands.sum(0, dtype=jnp.int32)
    is_fresh = clock < BURNT
    cooked = [item == food for food in COOKED]
    ready = jnp.stack([(is_food & is_fresh & (clock >= READY)).sum() for is_food in cooked])
    soon = jnp.stack([(is_food & is_fresh & (clock >= READY - SOON)).sum() for is_food in cooked])
    fresh = jnp.stack([(is_food & is_fresh).sum() for is_food in cooked])
    is_board, is_chopped = terrain == Terrain.BOARD, (item == CHOPPED[0]) | (item == CHOPPED[1])
    free = {kind: ((terrain == kind) & (item == Item.NONE)).sum() for kind in Terrain}
    is_handed = plan.is_shared & (terrain == Terrain.COUNTER)

    dishes = upcoming(state)
    wants = jnp.stack([jnp.cumsum(dishes == dish) for dish in DISHES])  # [D, N]
    both = lying + held
    plated = jnp.stack([both[np.array(PLATED[d])].sum() for d in range(2)])
    # Nobody can take chopped food from other counters (8.3).
    chopped = jnp.stack(
        [held[food] + (is_item[:, food] & (is_board | is_handed)).sum(dtype=jnp.int32) for food in CHOPPED]
    )
    coming = jnp.stack([held[food] + (is_item[:, food] & is_handed).sum(dtype=jnp.int32) for food in CHOPPED])
    plate_place = first_place(wants > plated[:, None])
    at_place = jnp.clip(plate_place, 0, AHEAD - 1)
    others = wants[::-1][np.arange(2), at_place] - plated[::-1]
    bases = both[np.array((*BASES, *DIRTY))].sum() + state.plates
    near = is_item[:, np.array(BASES)].any(1) & plan.near_grill
    is_near = jnp.asarray(plan.is_local[:, Item.CLEAN_PLATE])[jnp.asarray(plan.region)[state.cell]]
    return Stock(
        lying=lying,
        held=held,
        ready=ready,
        soon=soon,
        fires=jnp.stack(cooked).any(0).sum() - fresh.sum(),
        charcoal=(is_item[:, Item.CHARCOAL] & (terrain != Terrain.COUNTER)).sum(),
        grills=free[Terrain.GRILL],
        pots=free[Terrain.POT],
        boards=free[Terrain.BOARD],
        sinks=free[Terrain.SINK],
        unfinished=(is_board & is_chopped & (clock < CHOPS)).sum(),
        rinsing=((terrain == Terrain.SINK) & (is_item[:, DIRTY[0]] | is_item[:, DIRTY[1]])).sum(),
        waiting=jnp.stack([(is_item[:, food] & is_handed).sum() for food in CHOPPED]),
        stack=state.plates.astype(jnp.int32),
        first=state.dish[0].astype(jnp.int32) - 1,
        orders=jnp.stack([(state.dish == dish).sum() for dish in DISHES]),
        wants=wants,
        meat=plated + fresh[:2] + chopped + both[np.array(RAW)],
        rice=both[np.array((*WITH_RICE, *BURRITOS))].sum() + fresh[2] + held[Item.RICE],
        fry=first_place(wants > (plated + fresh[:2] + coming)[:, None]),
        plate=plate_place,
        rivals=jnp.maximum(others, 0),
        bases=bases,
        bases_there=near.sum() + (hands[:, np.array(BASES)].any(1) & is_near).sum(),
    )


def first_place(lacks: Bool[Array, "... N"]) -> Int[Array, "..."]:
    """The first place that lacks something, else `NEVER`."""
    return jnp.where(lacks.any(-1), lacks.argmax(-1), NEVER)
