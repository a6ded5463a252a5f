"""A team that plays through skills: who starts what, and when."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.skilled import SkilledPolicy
from jaxcoop.core import make, rollout
from jaxcoop.envs.cube.skills import Op

ENV = make("cube", side=8, agents=2, blocks="1:1", max_steps=6)


@dataclasses.dataclass(frozen=True)
class Waiters:
    """Agent i waits i + 1 steps again and again and counts how often; at step `drop` all start anew."""

    drop: int = -1

    def init(self, key):
        return jnp.zeros((2,), jnp.int32)

    def plan(self, key, memory, state, idle, report):
        ops = jnp.array([[Op.WAIT, 1, -1, -1], [Op.WAIT, 2, -1, -1]], jnp.int32)
        changed = jnp.full((2,), state.t == self.drop)
        return ops, changed, memory + idle


def asked(policy):
    memory, state = policy.init(jax.random.key(0)), ENV.reset(jax.random.key(1))
    counts = []
    for _ in range(5):
        turn = type("Turn", (), {"state": state})
        command, memory = policy.act(jax.random.key(2), memory, turn)
        state = ENV.step(state, command, None).state
        counts.append(memory.plan.tolist())
    return counts


def test_the_planner_is_asked_when_a_skill_has_ended():
    assert asked(SkilledPolicy(ENV, Waiters())) == [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3]]


def test_a_planner_may_drop_what_is_running():
    # all start anew in the second step, so the second agent's wait of two ends one step later
    assert asked(SkilledPolicy(ENV, Waiters(drop=1))) == [[1, 1], [2, 1], [3, 1], [4, 2], [5, 2]]


def test_it_plays_whole_episodes_in_batches():
    played = rollout(ENV, SkilledPolicy(ENV, Waiters()), jax.random.key(0), jnp.arange(3))
    np.testing.assert_array_equal(played.length, [6, 6, 6])


def test_an_environment_without_skills_is_refused():
    with pytest.raises(ValueError, match="null has no skills"):
        SkilledPolicy(make("null"), Waiters())
