"""The anchors of tasks, against a search over all anchors in plain Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair import windows

AGENTS, OPS, TASKS = 5, 4, 3


def random_rows(seed):
    rng = np.random.default_rng(seed)
    task = rng.integers(-1, TASKS, AGENTS * OPS).astype(np.int32)
    start = rng.integers(0, 12, task.shape).astype(np.int32)
    return task, start, start + rng.integers(1, 5, task.shape).astype(np.int32)


def searched(task, start, end, tolerance, by):
    """(anchor, size, rows that meet there) of each task."""
    found = {}
    for which in set(task[task >= 0].tolist()):
        rows = np.flatnonzero(task == which)
        best = None
        for anchor in sorted({*start[rows].tolist(), *(end[rows] - 1).tolist()}):
            meeting = [r for r in rows if start[r] - tolerance <= anchor <= end[r] - 1 + tolerance]
            size = len({r // OPS for r in meeting}) if by == "agents" else len(meeting)
            if best is None or size > best[1]:
                best = (anchor, size, meeting)
        found[which] = best
    return found


@pytest.mark.parametrize("by", ["agents", "actions"])
@pytest.mark.parametrize("pairs", [windows.PAIRS, 32], ids=["at once", "in parts"])
def test_the_anchor_is_the_earliest_with_the_largest_meeting(by, pairs, monkeypatch):
    monkeypatch.setattr(windows, "PAIRS", pairs)
    tolerance = 1
    choose = jax.jit(lambda *rows: windows.choose(*rows, tolerance, AGENTS, TASKS, by))
    for seed in range(40):
        task, start, end = random_rows(seed)
        found = jax.device_get(choose(task, start, end))
        for which, (anchor, size, meeting) in searched(task, start, end, tolerance, by).items():
            rows = np.flatnonzero(task == which)
            assert (found.anchor[rows] == anchor).all()
            assert (found.size[rows] == size).all()
            np.testing.assert_array_equal(np.flatnonzero(found.inside & (task == which)), meeting)
            np.testing.assert_array_equal(np.flatnonzero(found.first & (task == which)), rows[:1])
        assert not (found.inside | found.first)[task < 0].any()


def test_episodes_of_a_batch_do_not_see_each_other():
    batch = [np.stack(rows) for rows in zip(*map(random_rows, range(3)), strict=True)]

    @jax.jit
    def choose(*rows):
        return windows.choose(*rows, 2, AGENTS, TASKS, "agents")

    together = jax.jit(jax.vmap(choose))(*batch)
    alone = [choose(*map(jnp.asarray, random_rows(seed))) for seed in range(3)]
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda *x: np.stack(x), *alone), together)


def test_agents_are_counted_once_for_each_task():
    task = jnp.array([[0, 0, 1, -1], [0, 1, 1, 1], [2, 2, 0, 0]], jnp.int32)
    flags = jnp.array([[1, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
    counts = windows.distinct_agents(task.reshape(-1), flags.reshape(-1), 3, TASKS)
    np.testing.assert_array_equal(counts, [2, 2, 1, 0, 2, 1, 1, 1, 0, 0, 2, 2])


def test_a_flag_holds_for_all_rows_of_its_agent_and_task():
    task = jnp.array([[0, 0, 1, -1], [0, 1, 1, 1]], jnp.int32)
    flags = jnp.array([[0, 1, 0, 1], [0, 0, 0, 1]], bool)
    named = windows.by_agent(task.reshape(-1), flags.reshape(-1), 2)
    np.testing.assert_array_equal(named, [1, 1, 0, 0, 0, 1, 1, 1])
