"""3.2: who may go where, against all subsets of the players who want to."""

from itertools import combinations

import jax
import numpy as np
import pytest
from scipy.stats import chi2

from jaxcoop.envs.burrito import movement

WIDTH = 4
NORTH, SOUTH, EAST, WEST = -WIDTH, WIDTH, 1, -1
moving = jax.jit(movement.moving)


def largest_sets(cell, want):
    """Every largest set of players that may move together, as bits."""
    movers = [i for i in range(len(cell)) if want[i] != cell[i]]
    for size in range(len(movers), 0, -1):
        fitting = []
        for chosen in combinations(movers, size):
            after = [want[i] if i in chosen else cell[i] for i in range(len(cell))]
            swaps = any(want[i] == cell[k] and want[k] == cell[i] for i, k in combinations(chosen, 2))
            if not swaps and len(set(after)) == len(after):
                fitting.append(sum(1 << i for i in chosen))
        if fitting:
            return fitting
    return [0]


def crowds(rng, team, count):
    """Distinct cells and wishes [A, count] in a room of 4 x 4 or, in every second one, of 3 x 3."""
    cell, want = np.zeros((2, team, count), np.int16)
    for k in range(count):
        side = 3 + k % 2
        room = [y * WIDTH + x for y in range(side) for x in range(side)]
        cell[:, k] = rng.choice(room, team, replace=False)
        for i, c in enumerate(cell[:, k]):
            x, y = c % WIDTH, c // WIDTH
            near = [
                c + d for d, inside in ((EAST, x + 1 < side), (WEST, x), (SOUTH, y + 1 < side), (NORTH, y)) if inside
            ]
            want[i, k] = rng.choice(near) if rng.random() < 0.9 else c
    return cell, want


def moved_sets(cell, want, rng, times):
    """Who moves [count, times], as bits, with different priorities each time."""
    team, count = cell.shape
    priority = rng.integers(0, 2**32, (team, count * times), dtype=np.uint32)
    moved = np.asarray(moving(np.repeat(cell, times, 1), np.repeat(want, times, 1), priority))
    return (moved << np.arange(team)[:, None]).sum(0).reshape(count, times)


@pytest.mark.parametrize("team", [2, 3, 4, 5, 6])
def test_burrito_movement_draws_each_largest_set_equally_often(team):
    count, times, rng = 300, 192, np.random.default_rng(team)
    cell, want = crowds(rng, team, count)
    moved, statistic, freedom = moved_sets(cell, want, rng, times), 0.0, 0
    for k in range(count):
        fitting = largest_sets(cell[:, k].tolist(), want[:, k].tolist())
        assert set(moved[k].tolist()) <= set(fitting), (cell[:, k], want[:, k])
        expected = times / len(fitting)
        statistic += sum(((moved[k] == bits).sum() - expected) ** 2 for bits in fitting) / expected
        freedom += len(fitting) - 1
    assert freedom > 10
    assert chi2.sf(statistic, freedom) > 1e-3


def who(cells, steps):
    """Who moves from the cells (x, y) by the steps given."""
    cell = np.array([y * WIDTH + x for x, y in cells], np.int16)
    moved = moving(cell, cell + np.array(steps, np.int16), np.zeros(len(cells), np.uint32))
    return np.flatnonzero(np.asarray(moved)).tolist()


@pytest.mark.parametrize("first", [0, 1, 2, 3])
def test_burrito_players_in_a_block_of_four_rotate(first):
    block = [((0, 0), EAST), ((1, 0), SOUTH), ((1, 1), WEST), ((0, 1), NORTH)]
    cells, steps = zip(*(block[first:] + block[:first]))
    assert who(cells, steps) == [0, 1, 2, 3]
    assert who(cells, (*steps[:3], 0)) == []


def test_burrito_trains_go_behind_somebody_who_goes_and_stand_behind_somebody_who_stays():
    cells = [(0, 0), (1, 0), (2, 0)]
    assert who(cells, [EAST, EAST, EAST]) == [0, 1, 2]
    assert who(cells, [EAST, EAST, 0]) == []
    assert who(cells, [0, EAST, EAST]) == [1, 2]


def test_burrito_players_do_not_change_places_and_those_behind_them_wait():
    assert who([(0, 0), (1, 0)], [EAST, WEST]) == []
    assert who([(0, 0), (1, 0), (2, 0)], [EAST, EAST, WEST]) == []
    assert who([(0, 0), (1, 0), (0, 1)], [EAST, WEST, NORTH]) == []


def test_burrito_the_longer_train_gets_a_contested_cell():
    assert who([(1, 0), (2, 1), (3, 1)], [SOUTH, WEST, WEST]) == [1, 2]


def test_burrito_equal_priorities_let_the_lower_index_through():
    assert who([(0, 0), (2, 0)], [EAST, WEST]) == [0]
    assert who([(2, 0), (0, 0), (1, 1)], [WEST, EAST, NORTH]) == [0]


def test_burrito_sixteen_players_move_at_once():
    rng = np.random.default_rng(16)
    cell, want = np.arange(16, dtype=np.int16), np.zeros((16, 64), np.int16)
    for k in range(64):
        x, y = cell % WIDTH, cell // WIDTH
        to_x, to_y = (np.clip(v + rng.integers(-1, 2, 16) * on, 0, 3) for v, on in ((x, k % 2), (y, 1 - k % 2)))
        want[:, k] = to_y * WIDTH + to_x
    moved = np.asarray(moving(np.tile(cell[:, None], 64), want, rng.integers(0, 2**32, (16, 64), dtype=np.uint32)))
    assert not moved.any()  # the room is full and nobody can turn in a line
    snake = np.array([y * WIDTH + (x if y % 2 == 0 else 3 - x) for y in range(4) for x in range(4)], np.int16)
    order = rng.permutation(15)
    ahead = snake[1:][order]
    moved = np.asarray(moving(np.append(snake[:-1][order], 16), np.append(ahead, 17), np.zeros(16, np.uint32)))
    assert moved.all()
