"""From outcomes of teams that think to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes.  Numbers are sections of docs/coop2.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxcoop.cognition.process import Outcome
from jaxcoop.cognition.types import Call, PlanStatus, Stage
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.cooperation.results import VIOLATIONS
from jaxcoop.core import Env
from jaxcoop.core.registry import get_spec
from jaxcoop.core.results import Columns, Results, plain_columns, rates_and_means

QUANTITIES = (
    "score",
    "steps",
    "score_per_step",
    "plans_per_agent",
    "messages",
    "interruptions",
    "total_decision_time",
    *VIOLATIONS,
)
"""8.1: the eight quantities of the table, the last one by constraint."""

_ENDS = ("timed_out", "failed", "stuck")
_CALLS = tuple(f"calls_{kind.name.lower()}" for kind in Call)
_CLOSED = tuple(f"plans_{status.name.lower()}" for status in PlanStatus if status >= PlanStatus.SUCCESS)
_PREDICTED = tuple(f"predicted_{constraint.name.lower()}" for constraint in SCORED)
_MEANS = (
    *QUANTITIES[2:7],
    *("wait_seconds", "end_seconds"),
    *("planner_calls", *_CALLS, "call_errors", "leader_timeouts"),  # `calls` is the ledger's total
    *(*_CLOSED, "replanned", "resumed"),
    *("repairs", "repair_messages", "channel_members", "cooled", *_PREDICTED),
)


def mind_columns(outcome: Outcome) -> Columns:
    """What the cognitive layer adds to the columns of the environment; `outcome` is numpy with the leading axis E."""
    totals: Any = outcome.totals
    agents = totals.messages.shape[1]
    steps = np.asarray(outcome.steps)
    seconds = totals.time_ms.sum(1, dtype=np.int64) / 1000  # [E, 4]
    calls = totals.calls.sum(1)
    return {
        "score_per_step": np.asarray(totals.score, np.float64) / np.maximum(steps, 1),
        "plans_per_agent": totals.closed.sum(1) / agents,
        "messages": totals.messages.sum(1) + totals.repair_messages,
        "interruptions": totals.entries[:, :, Stage.INTERRUPTED].sum(1),
        "total_decision_time": seconds[:, Stage.REASONING] + seconds[:, Stage.INTERRUPTED],
        "wait_seconds": seconds[:, Stage.WAITING],
        "end_seconds": np.asarray(outcome.end_ms) / 1000,
        "timed_out": np.asarray(outcome.timed_out),
        "failed": np.asarray(outcome.failed),
        "stuck": np.asarray(outcome.stuck),
        "planner_calls": calls.sum(1),
        **{name: calls[:, kind] for name, kind in zip(_CALLS, Call, strict=True)},
        "call_errors": totals.errors.sum(1),
        "leader_timeouts": np.asarray(totals.timeouts),
        "stage_entries": totals.entries.sum((1, 2)),
        **{name: totals.closed[:, PlanStatus[name.removeprefix("plans_").upper()]] for name in _CLOSED},
        "replanned": np.asarray(totals.replanned),
        "resumed": totals.resumed.sum(1),
        "repairs": np.asarray(totals.repairs),
        "repair_messages": np.asarray(totals.repair_messages),
        "channel_members": np.asarray(totals.members),
        "cooled": np.asarray(totals.cooled),
        **{name: totals.predicted[:, k] for k, name in enumerate(_PREDICTED)},
    }


def _columns(game: Callable[..., Columns], outcome: Outcome) -> Columns:
    return {**game(outcome.game), **mind_columns(outcome)}


def mind_results(env: Env) -> Results:
    """How episodes of a team that thinks in the environment are counted."""
    own = get_spec(env.name).results
    rates = tuple(own.rates.values()) if own else ()
    means = tuple(name.removesuffix("_std") for name in own.means) if own else ()
    return rates_and_means(
        partial(_columns, own.columns if own else plain_columns),
        rates=(*rates, *_ENDS),
        means=(*means, *(name for name in _MEANS if name not in means)),
        shown=(*QUANTITIES, "wait_seconds", "planner_calls", "repairs", "timed_out"),
    )
