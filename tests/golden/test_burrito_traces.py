"""Recorded steps of primitives, compared array by array: state, rewards, terms and events."""

import json
from functools import cache

import jax
import numpy as np
import pytest
from burrito_layouts import layout_for
from burrito_states import arrays_of, state_of

from jaxcoop.envs.burrito import Burrito, interact
from jaxcoop.envs.burrito.types import TERMS, Draws

STATE = (
    "pos",
    "ori",
    "held",
    "held_tick",
    "obj",
    "tick_main",
    "tick_wait",
    "tick_warn",
    "num_plates",
    "next_recipe",
    "consecutive",
    "order_dish",
    "order_left",
    "timestep",
)


MANY = 2048
"""Steps that one program makes at once: one for each layout, team and set of rewards, whatever a file holds."""


def names_beside(path, name):
    """A list of names that is recorded in the same folder."""
    return json.loads((path.parent / f"{name}.json").read_text())


def read(path):
    with np.load(path) as file:
        if "action" in file:  # else states without steps
            yield "all", (path, dict(file))


@cache
def stepper(env):
    """Steps that have nothing to do with each other: states, actions and priorities [MANY] -> `Step`."""
    return jax.jit(jax.vmap(lambda s, a, p: env.step(s, a, Draws(p))))


def steps_of(env, *given):
    """`Step` of all states, actions and priorities [E, T]; the last of `MANY` at once is repeated."""
    lead = given[1].shape[:2]
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), given)
    size, parts = lead[0] * lead[1], []
    for first in range(0, size, MANY):
        which = np.minimum(np.arange(first, first + MANY), size - 1)
        parts.append(jax.device_get(stepper(env)(*jax.tree.map(lambda x, which=which: x[which], flat))))
    return jax.tree.map(lambda *x: np.concatenate(x)[:size].reshape(*lead, *x[0].shape[1:]), *parts)


def priorities(tie, players):
    """3.2: those who were allowed to move come first."""
    return (tie[..., None].astype(np.int64) >> np.arange(players) & 1).astype(np.uint32) * (tie >= 0)[..., None]


def events_of(logged, columns):
    """Events as flags [..., P, columns]."""
    index = np.array([columns.index(name) for name in interact.EVENTS] + [len(columns)])
    flags = np.zeros((*logged.shape[:-1], len(columns) + 1), bool)
    np.put_along_axis(flags, index[logged].astype(np.int64), True, -1)
    return flags[..., :-1]


def terms_of(terms, burning, columns):
    """Counts of the terms [..., P, 18]."""
    assert columns == [*TERMS, "burn_ingredient"]
    counts = (terms[..., None] >> np.arange(len(TERMS), dtype=np.uint32) & 1).astype(np.int8)
    burns = np.broadcast_to(burning[..., None, None], (*terms.shape, 1))
    return np.concatenate([counts, burns], -1)


@pytest.mark.recorded("burrito", "*.npz", read)
def test_burrito_recorded_steps_replay_without_a_mismatch(case):
    path, want = case
    players = want["pos"].shape[-2]
    layout = layout_for(path, str(want["layout"]))
    env = Burrito(layout=layout, agents=players, rewards=str(want["reward_config"]), max_steps=10_000)
    states = state_of(env.kitchen, {name: want[name] for name in STATE})
    before = jax.tree.map(lambda x: x[:, :-1], states)
    done = steps_of(env, before, want["action"].astype(np.int32), priorities(want["tie"], players))
    got = arrays_of(env.kitchen, done.state)
    for name in STATE:
        np.testing.assert_array_equal(got[name], want[name][:, 1:], err_msg=name)
    np.testing.assert_array_equal(done.events.sparse, want["sparse"])
    np.testing.assert_allclose(done.events.shaped, want["shaped"], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(done.reward, want["sparse"])
    columns = names_beside(path, "event_names")
    np.testing.assert_array_equal(events_of(done.events.logged, columns), want["events"].astype(bool))
    terms = terms_of(done.events.terms, done.events.burning, names_beside(path, "term_names"))
    np.testing.assert_array_equal(terms, want["terms"])
