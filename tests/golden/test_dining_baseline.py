"""Random philosophers against exact chain values, tight samples, and every reading of the rules.

Section numbers are those of docs/environments/dining.md.
"""

import json

import jax
import numpy as np
import pytest
from scipy import stats
from statistical import LEVEL, assert_mean, assert_rate, assert_row, play_each

from jaxcoop.agents.registry import make_policy
from jaxcoop.core import rollout
from jaxcoop.envs.dining import Dining

USUAL = ("random_any", "random_legal")
OTHER_SETS = ("random_not_held", "random_available", "random_any_release", "random_no_wait")

# 14.1: name of a recorded reading -> what it is called here
READINGS = {
    "package_any": ("random_any", {}),
    "package_legal_free": ("random_legal", {}),
    "package_legal_not_held": ("random_not_held", {}),
    "package_legal_available": ("random_available", {}),
    "package_legal_free_any_release": ("random_any_release", {}),
    "package_legal_free_nowait": ("random_no_wait", {}),
    "instant_meal_any": ("random_any", {"meals": "instant"}),
    "instant_meal_legal_free": ("random_legal", {"meals": "instant"}),
    "instant_meal_any_release_after": ("random_any", {"meals": "instant", "releases": "after"}),
    "release_after_grab_any": ("random_any", {"releases": "after"}),
    "release_index_order_any_v0.1.0": ("random_any", {"releases": "index_order"}),
    "package_any_check_every_turn": ("random_any", {"check": "turn"}),
    "rounds_any": ("random_any", {"clock": "rounds"}),
    "rounds_legal_free": ("random_legal", {"clock": "rounds"}),
    "rounds_instant_meal_any": ("random_any", {"clock": "rounds", "meals": "instant"}),
    "rounds_settle_at_round_end_any": ("random_any", {"clock": "rounds", "meals": "round_end"}),
    "rounds_settle_at_round_end_legal_free": ("random_legal", {"clock": "rounds", "meals": "round_end"}),
    "turns_instant_meal_any": ("random_any", {"meals": "instant"}),
    "turns_settle_at_round_end_any": ("random_any", {"meals": "round_end"}),
}
PACKAGE_BOTH_MODES = ("package_any", "package_legal_free")
SEQUENTIAL = ("rounds_", "turns_", "package_any_check_every_turn")


def modes(reading):
    """The modes in which a reading is recorded."""
    if reading in PACKAGE_BOTH_MODES:
        return ("simultaneous", "sequential")
    return ("sequential",) if reading.startswith(SEQUENTIAL) else ("simultaneous",)


CELLS = [(reading, mode, n) for reading in READINGS for mode in modes(reading) for n in (5, 10)]
CELL_PARAMETERS = [
    pytest.param(*cell, marks=[pytest.mark.slow] if cell[2] == 10 and cell[0] not in PACKAGE_BOTH_MODES else [])
    for cell in CELLS
]


def table(n, mode, **options):
    return Dining(philosophers=n, mode=mode, max_timesteps=30, **options)


def sample(n, mode, policy, **options):
    """Own episodes of a policy; policies that are wanted at the same table share a compilation."""
    if policy in OTHER_SETS:
        names = OTHER_SETS
    elif not options or ("random_legal", options) in READINGS.values():
        names = USUAL
    else:
        names = (policy,)
    has_exact_values = not options and mode == "simultaneous" and n <= 6
    return play_each(table(n, mode, **options), names, 100_000 if has_exact_values else 16_384)[policy]


@pytest.fixture(scope="module")
def exact(golden):
    recorded = json.loads(golden("dining", "random_baseline_exact*.json").read_text())
    return {(row["n"], row["actions"]): row for row in recorded}


@pytest.fixture(scope="module")
def tight(golden):
    recorded = json.loads(golden("dining", "random_baseline_mc*.json").read_text())
    return {(row["n"], row["mode"], row["actions"], row["horizon"]): row for row in recorded}


@pytest.fixture(scope="module")
def readings(golden):
    return json.loads(golden("dining", "random_baseline_readings*.json").read_text())


@pytest.mark.parametrize("actions", ["any", "legal"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_random_baseline_has_the_exact_chain_values(exact, n, actions):
    row, own = exact[n, actions], sample(n, "simultaneous", f"random_{actions}")
    infinite = float("inf")
    assert_rate("deadlock", own["deadlock"], row["deadlock_rate"], infinite)
    assert_mean("throughput", own["throughput"], row["mean_throughput"], 0.0, infinite)
    assert_mean("timesteps", own["timesteps"], row["mean_timesteps"], 0.0, infinite)
    ends = own["deadlock_timestep"][own["deadlock"]]
    assert_mean("time to deadlock", ends, row["mean_time_to_deadlock"], 0.0, infinite)


@pytest.mark.parametrize("actions", ["any", "legal"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_deadlock_time_has_the_exact_distribution(exact, n, actions):
    row, own = exact[n, actions], sample(n, "simultaneous", f"random_{actions}")
    probabilities = np.array([1 - row["deadlock_rate"], *row["deadlock_at_timestep"]])
    counts = np.bincount(own["deadlock_timestep"], minlength=len(probabilities))
    expected = probabilities * counts.sum()
    assert counts.shape == expected.shape and expected.min() >= 5
    # the recorded probabilities add up to 1 only within rounding
    assert stats.chisquare(counts, expected * (counts.sum() / expected.sum())).pvalue > LEVEL


TIGHT = [
    *((n, "simultaneous", "30 timesteps") for n in (2, 3, 5, 6, 7, 10, 15, 20)),
    *((n, "sequential", "30 turns in whole rounds") for n in (2, 3, 5, 10, 15)),
    (5, "sequential", "30 rounds"),
]


@pytest.mark.parametrize("actions", ["any", "legal"])
@pytest.mark.parametrize("n, mode, horizon", TIGHT)
def test_the_random_baseline_agrees_with_the_tight_samples(tight, n, mode, horizon, actions):
    options = {"clock": "rounds"} if horizon == "30 rounds" else {}
    assert_row(sample(n, mode, f"random_{actions}", **options), tight[n, mode, actions, horizon])


def test_every_tight_sample_is_compared(tight):
    assert set(tight) == {(n, mode, a, horizon) for n, mode, horizon in TIGHT for a in ("any", "legal")}


@pytest.mark.parametrize("reading, mode, n", CELL_PARAMETERS)
def test_a_reading_of_the_rules_gives_its_recorded_row(readings, reading, mode, n):
    policy, options = READINGS[reading]
    row, own = readings["readings_50000"][f"{reading}|{mode}|n{n}"], sample(n, mode, policy, **options)
    assert_row(own, row)
    for name, rate in row["deadlock_rate_if_unfinished_counts"].items():
        target = int(name.split("_")[1])
        failed = own["deadlock"] | (own["meals"].min(-1) < target)
        assert_rate(name, failed, rate, row["episodes"])


def test_every_recorded_reading_is_compared(readings):
    assert set(readings["readings_50000"]) == {f"{reading}|{mode}|n{n}" for reading, mode, n in CELLS}


@pytest.mark.parametrize("cell", [("simultaneous", 5), ("simultaneous", 10), ("sequential", 5)])
@pytest.mark.parametrize("actions", ["any", "legal"])
def test_the_baseline_agrees_with_the_reference_step_function(readings, cell, actions):
    mode, n = cell
    row = readings["reference_step_20000"][f"{mode}_n{n}_{actions}"]
    assert_row(sample(n, mode, f"random_{actions}"), row)


def test_target_meals_counts_unfinished_episodes_as_the_recorded_reading_does(readings):
    row = readings["readings_50000"]["package_any|simultaneous|n5"]
    env = table(5, "simultaneous", target_meals=1)
    own = rollout(env, make_policy("random_any", env), jax.random.key(0), np.arange(16_384)).outcome
    rate = row["deadlock_rate_if_unfinished_counts"]["target_1_each"]
    assert_rate("target 1", np.asarray(own.deadlock | own.timeout), rate, row["episodes"])


@pytest.mark.slow
def test_a_million_episodes_have_the_exact_deadlock_rate():
    env, chunk = table(5, "simultaneous"), 62_500
    policy, root = make_policy("random_any", env), jax.random.key(1)
    counts = [
        int(rollout(env, policy, root, np.arange(start, start + chunk)).outcome.deadlock.sum())
        for start in range(0, 1_000_000, chunk)
    ]
    rate = 0.156965126
    assert abs(sum(counts) / 1_000_000 - rate) <= 4 * np.sqrt(rate * (1 - rate) / 1_000_000)
