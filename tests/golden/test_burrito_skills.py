"""Recorded episodes of macro-skills: masks, targets, goals, interactions, actions and ends."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_layouts import layout_for
from burrito_states import state_of

from jaxcoop.envs.burrito import Burrito

ROWS = 8
"""Episodes that are played at once; more come in groups, so that one program serves all files of a layout."""


def read(path):
    with np.load(path) as file:
        yield "all", (path, dict(file))


def kitchen_for(path, want, controller):
    players = want["pos"].shape[-2]
    return Burrito(layout=layout_for(path, str(want["layout"])), agents=players, controller=controller)


def cells(env, memory, name):
    value = getattr(memory, name).astype(jnp.int32)
    return jnp.stack([value % env.kitchen.grid.width, value // env.kitchen.grid.width], -1)


@cache
def player(env):
    """The controller over whole episodes: states [E, T], commands -> everything that is recorded."""
    skills = env.skills

    def one(memory, given):
        state, command = given
        fresh = memory.done
        memory = skills.begin(state, memory, command[:, None], fresh)
        memory = skills.resolve(state, memory)
        action, after = skills.act(state, memory)
        seen = {
            "mask": skills.feasible(state),
            "fresh": fresh,
            "active": memory.skill,
            "target": cells(env, memory, "target"),
            "goal": cells(env, memory, "goal"),
            "goal_ori": memory.facing,
            "n_interact": memory.repeats,
            "nav_done": memory.arrived,
            "action": action,
            "done": after.done,
        }
        return after, seen

    return jax.jit(jax.vmap(lambda states, commands: jax.lax.scan(one, skills.idle(), (states, commands))[1]))


def in_rows(tree, rows):
    """The episodes in groups of a fixed number; the last one is repeated."""
    size = len(jax.tree.leaves(tree)[0])
    for first in range(0, size, rows):
        which = np.minimum(np.arange(first, first + rows), size - 1)
        yield slice(first, min(first + rows, size)), jax.tree.map(lambda x, which=which: x[which], tree)


@pytest.mark.recorded("burrito", "*_skills_pinned*.npz", read)
def test_burrito_pinned_controllers_do_what_is_recorded(case):
    path, want = case
    env = kitchen_for(path, want, "pinned")
    states = jax.tree.map(lambda x: x[:, :-1], state_of(env.kitchen, want))
    given = (states, want["cmd"].astype(np.int32))
    for which, (rows, commands) in in_rows(given, ROWS):
        seen = player(env)(rows, commands)
        for name, got in seen.items():
            wanted = want[name][which]
            np.testing.assert_array_equal(np.asarray(got)[: len(wanted)], wanted, err_msg=name)
