"""Recorded episodes of macro-skills: masks, targets, goals, interactions, actions and ends."""

from functools import cache
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_layouts import layout_for
from burrito_states import state_of
from kitchen_oracle import STAY, Floor, outcomes

from jaxcoop.envs.burrito import Burrito

ROWS, STEPS = 6, 400
"""Episodes that are played at once, and how long: one program serves all files of a layout."""


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


def padded(x):
    """Episodes [E, T, ...] as `ROWS` episodes of `STEPS` steps: the last of both are repeated."""
    rows, steps = x.shape[:2]
    assert rows <= ROWS and steps <= STEPS
    return x[np.minimum(np.arange(ROWS), rows - 1)][:, np.minimum(np.arange(STEPS), steps - 1)]


@pytest.mark.recorded("burrito", "*_skills_pinned*.npz", read)
def test_burrito_pinned_controllers_do_what_is_recorded(case):
    path, want = case
    env = kitchen_for(path, want, "pinned")
    states = jax.tree.map(lambda x: x[:, :-1], state_of(env.kitchen, want))
    rows, steps = want["cmd"].shape[:2]
    seen = player(env)(*jax.tree.map(padded, (states, want["cmd"].astype(np.int32))))
    for name, got in seen.items():
        np.testing.assert_array_equal(np.asarray(got)[:rows, :steps], want[name], err_msg=name)


@cache
def chooser(env):
    """What skills would be from steps [N]: masks, targets, goals, where to look, the most interactions."""
    skills, all_begin = env.skills, jnp.ones((env.num_agents,), jnp.bool_)

    def one(state, command):
        memory = skills.begin(state, skills.idle(), command[:, None], all_begin)
        target, goal = cells(env, memory, "target"), cells(env, memory, "goal")
        return skills.feasible(state), target, goal, memory.facing, memory.repeats

    return jax.jit(jax.vmap(one))


@pytest.mark.recorded("burrito", "*_skills_native.npz", read)
def test_burrito_masks_and_targets_are_those_of_recorded_controllers_with_randomness(case):
    path, want = case
    env = kitchen_for(path, want, "native")
    states = jax.tree.map(lambda x: x[:, :-1].reshape(-1, *x.shape[2:]), state_of(env.kitchen, want))
    want = {name: x.reshape(-1, *x.shape[2:]) for name, x in want.items() if x.ndim > 2}
    mask, target, goal, facing, most = map(np.asarray, chooser(env)(states, want["cmd"].astype(np.int32)))
    np.testing.assert_array_equal(mask, want["mask"])
    begins = (want["fresh"] == 1) & (want["active"] == want["cmd"])
    assert begins.sum() > 100
    for got, name in ((target, "target"), (goal, "goal"), (facing, "goal_ori")):
        np.testing.assert_array_equal(got[begins], want[name][begins], err_msg=name)
    n, least = want["n_interact"], np.minimum(most, 1)
    assert ((least <= n) & (n <= most))[begins].all()


def explains(moves, facing, action, goal_facing):
    """Whether each player does what its move in a plan asks for; one that stays may turn to where it shall look."""
    return all(
        action[i] == to_go if to_go != STAY else action[i] >= STAY or action[i] == goal_facing[i] != facing[i]
        for i, to_go in enumerate(moves)
    )


@pytest.mark.recorded("burrito", "*_skills_native.npz", read)
def test_burrito_recorded_moves_of_random_plans_are_possible(case):
    """While everybody is where the plan says: one order of priorities explains all actions since it was made, each by
    some order of ties.  A step that the kitchen refused, or that may have been a turn that led off the plan, ends this
    until the next plan.
    """
    path, want = case
    grid = kitchen_for(path, want, "native").kitchen.grid
    floor, team, checked = Floor(grid.rows), want["pos"].shape[2], 0
    all_ranks = set(permutations(range(team)))
    number = np.array([1, grid.width])

    for pos, ori, action, goal, look in zip(*(want[k] for k in ("pos", "ori", "action", "goal", "goal_ori"))):
        cell, ori = (pos @ number).tolist(), ori.tolist()
        goals = list(zip(map(tuple, (goal @ number).tolist()), map(tuple, look.tolist())))
        ranks, planned = all_ranks, None
        for t, acts in enumerate(action.tolist()):
            at, facing, after = tuple(cell[t]), ori[t], tuple(cell[t + 1])
            if goals[t] != planned:
                planned, ranks = goals[t], all_ranks
            if not ranks:
                continue
            goal_cells, goal_facing = planned
            found = {}  # what the plan can have been, and for whom
            for rank in ranks:
                for nxt in outcomes(floor, at, goal_cells, rank):
                    moves = [floor.direction(a, b) for a, b in zip(at, nxt)]
                    if explains(moves, facing, acts, goal_facing):
                        found.setdefault(nxt, set()).add(rank)
            assert found, f"step {t}: {at} -> {goal_cells}, actions {acts}"
            checked += 1
            ranks = found.get(after, set()) if len(found) == 1 else set()
    assert checked > want["action"].size // team // 2
