"""Outcome metrics on columns: edge cases, the two deadlock flags, bad columns, and a million episodes."""

import time

import numpy as np
import pytest

from jaxcoop.envs.dining.metrics import (
    action_shares,
    aggregate,
    consistency,
    fairness,
    message_intent,
    throughput,
    time_to_deadlock,
)
from jaxcoop.envs.dining.types import Action

COLUMNS = {"timesteps": [5, 30], "deadlock": [True, False], "meals": [[0, 0, 0], [2, 1, 0]]}


@pytest.mark.parametrize("meals", [[], [0], [9], [0, 0, 0]])
def test_a_table_of_one_or_without_meals_is_fair(meals):
    assert fairness(meals) == 1.0


def test_fairness_keeps_leading_axes():
    assert fairness(np.zeros((2, 3, 5), int)).shape == (2, 3)
    assert fairness(np.zeros((0, 5), int)).shape == (0,)


def test_one_eater_of_five_is_the_least_fair():
    assert fairness([0, 0, 3, 0, 0]) == pytest.approx(0.0, abs=1e-15)


def test_throughput_of_no_timesteps_is_zero():
    np.testing.assert_array_equal(throughput([3, 3], [0, 6]), [0.0, 0.5])


def test_time_to_deadlock_leaves_out_timestep_zero():
    assert time_to_deadlock([True, True, False], [0, 8, 30]) == 8.0
    assert time_to_deadlock([True], [0]) is None


def test_an_unreported_deadlock_counts_only_in_the_true_rate():
    out = aggregate(COLUMNS | {"deadlock_reported": [False, False]})
    assert (out["deadlock_count"], out["deadlock_rate"], out["avg_time_to_deadlock"]) == (0, 0.0, None)
    assert (out["true_deadlock_count"], out["true_deadlock_rate"], out["avg_time_to_true_deadlock"]) == (
        1,
        0.5,
        5.0,
    )


def test_ready_columns_give_what_meals_give():
    ready = {
        "throughput": throughput([0, 3], [5, 30]),
        "fairness": fairness(COLUMNS["meals"]),
        "starvation": [3, 1],
    }
    without_meals = {key: column for key, column in COLUMNS.items() if key != "meals"}
    assert aggregate(without_meals | ready) == aggregate(COLUMNS)


def test_no_episode_gives_no_metric():
    assert aggregate({"timesteps": []}) == {}


@pytest.mark.parametrize(
    ("columns", "fault"),
    [
        ({"timesteps": [1]}, "no column 'deadlock'"),
        ({"timesteps": [1], "deadlock": [True]}, "no column 'meals'"),
        (
            COLUMNS | {"deadlock": [True]},
            r"column 'deadlock' has shape \(1,\); its first axis must have length 2",
        ),
    ],
)
def test_a_missing_or_short_column_is_named(columns, fault):
    with pytest.raises(ValueError, match=fault):
        aggregate(columns)


def test_the_first_class_with_a_keyword_is_the_intent():
    assert message_intent("Grab right, then GRAB LEFT") == Action.GRAB_LEFT
    assert message_intent("grab the left fork") is None
    assert message_intent(None) is None


def test_consistency_needs_one_action_per_message():
    with pytest.raises(ValueError):
        consistency(["wait"], [])


def test_action_shares_ignore_padding_and_refuse_other_codes():
    np.testing.assert_array_equal(action_shares([[0, 3], [3, -1]]), [1 / 3, 0, 0, 2 / 3])
    np.testing.assert_array_equal(action_shares([]), np.zeros(4))
    with pytest.raises(ValueError, match="action code 7 is outside"):
        action_shares([7])


def test_a_million_episodes_are_summed_up_in_seconds():
    rng = np.random.default_rng(0)
    count = 1_000_000
    columns = {
        "timesteps": rng.integers(1, 31, count),
        "deadlock": rng.random(count) < 0.2,
        "meals": rng.integers(0, 6, (count, 5)),
    }
    start = time.process_time()
    out = aggregate(columns)
    assert time.process_time() - start < 5.0
    assert out["num_episodes"] == count and 0.19 < out["deadlock_rate"] < 0.21
