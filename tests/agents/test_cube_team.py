"""The greedy team of CUBE: what it delivers, what it may do, and the judgements it goes by."""

from collections import deque
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.registry import default_policy, make_policy
from jaxcoop.agents.scripted.cube import jobs, teams
from jaxcoop.core.rollout import episode_key, initial, streams_of, take_turn
from jaxcoop.envs.cube import Cube, fields
from jaxcoop.envs.cube.presets import PRESETS
from jaxcoop.envs.cube.rules import Layout
from jaxcoop.envs.cube.skills import Op
from jaxcoop.envs.cube.types import Action
from jaxcoop.envs.null import Null

EPISODES = 16


@cache
def player(env, steps):
    """Plays numbered episodes: final state, and per step the ops, the states before it and whether it counted."""
    policy = make_policy("greedy", env)

    def play(episode):
        key = episode_key(jax.random.key(7), episode)
        streams = streams_of(key)

        def one(carry, t):
            state, memory = carry
            move, memory = take_turn(env, policy, streams, t, state, memory)
            ops = (memory.skill.op, memory.skill.args)
            return (move.nxt, memory), (ops, state.row, state.col, (state.block_row >= 0).any())

        (state, _), kept = jax.lax.scan(one, initial(env, policy, key), jnp.arange(steps, dtype=jnp.int32))
        return state, kept

    return jax.jit(jax.vmap(play))


@cache
def paper_run():
    return jax.device_get(player(Cube(**PRESETS["cube_paper_3"]), 300)(jnp.arange(EPISODES)))


def test_three_agents_deliver_everything_in_most_episodes():
    state, _ = paper_run()
    assert (state.block_row < 0).all(1).mean() >= 0.9
    assert state.t.mean() < 200


def test_every_op_is_one_step_of_moving_pushing_or_waiting():
    _, ((op, args), *_) = paper_run()
    assert np.isin(op, [Op.MOVE, Op.PUSH, Op.WAIT]).all()
    assert np.isin(args[..., 0][op == Op.MOVE], [Action.UP, Action.DOWN, Action.LEFT, Action.RIGHT]).all()
    pushed = args[..., 0][op == Op.PUSH]
    assert pushed.min() >= 0 and pushed.max() < 9
    assert (args[..., 1][op != Op.WAIT] == 1).all() and (args[..., 0][op == Op.WAIT] == 1).all()


def test_no_two_agents_are_ever_in_one_cell():
    _, (_, row, col, _) = paper_run()
    cell = np.sort(row.astype(int) * 15 + col)
    assert (cell[..., 1:] != cell[..., :-1]).all()


def test_an_episode_does_not_depend_on_its_place_in_the_batch():
    state, (ops, *_) = paper_run()
    again, (same, *_) = jax.device_get(player(Cube(**PRESETS["cube_paper_3"]), 300)(jnp.arange(EPISODES)[::-1]))
    np.testing.assert_array_equal(state.block_row, again.block_row[::-1])
    for a, b in zip(ops, same, strict=True):
        np.testing.assert_array_equal(a, b[::-1])


@pytest.mark.slow
def test_a_lone_agent_delivers_the_light_blocks_and_leaves_the_others():
    env = Cube(side=10, agents=1, blocks="2:1,1:2", max_steps=200)
    state, _ = jax.device_get(player(env, 200)(jnp.arange(EPISODES)))
    is_light = np.array(env.layout.weights) == 1
    assert (state.block_row[:, is_light] < 0).mean() > 0.9
    assert (state.block_row[:, ~is_light] >= 0).all()


@pytest.mark.parametrize("name", ["cube_paper_6", "cube_scale_16", "cube_scale_128"])
def test_plans_of_every_size_keep_their_types(name):
    env = Cube(**PRESETS[name], view=5)
    policy = make_policy("greedy", env)

    def turn(key):
        state, memory = initial(env, policy, key)
        return memory, take_turn(env, policy, streams_of(key), jnp.int32(0), state, memory)[1]

    before, after = jax.eval_shape(turn, jax.random.key(0))
    types = [[(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(tree)] for tree in (before, after)]
    assert types[0] == types[1]


def test_greedy_plays_where_nobody_is_named():
    assert default_policy("cube") == "greedy"


def test_the_team_refuses_another_environment():
    from jaxcoop.agents.scripted.cube import POLICIES

    with pytest.raises(ValueError, match="greedy plays cube"):
        POLICIES["greedy"].factory(Null())


def read(board):
    """Blocks of a board in letters, in alphabetical order, and its side."""
    rows = board.split()
    cells = {x: np.argwhere(np.array([list(r) for r in rows]) == x) for x in sorted(set("".join(rows)) - {"."})}
    corners = np.array([c.min(0) for c in cells.values()], np.int32)
    weights = tuple(int(np.sqrt(len(c))) for c in cells.values())
    return len(rows), jobs.blocks_of(Layout(len(rows), weights), jnp.array(corners[:, 0]), jnp.array(corners[:, 1]))


def best(board, leaving=()):
    """(rank, direction, target) of each block."""
    side, blocks = read(board)
    count = len(blocks.weight)
    is_leaving = jnp.array([i in leaving for i in range(count)])
    judge = jax.jit(lambda: jobs.options(side, blocks, is_leaving, jnp.int32(0), jnp.zeros((count,), jnp.int32)))
    found = judge()
    return [tuple(int(x) for x in job) for job in zip(found.rank, found.direction, found.target, strict=True)]


AHEAD = """
.......
.......
.aa.b..
.aa....
.......
.......
.......
"""

TOUCHING = """
.......
.......
.aab...
.aa....
.......
.......
.......
"""


def test_a_block_behind_another_waits_until_that_one_is_on_its_way():
    assert best(AHEAD)[1] == (jobs.DELIVER, Action.RIGHT, 6)
    assert best(AHEAD)[0][0] == jobs.MAKE_ROOM  # it could also pass by
    assert best(AHEAD, leaving=(1,))[0] == (jobs.DELIVER, Action.RIGHT, 5)


def test_touching_blocks_make_room_by_the_nearest_row_that_passes():
    assert best(TOUCHING) == [(jobs.MAKE_ROOM, Action.DOWN, 3), (jobs.MAKE_ROOM, Action.UP, 1)]
    assert best(TOUCHING, leaving=(1,))[0] == (jobs.DELIVER, Action.RIGHT, 5)  # only its face counts, that is free


def test_a_block_in_the_first_column_is_left_alone():
    assert best("a....\n.....\n....." + "\n....." * 2)[0][0] > jobs.MAKE_ROOM


def test_distances_are_those_of_a_search_from_every_goal():
    draw = np.random.default_rng(0)
    for side, share in ((7, 0.7), (15, 0.65), (15, 0.9), (20, 0.6)):
        is_open = draw.random((3, side, side)) < share
        goals = draw.random((3, side, side)) < 0.03
        found = np.asarray(jax.jit(fields.distances)(jnp.array(goals), jnp.array(is_open)))
        for field, goal, floor in zip(found, goals, is_open, strict=True):
            np.testing.assert_array_equal(field, searched(goal, floor, fields.far(side)))


def searched(goals, is_open, far):
    """Breadth-first search in plain Python."""
    field = np.full(goals.shape, far)
    queue = deque(map(tuple, np.argwhere(goals & is_open)))
    for cell in queue:
        field[cell] = 0
    while queue:
        r, c = queue.popleft()
        for cell in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            inside = min(cell) >= 0 and max(cell) < len(goals)
            if inside and is_open[cell] and field[cell] == far:
                field[cell] = field[r, c] + 1
                queue.append(cell)
    return field


def test_kth_smallest_counts_from_one():
    keys = jnp.array([[5, 0, 9, 7], [1, 2, 3, 64]])
    for k in range(1, 5):
        smallest = teams.kth_smallest(keys, jnp.array([k, k]), 6)
        np.testing.assert_array_equal(smallest[0], np.sort(keys[0])[k - 1])
    np.testing.assert_array_equal(teams.kth_smallest(keys, jnp.array([0, 3]), 6), [0, 3])
