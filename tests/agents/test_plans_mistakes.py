"""Mistakes of scripted planners: how often they happen, and to whom."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.scripted.plans import LEVELS, Mistakes, mistakes_of, plan_maker
from jaxcoop.agents.scripted.plans.mistakes import LONGEST_PAUSE, slips_of
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.null import Null

MANY = 20_000


def draw(mistakes, *, is_careful=False):
    return slips_of(mistakes, jax.random.key(3), jnp.full((MANY,), is_careful))


def test_each_mistake_happens_as_often_as_its_probability_says():
    slips = draw(Mistakes(wrong_tool=0.1, too_few=0.2, out_of_step=0.4, follows=0.7))
    assert np.mean(slips.wrong_tool) == pytest.approx(0.1, abs=0.02)
    assert np.mean(slips.too_few) == pytest.approx(0.2, abs=0.02)
    assert np.mean(slips.pause > 0) == pytest.approx(0.4, abs=0.02)
    assert np.mean(slips.follows) == pytest.approx(0.7, abs=0.02)
    assert set(np.unique(slips.pause)) == set(range(LONGEST_PAUSE + 1))


def test_mistakes_of_one_plan_do_not_go_together():
    slips = draw(Mistakes(wrong_tool=0.5, too_few=0.5))
    assert np.mean(slips.wrong_tool & slips.too_few) == pytest.approx(0.25, abs=0.02)


def test_the_careful_make_no_mistakes_but_need_not_follow_advice():
    slips = draw(Mistakes(1, 1, 1, follows=0), is_careful=True)
    assert not (slips.wrong_tool | slips.too_few | (slips.pause > 0) | slips.follows).any()


def test_levels_get_worse_from_perfect_to_weak():
    assert LEVELS["perfect"] == Mistakes()
    order = [mistakes_of(name) for name in ("perfect", "strong", "middling", "weak")]
    for better, worse in pairwise(order):
        assert better.wrong_tool < worse.wrong_tool
        assert better.too_few < worse.too_few
        assert better.out_of_step < worse.out_of_step
        assert better.follows > worse.follows


def test_a_probability_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"too_few 1\.5: must be from 0 to 1"):
        Mistakes(too_few=1.5)


def test_an_unknown_level_is_refused_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"'week'.*weak"):
        plan_maker(Cube(), "individual", "week")


def test_other_environments_have_no_such_planner():
    with pytest.raises(ValueError, match="'null': scripted plans exist for cube and macrafter"):
        plan_maker(Null(), "individual")


@pytest.mark.parametrize("env", [Cube(), MACrafter()])
def test_plans_must_have_room_for_something(env):
    with pytest.raises(ValueError, match="ops 1: must be from"):
        plan_maker(env, "individual", ops=1)


@pytest.mark.parametrize("env", [Cube(), MACrafter()])
def test_only_who_is_silent_does_not_know_the_plans_of_others(env):
    assert not plan_maker(env, "individual").knows_plans
    assert plan_maker(env, "centralized").knows_plans
    assert plan_maker(env, "broadcast_chain", "weak").mistakes == LEVELS["weak"]
    assert hash(plan_maker(env, "individual", "weak")) == hash(plan_maker(env, "individual", "weak"))
