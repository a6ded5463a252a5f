"""12: from outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes, N philosophers.
"""

from typing import Any

import numpy as np

from jaxcoop.core.results import Columns, Results
from jaxcoop.envs.dining.cells import CELL_MEANS, CELL_RATES
from jaxcoop.envs.dining.metrics import aggregate, fairness, starvation, throughput
from jaxcoop.envs.dining.types import Outcome


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E."""
    meals = np.asarray(outcome.meals)
    timesteps = np.asarray(outcome.timesteps)
    total = meals.sum(-1)
    return {
        "timesteps": timesteps,
        "deadlock": np.asarray(outcome.deadlock),
        "deadlock_reported": np.asarray(outcome.deadlock_reported),
        "deadlock_timestep": np.where(outcome.deadlock, outcome.deadlock_timestep, -1).astype(np.int32),
        "deadlock_events": np.asarray(outcome.deadlock_events),
        "timeout": np.asarray(outcome.timeout),
        "total_meals": total,
        "throughput": throughput(total, timesteps),
        "fairness": fairness(meals),
        "starvation": starvation(meals).astype(np.int32),
        "meals": meals,
    }


def cell(columns: Columns) -> dict[str, Any]:
    """The row of a cell from the columns of all its episodes.

    `deadlock_*` is what the reference reports (never a deadlock in sequential mode, 7.2), `true_deadlock_*` what
    happened; `timeout_rate` counts time limits with somebody below `target_meals` (14, point 3).
    """
    timeouts = {
        "timeout_count": int(columns["timeout"].sum()),
        "timeout_rate": float(columns["timeout"].mean()),
    }
    return {"episodes": len(columns["timesteps"]), **aggregate(columns), **timeouts}


RESULTS = Results(
    columns=columns,
    cell=cell,
    rates={**CELL_RATES, "true_deadlock_count": "true_deadlock_ci", "timeout_count": "timeout_ci"},
    means=CELL_MEANS,
)
