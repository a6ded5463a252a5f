"""Recorded symbolic episodes of the crafting world, played again: files symbolic*.npz.

Episodes on maps of one size are played together, padded with agents that were removed before the start, with free cow
slots and with steps after the end.
"""

import dataclasses
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.skills import Status
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.skills import MACrafterSkills
from jaxcoop.envs.macrafter.types import RESOURCE_ITEMS, Draws, Material


@cache
def episodes_of(path):
    """Arrays of every episode of a file, by name without the prefix."""
    data = np.load(path)
    names = [key.removeprefix("ep0_") for key in data.files if key.startswith("ep0_")]
    return [{name: data[f"ep{e}_{name}"] for name in names} for e in range(int(data["n_episodes"]))]


LARGE = 48
"""Maps from this side on are played again with the slow tests: they need programs of their own for the same rules."""


def marks_of(side):
    """Marks of the tests on maps of one size."""
    return [pytest.mark.slow] * (side >= LARGE)


def sides(path):
    """(name, (path, side), marks) of the map sizes in a file."""
    found = sorted({int(episode["side"]) for episode in episodes_of(path)})
    return ((f"{side}x{side}", (path, side), *marks_of(side)) for side in found)


def padded(array, length, fill, axis=0):
    """The array, longer along an axis."""
    widths = [(0, length - size if k == axis else 0) for k, size in enumerate(array.shape)]
    return np.pad(array, widths, constant_values=fill)


def stations(material, code, slots):
    """Cells of a station material in x-major order, -1 behind."""
    cells = np.flatnonzero(material.reshape(-1) == code)
    return padded(cells, slots, -1).astype(np.int16)


def start_of(env, episode):
    """The recorded first state; agents beyond those of the episode are removed."""
    blank = jax.eval_shape(env.reset, jax.eval_shape(lambda: jax.random.key(0)))
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), blank)
    n, agents = int(episode["n"]), env.num_agents
    cows, first = len(episode["init_cow_pos"]), episode["init_mat"].size + 1
    slots = state.cow_x.shape[0]
    inventory = padded(episode["init_inv"], agents, 0)
    fields = {
        "material": episode["init_mat"],
        "cow_x": padded(episode["init_cow_pos"][:, 0], slots, -1),
        "cow_y": padded(episode["init_cow_pos"][:, 1], slots, -1),
        "cow_id": padded(first + np.arange(cows), slots, -1),
        "x": padded(episode["init_pos"][:, 0], agents, -1),
        "y": padded(episode["init_pos"][:, 1], agents, -1),
        "facing": padded(episode["init_facing"], agents, 3),
        "inventory": inventory,
        "achievements": padded(episode["init_ach"], agents, 0),
        "counters": padded(2 * episode["init_counters"], agents, 0),
        "sleeping": padded(episode["init_sleeping"], agents, False),
        "last_health": padded(episode["init_last_health"], agents, 0),
        "removed": padded(episode["init_removed"], agents, True),
        "paid": inventory[:, [int(item) for item in RESOURCE_ITEMS]],
        "next_id": first + cows + n,
        "agent_id": first + cows,
        "table": stations(episode["init_mat"], Material.TABLE, state.table.shape[0]),
        "furnace": stations(episode["init_mat"], Material.FURNACE, state.furnace.shape[0]),
        "plant": np.full(state.plant.shape, -1),
        "plant_id": np.full(state.plant.shape, -1),
    }
    typed = {name: np.asarray(value).astype(getattr(state, name).dtype) for name, value in fields.items()}
    return dataclasses.replace(state, **typed)


def inputs_of(episode, steps, agents, slots):
    """Ops, plans, and cow directions of every step."""
    ops = np.concatenate([episode["op"][..., None].astype(np.int32), episode["args"]], axis=-1)
    ops = padded(padded(ops, agents, -1, axis=1), steps, -1)
    plan = padded(padded(episode["plan_target"].astype(np.int32), agents, -1, axis=1), steps, -1)
    cow = padded(padded(np.maximum(episode["cow_dir"], -1).astype(np.int8), slots, -1, axis=1), steps, -1)
    return ops, plan, cow


@partial(jax.jit, static_argnums=0)
def _play(env, start, inputs):
    skills = MACrafterSkills(env)

    def one_episode(state, inputs):
        def step(carry, now):
            state, memory, fresh = carry
            ops, plan, cow = now
            memory = dataclasses.replace(skills.begin(state, memory, ops, fresh), plan=plan)
            command, memory = skills.command(state, memory)
            nxt, _, attempts = env.advance(state, command, Draws(cow=cow, balance=None))
            report = skills.check(nxt.state, memory)
            seen = {
                "state": nxt.state,
                "command": command,
                "has_path": memory.has_path,
                "elapsed": memory.elapsed,
                "report": report,
                "reward": nxt.reward,
                "attempts": attempts,
            }
            return (nxt.state, memory, report.status != Status.PENDING), seen

        fresh = jnp.ones(env.num_agents, jnp.bool_)
        return jax.lax.scan(step, (state, skills.idle(), fresh), inputs)[1]

    return jax.vmap(one_episode)(start, inputs)


@cache
def replay(path, side):
    """[(number, recorded arrays, what the replay saw)] of the episodes on maps of one size; leaves [T, ...]."""
    chosen = [(e, episode) for e, episode in enumerate(episodes_of(path)) if int(episode["side"]) == side]
    steps = max(int(episode["T"]) for _, episode in chosen)
    agents = max(int(episode["n"]) for _, episode in chosen)
    env = MACrafter(agents=agents, width=side, height=side, max_steps=steps + 1, balance=False, end_on_death=False)
    start = [start_of(env, episode) for _, episode in chosen]
    slots = start[0].cow_x.shape[0]
    inputs = [inputs_of(episode, steps, agents, slots) for _, episode in chosen]
    seen = jax.device_get(_play(env, *(jax.tree.map(lambda *leaves: np.stack(leaves), *x) for x in (start, inputs))))
    cut = [jax.tree.map(lambda leaf, i=i, e=e: leaf[i, : int(e["T"])], seen) for i, (_, e) in enumerate(chosen)]
    return env, [(number, episode, trace) for (number, episode), trace in zip(chosen, cut, strict=True)]
