"""Symbolic actions of CUBE: each rule of the executor."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.skills import Status
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.skills import REASONS, CubeSkills, Entity, Op, Reason
from jaxcoop.envs.cube.types import Action, Face, Push

STAY, UP, DOWN, LEFT, RIGHT = (int(a) for a in Action)
PENDING, SUCCESS, FAILED = (int(s) for s in Status)


ONE, OTHER, TWO, PAIR, THREE = range(5)
"""Ids of the blocks of a `Team`: two of weight 1, two of weight 2, one of weight 3."""

ENV = Cube(side=10, agents=5, blocks="1:2,2:2,3:1")
LEGACY = Cube(side=10, agents=5, blocks="1:2,2:2,3:1", revision="legacy")


@cache
def player(env):
    """One step of symbolic play, compiled."""
    skills = CubeSkills(env)

    def play(state, memory, ops, fresh):
        memory = skills.begin(state, memory, ops, fresh)
        command, memory = skills.command(state, memory)
        state = env.step(state, command, env.sample_draws(jax.random.key(0), state)).state
        return state, memory, command, skills.check(state, memory)

    return play


@cache
def compiled(env):
    return jax.jit(player(env))


class Team:
    """One episode, played op by op; an op starts when it is given, and runs on until the next one is."""

    def __init__(self, agents, blocks=None, env=ENV):
        """`agents` are the cells of the first ones, `blocks` those of the blocks that are there; by id, (row, col)."""
        self.size, self.env = len(agents), env
        self.play_step = compiled(env)
        blocks = blocks or {OTHER: (8, 1)}
        cells = [[*agents, *[(-1, -1)] * 5][:5], [blocks.get(b, (-1, -1)) for b in range(5)]]
        (row, col), (block_row, block_col) = (np.array(x, np.int16).T for x in cells)
        self.state = env.start_from(Start(row, col, block_row, block_col))
        self.memory = CubeSkills(env).idle()

    def play(self, *ops):
        """(actions, statuses, reasons) of one step, before which ops may start; None goes on with the running one."""
        rows = [[*(op or ()), -1, -1, -1, -1][:4] for op in [*ops, *[None] * 5][:5]]
        fresh = [op is not None for op in [*ops, *[None] * 5][:5]]
        inputs = jnp.asarray(rows, jnp.int32), jnp.asarray(fresh)
        self.state, self.memory, self.command, report = self.play_step(self.state, self.memory, *inputs)
        return tuple(x.tolist()[: self.size] for x in (self.command.action, report.status, report.reason))

    @property
    def cells(self):
        return list(zip(self.state.row.tolist(), self.state.col.tolist()))[: self.size]

    def result(self, name):
        return getattr(self.state.last, name).tolist()[: self.size]

    def intent(self, name):
        return getattr(self.command, name).tolist()[: self.size]


# Navigation


def test_cube_navigate_prefers_right_then_down_then_up_then_left():
    # The agent stands opposite the middle of the left face of a block of weight 3: one way, to the right.
    assert Team([(5, 0)], {THREE: (4, 5)}).play((Op.NAVIGATE, Entity.BLOCK, THREE))[0] == [RIGHT]
    # The goal cell of the own row behind a block: the ways around it above and below are equally long.
    assert Team([(4, 2)], {ONE: (4, 3)}).play((Op.NAVIGATE, Entity.GOAL))[0] == [DOWN]
    # Where down is taken, up.
    assert Team([(4, 2), (5, 2)], {ONE: (4, 3)}).play((Op.NAVIGATE, Entity.GOAL), (Op.NOOP,))[0][0] == UP


def test_cube_navigate_pushes_on_at_the_nearest_target_when_there_is_no_way():
    # In a corner behind a block: the target is three columns away and one row, so sideways.
    team = Team([(0, 0), (1, 0)], {ONE: (0, 1), OTHER: (1, 4)})
    assert team.play((Op.NAVIGATE, Entity.BLOCK, OTHER), (Op.WAIT, 9))[0] == [RIGHT, STAY]


def test_cube_navigate_ends_with_success_on_a_left_push_cell():
    team = Team([(4, 1)], {TWO: (4, 4)})
    assert team.play((Op.NAVIGATE, Entity.BLOCK, TWO)) == ([RIGHT], [PENDING], [0])
    assert team.play() == ([RIGHT], [SUCCESS], [0])
    assert team.cells == [(4, 3)]


def test_cube_navigate_stands_still_on_its_target_and_succeeds():
    assert Team([(4, 3)], {TWO: (4, 4)}).play((Op.NAVIGATE, Entity.BLOCK, TWO)) == ([STAY], [SUCCESS], [0])


@pytest.mark.parametrize(
    "op",
    [
        (Op.NAVIGATE, Entity.BLOCK, 7, 2),  # no such block
        (Op.NAVIGATE, Entity.BLOCK, -1, 2),
        (Op.NAVIGATE, Entity.BLOCK, 2**31 - 1, 2),
        (Op.NAVIGATE, Entity.AGENT, 9, 2),
        (Op.NAVIGATE, 5, 0, 2),  # no such kind of thing
        (Op.NAVIGATE, -(2**31), 0, 2),
    ],
)
def test_cube_navigate_without_targets_stands_still_until_its_time_is_out(op):
    team = Team([(4, 3)], {TWO: (4, 5)})
    assert team.play(op) == ([STAY], [PENDING], [0])
    assert team.play() == ([STAY], [FAILED], [Reason.TARGET_NOT_REACHED])


def test_cube_a_block_in_the_first_column_has_no_left_push_cells():
    team = Team([(4, 3)], {TWO: (4, 0)})
    assert team.play((Op.NAVIGATE, Entity.BLOCK, TWO, 1)) == ([STAY], [FAILED], [Reason.TARGET_NOT_REACHED])


def test_cube_navigate_to_oneself_succeeds_and_to_another_agent_fails():
    team = Team([(4, 3), (4, 5)])
    actions, statuses, _ = team.play((Op.NAVIGATE, Entity.AGENT, 0), (Op.NAVIGATE, Entity.AGENT, 0, 3))
    assert (actions, statuses) == ([STAY, LEFT], [SUCCESS, PENDING])
    assert team.play((Op.NOOP,), None)[:2] == ([STAY, LEFT], [SUCCESS, PENDING])
    assert team.play((Op.NOOP,), None) == ([STAY, LEFT], [SUCCESS, FAILED], [0, Reason.TARGET_NOT_REACHED])


def test_cube_only_the_first_revision_walks_onto_the_agent_that_it_navigates_to():
    # A wall of blocks on the straight way: `current` finds no way at all and goes straight at it.
    wall = {TWO: (3, 4)}
    agents, ops = [(4, 3), (4, 6)], ((Op.NAVIGATE, Entity.AGENT, 1), (Op.NOOP,))
    assert Team(agents, wall).play(*ops)[0][0] == RIGHT
    assert Team(agents, wall, LEGACY).play(*ops)[0][0] == DOWN


def test_cube_navigate_to_the_goal_follows_the_own_row_and_cannot_enter_it():
    team = Team([(4, 6)])
    for ops in [[(Op.NAVIGATE, Entity.GOAL)], [], []]:
        assert team.play(*ops)[:2] == ([RIGHT], [PENDING])
    assert team.cells == [(4, 8)]


def test_cube_navigate_goes_on_when_team_mates_push_the_block_away():
    team = Team([(4, 3), (3, 4)], {ONE: (4, 4)})
    # Agent 0 stands on the push cell; agent 1 pushes the block down in the same step.
    assert team.play((Op.NAVIGATE, Entity.BLOCK, ONE), (Op.MOVE, DOWN, 1))[1] == [PENDING, SUCCESS]
    assert team.play(None, (Op.NOOP,)) == ([DOWN, STAY], [SUCCESS, SUCCESS], [0, 0])


@pytest.mark.parametrize("given, steps", [(0, 30), (-1, 30), (-5, 1), (1, 1), (3, 3), (-(2**31), 1)])
def test_cube_navigate_counts_its_timeout(given, steps):
    team = Team([(4, 3)])
    statuses = [team.play(*([(Op.NAVIGATE, Entity.BLOCK, 5, given)] if t == 0 else []))[1][0] for t in range(steps)]
    assert statuses == [PENDING] * (steps - 1) + [FAILED]


# The executor


def test_cube_move_succeeds_even_if_the_agent_never_moves():
    team = Team([(0, 0)])
    assert team.play((Op.MOVE, UP, 2)) == ([UP], [PENDING], [0])
    assert team.play() == ([UP], [SUCCESS], [0])
    assert team.cells == [(0, 0)]


@pytest.mark.parametrize("direction", [0, 5, -1, 2**31 - 1, -(2**31)])
def test_cube_move_in_an_unknown_direction_stays_and_succeeds(direction):
    assert Team([(4, 4)]).play((Op.MOVE, direction, 1)) == ([STAY], [SUCCESS], [0])


@pytest.mark.parametrize("steps", [0, -1, -(2**31), 1])
@pytest.mark.parametrize("op", [(Op.MOVE, LEFT), (Op.WAIT,), (Op.PUSH, 0)], ids=["move", "wait", "push"])
def test_cube_steps_below_one_count_as_one(op, steps):
    assert Team([(4, 4)]).play((*op, steps))[1] != [PENDING]


def test_cube_wait_and_noop_stay_and_succeed():
    team = Team([(4, 4), (6, 4)])
    assert team.play((Op.WAIT, 2), (Op.NOOP,)) == ([STAY, STAY], [PENDING, SUCCESS], [0, 0])
    assert team.play() == ([STAY, STAY], [SUCCESS, SUCCESS], [0, 0])


def test_cube_an_unknown_op_stays_and_never_ends_and_no_op_runs_nothing():
    team = Team([(4, 4), (6, 4), (8, 4)])
    for t in range(3):
        assert team.play(*([(17, 1, 1), (-1,), (-9,)] if t == 0 else [])) == ([STAY] * 3, [PENDING] * 3, [0] * 3)
    assert team.intent("block") == [-1] * 3


@pytest.mark.parametrize(
    "agent, direction",
    [
        ((4, 3), RIGHT),
        ((5, 3), RIGHT),
        ((4, 6), LEFT),
        ((5, 6), LEFT),
        ((3, 4), DOWN),
        ((3, 5), DOWN),
        ((6, 4), UP),
        ((6, 5), UP),
        ((9, 0), RIGHT),  # sideways on equal distances
        ((0, 0), RIGHT),
        ((0, 9), LEFT),
        ((0, 1), DOWN),
    ],
)
def test_cube_push_goes_toward_the_centre_of_the_block(agent, direction):
    assert Team([agent], {TWO: (4, 4)}).play((Op.PUSH, TWO, 1))[0] == [direction]


@pytest.mark.parametrize("block", [PAIR, -1, 99, 2**31 - 1, -(2**31)])
def test_cube_pushing_a_block_that_does_not_exist_walks_right_and_fails(block):
    team = Team([(4, 3)], {ONE: (8, 1)})
    assert team.play((Op.PUSH, block, 1)) == ([RIGHT], [FAILED], [Reason.NO_CONTACT])
    assert team.cells == [(4, 4)]


def test_cube_push_runs_all_its_steps_and_succeeds_if_one_of_them_did():
    team = Team([(3, 6)], {ONE: (3, 7), OTHER: (0, 1)})
    statuses = [team.play(*([(Op.PUSH, ONE, 4)] if t == 0 else []))[1][0] for t in range(4)]
    assert statuses == [PENDING, PENDING, PENDING, SUCCESS]
    assert team.cells == [(3, 8)]  # two pushes deliver the block; in front of the goal the agent is stopped


def test_cube_a_push_that_failed_tells_the_reason_of_its_last_step():
    team = Team([(3, 1)], {TWO: (3, 3)})
    assert team.play((Op.PUSH, TWO, 2)) == ([RIGHT], [PENDING], [0])  # walks up
    assert team.play() == ([RIGHT], [FAILED], [Reason.INSUFFICIENT_FORCE])
    assert team.result("result") == [Push.INSUFFICIENT_FORCE]


def test_cube_a_push_forgets_the_success_of_the_one_before():
    team = Team([(3, 3)], {ONE: (3, 4), TWO: (3, 6)})
    assert team.play((Op.PUSH, ONE, 1))[1] == [SUCCESS]
    assert team.play((Op.PUSH, ONE, 1)) == ([RIGHT], [FAILED], [Reason.BLOCKED_DESTINATION])


def test_cube_a_push_that_moves_another_block_fails_with_its_number():
    team = Team([(3, 3)], {ONE: (3, 4), OTHER: (3, 8)})
    assert team.play((Op.PUSH, OTHER, 1)) == ([RIGHT], [FAILED], [Reason.MISMATCH])
    assert team.result("pushed") == [ONE]


def test_cube_an_op_that_starts_cancels_the_running_one():
    team = Team([(4, 4)])
    assert team.play((Op.NAVIGATE, Entity.BLOCK, 5))[1] == [PENDING]
    assert team.play((Op.MOVE, UP, 2)) == ([UP], [PENDING], [0])
    assert team.play() == ([UP], [SUCCESS], [0])


def test_cube_only_agents_in_fresh_start_their_op():
    team = Team([(4, 4), (6, 4)])
    team.play((Op.MOVE, UP, 3), (Op.MOVE, DOWN, 3))
    assert team.play((Op.MOVE, RIGHT, 1), None)[:2] == ([RIGHT, DOWN], [SUCCESS, PENDING])


def test_cube_an_op_that_has_ended_leaves_its_agent_standing():
    team = Team([(4, 4)], {ONE: (4, 5)})
    team.play((Op.PUSH, ONE, 1))
    assert team.play()[0] == [STAY]
    assert team.intent("block") == [-1]


def test_cube_intents_name_the_face_of_the_primitive_unless_one_is_given():
    team = Team([(4, 3), (3, 4), (6, 4), (4, 6), (8, 8)], {TWO: (4, 4)})
    team.play(*[(Op.PUSH, TWO, 1)] * 4, (Op.PUSH, TWO, 1, Face.DOWN))
    assert team.intent("face") == [Face.LEFT, Face.UP, Face.DOWN, Face.RIGHT, Face.DOWN]
    assert team.intent("block") == [TWO] * 5
    assert team.intent("action") == [RIGHT, DOWN, UP, LEFT, LEFT]


def test_cube_an_agent_that_has_no_place_does_not_navigate():
    team = Team([(4, 3), (-1, -1)], {TWO: (4, 5)})
    ops = ((Op.NAVIGATE, Entity.AGENT, 1, 1), (Op.NAVIGATE, Entity.BLOCK, TWO, 1))
    assert team.play(*ops) == ([STAY, STAY], [FAILED, FAILED], [Reason.TARGET_NOT_REACHED] * 2)
    assert team.play((Op.NOOP,), (Op.NAVIGATE, Entity.GOAL, 0, 1))[1] == [SUCCESS, FAILED]


def test_cube_skills_keep_the_types_of_their_memory_and_are_the_same_in_a_batch():
    rng, episodes = np.random.default_rng(3), 8
    agents, blocks = rng.integers(0, 9, (2, episodes, 5)), rng.integers(0, 7, (2, episodes, 5))
    states = jax.vmap(ENV.start_from)(Start(*(jnp.asarray(x, jnp.int16) for x in (*agents, *blocks))))
    idle = CubeSkills(ENV).idle()
    together = (states, jax.tree.map(lambda x: jnp.tile(x, (episodes, *[1] * x.ndim)), idle))
    alone = [(jax.tree.map(lambda x: x[e], states), idle) for e in range(episodes)]  # noqa: B023
    batch = jax.jit(jax.vmap(player(ENV)))
    for _ in range(12):
        ops = jnp.asarray(rng.integers(-2, 6, (episodes, 5, 4)), jnp.int32)
        fresh = jnp.asarray(rng.random((episodes, 5)) < 0.5)
        out = batch(*together, ops, fresh)
        singles = [compiled(ENV)(*carry, ops[e], fresh[e]) for e, carry in enumerate(alone)]
        jax.tree.map(np.testing.assert_array_equal, out, jax.tree.map(lambda *x: np.stack(x), *singles))
        types = [[(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(carry)] for carry in (together, out[:2])]
        assert types[0] == types[1] and not any(weak for _, _, weak in types[1])
        together, alone = out[:2], [single[:2] for single in singles]


@pytest.mark.parametrize("agents", [1, 3, 16, 128])
def test_cube_skills_work_for_any_team(agents):
    env = Cube(side=24, agents=agents, blocks="3:1")
    skills = CubeSkills(env)
    row = np.full(agents, -1, np.int16)
    row[:24] = np.arange(24)[:agents]
    state = env.start_from(Start(row, np.minimum(row, 0), np.array([5], np.int16), np.array([9], np.int16)))
    ops = jnp.tile(jnp.asarray([[Op.NAVIGATE, Entity.BLOCK, 0, 5]], jnp.int32), (agents, 1))
    memory = skills.begin(state, skills.idle(), ops, jnp.ones((agents,), jnp.bool_))
    command, memory = jax.jit(skills.command)(state, memory)
    np.testing.assert_array_equal(command.action, np.where(row >= 0, RIGHT, STAY))
    assert skills.check(state, memory).status.tolist() == [PENDING] * agents


def test_cube_looked_up_entries_are_the_same_for_small_and_large_teams(monkeypatch):
    from jaxcoop.envs.cube import skills

    ids = jnp.asarray([-(2**31), -1, 0, 2, 3, 2**31 - 1], jnp.int32)
    table = jnp.asarray([5, 6, 7], jnp.int32)
    for pairs in (0, 1024):
        monkeypatch.setattr(skills, "PAIRS", pairs)
        assert skills._looked_up(ids, table)[0].tolist() == [-1, -1, 5, 7, -1, -1]


def test_cube_every_op_and_reason_has_a_name():
    skills = CubeSkills(Cube())
    assert [spec.name.upper() for spec in skills.ops] == [op.name for op in Op]
    assert skills.width == 1 + max(len(spec.arguments) for spec in skills.ops)
    assert len(skills.reasons) == len(REASONS) == len(Reason) and skills.reasons[0] == ""
