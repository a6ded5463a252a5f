"""The compiled CUBE does what the plain one does on crowded random grids, at the edges of its number types too."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.benchmarks.plain.cube import PlainCube
from jaxcoop.core.env import NoDraws
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube.generate import Start

EPISODES, STEPS = 60, 40
RESULTS = {"ok": 1, "insufficient_force": 2, "blocked_destination": 3}
ODD_ACTIONS = (-1, 5, 2**31 - 1, -(2**31))
SIDES_OF_A_BLOCK = {1: (1, 0), 2: (-1, 0), 3: (0, 1), 4: (0, -1)}  # push direction -> where its pushers stand

SETTINGS = {
    "few": Cube(side=7, agents=4, blocks="2:1,1:3", max_steps=40, deliver_reward=0.75),
    "crowd": Cube(side=11, agents=24, blocks="1:8,3:2,2:4", max_steps=39),
    "legacy": Cube(side=9, agents=14, blocks="3:1,1:5,2:2", max_steps=40, revision="legacy"),
    "paper": Cube(side=10, agents=16, blocks="1:6,2:3", max_steps=40, conflict="paper"),
    "side 60": Cube(side=60, agents=12, blocks="4:1,1:8,2:3", max_steps=40),
    "side 61": Cube(side=61, agents=12, blocks="4:1,1:8,2:3", max_steps=40),
    "many": Cube(side=31, agents=150, blocks="9:1,4:2,2:12,1:40", max_steps=40),
}


def random_start(env, rng):
    """(agents, blocks): disjoint blocks, most of them near an edge, and agents around them, cells shared at times."""
    side, weights, blocks, solid = env.side, env.layout.weights, [], set()
    while len(blocks) < len(weights):
        weight = weights[len(blocks)]
        # nothing starts in the goal column: no start of the rules does, and none of their steps leads there
        row = rng.choice((rng.randint(0, side - weight), rng.randint(0, 2), side - weight - rng.randint(0, 2)))
        column = rng.choice((rng.randint(0, side - weight - 1), side - weight - 1 - rng.randint(0, 2)))
        square = {(row + i, column + j) for i in range(weight) for j in range(weight)}
        if column >= 0 and 0 <= row <= side - weight and solid.isdisjoint(square):
            blocks.append((row, column))
            solid |= square
    agents = []
    while len(agents) < env.num_agents:
        b, direction = rng.randrange(len(weights)), rng.randint(1, 4)
        (row, column), w, (dr, dc) = blocks[b], weights[b], SIDES_OF_A_BLOCK[direction]
        along = rng.randrange(w)
        face = (row + (along if dr == 0 else w if dr > 0 else -1), column + (along if dc == 0 else w if dc > 0 else -1))
        place = rng.choice((face, face, (rng.randrange(side), rng.randrange(side - 1))))
        if place not in solid and 0 <= place[0] < side and 0 <= place[1] < side - 1:
            agents.append(None if rng.random() < 0.03 else place)
    return agents, blocks


def random_actions(env, rng):
    """[T][A]: agents like to go on as they do, and to the right."""
    team, steps = [4] * env.num_agents, []
    for _ in range(STEPS):
        team = [a if rng.random() < 0.6 else rng.choice((0, 1, 2, 3, 4, 4, *ODD_ACTIONS)) for a in team]
        steps.append(team)
    return steps


def compiled(env, starts, actions):
    """Steps [E, T, ...] of the compiled rules, numpy."""

    def cells(places):
        return np.array([[place or (-1, -1) for place in episode] for episode in places], np.int16)

    agents, blocks = (cells(places) for places in zip(*starts))

    def episode(agents, blocks, actions):
        state = env.start_from(Start(agents[:, 0], agents[:, 1], blocks[:, 0], blocks[:, 1]))

        def step(state, action):
            done = env.step(state, action, NoDraws())
            return done.state, done

        return jax.lax.scan(step, state, actions)[1]

    return jax.device_get(jax.jit(jax.vmap(episode))(agents, blocks, jnp.asarray(np.array(actions, np.int32))))


def compare(cube, result, got, at):
    """Everything that one step says."""
    push, pusher = np.zeros_like(got.events.push), np.full_like(got.events.pusher, -1)
    for event in cube.pushes:
        push[event.direction - 1, event.block] = RESULTS[event.result]
        pusher[event.pushers] = event.block
    delivered = np.zeros(len(cube.weights), bool)
    delivered[[delivery.block for delivery in cube.delivered]] = True
    agents, blocks = (np.array([place or (-1, -1) for place in places]) for places in (cube.agents, cube.blocks))
    state = got.state
    for name, value, wanted in (
        ("agents", np.stack([state.row, state.col], 1), agents),
        ("blocks", np.stack([state.block_row, state.block_col], 1), blocks),
        ("push", got.events.push, push),
        ("pusher", got.events.pusher, pusher),
        ("delivered", got.events.delivered, delivered),
        ("flags", (got.terminated, got.truncated), (result.terminated, result.truncated)),
        ("score", state.score, cube.score),
    ):
        if not np.array_equal(value, wanted):
            np.testing.assert_array_equal(value, wanted, f"{name}, {at}")
    assert np.abs(got.reward - result.reward).max() < 1e-6, at


@pytest.mark.slow
@pytest.mark.parametrize("env", SETTINGS.values(), ids=SETTINGS)
def test_the_compiled_cube_does_what_the_plain_one_does(env):
    rng = random.Random(5)
    starts = [random_start(env, rng) for _ in range(EPISODES)]
    actions = [random_actions(env, rng) for _ in range(EPISODES)]
    steps = compiled(env, starts, actions)
    cube = PlainCube(
        env.side,
        env.layout.weights,
        env.num_agents,
        max_steps=env.max_steps,
        step_cost=env.step_cost,
        deliver_reward=env.deliver_reward,
        revision=env.revision,
        conflict=env.conflict,
    )
    seen = {"delivered": 0}
    for e, (start, played) in enumerate(zip(starts, actions)):
        cube.start(*start)
        for t, team in enumerate(played):
            result = cube.step(team)
            compare(cube, result, jax.tree.map(lambda leaf, at=(e, t): leaf[at], steps), f"episode {e}, step {t}")
            seen["delivered"] += len(cube.delivered)
            for push in cube.pushes:
                seen[push.result] = seen.get(push.result, 0) + 1
            if result.terminated or result.truncated:
                break
    assert min(seen.get(kind, 0) for kind in ("delivered", *RESULTS)) > 20, seen
