"""`jaxcoop run` with a language model: a scripted server on loopback, reached through litellm itself."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.benchmarks.loopback import Failures, LoopbackServer
from jaxcoop.cli.main import run
from jaxcoop.runs.folder import RunFolder

EPISODES, ROUNDS = 64, 3
GAME = ["--episodes", str(EPISODES), "--communication", "--communication-rounds", str(ROUNDS), "--max-timesteps", "1"]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


def arguments(url, out, *more):
    return ["run", "dining", "--model", "openai/scripted", "--api-base", url, *GAME, "--out", str(out), *more]


def rows(folder, sql):
    """Rows of the run's record."""
    with contextlib.closing(sqlite3.connect(Path(folder) / "llm.sqlite")) as db:
        return db.execute(sql).fetchall()


def answers(folder):
    """Recorded answers without what varies between runs of one configuration."""
    return sorted(rows(folder, "SELECT key, request, json_remove(reply, '$.seconds'), status FROM answers"))


def same(a, b):
    """Equal columns, value by value."""
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], name)


def results(folder):
    """Episode and event columns of a complete run."""
    read = RunFolder.read(folder)
    assert read.is_complete
    return read.episodes(), read.events()


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """One complete run, its server's counters; the server is off afterwards."""
    out = tmp_path_factory.mktemp("played") / "run"
    os.environ["OPENAI_API_KEY"] = "not-a-real-key"
    with LoopbackServer(latency=0.05) as server:
        assert run(arguments(server.url, out)) == 0
    return out, server


def test_philosophers_of_all_episodes_are_asked_at_the_same_time(played):
    out, server = played
    episodes, events = results(out)
    assert server.requests == EPISODES * 5 * ROUNDS == len(events["action"])
    assert server.peak > 32
    assert episodes["answers_ok"].sum() == server.requests
    assert set(events["discussion_round"]) == {0, 1, 2}
    assert (events["message"] != "").all()
    assert len(set(events["action"][events["discussion_round"] == 0])) > 1


def test_asking_in_the_graph_gives_the_same_states_and_records(played, tmp_path):
    with LoopbackServer() as server:
        assert run(arguments(server.url, tmp_path / "run", "--front-end", "in_graph")) == 0
    for ours, theirs in zip(results(tmp_path / "run"), results(played[0]), strict=True):
        same(ours, theirs)
    assert answers(tmp_path / "run") == answers(played[0])


def test_a_replay_gives_the_same_states_without_a_server(played, tmp_path, capfd):
    assert run(arguments(played[1].url, tmp_path / "run", "--replay", str(played[0]))) == 0
    for ours, theirs in zip(results(tmp_path / "run"), results(played[0]), strict=True):
        same(ours, theirs)
    assert rows(tmp_path / "run", "SELECT count(*) FROM calls") == [(0,)]
    assert RunFolder.read(tmp_path / "run").summary()["row"]["calls"] == 0


def test_a_replay_with_a_gap_fails_and_stores_nothing(played, tmp_path, capfd):
    more = ["--replay", str(played[0]), "--seed", "1"]
    assert run(arguments(played[1].url, tmp_path / "run", *more)) == 1
    error = capfd.readouterr().err
    assert "lacks 960 answers" in error and error.count("\n") == 1
    assert RunFolder.read(tmp_path / "run").finished() == []


def test_a_killed_run_finishes_without_asking_for_an_answer_twice(tmp_path):
    out = tmp_path / "run"
    with LoopbackServer(latency=0.1) as server:
        command = [sys.executable, "-m", "jaxcoop.cli", *arguments(server.url, out, "--limit", "16")]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while server.requests < 400:
            assert child.poll() is None, child.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
        arrived = rows(out, "SELECT count(*) FROM answers")[0][0]
        in_flight = server.requests - arrived
        assert 0 < arrived < EPISODES * 5 * ROUNDS and in_flight <= 16
        assert run(arguments(server.url, out, "--limit", "16")) == 0
    assert server.requests == EPISODES * 5 * ROUNDS + in_flight
    assert rows(out, "SELECT count(*), count(DISTINCT key) FROM calls WHERE outcome = 'ok'") == [(960, 960)]


def test_failing_calls_are_retried_counted_and_never_end_the_run(tmp_path, capfd):
    failures = Failures(rate_limit=0.07, server_error=0.07, garbage=0.06, retry_after=0.01)
    with LoopbackServer(failures=failures) as server:
        more = ["--episodes", "16", "--attempts", "8"]
        assert run(arguments(server.url, tmp_path / "run", *more)) == 0
    row = RunFolder.read(tmp_path / "run").summary()["row"]
    kinds = server.by_kind
    assert min(kinds["rate_limit"], kinds["server_error"], kinds["garbage"]) > 0
    assert row["calls"] == server.requests and row["rate_limited"] == kinds["rate_limit"]
    assert row["errors"] == kinds["server_error"] + kinds["garbage"]
    assert row["retried"] == server.requests - 16 * 5 * ROUNDS
    assert row["fallback"] == 0 and row["malformed"] == 0
    assert "retried" in capfd.readouterr().out


def test_replies_without_an_action_are_counted_and_wait(tmp_path, capfd):
    failures = Failures(empty=0.1, null=0.1, huge=0.1)
    game = ["--episodes", "8", "--max-timesteps", "2"]
    with LoopbackServer(failures=failures) as server:
        command = ["run", "dining", "--model", "openai/scripted", "--api-base", server.url, *game]
        assert run([*command, "--out", str(tmp_path / "run")]) == 0
        _, events = results(tmp_path / "run")
        row = RunFolder.read(tmp_path / "run").summary()["row"]
        assert row["malformed"] == server.by_kind["empty"] + server.by_kind["null"] + server.by_kind["huge"]
        assert (events["action"][events["status"] == 3] == 3).all() and (events["status"] == 3).sum() == row[
            "malformed"
        ]
        assert run([*command, "--out", str(tmp_path / "asked"), "--reasks", "4"]) == 0
    again = RunFolder.read(tmp_path / "asked").summary()["row"]
    assert again["reasked"] > 0 and again["malformed"] < row["malformed"]


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        (["--limit", "0"], 2, "limit is 0; allowed: at least 1"),
        (["--temperature", "-1"], 2, "temperature"),
        (["--attempts", "0"], 2, "attempts"),
        (["--prompt", "defualt"], 2, "default"),
        (["--decision", "{nobody}"], 2, "nobody"),
        (["--decision", "@/no/such/file"], 2, "cannot read the template file"),
        (["--client", "direct", "--api-base", "nonsense"], 2, "http://"),
        (["--api-key-env", "NO_SUCH_KEY_VARIABLE"], 2, "NO_SUCH_KEY_VARIABLE"),
        (["--replay", "/no/such/record"], 1, "does not exist"),
        (["--agent", "left_first"], 2, "--model is for --agent llm"),
        (["--trace", "actions"], 2, "traces are for policies"),
    ],
)
def test_wrong_options_are_one_line_and_make_no_call(tmp_path, capfd, more, status, says):
    with LoopbackServer() as server:
        base = ["run", "dining", "--model", "openai/scripted", "--api-base", server.url, "--out", str(tmp_path / "run")]
        assert run([*base, *more]) == status
        assert server.requests == 0
    error = capfd.readouterr().err
    assert says in error and error.count("\n") == 1 and "Traceback" not in error


def test_a_provider_that_cannot_be_reached_stops_the_run_with_a_resume_line(tmp_path, capfd):
    command = ["run", "dining", "--model", "openai/scripted", "--api-base", "http://127.0.0.1:9/v1", "--attempts", "1"]
    assert run([*command, "--episodes", "4", "--out", str(tmp_path / "run")]) == 1
    error = capfd.readouterr().err
    assert "continue with: jaxcoop run dining" in error and error.count("\n") == 1
    assert RunFolder.read(tmp_path / "run").finished() == []


def test_a_missing_key_is_named_before_anything_is_played(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert (
        run(["run", "dining", "--model", "openai/gpt-4o-mini", "--episodes", "1", "--out", str(tmp_path / "run")]) == 1
    )
    error = capfd.readouterr().err
    assert "OPENAI_API_KEY" in error and error.count("\n") == 1
