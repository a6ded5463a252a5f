"""Records of the reference's runner: which decisions it counts, and its log file.

Axes: K decisions asked (T·N simultaneous, one per turn sequential), N philosophers.  Source: sections 7.5 and
17 of the DPBench behaviour notes, docs/envs/dining.md.  Tables here name a fork's holder by id (-1:
free).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxcoop.envs.dining.metrics import fairness, throughput
from jaxcoop.envs.dining.text import philosopher_name
from jaxcoop.envs.dining.types import ACTION_NAMES

MODES = ("simultaneous", "sequential")


def record_indices(num_decisions: int, num_agents: int, mode: str) -> NDArray[np.int64]:
    """Which decision stands in each record, `[R, N]`; column i belongs to philosopher i.

    `num_decisions` counts the decisions in the order asked (philosophers in id order).  7.5: simultaneous,
    one row per timestep.  Sequential, one row at the end of the first round and one after every later turn:
    each holds everybody's latest decision, so decisions repeat.  Raises ValueError for a count that is not
    whole rounds.
    """
    _check_mode(mode)
    if num_decisions < 0 or num_decisions % num_agents:
        raise ValueError(f"num_decisions is {num_decisions}, must be a multiple of num_agents = {num_agents}")
    if mode == "simultaneous":
        return np.arange(num_decisions).reshape(-1, num_agents)
    turn = np.arange(num_agents - 1, num_decisions)[:, None]  # [R, 1] last turn of each record
    return turn - (turn - np.arange(num_agents)) % num_agents


def record_count(total_timesteps: ArrayLike, num_agents: int, mode: str) -> NDArray[np.int64]:
    """Number of decision records (and call records) of episodes of `total_timesteps` [...] -> [...]."""
    _check_mode(mode)
    steps = np.asarray(total_timesteps, np.int64)
    rows = steps if mode == "simultaneous" else np.maximum(steps - num_agents + 1, 0)
    return rows * num_agents


def decision_records(
    actions: ArrayLike, num_agents: int, mode: str, messages: Sequence[str | None] | None = None
) -> tuple[NDArray[np.int64], list[str | None]]:
    """Actions and messages of the decision records, flat and in the runner's order.

    `actions` [K] (or [T, N]) and `messages` (K entries) are in the order asked.
    """
    asked = np.asarray(actions, np.int64).ravel()
    index = record_indices(asked.size, num_agents, mode).ravel()
    if messages is None:
        return asked[index], [None] * index.size
    if len(messages) != asked.size:
        raise ValueError(f"{len(messages)} messages for {asked.size} actions; give one entry (or None) per action")
    return asked[index], [messages[int(i)] for i in index]


@dataclass(frozen=True)
class EpisodeTrace:
    """One episode as plain arrays; row k of a table field is the table after step (or turn) k, before any
    resolution.

    K steps: timesteps in simultaneous mode, turns in sequential mode.
    """

    mode: str
    fork: NDArray[Any]  # [K, N] holder id, -1 free
    hl: NDArray[Any]  # [K, N] flag "holds the left fork"
    hr: NDArray[Any]  # [K, N]
    eat: NDArray[Any]  # [K, N]
    meals: NDArray[Any]  # [K, N]
    actions: NDArray[Any]  # [K, N] simultaneous, [K] sequential
    messages: Sequence[str | None] | None = None  # one per decision in the order asked
    reasoning: Sequence[str | None] | None = None  # same
    llm_calls: Sequence[Mapping[str, Any] | None] | None = None  # same
    deadlock_terminal: bool = True

    def __post_init__(self) -> None:
        _check_mode(self.mode)
        shape = np.shape(self.fork)
        actions = shape if self.mode == "simultaneous" else shape[:1]
        wanted = {"hl": shape, "hr": shape, "eat": shape, "meals": shape, "actions": actions}
        for name, expected in wanted.items():
            if np.shape(getattr(self, name)) != expected:
                raise ValueError(f"{name} has shape {np.shape(getattr(self, name))}, must be {expected} (from fork)")
        count = int(np.size(self.actions))
        for name in ("messages", "reasoning", "llm_calls"):
            entries = getattr(self, name)
            if entries is not None and len(entries) != count:
                raise ValueError(f"{name} has {len(entries)} entries, must have one per decision ({count})")

    def circular_waits(self) -> NDArray[np.bool_]:
        """6: per step, everybody hungry with exactly one fork, [K]."""
        return np.all(~np.asarray(self.eat, bool) & (np.asarray(self.hl, bool) ^ np.asarray(self.hr, bool)), axis=-1)


class LogWriter:
    """Appends episodes to a log of one JSON object per line; opens with a `header` record.

    Use as a context manager.  Each episode is handed to the system as whole lines when it is written.
    """

    def __init__(self, path: str | Path, config: Mapping[str, Any], versions: Mapping[str, str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _drop_unfinished_line(self.path)
        self._file: IO[str] = self.path.open("a", encoding="utf-8")
        self._put([{"type": "header", "config": dict(config), "versions": dict(versions)}])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write_episode(self, episode_id: int, trace: EpisodeTrace) -> None:
        """Append the timestep records of an episode and its `episode_end`."""
        self._put([*timestep_records(episode_id, trace), episode_end_record(episode_id, trace)])

    def _put(self, records: Sequence[Mapping[str, Any]]) -> None:
        self._file.write("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
        self._file.flush()


def timestep_records(episode_id: int, trace: EpisodeTrace) -> list[dict[str, Any]]:
    """17: one record per decision set of the runner: table, decisions and calls.

    7.3 and 17: after a deadlock that is not terminal a simultaneous record shows the resolved table, a
    sequential one the table of the round's last turn as it stood.
    """
    num_agents = trace.fork.shape[1]
    actions = np.asarray(trace.actions).ravel()
    index = record_indices(actions.size, num_agents, trace.mode)
    first = 0 if trace.mode == "simultaneous" else num_agents - 1
    resolved = trace.circular_waits() & (trace.mode == "simultaneous" and not trace.deadlock_terminal)
    records = []
    for row, step in zip(index, range(first, trace.fork.shape[0]), strict=True):
        calls = [trace.llm_calls[i] for i in row] if trace.llm_calls is not None else []
        records.append(
            {
                "type": "timestep",
                "episode_id": episode_id,
                "timestep": step + 1,
                "table_state": _table_state(trace, step, bool(resolved[step])),
                "decisions": [_decision(trace, agent, int(i), int(actions[i])) for agent, i in enumerate(row)],
                "llm_calls": [dict(call) for call in calls if call is not None],
            }
        )
    return records


def episode_end_record(episode_id: int, trace: EpisodeTrace) -> dict[str, Any]:
    """17: how an episode ended; `deadlock` as the reference reports it, `circular_wait` the truth (7.2)."""
    steps, num_agents = trace.fork.shape
    waits = trace.circular_waits()
    # 7.2: a sequential table is looked at after the last turn of each round only.
    checked = waits if trace.mode == "simultaneous" else waits[num_agents - 1 :: num_agents]
    ended = bool(trace.deadlock_terminal and checked.size and checked[-1])
    meals = np.asarray(trace.meals)[-1] if steps else np.zeros(num_agents, np.int64)
    total = int(meals.sum())
    return {
        "type": "episode_end",
        "episode_id": episode_id,
        "total_timesteps": steps,
        "deadlock": ended and trace.mode == "simultaneous",
        "circular_wait": ended,
        "deadlock_events": 0 if trace.deadlock_terminal else int(checked.sum()),
        "meals_per_philosopher": [int(count) for count in meals],
        "total_meals": total,
        "throughput": float(throughput(total, steps)),
        "fairness": float(fairness(meals)),
    }


def read_log(path: str | Path) -> Iterator[dict[str, Any]]:
    """Records of a log file, in order.

    An unfinished last line (its process was killed) is left out; any other unreadable line raises ValueError.
    """
    with Path(path).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError:
                if not line.endswith("\n"):
                    return
                raise ValueError(
                    f"{path}, line {number}: not a JSON record; remove the line to read the rest"
                ) from None
            yield record


def _drop_unfinished_line(path: Path) -> None:
    """Cut what a killed process left after the last line break, so that the next record starts a line."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = position = file.seek(0, 2)
        while position > 0:
            start = max(position - 65536, 0)
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position < end:
            file.truncate(position)


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"mode {mode!r} is unknown; choose one of {', '.join(MODES)}")


def _table_state(trace: EpisodeTrace, step: int, resolved: bool) -> dict[str, Any]:
    num_agents = trace.fork.shape[1]
    philosophers = [
        {
            "id": i,
            "name": philosopher_name(i),
            "state": "eating" if trace.eat[step][i] else "hungry",
            "meals_eaten": int(trace.meals[step][i]),
            "has_left_fork": bool(trace.hl[step][i]) and not resolved,
            "has_right_fork": bool(trace.hr[step][i]) and not resolved,
        }
        for i in range(num_agents)
    ]
    holders = [-1 if resolved else int(holder) for holder in trace.fork[step]]
    forks = [{"id": f, "holder": None if holder < 0 else holder} for f, holder in enumerate(holders)]
    return {"philosophers": philosophers, "forks": forks}


def _decision(trace: EpisodeTrace, agent: int, index: int, action: int) -> dict[str, Any]:
    return {
        "philosopher_id": agent,
        "philosopher_name": philosopher_name(agent),
        "action": ACTION_NAMES[action],
        "message": trace.messages[index] if trace.messages is not None else None,
        "reasoning": trace.reasoning[index] if trace.reasoning is not None else None,
    }
