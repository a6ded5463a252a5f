"""COOP²-Repair in CUBE: what becomes of planned pushes."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair.config import PRESETS, RepairConfig
from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.envs.cube import repair
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.skills import Entity, Op
from jaxcoop.envs.cube.types import Action, Face

ENV = Cube(side=15, agents=2, blocks="2:1,1:1")
OPS = 4
PAIR = [(5, 0), (6, 1)]
BLOCKS = [(5, 5), (10, 7)]

VISIT = (Op.NAVIGATE, Entity.BLOCK, 0, 30)
PUSH = (Op.PUSH, 0, 4, -1)


def state_of(cells=PAIR, blocks=BLOCKS, t=0):
    rows, cols = zip(*cells, strict=True)
    start = Start(*map(np.array, (rows, cols, *zip(*blocks, strict=True))))
    return dataclasses.replace(ENV.start_from(start), t=jnp.int32(t))


def views_of(*plans, index=(0, 0)):
    """Committed plans, rows of ops; None is no view."""
    ops, length = np.full((2, OPS, 4), -1, np.int32), np.zeros(2, np.int32)
    for i, plan in enumerate(plans):
        for k, row in enumerate(plan or ()):
            ops[i, k, : len(row)], length[i] = row, k + 1
    viewed = jnp.array([plan is not None for plan in plans])
    plan = Plan(jnp.full((2, 3), -1, jnp.int32), jnp.asarray(ops), jnp.asarray(length))
    return PlanViews(viewed, viewed, jnp.ones(2, jnp.int32), jnp.asarray(index, jnp.int32), plan)


@partial(jax.jit, static_argnames="config")
def estimated(config, state, views):
    return repair.estimate(config, repair.world_of(ENV, state), views, state.t)


def estimate(*plans, config=PRESETS["cube"], index=(0, 0), **state):
    return jax.device_get(estimated(config, state_of(**state), views_of(*plans, index=index)))


def scores(evaluation):
    """Scores by task slot."""
    return {int(evaluation.task[row]): evaluation.score[row].tolist() for row in np.flatnonzero(evaluation.first)}


def test_two_pushers_who_come_in_time_satisfy_everything():
    """The worked example A."""
    evaluation, found = estimate([VISIT, PUSH], [VISIT, PUSH])
    assert scores(evaluation) == {Face.LEFT: [1, 1, 1]}
    assert not evaluation.failed.any()
    assert found.timeline.start[:, 1].tolist() == [4, 3]
    assert found.timeline.end[:, 1].tolist() == [8, 7]
    assert found.window.anchor[evaluation.first] == 3


def test_a_pusher_without_partner_fails_half():
    """The worked example B."""
    evaluation, _ = estimate([VISIT, PUSH], None)
    assert scores(evaluation) == {Face.LEFT: [0.5, 0.5, 1]}
    assert evaluation.failed[evaluation.first].tolist() == [[True, True, False]]
    assert np.flatnonzero(evaluation.named[:, 0]).tolist() == [1]


def test_the_environment_and_the_core_agree():
    state, views = state_of(t=7), views_of([VISIT, PUSH], [VISIT])
    through = jax.jit(repair.evaluate, static_argnums=(0, 1))(ENV, PRESETS["cube"], state, views)
    jax.tree.map(np.testing.assert_array_equal, through, estimated(PRESETS["cube"], state, views)[0])
    assert repair.num_kinds(ENV) == 2
    assert through.kind[through.first].tolist() == [1]
    assert through.required[through.first].tolist() == [2]


def test_only_remaining_ops_count():
    done = estimate([VISIT, PUSH], [PUSH, VISIT], index=(0, 1))[0]
    assert scores(done) == {Face.LEFT: [0.5, 0.5, 1]}
    early = estimate([VISIT, PUSH], [VISIT, PUSH], index=(1, 1))[1]
    assert early.timeline.start[:, 1].tolist() == [0, 0]


@pytest.mark.parametrize(("axes", "landing"), [("published", [[8, 0], [5, 1]]), ("corrected", [[5, 3], [6, 0]])])
def test_predicted_moves_run_along_the_chosen_axes(axes, landing):
    config = dataclasses.replace(PRESETS["cube"], axes=axes)
    moves = [[(Op.MOVE, Action.RIGHT, 3)], [(Op.MOVE, Action.LEFT, 2), (Op.MOVE, Action.RIGHT, 1)]]
    _, found = estimate(*moves, config=config)
    assert found.timeline.after[:, -1].tolist() == landing


def test_corrected_moves_bring_the_team_to_the_face():
    plans = [[(Op.MOVE, Action.RIGHT, 4), PUSH], [(Op.MOVE, Action.RIGHT, 3), PUSH]]
    assert scores(estimate(*plans)[0])[Face.LEFT][0] == 0
    corrected = estimate(*plans, config=dataclasses.replace(PRESETS["cube"], axes="corrected"))[0]
    assert scores(corrected) == {Face.LEFT: [1, 1, 1]}


@pytest.mark.parametrize(("tolerance", "score"), [(0, 0.5), (1, 0.5), (2, 1.0)])
def test_a_position_may_be_off_by_the_spatial_tolerance(tolerance, score):
    config = RepairConfig(spatial_tolerance=tolerance, temporal_tolerance=1)
    assert scores(estimate([PUSH], [PUSH], config=config, cells=[(5, 4), (7, 3)])[0])[Face.LEFT][0] == score


@pytest.mark.parametrize(
    ("op", "steps"),
    [
        ((Op.MOVE, Action.UP, 3), 3),
        ((Op.WAIT, 6), 6),
        ((Op.PUSH, 0, 9, -1), 9),
        ((Op.NOOP,), 1),
        ((9,), 1),
        ((Op.NAVIGATE, Entity.GOAL, 0, 12), 12),  # nothing tells the block: the time-out
        ((Op.NAVIGATE, Entity.GOAL, 0, -1), 30),
        ((Op.NAVIGATE, Entity.GOAL, 0, 0), 30),
        ((Op.NAVIGATE, Entity.BLOCK, 7, 11), 11),  # there is no such block
        ((Op.NAVIGATE, Entity.BLOCK, 1, 12), 11),
        ((Op.WAIT, -3), 1),
    ],
)
def test_durations(op, steps):
    _, found = estimate([op], None)
    assert found.timeline.end[0, 0] == steps


def test_every_navigation_goes_to_the_block_of_the_plan():
    """Wherever it was meant to lead: the target of an op that names no block is that of the view's task."""
    plan = [(Op.NAVIGATE, Entity.AGENT, 1, 30), PUSH]
    _, found = estimate(plan, None)
    assert found.timeline.after[0].tolist() == [[5, 4]] * OPS
    assert found.block[0].tolist() == [0, 0, -1, -1]


def test_landing_cells_are_nearest_to_where_the_agent_is_now():
    _, found = estimate([(Op.NAVIGATE, Entity.BLOCK, 1, 30), VISIT], None, cells=[(0, 0), (6, 1)])
    assert found.timeline.after[0, :2].tolist() == [[10, 6], [5, 4]]


def test_the_task_of_a_plan_is_that_of_the_first_op_that_names_a_block():
    plan = [(Op.WAIT, 2), (Op.PUSH, 1, 3, Face.UP), PUSH]
    evaluation, found = estimate(plan, None)
    assert (found.named[0], found.face[0]) == (1, Face.UP)
    assert set(scores(evaluation)) == {Face.LEFT, 4 + Face.LEFT}  # every group is one of left faces


def test_a_push_without_block_is_that_of_the_plan():
    evaluation, _ = estimate([VISIT, (Op.PUSH, -1, 3, -1)], None)
    assert scores(evaluation) == {Face.LEFT: [0.5, 0.5, 1]}


@pytest.mark.parametrize("block", [2, 400, 1])
def test_pushes_of_blocks_that_are_not_there_make_no_group(block):
    """Block 1 is delivered."""
    plan = [(Op.NAVIGATE, Entity.BLOCK, block, 5), (Op.PUSH, block, 3, -1)]
    evaluation, found = estimate(plan, None, blocks=[(5, 5), (-1, -1)])
    assert not (evaluation.checked.any() or evaluation.first.any())
    assert found.timeline.after[0, 0].tolist() == [5, 0]


def test_nobody_stands_at_a_face_outside_the_grid():
    evaluation, found = estimate([VISIT, PUSH], None, blocks=[(5, 0), (-1, -1)])
    assert scores(evaluation) == {Face.LEFT: [0, 0.5, 1]}
    assert found.timeline.end[0, 0] == 30


def test_agents_without_a_place_reach_nothing():
    evaluation, found = estimate([VISIT, PUSH], [VISIT, PUSH], cells=[(5, 0), (-1, -1)])
    assert found.timeline.end[:, 0].tolist() == [4, 30]
    assert scores(evaluation)[Face.LEFT][0] == 0.5
    # These moves would lead to the face from the cell that stands for no place.
    moves = [(Op.MOVE, Action.RIGHT, 6), (Op.MOVE, Action.DOWN, 5), PUSH]
    evaluation, found = estimate([VISIT, (Op.WAIT, 7), PUSH], moves, cells=[(5, 0), (-1, -1)])
    assert found.timeline.after[1, 1].tolist() == [5, 4]
    assert scores(evaluation)[Face.LEFT] == [0.5, 1, 1]


def test_whoever_is_at_the_face_at_the_anchor_is_named():
    """The other one pushes in time from the wrong place: it is named by the temporal result alone."""
    evaluation, _ = estimate([VISIT, PUSH], [(Op.WAIT, 3), PUSH])
    assert scores(evaluation) == {Face.LEFT: [0.5, 1, 1]}
    assert evaluation.named[evaluation.task >= 0].tolist() == [[True, True, True], [False, True, True]]


def test_a_lower_threshold_accepts_half_a_team():
    config = dataclasses.replace(PRESETS["cube"], thresholds=(0.5, 0.5, 1.0))
    assert not estimate([VISIT, PUSH], None, config=config)[0].failed.any()
