"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes, C = 3 scored constraints (spatial, temporal, dependency).
"""

from typing import Any

import numpy as np

from jaxcoop.core.results import Columns, Results
from jaxcoop.envs.cube.types import Outcome

CONSTRAINTS = ("spatial", "temporal", "dependency")
MEANS = ("steps", "delivered_blocks", "score", "attempt_success_rate", *(f"viol_{name}" for name in CONSTRAINTS))


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E.

    10.2: `viol_*` is the mean deficit over the episode's attempt events, 0 without any.
    """
    events, successes = np.asarray(outcome.attempts.events), np.asarray(outcome.attempts.successes)
    some = np.maximum(events, 1)
    viol = np.asarray(outcome.attempts.deficit, np.float64) / some[:, None]
    return {
        "steps": np.asarray(outcome.steps),
        "delivered_blocks": np.asarray(outcome.delivered),
        "score": np.asarray(outcome.score, np.float64),
        "all_delivered": np.asarray(outcome.all_delivered),
        "attempt_events": events,
        "successful_attempts": successes,
        "attempt_success_rate": successes / some,
        **{f"viol_{name}": viol[:, c] for c, name in enumerate(CONSTRAINTS)},
    }


def cell(columns: Columns) -> dict[str, Any]:
    """The row of a cell from the columns of all its episodes: means over episodes and their spread."""
    row: dict[str, Any] = {
        "episodes": len(columns["steps"]),
        "all_delivered_count": int(columns["all_delivered"].sum()),
        "all_delivered_rate": float(columns["all_delivered"].mean()),
    }
    for name in MEANS:
        values = np.asarray(columns[name], np.float64)
        row[name], row[f"{name}_std"] = float(values.mean()), float(values.std())
    return row


RESULTS = Results(
    columns=columns,
    cell=cell,
    rates={"all_delivered_count": "all_delivered_ci"},
    means={f"{name}_std": f"{name}_half" for name in MEANS},
)
