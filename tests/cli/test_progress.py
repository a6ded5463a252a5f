"""Progress: a run never looks stuck, and floods no log."""

import io
import sys
import time

import pytest

from jaxcoop.cli import progress as shown
from jaxcoop.cli.progress import progress


@pytest.fixture
def lines(monkeypatch, capsys):
    """What a log has got so far; a line is due every 50 ms."""
    monkeypatch.setattr(shown, "LINE_EVERY", 0.05)
    return lambda: capsys.readouterr().err.splitlines()


def test_a_log_gets_a_line_while_nothing_is_finished(lines):
    with progress(1000, 200) as watcher:
        watcher.note("rate limited, next call in 12 min")
        time.sleep(0.2)
    assert lines()[0] == "jaxcoop: 200 of 1,000 episodes, 0 s so far, rate limited, next call in 12 min"


def test_a_log_gets_a_line_when_it_is_due_however_much_happens(lines):
    with progress(10_000_000) as watcher:
        begin = time.monotonic()
        while time.monotonic() - begin < 0.3:
            watcher.advance(1)
            watcher.note("busy")
    assert 1 <= len(lines()) <= 6


def test_lines_come_at_most_once_a_minute():
    assert shown.LINE_EVERY >= 60


def test_a_short_run_says_nothing(lines):
    with progress(10) as watcher:
        watcher.advance(10)
    assert lines() == []


def test_nothing_is_said_after_the_end(lines):
    with progress(10):
        pass
    time.sleep(0.15)
    assert lines() == []


def test_the_line_names_rate_and_time_left(monkeypatch):
    with progress(10_000, 1000) as watcher:
        monkeypatch.setattr(shown.time, "monotonic", lambda: watcher._start + 10)
        watcher.advance(200)
        assert watcher.line() == "1,200 of 10,000 episodes, 20.0/s, about 7 min left"


def test_a_terminal_gets_a_bar_and_no_lines(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    written = Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(shown, "SHOW_AFTER", 0.01)
    with progress(10) as watcher:
        time.sleep(0.3)
        watcher.advance(5)
        watcher.note("[half] done")
    assert "episodes" in written.getvalue() and "jaxcoop:" not in written.getvalue()
