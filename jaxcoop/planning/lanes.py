"""Free lanes, the fast front end: ask for an episode as soon as it waits, apply answers as they come.

No episode waits for the slowest answer of another, at the price of more and smaller device programs.  Worth
it when answers take long and their times spread.  Design: sections 6 and 7.4 of docs/concepts/planning.md.
"""

import concurrent.futures
import queue
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

_CHUNK = 8  # steps between two looks at the planner while some episode can run
_SUBMISSIONS = 512  # submissions of one pass at most; more episodes than that share one


def run_lanes(
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

    `quota`: answered episodes that are worth a device program while all others wait; None means one in
    sixteen. `timeout`: longest silence of the planner in seconds.  `groups` is for the other front ends and
    has no effect.  `on_round`: called after each round, and every two seconds of waiting.  Raises
    `PlannerUnusable` with the states attached, and RuntimeError for a process that outlives its `max_rounds`.
    """
    check_options(groups, quota, timeout)
    episodes = check_process(process, states)
    devices = devices_of(states)
    lanes = _Lanes(process, planner, split(states, [episodes], devices)[0], episodes)
    quota = quota or max(1, episodes // 16)
    reporter = Reporter(on_round, planner, episodes)
    try:
        over = lanes.step()
        while not over:
            check_usable(planner)
            got = lanes.collect(quota, timeout, reporter)
            check_usable(planner)
            if got:
                reporter.answered += lanes.apply(got)
                reporter.rounds += 1
            over = lanes.step()
            reporter.done = lanes.ended
            if got:
                reporter.tell()
        reporter.tell()
        check_usable(planner)
    except PlannerUnusable as err:
        err.states = join([lanes.states], states, devices)
        raise
    return join([lanes.states], states, devices)


class _Lanes:
    """The batch, and which of its episodes have been asked about."""

    def __init__(self, process: Process, planner: Planner, states: Any, episodes: int) -> None:
        self.states, self.ended = states, 0
        self._process, self._planner, self._episodes = process, planner, episodes
        self._asked = np.zeros(episodes, np.bool_)  # an answer is on its way
        self._asks = np.zeros(episodes, np.int64)  # rounds of each episode
        self._idle = 0  # passes in a row without an ask, an answer or anything on its way
        self._busy = False  # some episode can advance without an answer
        self._rows: dict[concurrent.futures.Future, np.ndarray] = {}  # flat pairs of each submission
        self._landed: queue.SimpleQueue[concurrent.futures.Future] = queue.SimpleQueue()

    def step(self) -> bool:
        """Run a chunk and ask about the episodes that began to wait; True when all are done."""
        steps = np.int32(min(_CHUNK, self._process.max_rounds))
        self.states, need, done = advance_states(self._process, self.states, np.int32(self._episodes + 1), steps)
        need, done = np.asarray(need), np.asarray(done)
        self.ended = int(done.sum())
        self._busy = bool((~need.any(1) & ~done).any())
        fresh = np.flatnonzero(need.any(1) & ~self._asked)
        self._idle = 0 if len(fresh) or self._rows else self._idle + 1
        self._asks[fresh] += 1
        if self._asks.max() > self._process.max_rounds or self._idle > self._process.max_rounds:
            raise stuck(self._process, self._episodes - self.ended)
        if len(fresh):
            self._ask(fresh, need)
        return bool(done.all())

    def _ask(self, fresh: np.ndarray, need: np.ndarray) -> None:
        agents = self._process.num_agents
        pairs = np.flatnonzero(need & np.isin(np.arange(self._episodes), fresh)[:, None])
        fields = pull_rows(self._process, self.states, pairs)
        self._asked[fresh] = True
        for share in np.array_split(fresh, min(len(fresh), _SUBMISSIONS)):
            # All needy agents of an episode are asked at once: no request sees another's answer.
            a, b = np.searchsorted(pairs, [share[0] * agents, (share[-1] + 1) * agents])
            future = self._planner.submit({name: x[a:b] for name, x in fields.items()})
            self._rows[future] = pairs[a:b]
            future.add_done_callback(self._landed.put)

    def collect(self, quota: int, timeout: float | None, reporter: Reporter) -> list[concurrent.futures.Future]:
        """Answers that have come; waits for `quota` episodes when nothing else can be done."""
        got: list[concurrent.futures.Future] = []
        episodes = 0
        while len(got) < len(self._rows):
            if not self._busy and episodes < quota:
                future = next_landed(self._landed, timeout, reporter)
            else:
                try:
                    future = self._landed.get_nowait()
                except queue.Empty:
                    break
            got.append(future)
            episodes += len(np.unique(self._rows[future] // self._process.num_agents))
        return got

    def apply(self, got: list[concurrent.futures.Future]) -> int:
        """Write answers; returns the number of rows."""
        words = np.concatenate([answers_of(future) for future in got])
        rows = np.concatenate([self._rows.pop(future) for future in got])
        shape = (self._episodes, self._process.num_agents, self._process.answer_words)
        self.states = apply_answers(self._process, self.states, *scatter(shape, rows, words))
        self._asked[rows // self._process.num_agents] = False
        return len(rows)
