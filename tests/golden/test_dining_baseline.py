"""Random philosophers against exact chain values, tight samples, and every reading of the rules.

Section numbers are those of docs/envs/dining.md.
"""

import json
import re

import jax
import numpy as np
import pytest
from exact_chain import exact_row
from scipy import stats
from statistical import LEVEL, assert_mean, assert_rate, assert_row, play_each, table

from jaxcoop.agents.registry import make_policy
from jaxcoop.core import rollout

EPISODES = 16_384
CHAIN_LIMIT = 6  # philosophers; the chain has some 4^N joint actions and 3^N states
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
HORIZONS = {"simultaneous": "30 timesteps", "sequential": "30 turns in whole rounds"}  # of the readings


def rows(path):
    for row in json.loads(path.read_text()):
        yield "-".join(str(row[key]) for key in ("n", "mode", "actions", "horizon") if key in row), row


def small_rows(path):
    return ((name, row) for name, row in rows(path) if row["n"] <= CHAIN_LIMIT)


def readings(path):
    """(reading, mode, n, row) of the recorded readings of the rules."""
    for group, cells in json.loads(path.read_text()).items():
        for cell, row in cells.items() if group.startswith("readings") else ():
            reading, mode, n = re.fullmatch(r"(.+)\|(simultaneous|sequential)\|n(\d+)", cell).groups()
            slow = int(n) > 5 and reading not in PACKAGE_BOTH_MODES
            yield cell, (reading, mode, int(n), row), *[pytest.mark.slow] * slow


def package_readings(path):
    """Those in which random philosophers play by the package's simultaneous rules at a small table."""
    return (x for x in readings(path) if x[1][:2] == ("package_any", "simultaneous") and x[1][2] <= 5)


def reference_rows(path):
    """(mode, n, actions, row) of the samples of the reference step function."""
    for group, cells in json.loads(path.read_text()).items():
        for cell, row in cells.items() if group.startswith("reference_step") else ():
            mode, n, actions = re.fullmatch(r"(simultaneous|sequential)_n(\d+)_(.+)", cell).groups()
            yield cell, (mode, int(n), actions, row)


def sample(n, horizon, policy, episodes, **options):
    """Own episodes of a policy; policies that are wanted at the same table share a compilation."""
    if policy in OTHER_SETS:
        names = OTHER_SETS
    elif policy in USUAL and (not options or ("random_legal", options) in READINGS.values()):
        names = USUAL
    else:
        names = (policy,)
    return play_each(table(n, horizon, **options), names, episodes)[policy]


def sample_for(row):
    """Own episodes for a row of exact values."""
    return sample(row["n"], f"{row['horizon']} timesteps", f"random_{row['actions']}", EPISODES)


def starts_of_bins(expected, least=20):
    """Where to cut expected counts into runs that are large enough for the test: at least `least` each."""
    starts, run = [0], 0.0
    for k, value in enumerate(expected):
        if min(run, expected[k:].sum()) >= least:
            starts.append(k)
            run = 0.0
        run += value
    return starts


@pytest.mark.recorded("dining", "random_baseline_exact*.json", small_rows)
def test_the_rules_give_the_exact_chain_of_tables(case):
    own = exact_row(case["n"], case["actions"], case["horizon"])
    assert own.keys() == case.keys()
    for name, value in case.items():
        assert own[name] == (value if name == "actions" else pytest.approx(value, rel=1e-9, abs=1e-12)), name


@pytest.mark.recorded("dining", "random_baseline_exact*.json", rows)
def test_the_random_baseline_has_the_exact_chain_values(case):
    own, infinite = sample_for(case), float("inf")
    assert_rate("deadlock", own["deadlock"], case["deadlock_rate"], infinite)
    assert_mean("throughput", own["throughput"], case["mean_throughput"], 0.0, infinite)
    assert_mean("timesteps", own["timesteps"], case["mean_timesteps"], 0.0, infinite)
    ends = own["deadlock_timestep"][own["deadlock"]]
    if len(ends):
        assert_mean("time to deadlock", ends, case["mean_time_to_deadlock"], 0.0, infinite)


@pytest.mark.recorded("dining", "random_baseline_exact*.json", rows)
def test_the_deadlock_time_has_the_exact_distribution(case):
    own = sample_for(case)
    probabilities = np.array([1 - case["deadlock_rate"], *case["deadlock_at_timestep"]])
    counts = np.bincount(own["deadlock_timestep"], minlength=len(probabilities))
    assert len(counts) == len(probabilities) == case["horizon"] + 1
    # the recorded probabilities add up to 1 only within rounding
    expected = probabilities * (EPISODES / probabilities.sum())
    first = starts_of_bins(expected)
    if len(first) > 1:
        pooled = (np.add.reduceat(x, first) for x in (counts, expected))
        assert stats.chisquare(*pooled).pvalue > LEVEL


@pytest.mark.recorded("dining", "random_baseline_mc*.json", rows)
def test_the_random_baseline_agrees_with_the_tight_samples(case):
    n, horizon, policy = case["n"], case["horizon"], f"random_{case['actions']}"
    assert table(n, horizon).mode == case["mode"]
    assert_row(lambda episodes: sample(n, horizon, policy, episodes), EPISODES, case)


@pytest.mark.recorded("dining", "random_baseline_readings*.json", readings)
def test_a_reading_of_the_rules_gives_its_recorded_row(case):
    reading, mode, n, row = case
    assert reading in READINGS, f"reading {reading!r} is none of {', '.join(READINGS)}"
    policy, options = READINGS[reading]
    assert_row(lambda episodes: sample(n, HORIZONS[mode], policy, episodes, **options), EPISODES, row)


@pytest.mark.recorded("dining", "random_baseline_readings*.json", reference_rows)
def test_the_baseline_agrees_with_the_reference_step_function(case):
    mode, n, actions, row = case
    assert_row(lambda episodes: sample(n, HORIZONS[mode], f"random_{actions}", episodes), EPISODES, row)


@pytest.mark.recorded("dining", "random_baseline_readings*.json", package_readings)
def test_target_meals_counts_unfinished_episodes_as_the_recorded_reading_does(case):
    _, mode, n, row = case
    name, rate = next(iter(row["deadlock_rate_if_unfinished_counts"].items()))
    env = table(n, HORIZONS[mode], target_meals=int(name.split("_")[1]))
    own = rollout(env, make_policy("random_any", env), jax.random.key(0), np.arange(EPISODES)).outcome
    assert_rate(name, np.asarray(own.deadlock | own.timeout), rate, row["episodes"])


def modes(reading):
    """The modes in which the default data hold a reading."""
    if reading in PACKAGE_BOTH_MODES:
        return ("simultaneous", "sequential")
    return ("sequential",) if reading.startswith(SEQUENTIAL) else ("simultaneous",)


def test_the_default_data_hold_the_exact_values_of_two_to_six_philosophers(default_data):
    found = {name for name, _ in rows(default_data / "dining" / "random_baseline_exact.json")}
    assert found == {f"{n}-{actions}-30" for n in (2, 3, 4, 5, 6) for actions in ("any", "legal")}


def test_the_default_data_hold_every_tight_sample(default_data):
    tight = [
        *((n, "simultaneous", "30 timesteps") for n in (2, 3, 5, 6, 7, 10, 15, 20)),
        *((n, "sequential", "30 turns in whole rounds") for n in (2, 3, 5, 10, 15)),
        (5, "sequential", "30 rounds"),
    ]
    found = {name for name, _ in rows(default_data / "dining" / "random_baseline_mc.json")}
    assert found == {f"{n}-{mode}-{a}-{horizon}" for n, mode, horizon in tight for a in ("any", "legal")}


def test_the_default_data_hold_every_reading(default_data):
    path = default_data / "dining" / "random_baseline_readings.json"
    found = {(reading, mode, n) for _, (reading, mode, n, _), *_ in readings(path)}
    assert found == {(reading, mode, n) for reading in READINGS for mode in modes(reading) for n in (5, 10)}
    cells = (("simultaneous", 5), ("simultaneous", 10), ("sequential", 5))
    assert {case[:3] for _, case in reference_rows(path)} == {(*cell, a) for cell in cells for a in ("any", "legal")}
