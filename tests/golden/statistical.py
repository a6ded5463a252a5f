"""Comparing own episodes of the dining table with recorded statistics.

Axes: E episodes, N philosophers.  Tests are two-sided at four standard errors; counts too small for that
get the exact test of equal Poisson rates at the same level.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxcoop.agents.registry import make_policy
from jaxcoop.core.rollout import play
from jaxcoop.envs.dining import metrics

SIGMAS = 4
LEVEL = float(2 * stats.norm.sf(SIGMAS))
FEW = 20  # counts below this are compared by the exact test


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
    if rare and np.isfinite(episodes):
        # Of all events of both samples, each falls into the own one with probability E / (E + episodes).
        other = round(rate * episodes)
        if 2 * count > size:
            count, other = size - count, episodes - other
        p = stats.binomtest(count, count + other, size / (size + episodes)).pvalue if count + other else 1.0
        assert p > LEVEL, f"{what}: {count} of {size} and {other} of {episodes}, p = {p:.2g}"
        return
    allowed = SIGMAS * np.sqrt(rate * (1 - rate) * (1 / size + 1 / episodes))
    assert abs(own.mean() - rate) <= allowed, f"{what}: {own.mean()} and {rate}, allowed {allowed}"


def assert_row(own, row):
    """Own columns agree with a recorded row in every statistic that it has."""
    episodes = row["episodes"]
    for name in ("throughput", "fairness", "starvation", "timesteps", "meals_total"):
        if name in row:
            std = row[name].get("std", row[name]["se"] * np.sqrt(episodes))
            assert_mean(name, own[name], row[name]["mean"], std, episodes)
    assert_rate("deadlock", own["deadlock"], row["deadlock_rate"], episodes)
    if "reported_deadlock_rate" in row:
        assert_rate("reported deadlock", own["reported"], row["reported_deadlock_rate"], episodes)
    if row.get("time_to_deadlock") is not None:
        ends, recorded = own["deadlock_timestep"][own["deadlock"]], round(row["deadlock_rate"] * episodes)
        if min(len(ends), recorded) >= FEW:
            assert_mean("time to deadlock", ends, row["time_to_deadlock"], 0.0, recorded)
