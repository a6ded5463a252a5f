"""Dialogues beyond the recorded ones: the paper's protocol, the memory window, the random stream."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop import rollout
from jaxcoop.agents.random import RandomPolicy
from jaxcoop.envs.dining import Dining
from jaxcoop.envs.dining.dialogue import Dialogue
from jaxcoop.planning.process import Status

LEFT, RIGHT, RELEASE, WAIT = range(4)
SHOWN = {"left": "holding_left", "right": "holding_right", "eating": "eating", "meals": "meals"}


@partial(jax.jit, static_argnums=0)
def look(dialogue, state):
    return dialogue.need(state), dialogue.view(state), dialogue.done(state)


@partial(jax.jit, static_argnums=0)
def close(dialogue, state, answers, answered):
    return dialogue.advance(dialogue.apply(state, answers, answered))


def converse(dialogue, act, asks, root=None):
    """Views, needs and final state of `asks` asks; `act(ask)` gives the actions, everybody speaks."""
    state = dialogue.begin(jax.random.key(0) if root is None else root, 0)
    seen = []
    for ask in range(asks):
        need, view, done = look(dialogue, state)
        if done:
            break
        seen.append((np.asarray(need), jax.device_get(view)))
        actions = np.broadcast_to(act(ask), need.shape)
        answers = np.stack([actions, np.ones_like(actions), np.full_like(actions, Status.OK)], -1)
        state = close(dialogue, state, jnp.asarray(answers, jnp.int32), need)
    return seen, state


def boards(seen):
    return [view.episode["board"].tolist() for _, view in seen]


def test_in_the_papers_protocol_k_exchanges_come_before_each_action_and_everybody_sees_them():
    dialogue = Dialogue(Dining(3, max_timesteps=4), True, 2, protocol="paper")
    seen, _ = converse(dialogue, lambda ask: WAIT, 6)
    assert [bool(view.episode["is_discussion"]) for _, view in seen] == [True, True, False] * 2
    first, second = [0, 1, 2], [3, 4, 5]  # handles: ask * N + philosopher
    # 14, point 11: the exchange is seen before acting; the reply at commitment (ask 2) reaches nobody
    assert boards(seen)[:4] == [[-1, -1, -1], first, second, second]
    assert boards(seen)[4] == [9, 10, 11]


def test_in_the_papers_protocol_sequential_rounds_begin_with_the_exchanges():
    dialogue = Dialogue(Dining(3, "sequential", 6), True, 1, protocol="paper")
    seen, _ = converse(dialogue, lambda ask: WAIT, 8)
    assert [int(need.sum()) for need, _ in seen] == [3, 1, 1, 1, 3, 1, 1, 1]
    assert boards(seen)[1:5] == [[0, 1, 2]] * 4
    assert dialogue.max_rounds == 8


@pytest.mark.parametrize(("mode", "asks"), [("simultaneous", 4), ("sequential", 10)])
def test_the_last_entry_of_the_memory_is_the_table_as_it_stands(mode, asks):
    env = Dining(3, mode, 30)
    seen, _ = converse(Dialogue(env, memory_window=2), lambda ask: [LEFT, RIGHT, WAIT], asks)
    for need, view in seen[3 if mode == "sequential" else 1 :]:
        if mode == "sequential" and not need[0]:
            continue  # within a round the table has moved on
        assert view.episode["memory_timestep"][-1] == view.episode["clock"]
        for name, of in (
            ("left", "holding_left"),
            ("right", "holding_right"),
            ("eating", "eating"),
            ("meals", "meals"),
        ):
            np.testing.assert_array_equal(view.episode[f"memory_{name}"][-1], view.agent[of], name)
    assert any(view.episode["memory_left"].any() for _, view in seen)
    assert any(view.episode["memory_right"].any() for _, view in seen)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_a_dialogue_draws_what_a_rollout_draws(impl):
    env = Dining(3, max_timesteps=12, backoff=True, backoff_threshold=1)
    root = jax.random.key(4, impl=impl)

    @dataclasses.dataclass(frozen=True)
    class AllLeft(RandomPolicy):
        def act(self, key, memory, turn):
            return jnp.full(turn.agents.shape, LEFT, jnp.int32), memory

    played = rollout(env, AllLeft(), root, [0], trace=("nxt.hold_counts", "nxt.table"))
    _, state = converse(Dialogue(env), lambda ask: LEFT, 12, root)
    last = int(played.length[0]) - 1
    assert int(state.state.t) == last + 1
    np.testing.assert_array_equal(state.state.table.left, played.trace["nxt.table"].left[0, last])
    assert len({tuple(row.tolist()) for row in np.asarray(played.trace["nxt.hold_counts"][0])}) > 1


def test_a_holder_is_shown_to_both_neighbours():
    seen, _ = converse(Dialogue(Dining(4, max_timesteps=9)), lambda ask: [LEFT, RIGHT, WAIT, WAIT], 2)
    agent = seen[1][1].agent
    assert agent["left_holder"].tolist() == [0, -1, 1, -1]
    assert agent["right_holder"].tolist() == [-1, 1, -1, 0]
