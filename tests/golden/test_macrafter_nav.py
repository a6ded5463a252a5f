"""Recorded path queries of the crafting world: first move and path length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.macrafter import paths

BLOCKING = (1, 3, 6, 7, 8, 9, 10)  # 12.4: water, stone, tree, lava, coal, iron, diamond


def queries(path):
    """The maps and queries of a file."""
    data = np.load(path)
    yield "queries", {name: data[name] for name in ("mat", "occ", "queries")}


@jax.jit
def answers(maps, queries):
    """Routes of all queries; each row begins with the number of its map."""

    def one(q):
        ground = paths.ground(maps[q[0]])
        return paths.routes(ground, q[None, 1:3], q[None, 3:5], q[None, 5], jnp.ones(1, jnp.bool_))

    return jax.vmap(one)(queries)


@pytest.mark.recorded("macrafter", "nav*.npz", queries)
def test_macrafter_paths_have_the_recorded_first_move_and_length(case):
    free = ~np.isin(case["mat"], BLOCKING) & (case["occ"] == 0)
    found = answers(free, case["queries"].astype(np.int32))
    np.testing.assert_array_equal(found.move[:, 0], case["queries"][:, 6])
    np.testing.assert_array_equal(found.length[:, 0], case["queries"][:, 7])
