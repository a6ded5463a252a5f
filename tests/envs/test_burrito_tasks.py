"""Orders as tasks, what interactions aim at, and which of them have any effect."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_scenes import (
    BOARD,
    GRILL,
    INTERACT,
    MEAT,
    MUSHROOM,
    OPEN,
    POT,
    RICE,
    SINK,
    STAY,
    TRASH,
    WINDOW,
    random_states,
    scene,
    step,
)

from jaxcoop.envs.burrito import Burrito, interact, tasks
from jaxcoop.envs.burrito.types import BURNT, READY, Dish, Draws, Item

I = Item  # noqa: E741
S, M = Dish.STEAK, Dish.MUSHROOM
COUNT = 1000


@cache
def drawn():
    """Drawn states of the kitchen, and what comes of them when nobody, player 0, or everybody interacts."""
    states = random_states(OPEN, np.random.default_rng(5), COUNT)

    def all_ways(state):
        draws = Draws(jnp.zeros((2,), jnp.uint32))
        ways = jnp.array([[STAY, STAY], [INTERACT, STAY], [INTERACT, INTERACT]], jnp.int32)
        done = jax.vmap(lambda actions: OPEN.step(state, actions, draws))(ways)
        return done, jax.vmap(lambda actions: OPEN.attempts(state, actions))(ways), OPEN.legal(state)

    return states, *jax.device_get(jax.jit(jax.vmap(all_ways))(states))


def test_burrito_orders_are_tasks():
    table = OPEN.tasks(scene(None, None, dish=[M, S, S, 0], left=[10, 20, 30, 0]))
    assert table.active.tolist() == [True, True, True, False] and table.kind.tolist() == [M, S, S, 0]
    assert table.capability.tolist() == [I.MUSHROOM_BURRITO, I.STEAK_BURRITO, I.STEAK_BURRITO, -1]
    assert table.place.tolist() == [list(WINDOW)] * 4 and table.value.tolist() == [80, 80, 80, 0]
    assert table.required.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("layout, players", [("open", 1), ("ring", 1), ("hallway", 1), ("fc", 2), ("fc_rev", 2)])
def test_burrito_orders_take_two_players_where_things_have_to_be_handed_over(layout, players):
    env = Burrito(layout=layout)
    assert env.tasks(env.reset(jax.random.key(0))).required.tolist() == [players, players, 0, 0]


@pytest.mark.parametrize("plate, players", [("clean_plate 0 1", 1), ("clean_plate 11 1", 2), ("dirty_plate 0 1", 2)])
def test_burrito_orders_take_two_players_where_the_plates_are_elsewhere(plate, players):
    layout = f"XMZTRBGPSXXX\nX        X X\nXXXXXXXXXXXX\n\nplayer 1 1 S\nplayer 10 1 S\n{plate}\n"
    env = Burrito(layout=layout)
    assert env.tasks(env.reset(jax.random.key(0))).required.tolist() == [players, players, 0, 0]


@pytest.mark.parametrize(
    "place, held, lying, dish, task",
    [
        (MEAT, I.NONE, I.NONE, [S, M], 0),
        (MEAT, I.NONE, I.NONE, [M, S], 1),
        (MEAT, I.NONE, I.NONE, [M, M], -1),
        (MEAT, I.MEAT, I.NONE, [S, M], -1),  # nothing happens
        (MUSHROOM, I.NONE, I.NONE, [S, S, M], 2),
        (RICE, I.NONE, I.NONE, [M, S], 0),  # whatever is first
        (BOARD, I.NONE, (I.CHOPPED_MUSHROOM, 1), [S, M], 1),
        (SINK, I.DIRTY_PLATE, I.NONE, [S, M], 0),
        (GRILL, I.CLEAN_PLATE, (I.FRIED_MUSHROOM, READY), [S, M], 1),
        (GRILL, I.CLEAN_PLATE, (I.FRIED_MUSHROOM, READY - 1), [S, M], -1),
        (POT, I.FIRE_EXT, (I.BOILED_RICE, BURNT), [S, M], -1),
        (POT, I.NONE, I.CHARCOAL, [S, M], -1),
        (TRASH, I.MEAT, I.NONE, [S, M], -1),
        (TRASH, I.RICE_PLATE, I.NONE, [S, M], -1),
        (WINDOW, I.MUSHROOM_BURRITO, I.NONE, [S, M, M], 1),
        (WINDOW, I.STEAK_BURRITO, I.NONE, [M, M], -1),
        (POT, I.MEAT, I.NONE, [S, M], -1),  # 3.1 is of no use to anybody
    ],
)
def test_burrito_interactions_aim_at_the_first_order_they_can_be_meant_for(place, held, lying, dish, task):
    listed = [*dish, *[0] * (4 - len(dish))]
    state = scene(place, None, held=(held, 0), lying={place: lying}, dish=listed, left=[900 * (d > 0) for d in listed])
    assert OPEN.attempts(state, jnp.array([INTERACT, STAY])).tolist() == [task, -1]
    assert OPEN.attempts(state, jnp.array([STAY, INTERACT])).tolist()[0] == -1
    done = step(state, INTERACT, STAY)
    assert done.events.attempts.task.tolist() == [task, -1]
    assert bool(done.events.attempts.success[0]) == (place == WINDOW and task >= 0)


def test_burrito_players_at_one_order_share_an_event():
    state = scene(MEAT, WINDOW, held=(I.NONE, I.STEAK_BURRITO))
    found = step(state, INTERACT, INTERACT).events.attempts
    assert (found.task.tolist(), found.event.tolist()) == ([0, -1], [0, 0])
    assert (int(found.attempting[0]), bool(found.success[0]), int(found.required[0])) == (2, True, 1)
    np.testing.assert_array_equal(found.score[0], [2, 2, 1])  # both are there and act, one holds something of it
    found = step(state, INTERACT, STAY).events.attempts
    np.testing.assert_array_equal(found.score[0], [2, 1, 1])
    assert (found.event.tolist(), bool(found.success[0])) == ([0, -1], False)


def test_burrito_attempts_are_summed_up_over_the_episode():
    state = scene(MEAT, WINDOW, held=(I.NONE, I.STEAK_BURRITO))
    state = step(step(state, INTERACT, STAY).state, STAY, INTERACT).state
    assert (int(state.attempts.events), int(state.attempts.successes)) == (2, 1)
    assert (np.asarray(state.attempts.deficit) >= 0).all()


def test_burrito_attempts_of_a_state_are_those_of_its_step():
    _, done, named, _ = drawn()
    found = done.events.attempts
    row = np.maximum(found.event, 0)
    task = np.where(found.event >= 0, np.take_along_axis(found.task, row, -1), -1)
    np.testing.assert_array_equal(task, named)
    assert (named[:, 0] == -1).all() and (named[:, 1, 1] == -1).all() and (named[:, 2] >= 0).sum() > 200


def test_burrito_interactions_are_legal_where_they_change_anything():
    """Taken alone; wrong food at a pot ends the phase (3.1), which changes nothing for those before."""
    states, done, _, legal = drawn()
    ahead = np.asarray(OPEN.kitchen.grid.ahead)[states.facing[:, 0], states.cell[:, 0]]
    is_pot = OPEN.kitchen.grid.characters[ahead] == "P"
    changed = np.zeros(COUNT, bool)
    for x in jax.tree.leaves(done.state):
        changed |= (x[:, 1] != x[:, 0]).reshape(COUNT, -1).any(1)
    ends = is_pot & np.isin(states.held[:, 0], interact.INGREDIENTS) & ~changed
    np.testing.assert_array_equal(legal[~ends, 0, INTERACT], changed[~ends])
    assert legal[ends, 0, INTERACT].any() and legal[..., :INTERACT].all() and 50 < changed.sum() < COUNT - 50


def test_what_belongs_to_burrito_dishes():
    both = {I.RICE, I.TORTILLA, I.BOILED_RICE, I.RICE_PLATE, I.TORTILLA_PLATE, I.RICE_TORTILLA_PLATE, I.CLEAN_PLATE}
    both |= {I.DIRTY_PLATE, I.STACK_PLATE}
    for item in I:
        name = interact.name_of(item)
        none = item in (I.NONE, I.CHARCOAL, I.FIRE_EXT)
        dishes = 0 if none else 3 if item in both else 1 if "meat" in name or "steak" in name else 2
        assert tasks.belongs(item) == dishes, name
