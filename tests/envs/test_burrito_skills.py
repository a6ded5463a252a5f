"""8.4, 8.5: how the macro-skills of Burrito run, step by step."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_scenes import BOARD, SINK, hands, places, scene, there

from jaxcoop.core.skills import Status
from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.skills import CANNOT, GAVE_WAY, REASONS, TIMED_OUT
from jaxcoop.envs.burrito.skillset import NAMES
from jaxcoop.envs.burrito.types import Action, Draws, Item

I = Item  # noqa: E741
NORTH, SOUTH, EAST, WEST, STAY, INTERACT = map(int, Action)
CHOP, WASH, GRAB_MEAT, GRAB_DIRTY, GRAB_CLEAN, FIRE_EXT, PASS = 2, 5, 8, 12, 13, 14, 25
REST = 4  # the skill; the action has the same number
PENDING, SUCCESS, FAILED = map(int, Status)
PINNED = Burrito(controller="pinned")
LANE = Burrito(layout="XXXXXXXS\nX1 2   M\nXXXXXXXX\n", controller="pinned", timeout=4)
PLATE = (0, 3)


@cache
def compiled(env):
    """One step of a crew: what starts, what is done, what comes of it."""
    skills = env.skills

    def play(state, memory, ops, fresh, key):
        draws = skills.sample_draws(key, state)
        memory = skills.begin(state, memory, ops[:, None], fresh, draws)
        actions, memory = skills.command(state, memory, draws)
        done = env.step(state, actions, Draws(jnp.zeros((env.num_agents,), jnp.uint32)))
        return done.state, memory, actions, skills.check(done.state, memory)

    return jax.jit(play)


class Crew:
    """One episode; a skill starts when it is given and runs on where None is."""

    def __init__(self, state, env=PINNED):
        self.env, self.state, self.memory, self.steps = env, state, env.skills.idle(), 0

    def play(self, *skills):
        """(actions, statuses, reasons) of one step."""
        skills = [*skills, *[None] * self.env.num_agents][: self.env.num_agents]
        ops = jnp.asarray([0 if k is None else k for k in skills], jnp.int32)
        fresh, key = jnp.asarray([k is not None for k in skills]), jax.random.key(self.steps)
        self.state, self.memory, actions, report = compiled(self.env)(self.state, self.memory, ops, fresh, key)
        self.steps += 1
        return actions.tolist(), report.status.tolist(), report.reason.tolist()

    def first(self, *skills):
        """Action and status of player 0; player 1 stays where it is."""
        actions, statuses, _ = self.play(*skills[:1], *[REST] * (self.env.num_agents - 1))
        return actions[0], statuses[0]

    def run(self, skill):
        """Actions of player 0 until its skill ends, and how it does."""
        done = [self.first(skill)]
        while done[-1][1] == PENDING and len(done) < 60:
            done.append(self.first(None))
        return [action for action, _ in done], done[-1][1]


def alone(cell, facing, held=I.NONE, lying=None):
    """Player 0 at (x, y), player 1 far away."""
    cells = [PINNED.kitchen.grid.cell(*cell), PINNED.kitchen.grid.cell(8, 5)]
    return Crew(scene(None, None, cell=cells, facing=[facing, NORTH], held=(held, 0), lying=lying or {}))


# 8.5: timing


@pytest.mark.parametrize(
    "cell, facing, actions",
    [
        ((2, 3), NORTH, [WEST, INTERACT]),  # arrives looking the right way
        ((3, 2), SOUTH, [WEST, WEST, SOUTH, WEST, STAY, INTERACT]),  # arrives, turns, idles
        ((1, 3), NORTH, [WEST, STAY, INTERACT]),
        ((1, 3), WEST, [STAY, INTERACT]),  # there already: idles one step
    ],
)
def test_burrito_skills_walk_turn_idle_and_interact(cell, facing, actions):
    crew = alone(cell, facing, lying={PLATE: I.CLEAN_PLATE})
    assert crew.run(GRAB_CLEAN) == (actions, SUCCESS)
    assert hands(crew.state)[0] == I.CLEAN_PLATE


def test_burrito_stay_lasts_one_step():
    crew = alone((1, 3), NORTH)
    for _ in range(3):
        assert crew.run(REST) == ([STAY], SUCCESS)


def test_burrito_skills_that_take_longer_interact_as_often_as_they_can_when_pinned():
    crew = alone((2, 1), NORTH, I.MEAT)
    assert crew.run(CHOP) == ([STAY] + [INTERACT] * 3, SUCCESS) and there(crew.state, BOARD) == (I.CHOPPED_MEAT, 2)
    crew = alone((2, 1), NORTH, lying={BOARD: (I.CHOPPED_MEAT, 1)})
    assert crew.run(CHOP) == ([STAY, INTERACT], SUCCESS) and there(crew.state, BOARD) == (I.CHOPPED_MEAT, 2)
    crew = alone((8, 2), EAST, I.DIRTY_PLATE)
    assert crew.run(WASH) == ([STAY] + [INTERACT] * 4, SUCCESS) and there(crew.state, SINK) == (I.CLEAN_PLATE, 0)
    assert crew.run(GRAB_CLEAN) == ([STAY, INTERACT], SUCCESS) and hands(crew.state)[0] == I.CLEAN_PLATE


def test_burrito_skills_end_where_their_interaction_has_no_effect():
    crew = alone((5, 1), NORTH)
    assert crew.run(GRAB_DIRTY) == ([STAY, INTERACT], SUCCESS) and hands(crew.state)[0] == I.NONE  # an empty stack
    crew = alone((8, 2), EAST, I.DIRTY_PLATE, lying={SINK: I.CLEAN_PLATE})
    assert crew.run(WASH) == ([STAY, INTERACT], SUCCESS) and hands(crew.state)[0] == I.DIRTY_PLATE


# 8.5.1: starting


@pytest.mark.parametrize("skill", [-1, 27, 28, 255, 2**31 - 1, -(2**31)])
def test_unknown_burrito_skills_stay(skill):
    crew, stays = (alone((2, 3), NORTH, lying={PLATE: I.CLEAN_PLATE}) for _ in range(2))
    assert crew.run(skill) == stays.run(REST) == ([STAY], SUCCESS)
    jax.tree.map(np.testing.assert_array_equal, crew.memory, stays.memory)


def test_impossible_burrito_skills_stay_one_step_and_fail():
    crew = alone((2, 3), NORTH)
    assert crew.play(GRAB_CLEAN, REST) == ([STAY, STAY], [FAILED, SUCCESS], [CANNOT, 0])
    assert int(crew.memory.skill[0]) == REST and int(crew.memory.op[0]) == GRAB_CLEAN


def test_nothing_is_reported_of_players_who_were_never_told_to_do_anything():
    memory, state = PINNED.skills.idle(), scene(None, None)
    assert PINNED.skills.check(state, memory).status.tolist() == [PENDING, PENDING]
    assert memory.done.tolist() == [True, True]


def test_burrito_skills_are_dropped_when_another_one_starts():
    """12: what runs is dropped from outside; without that new commands are not heard."""
    crew = alone((4, 2), NORTH, lying={PLATE: I.CLEAN_PLATE, (9, 3): I.FIRE_EXT})
    assert crew.first(GRAB_CLEAN) == (WEST, PENDING)
    goal = int(crew.memory.goal[0])
    assert crew.first(None) == (WEST, PENDING) and int(crew.memory.goal[0]) == goal
    assert crew.first(FIRE_EXT) == (EAST, PENDING)
    assert int(crew.memory.skill[0]) == FIRE_EXT and int(crew.memory.age[0]) == 1 and int(crew.memory.goal[0]) != goal
    assert crew.run(None)[1] == SUCCESS and hands(crew.state)[0] == I.FIRE_EXT


# 8.5.2: checking


def test_burrito_skills_fail_as_soon_as_somebody_has_taken_their_object():
    crew = alone((4, 2), NORTH, lying={PLATE: I.CLEAN_PLATE})
    assert crew.first(GRAB_CLEAN) == (WEST, PENDING)
    crew.state = crew.state.replace(item=crew.state.item * 0)
    assert crew.play(None, REST) == ([STAY, STAY], [FAILED, SUCCESS], [CANNOT, 0])


def test_burrito_targets_are_not_chosen_anew_when_a_nearer_one_comes():
    crew = alone((4, 2), NORTH, lying={PLATE: I.CLEAN_PLATE})
    crew.first(GRAB_CLEAN)
    crew.state = crew.state.replace(item=crew.state.item.at[PINNED.kitchen.grid.cell(3, 0)].set(I.CLEAN_PLATE))
    crew.run(None)
    assert there(crew.state, PLATE) == (I.NONE, 0)


# 8.5.3: giving way


def test_of_two_burrito_players_with_one_goal_cell_the_later_one_gives_way():
    crew = Crew(scene(None, None, cell=[32, 43], lying={PLATE: I.CLEAN_PLATE}))
    actions, statuses, reasons = crew.play(GRAB_CLEAN, GRAB_CLEAN)
    assert (actions[0], statuses, reasons) == (WEST, [PENDING, FAILED], [0, GAVE_WAY])


def test_burrito_players_give_way_to_those_who_stay_on_their_goal_cell():
    crew = Crew(scene(None, None, cell=[32, 31], lying={PLATE: I.CLEAN_PLATE}))
    assert crew.play(GRAB_CLEAN, REST) == ([STAY, STAY], [FAILED, SUCCESS], [GAVE_WAY, 0])
    cannot = Crew(scene(None, None, cell=[32, 31], lying={PLATE: I.CLEAN_PLATE}))  # also if they wanted something else
    assert cannot.play(GRAB_CLEAN, CHOP)[1:] == ([FAILED, FAILED], [GAVE_WAY, CANNOT])


def test_burrito_players_who_stay_are_pushed_along_and_do_not_walk_back():
    crew = Crew(scene(None, None, env=LANE, cell=[9, 10], facing=[NORTH, EAST]), LANE)
    assert crew.play(REST, GRAB_MEAT) == ([STAY, EAST], [SUCCESS, PENDING], [0, 0])  # player 0 is behind
    crew = Crew(scene(None, None, env=LANE, cell=[11, 10], facing=[NORTH, EAST]), LANE)
    assert crew.play(REST, GRAB_MEAT) == ([EAST, EAST], [PENDING, PENDING], [0, 0])
    for _ in range(2):
        assert crew.play(None, None) == ([EAST, EAST], [PENDING, PENDING], [0, 0])
    assert places(crew.state, LANE) == [(6, 1), (5, 1)]  # where the other one wanted to stand
    assert crew.play(None, None) == ([STAY, STAY], [SUCCESS, FAILED], [0, GAVE_WAY])


# The time limit, an option


@pytest.mark.parametrize("cell, status, reason, held", [(11, SUCCESS, 0, I.MEAT), (10, FAILED, TIMED_OUT, I.NONE)])
def test_burrito_skills_end_when_their_time_is_out(cell, status, reason, held):
    """After four steps; a skill that is done with the fourth has succeeded."""
    crew = Crew(scene(None, None, env=LANE, cell=[9, cell], facing=[NORTH, NORTH]), LANE)
    seen = [crew.play(REST, GRAB_MEAT if k == 0 else None) for k in range(4)]
    assert [statuses[1] for _, statuses, _ in seen] == [PENDING] * 3 + [status]
    assert seen[-1][2][1] == reason and hands(crew.state)[1] == held and int(crew.memory.age[1]) == 4
    crew.play(REST, GRAB_MEAT)
    assert int(crew.memory.age[1]) == 1 and REASONS[TIMED_OUT] == "timed out"


def test_burrito_skills_have_the_names_of_the_original():
    assert len(NAMES) == len(PINNED.skills.ops) == 27 and PINNED.skills.width == 1
    assert tuple(op.name for op in PINNED.skills.ops) == NAMES and not any(op.arguments for op in PINNED.skills.ops)
    assert (NAMES[REST], NAMES[PASS]) == ("STAY", "PASS_OBJECT")
