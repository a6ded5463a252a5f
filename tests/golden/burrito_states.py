"""Recorded arrays of the Burrito kitchen as states, and states as such arrays.

Axes: H W rows and columns of the kitchen, C = W H cells, A players; any leading axes (episodes, time) are kept.
A record has three timers for each object, -2 where it has none; a state has one clock for each cell.
"""

import jax
import numpy as np

from jaxcoop.cooperation import no_totals
from jaxcoop.envs.burrito.types import BURNT, COOK, READY, WAIT, WARNING, Counts, Item, State, Terrain

NO_TIMER = -2
FROM_STACK = -1
"""Timer of a dirty plate that was taken from the stack and did not enter a sink yet."""

TIMED = (Terrain.BOARD, Terrain.SINK)
FIRES = (Terrain.POT, Terrain.GRILL)
FOODS = (Item.STEAK, Item.FRIED_MUSHROOM, Item.BOILED_RICE)


def state_of(kitchen, arrays):
    """The state, with numpy leaves; score, counts and attempts, which are not recorded, start at zero."""
    lead = arrays["timestep"].shape
    width = kitchen.grid.width
    x, y = arrays["pos"][..., 0].astype(np.int16), arrays["pos"][..., 1].astype(np.int16)

    def cells(name):
        return arrays[name].reshape(*lead, kitchen.grid.cells)

    def zeros(like):
        return np.zeros((*lead, *like.shape), like.dtype)

    main, wait, warn = (cells(name).astype(np.int16) for name in ("tick_main", "tick_wait", "tick_warn"))
    clock = np.where(warn >= 0, WARNING + 1 + warn, np.where(wait >= 0, READY + 1 + wait, np.maximum(main, 0)))
    zero = np.zeros((), np.int32)
    return State(
        cell=y * np.int16(width) + x,
        facing=arrays["ori"].astype(np.int8),
        held=plates_told_apart(arrays["held"], arrays["held_tick"]),
        item=plates_told_apart(cells("obj"), main),
        clock=clock.astype(np.uint8),
        plates=arrays["num_plates"].astype(np.int8),
        dish=arrays["order_dish"].astype(np.int8),
        left=arrays["order_left"].astype(np.int16),
        next_recipe=arrays["next_recipe"].astype(np.int8),
        streak=arrays["consecutive"].astype(np.int16),
        t=arrays["timestep"].astype(np.int32),
        score=np.zeros(lead, np.float32),
        counts=jax.tree.map(zeros, Counts(*[zero] * 6)),
        attempts=jax.tree.map(zeros, no_totals()),
    )


def plates_told_apart(item, timer):
    """Items with the dirty plates from the stack as an item of their own."""
    is_from_stack = (item == Item.DIRTY_PLATE) & (timer == FROM_STACK)
    return np.where(is_from_stack, Item.STACK_PLATE, item).astype(np.int8)


def arrays_of(kitchen, state):
    """The recorded arrays of a state, by name: the inverse of `state_of`."""
    grid, cell, item, held = kitchen.grid, np.asarray(state.cell), np.asarray(state.item), np.asarray(state.held)
    clock = np.asarray(state.clock).astype(np.int16)
    lead = np.shape(state.t)
    is_timed = np.isin(kitchen.terrain, TIMED) & np.isin(
        item, (Item.DIRTY_PLATE, Item.CHOPPED_MEAT, Item.CHOPPED_MUSHROOM)
    )
    is_food = np.isin(kitchen.terrain, FIRES) & np.isin(item, FOODS)
    main = np.where(is_food, np.minimum(clock, COOK), np.where(is_timed, clock, NO_TIMER))
    wait = np.where(clock > READY, np.minimum(clock - READY - 1, WAIT), -1)
    warn = np.where(clock > WARNING, np.minimum(clock, BURNT) - WARNING - 1, -1)

    def plane(values, dtype):
        return values.reshape(*lead, grid.height, grid.width).astype(dtype)

    return {
        "pos": np.stack([cell % grid.width, cell // grid.width], -1).astype(np.int8),
        "ori": np.asarray(state.facing).astype(np.int8),
        "held": recorded_items(held),
        "held_tick": np.where(held == Item.STACK_PLATE, FROM_STACK, NO_TIMER).astype(np.int8),
        "obj": plane(recorded_items(item), np.int8),
        "tick_main": plane(np.where(item == Item.STACK_PLATE, FROM_STACK, main), np.int16),
        "tick_wait": plane(np.where(is_food, wait, NO_TIMER), np.int16),
        "tick_warn": plane(np.where(is_food, warn, NO_TIMER), np.int16),
        "num_plates": np.asarray(state.plates).astype(np.int8),
        "next_recipe": np.asarray(state.next_recipe).astype(np.int8),
        "consecutive": np.asarray(state.streak).astype(np.int16),
        "order_dish": np.asarray(state.dish).astype(np.int8),
        "order_left": np.asarray(state.left).astype(np.int16),
        "timestep": np.asarray(state.t).astype(np.int16),
    }


def recorded_items(item):
    """Items with all dirty plates as one."""
    return np.where(item == Item.STACK_PLATE, Item.DIRTY_PLATE, item).astype(np.int8)
