"""Segments, the default front end: run until enough episodes wait, ask, apply, run on.

The compiled programs hold no host call, so nothing on the device waits for a planner, an error leaves the
states in the host's hands, and several devices never wait for each other.  While one group of episodes waits
for answers the others compute.  Design: sections 1, 5 and 6 of docs/concepts/planning.md.
"""

import concurrent.futures
import queue
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxcoop.planning.batches import (
    OnRound,
    Reporter,
    advance_states,
    answers_of,
    apply_answers,
    check_options,
    check_usable,
    devices_of,
    join,
    next_landed,
    pull_rows,
    scatter,
    split,
    stuck,
)
from jaxcoop.planning.planner import Planner, PlannerUnusable
from jaxcoop.planning.process import Process, check_process


def run_segments(
    process: Process,
    planner: Planner,
    states: Any,
    *,
    groups: int = 2,
    quota: int | None = None,
    timeout: float | None = None,
    on_round: OnRound | None = None,
) -> Any:
    """Run the episodes `states` [B, ...] to their end; return the final states [B, ...].

    `groups`: parts of the batch that take turns (at least one for each device that holds the states).
    `quota`: episodes of a group that must wait before it asks; None means all that can.  `timeout`: longest
    silence of the planner in seconds.  All three change the schedule, never the result. `on_round`: called after
    each round, and every two seconds of waiting.  Raises
    `PlannerUnusable` with the states attached, and RuntimeError for a process that outlives its `max_rounds`.
    """
    check_options(groups, quota, timeout)
    episodes = check_process(process, states)
    devices = devices_of(states)
    count = min(episodes, -(-max(groups, len(devices)) // len(devices)) * len(devices))
    sizes = [len(part) for part in np.array_split(np.arange(episodes), count)]
    parts = [_Group(process, planner, part, size, quota) for part, size in zip(split(states, sizes, devices), sizes)]
    try:
        _drive(parts, planner, timeout, Reporter(on_round, planner, episodes))
    except PlannerUnusable as err:
        err.states = join([g.states for g in parts], states, devices)
        raise
    return join([g.states for g in parts], states, devices)


def _drive(groups: "list[_Group]", planner: Planner, timeout: float | None, reporter: Reporter) -> None:
    for group in groups:  # start every device before looking at any result
        group.advance()
    landed: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()
    for group in groups:
        group.ask(landed)
    while any(g.future is not None for g in groups):
        next_landed(landed, timeout, reporter)
        check_usable(planner)
        ready = [g for g in groups if g.future is not None and g.future.done()]
        for group in ready:
            reporter.answered += group.apply()
            group.advance()
        for group in ready:
            group.ask(landed)
        if ready:
            reporter.rounds += 1
            reporter.done = sum(g.ended for g in groups)
            reporter.tell()
    check_usable(planner)


@dataclass
class _Group:
    """Consecutive episodes that run, wait and ask together."""

    process: Process
    planner: Planner
    states: Any
    size: int
    quota: int | None
    future: "concurrent.futures.Future[np.ndarray] | None" = None
    ended: int = 0  # episodes done
    _rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # flat (episode, agent) pairs asked
    _status: tuple[Any, Any] | None = None  # device arrays: need [B, A], done [B]
    _asks: np.ndarray = field(init=False)  # [B] rounds of each episode

    def __post_init__(self) -> None:
        self._asks = np.zeros(self.size, np.int64)

    def advance(self) -> None:
        """Dispatch a segment; does not wait for it."""
        quota = self.size + 1 if self.quota is None else self.quota
        self.states, *status = advance_states(
            self.process, self.states, np.int32(quota), np.int32(self.process.max_rounds)
        )
        self._status = (status[0], status[1])

    def ask(self, landed: "queue.SimpleQueue[concurrent.futures.Future]") -> None:
        """Wait for the segment, then submit the needy rows; `landed` gets the future once done."""
        assert self._status is not None
        need, done = (np.asarray(x) for x in self._status)
        self.ended = int(done.sum())
        self.future = None
        if not need.any():
            if not done.all():
                raise stuck(self.process, self.size - self.ended)
            return
        self._asks += need.any(1)
        if self._asks.max() > self.process.max_rounds:
            raise stuck(self.process, int((self._asks > self.process.max_rounds).sum()))
        self._rows = np.flatnonzero(need)
        self.future = self.planner.submit(pull_rows(self.process, self.states, self._rows))
        self.future.add_done_callback(landed.put)

    def apply(self) -> int:
        """Write the answers that came; returns their number."""
        assert self.future is not None
        words = answers_of(self.future)
        shape = (self.size, self.process.num_agents, self.process.answer_words)
        self.states = apply_answers(self.process, self.states, *scatter(shape, self._rows, words))
        return len(words)
