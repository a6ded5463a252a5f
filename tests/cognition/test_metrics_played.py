"""Attempt events of played steps, exported and read back by the rules for files, are those that environments count."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_logs import CRAFTER_TASKS, CUBE_TASKS, ints, made

from jaxcoop.cognition.logs import RunInfo, log_row, reference_files
from jaxcoop.cognition.metrics import cube_events, macrafter_events
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube.skills import CubeSkills
from jaxcoop.envs.cube.skills import Op as CubeOp
from jaxcoop.envs.cube.vocabulary import CubeVocabulary
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.tasks import known_resource
from jaxcoop.envs.macrafter.types import Action, Command, Item, Material
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary

AGENTS, STEPS = 3, 100
CRAFTER = MACrafter(width=9, height=7, balance=False, vitals=False, max_steps=10 * STEPS)
BLOCKS = Cube(side=10, blocks="1:2,2:2,3:1", max_steps=10 * STEPS)


def log_of(vocabulary, attempts, ops, target, kind, score):
    """A log that has the played steps and otherwise made-up rows."""
    log = made(vocabulary, steps=STEPS)
    process = dataclasses.replace(
        log.process,
        op=ops,
        target=ints(target),
        target_kind=ints(kind),
        task=ints(attempts.task),
        required=ints(attempts.required),
        attempting=ints(attempts.attempting),
        success=np.asarray(attempts.success),
        scores=np.asarray(attempts.score, np.float32),
        event=ints(attempts.event),
        score=np.asarray(score, np.float32),
    )
    return dataclasses.replace(log, process=process)


def crafter_start():
    """Three agents with tools: trees around the first, coal, iron and stone around the others."""
    cells = np.full((CRAFTER.width, CRAFTER.height), Material.GRASS, np.uint8)
    placed = {(2, 3): "TREE", (3, 2): "TREE", (3, 4): "TREE", (4, 2): "COAL", (5, 3): "STONE", (5, 4): "IRON"}
    for cell, name in placed.items():
        cells[cell] = Material[name]
    places = np.array([[3, 3], [4, 3], [4, 4]], np.int16)
    nobody = np.full((6, 2), -1, np.int16)
    state = CRAFTER.start(jnp.asarray(cells), *(jnp.asarray(part) for part in (*nobody.T, *places.T)))
    bag = state.inventory.at[:, Item.WOOD_PICKAXE].set(1)
    bag = bag.at[:2, Item.STONE_PICKAXE : Item.IRON_PICKAXE + 1].set(1)
    return dataclasses.replace(state, inventory=bag), [x * CRAFTER.height + y for x, y in placed]


def play_crafter(key):
    """First steps of many episodes: random collects, with and without a declared cell and a plan that names one."""
    start, near = crafter_start()
    cells = jnp.asarray([-1, -1, *near], jnp.int32)
    nothing = jnp.full((AGENTS,), -1, jnp.int32)

    def step(key):
        kinds, declared, plans, draws = jax.random.split(key, 4)
        collects = jax.random.uniform(kinds, (AGENTS,)) < 0.8
        target = jnp.where(collects, jax.random.choice(declared, cells, (AGENTS,)), -1)
        plan = jax.random.choice(plans, cells, (AGENTS,))
        command = Command(
            action=jnp.where(collects, Action.DO, Action.NOOP),
            share=jnp.zeros((AGENTS, 4), jnp.int32),
            place=nothing,
            target=target,
            plan=plan,
        )
        done, _, happened = CRAFTER.advance(start, command, CRAFTER.sample_draws(draws, start))
        kind = jnp.where(plan >= 0, known_resource(done.state.material.reshape(-1)[jnp.clip(plan, 0)]), 0)
        op = jnp.where(collects, Op.COLLECT, Op.NOOP)
        ops = jnp.stack([op, nothing, jnp.where(target < 0, -1, target + 1), nothing, nothing], 1)
        return happened, ops, jnp.where(kind > 0, plan, -1), jnp.where(kind > 0, kind, -1)

    return jax.vmap(step)(jax.random.split(key, STEPS))


def play_cube(key):
    """Random ops of all kinds, each for one step."""
    skills = CubeSkills(BLOCKS)
    start = BLOCKS.reset(key)

    def step(state, key):
        kinds, first, face, draws = jax.random.split(key, 4)
        kind = jax.random.choice(kinds, jnp.asarray([CubeOp.MOVE, CubeOp.PUSH, CubeOp.PUSH]), (AGENTS,))
        named = jnp.where(kind == CubeOp.MOVE, jax.random.randint(first, (AGENTS,), 1, 5), 0)
        faces = jnp.where(kind == CubeOp.PUSH, jax.random.randint(face, (AGENTS,), -1, 4), -1)
        ops = jnp.stack([kind, named, jnp.ones_like(kind), faces], 1).astype(jnp.int32)
        memory = skills.begin(state, skills.idle(), ops, jnp.ones((AGENTS,), bool))
        command, _ = skills.command(state, memory)
        done = BLOCKS.step(state, command, BLOCKS.sample_draws(draws, state))
        return done.state, (done.events.attempts, ops, done.state.score)

    return jax.lax.scan(step, start, jax.random.split(key, STEPS))[1]


def check(log, vocabulary, read):
    """What the environment counted is what the file gives."""
    files = reference_files(log, vocabulary, RunInfo("individual"), lambda *_: None)
    events = read(files["coop2_process_log.json"])
    process = log.process
    expected = {
        (t + 1, vocabulary.task(int(process.task[t, row]), -1).id): (
            bool(process.success[t, row]), int(process.required[t, row]), process.scores[t, row].tolist()
        )
        for t, row in np.argwhere(process.task >= 0).tolist()
    }  # fmt: skip
    found = {
        (event["env_step"], event["task_id"]): (
            event["success"], event["required_agents"], list(event["constraint_scores"].values())
        )
        for event in events
    }  # fmt: skip
    assert len(found) == len(events) and found.keys() == expected.keys()
    for name, (success, required, scores) in expected.items():
        assert found[name][:2] == (success, required), name
        assert sorted(found[name][2]) == pytest.approx(sorted(scores), abs=1e-6), name
    return expected


def test_coop2_attempts_played_in_macrafter_are_read_back():
    attempts, ops, target, kind = jax.device_get(jax.jit(play_crafter)(jax.random.key(1)))
    vocabulary = MACrafterVocabulary(CRAFTER, CRAFTER_TASKS)
    log = log_of(vocabulary, attempts, ops, target, kind, np.arange(STEPS))
    events = check(log, vocabulary, macrafter_events)
    successes = [success for success, *_ in events.values()]
    assert 10 < sum(successes) < len(successes)
    assert log_row(log)["attempt_constraint_events"] == len(events)
    # Somebody without a target collected two tasks of others at once: one of the events lists nobody.
    assert any(row not in attempts.event[t] for t, row in np.argwhere(attempts.task >= 0))


def test_coop2_attempts_played_in_cube_are_read_back():
    attempts, ops, score = jax.device_get(jax.jit(play_cube)(jax.random.key(2)))
    vocabulary = CubeVocabulary(BLOCKS, CUBE_TASKS)
    nothing = np.full((STEPS, AGENTS), -1)
    log = log_of(vocabulary, attempts, ops, nothing, nothing, score)
    events = check(log, vocabulary, cube_events)
    assert len(events) > 5
