"""What every environment promises (docs of `jaxcoop.core.Env`), checked on all that the registry knows.

A package that offers environments under the entry point `jaxcoop.envs` has them checked by running this
file where it is installed.
"""

import dataclasses
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.random import RandomPolicy
from jaxcoop.benchmarks.harness import with_team
from jaxcoop.core import list_envs, make, play, rollout
from jaxcoop.core.batch import advance, refill, start, starts_alike
from jaxcoop.core.rollout import episode_key, initial, streams_of, take_turn

ROOT = jax.random.key(11, impl="threefry2x32")
TEAMS = (1, 2, 3, 16, 128)
EPISODES = (0, 1, 2, 5, 8)
TRACE = (
    "live",
    "actions",
    "reward",
    "terminated",
    "truncated",
    "turn.agents",
    "turn.legal",
    "turn.state",
    "nxt",
)

# Beside the defaults: options that lead to other code, kept short so that whole episodes can be looked at.
VARIANTS = {
    "burrito": (
        {"max_steps": 12},
        {"max_steps": 12, "layout": "fc", "agents": 3, "start": "random", "rewards": "default", "observation": "nopos"},
    ),
    "cube": (
        {"max_steps": 12},
        {"max_steps": 12, "side": 8, "agents": 2, "blocks": "1:4", "conflict": "paper", "view": 5},
        {"max_steps": 12, "side": 8, "agents": 3, "blocks": "1:3,2:1", "physics": "chain"},
    ),
    "dining": (
        {"max_timesteps": 12},
        {"max_timesteps": 12, "mode": "sequential"},
        {"max_timesteps": 12, "deadlock_terminal": False, "backoff": True},
    ),
    "macrafter": (
        {"max_steps": 12, "width": 16, "height": 16},
        {"max_steps": 12, "width": 13, "height": 9, "agents": 2, "observation": "full", "bag": 3, "distance": 2},
    ),
    "null": ({"max_steps": 12},),
    "overcooked": (
        {"max_steps": 12},
        {"max_steps": 12, "layout": "counter_circuit", "agents": 3, "old_dynamics": True, "shaping": 0.5},
    ),
}


@dataclasses.dataclass(frozen=True)
class Scrambled:
    """Varied actions of every agent without a key for each step."""

    num_actions: int

    def init(self, key):
        return jax.random.bits(key, (), jnp.uint32)

    def act(self, key, memory, turn):
        mixed = (memory + turn.agents.astype(jnp.uint32) * 40503) * jnp.uint32(2654435761)
        actions = (mixed >> 16) % self.num_actions
        return actions.astype(jnp.int32), memory * jnp.uint32(1664525) + jnp.uint32(1013904223)


def all_variants():
    return [
        pytest.param(make(name, **options), id=f"{name}-{number}")
        for name in list_envs()
        for number, options in enumerate(VARIANTS.get(name, ({},)))
    ]


every_env = pytest.mark.parametrize("env", all_variants())

COSTLY = ("burrito", "macrafter", "overcooked")
"""Environments whose step compiles long; of these the default run plays an agent alone and a team of three."""


def of_every_size():
    """(environment, team) of every variant; slow where a costly one is compiled for yet another size."""
    return [
        pytest.param(env.values[0], team, id=f"{env.id}-{team}", marks=[pytest.mark.slow] * is_more(env, team))
        for env in all_variants()
        for team in TEAMS
    ]


def is_more(env, team):
    return env.values[0].name in COSTLY and team not in (1, 3)


def team_of(env, team):
    """`env` with another number of agents; skips the test if it does not allow that number."""
    try:
        return with_team(env, team)
    except ValueError as reason:
        pytest.skip(str(reason))


@cache
def episodes_of(env, numbers=EPISODES):
    """The numbered episodes with everything that a trace can hold, as numpy, leading axes [B, T]."""
    played = rollout(env, Scrambled(env.num_actions), ROOT, jnp.asarray(numbers, jnp.int32), returns=True, trace=TRACE)
    return jax.tree.map(np.asarray, played)


@cache
def first_step(env):
    """The first step of an episode in which everybody takes one action, compiled."""

    def step(key, action):
        state = env.reset(key)
        return env.step(state, jnp.full((env.num_actors,), action, jnp.int32), env.sample_draws(key, state))

    return jax.jit(step)


@cache
def two_steps(env):
    """Tasks before and after, attempts at the start, and the reward, observations and legal actions at the end."""

    def play(key):
        def step(state, actions):
            done = env.step(state, actions, env.sample_draws(key, state))
            return done.state, done.reward

        first = jnp.arange(env.num_actors, dtype=jnp.int32) % env.num_actions
        start = env.reset(key)
        end, rewards = jax.lax.scan(step, start, jnp.stack([first, jnp.zeros_like(first)]))
        return (env.tasks(start), env.tasks(end), env.attempts(start, first)), (
            rewards,
            env.observe(end),
            env.legal(end),
        )

    return jax.jit(play)(ROOT)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def types_of(tree):
    return [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(tree)]


def shapes_of(env):
    """Abstract (state, draws, step, observations, legal) of one step."""

    def one_step(key):
        state = env.reset(key)
        draws = env.sample_draws(key, state)
        agents = env.actors(state)
        step = env.step(state, jnp.zeros(env.num_actors, jnp.int32), draws)
        return (
            state,
            draws,
            step,
            env.observe(state, agents),
            env.observe(state),
            env.legal(state, agents),
            agents,
        )

    return jax.eval_shape(one_step, jax.eval_shape(lambda: jax.random.key(0)))


@every_env
def test_it_says_what_it_is(env):
    assert env.name in list_envs()
    assert env.version
    assert 1 <= env.num_actors <= env.num_agents
    assert env.num_actions >= 2
    assert env.horizon >= 1
    assert env.horizon % env.end_every == 0


@every_env
def test_it_is_a_static_argument_equal_when_its_options_are(env):
    assert hash(env) == hash(dataclasses.replace(env))
    assert env == dataclasses.replace(env)


@every_env
@pytest.mark.parametrize("team", TEAMS)
def test_reset_and_step_agree_on_every_type_for_every_team(env, team):
    env = team_of(env, team)
    state, _, step, obs, obs_of_all, legal, agents = shapes_of(env)
    assert types_of(state) == types_of(step.state)
    assert not any(x.weak_type for x in jax.tree.leaves((state, step)))
    assert (step.reward.shape, step.reward.dtype) == ((team,), jnp.float32)
    for flag in (step.terminated, step.truncated):
        assert (flag.shape, flag.dtype) == ((), jnp.bool_)
    assert (legal.shape, legal.dtype) == ((env.num_actors, env.num_actions), jnp.bool_)
    assert (agents.shape, agents.dtype) == ((env.num_actors,), jnp.int32)
    assert {x.shape[0] for x in jax.tree.leaves(obs)} == {env.num_actors}
    assert {x.shape[0] for x in jax.tree.leaves(obs_of_all)} == {team}


@every_env
def test_double_precision_changes_no_type(env):
    single = shapes_of(env)
    with jax.enable_x64(True):
        double = shapes_of(env)
    assert types_of(single) == types_of(double)


@every_env
def test_continuous_play_keeps_every_type(env):
    policy = Scrambled(env.num_actions)
    before = jax.eval_shape(lambda: start(env, policy, ROOT, jnp.arange(2), returns=True))
    assert types_of(before) == types_of(jax.eval_shape(partial(refill, env, policy), before))
    trace = ("turn.obs", "final_obs", "actions", "reward", "terminated", "truncated")
    after, moves = jax.eval_shape(lambda b: advance(env, policy, b, 2 * env.end_every, trace=trace), before)
    assert types_of(before) == types_of(after)
    assert {x.shape[:2] for x in jax.tree.leaves(moves)} == {(2 * env.end_every, 2)}


@every_env
def test_a_step_draws_nothing_by_itself(env):
    state, draws, *_ = shapes_of(env)
    actions = jax.ShapeDtypeStruct((env.num_actors,), jnp.int32)
    assert "random_" not in str(jax.make_jaxpr(env.step)(state, actions, draws))


@every_env
def test_starts_differ_between_keys_unless_they_ignore_the_key(env):
    starts = jax.tree.leaves(jax.jit(jax.vmap(env.reset))(jax.random.split(ROOT, 4)))
    differ = any((np.asarray(x) != np.asarray(x)[:1]).any() for x in starts)
    assert differ != starts_alike(env, RandomPolicy())


@every_env
def test_a_batched_scan_equals_a_loop_over_single_steps_and_a_step_is_traced_once(env):
    played = episodes_of(env)
    policy = Scrambled(env.num_actions)
    first = jax.jit(lambda key: initial(env, policy, key))
    step = jax.jit(lambda streams, t, state, memory: take_turn(env, policy, streams, t, state, memory))
    for row, episode in enumerate(EPISODES[:2]):
        key = episode_key(ROOT, episode)
        streams = streams_of(key)
        state, memory = first(key)
        for t in range(int(played.length[row])):
            move, memory = step(streams, jnp.int32(t), state, memory)
            state = move.nxt
            expected = jax.tree.map(lambda x, r=row, t=t: x[r, t], played.trace)
            assert_same(state, expected["nxt"])
            assert_same(move.actions, expected["actions"])
            assert_same(move.reward, expected["reward"])
        assert_same(env.outcome(state), jax.tree.map(lambda x, r=row: x[r], played.outcome))
    assert step._cache_size() == 1


@every_env
def test_an_episode_does_not_depend_on_the_others_nor_on_its_place(env):
    here = episodes_of(env)
    there = episodes_of(env, (7, 2, 9, 0, 3))
    for a, b in ((0, 3), (2, 1)):
        assert_same(jax.tree.map(lambda x, a=a: x[a], here), jax.tree.map(lambda x, b=b: x[b], there))


@every_env
def test_every_episode_ends_and_says_so(env):
    played = episodes_of(env)
    assert (played.terminated | played.truncated).all()
    assert (played.length <= env.horizon).all()
    np.testing.assert_array_equal(played.length, played.trace["live"].sum(1))


@every_env
def test_a_finished_episode_keeps_every_bit(env):
    played = episodes_of(env)
    for row, length in enumerate(played.length):
        last = jax.tree.map(lambda x, r=row, n=length: x[r, n - 1], played.trace["nxt"])
        # Steps inside the last block of a turn-based rollout are played on and thrown away.
        for t in range(length, env.horizon, env.end_every):
            assert_same(jax.tree.map(lambda x, r=row, t=t: x[r, t], played.trace["turn.state"]), last)


@every_env
def test_returns_are_the_rewards_of_the_living_steps(env):
    played = episodes_of(env)
    rewards = played.trace["reward"] * played.trace["live"][..., None]
    np.testing.assert_allclose(played.returns, rewards.sum(1), rtol=1e-6)


@every_env
def test_somebody_who_acts_always_has_a_legal_action(env):
    played = episodes_of(env)
    assert played.trace["turn.legal"].any(-1)[played.trace["live"]].all()


@every_env
def test_actors_are_ascending_ids(env):
    agents = episodes_of(env).trace["turn.agents"]
    assert ((agents >= 0) & (agents < env.num_agents)).all()
    assert (np.diff(agents, axis=-1) > 0).all()


@every_env
@pytest.mark.parametrize("action", [-1, 1_000_000])
def test_an_action_out_of_range_has_a_defined_result(env, action):
    first, again = (first_step(env)(ROOT, jnp.int32(action)) for _ in range(2))
    assert_same(first, again)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(first))


@pytest.mark.parametrize(("env", "team"), of_every_size())
def test_tasks_fill_a_fixed_table_and_attempts_name_its_slots(env, team):
    env = team_of(env, team)
    before, after, aimed = two_steps(env)[0]
    assert types_of(before) == types_of(after)
    slots = before.active.shape[0]
    assert before.place.shape == (slots, 2)
    assert {x.shape[0] for x in jax.tree.leaves(before)} == {slots}
    assert (before.required >= before.active).all()
    assert (aimed.shape, aimed.dtype) == ((env.num_actors,), jnp.int32)
    assert ((aimed >= -1) & (aimed < max(slots, 1))).all()


@pytest.mark.parametrize(("env", "team"), of_every_size())
def test_teams_of_every_size_play(env, team):
    env = team_of(env, team)
    rewards, obs, legal = two_steps(env)[1]
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((rewards, obs)))
    assert legal.any(-1).all()


@every_env
def test_no_key_is_used_twice(env):
    with jax.debug_key_reuse(True):
        jax.jit(lambda key: play(env, Scrambled(env.num_actions), key, 0).outcome).lower(ROOT)
