"""Events of language-model runs at the dining table: one row for each answer.

Axes: D decisions.  Host side, numpy; source: 7.5 and 12 of docs/envs/dining.md.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from jaxcoop.core.results import Columns
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.records import decision_records


class Decision(NamedTuple):
    """One answer, as written to the run's events."""

    episode: int
    ask: int  # number of the ask in its episode
    clock: int  # table clock when asked
    discussion_round: int  # 1, 2, … ; 0: an action
    agent: int
    action: int  # what the table took; WAIT for an answer that could not be had or read
    message: str | None
    reasoning: str | None
    status: int


def decision_columns(decisions: list[Decision]) -> Columns:
    """Event columns of decisions; None becomes the empty text."""
    columns: Columns = {}
    for name in Decision._fields:
        values = [getattr(d, name) for d in decisions]
        if name in ("message", "reasoning"):
            # Objects: as fixed-width text one long reply would make every row as long.
            columns[name] = np.array([v or "" for v in values], dtype=object)
        else:
            columns[name] = np.array(values, np.int32)
    return columns


def action_rows(events: Columns) -> Iterator[tuple[int, np.ndarray]]:
    """(episode, its rows that are action replies, in the order asked); events are sorted by episode and ask."""
    acted = np.flatnonzero(events["discussion_round"] == 0)
    episode = events["episode"][acted]
    for rows in np.split(acted, np.flatnonzero(np.diff(episode)) + 1):
        if rows.size:
            yield int(events["episode"][rows[0]]), rows


def texts(events: Columns, name: str, rows: np.ndarray) -> list[str | None]:
    """Entries of a text column; None for the empty text."""
    return [str(text) or None for text in events[name][rows]]


def recorded_decisions(env: Dining, events: Columns) -> tuple[list[int], list[str | None]]:
    """7.5: actions and messages of the reference's decision records of all episodes."""
    actions: list[int] = []
    messages: list[str | None] = []
    for _, rows in action_rows(events):
        said = texts(events, "message", rows)
        played, spoken = decision_records(events["action"][rows], env.philosophers, env.mode, said)
        actions += played.tolist()
        messages += spoken
    return actions, messages
