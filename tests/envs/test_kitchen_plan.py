"""Joint plans of kitchens against the method in plain Python (`kitchen_oracle`)."""

from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kitchen_oracle import STAY, Floor, Follower, one_step
from scipy.stats import chi2

from jaxcoop.envs.burrito import layouts
from jaxcoop.envs.kitchen import plan
from jaxcoop.envs.kitchen.grid import Grid

LAYOUTS = ("open", "ring", "fc", "hallway")
WIDTH, MAZES = 12, 5
ORDERS = [tuple(map(int, order)) for order in plan._ORDERS]


def maze(rng, height=10):
    """Rows of random walls in a frame; about every third cell inside is one."""
    walls = rng.random((height, WIDTH)) < 0.35
    walls[[0, -1]] = walls[:, [0, -1]] = True
    return ["".join("X" if wall else " " for wall in row) for row in walls]


@cache
def board():
    """Kitchens of the package and mazes, one below the other: one floor plan, and one program, for all of them.

    Returns the plan and, for each kitchen, its walkable cells.
    """
    rng = np.random.default_rng(0)
    kitchens = [layouts.load(name).grid.rows for name in LAYOUTS] + [maze(rng) for _ in range(MAZES)]
    rows, rooms = [], []
    for kitchen in kitchens:
        cells = Floor([row.ljust(WIDTH, "X") for row in kitchen]).cells
        rooms.append([len(rows) * WIDTH + cell for cell in cells])
        rows += [row.ljust(WIDTH, "X") for row in kitchen]
    return Grid(tuple(rows)), rooms


@cache
def floor():
    return Floor(board()[0].rows)


def some_goal(rng, cell):
    """A cell that is connected with another one."""
    return int(rng.choice(list(floor().distances(cell))))


def some_cells(rng, players, count):
    """Cells of teams, each in one kitchen, and goals that can be reached: [A, N]; some goals are shared or reached."""
    at, goal = [], []
    for _ in range(count):
        at.append(rng.choice(rng.choice(np.array(board()[1], object)), players, replace=False).tolist())
        goal.append([some_goal(rng, cell) if rng.random() < 0.8 else cell for cell in at[-1]])
    return np.array(at, np.int16).T, np.array(goal, np.int16).T


def some_ranks(rng, players, count):
    return rng.permuted(np.tile(np.arange(players, dtype=np.int8)[:, None], count), axis=0)


@cache
def stepper(function=plan.step):
    """Steps of plans: at, goal, rank, order [A, N] -> at."""
    return jax.jit(partial(function, board()[0]))


def wanted_step(at, goal, rank, order):
    """The same for one plan, in plain Python."""
    lists = [floor().candidates(c, g, ORDERS[o]) for c, g, o in zip(at, goal, order)]
    return one_step(tuple(at), tuple(rank), lists)


@pytest.mark.parametrize("players", [1, 2, 3, 4, 5])
def test_kitchen_steps_of_plans_are_those_of_the_recursion(players):
    rng, count = np.random.default_rng(players), 2000
    at, goal = some_cells(rng, players, count)
    rank, order = some_ranks(rng, players, count), rng.integers(0, 24, (players, count))
    order[:, ::4] = plan.FIXED
    got = np.asarray(stepper()(at, goal, rank, order))
    want = [wanted_step(*case) for case in zip(*(x.T.tolist() for x in (at, goal, rank, order)))]
    np.testing.assert_array_equal(got, np.array(want).T)
    if players == 2:
        np.testing.assert_array_equal(got, stepper(plan._team)(at, goal, rank, order))


def test_kitchen_ties_without_randomness_go_west_east_north_south():
    west, east, north, south = 3, 2, 0, 1
    assert ORDERS[plan.FIXED] == (west, east, north, south)
    assert plan.orders(None, jnp.int16(0), 2) == plan.FIXED


@cache
def walker(players):
    """Plans of 80 steps with random ties: at, goal, rank [A, N], seeds [N] -> where all are, [80, A, N]."""

    def walk(at, goal, rank, seed):
        def one(at, time):
            nxt = plan.step(board()[0], at, goal, rank, plan.orders(seed, jnp.full(seed.shape, time), players))
            return nxt.astype(jnp.int16), nxt

        return jax.lax.scan(one, at, jnp.arange(80))[1]

    return jax.jit(walk)


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_kitchen_plans_never_come_back_and_stand_still_for_good(players):
    rng, count = np.random.default_rng(players), 1500
    at, goal = some_cells(rng, players, count)
    rank, seed = some_ranks(rng, players, count), rng.integers(0, 2**32, count, np.uint32)
    way = np.asarray(walker(players)(at, goal, rank, seed))
    stands = (way[1:] == way[:-1]).all(1)  # [time, N]
    assert (stands[1:] >= stands[:-1]).all()
    joint = (way.astype(np.int64) * 1024 ** np.arange(players)[:, None]).sum(1)
    for states, still in zip(joint.T, stands.T):
        moves = int((~still).sum())
        assert len(set(states[: moves + 1].tolist())) == moves + 1

    # Plans that got stuck: no order of ties moves anybody.
    stuck = np.flatnonzero(stands[-1] & (way[-1] != goal).any(0))[:40]
    assert len(stuck) == 40
    all_orders = np.array(list(product(range(24), repeat=2)) if players == 2 else rng.integers(0, 24, (576, players)))
    here, there, who = (np.repeat(x[:, stuck], len(all_orders), 1) for x in (way[-1], goal, rank))
    np.testing.assert_array_equal(stepper()(here, there, who, np.tile(all_orders.T, len(stuck))), here)


@cache
def follower(is_pinned):
    """`follow`, for one plan or many: plan, cell, facing, goal, goal_facing [A, N], draws -> actions, plan."""

    def one(ahead, cell, facing, goal, goal_facing, draws):
        return plan.follow(board()[0], ahead, cell, facing, goal, goal_facing, None if is_pinned else draws)

    return jax.jit(one)


@cache
def tie_orders(players):
    """seed -> the orders of ties of a whole plan, [time, A]."""
    return jax.jit(lambda seed: jax.vmap(lambda time: plan.orders(seed, time, players))(jnp.arange(plan.LIMIT)))


def moved(rng, cell, action):
    """Where a team [A] is after its actions: some moves are refused, and with them those that need their cells."""
    grid, team = board()[0], range(len(cell))
    want = [c if a == STAY or rng.random() < 0.05 else int(grid.steps[a, c]) for c, a in zip(cell, action)]
    refused = None
    while refused != []:
        refused = [
            i
            for i in team
            for j in team
            if want[i] != cell[i] and i != j and (want[j] == want[i] or (want[j] == cell[i] and want[i] == cell[j]))
        ]
        for i in refused[:1]:
            want[i] = cell[i]
    return want


def some_draws(rng, players, count):
    bits = rng.integers(0, 2**32, (players + 1, count), np.uint32)
    return plan.PlanDraws(rng.random(count) < 0.3, bits[:-1], bits[-1])


def played(players, is_pinned, count, steps, checks):
    """Plays teams whose goals change now and then; yields what `follow` was given and what it gave, step by step.

    `checks`: compares every action with that of plans that are made as a whole.
    """
    rng = np.random.default_rng(players + 10 * is_pinned)
    cell, goal = some_cells(rng, players, count)
    facing, goal_facing = rng.integers(0, 4, (2, players, count), np.int8)
    ahead = jax.tree.map(lambda x: np.repeat(np.asarray(x)[..., None], count, -1), plan.no_plan(players))
    rank = np.array(ahead.rank)
    whole, planned, order = [Follower(floor()) for _ in range(count)], [None] * count, [None] * count
    for _ in range(steps):
        draws = some_draws(rng, players, count)
        given = (ahead, cell, facing, goal, goal_facing, draws)
        action, ahead = jax.device_get(follower(is_pinned)(*given))
        yield given, (action, ahead)
        for e in range(count if checks else 0):
            aims = goal[:, e].tolist(), goal_facing[:, e].tolist()
            if planned[e] != aims:
                planned[e] = aims
                if not is_pinned and draws.reshuffle[e]:
                    rank[:, e] = np.argsort(np.argsort(draws.order[:, e]))
                seed = plan.FIXED if is_pinned else np.asarray(tie_orders(players)(draws.seed[e]))
                order[e] = Ties(seed, players)
            want = whole[e].act(cell[:, e].tolist(), facing[:, e].tolist(), *map(tuple, aims), rank[:, e], order[e])
            assert action[:, e].tolist() == want, f"team {e} at {cell[:, e]}, goals {aims}"
        facing = np.where(action == STAY, facing, action).astype(np.int8)
        cell = np.array([moved(rng, *team) for team in zip(cell.T.tolist(), action.T.tolist())], np.int16).T
        changes = (rng.random(count) < 0.06) & (rng.random((players, count)) < 0.6)
        new = np.array([[some_goal(rng, c) if change else -1 for c, change in zip(*row)] for row in zip(cell, changes)])
        goal = np.where(changes & (rng.random(changes.shape) < 0.8), new, goal).astype(np.int16)
        goal_facing = np.where(changes, rng.integers(0, 4, changes.shape), goal_facing).astype(np.int8)


class Ties:
    """Orders of ties by time and player: numbers [time, A], or one number for all."""

    def __init__(self, numbers, players):
        self.numbers = np.broadcast_to(numbers, (plan.LIMIT, players)).tolist()

    def __getitem__(self, time):
        return [ORDERS[number] for number in self.numbers[time]]


@pytest.mark.parametrize(
    "players, is_pinned, count",
    [(1, False, 16), (2, True, 64), (2, False, 128), (3, True, 128), (3, False, 48), (5, False, 32)],
)
def test_kitchen_plans_in_execution_are_those_that_are_made_as_a_whole(players, is_pinned, count):
    seen = [action for _, (action, _) in played(players, is_pinned, count, 60, checks=True)]
    assert set(np.unique(seen)) == {0, 1, 2, 3, STAY}


@pytest.mark.parametrize("players, is_pinned", [(2, True), (3, False)])
def test_kitchen_plans_do_not_depend_on_the_others_of_a_batch(players, is_pinned):
    """Looking ahead in parts, as for 256 plans, gives what it gives for three plans or for one."""
    steps = list(played(players, is_pinned, 256, 14, checks=False))
    for given, made in [steps[0], steps[6], steps[-1]]:
        for size, which in ((3, range(0, 255, 3)), (None, range(0, 256, 5))):
            for e in which:
                some = slice(e, e + size) if size else e
                alone = follower(is_pinned)(*jax.tree.map(lambda x, some=some: x[..., some], given))
                jax.tree.map(lambda a, b, some=some: np.testing.assert_array_equal(a, b[..., some]), alone, made)


def test_kitchen_ranks_are_permutations():
    order = np.random.default_rng(0).integers(0, 6, (5, 1000), np.uint32)  # many are equal: then by index
    got = np.asarray(jax.jit(plan.ranks)(order))
    np.testing.assert_array_equal(got, np.argsort(np.argsort(order, axis=0, kind="stable"), axis=0))
    assert set(map(tuple, np.sort(got, axis=0).T.tolist())) == {(0, 1, 2, 3, 4)}


def far_from_uniform(counts):
    """Whether so uneven counts come up less than once in a thousand times."""
    expected = counts.sum() / counts.size
    return ((counts - expected) ** 2 / expected).sum() > chi2.ppf(0.999, counts.size - 1)


def test_kitchen_orders_of_ties_are_equally_frequent_and_independent():
    seed = np.random.default_rng(1).integers(0, 2**32, 24 * 24 * 100, np.uint32)
    seen = {time: np.asarray(plan.orders(seed, jnp.full(seed.shape, time), 3)) for time in (0, 1, 2, 999)}
    for time, order in seen.items():
        for i in range(3):
            assert not far_from_uniform(np.bincount(order[i], minlength=24)), (time, i)
    pairs = [(seen[0][0], seen[0][1]), (seen[1][1], seen[1][2]), (seen[0][0], seen[1][0]), (seen[1][2], seen[2][2])]
    for first, second in pairs:
        assert not far_from_uniform(np.bincount(24 * first + second, minlength=576))
