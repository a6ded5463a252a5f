"""The Burrito kitchen as an environment: starts, options, ends, rewards, results."""

import dataclasses
from functools import cache

import jax
import numpy as np
import pytest
from burrito_scenes import (
    BOARD,
    EAST,
    INTERACT,
    NORTH,
    OPEN,
    SINK,
    SOUTH,
    STAY,
    WEST,
    WINDOW,
    compiled,
    hands,
    places,
    random_states,
    scene,
    step,
)
from scipy.stats import chisquare

from jaxcoop.core import make
from jaxcoop.envs.burrito import PRESETS, RESULTS, SPEC, Burrito
from jaxcoop.envs.burrito.layouts import names
from jaxcoop.envs.burrito.results import columns
from jaxcoop.envs.burrito.types import Dish, Draws, Item

I = Item  # noqa: E741


@cache
def random_starts(layout, agents, count):
    env = Burrito(layout=layout, agents=agents, start="random")
    return env, jax.device_get(jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(7), count)))


def test_burrito_players_start_where_the_layout_says_with_two_orders():
    state = OPEN.reset(jax.random.key(3))
    assert places(state) == [(1, 2), (6, 4)] and state.facing.tolist() == [SOUTH, SOUTH]
    assert state.dish.tolist() == [Dish.STEAK, Dish.MUSHROOM, 0, 0] and state.left.tolist() == [1200, 1200, 0, 0]
    assert hands(state) == [I.NONE] * 2 and int(state.plates) == int(state.next_recipe) == int(state.streak) == 0
    grid = OPEN.kitchen.grid
    lies = {(int(c) % grid.width, int(c) // grid.width): int(state.item[c]) for c in np.flatnonzero(state.item)}
    assert lies == {(0, 2): 2, (0, 3): 2, (9, 3): 2, (9, 4): 2, (9, 5): I.FIRE_EXT}


def test_more_burrito_players_than_the_layout_has_start_on_free_floor_in_reading_order():
    state = Burrito(agents=5).reset(jax.random.key(0))
    assert places(state) == [(1, 2), (6, 4), (1, 1), (2, 1), (3, 1)]
    assert places(Burrito(agents=1).reset(jax.random.key(0))) == [(1, 2)]
    assert Burrito(layout="open_3p").num_agents == 3 and Burrito(layout="open_3p", agents=2).num_agents == 2


@pytest.mark.parametrize("layout, agents", [("open", 2), ("fc", 2), ("open", 16)])
def test_random_burrito_starts_are_uniform_over_the_floor_and_look_north(layout, agents):
    """2.1: no cell twice; in fc both may be in one half."""
    env, states = random_starts(layout, agents, 4000)
    floor = np.flatnonzero(env.kitchen.grid.floor)
    assert (states.facing == NORTH).all()
    cells = np.sort(states.cell, 1)
    assert (cells[:, 1:] != cells[:, :-1]).all()
    for player in range(agents):
        counts = np.bincount(states.cell[:, player], minlength=env.kitchen.grid.cells)
        assert counts.sum() == counts[floor].sum()
        assert chisquare(counts[floor]).pvalue > 1e-4
    if agents == 2:  # pairs: each other cell equally often
        place = np.searchsorted(floor, states.cell)
        apart = (place[:, 1] - place[:, 0]) % len(floor)
        assert chisquare(np.bincount(apart, minlength=len(floor))[1:]).pvalue > 1e-4
    plain = env.reset(jax.random.key(0)).replace(cell=None, facing=None)
    first = jax.tree.map(lambda x: x[0], states).replace(cell=None, facing=None)
    jax.tree.map(np.testing.assert_array_equal, plain, first)


@pytest.mark.parametrize("action", [-1, 6, 7, 2**31 - 1, -(2**31)])
def test_unknown_burrito_actions_stay(action):
    state = scene(WINDOW, None, held=(I.STEAK_BURRITO, 0))
    jax.tree.map(np.testing.assert_array_equal, step(state, action, action), step(state, STAY, STAY))


def test_burrito_players_turn_even_where_they_cannot_go():
    state = scene(None, None, cell=[11, 12], facing=[SOUTH, SOUTH])
    done = step(state, WEST, WEST)
    assert places(done.state) == [(1, 1), (2, 1)] and done.state.facing.tolist() == [WEST, WEST]
    assert done.events.moved.tolist() == [False, False]
    done = step(state, NORTH, EAST)
    assert places(done.state) == [(1, 1), (3, 1)] and done.events.moved.tolist() == [False, True]


def test_the_larger_priority_gets_a_contested_burrito_cell():
    state = scene(None, None, cell=[11, 13])
    for priority, want in (((0, 1), [(1, 1), (2, 1)]), ((1, 0), [(2, 1), (3, 1)])):
        assert places(step(state, EAST, WEST, priority=priority).state) == want


def test_burrito_episodes_end_at_their_horizon_and_nothing_changes_after_it():
    env = Burrito(max_steps=3)
    state = scene(WINDOW, BOARD, held=(I.STEAK_BURRITO, I.MEAT), lying={(6, 6): (I.STEAK, 221)}, t=1)
    done = step(state, STAY, STAY, env=env)
    assert (int(done.state.t), bool(done.truncated), bool(done.terminated)) == (2, False, False)
    done = step(done.state, STAY, STAY, env=env)
    assert (int(done.state.t), bool(done.truncated)) == (3, True)
    for action in (INTERACT, NORTH, EAST):
        after = step(done.state, action, action, env=env)
        jax.tree.map(np.testing.assert_array_equal, after.state, done.state)
        assert after.reward.tolist() == after.events.shaped.tolist() == [0, 0] and bool(after.truncated)
        assert (after.events.logged == -1).all() and not after.events.moved.any() and int(after.events.burning) == 0


def test_the_burrito_reward_is_the_sparse_one_and_a_share_of_the_shaped_one():
    state = scene(SINK, WINDOW, held=(0, I.STEAK_BURRITO), lying={SINK: (I.DIRTY_PLATE, 0)})
    done = step(state, INTERACT, INTERACT, env=Burrito(shaping=0.5))
    assert done.events.sparse.tolist() == [44, 44] and done.events.shaped.tolist() == [1, 5]
    assert done.reward.tolist() == [44.5, 46.5] and float(done.state.score) == 88
    assert step(state, INTERACT, INTERACT).reward.tolist() == [44, 44]


@pytest.mark.parametrize("agents", [1, 2, 3, 16])
def test_burrito_teams_of_all_sizes_share_the_rewards(agents):
    """5: everybody gets half of a delivery, however many they are."""
    env = Burrito(agents=agents)
    held = [0] * (agents - 1) + [I.STEAK_BURRITO]
    state = scene(*[None] * (agents - 1), WINDOW, env=env, held=held)
    done = step(state, *[INTERACT] * agents, env=env)
    assert done.reward.tolist() == [44] * agents and float(done.state.score) == 44 * agents
    assert hands(done.state)[-1] == I.NONE


@pytest.mark.parametrize("agents", [2, 3, 16])
def test_burrito_teams_act_alike_one_by_one_and_in_batches(agents):
    """Also the loop over more than four players gives what the rules give to each of them in turn."""
    env, rng, count = Burrito(agents=agents), np.random.default_rng(agents), 64
    states = random_states(env, rng, count)
    actions = rng.integers(0, 6, (count, agents)).astype(np.int32)
    priority = rng.integers(0, 2**32, (count, agents), dtype=np.uint32)
    together = jax.jit(jax.vmap(lambda s, a, p: env.step(s, a, Draws(p))))
    done = jax.device_get(together(states, actions, priority))
    for k in range(0, count, 8):
        alone = compiled(env)(jax.tree.map(lambda x, k=k: x[k], states), actions[k], priority[k])
        jax.tree.map(lambda a, b, k=k: np.testing.assert_array_equal(a, b[k]), alone, done)
    cells = np.sort(done.state.cell, 1)
    assert (cells[:, 1:] != cells[:, :-1]).all() and env.kitchen.grid.floor[cells].all()
    one_by_one = states
    for player in range(agents):  # interactions alone, in order, unless one of them ends the phase (3.1)
        only = np.where(np.arange(agents) == player, actions, STAY)
        only[only != INTERACT] = STAY
        nxt = jax.device_get(together(one_by_one, only, priority))
        one_by_one = one_by_one.replace(held=nxt.state.held, item=nxt.state.item, plates=nxt.state.plates)
    ends = (env.kitchen.grid.characters[env.kitchen.grid.ahead[states.facing, states.cell]] == "P") & (
        actions == INTERACT
    )
    free = ~ends.any(1)
    np.testing.assert_array_equal(done.state.held[free], one_by_one.held[free])
    assert free.sum() > 5


@pytest.mark.parametrize(
    "options, what",
    [
        ({"agents": 17}, "agents 17: must be from 0 to 16"),
        ({"agents": -1}, "agents -1"),
        ({"agents": 2.5}, "agents 2.5: must be a whole number"),
        ({"max_steps": 0}, "max_steps 0: must be from 1 to 32,000"),
        ({"shaping": float("nan")}, "shaping nan"),
        ({"timeout": -1}, "timeout -1: must be from 0"),
        ({"start": "anywhere"}, "anywhere.*fixed"),
        ({"rewards": "paper"}, "paper.*eval"),
        ({"observation": "pixels"}, "pixels.*lossless"),
        ({"controller": "free"}, "free.*native"),
    ],
)
def test_burrito_options_out_of_range_are_errors_that_say_what_is_allowed(options, what):
    with pytest.raises(ValueError, match=what):
        Burrito(**options)


def test_small_burrito_kitchens_have_room_for_fewer_players():
    layout = "XXSX\nX1 X\nXXXX\n"
    assert Burrito(layout=layout, agents=2).num_agents == 2
    with pytest.raises(ValueError, match="agents 3: must be from 0 to 2"):
        Burrito(layout=layout, agents=3)


def test_burrito_presets_are_configurations():
    assert set(PRESETS) == {*names(), *(f"{name}_train" for name in names())}
    for options in PRESETS.values():
        assert isinstance(make("burrito", **options), Burrito)
    train = Burrito(**PRESETS["ring_train"])
    assert (train.layout, train.start, train.shaping) == ("ring", "random", 1.0)
    assert SPEC.factory is Burrito and hash(Burrito()) == hash(
        dataclasses.replace(Burrito(max_steps=3), max_steps=2400)
    )


def test_burrito_outcomes_become_columns():
    state = scene(WINDOW, (7, 0), held=(I.STEAK_BURRITO, I.MUSHROOM_BURRITO), dish=[1, 1, 0, 0], next_recipe=3)
    outcome = jax.tree.map(lambda x: np.asarray(x)[None], OPEN.outcome(step(state, INTERACT, INTERACT).state))
    found = {name: value.tolist() for name, value in columns(outcome).items()}
    assert (found["delivered"], found["in_order"], found["unordered"]) == ([1], [1], [1])
    assert (found["reward"], found["steps"], found["any_delivered"]) == ([88.0], [1], [True])
    assert set(RESULTS.columns(outcome)) == set(found)


def test_burrito_draws_differ_between_keys_and_players():
    bits = np.array([OPEN.sample_draws(jax.random.key(k), scene(None, None)).priority for k in range(4)])
    assert bits.shape == (4, 2) and len(np.unique(bits)) == 8
