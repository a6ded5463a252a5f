"""8: one task for each pot, and who tries to do it.

Axes: A players, P pots; then, in the functions that a step uses, those of a batch (`jaxcoop.core.batching`).
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.cooperation import Attempts, TaskTable
from jaxcoop.core.batching import along
from jaxcoop.envs.overcooked.interact import with_one_more
from jaxcoop.envs.overcooked.layouts import Kitchen
from jaxcoop.envs.overcooked.rules import front_of, look_up
from jaxcoop.envs.overcooked.types import FULL, INGREDIENTS, ITEMS, READY, Action, Item, Stage, State


def aims(kitchen: Kitchen, cell: Array, facing: Array, action: Int[Array, " A"]) -> Int[Array, " A"]:
    """The pot that each player interacts with, -1: none; int16."""
    pot = look_up(kitchen.pot_of, front_of(kitchen, cell, facing))
    return jnp.where(action == Action.INTERACT, pot, np.int16(-1))


def attempt_events(
    kitchen: Kitchen, aim: Int[Array, " A"], changed: Bool[Array, " A"], cell: Int[Array, " A"]
) -> Attempts:
    """The attempts of a step: one for each pot that somebody interacts with.

    `changed`: whose interaction did something; `cell`: where the players stand while they interact.
    """
    team = aim.shape[0]
    ids = np.arange(team, dtype=np.int16)
    same = (aim[:, None] == aim[None]) & (aim >= 0)[:, None]
    first = jnp.where(same, along(ids, same, axis=1), np.int16(team)).min(1)
    event = jnp.where(aim >= 0, first, np.int16(-1))
    is_event = event == along(ids, event)
    acting = same.sum(1, dtype=jnp.int32)
    suited = (same & changed[None]).sum(1, dtype=jnp.int32)
    # Nobody stands at the edge, so that cells whose numbers differ by 1 or W are neighbours.
    place = look_up(kitchen.pots, jnp.maximum(aim, 0).astype(jnp.int32))
    gap = jnp.abs(cell[None].astype(jnp.int32) - place[:, None])
    near = ((gap == 1) | (gap == kitchen.grid.width)).sum(1, dtype=jnp.int32)
    counts = jnp.stack([near, acting, suited], axis=1)
    return Attempts(
        task=jnp.where(is_event, aim, -1).astype(jnp.int32),
        required=is_event.astype(jnp.int32),
        attempting=jnp.where(is_event, acting, 0),
        success=is_event & (suited > 0),
        score=jnp.where(is_event[:, None], counts, 0).astype(jnp.float32),
        event=event.astype(jnp.int32),
    )


def stages(item: Int[Array, " P"], clock: Array) -> Int[Array, " P"]:
    """`Stage` of pots with this content; int32."""
    idle = jnp.where(item >= FULL, Stage.START, Stage.FILL)
    return jnp.where(clock > READY, Stage.COOK, jnp.where(clock == READY, Stage.SERVE, idle)).astype(jnp.int32)


def next_ingredient(kitchen: Kitchen) -> Int[np.ndarray, " 13"]:
    """The ingredient with which a pot keeps the highest value that it can reach, the onion if both do; -1: full."""
    found = np.full(ITEMS, -1, np.int32)
    for item in (Item.NONE, *range(Item.SOUP, FULL)):
        found[item] = max(INGREDIENTS, key=lambda one, item=item: (kitchen.best[with_one_more(item, one)], -one))
    return found


def task_table(kitchen: Kitchen, state: State) -> TaskTable:
    """The tasks of a state, M = P; `kind` is the stage, `place` the pot's (x, y), `capability` an item to hold."""
    item, stage = state.item[kitchen.pots], stages(state.item[kitchen.pots], state.clock[kitchen.pots])
    needs = jnp.where(stage == Stage.SERVE, Item.DISH, Item.NONE)
    needs = jnp.where(stage == Stage.FILL, look_up(next_ingredient(kitchen), item), needs)
    worth = jnp.where(state.clock[kitchen.pots] > 0, look_up(kitchen.values, item), look_up(kitchen.best, item))
    place = np.stack([kitchen.grid.x[kitchen.pots], kitchen.grid.y[kitchen.pots]], 1)
    return TaskTable(
        active=stage != Stage.COOK,
        kind=stage,
        place=jnp.asarray(place, jnp.int32),
        required=jnp.ones(stage.shape, jnp.int32),
        capability=jnp.where(stage == Stage.COOK, -1, needs).astype(jnp.int32),
        value=worth.astype(jnp.float32),
    )
