"""12: from outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes, N philosophers.
"""

from typing import Any

import numpy as np

from jaxcoop.core.results import Columns, Results
from jaxcoop.envs.dining.metrics import aggregate, fairness, starvation, throughput
from jaxcoop.envs.dining.types import Outcome

_ROW = {
    "num_episodes": "episodes",
    "deadlock_count": "deadlock_count",
    "deadlock_rate": "deadlock_rate",
    "true_deadlock_count": "true_deadlock_count",
    "true_deadlock_rate": "true_deadlock_rate",
    "avg_deadlock_events": "deadlock_events",
    "avg_throughput": "throughput",
    "std_throughput": "throughput_std",
    "avg_fairness": "fairness",
    "std_fairness": "fairness_std",
    "avg_starvation_count": "starvation",
    "std_starvation_count": "starvation_std",
    "avg_timesteps": "timesteps",
    "std_timesteps": "timesteps_std",
    "avg_time_to_deadlock": "time_to_deadlock",
    "avg_time_to_true_deadlock": "time_to_true_deadlock",
}
"""Names of the reference's metrics -> names in result rows."""


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
    metrics = aggregate(columns)
    row = {ours: metrics[theirs] for theirs, ours in _ROW.items()}
    row["timeout_count"] = int(columns["timeout"].sum())
    row["timeout_rate"] = float(columns["timeout"].mean())
    return row


RESULTS = Results(
    columns=columns,
    cell=cell,
    rates={"deadlock_count": "deadlock", "true_deadlock_count": "true_deadlock", "timeout_count": "timeout"},
    means={f"{name}_std": f"{name}_half" for name in ("throughput", "fairness", "starvation", "timesteps")},
)
