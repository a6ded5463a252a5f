"""3: where blocks and agents start, against the marginals of recorded resets.

Axes: E own episodes, B blocks, K side of the grid, A agents.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxcoop.envs.cube import Cube, generate
from jaxcoop.envs.cube.rules import Layout

SIGMAS = 4
EPISODES = 20_000
BLOCKS = {"k15_n3": "1:3,2:3,3:3", "k8_n3": "2:1,3:1", "k12_n6": "3:2,1:3"}
ROOT = jax.random.key(5)


def groups(path):
    """(name, counts) of recorded resets whose block lists are known."""
    data = np.load(path)
    for name, blocks in BLOCKS.items():
        if f"{name}_block_counts" in data.files:
            yield name, (blocks, {k: data[f"{name}_{k}"] for k in ("block_counts", "agent_row_counts", "fail_ok")})


@partial(jax.jit, static_argnums=(0, 1))
def starts(layout, agents, keys):
    return jax.vmap(partial(generate.place, layout, agents))(keys)


@partial(jax.jit, static_argnums=0)
def first_tries(layout, keys):
    """Whether a single layout has a place for every block."""
    return jax.vmap(lambda key: (generate.draw_blocks(layout, key)[0] >= 0).all())(keys)


def chi_square_is_usual(own, recorded):
    """Two samples of counts over the same cells: chi square within four standard errors of its mean."""
    own, recorded = own.ravel().astype(float), recorded.ravel().astype(float)
    assert ((own > 0) <= (recorded + own.sum() / own.size > 0)).all()
    some = own + recorded > 0
    own, recorded = own[some], recorded[some]
    ratio = np.sqrt(recorded.sum() / own.sum())
    chi = ((ratio * own - recorded / ratio) ** 2 / (own + recorded)).sum()
    freedom = len(own) - 1
    assert abs(chi - freedom) <= SIGMAS * np.sqrt(2 * freedom), (
        f"chi square {chi:.1f} with {freedom} degrees of freedom"
    )


@pytest.mark.recorded("cube", "placement_stats*.npz", groups)
def test_cube_starts_are_distributed_as_recorded(case):
    blocks, want = case
    num_blocks, side, _ = want["block_counts"].shape
    agents = want["agent_row_counts"].shape[0]
    env = Cube(side=side, agents=agents, blocks=blocks)
    keys = jax.random.split(ROOT, EPISODES)
    own = jax.device_get(starts(env.layout, agents, keys))
    assert (own.block_row >= 0).all() and (own.col == 0).all()
    for b in range(num_blocks):
        counts = np.zeros((side, side))
        np.add.at(counts, (own.block_row[:, b], own.block_col[:, b]), 1)
        assert not (counts[want["block_counts"][b] == 0] > 20).any(), "a cell that was never used"
        chi_square_is_usual(counts, want["block_counts"][b])
    for i in range(agents):
        chi_square_is_usual(np.bincount(own.row[:, i], minlength=side), want["agent_row_counts"][i])
    assert len({tuple(sorted(rows)) for rows in own.row.tolist()}) > 1
    assert all(len(set(rows)) == agents for rows in own.row.tolist())

    failures, successes = (int(x) for x in want["fail_ok"])
    failed = int((~np.asarray(first_tries(env.layout, keys))).sum())
    pooled = (failed + failures) / (EPISODES + failures + successes)
    allowed = SIGMAS * np.sqrt(pooled * (1 - pooled) * (1 / EPISODES + 1 / (failures + successes)))
    assert abs(failed / EPISODES - failures / (failures + successes)) <= allowed + 1e-12


@pytest.mark.parametrize("blocks, rate", [("2:1,3:1", 1 / 4), ("3:1,2:1", 1 / 9)])
def test_cube_layouts_fail_as_often_as_they_must_on_a_side_of_8(blocks, rate):
    """3: exact failure rates."""
    layout = Cube(side=8, blocks=blocks).layout
    failed = int((~np.asarray(first_tries(layout, jax.random.split(ROOT, EPISODES)))).sum())
    assert stats.binomtest(failed, EPISODES, rate).pvalue > 2 * stats.norm.sf(SIGMAS)


def test_cube_a_hopeless_layout_leaves_out_what_finds_no_place():
    layout = Layout(8, (3, 3, 3))
    start = starts(layout, 2, jax.random.split(ROOT, 64))
    assert ((np.asarray(start.block_row) >= 0).sum(1) < 3).any()
    assert (np.asarray(start.block_row)[:, 0] >= 0).all()
    np.testing.assert_array_equal(np.asarray(start.block_row) < 0, np.asarray(start.block_col) < 0)


def test_cube_agents_start_where_they_are_asked_to_or_in_the_first_column_or_nowhere():
    """3: fixed positions; a cell counts if it is in the grid and free, be it in the goal column."""
    start = generate.Start(*(jnp.asarray(x, jnp.int16) for x in ([-1] * 4, [-1] * 4, [2], [2])))
    wanted = jnp.asarray([[0, 7], [3, 3], [0, 7], [-1, -1]])
    place = jax.jit(jax.vmap(partial(generate.place_at, Layout(8, (2,))), in_axes=(0, None, None)))
    placed = place(jax.random.split(ROOT, 200), start, wanted)
    row, col = np.asarray(placed.row), np.asarray(placed.col)
    assert (row[:, 0] == 0).all() and (col[:, 0] == 7).all()
    assert (col[:, 1] == 0).all(), "asked for a cell of a block"
    taken = row[:, 2] < 0
    assert taken.any() and (col[~taken, 2] == 0).all() and (row[~taken, 2] != row[~taken, 1]).all()
