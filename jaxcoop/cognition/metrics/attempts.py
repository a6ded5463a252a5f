"""8.3: what attempt events have in common, and their aggregates.

Axes: E events, C = 3 scored constraints.  An event is one task and one primitive step in which somebody tried it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxcoop.cognition.metrics.profiles import mapping, number, share
from jaxcoop.cooperation.constraints import SCORED

CONSTRAINTS = tuple(kind.name.lower() for kind in SCORED)

ATTEMPT_RATES = (
    "attempt_constraint_events",
    "successful_attempt_events",
    "attempt_success_rate",
    *(f"{name}_{what}" for name in CONSTRAINTS for what in ("violation_rate", "score", "checks")),
)
"""Keys of `attempt_rates`."""

Event = dict[str, Any]


def violation(score: ArrayLike) -> NDArray[np.float64]:
    """v_c = 1 - min(score, 1): how far a constraint is from being met; 0 for scores above 1."""
    return np.maximum(0.0, 1.0 - np.asarray(score, np.float64))


def attempt_rates(scores: ArrayLike, success: Sequence[bool] | NDArray[np.bool_]) -> dict[str, float]:
    """Counts, share of successes, and for each constraint its mean violation, score and number of checks.

    `scores` [E, C]; NaN where an event says nothing of a constraint, which is then not checked by it.  Rates and
    scores are 0 where nothing is checked.
    """
    table = np.asarray(scores, np.float64).reshape(-1, len(CONSTRAINTS))
    events, successes = len(table), int(np.sum(success))
    rates: dict[str, float] = {
        "attempt_constraint_events": float(events),
        "successful_attempt_events": float(successes),
        "attempt_success_rate": share(successes, events),
    }
    for name, column in zip(CONSTRAINTS, table.T):
        checked = column[~np.isnan(column)]
        rate = float(violation(checked).mean()) if checked.size else 0.0
        rates[f"{name}_violation_rate"] = rate
        rates[f"{name}_score"] = 1.0 - rate if checked.size else 0.0
        rates[f"{name}_checks"] = checked.size
    return rates


def rates_of(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """`attempt_rates` of events as records."""
    return attempt_rates(scores_of(events), [bool(event.get("success")) for event in events])


def scores_of(events: Iterable[Mapping[str, Any]]) -> NDArray[np.float64]:
    """[E, C] scores of events as records, NaN where there is none."""
    rows = [
        [number(scores[name]) if name in scores else np.nan for name in CONSTRAINTS]
        for scores in (mapping(event.get("constraint_scores")) for event in events)
    ]
    return np.array(rows, np.float64).reshape(-1, len(CONSTRAINTS))


def scored(scores: Mapping[str, float]) -> Event:
    """The two entries of an event that hold its scores and violations."""
    return {
        "constraint_scores": dict(scores),
        "constraint_violations": {name: float(violation(score)) for name, score in scores.items()},
    }


def observed(records: Iterable[Mapping[str, Any]] | None, task: str) -> dict[str, Mapping[str, Any]]:
    """The results of a task among observed constraints, by constraint; of several the last."""
    return {
        str(record.get("constraint_type")): record for record in records or () if str(record.get("task_id")) == task
    }


def observed_score(record: Mapping[str, Any], required: int) -> float:
    """Its score; if null the named agents / required, or without a list of them whether it is satisfied."""
    if record.get("score") is not None:
        return max(0.0, number(record["score"]))
    agents = record.get("agents")
    return len(agents) / required if isinstance(agents, list) else float(bool(record.get("satisfied")))
