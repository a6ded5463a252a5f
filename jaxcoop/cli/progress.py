"""Progress of a run: episodes, rate, time left; a bar on a terminal, elsewhere a line now and then."""

import math
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxcoop.cli import interruption

SHOW_AFTER = 2.0  # seconds until the bar appears
LINE_EVERY = 60.0  # seconds between the lines where stderr is no terminal


class Progress:
    """Counts episodes, shows them from a thread of its own: also while nothing is finished, something is said."""

    def __init__(self, total: int, done: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self.done: float = done
        self._begin, self._start = done, time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._note = ""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._teller = threading.Thread(target=self._tell, name="progress", daemon=True)
        self._teller.start()

    def advance(self, count: float) -> None:
        """`count` more are finished; parts of one count too."""
        self.done += count
        interruption.check()
        self._update()

    def note(self, text: str) -> None:
        """What goes on within the current chunk."""
        self._note = text
        interruption.check()
        self._update()

    def close(self) -> None:
        """Take the bar away."""
        self._closed.set()
        self._teller.join()
        if self._bar is not None:
            self._bar.stop()

    def line(self) -> str:
        """The progress in words, e.g. `1,200 of 10,000 episodes, 20.0/s, about 7 min left`."""
        rate = self._rate()
        parts = [f"{math.floor(self.done):,} of {self.total:,} {self.unit}"]
        if rate > 0:
            parts += [f"{rate:,.1f}/s", f"about {_duration((self.total - self.done) / rate)} left"]
        else:
            parts.append(f"{_duration(time.monotonic() - self._start)} so far")
        return ", ".join([*parts, *([self._note] if self._note else [])])

    def _rate(self) -> float:
        return (self.done - self._begin) / max(time.monotonic() - self._start, 1e-9)

    def _tell(self) -> None:
        if sys.stderr.isatty():
            if not self._closed.wait(SHOW_AFTER):
                with self._lock:
                    self._bar = _make_bar()
                    self._task = self._bar.add_task(
                        self.unit, total=self.total, completed=self._begin, note="", rate=""
                    )
                    self._bar.start()
                self._update()
            return
        while not self._closed.wait(LINE_EVERY):
            print(f"jaxcoop: {self.line()}", file=sys.stderr, flush=True)

    def _update(self) -> None:
        with self._lock:
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done, note=self._note, rate=f"{self._rate():,.1f}/s")


def _duration(seconds: float) -> str:
    """To the minute, above two hours to the hour."""
    if seconds >= 7200:
        return f"{seconds / 3600:,.0f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    return RichProgress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def progress(total: int, done: int = 0, unit: str = "episodes") -> Iterator[Progress]:
    """A progress display for `total` units of which `done` are finished."""
    shown = Progress(total, done, unit)
    try:
        yield shown
    finally:
        shown.close()
