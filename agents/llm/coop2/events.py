"""Events of runs of language models that think: one row for each answer.

Axes: T thoughts.  Host side, numpy.
"""

from typing import NamedTuple

import numpy as np

from jaxcoop.agents.llm.coop2.answers import Read
from jaxcoop.agents.llm.coop2.rows import AskRow
from jaxcoop.core.results import Columns

_WORDS = ("said", "reasoning")


class Thought(NamedTuple):
    """One answer, as written to the run's events."""

    episode: int
    step: int
    agent: int
    call: int  # number of the agent's call
    kind: int  # Call
    stage: int  # Stage in which it asked
    verdict: int  # Verdict
    status: int  # Status
    latency_ms: int
    operations: int  # of the plan, also those that found no place
    is_cut: bool  # not all of them did
    said: str  # the text, or what the plan is for
    reasoning: str


def thought(row: AskRow, read: Read, ops: int) -> Thought:
    """The event of an answer."""
    count = 0 if read.plan is None else len(read.plan.actions)
    return Thought(
        episode=row.episode,
        step=row.step,
        agent=row.agent,
        call=row.call,
        kind=int(row.kind),
        stage=int(row.stage),
        verdict=int(read.verdict),
        status=int(read.status),
        latency_ms=read.latency_ms,
        operations=count,
        is_cut=count > ops,
        said=read.text or ("" if read.plan is None else read.plan.specification),
        reasoning=read.reasoning,
    )


def thought_columns(thoughts: list[Thought]) -> Columns:
    """Event columns."""
    columns: Columns = {}
    for name in Thought._fields:
        values = [getattr(one, name) for one in thoughts]
        # Objects: as fixed-width text one long reply would make every row as long.
        columns[name] = np.array(values, object) if name in _WORDS else np.array(values, np.int32)
    return columns
