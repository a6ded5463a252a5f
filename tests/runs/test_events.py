"""Events belong to their episodes: a chunk counts only when both of its tables are whole."""

import numpy as np
import pytest

from jaxcoop.runs.files import RunFolderError
from jaxcoop.runs.folder import RunFolder

CONFIG = {"seed": 0}
CHUNK = 4


def write(folder, index):
    first = index * CHUNK
    episodes = np.arange(first, first + CHUNK)
    events = {"episode": np.repeat(episodes, 50), "text": np.array([f"said {i}" for i in range(50 * CHUNK)], object)}
    folder.write_chunk(index, first, CHUNK, {"score": episodes * 2}, events=events)


def begun(path, chunks=2):
    with RunFolder.open(path, CONFIG, command="again") as folder:
        for index in range(chunks):
            write(folder, index)
    return path


def finish(path):
    """Open until the run goes through; plans, and the number of events at the end."""
    plans = []
    for _ in range(4):
        with RunFolder.open(path, CONFIG, command="again") as folder:
            plan = folder.plan(2 * CHUNK, CHUNK)
            plans.append([first for _, first, _ in plan])
            for index, first, _ in plan:
                assert first == index * CHUNK
                write(folder, index)
            try:
                folder.complete({})
            except RunFolderError:
                continue
            return plans, len(folder.events()["episode"])
    raise AssertionError(f"never finished: {plans}")


def cut(path):
    path.write_bytes(path.read_bytes()[:100])


def flip(path):
    data = bytearray(path.read_bytes())
    data[60:120] = bytes(60)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [cut, flip, lambda path: path.unlink()])
def test_a_damaged_event_part_runs_its_chunk_again(tmp_path, damage):
    path = begun(tmp_path / "run")
    damage(path / "events" / "part-000000.parquet")
    plans, events = finish(path)
    assert [0] in plans and events == 2 * CHUNK * 50


def test_the_only_event_part_of_a_run_is_missed_too(tmp_path):
    path = begun(tmp_path / "run", chunks=1)
    (path / "events" / "part-000000.parquet").unlink()
    plans, events = finish(path)
    assert plans[0] == [0, CHUNK] and events == 2 * CHUNK * 50


@pytest.mark.parametrize("damage", [cut, lambda path: path.unlink()])
def test_a_complete_run_without_its_events_runs_again(tmp_path, damage):
    path = begun(tmp_path / "run")
    assert finish(path) == ([[]], 2 * CHUNK * 50)
    damage(path / "events.parquet")
    plans, events = finish(path)
    assert plans == [[0, CHUNK]] and events == 2 * CHUNK * 50
