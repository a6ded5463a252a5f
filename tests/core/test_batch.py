"""Continuous play: restarts, pools and their counters."""

import dataclasses
from functools import cache, partial

import core_toys as toys
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core import episode_key, play
from jaxcoop.core.batch import advance, refill, start, starts_alike, totals
from jaxcoop.core.rollout import start_key

ROOT = jax.random.key(7, impl="threefry2x32")
POLICY = toys.Counting()
FIELDS = (
    "turn.state",
    "nxt",
    "turn.obs",
    "final_obs",
    "actions",
    "reward",
    "memory",
    "episode",
    "t",
    "terminated",
    "truncated",
)
STEPS = 24

jit_start = jax.jit(start, static_argnames=("env", "policy", "pool", "returns"))
jit_advance = jax.jit(advance, static_argnames=("env", "policy", "steps", "trace"))
jit_refill = jax.jit(refill, static_argnames=("env", "policy"))


@cache
def played(env, slots=(0, 1, 2, 3), chunks=(STEPS,), pool=STEPS):
    """Advance by each of `chunks` steps with refills between; the last batch, and all traces along time."""
    batch = jit_start(env, POLICY, ROOT, jnp.asarray(slots, jnp.int32), pool=pool, returns=True)
    kept = []
    for number, steps in enumerate(chunks):
        batch = jit_refill(env, POLICY, batch) if number else batch
        batch, moves = jit_advance(env, POLICY, batch, steps, trace=FIELDS)
        kept.append(moves)
    return batch, jax.tree.map(lambda *x: np.concatenate(x), *kept)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def types_of(tree):
    return [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("env", [toys.Walk(), toys.Turns()], ids=lambda env: env.name)
def test_episode_j_of_a_slot_is_the_episode_that_play_gives_for_its_key(env):
    fields = ("nxt", "turn.obs", "actions")
    alone = jax.jit(partial(play, env, POLICY, trace=fields))
    batch, moves = played(env)
    for slot in (1, 3):
        for episode in range(int(batch.episode[slot])):
            rows = moves["episode"][:, slot] == episode
            expected = alone(jax.random.fold_in(ROOT, slot), episode)
            length = int(expected.length)
            assert rows.sum() == length
            for field in fields:
                here = jax.tree.map(lambda x, s=slot, r=rows: x[r, s], moves[field])
                assert_same(here, jax.tree.map(lambda x, n=length: x[:n], expected.trace[field]))


def test_a_slot_does_not_depend_on_the_other_slots_nor_on_how_many_there_are():
    _, many = played(toys.Walk())
    _, one = played(toys.Walk(), slots=(2,))
    assert_same(jax.tree.map(lambda x: x[:, 2:3], many), one)


def test_a_slot_does_not_depend_on_the_cutting_into_calls():
    whole, once = played(toys.Walk())
    parts, often = played(toys.Walk(), chunks=(4,) * (STEPS // 4))
    assert_same(once, often)
    assert_same(whole.state, parts.state)
    assert totals(whole) == totals(parts)


def test_new_episodes_start_from_new_states():
    _, moves = played(toys.Walk())
    starts = moves["turn.state"].place[moves["t"] == 0]
    assert len(starts) >= 12
    assert len(set(starts.tolist())) == len(starts)


@pytest.mark.parametrize("how", ["terminated", "truncated", "both"])
def test_the_flags_say_how_the_episode_ended_and_only_at_its_end(how):
    env, policy = toys.Fixed(how=how, early=False, limit=5), toys.Steady()
    batch = jit_start(env, policy, ROOT, jnp.arange(1))
    _, moves = jit_advance(env, policy, batch, 10, trace=("terminated", "truncated"))
    ends = np.arange(10) % 5 == 4
    np.testing.assert_array_equal(moves["terminated"][:, 0], ends & (how != "truncated"))
    np.testing.assert_array_equal(moves["truncated"][:, 0], ends & (how != "terminated"))


def test_final_observation_is_that_of_the_state_before_the_restart_and_the_next_one_is_fresh():
    _, moves = played(toys.Walk())
    np.testing.assert_array_equal(moves["final_obs"], moves["nxt"].place[..., None] + np.arange(2))
    ended = moves["terminated"][:-1]
    assert ended.any()
    nxt_obs, final = moves["turn.obs"][1:], moves["final_obs"][:-1]
    assert (nxt_obs[ended] != final[ended]).all()
    np.testing.assert_array_equal(nxt_obs[~ended], final[~ended])


def test_a_finished_slot_holds_its_own_pool_entry_and_a_live_one_is_untouched():
    env = toys.Walk()
    batch = jit_start(env, POLICY, ROOT, jnp.arange(16), pool=4)
    pool = batch.fresh[0].place  # [B, P]
    after, moves = jit_advance(env, POLICY, batch, 1, trace=("nxt", "terminated"))
    done = np.asarray(moves["terminated"][0])
    assert done.any() and not done.all()
    np.testing.assert_array_equal(after.state.place, np.where(done, pool[:, 0], moves["nxt"].place[0]))
    np.testing.assert_array_equal(after.state.t, np.where(done, 0, 1))
    np.testing.assert_array_equal(after.t, np.where(done, 0, 1))


def test_memory_of_the_policy_starts_afresh_with_the_episode():
    _, moves = played(toys.Walk())
    count, mark = moves["memory"]
    np.testing.assert_array_equal(count, moves["t"])
    episodes = {(slot, int(e)) for slot in range(4) for e in moves["episode"][:, slot]}
    assert len(set(mark.ravel().tolist())) == len(episodes)


def test_an_empty_pool_repeats_its_last_state_with_new_step_keys_and_is_counted():
    # episodes last 2 steps, so 12 are finished; the pool has entries for episodes 1 and 2
    batch, moves = played(toys.Walk(early=False, limit=2), slots=(0,), pool=2)
    starts = moves["turn.state"].place[::2, 0]
    assert len(set(starts[:3].tolist())) == 3
    assert (starts[3:] == starts[2]).all()
    assert totals(batch)["reused"] == 10  # episodes 3 to 11, and 12 that is about to begin
    ends = moves["nxt"].place[1::2, 0]
    assert len(set(ends[2:].tolist())) > 5


def test_a_refill_in_time_means_that_nothing_is_repeated():
    batch, moves = played(toys.Walk(early=False, limit=2), slots=(0,), chunks=(2,) * 6, pool=1)
    starts = moves["turn.state"].place[::2, 0]
    assert len(set(starts.tolist())) == 6
    assert totals(batch)["reused"] == 0


def test_an_environment_whose_start_ignores_the_key_has_no_pool_and_counts_no_repeats():
    quiet = toys.Counting(mark=False)
    assert starts_alike(toys.Fixed(), quiet)
    assert not starts_alike(toys.Walk(), quiet)
    assert not starts_alike(toys.Fixed(), POLICY)  # the policy's memory is random
    batch = jit_start(toys.Fixed(), quiet, ROOT, jnp.arange(5), pool=3)
    assert {x.shape[0] for x in jax.tree.leaves(batch.fresh)} == {1}
    batch, moves = jit_advance(toys.Fixed(), quiet, batch, 40, trace=("turn.state", "t", "nxt"))
    assert (moves["turn.state"].place[moves["t"] == 0] == 0).all()
    assert len(set(moves["nxt"].place[moves["t"] == 0].tolist())) > 1  # the policy's numbers are fresh
    assert totals(batch)["reused"] == 0
    assert totals(batch)["episodes"] > 5


def test_the_world_is_not_reset_inside_the_step(monkeypatch):
    env = toys.Walk()
    batch = jit_start(env, POLICY, ROOT, jnp.arange(4), pool=STEPS, returns=True)
    monkeypatch.setattr(toys.Walk, "reset", lambda *_: pytest.fail("reset inside advance"))
    jax.make_jaxpr(lambda b: advance(env, POLICY, b, 4)[0])(batch)


@pytest.mark.parametrize("env", [toys.Walk(), toys.Turns(), toys.Fixed()], ids=lambda env: env.name)
def test_start_refill_and_advance_agree_on_every_type(env):
    before = jax.eval_shape(lambda: start(env, POLICY, ROOT, jnp.arange(3), returns=True))
    refilled = jax.eval_shape(lambda b: refill(env, POLICY, b), before)
    after = jax.eval_shape(lambda b: advance(env, POLICY, b, 4)[0], before)
    assert types_of(before) == types_of(refilled) == types_of(after)
    assert not any(x.weak_type for x in jax.tree.leaves(before))


def test_advance_is_compiled_once_and_can_be_the_body_of_a_loop():
    env = toys.Walk()
    looped = jax.jit(lambda b, n: jax.lax.fori_loop(0, n, lambda _, x: advance(env, POLICY, x, 2)[0], b))
    batch = jit_start(env, POLICY, ROOT, jnp.arange(4), pool=STEPS, returns=True)
    for steps in (8, 12, 4):
        batch = looped(batch, steps // 2)
    assert looped._cache_size() == 1
    assert_same(batch.state, played(env)[0].state)


def test_no_key_is_used_twice():
    env = toys.Walk()
    batch = jit_start(env, POLICY, ROOT, jnp.arange(4), pool=STEPS, returns=True)
    with jax.debug_key_reuse(True):
        jax.jit(lambda b: advance(env, POLICY, refill(env, POLICY, b), 4)[0].state)(batch)


def test_totals_add_up_what_the_traces_show():
    batch, moves = played(toys.Walk())
    ends = moves["terminated"]
    last = np.where(ends.any(0), STEPS - ends[::-1].argmax(0), 0)  # steps that belong to finished episodes
    finished = np.arange(STEPS)[:, None] < last
    assert totals(batch) == {
        "steps": 4 * STEPS,
        "episodes": int(ends.sum()),
        "steps_finished": int(last.sum()),
        "reused": 0,
        "returns_finished": (moves["reward"] * finished[..., None]).sum((0, 1)).tolist(),
    }


def test_steps_that_end_inside_a_round_are_refused():
    with pytest.raises(ValueError, match="steps 4: must be a positive multiple of 3"):
        jax.eval_shape(
            lambda: advance(toys.Turns(agents=3), POLICY, start(toys.Turns(agents=3), POLICY, ROOT, jnp.arange(2)), 4)
        )


def test_a_pool_without_entries_is_refused():
    with pytest.raises(ValueError, match="pool 0: must be 1 or more"):
        start(toys.Walk(), POLICY, ROOT, jnp.arange(2), pool=0)


def test_a_refill_makes_the_entries_that_were_used_and_no_others():
    env = toys.Walk()
    batch = jit_start(env, POLICY, ROOT, jnp.arange(16), pool=3)
    batch, _ = jit_advance(env, POLICY, batch, 4)
    marked = dataclasses.replace(batch, fresh=jax.tree.map(jnp.zeros_like, batch.fresh))
    refilled = jit_refill(env, POLICY, marked).fresh[0].place
    entry = (np.asarray(batch.episode)[:, None] + np.arange(3)) % 3  # of the next episodes, the furthest one last
    made = np.take_along_axis(np.asarray(refilled), entry, 1) != 0
    used = np.asarray(batch.episode)[:, None] > 2 - np.arange(3)
    np.testing.assert_array_equal(made, used)
    assert used.any() and not used.all()


@pytest.mark.parametrize("slots", [1, 5, 63, 64, 65, 200])
def test_pools_of_every_number_of_slots_hold_the_starts_of_their_own_episodes(slots):
    env = toys.Walk()
    batch = jit_start(env, POLICY, ROOT, jnp.arange(slots), pool=2)
    batch, _ = jit_advance(env, POLICY, batch, 6)
    batch = jit_refill(env, POLICY, batch)
    for slot in {0, slots // 2, slots - 1}:
        for ahead in (1, 2):
            episode = int(batch.episode[slot]) + ahead
            key = start_key(episode_key(batch.slot_key[slot], episode))
            assert batch.fresh[0].place[slot, (episode - 1) % 2] == env.reset(key).place
