"""The scripted philosophers play as recorded: 18 policies, four table sizes, three horizons.

Deterministic policies must agree in every field; the others in every statistic within four standard errors
(14.4 of docs/environments/dining.md).
"""

import json

import jax
import numpy as np
import pytest
from statistical import assert_row, play_each

from jaxcoop.agents.registry import make_policy
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
SIZES = (3, 5, 10, 100)
HORIZONS = {
    "30 timesteps": ("simultaneous", lambda n: 30),
    "30 turns, whole rounds": ("sequential", lambda n: 30),
    "30 rounds": ("sequential", lambda n: 30 * n),
}
EPISODES = {3: 4096, 5: 4096, 10: 2048, 100: 256}


def table(n, horizon):
    mode, limit = HORIZONS[horizon]
    return Dining(philosophers=n, mode=mode, max_timesteps=limit(n))


@pytest.fixture(scope="module")
def rows(golden):
    recorded = json.loads(golden("dining", "policies*.json").read_text())["results"]
    return {(row["policy"], row["n"], row["horizon"]): row for row in recorded}


def test_every_recorded_row_is_compared(rows):
    compared = {(p, n, h) for p in DETERMINISTIC + STOCHASTIC for n in SIZES for h in HORIZONS}
    assert set(rows) == compared
    assert len(rows) == 216
    assert all((row["meals"] is None) == (n == 100) for (p, n, _), row in rows.items() if p in DETERMINISTIC)
    assert all(row["deterministic"] == (row["policy"] in DETERMINISTIC) for row in rows.values())
    assert all(row["mode"] == HORIZONS[row["horizon"]][0] for row in rows.values())


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("policy", DETERMINISTIC)
def test_a_deterministic_policy_repeats_the_recorded_episode(rows, policy, n, horizon):
    row = rows[policy, n, horizon]
    own = {name: column[0] for name, column in play_each(table(n, horizon), DETERMINISTIC, 1)[policy].items()}
    if row["meals"] is not None:  # recorded for the smaller tables
        assert own["meals"].tolist() == row["meals"]
    assert (own["deadlock_timestep"] or None) == row["deadlock_timestep"]
    assert (own["deadlock_timestep"] or None) == row["time_to_deadlock"]
    assert own["deadlock"] == row["deadlock_rate"]
    assert own["reported"] == row["reported_deadlock_rate"]
    for name in ("throughput", "fairness", "starvation", "timesteps", "meals_total"):
        assert own[name] == row[name]["mean"], name


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("policy", STOCHASTIC)
def test_a_stochastic_policy_agrees_with_the_recorded_statistics(rows, policy, n, horizon):
    assert_row(play_each(table(n, horizon), STOCHASTIC, EPISODES[n])[policy], rows[policy, n, horizon])


def test_counting_rounds_is_the_same_as_allowing_n_times_as_many_turns():
    turns = Dining(philosophers=5, mode="sequential", max_timesteps=150)
    rounds = Dining(philosophers=5, mode="sequential", max_timesteps=30, clock="rounds")
    played = [
        rollout(env, make_policy("lehmann_rabin", env), jax.random.key(1), np.arange(64)).outcome
        for env in (turns, rounds)
    ]
    jax.tree.map(np.testing.assert_array_equal, *played)
