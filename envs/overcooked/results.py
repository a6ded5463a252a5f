"""From outcomes to episode columns and to the row of a cell.  Host side, numpy only.

Axes: E episodes.
"""

import dataclasses

import numpy as np

from jaxcoop.cooperation.results import ATTEMPT_MEANS, attempt_columns
from jaxcoop.core.results import Columns, rates_and_means
from jaxcoop.envs.overcooked.types import Counts, Outcome

COUNTS = tuple(field.name for field in dataclasses.fields(Counts))


def columns(outcome: Outcome) -> Columns:
    """Columns of a chunk of episodes; `outcome` fields are numpy arrays with the leading axis E."""
    return {
        "steps": np.asarray(outcome.steps),
        "score": np.asarray(outcome.score, np.float64),
        "shaped": np.asarray(outcome.shaped, np.float64),
        "any_delivery": np.asarray(outcome.counts.deliveries) > 0,
        **{name: np.asarray(getattr(outcome.counts, name)) for name in COUNTS},
        **attempt_columns(outcome.attempts),
    }


RESULTS = rates_and_means(
    columns,
    rates=("any_delivery",),
    means=("score", "shaped", *COUNTS, "steps", *ATTEMPT_MEANS),
    shown=("any_delivery", "score", "deliveries", "shaped", "steps", *ATTEMPT_MEANS),
)
