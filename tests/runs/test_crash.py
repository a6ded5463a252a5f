"""Run folder: what a kill, a full disk or a damaged file leaves, and that a run goes on from it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from run_folders import COMMAND, assert_whole, error_of, finish, open_run, write

from jaxcoop.runs.files import atomic_write, temporary_name
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.parts import read_columns


def test_a_truncated_part_is_set_aside_and_its_chunk_planned_again(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
        write(run, 1, 4, 4)
    part = tmp_path / "r/episodes/part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with open_run(tmp_path / "r") as run:
        assert "part-000000.parquet is damaged" in run.notes[0]
        assert run.plan(10, 4) == [(0, 0, 4), (2, 8, 2)]
        finish(run)
        assert np.array_equal(run.episodes()["timesteps"], np.arange(10))


def test_a_flipped_byte_inside_a_page_is_found_when_read(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
    part = tmp_path / "r/episodes/part-000000.parquet"
    data = bytearray(part.read_bytes())
    data[60] ^= 0xFF
    part.write_bytes(data)
    with open_run(tmp_path / "r") as run:
        assert "damaged" in error_of(run.episodes)
    with open_run(tmp_path / "r") as run:
        assert run.plan(4, 4) == [(0, 0, 4)]


def test_a_complete_run_with_a_damaged_table_runs_again(tmp_path):
    with open_run(tmp_path / "r") as run:
        finish(run)
    (tmp_path / "r/episodes.parquet").write_bytes(b"PAR1 and nothing more")
    with open_run(tmp_path / "r") as run:
        assert run.status == "running" and "damaged" in run.notes[0] and run.finished() == []
        finish(run)
        assert_whole(run)


def test_events_of_an_unfinished_chunk_do_not_count(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
        shutil.copy(run.path / "events/part-000000.parquet", run.path / "events/part-000001.parquet")
        assert len(run.events()["kind"]) == 1
        finish(run)
        assert_whole(run)


def full_disk(path):
    """Make the next write of `path` meet a real `no space left on device`."""
    path.parent.mkdir(exist_ok=True)
    temporary_name(path).symlink_to("/dev/full")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "target",
    [
        "trace/part-000001.npz",
        "events/part-000001.parquet",
        "episodes/part-000001.parquet",
        "episodes.parquet",
        "summary.json",
        "manifest.json",
    ],
)
def test_a_full_disk_is_one_line_and_the_run_resumes(tmp_path, target):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
        full_disk(run.path / target)
        message = error_of(lambda: finish(run))
        assert "no space left on device" in message and "free some space" in message and COMMAND in message
        assert not temporary_name(run.path / target).is_symlink()
    with open_run(tmp_path / "r") as run:
        assert (0, 4) in run.finished()
        finish(run)
        assert_whole(run)


def test_a_failed_write_keeps_the_old_file_and_no_temporary(tmp_path):
    atomic_write(tmp_path / "x", "old")

    def fail(handle):
        handle.write(b"new")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        atomic_write(tmp_path / "x", fail)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("x", "old")]


def test_a_kill_before_any_file_operation_leaves_a_run_that_resumes(tmp_path, monkeypatch):
    """Every state of the folder that a kill can leave is copied, then resumed to the same result."""
    path, states = tmp_path / "r", []

    def snapshot_before(module, name):
        original = getattr(module, name)

        def wrapped(*args, **kwargs):
            states.append(tmp_path / f"state-{len(states)}")
            if path.exists():
                shutil.copytree(path, states[-1])
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, wrapped)

    for module, name in [
        (os, "replace"),
        (os, "fsync"),
        (os, "ftruncate"),
        (Path, "unlink"),
        (Path, "rmdir"),
    ]:
        snapshot_before(module, name)
    with open_run(path) as run:
        finish(run)
    monkeypatch.undo()
    assert len(states) > 40
    for state in states:
        with open_run(state) as run:
            finish(run)
            assert_whole(run)
        left = {p.name for p in state.rglob("*")}
        assert {n for n in left if n.endswith(".tmp")} == set()


CHILD = """
import sys, time, numpy as np
from jaxcoop.runs.folder import RunFolder
with RunFolder.open(sys.argv[1], {"seed": 1}, command="child") as run:
    for index, first, count in run.plan(1000, 10):
        x = np.arange(first, first + count)
        run.write_chunk(index, first, count, {"x": x**2, "pad": np.zeros((count, 2000))})
"""


def test_kill_9_loses_at_most_the_chunk_in_flight_and_the_lock_dies(tmp_path):
    path = tmp_path / "r"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)])
    try:
        deadline = time.monotonic() + 60
        while len(seen := list((path / "episodes").glob("part-*.parquet"))) < 5:
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.001)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert json.loads((path / "manifest.json").read_text())["status"] == "running"
    with RunFolder.open(path, {"seed": 1}, command="parent") as run:
        assert len(run.finished()) >= len(seen)
        assert not list(path.rglob("*.tmp"))
        for index, first, count in run.plan(1000, 10):
            x = np.arange(first, first + count)
            run.write_chunk(index, first, count, {"x": x**2, "pad": np.zeros((count, 2000))})
        run.complete({})
    np.testing.assert_array_equal(read_columns([path / "episodes.parquet"], ["x"])["x"], np.arange(1000) ** 2)
