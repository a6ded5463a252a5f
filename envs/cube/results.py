"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes.
"""

import numpy as np

from jaxcoop.cooperation.results import ATTEMPT_MEANS, attempt_columns
from jaxcoop.core.results import Columns, rates_and_means
from jaxcoop.envs.cube.types import Outcome


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E."""
    return {
        "steps": np.asarray(outcome.steps),
        "delivered_blocks": np.asarray(outcome.delivered),
        "score": np.asarray(outcome.score, np.float64),
        "all_delivered": np.asarray(outcome.all_delivered),
        **attempt_columns(outcome.attempts),
    }


RESULTS = rates_and_means(
    columns,
    rates=("all_delivered",),
    means=("score", "delivered_blocks", "steps", *ATTEMPT_MEANS),
    shown=("all_delivered", "score", "delivered_blocks", "steps", *ATTEMPT_MEANS),
)
