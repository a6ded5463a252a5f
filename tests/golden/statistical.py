"""Comparing own episodes of the dining table with recorded statistics.

Axes: E episodes, N philosophers.  Tests are two-sided at four standard errors (14.4 of
docs/envs/dining.md); counts too small for that get the exact test of equal Poisson rates at the same
level.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxcoop.agents.registry import make_policy
from jaxcoop.core.rollout import play
from jaxcoop.envs.dining import Dining, metrics

SIGMAS = 4
SPREAD_SIGMAS = 6  # of a standard deviation, whose error is itself only estimated
LEVEL = float(2 * stats.norm.sf(SIGMAS))
FEW = 20  # counts below this are compared by the exact test
AGAIN = 8  # a row that fails is judged by this many times as many own episodes

CLOCKS = {
    "timesteps": ("simultaneous", "turns"),
    "turns": ("sequential", "turns"),
    "turns, whole rounds": ("sequential", "turns"),
    "turns in whole rounds": ("sequential", "turns"),
    "rounds": ("sequential", "rounds"),
}


def table(n, horizon, **options):
    """The table of a recorded horizon: "30 timesteps", "30 turns, whole rounds", "30 rounds"."""
    limit, _, unit = horizon.partition(" ")
    if not limit.isdecimal() or unit not in CLOCKS:
        pytest.fail(f"horizon {horizon!r}: must be a number of {', of '.join(CLOCKS)}")
    mode, clock = CLOCKS[unit]
    return Dining(n, mode, int(limit), **{"clock": clock, **options})


class OneOf:
    """Plays one of several policies, chosen by a traced index: many policies, one compilation."""

    def __init__(self, policies, which):
        self.policies, self.which = policies, which

    def init(self, key):
        return tuple(policy.init(key) for policy in self.policies)

    def act(self, key, memory, turn):
        moves = [policy.act(key, own, turn) for policy, own in zip(self.policies, memory, strict=True)]
        return jnp.stack([actions for actions, _ in moves])[self.which], tuple(own for _, own in moves)


# Compiling takes longer than playing here; a lower level saves a quarter of it.
@partial(jax.jit, static_argnames=("env", "policies"), compiler_options={"xla_backend_optimization_level": 1})
def outcomes(env, policies, root, which, episodes):
    """Outcomes of the numbered episodes, episode k played by `policies[which[k]]`."""
    return jax.vmap(lambda i, e: play(env, OneOf(policies, i), root, e).outcome)(which, episodes)


@cache
def play_each(env, names, count, chunk=50_000):
    """`count` episodes of each named policy: columns of measures by policy name."""
    policies, size = tuple(make_policy(name, env) for name in names), min(count, chunk)
    which = np.repeat(np.arange(len(names)), size)
    parts = []  # leaves [policies, episodes, ...]
    for start in range(0, count, size):
        episodes = which * count + start + np.tile(np.arange(size), len(names))
        out = jax.device_get(outcomes(env, policies, jax.random.key(0), which, episodes))
        parts.append(jax.tree.map(lambda x: x.reshape(len(names), size, *x.shape[1:]), out))
    whole = jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)
    return {name: measures(jax.tree.map(lambda x, i=i: x[i], whole)) for i, name in enumerate(names)}


def measures(outcome):
    """The columns [E] that the recorded rows summarise."""
    total = outcome.meals.sum(-1)
    return {
        "meals": outcome.meals,
        "meals_total": total,
        "throughput": metrics.throughput(total, outcome.timesteps),
        "fairness": metrics.fairness(outcome.meals),
        "starvation": metrics.starvation(outcome.meals),
        "timesteps": outcome.timesteps,
        "deadlock": outcome.deadlock,
        "reported": outcome.deadlock_reported,
        "deadlock_timestep": outcome.deadlock_timestep,
    }


def assert_mean(what, own, mean, std, episodes):
    """Own values [E] and a recorded mean over `episodes` (infinite: exact) agree."""
    spread = max(std, own.std())
    allowed = SIGMAS * spread * np.sqrt(1 / len(own) + 1 / episodes)
    assert abs(own.mean() - mean) <= allowed + 1e-12, f"{what}: {own.mean()} and {mean}, allowed {allowed}"


def assert_rate(what, own, rate, episodes):
    """An own flag [E] and a recorded rate over `episodes` (infinite: exact) agree."""
    count, size = int(own.sum()), len(own)
    recorded = rate * min(episodes, size)
    rare = min(recorded, count, size - count, min(episodes, size) - recorded) < FEW
    if rare and np.isinf(episodes):
        p = stats.binomtest(count, size, rate).pvalue
        assert p > LEVEL, f"{what}: {count} of {size} and {rate}, p = {p:.2g}"
        return
    if rare:
        # Of all events of both samples, each falls into the own one with probability E / (E + episodes).
        other = round(rate * episodes)
        if 2 * count > size:
            count, other = size - count, episodes - other
        p = stats.binomtest(count, count + other, size / (size + episodes)).pvalue if count + other else 1.0
        assert p > LEVEL, f"{what}: {count} of {size} and {other} of {episodes}, p = {p:.2g}"
        return
    allowed = SIGMAS * np.sqrt(rate * (1 - rate) * (1 / size + 1 / episodes))
    assert abs(own.mean() - rate) <= allowed, f"{what}: {own.mean()} and {rate}, allowed {allowed}"


def assert_spread(what, own, std, episodes):
    """Own values [E] and a recorded standard deviation agree, where few outliers cannot make the difference."""
    usual = np.median(own)
    if np.count_nonzero(own != usual) < FEW:
        return
    squares = (own - own.mean()) ** 2
    allowed = SPREAD_SIGMAS * squares.std() / (2 * own.std()) * np.sqrt(1 / len(own) + 1 / episodes)
    assert abs(own.std() - std) <= allowed, f"{what}: std {own.std()} and {std}, allowed {allowed}"


def assert_consistent(row):
    """Standard errors follow from the other fields, and sums over the episodes are whole numbers."""
    episodes, rate = row["episodes"], row["deadlock_rate"]
    within = 1 / episodes  # some divide by E, some by E - 1
    assert row["deadlock_se"] == pytest.approx(np.sqrt(rate * (1 - rate) / episodes), rel=within)
    sums = {"deadlock_rate": rate * episodes}
    for name in row.keys() & {"throughput", "fairness", "starvation", "timesteps", "meals_total"}:
        mean, se = row[name]["mean"], row[name]["se"]
        assert se == pytest.approx(row[name].get("std", se * np.sqrt(episodes)) / np.sqrt(episodes), rel=within), name
        if name not in ("throughput", "fairness"):
            sums[name] = mean * episodes
    if "time_to_deadlock" in row:
        assert (row["time_to_deadlock"] is None) == (rate == 0)
        sums["time_to_deadlock"] = (row["time_to_deadlock"] or 0) * rate * episodes
    for name, value in sums.items():
        assert value == pytest.approx(round(value), abs=1e-3), f"{name}: {value} in {episodes} episodes"


def compare(own, row):
    """Own columns agree with a recorded row in every statistic that it has."""
    episodes = row["episodes"]
    for name in ("throughput", "fairness", "starvation", "timesteps", "meals_total"):
        if name in row:
            std = row[name].get("std", row[name]["se"] * np.sqrt(episodes))
            assert_mean(name, own[name], row[name]["mean"], std, episodes)
            assert_spread(name, own[name], std, episodes)
    assert_rate("deadlock", own["deadlock"], row["deadlock_rate"], episodes)
    if "reported_deadlock_rate" in row:
        assert_rate("reported deadlock", own["reported"], row["reported_deadlock_rate"], episodes)
    if row.get("time_to_deadlock") is not None:
        ends, recorded = own["deadlock_timestep"][own["deadlock"]], round(row["deadlock_rate"] * episodes)
        if min(len(ends), recorded) >= FEW:
            assert_mean("time to deadlock", ends, row["time_to_deadlock"], 0.0, recorded)
    for name, rate in row.get("deadlock_rate_if_unfinished_counts", {}).items():
        target = int(name.split("_")[1])
        assert_rate(name, own["deadlock"] | (own["meals"].min(-1) < target), rate, episodes)


def assert_row(sample, episodes, row):
    """A recorded row agrees with itself and with the columns `sample(episodes)`.

    In some thousand comparisons at four standard errors one will fail by chance: a row that fails is judged by
    many more own episodes.
    """
    assert_consistent(row)
    try:
        compare(sample(episodes), row)
    except AssertionError:
        compare(sample(AGAIN * episodes), row)
