"""Run folder: resume, refusal, atomicity and damage, one rule each."""

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

from jaxcoop.runs.files import atomic_write, temporary_name
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.manifest import default_folder, digest
from jaxcoop.runs.parts import read_columns

CONFIG = {"env": "dining", "seed": 7, "episodes": 10, "agent": {"name": "random", "temperature": 0.5}}
COMMAND = "jaxcoop run dining --seed 7"


def open_run(path, config=CONFIG, **options):
    return RunFolder.open(path, config, command=COMMAND, **options)


def columns(first, count):
    """Columns of every kind whose values depend on the episode number alone."""
    e = np.arange(first, first + count)
    return {
        "timesteps": e.astype(np.int32),
        "deadlock": e % 2 == 0,
        "throughput": np.where(e % 3 == 0, np.nan, e / 7),
        "meals": (e[:, None] + np.arange(5)).astype(np.uint8),
        "note": np.array([None if i % 2 else f"é{i}" for i in e], dtype=object),
    }


def write(run, index, first, count):
    run.write_trace(index, {"fork": np.arange(first, first + count, dtype=np.int8)})
    events = {"episode": np.full(index + 1, first), "kind": np.arange(index + 1)}
    run.write_chunk(index, first, count, columns(first, count), events)


def finish(run):
    """Run what is left of 10 episodes in chunks of 4, and complete."""
    for index, first, count in run.plan(10, 4):
        write(run, index, first, count)
    run.complete({"episodes": 10})


def assert_whole(run):
    got = run.episodes()
    for name, expected in {"episode": np.arange(10), **columns(0, 10)}.items():
        np.testing.assert_array_equal(got[name], expected)
        assert got[name].dtype == expected.dtype
    np.testing.assert_array_equal(run.events()["episode"], [0, 4, 4, 8, 8, 8])


def error_of(action):
    with pytest.raises(Exception) as caught:
        action()
    assert type(caught.value).__name__ == "RunFolderError", caught.value
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_new_run_writes_a_manifest_that_says_what_runs_where(tmp_path):
    with open_run(tmp_path / "a" / "b") as run:
        stored = json.loads((run.path / "manifest.json").read_text())
    assert stored["config"] == CONFIG and stored["digest"] == digest(CONFIG)
    assert (stored["seed"], stored["status"], stored["command"], stored["format"]) == (
        7,
        "running",
        COMMAND,
        1,
    )
    assert {"python", "jaxcoop", "jax", "jaxlib", "numpy", "litellm"} == set(stored["versions"])
    assert stored["versions"]["numpy"] == np.__version__
    assert stored["machine"]["cpus"] == os.cpu_count()


def test_the_digest_ignores_key_order_and_numpy_types():
    assert digest({"a": np.int32(1), "b": (1, 2)}) == digest({"b": [1, 2], "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), Path("x")])
def test_a_configuration_that_json_cannot_hold_is_refused_by_name(tmp_path, value):
    with pytest.raises(ValueError, match=r"configuration\.odd"):
        open_run(tmp_path / "r", {"odd": value})


def test_the_default_folder_names_the_run_and_is_safe_as_a_path():
    name = default_folder("dining", "published", "llm:openai/gpt 4", CONFIG)
    assert name == Path("runs") / f"dining-published-llm-openai-gpt-4-{digest(CONFIG)[:8]}"


def test_columns_come_back_exactly_in_order_whatever_the_order_of_chunks(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 1, 4, 4)
        write(run, 2, 8, 2)
        write(run, 0, 0, 4)
        assert run.finished() == [(0, 4), (4, 4), (8, 2)]
        assert_whole(run)
        np.testing.assert_array_equal(run.trace(1)["fork"], np.arange(4, 8, dtype=np.int8))
        assert list(run.episodes(["meals"])) == ["meals"]


def test_a_stopped_run_resumes_with_the_episodes_that_are_missing(tmp_path):
    with pytest.raises(KeyboardInterrupt), open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
        raise KeyboardInterrupt
    assert json.loads((tmp_path / "r/manifest.json").read_text())["status"] == "interrupted"
    with open_run(tmp_path / "r") as run:
        assert run.resumed and run.status == "running"
        assert run.finished() == [(0, 4)] and run.plan(10, 4) == [(1, 4, 4), (2, 8, 2)]
        assert "4 episodes are finished (chunks: 1)" in run.notes[-1]
        finish(run)
        assert_whole(run)
        assert len(run.manifest["resumed"]) == 1


def test_the_chunk_size_may_change_between_sessions(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 3, 3)
        assert run.plan(10, 2) == [(1, 0, 2), (2, 2, 1), (3, 6, 2), (4, 8, 2)]
        assert run.plan(4, 100) == [(1, 0, 3)]


def test_a_complete_run_has_nothing_to_do_and_reads_back(tmp_path):
    with open_run(tmp_path / "r") as run:
        finish(run)
    with open_run(tmp_path / "r") as run:
        assert run.is_complete and "nothing to do" in run.notes[-1]
        assert run.plan(10, 4) == [] and run.finished() == [(0, 4), (4, 4), (8, 2)]
        assert run.summary() == {"episodes": 10}
        assert_whole(run)
        run.complete({"episodes": 11})
        assert run.summary() == {"episodes": 10}
    assert not (tmp_path / "r/episodes").exists()
    assert (tmp_path / "r/episodes.parquet").exists() and (tmp_path / "r/events.parquet").exists()


def test_another_configuration_is_refused_with_the_differing_keys(tmp_path):
    open_run(tmp_path / "r").close()
    other = {**CONFIG, "seed": 8, "agent": {"name": "random"}, "extra": True}
    message = error_of(lambda: open_run(tmp_path / "r", other))
    assert "agent.temperature: not set here, 0.5 there" in message
    assert "seed: 8 here, 7 there" in message and "extra: true here, not set there" in message
    assert "--force" in message and "--out" in message


def test_force_begins_anew_and_keeps_every_earlier_run(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
    for seed in (8, 9):
        with open_run(tmp_path / "r", {**CONFIG, "seed": seed}, force=True) as run:
            assert run.finished() == [] and run.manifest["seed"] == seed
            assert "kept as" in run.notes[0]
    assert RunFolder.read(tmp_path / "r.old-1").finished() == [(0, 4)]
    assert RunFolder.read(tmp_path / "r.old-2").manifest["seed"] == 8


def test_two_processes_cannot_use_one_folder(tmp_path):
    with open_run(tmp_path / "r"):
        message = error_of(lambda: open_run(tmp_path / "r"))
        assert f"process {os.getpid()}" in message
        assert "in use" in error_of(lambda: open_run(tmp_path / "r", force=True))
        assert RunFolder.read(tmp_path / "r").status == "running"
    open_run(tmp_path / "r").close()


def test_a_refused_opening_frees_the_folder(tmp_path):
    open_run(tmp_path / "r").close()
    error_of(lambda: open_run(tmp_path / "r", {"seed": 1}))
    open_run(tmp_path / "r").close()


def test_a_path_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "f").write_text("x")
    assert "a file is in the way" in error_of(lambda: open_run(tmp_path / "f"))
    assert "a file is in the way" in error_of(lambda: open_run(tmp_path / "f" / "below"))


def test_a_folder_with_other_files_is_refused_and_left_alone_even_with_force(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    assert "thesis.tex" in error_of(lambda: open_run(tmp_path, force=True))
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_an_unwritable_place_is_refused_with_the_reason(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    message = error_of(lambda: open_run(tmp_path / "r"))
    assert "permission denied" in message and "--out" in message
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", refuse)
    assert "permission denied" in error_of(lambda: open_run(tmp_path / "r"))


def test_a_damaged_manifest_is_refused_and_force_sets_it_aside(tmp_path):
    open_run(tmp_path / "r").close()
    (tmp_path / "r/manifest.json").write_text("{")
    assert "damaged" in error_of(lambda: open_run(tmp_path / "r"))
    open_run(tmp_path / "r", force=True).close()
    assert (tmp_path / "r.old-1/manifest.json").read_text() == "{"


def test_a_manifest_of_another_format_is_refused(tmp_path):
    open_run(tmp_path / "r").close()
    path = tmp_path / "r/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    assert "format 2" in error_of(lambda: open_run(tmp_path / "r"))


def test_a_change_of_versions_is_told(tmp_path):
    open_run(tmp_path / "r").close()
    path = tmp_path / "r/manifest.json"
    stored = json.loads(path.read_text())
    stored["versions"]["jax"] = "0.0.1"
    path.write_text(json.dumps(stored))
    with open_run(tmp_path / "r") as run:
        assert any("begun with jax 0.0.1" in note for note in run.notes)


def test_reading_changes_nothing_and_cannot_write(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
    (tmp_path / "r/episodes/part-000001.parquet").write_bytes(b"PAR1")
    before = sorted(tmp_path.rglob("*"))
    reader = RunFolder.read(tmp_path / "r")
    assert reader.finished() == [(0, 4)] and "damaged" in reader.notes[0]
    assert "reading only" in error_of(lambda: reader.write_chunk(5, 4, 4, columns(4, 4)))
    assert "not complete" in error_of(reader.summary)
    assert sorted(tmp_path.rglob("*")) == before
    assert "not a run folder" in error_of(lambda: RunFolder.read(tmp_path))


def test_chunks_that_do_not_fit_are_refused(tmp_path):
    with open_run(tmp_path / "r") as run:
        write(run, 0, 0, 4)
        with pytest.raises(ValueError, match="chunk 0 is already written"):
            write(run, 0, 4, 4)
        with pytest.raises(ValueError, match="overlap"):
            write(run, 1, 3, 4)
        with pytest.raises(ValueError, match="'timesteps' has shape"):
            run.write_chunk(1, 4, 3, columns(4, 4))
        with pytest.raises(ValueError, match="'x' has shape"):
            run.write_chunk(1, 4, 1, {"x": np.zeros((1, 2, 3))})
        with pytest.raises(ValueError, match="'x' holds objects"):
            run.write_chunk(1, 4, 1, {"x": np.array([{}])})
        with pytest.raises(ValueError, match="'episode' must count from 4"):
            run.write_chunk(1, 4, 1, {"episode": np.array([5])})
        with pytest.raises(ValueError, match='timesteps: "int64" here, "int32" there'):
            run.write_chunk(1, 4, 1, {**columns(4, 1), "timesteps": np.array([4])})
        with pytest.raises(ValueError, match="objects"):
            run.write_trace(1, {"x": np.array([{}])})
        assert run.finished() == [(0, 4)]


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


def test_a_merge_keeps_all_rows_beyond_one_row_group(tmp_path):
    with open_run(tmp_path / "r") as run:
        for index in range(3):
            first = index * 50_000
            run.write_chunk(index, first, 50_000, {"x": np.arange(first, first + 50_000) * 2})
        run.complete({"rate": float("nan")})
        np.testing.assert_array_equal(run.episodes()["x"], np.arange(150_000) * 2)
        assert run.summary() == {"rate": None}


def test_an_empty_table_of_events_keeps_its_types(tmp_path):
    with open_run(tmp_path / "r") as run:
        run.write_chunk(0, 0, 1, {"x": np.zeros(1)}, {"kind": np.zeros(0, np.int8), "at": np.zeros((0, 2))})
        events = run.events()
        assert events["kind"].dtype == np.int8 and events["at"].shape == (0, 2)


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


def test_importing_the_run_folder_is_light():
    heavy = ("pyarrow", "litellm", "matplotlib")
    code = f"import sys, jaxcoop.runs.folder; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
