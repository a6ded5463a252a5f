"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes, A agents.
"""

from typing import Any

import numpy as np

from jaxcoop.core.results import Columns, Results
from jaxcoop.envs.macrafter.types import Achievement, Outcome

COLLECTED = {
    "wood": Achievement.COLLECT_WOOD,
    "stone": Achievement.COLLECT_STONE,
    "coal": Achievement.COLLECT_COAL,
    "iron": Achievement.COLLECT_IRON,
    "diamond": Achievement.COLLECT_DIAMOND,
}
VIOLATIONS = ("spatial", "temporal", "dependency")


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E."""
    achievements = np.asarray(outcome.achievements)  # [E, A, 22]
    totals = outcome.attempts
    events, deficit = np.asarray(totals.events), np.asarray(totals.deficit)
    diamonds = achievements[:, :, Achievement.COLLECT_DIAMOND].sum(1)
    return {
        "steps": np.asarray(outcome.steps),
        "score": np.asarray(outcome.score),
        "deaths": np.asarray(outcome.deaths),
        "found_diamond": diamonds > 0,
        "achievements_unlocked": (achievements > 0).any(1).sum(-1).astype(np.int32),
        **{name: achievements[:, :, kind].sum(1).astype(np.int32) for name, kind in COLLECTED.items()},
        "attempts": events,
        "attempts_successful": np.asarray(totals.successes),
        **{f"deficit_{name}": deficit[:, k] for k, name in enumerate(VIOLATIONS)},
    }


def cell(columns: Columns) -> dict[str, Any]:
    """The row of a cell from the columns of all its episodes.

    14: `Viol_*` is the mean deficit over all attempt events of the cell, as the success rate is over all of them; None
    without any event.
    """
    attempts = int(columns["attempts"].sum())
    successful = int(columns["attempts_successful"].sum())
    row: dict[str, Any] = {
        "episodes": len(columns["steps"]),
        "diamond_count": int(columns["found_diamond"].sum()),
        "diamond_rate": float(columns["found_diamond"].mean()),
        "death_count": int((columns["deaths"] > 0).sum()),
        "death_rate": float((columns["deaths"] > 0).mean()),
        "attempts": attempts,
        "attempts_successful": successful,
        "attempt_success_rate": successful / attempts if attempts else None,
        **{
            f"Viol_{name}": float(columns[f"deficit_{name}"].sum()) / attempts if attempts else None
            for name in VIOLATIONS
        },
    }
    for name in ("score", "steps", "achievements_unlocked", *COLLECTED):
        row[f"avg_{name}"] = float(columns[name].mean())
        row[f"std_{name}"] = float(columns[name].std())
    return row


RESULTS = Results(
    columns=columns,
    cell=cell,
    rates={"diamond_count": "diamond_ci", "death_count": "death_ci"},
    means={"std_score": "score_ci_half", "std_steps": "steps_ci_half"},
)
