"""Recorded evaluations, guidance and channels of COOP²-Repair in CUBE."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_cases import affected, names, number_of, of_group, plan_views

from jaxcoop.cognition.repair.config import PRESETS
from jaxcoop.cognition.repair.controller import channel
from jaxcoop.envs.cube import guidance, repair, repair_text
from jaxcoop.envs.cube.repair import World
from jaxcoop.envs.cube.skills import OPS, WIDTH
from jaxcoop.envs.cube.text import op_row, task_id
from jaxcoop.envs.cube.types import Face

AGENTS, BLOCKS, HEAVIEST, PLANNED = 6, 3, 3, 8
"""Sizes that hold every recorded case."""


@partial(jax.jit, static_argnames="config")
def check(config, world, views, step):
    """(evaluation, prediction, advice, channel)"""
    evaluation, found = repair.estimate(config, world, views, step)
    failing = guidance.failing_blocks(evaluation, len(world.weight))
    advice = guidance.advise(world, views.is_viewed, failing, failing.any(), step, PLANNED)
    return evaluation, found, advice, channel(views, advice.guidance, evaluation)


def world_of(world):
    """The recorded world, filled up with unplaced agents and delivered blocks to one size for all cases.

    No recorded block is ever between another one and the goal.
    """
    agents, blocks = world["agents"], world["blocks"]
    assert list(agents) == [f"agent_{i}" for i in range(len(agents))]
    assert [block["id"] for block in blocks] == list(range(len(blocks)))
    cells = np.full((AGENTS, 2), -1, np.int32)
    cells[: len(agents)] = list(agents.values())
    squares = np.array([[-1, -1, 1]] * BLOCKS, np.int32)
    squares[: len(blocks)] = [[block[name] for name in ("r", "c", "weight")] for block in blocks]
    return World(world["K"], HEAVIEST, *jnp.asarray(cells.T), *jnp.asarray(squares.T), jnp.zeros(BLOCKS, bool))


def inputs_of(case):
    given, world = case["input"], case["input"]["world"]
    config = dataclasses.replace(PRESETS["cube"], **world.get("cfg", {}))

    def row(action):
        return op_row({"action_type": action["action_type"], **action["args"]})

    views = plan_views(given["plan_views"], AGENTS, PLANNED, row, lambda view: [-1, -1, -1], WIDTH)
    return config, world_of(world), views, jnp.int32(given["env_step"])


def events_of(world, views, found):
    """The predicted events in the order of agents and ops."""
    events, weights = [], np.asarray(world.weight)
    for i in np.flatnonzero(views.is_viewed):
        for k in range(int(views.index[i]), int(views.plan.length[i])):
            block = int(found.block[i, k])
            weight = int(weights[block]) if 0 <= block < len(weights) else 1  # of a block that is not there
            events.append(
                {
                    "agent_id": f"agent_{i}",
                    "action_type": OPS[int(views.plan.ops[i, k, 0])].name,
                    "start_step": int(found.timeline.start[i, k]),
                    "end_step": int(found.timeline.end[i, k]),
                    "position_before": found.timeline.before[i, k].tolist(),
                    "position_after": found.timeline.after[i, k].tolist(),
                    "task_id": task_id(block, Face.LEFT) if block >= 0 else None,
                    "target_type": f"weight_{weight}",
                    "inventory_before": {},
                    "inventory_after": {},
                }
            )
    return events


def recorded_result(result):
    """A recorded result as it is told here: the amount is told too, and that there is a reason goes without saying."""
    assert result["has_reason"] == (not result["satisfied"])
    told = {key: value for key, value in result.items() if key != "has_reason"}
    return {**told, "score": pytest.approx(result["score"], abs=1e-9)}


@pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("repair.cube"))
def test_cube_evaluations_replay(case):
    config, world, views, step = inputs_of(case)
    evaluation, found, _, _ = jax.device_get(check(config, world, views, step))
    expected = case["expected"]["evaluation"]
    said = repair_text.results(config, evaluation, found)
    required = [result.pop("required_agents") for result in said]
    weights = {f"block_{block['id']}_left": block["weight"] for block in case["input"]["world"]["blocks"]}

    assert said == [recorded_result(r) for r in expected["results"]]
    assert required == [weights[result["task_id"]] for result in said]
    assert [r for r in said if not r["satisfied"]] == [recorded_result(r) for r in expected["failures"]]
    assert affected(evaluation, AGENTS) == expected["affected_agents"]
    assert bool((evaluation.failed & evaluation.checked).any()) == expected["should_repair"]
    assert expected["env_step"] == step
    viewed = [number_of(view["agent_id"]) for view in case["input"]["plan_views"]]
    summary = repair_text.summaries(config, evaluation, found)
    assert expected["metadata"] == {
        "prediction": {
            "events": events_of(world, views, found),
            "final": {f"agent_{i}": [found.timeline.after[i, -1].tolist(), {}] for i in viewed},
        },
        "task_event_summary": summary,
        "tasks_evaluated": list(summary),
        "unresolved_agents": [],
    }


@pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("repair.cube"))
def test_cube_guidance_and_channels_replay(case):
    config, world, views, step = inputs_of(case)
    evaluation, _, advice, members = jax.device_get(check(config, world, views, step))
    expected = case["expected"]
    if expected["guidance"] is None:
        assert not advice.guidance.has_target
        assert expected["channel"] is None
        return
    assert expected["guidance"] == repair_text.guidance(world.weight, evaluation, advice)
    assert expected["channel"] == names(members)
    plan = advice.guidance.plan
    for i in np.flatnonzero(advice.guidance.has_plan):
        assert plan.spec[i].tolist() == [guidance.TASKS.index("push_block"), advice.guidance.target // 4, -1]
        assert (plan.ops[i, plan.length[i] :] == -1).all()
