"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes, A agents.
"""

import numpy as np

from jaxcoop.cooperation.results import ATTEMPT_MEANS, attempt_columns
from jaxcoop.core.results import Columns, rates_and_means
from jaxcoop.envs.macrafter.types import Achievement, Outcome

COLLECTED = {
    "wood": Achievement.COLLECT_WOOD,
    "stone": Achievement.COLLECT_STONE,
    "coal": Achievement.COLLECT_COAL,
    "iron": Achievement.COLLECT_IRON,
    "diamond": Achievement.COLLECT_DIAMOND,
}


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E.

    What is collected is counted in achievements: one for each participant of a collection.
    """
    achievements = np.asarray(outcome.achievements)  # [E, A, 22]
    return {
        "steps": np.asarray(outcome.steps),
        "score": np.asarray(outcome.score, np.float64),
        "deaths": np.asarray(outcome.deaths),
        "any_death": np.asarray(outcome.deaths) > 0,
        "found_diamond": achievements[:, :, Achievement.COLLECT_DIAMOND].sum(1) > 0,
        "achievements_unlocked": (achievements > 0).any(1).sum(-1).astype(np.int32),
        **{name: achievements[:, :, kind].sum(1).astype(np.int32) for name, kind in COLLECTED.items()},
        **attempt_columns(outcome.attempts),
    }


RESULTS = rates_and_means(
    columns,
    rates=("found_diamond", "any_death"),
    means=("score", "steps", "achievements_unlocked", *COLLECTED, *ATTEMPT_MEANS),
    shown=("found_diamond", "any_death", "score", "steps", *COLLECTED, *ATTEMPT_MEANS),
)
