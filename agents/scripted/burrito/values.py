"""How much each skill is worth to each player now.

Axes: A players, K = 27 skills, D = 2 kinds of dishes.  The values are priorities: an urgent thing is worth more than a
few steps of way.  What stands in the hand comes before what could be taken, and fire before everything.  Section
numbers refer to the behaviour notes, docs/envs/burrito.md.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.agents.scripted.burrito.offers import FAR, Skill
from jaxcoop.agents.scripted.burrito.stock import BASES, BURRITOS, CHOPPED, DIRTY, NEVER, RAW
from jaxcoop.agents.scripted.burrito.view import DISPENSERS, GET_MEAT, LATER, View, among
from jaxcoop.envs.burrito.types import Item

CLEAN_PLATES = 2
"""So many are kept ready."""
GRAB_CHOPPED = (Skill.GRAB_CHOPPED_MEAT, Skill.GRAB_CHOPPED_MUSHROOM)
GRAB_DISH = (Skill.GRAB_STEAK_BURRITO, Skill.GRAB_MUSHROOM_BURRITO)

Values = dict[Skill, Array]


def values_of(view: View) -> Int[Array, "A K"]:
    """Values less the way; -1 where a skill cannot be started or is of no use."""
    known = {**fires(view), **meat(view), **rice(view), **plates(view), **washing(view), **dishes(view), **hands(view)}
    none = jnp.zeros_like(view.held)
    worth = jnp.stack([jnp.broadcast_to(known.get(skill, none), none.shape) for skill in Skill], axis=1)
    distance = view.offers.distance
    return jnp.where((worth > 0) & (distance < FAR), worth - distance, -1)


def fires(view: View) -> Values:
    """One player puts the fire out, and what is left of the food goes into the trash."""
    stock, skill = view.stock, Skill.GRAB_FIRE_EXT
    is_handed = ~view.is_local[:, Item.FIRE_EXT] & view.offers.is_shared[:, skill]
    is_free = (stock.held[Item.FIRE_EXT] == 0) & (view.aiming(skill) == 0)
    coal = stock.charcoal > view.aiming(Skill.GRAB_CHARCOAL)
    return {
        Skill.PUT_OUT_FIRE: jnp.where(stock.fires > 0, 300, 0),
        skill: jnp.where(view.bare & (stock.fires > 0) & is_free & ~is_handed, 300, 0),
        Skill.GRAB_CHARCOAL: jnp.where(view.bare & coal, 160, 0),
        Skill.TRASH: jnp.where(view.bare, 0, 150),
    }


def meat(view: View) -> Values:
    """Meat and mushrooms: fetched for the dishes to come, chopped, and fried in their order."""
    stock, aims, bare = view.stock, view.aims, view.bare
    laying, going_on = ((aims == Skill.CHOP) & ~bare).sum(), ((aims == Skill.CHOP) & bare).sum()
    chops = jnp.where(bare & (stock.unfinished > going_on), 110, jnp.where(~bare & (stock.boards > laying), 120, 0))
    values = {Skill.FRY: jnp.where(stock.grills > view.aiming(Skill.FRY), 150, 0), Skill.CHOP: chops}
    grills = stock.grills - stock.held[np.array(CHOPPED)].sum() - stock.waiting.sum() - view.aiming(*GRAB_CHOPPED)
    for d, skill in enumerate(GRAB_CHOPPED):
        may = grills > (stock.fry[d] > stock.fry[1 - d])  # the last grill is for the dish that comes first
        values[skill] = view.grabs(skill, CHOPPED[d], 125 - LATER * stock.fry[d] // 2, may)
        values[DISPENSERS[d]] = _fetching(view, d)
    return values


def _fetching(view: View, d: int) -> Int[Array, " A"]:
    """Raw meat (mushrooms) that lies about, or from the dispenser what the next dishes lack."""
    stock, item, skill = view.stock, RAW[d], DISPENSERS[d]
    is_local = view.is_local[:, item]
    raw = stock.held[np.array(RAW)].sum() + view.aiming(*DISPENSERS)
    has_board = stock.boards > raw
    on_the_way = raw + stock.lying[np.array((*RAW, *CHOPPED))].sum() + stock.held[np.array(CHOPPED)].sum()
    lacks = (view.meat_place[d] < NEVER) & (on_the_way <= stock.grills)
    new = view.grabs(skill, item, 100 - LATER * view.meat_place[d], lacks & has_board)
    # Chopped food can be had from a counter only in exchange (8.3).
    after = view.offers.after[:, skill]
    is_needed = jnp.asarray(among(CHOPPED))[jnp.maximum(after, 0)] & (stock.grills > 0)
    trades = view.bare & is_needed & ~is_local & (view.aiming(skill) == 0)
    new = jnp.maximum(new, jnp.where(trades, 95 - view.meat_place[d], 0))
    lies = view.offers.item[:, skill] == item
    return jnp.where(lies, jnp.where(view.bare & has_board & is_local, 105, 0), new)


def rice(view: View) -> Values:
    """Rice is fetched for free pots only."""
    stock = view.stock
    has_pot = stock.pots > stock.held[Item.RICE] + view.aiming(Skill.GRAB_RICE)
    value = 100 - LATER * view.rice_place
    return {
        Skill.BOIL: jnp.where(stock.pots > view.aiming(Skill.BOIL), 140, 0),
        Skill.GRAB_RICE: view.grabs(Skill.GRAB_RICE, Item.RICE, value, has_pot & (view.rice_place < NEVER)),
    }


def plates(view: View) -> Values:
    """Plates are taken for what they can get, and collect it: what is ready first, tortillas at any time."""
    stock, bare, held = view.stock, view.bare, view.held
    values = {skill: jnp.where(bare, 0, view.get_meat[d]) for d, (skill, _) in enumerate(GET_MEAT)}
    values[Skill.GET_RICE] = view.get_rice[held]
    values[Skill.GRAB_TORTILLA] = jnp.asarray(view.get_tortilla)[held]
    for skill, bonus in ((Skill.GRAB_ONE, 3), (Skill.GRAB_TWO, 10)):
        lies = view.offers.item[:, skill]
        gain = view.gain[jnp.maximum(lies, 0)]
        can = bare & view.here(lies) & (view.aiming(skill) == 0) & (gain > 0)
        values[skill] = jnp.where(can, gain + bonus, 0)

    skill = Skill.GRAB_CLEAN_PLATE
    is_due = ((stock.soon[:2] > 0) & view.plates).any() & (stock.held[np.array(BASES)].sum() == 0)
    is_prepared = stock.count((Item.TORTILLA_PLATE, Item.RICE_TORTILLA_PLATE, Item.RICE_PLATE)) >= CLEAN_PLATES
    use = jnp.where(is_due, 115, jnp.where(is_prepared, 0, 60))
    hand_over = jnp.where(stock.bases_there < CLEAN_PLATES, 80, 0)
    value = jnp.where(view.is_local[:, Item.CLEAN_PLATE], use, hand_over)
    values[skill] = view.grabs(skill, Item.CLEAN_PLATE, value, stock.lying[Item.CLEAN_PLATE] > view.aiming(skill))
    return values


def washing(view: View) -> Values:
    """Dirty plates are washed one by one, while there are few clean ones."""
    stock, aims, bare, skill = view.stock, view.aims, view.bare, Skill.GRAB_DIRTY_PLATE
    laying, going_on = ((aims == Skill.WASH) & ~bare).sum(), ((aims == Skill.WASH) & bare).sum()
    washes = jnp.where(bare & (stock.rinsing > going_on), 95, jnp.where(~bare & (stock.sinks > laying), 120, 0))
    lying = stock.lying[np.array(DIRTY)].sum() - stock.rinsing
    lies, is_local = view.offers.item[:, skill], view.is_local[:, Item.DIRTY_PLATE]
    is_there = jnp.where(lies == Item.NONE, stock.stack > 0, lying > 0)
    sinks = stock.sinks - stock.held[np.array(DIRTY)].sum() - view.aiming(skill)
    sinks = sinks - jnp.where(is_local, 0, lying)  # those that have been handed over come first
    is_handed = ~is_local & view.offers.is_shared[:, skill]
    may = is_there & (sinks > 0) & (stock.bases_there <= CLEAN_PLATES) & ~is_handed
    value = 85 + 30 * (stock.bases_there == 0)
    return {Skill.WASH: washes, skill: view.grabs(skill, Item.DIRTY_PLATE, value, may)}


def dishes(view: View) -> Values:
    """The first order's dish is served, or handed to those who can serve it; others wait on a counter.

    In a kitchen of several parts dishes that have been handed over are served in any order, to free the counter.
    """
    stock = view.stock
    is_split = len(view.map.is_local) > 1
    served, values = jnp.zeros_like(view.bare), {}
    for d, skill in enumerate(GRAB_DISH):
        is_ordered, is_local = stock.orders[d] > 0, view.is_local[:, BURRITOS[d]]
        served = served | (view.holding(BURRITOS[d]) & (view.serves[d] | (is_split & is_ordered)))
        is_handed = view.offers.is_shared[:, skill]
        to_serve = is_local & (view.serves[d] | (is_handed & is_ordered))
        to_give = ~is_local & view.serves[d] & ~is_handed & view.gives(view.offers.after[:, skill])
        is_left = (view.aiming(skill) == 0) & (stock.held[BURRITOS[d]] == 0)
        values[skill] = jnp.where(view.bare & (to_serve | to_give) & is_left, 200, 0)
    return {**values, Skill.SERVE: jnp.where(served, 220, 0)}


def hands(view: View) -> Values:
    """What cannot be used here is handed over, what has no use now is put down, but for what is about to have one."""
    is_idle_ext = view.holding(Item.FIRE_EXT) & (view.stock.fires == 0)
    gives = ~view.bare & ~view.mine & ~view.early & ~is_idle_ext & view.gives(view.offers.item[:, Skill.PASS])
    keeps = view.hopes[view.held] | view.holding(*CHOPPED, Item.CHARCOAL)
    puts = ~view.bare & ~keeps & (view.mine | view.early | is_idle_ext | view.holding(Item.TORTILLA))
    return {Skill.PASS: jnp.where(gives, 180, 0), Skill.PUT_DOWN: jnp.where(puts, 40, 0)}
