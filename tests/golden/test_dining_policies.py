"""The scripted philosophers play as recorded, at every recorded table size and horizon.

Deterministic policies must agree in every field; the others in every statistic within four standard errors
(14.4 of docs/envs/dining.md).
"""

import json

import jax
import numpy as np
import pytest
from statistical import assert_consistent, assert_row, play_each, table

from jaxcoop.agents.registry import known_policies, make_policy
from jaxcoop.core import rollout
from jaxcoop.envs.dining import Dining

DETERMINISTIC = (
    "always_wait",
    "always_grab_left",
    "left_first",
    "right_first",
    "parity_ordering",
    "parity_ordering_ungated",
    "dijkstra_ordered_forks",
    "one_right_first",
    "polite_release",
    "chandy_misra_low",
    "chandy_misra_even",
    "colour_timetable",
)
STOCHASTIC = (
    "random_wait_1_2",
    "random_wait_0_1_2",
    "coin_wait_half",
    "lehmann_rabin",
    "random_any",
    "random_legal",
)
DEFAULT_SIZES = (3, 5, 10, 100)
DEFAULT_HORIZONS = ("30 timesteps", "30 turns, whole rounds", "30 rounds")


def rows(path):
    for row in json.loads(path.read_text()).get("results", []):
        yield f"{row['policy']}-{row['n']}-{row['horizon']}", row


def deterministic_rows(path):
    return ((name, row) for name, row in rows(path) if row["policy"] in DETERMINISTIC)


def other_rows(path):
    return ((name, row) for name, row in rows(path) if row["policy"] not in DETERMINISTIC)


def definitions(path):
    return ((name, name) for name in json.loads(path.read_text()).get("definitions", {}))


def sample(row, episodes):
    """Own episodes of a row's policy; policies that are recorded together share a compilation."""
    policy = row["policy"]
    together = next((group for group in (DETERMINISTIC, STOCHASTIC) if policy in group), (policy,))
    env = table(row["n"], row["horizon"])
    assert row["mode"] == env.mode, f"{row['horizon']} is no horizon of {row['mode']} mode"
    return play_each(env, together, episodes)[policy]


@pytest.mark.recorded("dining", "policies*.json", deterministic_rows)
def test_a_deterministic_policy_repeats_the_recorded_episode(case):
    own = {name: column[0] for name, column in sample(case, 1).items()}
    assert case["deterministic"] and case["episodes"] == 1
    assert_consistent(case)
    if case["meals"] is not None:  # recorded for the smaller tables
        assert own["meals"].tolist() == case["meals"]
    assert (own["deadlock_timestep"] or None) == case["deadlock_timestep"]
    assert (own["deadlock_timestep"] or None) == case["time_to_deadlock"]
    assert own["deadlock"] == case["deadlock_rate"]
    assert own["reported"] == case["reported_deadlock_rate"]
    for name in ("throughput", "fairness", "starvation", "timesteps", "meals_total"):
        assert case[name] == {"mean": own[name], "std": 0.0, "se": 0.0}, name


@pytest.mark.recorded("dining", "policies*.json", other_rows)
def test_a_stochastic_policy_agrees_with_the_recorded_statistics(case):
    assert not case["deterministic"]
    # 7.2: sequential mode never reports a circular wait
    assert case["reported_deadlock_rate"] == (case["deadlock_rate"] if case["mode"] == "simultaneous" else 0.0)
    episodes = int(np.clip(20_480 // case["n"], 256, 4096))
    assert_row(lambda count: sample(case, count), episodes, case)


@pytest.mark.recorded("dining", "policies*.json", definitions)
def test_a_defined_policy_is_registered(case):
    assert case in known_policies("dining"), f"policy {case!r} does not exist"


def test_the_default_rows_are_all_policies_at_all_tables(default_data):
    recorded = [row for _, row in rows(default_data / "dining" / "policies.json")]
    found = {(row["policy"], row["n"], row["horizon"]) for row in recorded}
    assert found == {(p, n, h) for p in DETERMINISTIC + STOCHASTIC for n in DEFAULT_SIZES for h in DEFAULT_HORIZONS}
    assert len(recorded) == 216
    assert all((row["meals"] is None) == (row["n"] == 100) for row in recorded if row["policy"] in DETERMINISTIC)
    assert {name for name, _ in definitions(default_data / "dining" / "policies.json")} == {p for p, _, _ in found}


def test_counting_rounds_is_the_same_as_allowing_n_times_as_many_turns():
    turns = Dining(philosophers=5, mode="sequential", max_timesteps=150)
    rounds = Dining(philosophers=5, mode="sequential", max_timesteps=30, clock="rounds")
    played = [
        rollout(env, make_policy("lehmann_rabin", env), jax.random.key(1), np.arange(64)).outcome
        for env in (turns, rounds)
    ]
    jax.tree.map(np.testing.assert_array_equal, *played)
