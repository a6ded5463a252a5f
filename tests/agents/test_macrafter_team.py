"""The scripted team of the crafting world: ways, squads, and whole episodes in small worlds."""

import dataclasses
import heapq
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.registry import default_policy, make_policy
from jaxcoop.agents.scripted.macrafter import waves
from jaxcoop.agents.scripted.macrafter.squads import squads_of
from jaxcoop.core.rollout import play_from
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.types import DELTA_X, DELTA_Y, Achievement, Item

WIDTH, HEIGHT = 9, 40  # two words in a column
LETTERS = {".": 2, "w": 1, "s": 3, "T": 6, "L": 7, "c": 8, "i": 9, "d": 10}
KEY = jax.random.key(3)

EVERYTHING = """
    ................
    ..TTT...sss.....
    .0.TT...ssssccs.
    ..TTT...ssssccs.
    .1......sssssss.
    ....2...sisssss.
    .ww.....sssssds.
    .ww.............
"""
"""All that the tree takes, some steps apart."""

ISLANDS = """
    .T.TTwwwwwwwwwww
    .0TTTwwwwwwww...
    ..1.Twwwwwwww2..
    TTTTTwwwwwwww...
    ssssswwwwwwwwwww
    sccssswwwwwwwwww
    ssissswwwwwwwwww
    ssssdswwwwwwwwww
"""
"""One agent has nothing but grass, and water all around it."""

MEADOW = """
    ................
    .0...C..........
    ..1......C......
    ..........C.....
    ...2...C........
    ......C......C..
    ..............w.
    ................
"""


def start(text, env):
    """The state of a drawing; `C`: cows on grass."""
    rows = text.split()
    cells = {(x, y): letter for y, line in enumerate(rows) for x, letter in enumerate(line)}
    material = np.full((env.width, env.height), 2, np.uint8)
    for cell, letter in cells.items():
        material[cell] = LETTERS.get(letter, 2)
    agents = np.array([next(cell for cell, letter in cells.items() if letter == name) for name in "012"], np.int16)
    cows = np.full((6, 2), -1, np.int16)
    for slot, cell in enumerate(cell for cell, letter in cells.items() if letter == "C"):
        cows[slot] = cell
    return env.start(jnp.asarray(material), *(jnp.asarray(part) for part in (*cows.T, *agents.T)))


@cache
def team(max_steps):
    env = MACrafter(width=16, height=8, max_steps=max_steps, balance=False)
    policy = make_policy("greedy", env)
    return env, jax.jit(jax.vmap(lambda key, state: play_from(env, policy, key, state, policy.init(key))))


@cache
def played():
    """Outcomes in the three worlds, and again in the first."""
    env, play = team(480)
    states = [start(text, env) for text in (EVERYTHING, ISLANDS, MEADOW, MEADOW.replace("w", "."), EVERYTHING)]
    keys = jnp.stack([KEY] * len(states))
    return play(keys, jax.tree.map(lambda *leaves: jnp.stack(leaves), *states))


def test_it_plays_where_nobody_is_named():
    assert default_policy("macrafter") == "greedy"


def test_with_everything_close_by_the_whole_team_gets_the_diamond():
    outcome = played().outcome
    assert np.array_equal(outcome.achievements[0, :, Achievement.COLLECT_DIAMOND], [1, 1, 1])


def test_tools_and_stones_are_handed_to_an_agent_without_trees_and_rock_so_that_it_can_cross_water():
    found = played().outcome.achievements[1]
    assert found[2, Achievement.MAKE_WOOD_PICKAXE] == 0 and found[2, Achievement.PLACE_STONE] > 0
    assert np.array_equal(found[:, Achievement.COLLECT_DIAMOND], [1, 1, 1])


def test_nobody_dies_of_thirst_where_there_is_water():
    outcome = played().outcome
    assert outcome.deaths[2] == 0 and outcome.steps[2] == 480
    assert outcome.deaths[3] > 0 and outcome.steps[3] < 480  # the same world without it


def test_the_same_state_and_key_give_the_same_episode():
    result = played()
    for leaf in jax.tree.leaves(result):
        assert np.array_equal(leaf[0], leaf[4])


@pytest.mark.parametrize("agents", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_teams_of_other_sizes_start_with_wood(agents):
    env = MACrafter(agents=agents, width=16, height=16, balance=False)
    policy = make_policy("greedy", env)
    state = jax.jit(env.reset)(KEY)
    beside = state.x[0] + jnp.where(state.x[0] > 0, -1, 1)
    material = jnp.full((16, 16), 2, jnp.uint8).at[beside, state.y[0]].set(6)  # a tree beside agent 0
    state = dataclasses.replace(state, material=material)
    planner = policy.planner
    idle = jnp.ones((agents,), jnp.bool_)
    ops, changed, _ = jax.jit(lambda s: planner.plan(KEY, planner.init(KEY), s, idle, None))(state)
    assert ops.shape == (agents, env.skills.width) and ops.dtype == jnp.int32 and changed.all()
    kinds = [env.skills.ops[int(kind)].name for kind in ops[:, 0]]
    assert kinds[0] == "collect" and "move" in (kinds[1:] or ["move"])


@pytest.mark.parametrize(
    ("agents", "requirements", "sizes", "wants"),
    [
        (3, "paper", [3], (True, True, True)),
        (1, "paper", [1], (True, False, False)),
        (2, "paper", [2], (True, False, False)),
        (16, "paper", [4, 3, 3, 3, 3], (True, True, True)),
        (9, "level3", [5, 4], (True, True, True)),
    ],
)
def test_squads_are_as_large_as_the_hardest_resource_that_the_team_can_collect(agents, requirements, sizes, wants):
    squads = squads_of(MACrafter(agents=agents, requirements=requirements).settings)
    assert [int((row < agents).sum()) for row in squads.members] == sizes
    assert squads.wants == wants
    values = jnp.arange(agents)
    assert np.array_equal(squads.by_agent(squads.by_squad(values)), values)


def test_a_pickaxe_is_wanted_only_if_something_takes_it():
    squads = squads_of(MACrafter(requirements="stone:1,iron:3,diamond:2:stone_pickaxe|iron_pickaxe").settings)
    assert squads.wants == (False, True, False) and int(Item.STONE_PICKAXE) == int(Item.WOOD_PICKAXE) + 1


def random_queries(seed, count):
    """Costs 0 (closed), 1, 2, 4 of cells, goals and starts."""
    rng = np.random.default_rng(seed)
    cost = rng.choice([0, 1, 1, 2, 4], (count, WIDTH, HEIGHT))
    goals = rng.random((count, WIDTH, HEIGHT)) < 0.01
    x, y = rng.integers(0, WIDTH, count), rng.integers(0, HEIGHT, count)
    return cost, goals, x, y


def from_goals(cost, goals):
    """Steps from each cell to the nearest goal, by Dijkstra's search backwards."""
    far = np.full(cost.shape, np.inf)
    queue = []
    for cell in map(tuple, np.argwhere(goals & (cost > 0))):
        far[cell] = 0
        queue.append((0, cell))
    heapq.heapify(queue)
    while queue:
        length, cell = heapq.heappop(queue)
        if length > far[cell] or cost[cell] == 0:
            continue
        for dx, dy in zip(DELTA_X.tolist(), DELTA_Y.tolist(), strict=True):
            near = (cell[0] + dx, cell[1] + dy)
            is_inside = 0 <= near[0] < WIDTH and 0 <= near[1] < HEIGHT
            if is_inside and length + cost[cell] < far[near]:
                far[near] = length + cost[cell]
                heapq.heappush(queue, (far[near], near))
    return far


@cache
def found_ways():
    count = 40  # more than a block
    cost, goals, x, y = random_queries(1, count)

    def one(cost, goals, x, y):
        terrain = waves.Terrain(*(waves.pack(cost == n)[None] for n in (1, 2, 4)))
        facing = jnp.zeros((1,), jnp.int32)
        way = waves.ways(WIDTH, terrain, waves.pack(goals)[None], x[None], y[None], facing, jnp.ones((1,), jnp.bool_))
        return way.direction[0], way.length[0]

    args = [jnp.asarray(part) for part in (cost, goals, x, y)]
    together = jax.jit(jax.vmap(one))(*args)
    alone = jax.jit(one)
    return (cost, goals, x, y), together, [alone(*(part[k] for part in args)) for k in range(count)]


def test_ways_are_the_cheapest_ones():
    (cost, goals, x, y), (directions, lengths), _ = found_ways()
    kinds = set()
    for k in range(len(x)):
        far = from_goals(cost[k], goals[k])
        start = (x[k], y[k])
        if goals[k][start] or not np.isfinite(far[start]):
            kinds.add("none")
            assert directions[k] == waves.NOWHERE and lengths[k] == 0
            continue
        kinds.add("way")
        assert lengths[k] == far[start]
        first = (start[0] + DELTA_X[directions[k]], start[1] + DELTA_Y[directions[k]])
        assert cost[k][first] > 0 and far[first] + cost[k][first] == far[start]
    assert kinds == {"none", "way"}


def test_ways_do_not_depend_on_who_else_asks():
    _, (directions, lengths), alone = found_ways()
    assert [(int(d), int(n)) for d, n in alone] == list(zip(directions.tolist(), lengths.tolist(), strict=True))
