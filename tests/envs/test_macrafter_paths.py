"""The planner's first step on maps of bits against a plain search with a queue."""

import heapq

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.macrafter import paths

NEIGHBOURS = ((0, -1, 3), (0, 1, 4), (-1, 0, 1), (1, 0, 2))


def plain_search(free, start, goal):
    """Primitive moves of the path that A* finds with the order up, down, left, right, or None."""

    def gap(cell):
        return abs(cell[0] - goal[0]) + abs(cell[1] - goal[1])

    pushed, heap, closed = 0, [(gap(start), 0, start, None, 0, 0)], {}
    while heap:
        _, _, cell, parent, move, length = heapq.heappop(heap)
        if cell in closed:
            continue
        closed[cell] = (parent, move)
        if cell == goal:
            path = []
            while closed[cell][0] is not None:
                cell, move = closed[cell]
                path.append(move)
            return path[::-1]
        for dx, dy, primitive in NEIGHBOURS:
            nxt = (cell[0] + dx, cell[1] + dy)
            is_inside = 0 <= nxt[0] < free.shape[0] and 0 <= nxt[1] < free.shape[1]
            if is_inside and nxt not in closed and (nxt == goal or free[nxt]):
                pushed += 1
                heapq.heappush(heap, (length + 1 + gap(nxt), pushed, nxt, cell, primitive, length + 1))
    return None


def plain_route(free, start, target, radius):
    """Move and length by one search for each goal cell; the first of the shortest."""
    (x, y), reach = target, max(radius, 0)
    if abs(start[0] - x) + abs(start[1] - y) <= reach:
        return 0, 0
    disk = [
        (x + a, y + b) for a in range(-reach, reach + 1) for b in range(-reach, reach + 1) if abs(a) + abs(b) <= reach
    ]
    inside = [cell for cell in disk if 0 <= cell[0] < free.shape[0] and 0 <= cell[1] < free.shape[1]]
    goals = [target] if reach == 0 else [cell for cell in inside if free[cell]]
    found = [path for path in (plain_search(free, start, goal) for goal in goals) if path is not None]
    best = min(found, key=len, default=None)
    return (-1, -1) if best is None else (best[0], len(best))


def random_queries(seed, count, width, height):
    """Maps with 0 to 40 % of obstacles, starts, targets and radii from -1 to 3."""
    rng = np.random.default_rng(seed)
    free = rng.random((count, width, height)) > rng.choice([0, 0.1, 0.2, 0.3, 0.4], (count, 1, 1))
    start, target = (rng.integers(0, (width, height), (count, 2), np.int32) for _ in range(2))
    return free, start, target, rng.integers(-1, 4, count, np.int32)


def one_each(free, start, target, radius):
    return paths.routes(paths.ground(free), start[None], target[None], radius[None], jnp.ones(1, jnp.bool_))


@pytest.mark.parametrize("size", [(9, 9), (16, 33), (32, 20), (3, 70), (1, 5)])
def test_first_moves_and_lengths_are_those_of_a_plain_search(size):
    queries = random_queries(7, 250, *size)
    found = jax.jit(jax.vmap(one_each))(*queries)
    for i, (free, start, target, radius) in enumerate(zip(*queries, strict=True)):
        want = plain_route(free, tuple(start.tolist()), tuple(target.tolist()), int(radius))
        assert (int(found.move[i, 0]), int(found.length[i, 0])) == want, i


def board(text):
    """Map of bits, and the cells of a drawing: `#` blocked, S start, T target."""
    rows = text.split()
    cells = {(x, y): c for y, row in enumerate(rows) for x, c in enumerate(row)}
    free = np.array([[cells[x, y] != "#" for y in range(len(rows))] for x in range(len(rows[0]))])
    place = {c: jnp.array(cell, jnp.int32) for cell, c in cells.items() if c in "ST"}
    return paths.ground(jnp.asarray(free)), place["S"], place["T"]


@pytest.mark.parametrize(
    ("drawing", "radius", "move", "length"),
    [
        ("S.. ... ..T", 0, 4, 4),  # down before right
        ("T.. ... ..S", 0, 3, 4),  # up before left
        ("S#T ... ...", 0, 4, 4),
        ("S#T .#. .#.", 0, -1, -1),
        ("S#T .#. .#.", 2, 0, 0),
        ("ST. ... ...", 1, 0, 0),
        ("S.T ... ...", 1, 2, 1),
        ("..T ... S..", 1, 3, 3),  # the cell left of the target comes before the one below it
    ],
)
def test_ties_and_ends_of_paths_are_as_drawn(drawing, radius, move, length):
    free, start, target = board(drawing)
    found = paths.routes(free, start[None], target[None], jnp.array([radius]), jnp.ones(1, jnp.bool_))
    assert (int(found.move[0]), int(found.length[0])) == (move, length)


def test_agents_that_do_not_ask_get_no_path():
    free, start, target = board("S.. ... ..T")
    ask = jnp.array([False, True, False])
    found = paths.routes(free, jnp.tile(start, (3, 1)), jnp.tile(target, (3, 1)), jnp.zeros(3, jnp.int32), ask)
    assert found.move.tolist() == [-1, 4, -1]
    assert found.length.tolist() == [-1, 4, -1]


def test_searches_in_turn_and_side_by_side_agree_and_do_not_depend_on_the_batch():
    free, start, target, radius = random_queries(3, 24, 12, 40)
    whole = jax.jit(jax.vmap(one_each))(free, start, target, radius)
    nested = jax.vmap(jax.vmap(one_each))(*(q.reshape(4, 6, *q.shape[1:]) for q in (free, start, target, radius)))
    np.testing.assert_array_equal(nested.move.reshape(24, 1), whole.move)
    side = jax.vmap(lambda f, s, t, r: paths._search(paths.ground(f).words, 12, s, t, r, jnp.ones((), jnp.bool_)))
    gap = np.abs(start - target).sum(1)
    far = gap > np.maximum(radius, 0)
    move, length = side(free, start, target, np.maximum(radius, 0))
    np.testing.assert_array_equal(np.asarray(move)[far], np.asarray(whole.move)[far, 0])
    np.testing.assert_array_equal(np.asarray(length)[far], np.asarray(whole.length)[far, 0])


def test_objects_are_taken_off_the_map_of_bits():
    free = np.ones((5, 40), bool)
    x, y = np.array([0, 3, -1, 3], np.int32), np.array([39, 31, 0, 32], np.int32)
    got = paths.without(paths.ground(jnp.asarray(free)), jnp.asarray(x), jnp.asarray(y))
    free[[0, 3, 3], [39, 31, 32]] = False
    np.testing.assert_array_equal(got.words, paths.ground(jnp.asarray(free)).words)


@pytest.mark.parametrize("extreme", [-(2**31), 2**31 - 1])
def test_every_radius_has_a_defined_result(extreme):
    free, start, target = board("S.. ... ..T")
    found = paths.routes(free, start[None], target[None], jnp.array([extreme]), jnp.ones(1, jnp.bool_))
    assert (int(found.move[0]), int(found.length[0])) == ((4, 4) if extreme < 0 else (0, 0))
