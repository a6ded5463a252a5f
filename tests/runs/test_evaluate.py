"""Chunks, padding and progress change nothing in the results."""

from contextlib import contextmanager

import numpy as np
import pytest

from jaxcoop.envs.dining import Dining
from jaxcoop.runs.cell import Cell, run_cell
from jaxcoop.runs.folder import RunFolder


class Watcher:
    def __init__(self):
        self.total = self.done = self.advanced = 0

    @contextmanager
    def __call__(self, total, done):
        self.total, self.done = total, done
        yield self

    def advance(self, count):
        self.advanced += count

    def note(self, text):
        pass


def cell(episodes=10, **more):
    return Cell(Dining(3, max_timesteps=6), "random_any", episodes, seed=5, **more)


def test_results_do_not_depend_on_chunks(tmp_path):
    tables = []
    for chunk in (3, 7, 10):
        run_cell(cell(), command="again", out=tmp_path / str(chunk), chunk=chunk)
        tables.append(RunFolder.read(tmp_path / str(chunk)).episodes())
    assert tables[0]["episode"].tolist() == list(range(10))
    for other in tables[1:]:
        for name, column in tables[0].items():
            np.testing.assert_array_equal(column, other[name], name)


def test_progress_counts_episodes_and_starts_where_a_run_was_left(tmp_path):
    whole = Watcher()
    run_cell(cell(), command="again", out=tmp_path / "run", chunk=4, watch=whole)
    assert (whole.total, whole.done, whole.advanced) == (10, 0, 10)

    class Stops(Watcher):
        def advance(self, count):
            super().advance(count)
            raise KeyboardInterrupt

    stopped, rest = Stops(), Watcher()
    with pytest.raises(KeyboardInterrupt, match=r"4 of 10 episodes are saved.*continue with: again"):
        run_cell(cell(), command="again", out=tmp_path / "stopped", chunk=4, watch=stopped)
    run_cell(cell(), command="again", out=tmp_path / "stopped", chunk=4, watch=rest)
    assert (stopped.advanced, rest.done, rest.advanced) == (4, 4, 6)


def test_traces_are_written_with_their_episodes(tmp_path):
    run_cell(cell(trace=("actions", "nxt.table")), command="again", out=tmp_path / "run", chunk=4)
    trace = RunFolder.read(tmp_path / "run").trace(2)
    assert trace["episode"].tolist() == [8, 9]
    assert trace["actions"].shape == (2, 6, 3) and trace["nxt.table.meals"].shape == (2, 6, 3)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"episodes": 0}, "episodes 0: must be from 1"),
        ({"trace": ("nope",)}, "unknown trace field 'nope'"),
        ({"agent": "nobody"}, "unknown policy of dining 'nobody'"),
        ({"seed": -1}, "seed -1: must be from 0"),
        ({"agent": "llm"}, "needs a model"),
    ],
)
def test_a_cell_that_cannot_be_played_is_refused_before_any_folder_is_made(wrong, says):
    options = {"env": Dining(3), "agent": "random_any", "episodes": 4} | wrong
    with pytest.raises(ValueError, match=says):
        Cell(**options)
