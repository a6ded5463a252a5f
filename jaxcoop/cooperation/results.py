"""Attempt events of finished episodes as columns of results.  Host side, numpy only.

Axes: E episodes.
"""

from typing import Any

import numpy as np

from jaxcoop.cooperation.constraints import SCORED

VIOLATIONS = tuple(f"viol_{constraint.name.lower()}" for constraint in SCORED)

ATTEMPT_MEANS = ("attempt_events", "attempt_success_rate", *VIOLATIONS)
"""Columns below whose means over episodes are reported."""


def attempt_columns(totals: Any) -> dict[str, np.ndarray]:
    """Columns [E] from `Totals` [E, ...]: number of events, of successes, their share, mean deficits (`viol_*`).

    Shares and deficits of an episode without any event are 0.
    """
    events, successes = np.asarray(totals.events), np.asarray(totals.successes)
    some = np.maximum(events, 1)
    deficit = np.asarray(totals.deficit, np.float64) / some[:, None]
    return {
        "attempt_events": events,
        "successful_attempts": successes,
        "attempt_success_rate": successes / some,
        **{name: deficit[:, c] for c, name in enumerate(VIOLATIONS)},
    }
