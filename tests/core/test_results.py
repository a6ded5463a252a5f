"""From columns of episodes to a row of rates and means."""

import jax
import numpy as np

from jaxcoop.core import make
from jaxcoop.core.results import plain_results, rates_and_means
from jaxcoop.runs.evaluate import cell_row

COLUMNS = {"won": np.array([True, False, True, True]), "score": np.array([1.0, 2.0, 3.0, 6.0])}
RESULTS = rates_and_means(lambda outcome: outcome, rates=("won",), means=("score",), shown=("score", "won"))


def test_a_row_has_count_share_and_interval_of_rates_and_mean_spread_and_half_width_of_means():
    row = cell_row(RESULTS, RESULTS.columns(COLUMNS))
    assert (row["episodes"], row["won_count"], row["won_rate"], row["score"]) == (4, 3, 0.75, 3.0)
    assert row["score_std"] == np.std(COLUMNS["score"])
    assert 0 < row["won_low"] < 0.75 < row["won_high"] < 1
    assert row["score_half"] > 0


def test_an_environment_that_says_nothing_shows_every_number_of_its_outcome():
    env = make("null")
    outcome = jax.eval_shape(env.outcome, jax.eval_shape(env.reset, jax.random.key(0)))
    assert plain_results(outcome).shown == ("steps", "total")
