"""Shortest paths of CUBE against a plain search with a queue."""

from collections import deque
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.cube import navigate
from jaxcoop.envs.cube.navigate import Strip
from jaxcoop.envs.cube.types import Action

STAY, UP, DOWN, LEFT, RIGHT = (int(a) for a in Action)


def queue_search(side, blocked, start, targets):
    """9.5 as written: first step of the search with a queue, 0 if it finds no target."""
    queue, seen = deque([(start, STAY)]), {start}
    while queue:
        cell, first = queue.popleft()
        if cell in targets:
            return first
        for action, (down, right) in ((RIGHT, (0, 1)), (DOWN, (1, 0)), (UP, (-1, 0)), (LEFT, (0, -1))):
            nxt = (cell[0] + down, cell[1] + right)
            if all(0 <= x < side for x in nxt) and nxt not in blocked and nxt not in seen:
                seen.add(nxt)
                queue.append((nxt, first or action))
    return STAY


def random_maps(side, agents, blocks, episodes, seed):
    """Cells, blocks (some delivered, overlaps allowed), targets, and who seeks; numpy, leading axis E."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, blocks)
    row, col = rng.integers(0, side, (2, episodes, agents))
    block_row, block_col = rng.integers(0, side - 2, (2, episodes, blocks))
    block_row[rng.random(block_row.shape) < 0.2] = -1
    strip = rng.integers([0, 0, 1], [side - 2, side, 4], (episodes, agents, 3))
    on = (strip[..., 1] == col) & (row >= strip[..., 0]) & (row < strip[..., :2].sum(-1) * 0 + strip[..., ::2].sum(-1))
    return weights, row, col, block_row, block_col, strip, ~on & (rng.random(on.shape) < 0.8)


@pytest.mark.parametrize("open_targets", [False, True])
@pytest.mark.parametrize(
    "side, agents, blocks",
    [
        (6, 4, 3),
        pytest.param(16, 12, 30, marks=pytest.mark.slow),
        pytest.param(32, 20, 120, marks=pytest.mark.slow),
        (40, 30, 190),
    ],
)
def test_cube_first_steps_are_those_of_a_search_with_a_queue(side, agents, blocks, open_targets):
    episodes = 8  # in groups: 8 * 30 lanes of a side of 40 are more than fit the cache
    weights, row, col, block_row, block_col, strip, seeks = random_maps(side, agents, blocks, episodes, side)
    search = partial(navigate.first_steps, side, weights, open_targets=open_targets)
    small = [jnp.asarray(x, jnp.int16) for x in (row, col, block_row, block_col)]
    targets = Strip(*(jnp.asarray(strip[..., k], jnp.int32) for k in range(3)))
    got = np.asarray(jax.jit(jax.vmap(search))(targets, *small, jnp.asarray(seeks)))
    ways = 0
    for e in range(episodes):
        taken = set(zip(row[e].tolist(), col[e].tolist()))
        for r, c, w in zip(block_row[e].tolist(), block_col[e].tolist(), weights.tolist()):
            taken |= {(r + i, c + j) for i in range(w) for j in range(w) if r >= 0}
        for i in range(agents):
            start, (top, left, height) = (int(row[e, i]), int(col[e, i])), strip[e, i].tolist()
            goals = {(top + k, left) for k in range(height)}
            blocked = taken - {start} - (goals if open_targets else set())
            want = queue_search(side, blocked, start, goals) if seeks[e, i] else STAY
            assert got[e, i] == want, f"episode {e}, agent {i} at {start}, targets {sorted(goals)}"
            ways += want != STAY
    assert ways > episodes  # not all walled in


def test_cube_first_steps_do_not_depend_on_the_other_episodes():
    weights, row, col, block_row, block_col, strip, seeks = random_maps(15, 5, 12, 6, 1)
    search = jax.jit(partial(navigate.first_steps, 15, weights, open_targets=False))
    small = [jnp.asarray(x, jnp.int16) for x in (row, col, block_row, block_col)]
    targets = Strip(*(jnp.asarray(strip[..., k], jnp.int32) for k in range(3)))
    inputs = (targets, *small, jnp.asarray(seeks))
    together = jax.vmap(search)(*inputs)
    alone = [search(*jax.tree.map(lambda x: x[e], inputs)) for e in range(6)]  # noqa: B023
    twice = jax.vmap(jax.vmap(search))(*jax.tree.map(lambda x: x.reshape(2, 3, *x.shape[1:]), inputs))
    np.testing.assert_array_equal(together, np.stack(alone))
    np.testing.assert_array_equal(together, np.asarray(twice).reshape(6, -1))
