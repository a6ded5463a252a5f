"""Run folders of scripted teams that think: columns, logs, exports, resuming."""

import json

import numpy as np
import pytest

import jaxcoop
from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.agents.minds.results import QUANTITIES
from jaxcoop.cognition.logs import log_row
from jaxcoop.runs import minds
from jaxcoop.runs.cell import Cell, run_cell
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.minds import read_logs, recorded_latency

CELL = Cell(
    jaxcoop.make("cube", side=8, agents=3, max_steps=12),
    "plans_weak",
    5,
    seed=3,
    talk=MindOptions(structure="broadcast_chain", log=3, export=1, latency="lognormal:900:0.5"),
)
CHUNK = 2
"""All tests share one compiled program."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("minds") / "run"
    return run_cell(CELL, command="test", out=path, chunk=CHUNK)


def columns(path):
    return RunFolder.read(path).episodes()


def test_quantities_are_those_of_the_logs(folder):
    found, logs = columns(folder.path), read_logs(folder.path)
    assert sorted(logs) == [0, 1, 2] and len(found["score"]) == 5
    for number, log in logs.items():
        row = log_row(log)
        for name in QUANTITIES:
            key = f"{name.removeprefix('viol_')}_violation_rate" if name.startswith("viol_") else name
            assert found[name][number] == pytest.approx(row[key], abs=1e-6), (number, name)
        assert found["planner_calls"][number] + found["call_errors"][number] == len(log.calls.seq)
        assert found["stage_entries"][number] == len(log.timeline.seq)
        assert found["end_seconds"][number] == log.end_ms / 1000
    assert found["messages"].max() > 0 and found["total_decision_time"].min() > 0


def test_calls_by_kind_and_closed_plans_add_up(folder):
    found = columns(folder.path)
    kinds = sum(found[f"calls_{kind}"] for kind in ("text", "plan", "decide", "statement"))
    np.testing.assert_array_equal(kinds, found["planner_calls"])
    closed = sum(found[f"plans_{end}"] for end in ("success", "failed", "interrupted"))
    np.testing.assert_allclose(closed / 3, found["plans_per_agent"])


def test_the_row_has_means_with_intervals(folder):
    found = columns(folder.path)
    for name in QUANTITIES:
        assert folder.row[name] == pytest.approx(found[name].mean()) and folder.row[f"{name}_half"] >= 0
    assert folder.row["timed_out_count"] == 0 and folder.row["stuck_count"] == 0


def test_exported_episodes_are_the_files_of_the_reference(folder):
    exported = sorted(path.name for path in (folder.path / "export").iterdir())
    assert exported == ["episode-00000"]
    usage = json.loads((folder.path / "export" / "episode-00000" / "llm_usage.json").read_text())
    assert usage["structure"] == "broadcast_chain" and usage["max_steps"] == 12 and usage["seed"] == 3
    score = json.loads((folder.path / "export" / "episode-00000" / "team_score.json").read_text())
    assert score["total_score"] == columns(folder.path)["score"][0]


def test_a_killed_run_goes_on_where_it_was_and_ends_with_the_same_results(folder, tmp_path, monkeypatch):
    write, done = RunFolder.write_chunk, []

    def killed_before_the_second(self, index, *arguments, **options):
        if done:
            raise KeyboardInterrupt
        done.append(index)
        return write(self, index, *arguments, **options)

    monkeypatch.setattr(RunFolder, "write_chunk", killed_before_the_second)
    with pytest.raises(KeyboardInterrupt, match="2 of 5 episodes are saved"):
        run_cell(CELL, command="test", out=tmp_path / "run", chunk=CHUNK)
    monkeypatch.setattr(RunFolder, "write_chunk", write)
    again = run_cell(CELL, command="test", out=tmp_path / "run", chunk=CHUNK)
    assert again.row == folder.row
    found, expected = columns(again.path), columns(folder.path)
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name], name)
    assert sorted(read_logs(again.path)) == [0, 1, 2]


def test_episodes_do_not_depend_on_what_is_logged(folder, tmp_path, monkeypatch):
    """Records that do not fit get a phase of their own; the rest of the episodes has no buffers."""
    monkeypatch.setattr(minds, "setup_chunk", lambda setup, episodes: CHUNK)
    again = run_cell(CELL, command="test", out=tmp_path / "run")
    assert sorted(read_logs(again.path)) == [0, 1, 2]
    found, expected = columns(again.path), columns(folder.path)
    for name in found:
        np.testing.assert_array_equal(found[name], expected[name], name)


def test_a_run_without_calls_of_a_model_has_no_latencies(folder):
    with pytest.raises(ValueError, match="no calls of a team that thinks"):
        recorded_latency(folder.path)
