"""Meals as cooperative tasks: a pair of forks, held at the same time."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxcoop.cooperation import Constraint, satisfied
from jaxcoop.core import make
from jaxcoop.envs.dining.tasks import counts
from jaxcoop.envs.dining.types import Action


def after(actions, **options):
    env = make("dining", philosophers=len(actions), **options)
    state = env.reset(jax.random.key(0))
    return env, env.step(state, jnp.asarray(actions, jnp.int32), env.sample_draws(jax.random.key(0), state)).state


def test_a_circular_wait_is_everybody_half_way():
    env, state = after([Action.GRAB_LEFT] * 4)
    table = env.tasks(state)
    assert table.active.all()
    met = satisfied(table.required, counts(state.table))
    assert met[:, Constraint.SPATIAL].all()
    assert not met[:, Constraint.TEMPORAL].any()
    np.testing.assert_array_equal(counts(state.table).temporal, [1, 1, 1, 1])


def test_nobody_has_a_task_while_eating():
    env, state = after([Action.GRAB_LEFT, Action.WAIT, Action.WAIT])
    state = env.step(state, jnp.asarray([Action.GRAB_RIGHT, Action.WAIT, Action.WAIT], jnp.int32), None).state
    np.testing.assert_array_equal(env.tasks(state).active, [False, True, True])
    assert satisfied(env.tasks(state).required, counts(state.table))[0].all()


def test_the_place_of_a_meal_is_its_two_forks():
    env, state = after([Action.WAIT] * 3)
    np.testing.assert_array_equal(env.tasks(state).place, [[0, 1], [1, 2], [2, 0]])


def test_grabs_are_aimed_at_ones_own_meal_and_nothing_else_is():
    env, state = after([Action.WAIT] * 4)
    actions = jnp.asarray([Action.GRAB_LEFT, Action.GRAB_RIGHT, Action.RELEASE, Action.WAIT], jnp.int32)
    np.testing.assert_array_equal(env.attempts(state, actions), [0, 1, -1, -1])


def test_in_turns_the_acting_philosopher_aims_at_its_own_meal():
    env = make("dining", philosophers=3, mode="sequential")
    state = env.reset(jax.random.key(0))
    state = env.step(state, jnp.asarray([Action.WAIT], jnp.int32), None).state
    np.testing.assert_array_equal(env.attempts(state, jnp.asarray([Action.GRAB_LEFT], jnp.int32)), [1])
