"""Who answers: planners turn the rows of needy (episode, agent) pairs into rows of answer words.

Axes: R rows, W answer words.  Rows and answers are numpy on both sides; no planner touches jax.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from jaxcoop.planning.process import Status
from jaxcoop.planning.request import Answer, Request

Rows = dict[str, np.ndarray]  # field name -> [R, ...]


class PlannerUnusable(RuntimeError):  # noqa: N818  (a state of the planner, not a slip)
    """The planner cannot go on; the message says what happened, where, and what to do.

    `states`: the batch as it stood, each episode at a step boundary and no answer half applied (None where
    the front end cannot tell).  Running them again with a working planner continues the rollout.
    """

    def __init__(self, reason: str, states: Any = None) -> None:
        super().__init__(reason)
        self.states = states


class Planner(Protocol):
    """What a front end asks.  `submit` may be called from several threads at once.

    A planner, or the hub behind one, may also have `waiting_note() -> str | None`: a few words on what it waits
    for, shown while a rollout waits.
    """

    @property
    def unusable(self) -> str | None:
        """None, or one line that says why this planner cannot answer any more."""
        ...

    def submit(self, rows: Rows) -> "Future[np.ndarray]":
        """Fields of the view, [R, ...] each -> future of int32[R, W]."""
        ...

    def close(self) -> None:
        """Release threads and connections; may be called twice."""
        ...


def checked_words(words: object, count: int, width: int, source: str) -> np.ndarray:
    """`words` as int32[count, width]; another shape or a dtype that is not integer raises ValueError."""
    array = np.asarray(words)
    if array.shape != (count, width) or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{source} gave {array.dtype}{list(array.shape)} for {count} rows; it must be integer words "
            f"[{count}, {width}], the last word a Status"
        )
    if not np.isin(array[:, -1], list(Status)).all():
        raise ValueError(f"{source} gave status words outside 0..{len(Status) - 1}; the last word must be a Status")
    return array.astype(np.int32, copy=False)


class FunctionPlanner:
    """A fast numpy function as planner: `fn(rows) -> int[R, words]`, evaluated inside `submit`."""

    unusable: str | None = None

    def __init__(self, fn: Callable[[Rows], np.ndarray], words: int) -> None:
        self._fn, self._words = fn, words

    def submit(self, rows: Rows) -> "Future[np.ndarray]":
        """Evaluate at once.  An error of the function, or a wrong result, is raised by the future."""
        future: Future[np.ndarray] = Future()
        try:
            count = len(next(iter(rows.values())))
            future.set_result(checked_words(self._fn(rows), count, self._words, "the planner function"))
        except Exception as err:
            future.set_exception(err)
        return future

    def close(self) -> None:
        """Nothing to release."""


class RequestHub(Protocol):
    """The part of `Hub` a `TextPlanner` uses."""

    @property
    def unusable(self) -> str | None:
        """None, or why no request can succeed."""
        ...

    def submit(self, requests: Sequence[Request]) -> "Future[list[Answer]]":
        """One answer for each request, in order."""
        ...

    def close(self) -> None:
        """Stop the hub."""
        ...


class TextPlanner:
    """A language model as planner: rows are written as requests, replies are read back as words.

    `write(rows) -> list[Request]`, one for each row; `read(rows, answers) -> int32[R, words]`.  Where the hub
    had no proper reply (status not OK) its status replaces the last word, whatever `read` wrote there.
    """

    def __init__(
        self,
        hub: RequestHub,
        write: Callable[[Rows], list[Request]],
        read: Callable[[Rows, list[Answer]], np.ndarray],
        words: int,
    ) -> None:
        self._hub, self._write, self._read, self._words = hub, write, read, words
        # Reading happens off the hub's thread: parsing thousands of replies there would delay calls in
        # flight.
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="planner-reader")

    @property
    def unusable(self) -> str | None:
        """Why the hub cannot go on, or None."""
        return self._hub.unusable

    def waiting_note(self) -> str | None:
        """What the hub waits for, or None."""
        note: Callable[[], str | None] | None = getattr(self._hub, "waiting_note", None)
        return None if note is None else note()

    def submit(self, rows: Rows) -> "Future[np.ndarray]":
        """Write, ask, and read when all answers of these rows are there."""
        count = len(next(iter(rows.values())))
        requests = self._write(rows)
        if len(requests) != count:
            raise ValueError(f"write() gave {len(requests)} requests for {count} rows; it must give one for each")
        words: Future[np.ndarray] = Future()
        self._hub.submit(requests).add_done_callback(lambda answers: self._later(rows, answers, words))
        return words

    def _later(self, rows: Rows, answers: "Future[list[Answer]]", words: "Future[np.ndarray]") -> None:
        try:
            self._reader.submit(self._finish, rows, answers, words)
        except RuntimeError:  # closed meanwhile: nobody will read the answers, and the waiting side must not hang
            _cancel(words)

    def _finish(self, rows: Rows, answers: "Future[list[Answer]]", words: "Future[np.ndarray]") -> None:
        if answers.cancelled():
            _cancel(words)
            return
        try:
            got = answers.result()
            array = checked_words(self._read(rows, got), len(got), self._words, "read()").copy()
            status = np.array([a.status for a in got], np.int32)
            array[:, -1] = np.where(status == Status.OK, array[:, -1], status)
            words.set_result(array)
        except Exception as err:
            words.set_exception(err)

    def close(self) -> None:
        """Close the hub and the reader."""
        self._hub.close()
        self._reader.shutdown(wait=True)


def _cancel(future: Future) -> None:
    """Cancel, and tell those who wait: `Future.cancel` alone leaves them waiting."""
    future.cancel()
    future.set_running_or_notify_cancel()
