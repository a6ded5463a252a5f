"""Attempt events of finished episodes as columns."""

import numpy as np

from jaxcoop.cooperation import Totals
from jaxcoop.cooperation.results import attempt_columns


def test_deficits_and_successes_are_shares_of_an_episode_s_events_and_0_without_any():
    deficit = np.array([[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]])
    columns = attempt_columns(Totals(np.array([4, 0]), np.array([1, 0]), deficit))
    assert {name: value.tolist() for name, value in columns.items()} == {
        "attempt_events": [4, 0],
        "successful_attempts": [1, 0],
        "attempt_success_rate": [0.25, 0.0],
        "viol_spatial": [0.25, 0.0],
        "viol_temporal": [0.5, 0.0],
        "viol_dependency": [0.125, 0.0],
    }
