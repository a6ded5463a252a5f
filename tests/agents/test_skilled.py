"""A team that plays through skills: who starts what, and when."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.skilled import SkilledPolicy
from jaxcoop.core import Turn, make, rollout
from jaxcoop.envs.cube.skills import Entity, Op

ENV = make("cube", side=8, agents=2, blocks="1:1", max_steps=6)


class Script(NamedTuple):
    """What the planner asks for at every step, and how often each agent was asked."""

    ops: Any  # [A, W]
    drop: Any  # the step at which all start anew; -1: never
    count: Any  # [A]


def script(*ops):
    return Script(jnp.asarray(ops, jnp.int32), jnp.int32(-1), jnp.zeros((2,), jnp.int32))


WAITERS = script([Op.WAIT, 1, -1, -1], [Op.WAIT, 2, -1, -1])
"""Agent i waits i + 1 steps again and again."""


@dataclasses.dataclass(frozen=True)
class Scripted:
    """Asks for the same ops at every step; its memory is the script."""

    def init(self, key):
        return WAITERS

    def plan(self, key, memory, state, idle, report):
        changed = jnp.full((2,), state.t == memory.drop)
        return memory.ops, changed, memory._replace(count=memory.count + idle)


POLICY = SkilledPolicy(ENV, Scripted())


@jax.jit
def turn(state, memory):
    command, memory = POLICY.act(jax.random.key(2), memory, Turn(None, None, None, state))
    return ENV.step(state, command, None).state, memory


def asked(script):
    """How often each agent was asked, after each of five steps."""
    state, memory = jax.jit(ENV.reset)(jax.random.key(1)), POLICY.init(jax.random.key(0)).replace(plan=script)
    counts = []
    for _ in range(5):
        state, memory = turn(state, memory)
        counts.append(memory.plan.count.tolist())
    return counts


def test_the_planner_is_asked_when_a_skill_has_ended():
    assert asked(WAITERS) == [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3]]


def test_the_planner_is_asked_when_a_skill_has_failed():
    lost = script([Op.NAVIGATE, Entity.BLOCK, 99, 1], [Op.WAIT, 9, -1, -1])  # there is no such block
    assert asked(lost) == [[1, 1], [2, 1], [3, 1], [4, 1], [5, 1]]


def test_a_planner_may_drop_what_is_running():
    # all start anew in the second step, so the second agent's wait of two ends one step later
    assert asked(WAITERS._replace(drop=jnp.int32(1))) == [[1, 1], [2, 1], [3, 1], [4, 2], [5, 2]]


def test_it_plays_whole_episodes_in_batches():
    played = rollout(ENV, POLICY, jax.random.key(0), jnp.arange(3))
    np.testing.assert_array_equal(played.length, [6, 6, 6])


def test_an_environment_without_skills_is_refused():
    with pytest.raises(ValueError, match="null has no skills"):
        SkilledPolicy(make("null"), Scripted())
