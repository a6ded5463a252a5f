"""Rules of CUBE that recorded data do not reach, and properties of every step.

Boards: a letter is an agent (its index in the alphabet), a digit a block (its weight, at its top-left cell only).
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.env import NoDraws
from jaxcoop.envs.cube import Cube, lookup, observe
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.presets import PRESETS, parse_blocks
from jaxcoop.envs.cube.types import Action, Command, Push

STAY, UP, DOWN, LEFT, RIGHT = Action
DENSE = Cube(side=9, agents=12, blocks="1:5,2:3,3:1")


def at(env, agents, blocks):
    """The state with these cells."""
    columns = (np.asarray(x, np.int16)[:, axis] for x in (agents, blocks) for axis in (0, 1))
    return env.start_from(Start(*map(jnp.asarray, columns)))


@partial(jax.jit, static_argnums=0)
def compiled_step(env, state, action):
    return env.step(state, action, NoDraws())


def step(env, state, actions):
    return compiled_step(env, state, jnp.asarray(actions, jnp.int32))


def one_step(state, actions):
    return DENSE.step(state, actions, NoDraws())


def cells(step):
    return list(zip(step.state.row.tolist(), step.state.col.tolist(), strict=True))


def dense_states(count, seed=0):
    """States with many agents, some in one cell, between blocks that touch."""
    rng = np.random.default_rng(seed)
    weights, states = DENSE.layout.weights, []
    while len(states) < count:
        taken, corners = np.zeros((9, 9), bool), []
        for w in weights:
            free = [(r, c) for r in range(9 - w) for c in range(9 - w) if not taken[r : r + w, c : c + w].any()]
            if not free:
                break
            r, c = free[rng.integers(len(free))]
            taken[r : r + w, c : c + w] = True
            corners.append((r, c))
        open_cells = np.argwhere(~taken[:, :8])
        if len(corners) == len(weights):
            gone = rng.random(len(weights)) < 0.1
            agents = open_cells[rng.integers(len(open_cells), size=12)]
            states.append((agents, np.where(gone[:, None], -1, corners)))
    agents, blocks = (np.stack(x).astype(np.int16) for x in zip(*states, strict=True))
    start = Start(agents[..., 0], agents[..., 1], blocks[..., 0], blocks[..., 1])
    return jax.vmap(DENSE.start_from)(jax.tree.map(jnp.asarray, start))


@partial(jax.jit, static_argnums=(0, 1))
def steps_of(env, limits, states, actions):
    """Batched steps; `limits` are those of `lookup`, so that other ones make another program."""
    assert limits == (lookup.PAIRS, lookup.MAPPED_AGENTS)

    def one(state, actions):
        def body(state, action):
            done = env.step(state, action, NoDraws())
            return done.state, done

        return jax.lax.scan(body, state, actions)[1]

    return jax.vmap(one)(states, actions)


def play_dense(env, states, actions):
    """All states [E, T] of a few steps, with events."""
    return jax.device_get(steps_of(env, (lookup.PAIRS, lookup.MAPPED_AGENTS), states, actions))


@pytest.mark.parametrize("options", [{}, {"revision": "legacy"}, {"conflict": "paper"}])
def test_comparing_pairs_and_looking_up_in_a_map_give_the_same_step(options, monkeypatch):
    env = dataclasses.replace(DENSE, **options)
    states = dense_states(200)
    actions = jax.random.randint(jax.random.key(1), (200, 8, 12), 0, 5)
    pairs = play_dense(env, states, actions)
    monkeypatch.setattr(lookup, "PAIRS", 0)
    monkeypatch.setattr(lookup, "MAPPED_AGENTS", 0)
    jax.tree.map(np.testing.assert_array_equal, pairs, play_dense(env, states, actions))


@pytest.mark.parametrize("physics", ["coop2", "chain"])
def test_no_agent_is_ever_in_a_block_and_no_two_blocks_overlap(physics):
    env = dataclasses.replace(DENSE, physics=physics)
    played = play_dense(env, dense_states(200), jax.random.randint(jax.random.key(2), (200, 8, 12), 0, 5))
    assert (played.events.push == Push.SUCCESS).any()
    state = played.state
    weights = np.array(env.layout.weights)
    cover = np.zeros((*state.t.shape, 9, 9), int)
    for r in range(9):
        for c in range(9):
            inside = (state.block_row <= r) & (r < state.block_row + weights) & (state.block_row >= 0)
            inside &= (state.block_col <= c) & (c < state.block_col + weights)
            cover[..., r, c] = inside.sum(-1)
    assert cover.max() == 1
    e, t, _ = np.indices(state.row.shape)
    assert (cover[e, t, state.row, state.col] == 0).all()


def test_a_batch_of_one_and_a_single_episode_step_alike():
    states = dense_states(3)
    actions = jax.random.randint(jax.random.key(3), (3, 12), 0, 5)
    together = jax.jit(jax.vmap(one_step))(states, actions)
    single = jax.jit(one_step)
    for e in range(3):
        alone = single(jax.tree.map(lambda x, e=e: x[e], states), actions[e])
        jax.tree.map(np.testing.assert_array_equal, alone, jax.tree.map(lambda x, e=e: x[e], together))


def test_of_several_agents_that_want_one_empty_cell_the_paper_lets_the_first_in():
    env = Cube(side=8, agents=3, blocks="1:1", conflict="paper")
    done = step(env, at(env, [(2, 1), (2, 3), (1, 2)], [(5, 5)]), [RIGHT, LEFT, DOWN])
    assert cells(done) == [(2, 2), (2, 3), (1, 2)]


def test_three_pushes_in_a_row_need_ascending_ids():
    """4.2: each push empties the cell that the next block wants; a lower id behind comes too early."""
    env = Cube(side=9, agents=3, blocks="1:3")
    agents = [(1, 5), (1, 3), (1, 1)]
    done = step(env, at(env, agents, [(1, 6), (1, 4), (1, 2)]), [RIGHT] * 3)
    assert done.state.block_col.tolist() == [7, 5, 3]
    done = step(env, at(env, agents, [(1, 2), (1, 4), (1, 6)]), [RIGHT] * 3)
    assert done.state.block_col.tolist() == [2, 4, 7]


def test_a_block_that_a_chain_has_moved_is_not_moved_again_in_the_same_pass():
    env = Cube(side=10, agents=5, blocks="1:1,2:1", physics="chain")
    done = step(env, at(env, [(2, 3), (2, 2), (2, 1), (3, 4), (3, 3)], [(2, 4), (2, 5)]), [RIGHT] * 5)
    assert done.state.block_col.tolist() == [5, 6]


@pytest.mark.parametrize(("physics", "enters"), [("coop2", False), ("chain", True)])
def test_the_goal_column_may_be_entered_with_chains_only(physics, enters):
    env = Cube(side=8, agents=1, blocks="1:1", physics=physics)
    state = at(env, [(2, 6)], [(4, 2)])
    assert bool(env.legal(state)[0, RIGHT]) == enters
    assert cells(step(env, state, [RIGHT])) == [(2, 7 if enters else 6)]


def test_a_pusher_does_not_walk_within_the_goal_column():
    env = Cube(side=8, agents=1, blocks="1:1,2:1")  # a state made by hand: 4.2, point 5
    done = step(env, at(env, [(5, 7)], [(4, 7), (2, 2)]), [UP])
    assert done.state.block_row.tolist() == [-1, 2] and float(done.state.score) == 1
    assert cells(done) == [(5, 7)]


def test_nothing_changes_after_the_end():
    env = Cube(side=8, agents=2, blocks="1:1", max_steps=2)
    state = at(env, [(2, 1), (4, 4)], [(2, 2)])
    for _ in range(2):
        state = step(env, state, [RIGHT, UP]).state
    after = step(env, state, [RIGHT, UP])
    jax.tree.map(np.testing.assert_array_equal, after.state, state)
    assert after.reward.tolist() == [0, 0] and bool(after.truncated)
    assert (after.events.attempts.task == -1).all()


def test_the_reward_of_a_delivery_is_shared_by_all_agents_placed_or_not():
    env = Cube(side=8, agents=4, blocks="2:1", deliver_reward=3.0, step_cost=0.5)
    state = at(env, [(2, 4), (3, 4), (-1, -1), (7, 0)], [(2, 5)])
    done = step(env, state, [RIGHT, RIGHT, RIGHT, STAY])
    np.testing.assert_allclose(done.reward, [-0.5 + 6 / 4] * 4, rtol=1e-6)
    assert bool(done.terminated) and done.state.score == 6 and done.state.block_row.tolist() == [-1]


@pytest.mark.parametrize("action", [-1, 5, 2**31 - 1, -(2**31)])
def test_a_number_that_is_no_action_stays(action):
    env = Cube(side=8, agents=2, blocks="1:1")
    done = step(env, at(env, [(2, 1), (4, 4)], [(2, 2)]), [action, action])
    assert cells(done) == [(2, 1), (4, 4)] and done.state.block_col.tolist() == [2]


def test_outcomes_of_push_intents_are_in_the_state():
    """9.4: success, another block, too little force, no contact; nothing for an agent without an intent."""
    env = Cube(side=10, agents=5, blocks="1:2,2:1")
    state = at(env, [(1, 1), (3, 1), (5, 1), (8, 1), (9, 9)], [(1, 2), (3, 2), (5, 2)])
    actions = [RIGHT, RIGHT, RIGHT, RIGHT, STAY]
    command = Command(*(jnp.asarray(x, jnp.int32) for x in (actions, [0, 0, 2, 2, -1], [2, 2, 2, 2, 0])))
    done = compiled_step(env, state, command)
    wanted = [Push.SUCCESS, Push.MISMATCH, Push.INSUFFICIENT_FORCE, Push.NO_CONTACT, Push.NONE]
    assert done.state.last.result.tolist() == wanted
    assert done.state.last.pushed.tolist() == [-1, 1, -1, -1, -1]
    assert done.state.aim.tolist() == [2, 2, 10, 10, -1], "intents count wherever the agent stands"
    assert env.attempts(state, command).tolist() == [2, 2, 10, 10, -1]


def test_switched_off_phantoms_make_no_attempts():
    """10.3: two agents push a block home in two pushes and walk on."""
    for phantoms in (True, False):
        env = Cube(side=8, agents=2, blocks="2:1,1:1", phantom_attempts=phantoms)
        state = at(env, [(2, 2), (3, 2)], [(2, 3), (6, 2)])
        events = []
        for _ in range(6):
            done = step(env, state, [RIGHT, RIGHT])
            state = done.state
            events.append((done.events.attempts.task >= 0).sum().item())
        assert events[:3] == [1, 1, 1] and events[4:] == ([1, 1] if phantoms else [0, 0])


def test_a_window_is_the_part_of_the_map_around_the_agent():
    env = Cube(side=8, agents=3, blocks="2:1", view=5)
    state = at(env, [(0, 0), (3, 4), (-1, -1)], [(3, 5)])
    whole = np.pad(np.asarray(observe.grid(env.layout, state)), ((2, 2), (2, 2), (0, 0)))
    seen = np.asarray(env.observe(state).grid)
    np.testing.assert_array_equal(seen[0], whole[0:5, 0:5])
    np.testing.assert_array_equal(seen[1], whole[3:8, 4:9])
    assert not seen[2].any()
    one = env.observe(state, jnp.asarray([1], jnp.int32))
    np.testing.assert_array_equal(one.grid[0], seen[1])
    assert one.agent.tolist() == [1]


def test_illegal_actions_have_no_effect():
    played = play_dense(DENSE, dense_states(200), jax.random.randint(jax.random.key(4), (200, 8, 12), 0, 5))
    states = jax.tree.map(lambda x: jnp.asarray(x[:, 0]), played.state)
    legal = np.asarray(jax.vmap(DENSE.legal)(states))
    assert legal[..., 0].all() and not legal.all()
    for direction in range(1, 5):
        actions = np.zeros((200, 8, 12), np.int32)
        actions[:, 0] = np.where(legal[..., direction], 0, direction)
        after = play_dense(DENSE, states, actions).state
        for name in ("row", "col", "block_row", "block_col"):
            np.testing.assert_array_equal(getattr(after, name)[:, 0], getattr(states, name))


def test_the_task_table_has_a_slot_for_each_face():
    env = Cube(side=8, agents=2, blocks="2:1,1:1", deliver_reward=2.0)
    table = env.tasks(at(env, [(0, 0), (1, 0)], [(2, 2), (-1, -1)]))
    assert table.active.tolist() == [True] * 4 + [False] * 4
    assert table.required.tolist() == [2] * 4 + [1] * 4
    assert table.value.tolist() == [4.0] * 4 + [2.0] * 4
    assert table.kind.tolist() == [0, 1, 2, 3] * 2 and table.place.tolist()[0] == [2, 2]


@pytest.mark.parametrize("n", [2, 3, 8, 100, 128, 256])
def test_every_size_of_the_scaling_family_has_a_preset(n):
    env = Cube(**PRESETS[f"cube_scale_{n}"])
    assert (env.side, env.agents, env.layout.weights[0]) == (max(20, n), n, n // 2 + 1)
    assert [count for _, count in parse_blocks(env.blocks)] == list(range(1, len(parse_blocks(env.blocks)) + 1))


def test_the_scaling_table_is_the_published_one():
    assert PRESETS["cube_scale_256"]["blocks"] == "129:1,64:2,32:3,16:4,8:5,4:6,2:7,1:8"
    assert PRESETS["cube_scale_2"]["blocks"] == "2:1,1:2"
    for name in ("cube_scale_1", "cube_scale_257", "cube_scale_08", "other"):
        assert name not in PRESETS


@pytest.mark.parametrize(
    "options, words",
    [
        ({"blocks": "2"}, "weight:count"),
        ({"blocks": ""}, "weight:count"),
        ({"blocks": "0:1"}, "1 or more"),
        ({"blocks": "2:1,2:1"}, "twice"),
        ({"blocks": "13:1"}, "from 1 to 12"),
        ({"side": 8, "blocks": "1:26"}, "room for 25"),
        ({"agents": 0}, "from 1 to 1,024"),
        ({"side": 4, "agents": 17, "blocks": "1:1"}, "16 cells"),
        ({"view": 4}, "odd"),
        ({"physics": "real"}, "allowed"),
        ({"max_steps": 1.5}, "whole number"),
        ({"step_cost": float("nan")}, "from"),
    ],
)
def test_a_bad_option_is_named_with_what_is_allowed(options, words):
    with pytest.raises(ValueError, match=words):
        Cube(**options)


def test_block_lists_that_say_the_same_are_the_same_environment():
    assert Cube(blocks=" 2:1, 3:01") == Cube() and hash(Cube(blocks="2 : 1,3:1")) == hash(Cube())


def test_512_agents_play_on_a_wide_grid():
    env = Cube(side=600, agents=512, blocks="2:10,3:10", view=7)
    key = jax.random.key(0)

    def play(key):
        state = env.reset(key)
        body = lambda s, k: (env.step(s, jax.random.randint(k, (512,), 0, 5), NoDraws()).state, None)  # noqa: E731
        return state, jax.lax.scan(body, state, jax.random.split(key, 5))[0]

    before, after = jax.jit(play)(key)
    assert after.t == 5 and (after.col >= 0).all() and (before.col != after.col).any()
    assert partial(jax.eval_shape, env.observe)(after).grid.shape == (512, 7, 7, 5)
