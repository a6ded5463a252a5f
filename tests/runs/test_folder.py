"""Run folder: resume and refusal, one rule each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from run_folders import COMMAND, CONFIG, assert_whole, columns, error_of, finish, open_run, write

from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.manifest import default_folder, digest


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


def test_importing_the_run_folder_is_light():
    heavy = ("pyarrow", "litellm", "matplotlib")
    code = f"import sys, jaxcoop.runs.folder; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
