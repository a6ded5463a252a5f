"""Recorded Overcooked episodes, replayed and compared field by field.

Axes: E episodes, T steps, A = 2 players, C cells.
The files of data/overcooked are made by tests/benchmarks/test_overcooked_reference.py.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.env import NoDraws
from jaxcoop.envs.overcooked import Overcooked
from jaxcoop.envs.overcooked.types import EVENTS

FIELDS = ("cell", "facing", "held", "item", "clock")


MORE = ("asymmetric_advantages", "coordination_ring", "counter_circuit")
"""Replayed with the slow tests: layouts whose rules are those of the others."""


def read(path):
    """One case for each file: the environment and its arrays."""
    layout, old = path.stem.removesuffix("_old"), path.stem.endswith("_old")
    marks = [pytest.mark.slow] * (path.stem in MORE)
    yield path.stem, (Overcooked(layout=layout, old_dynamics=old), dict(np.load(path))), *marks


def replay(env, first, actions):
    """States [E, 1 + T] and events [E, T] of episodes that start with these fields."""

    def one(first, actions):
        start = env.reset(jax.random.key(0)).replace(**first)

        def step(state, action):
            done = env.step(state, action, NoDraws())
            return done.state, done

        _, steps = jax.lax.scan(step, start, actions)
        return start, steps

    start, steps = jax.device_get(jax.jit(jax.vmap(one))(first, jnp.asarray(actions, jnp.int32)))
    return jax.tree.map(lambda a, b: np.concatenate([a[:, None], b], 1), start, steps.state), steps


@pytest.mark.recorded("overcooked", "*.npz", read)
def test_recorded_episodes_replay_exactly(case):
    env, want = case
    states, steps = replay(env, {name: want[name][:, 0] for name in FIELDS}, want["actions"])
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(states, name), want[name], err_msg=name)
    for name in ("sparse", "shaped", "logged"):
        np.testing.assert_array_equal(getattr(steps.events, name), want[name], err_msg=name)
    np.testing.assert_array_equal(steps.reward, want["sparse"].sum(-1, keepdims=True).repeat(2, -1))
    np.testing.assert_array_equal(states.score[:, -1], want["sparse"].sum((1, 2)))
    every = (states.t.shape[1] - 1) // (want["seen"].shape[1] - 1)
    seen = jax.vmap(jax.vmap(env.observe))(jax.tree.map(lambda x: x[:, ::every], states))
    np.testing.assert_array_equal(seen, want["seen"])


def test_the_recorded_episodes_hold_every_event_that_the_layouts_allow(default_data):
    files = sorted((default_data / "overcooked").glob("*.npz"))
    logged = np.bitwise_or.reduce([np.bitwise_or.reduce(np.load(path)["logged"], axis=None) for path in files])
    missing = {name for bit, name in enumerate(EVENTS) if not logged >> bit & 1}
    assert missing == {"useless_onion_potting", "useless_tomato_potting"}  # no soup of two is spoilt in any of them
    assert max(np.load(path)["sparse"].max() for path in files) == 68  # the bonus order
