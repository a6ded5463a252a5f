"""What planners read of CUBE, and the ops that they write."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.cube import text
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.skills import CubeSkills, Op, Reason
from jaxcoop.envs.cube.types import Action, Face, Push


def scene(agents, blocks, side=10, listed=None):
    """(environment, state) with agents `(row, col)` and blocks `(weight, row, col)`."""
    env = Cube(side=side, agents=len(agents), blocks=listed or ",".join(f"{block[0]}:1" for block in blocks))
    cells = (*np.array(agents, np.int16).T, *np.array(blocks, np.int16)[:, 1:].T)
    return env, env.start_from(Start(*cells))


@cache
def stepper(env):
    return jax.jit(lambda state, actions: env.step(state, actions, env.sample_draws(jax.random.key(0), state)))


def busy_scene(agents, blocks):
    """(environment, state) of four agents, two blocks of weight 1 and one of weight 2."""
    return scene(agents, blocks, listed="1:2,2:1")


def stepped(env, state, actions):
    """(events, state after) of one step as text."""
    step = stepper(env)(state, jnp.asarray(actions, jnp.int32))
    return text.step_events(env, state, np.asarray(actions), step.events, step.state), step.state


@pytest.mark.parametrize(
    "action, row",
    [
        (None, [-1, -1, -1, -1]),
        ({"action_type": "noop"}, [Op.NOOP, -1, -1, -1]),
        ({"action_type": "wait", "num_steps": 4}, [Op.WAIT, 4, -1, -1]),
        ({"action_type": "move", "direction": "left", "num_steps": 2}, [Op.MOVE, Action.LEFT, 2, -1]),
        ({"action_type": "push", "block_id": 3, "num_steps": 2}, [Op.PUSH, 3, 2, -1]),
        ({"action_type": "push", "block_id": 3, "num_steps": 2, "face": "up"}, [Op.PUSH, 3, 2, Face.UP]),
        ({"action_type": "navigate", "entity_type": "agent", "entity_id": 2}, [Op.NAVIGATE, 1, 2, -1]),
        ({"action_type": "navigate", "entity_type": "goal", "timeout": 9}, [Op.NAVIGATE, 2, -1, 9]),
    ],
)
def test_cube_actions_of_planners_become_op_rows_and_back(action, row):
    assert text.op_row(action) == row
    assert text.op_action(row) == action


@pytest.mark.parametrize(
    "action, row",
    [
        ({"action_type": "MOVE", "direction": "UP", "num_steps": 1}, [Op.MOVE, Action.UP, 1, -1]),
        ({"action_type": "move", "direction": "north", "num_steps": 1}, [Op.MOVE, -1, 1, -1]),
        ({"action_type": "move"}, [Op.MOVE, -1, -1, -1]),
        ({"action_type": "push", "block_id": "two", "num_steps": 2.5}, [Op.PUSH, -1, -1, -1]),
        ({"action_type": "push", "block_id": 10**20, "num_steps": -(10**20)}, [Op.PUSH, 2**31 - 1, -(2**31), -1]),
        ({"action_type": "navigate", "entity_type": "wall", "entity_id": 1}, [Op.NAVIGATE, -1, 1, -1]),
        ({"action_type": "dance"}, [text.UNKNOWN_OP, -1, -1, -1]),
        ({}, [text.UNKNOWN_OP, -1, -1, -1]),
    ],
)
def test_cube_actions_with_wrong_words_or_numbers_have_a_defined_row(action, row):
    assert text.op_row(action) == row


def test_cube_an_unknown_op_row_reads_as_unknown():
    assert text.op_action([text.UNKNOWN_OP, 1, 2, 3]) == {"action_type": "unknown"}
    assert text.op_action([Op.MOVE, 77, 3, -1]) == {"action_type": "move", "num_steps": 3}


def test_cube_reasons_are_told_in_the_words_of_the_records():
    told = [text.reason_text(int(reason), 4, 99) for reason in Reason]
    assert told == [
        "",
        "insufficient_force",
        "blocked_destination",
        "no_contact_with_target_block",
        "pushed block 4 instead of target block 99",
        "navigation_target_not_reached",
    ]


def test_cube_derived_quantities_of_blocks():
    env, state = scene([(0, 0)], [(1, 3, 2), (2, 2, 4), (3, 4, 6)])
    cells = text.block_cells(state)
    assert [text.distance_to_goal(env, b, cells[b][1]) for b in cells] == [7, 4, 1]
    # Block 0 in row 3 has block 1 (rows 2 and 3) ahead; block 2 starts in row 4, and none looks back.
    assert [text.blockers(env, cells, b) for b in cells] == [[1], [], []]


def test_cube_blockers_overlap_in_rows_and_reach_beyond_the_right_edge():
    env, state = scene([(0, 0)], [(1, 5, 5), (3, 3, 2), (2, 2, 7)])
    # 6: block 1 (rows 3-5, columns 2-4) is blocked by 0 and 2; block 0 is beside neither.
    assert text.blockers(env, text.block_cells(state), 1) == [0, 2]
    assert text.blockers(env, text.block_cells(state), 0) == []


def test_cube_symbolic_dictionary_leaves_out_who_is_not_there():
    env, state = scene([(3, 0), (-1, -1), (5, 2)], [(1, 3, 2), (2, -1, -1)], side=8)
    views = text.symbolic(env, state.replace(score=jnp.float32(2)))
    assert len(views) == 3
    view = views[2]
    assert {name: view[name] for name in ("grid_size", "goal_column", "team_score")} == {
        "grid_size": 8,
        "goal_column": 7,
        "team_score": 2.0,
    }
    assert view["agents"] == [
        {"name": "agent_0", "id": 0, "pos": (3, 0)},
        {"name": "agent_2", "id": 2, "pos": (5, 2)},
    ]
    assert view["blocks"] == [{"id": 0, "weight": 1, "pos": (3, 2)}]


def test_cube_view_marks_the_reader_and_lists_blocks_by_distance_weight_and_id():
    env, state = scene([(3, 0), (-1, -1)], [(2, 2, 4), (1, 3, 5), (3, 5, 1)])
    mine, other = text.symbolic_views(env, state)
    assert mine.splitlines() == [
        "You are agent_0, at (3, 0).",
        "Agents on the grid:",
        "- agent_0 (you): row 3, column 0",
        "Blocks still to deliver, closest to the goal first:",
        # Equal distances: the lighter one first.
        "- block 1: weight 1; agents required 1; top-left (3, 5); cells (3, 5); left push cells (3, 4); "
        "distance to goal 4; score if delivered 1; path clear",
        "- block 0: weight 2; agents required 2; top-left (2, 4); cells (2, 4) (2, 5) (3, 4) (3, 5); "
        "left push cells (2, 3) (3, 3); distance to goal 4; score if delivered 2; path clear",
        "- block 2: weight 3; agents required 3; top-left (5, 1); "
        "cells (5, 1) (5, 2) (5, 3) (6, 1) (6, 2) (6, 3) (7, 1) (7, 2) (7, 3); "
        "left push cells (5, 0) (6, 0) (7, 0); distance to goal 6; score if delivered 3; path clear",
    ]
    assert other.splitlines()[0] == "You are agent_1, not on the grid."
    assert "(you)" not in other


def test_cube_view_says_who_is_in_the_way_and_when_no_blocks_remain():
    env, state = scene([(3, 0)], [(1, 3, 0), (2, 2, 4)])
    view = text.symbolic_views(env, state)[0]
    assert "left push cells none, it is at the left edge" in view
    assert "path blocked by block 1" in view
    gone = jnp.full((2,), -1, jnp.int16)
    assert "No blocks remain" in text.symbolic_views(env, state.replace(block_row=gone, block_col=gone))[0]


def test_cube_view_of_a_heavy_block_gives_ranges():
    env, state = scene([(0, 0)], [(9, 3, 4)], side=20)
    view = text.symbolic_views(env, state)[0]
    assert "cells rows 3 to 11, columns 4 to 12" in view
    assert "left push cells rows 3 to 11, columns 3 to 3" in view


def test_cube_task_text_states_the_numbers_of_the_configuration():
    told = text.task_text(Cube(side=12, agents=4, blocks="2:1,1:3"))
    for part in ("12 x 12", "column 11", "4 agents", "4 square blocks: 1 of weight 2, 3 of weight 1", "left face"):
        assert part in told


def test_cube_step_events_tell_pushes_and_deliveries_in_order():
    # 1 and 2 push block 2 up; 0 pushes block 0 into the goal; 3 pushes block 1 against the wall.
    blocks = [(1, 3, 8), (1, 0, 5), (2, 6, 1)]
    env, state = busy_scene([(3, 7), (8, 2), (8, 1), (1, 5)], blocks)
    events, after = stepped(env, state, [Action.RIGHT, Action.UP, Action.UP, Action.UP])
    up = {"block_id": 2, "direction": "up", "agents": ["agent_2", "agent_1"], "force": 2, "required": 2}
    right = {"block_id": 0, "direction": "right", "agents": ["agent_0"], "force": 1, "required": 1}
    sides = [{"face": "down", "task_id": "block_2_down"}, {"face": "left", "task_id": "block_0_left"}]
    assert events["successful_pushes"] == [up | sides[0], right | sides[1]]
    assert events["moved_blocks"] == [0, 2]
    delivery = {"env_step": 1, "block_id": 0, "weight": 1, "value": 1.0, "agents": ["agent_0"]}
    assert events["delivered_blocks"] == [delivery | sides[1]]
    wall = {"block_id": 1, "direction": "up", "agents": ["agent_3"], "force": 1, "required": 1}
    assert events["failed_pushes"] == [wall | {"reason": "blocked_destination"}]
    assert text.block_cells(after) == {1: (0, 5), 2: (5, 1)}


def test_cube_step_events_tell_a_block_that_is_pushed_twice_and_too_little_force():
    # Block 0 goes up with agent 0, then right with agent 1, who stands where it has come to; 4.2.
    blocks = [(1, 4, 4), (1, 8, 8), (2, 6, 6)]
    env, state = busy_scene([(5, 4), (3, 3), (6, 5), (0, 0)], blocks)
    events, _ = stepped(env, state, [Action.UP, Action.RIGHT, Action.RIGHT, Action.STAY])
    assert [(e["block_id"], e["direction"], e["task_id"]) for e in events["successful_pushes"]] == [
        (0, "up", "block_0_down"),
        (0, "right", "block_0_left"),
    ]
    assert events["moved_blocks"] == [0] and events["delivered_blocks"] == []
    short = {"block_id": 2, "direction": "right", "agents": ["agent_2"], "force": 1, "required": 2}
    assert events["failed_pushes"] == [short | {"reason": "insufficient_force"}]


def test_cube_intents_and_push_outcomes_of_a_symbolic_step():
    env, state = busy_scene([(4, 3), (4, 6), (0, 0), (9, 0)], [(1, 4, 4), (1, 8, 8), (2, 6, 6)])
    skills = CubeSkills(env)
    ops = [[Op.PUSH, 2, 1, -1], [Op.PUSH, 0, 1, Face.UP], [Op.MOVE, Action.UP, 2, -1], [-1, -1, -1, -1]]
    memory = skills.begin(state, skills.idle(), jnp.asarray(ops, jnp.int32), jnp.ones((4,), jnp.bool_))
    command, memory = jax.jit(skills.command)(state, memory)
    assert text.intents(np.asarray(ops), command) == [
        {
            "action_type": "push",
            "args": {"block_id": 2, "num_steps": 1},
            "primitive": "move_right",
            "primitive_value": 4,
            "block_id": 2,
            "face": "left",
            "task_id": "block_2_left",
        },
        {
            "action_type": "push",
            "args": {"block_id": 0, "num_steps": 1, "face": "up"},
            "primitive": "move_left",
            "primitive_value": 3,
            "block_id": 0,
            "face": "up",
            "task_id": "block_0_up",
        },
        {
            "action_type": "move",
            "args": {"direction": "up", "num_steps": 2},
            "primitive": "move_up",
            "primitive_value": 1,
        },
        {"action_type": "noop", "args": {}, "primitive": "noop", "primitive_value": 0},
    ]
    after = stepper(env)(state, command).state
    assert text.push_outcome(after, 0, 2) == ("mismatch", "pushed block 0 instead of target block 2")
    assert text.push_outcome(after, 1, 0) == ("blocked", "no_contact_with_target_block")
    assert text.push_outcome(after, 2, -1) == ("", "")
    assert after.last.result.tolist() == [Push.MISMATCH, Push.NO_CONTACT, Push.NONE, Push.NONE]


@pytest.mark.parametrize("action, name", [(0, "noop"), (1, "move_up"), (4, "move_right"), (9, "9"), (-2, "-2")])
def test_cube_primitives_have_names_and_others_are_called_by_their_number(action, name):
    assert text.primitive_name(action) == name
