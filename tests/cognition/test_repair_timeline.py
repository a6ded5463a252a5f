"""Predicted times and places of planned ops, and the order in which their effects come."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair import timeline
from jaxcoop.cognition.repair.timeline import Planned, Timeline


def planned(ops, agents=1):
    """`Planned` of one agent's ops, dicts with what is not ordinary; the other agents have none."""
    blank = {"remains": True, "duration": 1, "shift": (0, 0), "travels": False, "target": (0, 0), "threshold": 0}
    rows = [[{**blank, **op} for op in ops]] + [[{**blank, "remains": False}] * len(ops)] * (agents - 1)
    return Planned(**{name: jnp.array([[op[name] for op in row] for row in rows]) for name in blank})


def predict(ops, position=(5, 5), step=0):
    found = timeline.predict(planned(ops), jnp.array([position]), jnp.int32(step))
    return found.start[0].tolist(), found.end[0].tolist(), found.after[0].tolist()


def test_ops_follow_each_other_from_the_present_step():
    ops = [{"duration": 3}, {"duration": 2, "shift": (2, 0)}, {"duration": 4}]
    assert predict(ops, step=7) == ([7, 10, 12], [10, 12, 16], [[5, 5], [7, 5], [7, 5]])


def test_ops_that_are_done_take_no_time_and_lead_nowhere():
    ops = [{"remains": False, "duration": 3, "shift": (2, 0)}, {"duration": 2}]
    assert predict(ops, step=1) == ([1, 1], [1, 3], [[5, 5], [5, 5]])


@pytest.mark.parametrize("duration", [-(2**31), -1, 0, 1])
def test_every_op_takes_a_step(duration):
    assert predict([{"duration": duration}])[1] == [1]


def test_endless_ops_do_not_overflow():
    assert predict([{"duration": 2**31 - 1}] * 8)[1][-1] == 8 * timeline.LONGEST


@pytest.mark.parametrize(
    ("target", "threshold", "duration", "landing"),
    [
        ((8, 9), 0, 7, (8, 9)),
        ((8, 9), 1, 6, (7, 9)),  # short of it along the first axis
        ((2, 9), 2, 5, (4, 9)),
        ((5, 9), 1, 3, (5, 8)),  # nothing to cover along the first one
        ((5, 1), 2, 2, (5, 3)),
        ((5, 6), 1, 1, (5, 5)),  # near enough already
        ((5, 5), 0, 1, (5, 5)),
        ((6, 6), 2, 1, (5, 5)),
    ],
)
def test_a_navigation_arrives_and_stops_short_of_its_target(target, threshold, duration, landing):
    op = {"travels": True, "target": target, "threshold": threshold, "duration": 50}
    assert predict([op]) == ([0], [duration], [list(landing)])


def test_a_navigation_starts_where_the_ops_before_it_end():
    ops = [{"shift": (0, 3), "duration": 3}, {"travels": True, "target": (5, 10)}]
    assert predict(ops)[1:] == ([3, 5], [[5, 8], [5, 10]])


def line(start, end):
    """A timeline of one op for each agent."""
    nowhere = jnp.zeros((len(start), 1, 2), jnp.int32)
    return Timeline(jnp.array(start)[:, None], jnp.array(end)[:, None], nowhere, nowhere)


def test_effects_come_by_end_and_start_and_id_as_text():
    start, end = [0] * 12, [9] * 12
    start[1], end[4], end[5] = 3, 2, 1
    happens = np.ones((12, 1), bool)
    happens[[0, 5]] = False
    order = timeline.by_end(line(start, end), jnp.asarray(happens))
    # Absent ones come last; agent_10 and agent_11 before agent_2 as text; agent_1 starts later than they.
    assert order[:10].tolist() == [4, 10, 11, 2, 3, 6, 7, 8, 9, 1]


def test_each_effect_sees_those_that_ended_before():
    happens = jnp.array([[True], [True], [False], [True]])
    amount = jnp.array([1, 10, 100, 1000])

    def effect(total, row):
        return total + amount[row], total + 1

    total, seen = timeline.in_order(line([0, 0, 0, 0], [7, 3, 1, 5]), happens, effect, jnp.int32(0))
    assert total == 1011
    assert seen.tolist() == [1011, 1, 0, 11]
