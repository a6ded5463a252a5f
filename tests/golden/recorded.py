"""Reading recorded cases, and playing recorded actions through an environment."""

import gzip
import json
from collections import defaultdict
from functools import partial

import jax
import jax.numpy as jnp
import pytest


def lines_of(path):
    """The objects of a compressed file of JSON lines."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def each_line(path):
    """(number, case) of a compressed file of JSON lines."""
    return ((str(number), case) for number, case in enumerate(lines_of(path)))


def grouped(*names):
    """A reader of JSON lines: the cases that agree in the named fields, together."""

    def read(path):
        groups = defaultdict(list)
        for case in lines_of(path):
            groups[tuple(case[name] for name in names)].append(case)
        return (("-".join(map(str, key)), cases) for key, cases in groups.items())

    return read


def each_group(data, suffix="fork"):
    """Names of the groups of an npz file with keys `group_array`: those with an array called `suffix`."""
    return sorted(key.removesuffix(f"_{suffix}") for key in data.files if key.endswith(f"_{suffix}"))


def close(value):
    """The value; a float within 1e-12."""
    return pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value


@partial(jax.jit, static_argnames="env")
def _play(env, actions):
    def one(actions):
        state = env.reset(jax.random.key(0))
        draws = env.sample_draws(jax.random.key(0), state)

        def step(carry, action):
            state, done = carry
            nxt = env.step(state, action, draws)
            frozen = jax.tree.map(lambda a, b: jnp.where(done, b, a), nxt.state, state)
            return (frozen, done | nxt.terminated | nxt.truncated), None

        (state, done), _ = jax.lax.scan(step, (state, jnp.bool_(False)), actions)
        return env.outcome(state), done

    return jax.vmap(one)(actions)


def play_recorded(env, actions):
    """(outcomes, done) of episodes with recorded actions [E, T, K], frozen at their ends; numpy."""
    return jax.device_get(_play(env, jnp.asarray(actions, jnp.int32)))
