"""What a repair channel in CUBE is advised to do, against the published search in plain Python."""

import dataclasses
import itertools
from collections import deque
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair.controller import no_evaluation
from jaxcoop.envs.cube import guidance
from jaxcoop.envs.cube.assignment import NEVER, cheapest
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.repair import world_of
from jaxcoop.envs.cube.repair_text import guidance as guidance_text
from jaxcoop.envs.cube.skills import Entity, Op
from jaxcoop.envs.cube.types import Action

OPS = 12
DIRECTIONS = {Action.RIGHT: (0, 1), Action.DOWN: (1, 0), Action.UP: (-1, 0), Action.LEFT: (0, -1)}


@partial(jax.jit, static_argnames=("env", "ops"))
def advised(env, state, available, failing, wanted=True, ops=OPS):
    return guidance.advise(world_of(env, state), available, failing, jnp.asarray(wanted), state.t, ops)


def advise(env, cells, blocks, available=None, failing=(), t=0, **options):
    state = dataclasses.replace(env.start_from(Start(*map(np.array, (*zip(*cells), *zip(*blocks))))), t=jnp.int32(t))
    available = np.ones(len(cells), bool) if available is None else np.isin(np.arange(len(cells)), available)
    is_failing = np.isin(np.arange(len(blocks)), failing)
    return jax.device_get(advised(env, state, available, is_failing, **options))


def rows(advice, agent):
    """The ops of an agent without what they leave open."""
    plan = advice.guidance.plan
    return [tuple(int(word) for word in op if word >= 0) for op in plan.ops[agent, : plan.length[agent]]]


def path(env, cells, squares, agent, target):
    """The published breadth-first search: directions, or None."""
    blocked = {c for c in squares | {tuple(c) for i, c in enumerate(cells) if i != agent} if c != target}
    queue, seen = deque([(tuple(cells[agent]), ())]), {tuple(cells[agent])}
    while queue:
        (row, col), steps = queue.popleft()
        if (row, col) == target:
            return steps
        for direction, (down, right) in DIRECTIONS.items():
            cell = (row + down, col + right)
            if all(0 <= x < env.side for x in cell) and cell not in seen and cell not in blocked:
                seen.add(cell)
                queue.append((cell, (*steps, direction)))
    return None


def searched(env, cells, blocks, available, failing):
    """(block, agents, cells, paths) by listing all teams and all their places."""
    alive = [b for b, (row, _) in enumerate(blocks) if row >= 0]
    weights = env.weights
    squares = {
        (blocks[b][0] + i, blocks[b][1] + j) for b in alive for i in range(weights[b]) for j in range(weights[b])
    }
    fits = [b for b in alive if weights[b] <= len(available)]

    def is_clear(b):
        mine = {blocks[b][0] + i for i in range(weights[b])}
        ends = [(o, blocks[o][1] + weights[o]) for o in alive if o != b]
        ahead = [o for o, end in ends if end > blocks[b][1] + weights[b]]
        return not any(mine & {blocks[o][0] + i for i in range(weights[o])} for o in ahead)

    def rank(b):
        return b in failing, weights[b], -max(0, env.side - 1 - (blocks[b][1] + weights[b] - 1))

    for b in sorted([b for b in fits if is_clear(b)] or fits, key=rank, reverse=True):
        face = [(blocks[b][0] + i, blocks[b][1] - 1) for i in range(weights[b]) if blocks[b][1] > 0]
        options = []
        for team in itertools.combinations(sorted(available, key=str), weights[b]):
            for places in itertools.permutations(face, weights[b]):
                paths = [path(env, cells, squares, agent, cell) for agent, cell in zip(team, places)]
                if None not in paths:
                    names = [f"agent_{agent}" for agent in team]
                    options.append((sum(map(len, paths)), names, places, team, paths))
        if options:
            _, _, places, team, paths = min(options)
            return b, team, places, paths
    return None


def ops_of(env, blocks, block, paths):
    """The published plan of each path."""
    latest, pushes = max(map(len, paths)), max(1, env.side - 1 - (blocks[block][1] + env.weights[block] - 1))

    def chunks(total, size):
        return [size] * (total // size) + [total % size] * (total % size > 0)

    for steps in paths:
        moves = [(direction, len(list(run))) for direction, run in itertools.groupby(steps)]
        yield [
            *[(Op.MOVE, direction, count) for direction, total in moves for count in chunks(total, 5)],
            *[(Op.WAIT, count) for count in chunks(latest - len(steps), 10)],
            *[(Op.PUSH, block, count) for count in chunks(pushes, 10)],
        ]


def test_the_search_finds_what_listing_all_teams_finds():
    """In crowded small worlds, where ways are blocked and many teams are equally near."""
    env, rng = Cube(side=8, agents=5, blocks="1:2,2:2,3:1"), np.random.default_rng(3)
    for _ in range(60):
        blocks = [(int(r), int(c)) for r, c in rng.integers(0, 6, (5, 2))]
        blocks = [(-1, -1) if rng.random() < 0.2 else block for block in blocks]
        cells = [tuple(map(int, cell)) for cell in rng.integers(0, 8, (5, 2))]
        available = [i for i in range(5) if rng.random() < 0.7]
        failing = [b for b in range(5) if rng.random() < 0.3]
        advice = advise(env, cells, blocks, available, failing, t=9)
        best = searched(env, cells, blocks, available, failing)
        assert advice.guidance.has_target == (best is not None)
        assert np.flatnonzero(advice.guidance.participants).tolist() == sorted(best[1] if best else [])
        if best is None:
            continue
        block, team, places, paths = best
        assert advice.guidance.target == 4 * block + 2
        assert advice.team.cell[list(team)].tolist() == [list(cell) for cell in places]
        assert advice.push_at == 9 + max(map(len, paths))
        for agent, ops in zip(team, ops_of(env, blocks, block, paths), strict=True):
            assert rows(advice, agent) == ops[:OPS]


def test_two_agents_meet_at_the_face():
    """The worked example C."""
    env = Cube(side=15, agents=2, blocks="2:1")
    advice = advise(env, [(5, 0), (6, 1)], [(5, 5)], failing=[0])
    assert rows(advice, 0) == [(Op.MOVE, Action.RIGHT, 4), (Op.PUSH, 0, 8)]
    assert rows(advice, 1) == [(Op.MOVE, Action.RIGHT, 3), (Op.WAIT, 1), (Op.PUSH, 0, 8)]
    assert advice.team.cell.tolist() == [[5, 4], [6, 4]]
    assert advice.push_at == 4
    assert advice.guidance.plan.spec.tolist() == [[0, 0, -1]] * 2


@pytest.mark.parametrize("options", [{"available": [0]}, {"wanted": False}, {"available": []}])
def test_no_advice_without_enough_agents_or_a_failure(options):
    """The first is the worked example B."""
    advice = advise(Cube(side=15, agents=2, blocks="2:1"), [(5, 0), (6, 1)], [(5, 5)], failing=[0], **options)
    assert not advice.guidance.has_target
    assert not (advice.guidance.participants.any() or advice.guidance.has_plan.any())
    assert (advice.guidance.plan.ops == -1).all()


def test_waits_and_pushes_come_in_pieces():
    env = Cube(side=40, agents=2, blocks="2:1")
    advice = advise(env, [(20, 0), (20, 2)], [(20, 3)])
    assert rows(advice, 1)[-4:] == [(Op.PUSH, 0, 10), (Op.PUSH, 0, 10), (Op.PUSH, 0, 10), (Op.PUSH, 0, 5)]
    far = advise(env, [(0, 0), (20, 2)], [(20, 3)])
    assert [op for op in rows(far, 1) if op[0] == Op.WAIT] == [(Op.WAIT, 10), (Op.WAIT, 10), (Op.WAIT, 1)]


def test_a_plan_that_takes_too_many_ops_ends_early():
    env = Cube(side=40, agents=2, blocks="2:1")
    advice = advise(env, [(0, 0), (20, 2)], [(20, 3)], ops=2)
    assert rows(advice, 0) == [(Op.MOVE, Action.RIGHT, 2), (Op.MOVE, Action.DOWN, 5)]
    assert advice.guidance.plan.length.tolist() == [2, 2]


@pytest.mark.parametrize(("near", "member"), [([2, 10], 10), ([3, 10], 10), ([4, 2], 2), ([4], 4)])
def test_of_equal_teams_the_first_ids_as_text_go(near, member):
    env, spots = Cube(side=15, agents=12, blocks="1:1"), [(5, 0), (7, 0)]
    cells = [spots[near.index(i)] if i in near else (14, i) for i in range(12)]
    advice = advise(env, cells, [(6, 5)])
    assert np.flatnonzero(advice.guidance.participants).tolist() == [member]


def test_large_faces_are_manned_by_the_nearest_agents():
    """They navigate: which cell each of them takes is left to the way they come."""
    env = Cube(side=30, agents=9, blocks="7:1,1:1")
    cells = [(2 * i + 3, 5 if i % 2 else 3) for i in range(8)]
    advice = advise(env, [*cells, (29, 29)], [(8, 8), (27, 20)], failing=[0], t=3)
    assert np.flatnonzero(advice.guidance.participants).tolist() == [1, 2, 3, 4, 5, 6, 7]
    distance = [sum((abs(r - min(max(r, 8), 14)), 7 - c)) for r, c in cells]
    assert advice.team.distance.tolist() == [0, *distance[1:8], 0]
    assert advice.push_at == 3 + max(distance[1:8])
    assert rows(advice, 3)[0] == (Op.NAVIGATE, Entity.BLOCK, 0, 30)
    assert rows(advice, 3)[1:] == [(Op.WAIT, max(distance[1:8]) - distance[3]), (Op.PUSH, 0, 10), (Op.PUSH, 0, 5)]
    assert (advice.team.cell == -1).all()
    told = guidance_text(env.weights, jax.device_get(no_evaluation(9)), advice)
    assert told["recommended_target"]["cell_assignments"] == {}
    assert told["recommended_plans"]["agent_3"]["actions"][0] == {
        "action_type": "navigate",
        "args": {"entity_type": "block", "entity_id": 0, "timeout": 30},
    }
    assert not any("assigned_face_cell" in plan for plan in told["recommended_plans"].values())


@pytest.mark.parametrize(("row", "timeout"), [(16, 30), (0, 48), (100, 100)])
def test_long_ways_have_long_timeouts(row, timeout):
    env = Cube(side=110, agents=7, blocks="7:1")
    advice = advise(env, [*[(24 + i, 7) for i in range(6)], (row, 7)], [(24, 8)])
    assert rows(advice, 6)[0] == (Op.NAVIGATE, Entity.BLOCK, 0, timeout)


def test_small_faces_beside_large_ones_are_still_shared_out():
    env = Cube(side=30, agents=3, blocks="7:1,1:1")
    advice = advise(env, [(0, 0), (27, 9), (27, 2)], [(8, 8), (27, 20)])
    assert advice.guidance.target == 4 + 2
    assert rows(advice, 1)[-1] == (Op.PUSH, 1, 9)
    assert advice.team.cell[1].tolist() == [27, 19]


def test_batches_are_advised_apart():
    env = Cube(side=15, agents=3, blocks="1:1,2:1,3:1")
    states = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), 4))
    available = jnp.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], bool)
    failing = jnp.zeros((4, 3), bool).at[1].set(True)
    together = jax.vmap(partial(advised, env))(states, available, failing)
    alone = [advised(env, jax.tree.map(lambda x: x[i], states), available[i], failing[i]) for i in range(4)]  # noqa: B023
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda *x: np.stack(x), *alone), together)
    assert together.guidance.has_target.tolist() == [True, True, True, False]


def test_assignments_are_the_first_of_the_cheapest():
    rng, agents, cells = np.random.default_rng(1), 5, 4
    solve = jax.jit(cheapest)
    for _ in range(150):
        count = int(rng.integers(1, cells + 1))
        cost = np.where(rng.random((agents, cells)) < 0.25, NEVER, rng.integers(0, 4, (agents, cells)))
        options = [
            (sum(cost[team, places]), team, places)
            for team in map(list, itertools.combinations(range(agents), count))
            for places in map(list, itertools.permutations(range(count)))
            if (cost[team, places] < NEVER).all()
        ]
        found, place = solve(jnp.asarray(cost, jnp.int32), jnp.int32(count))
        expected = np.full(agents, -1)
        if options:
            _, team, places = min(options)
            expected[team] = places
        assert bool(found) == bool(options)
        np.testing.assert_array_equal(place, expected)
