"""Whole episodes: what is kept, what is reduced, what it costs."""

import types

import core_toys as toys
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core import put_rows, rollout, take_rows
from jaxcoop.core.env import state_bytes
from jaxcoop.core.rollout import _rollout, episode_key, initial, streams_of

ROOT = jax.random.key(3, impl="threefry2x32")
POLICY = toys.Steady()
NUMBERS = jnp.arange(4)


def temporary_bytes(env, **options):
    memory = jax.jit(lambda: rollout(env, POLICY, ROOT, NUMBERS, **options)).lower().compile().memory_analysis()
    return memory.temp_size_in_bytes + memory.output_size_in_bytes


def test_nothing_is_kept_unless_asked_for():
    played = rollout(toys.Fixed(), POLICY, ROOT, NUMBERS)
    assert played.trace is None
    assert played.returns is None


def test_memory_does_not_grow_with_the_horizon_without_a_trace():
    assert temporary_bytes(toys.Fixed(limit=1000)) == temporary_bytes(toys.Fixed(limit=10))


def test_a_trace_holds_the_named_fields_only():
    played = rollout(toys.Fixed(), POLICY, ROOT, NUMBERS, trace=("turn.obs", "nxt.place", "live"))
    assert {name: x.shape for name, x in played.trace.items()} == {
        "turn.obs": (4, 5, 2),
        "nxt.place": (4, 5),
        "live": (4, 5),
    }


def test_a_trace_of_a_turn_based_episode_has_one_entry_for_each_turn():
    played = rollout(toys.Turns(agents=3), POLICY, ROOT, NUMBERS, trace=("t", "turn.agents"))
    assert played.trace["t"].shape == (4, 15)
    live = np.arange(15) < np.asarray(played.length)[:, None]
    np.testing.assert_array_equal(played.trace["turn.agents"][..., 0][live], played.trace["t"][live] % 3)


def test_turn_based_episodes_end_after_whole_rounds():
    played = rollout(toys.Turns(agents=3), POLICY, ROOT, NUMBERS)
    assert (played.length % 3 == 0).all()


def test_an_unknown_trace_field_is_an_error():
    with pytest.raises(ValueError, match=r"unknown trace field .*observation"):
        rollout(toys.Fixed(), POLICY, ROOT, NUMBERS, trace=("observation",))


def test_returns_are_sums_of_rewards_to_the_end_of_the_episode():
    played = rollout(toys.Fixed(), POLICY, ROOT, NUMBERS, returns=True)
    length = np.asarray(played.length)
    team = length * (length + 1) / 2  # `Walk` pays t + agent at step t = 1, 2, ...
    np.testing.assert_array_equal(played.returns, np.stack([team, team + length], axis=-1))


@pytest.mark.parametrize("how", ["terminated", "truncated", "both"])
def test_the_flags_are_those_of_the_last_step(how):
    played = rollout(toys.Fixed(how=how), POLICY, ROOT, NUMBERS)
    assert (played.terminated == (how != "truncated")).all()
    assert (played.truncated == (how != "terminated")).all()


def test_the_same_arguments_are_compiled_once():
    env = toys.Fixed(limit=6)
    rollout(env, POLICY, ROOT, NUMBERS)
    compiled = _rollout._cache_size()
    rollout(toys.Fixed(limit=6), toys.Steady(), jax.random.key(9), NUMBERS + 4)
    assert _rollout._cache_size() == compiled


def test_rows_of_memory_are_taken_and_put_back():
    memory = jnp.arange(8).reshape(4, 2)
    agents = jnp.array([1, 3], jnp.int32)
    rows = take_rows(memory, agents)
    np.testing.assert_array_equal(rows, [[2, 3], [6, 7]])
    np.testing.assert_array_equal(put_rows(memory, agents, -rows), [[0, 1], [-2, -3], [4, 5], [-6, -7]])


def test_rows_of_everybody_are_the_memory_itself():
    memory = jnp.arange(4)
    assert take_rows(memory, jnp.arange(4)) is memory
    assert put_rows(memory, jnp.arange(4), memory) is memory


def test_state_bytes_count_one_episode():
    assert state_bytes(toys.Fixed()) == 8


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"root": 0}, "must be one key"),
        ({"root": jax.random.split(ROOT, 2)}, "must be one key"),
        ({"policy": "random_any"}, "must have init and act"),
        ({"env": "dining"}, "must have reset and step"),
        ({"episodes": 3}, "must be a list of whole numbers"),
        ({"episodes": [0.5]}, "must be a list of whole numbers"),
        ({"episodes": [2**40]}, "below 2\\^31"),
        ({"trace": ("turn.observation",)}, "allowed: .*turn.obs"),
        ({"trace": "__class__"}, "unknown trace field"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(wrong, says):
    arguments = {"env": toys.Fixed(), "policy": POLICY, "root": ROOT, "episodes": NUMBERS} | wrong
    with pytest.raises(ValueError, match=says):
        rollout(**arguments)


def test_a_list_of_episodes_and_one_trace_name_do():
    played = rollout(toys.Fixed(), POLICY, ROOT, [0, 1], trace="actions")
    assert set(played.trace) == {"actions"} and len(played.length) == 2


def test_the_streams_of_an_episode_are_all_different():
    key = episode_key(ROOT, 5)
    streams, starts = streams_of(key), []
    recorder = types.SimpleNamespace(reset=starts.append, init=starts.append)
    initial(recorder, recorder, key)
    keys = [jax.random.key_data(k).tolist() for k in (*starts, streams.world, streams.agents)]
    assert len({tuple(key) for key in keys}) == 4
