"""Progress of a run: episodes, rate, time left; nothing where nobody looks."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SHOW_AFTER = 2.0  # seconds until something is shown


class Progress:
    """Counts episodes; the bar appears after two seconds, on a terminal only."""

    def __init__(self, total: int, done: int, unit: str) -> None:
        self.total, self.unit = total, unit
        self.done: float = done
        self._begin, self._start = done, time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._note = ""

    def advance(self, count: float) -> None:
        """`count` more are finished; parts of one count too."""
        self.done += count
        self._show()

    def note(self, text: str) -> None:
        """What goes on within the current chunk."""
        self._note = text
        self._show()

    def _show(self) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._start < SHOW_AFTER:
            return
        if self._bar is None:
            self._bar = _make_bar()
            self._task = self._bar.add_task(self.unit, total=self.total, completed=self._begin, note="", rate="")
            self._bar.start()
        rate = (self.done - self._begin) / (time.monotonic() - self._start)
        self._bar.update(self._task, completed=self.done, note=self._note, rate=f"{rate:,.1f}/s")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


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
        TextColumn("{task.fields[note]}"),
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
