"""An interruption that a library drops still ends the run."""

import contextlib
import os
import signal

import pytest

from jaxcoop.cli import interruption
from jaxcoop.cli.main import INTERRUPTED, run
from jaxcoop.runs import evaluate
from jaxcoop.runs.folder import RunFolder


def drop_an_interruption():
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_dropped_interruption_is_raised_at_the_next_look():
    with interruption.heard():
        interruption.check()
        drop_an_interruption()
        with pytest.raises(KeyboardInterrupt):
            interruption.check()
    with interruption.heard():
        interruption.check()


def test_the_handlers_of_the_caller_come_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with interruption.heard():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_run_ends_at_the_next_chunk_after_a_dropped_interruption(tmp_path, monkeypatch, capfd):
    played = []
    real = evaluate.rollout

    def rollout(*args, **options):
        played.append(args)
        drop_an_interruption()
        return real(*args, **options)

    monkeypatch.setattr(evaluate, "rollout", rollout)
    out = tmp_path / "run"
    assert run(["run", "null", "--episodes", "100", "--chunk", "10", "--out", str(out)]) == INTERRUPTED
    error = capfd.readouterr().err
    assert "10 of 100 episodes are saved" in error and error.count("\n") == 1
    assert len(played) == 1 and RunFolder.read(out).finished() == [(0, 10)]
