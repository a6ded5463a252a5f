"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes.
"""

import numpy as np

from jaxcoop.cooperation.results import ATTEMPT_MEANS, attempt_columns
from jaxcoop.core.results import Columns, rates_and_means
from jaxcoop.envs.burrito.types import Outcome


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E."""
    counts = outcome.counts
    in_order, out_of_order = np.asarray(counts.in_order), np.asarray(counts.out_of_order)
    served = in_order + out_of_order
    return {
        "steps": np.asarray(outcome.steps),
        "reward": np.asarray(outcome.score, np.float64),
        "delivered": served,
        "in_order": in_order,
        "unordered": np.asarray(counts.unordered),
        "expired": np.asarray(counts.expired),
        "fires": np.asarray(counts.fires),
        "extinguished": np.asarray(counts.extinguished),
        "any_delivered": served > 0,
        **attempt_columns(outcome.attempts),
    }


_MEANS = ("reward", "delivered", "in_order", "unordered", "expired", "fires", "extinguished", "steps", *ATTEMPT_MEANS)

RESULTS = rates_and_means(
    columns,
    rates=("any_delivered",),
    means=_MEANS,
    shown=("reward", "delivered", "in_order", "expired", "fires", "any_delivered"),
)
