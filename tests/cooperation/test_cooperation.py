"""Counting, constraints and attempt events against plain Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cooperation import (
    Attempts,
    Constraint,
    Counts,
    add,
    counting,
    deficits,
    events,
    first_with,
    no_totals,
    satisfied,
    scores,
    tally,
    violations,
)
from jaxcoop.cooperation.constraints import valid_participants

SLOTS = 7


@pytest.fixture(params=["pairs", "slots"])
def either_way(request, monkeypatch):
    monkeypatch.setattr(counting, "PAIRS", 10**9 if request.param == "pairs" else 0)


def named(size, seed=0):
    return np.random.default_rng(seed).integers(-1, SLOTS, size).astype(np.int32)


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_a_tally_counts_every_mention_and_never_that_of_nothing(either_way, size):
    names, asked = named(size), named(size, 1)
    expected = [0 if a < 0 else int((names == a).sum()) for a in asked]
    np.testing.assert_array_equal(tally(jnp.asarray(names), jnp.asarray(asked), SLOTS), expected)


@pytest.mark.parametrize("size", [1, 2, 5, 40])
def test_the_first_that_names_a_task_stands_for_it(either_way, size):
    names = named(size)
    expected = [-1 if n < 0 else names.tolist().index(n) for n in names]
    np.testing.assert_array_equal(first_with(jnp.asarray(names), SLOTS), expected)


def test_counting_works_on_a_batch_as_on_each_of_it(either_way):
    names = jnp.asarray(np.stack([named(9, seed) for seed in range(4)]))
    together = jax.vmap(lambda n: tally(n, n, SLOTS))(names)
    np.testing.assert_array_equal(together, jnp.stack([tally(n, n, SLOTS) for n in names]))


def test_a_large_team_makes_no_array_of_pairs():
    text = str(jax.make_jaxpr(lambda n: events(n, n > 0, 500))(jnp.zeros(512, jnp.int32)))
    assert "512,512" not in text
    assert "512,500" not in text


def test_a_constraint_is_met_from_the_required_number_on():
    required = jnp.asarray([2, 2, 2])
    counts = Counts(*(jnp.asarray(c) for c in ([1, 2, 3], [2, 1, 0], [0, 2, 9], [2, 2, 2])))
    met = np.asarray(satisfied(required, counts))
    np.testing.assert_array_equal(met[:, Constraint.SPATIAL], [False, True, True])
    np.testing.assert_array_equal(met[:, Constraint.TEMPORAL], [True, False, False])
    np.testing.assert_array_equal(met[:, Constraint.DEPENDENCY], [False, True, True])
    assert met[:, Constraint.PARTICIPATION].all()
    np.testing.assert_allclose(scores(required, counts)[:, Constraint.SPATIAL], [0.5, 1.0, 1.5])


def test_more_than_enough_makes_no_deficit_and_none_at_all_a_whole_one():
    np.testing.assert_allclose(deficits(jnp.asarray([0.0, 0.25, 1.0, 1.5])), [1.0, 0.75, 0.0, 0.0])


def test_a_valid_participant_meets_every_condition_by_itself():
    yes, no = True, False
    near, acting, capable = (jnp.asarray(x) for x in ([yes, yes, no, yes], [yes, no, yes, yes], [yes, yes, yes, no]))
    assert valid_participants(near, acting, capable) == 1


def test_agents_that_name_one_task_make_one_event(either_way):
    names = jnp.asarray([4, -1, 2, 4, 2, 4], jnp.int32)
    won = jnp.asarray([False, True, False, False, False, True])
    task, event, attempting, success = events(names, won, SLOTS)
    np.testing.assert_array_equal(task, [4, -1, 2, -1, -1, -1])
    np.testing.assert_array_equal(event, [0, -1, 2, 0, 2, 0])
    np.testing.assert_array_equal(attempting, [3, 0, 2, 0, 0, 0])
    np.testing.assert_array_equal(success, [True, False, False, False, False, False])


def test_violations_are_mean_deficits_over_the_events_alone():
    def step(score):
        rows = jnp.asarray([3, -1], jnp.int32)
        two = jnp.asarray([2, 2], jnp.int32)
        flags = jnp.asarray([score == 1.0, True])
        return Attempts(rows, two, two, flags, jnp.full((2, 3), score), jnp.asarray([0, -1], jnp.int32))

    totals = add(add(no_totals(), step(0.5)), step(1.0))
    assert (totals.events, totals.successes) == (2, 1)
    np.testing.assert_allclose(violations(totals), [0.25] * 3)
    np.testing.assert_allclose(violations(no_totals()), [0.0] * 3)
