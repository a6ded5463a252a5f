"""When a check opens a repair channel and for whom; its options."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair import controller, generic
from jaxcoop.cognition.repair.config import PRESETS, RepairConfig
from jaxcoop.cognition.repair.types import Guidance
from jaxcoop.cognition.repair.views import statement_order, text_order, text_rank
from jaxcoop.cognition.types import Plan, PlanViews, no_plan
from jaxcoop.cooperation.constraints import Constraint

AGENTS, OPS = 3, 2
COAL, IRON = 0, 1
REQUIRED, KIND = jnp.array([2, 2, 3], jnp.int32), jnp.array([COAL, COAL, IRON], jnp.int32)
TASKS, KINDS = 3, 2


def views_of(tasks, number=1, pending=True, index=0, viewed=None):
    """Plans of one collect; `tasks` of the agents, -1 for a plan that names none."""
    task = jnp.broadcast_to(jnp.asarray(tasks, jnp.int32), (AGENTS,))
    ops = jnp.full((AGENTS, OPS, 2), -1, jnp.int32).at[:, 0].set(jnp.stack([task * 0 + 1, task], axis=1))

    def each(value, dtype):
        return jnp.broadcast_to(jnp.asarray(value, dtype), (AGENTS,))

    plan = Plan(spec=jnp.full((AGENTS, 3), -1, jnp.int32), ops=ops, length=each(1, jnp.int32))
    is_viewed = each(True if viewed is None else viewed, bool)
    return PlanViews(is_viewed, each(pending, bool), each(number, jnp.int32), each(index, jnp.int32), plan)


@partial(jax.jit, static_argnames="config")
def evaluated(config, views, kind=KIND):
    named = generic.Named(views.plan.spec[:, 1], views.plan.ops[..., 1], views.plan.ops[..., 0] == 1)
    return generic.evaluate(config, REQUIRED, kind, views, named)


@partial(jax.jit, static_argnames="config")
def checked(config, state, views, step, kind):
    return controller.check(config, TASKS, KINDS, state, views, step, lambda: evaluated(config, views, kind))


def play(config, *calls, kind=KIND):
    """Decisions of calls `(step, views)`, and the state after them."""
    state = controller.reset(config, AGENTS, AGENTS * OPS, TASKS, KINDS)
    decisions = []
    for step, views in calls:
        state, decision = checked(config, state, views, jnp.int32(step), kind)
        decisions.append(jax.device_get(decision))
    return decisions, jax.device_get(state)


def opened(decisions):
    return [bool(decision.opened) for decision in decisions]


def test_a_key_cools_until_its_cooldown_has_passed():
    """The worked example E."""
    config = RepairConfig(cooldown=5)
    first = [(step, views_of([0, -1, -1], number)) for number, step in enumerate([0, 0, 4, 5])]
    decisions, state = play(config, *first)
    assert opened(decisions) == [True, False, False, True]
    assert [bool(d.cooling) for d in decisions] == [False, True, True, False]
    assert [int(d.remaining.max()) for d in decisions] == [0, 5, 1, 0]
    assert state.stamps.tolist() == [5, *[controller.UNSTAMPED] * 3]


def test_one_eligible_key_opens_a_repair_with_all_failures_and_is_stamped_alone():
    config = RepairConfig(cooldown=5)
    decisions, state = play(config, (0, views_of([0, -1, -1])), (1, views_of([0, 2, -1])))
    assert opened(decisions) == [True, True]
    last = decisions[-1].evaluation
    assert sorted(last.task[last.first & last.failed.any(1)]) == [0, 2]
    assert state.stamps[[0, 2]].tolist() == [0, 1]


def test_tasks_of_one_type_cool_together():
    config = RepairConfig(cooldown=5, scope="resource")
    calls = [(0, views_of([0, -1, -1])), (1, views_of([1, -1, -1])), (2, views_of([2, -1, -1]))]
    decisions, state = play(config, *calls)
    assert opened(decisions) == [True, False, True]
    assert state.stamps[[COAL, IRON]].tolist() == [0, 2]


def test_tasks_without_a_type_cool_alone():
    config = RepairConfig(cooldown=5, scope="target_type")
    calls = [(0, views_of([0, -1, -1])), (1, views_of([1, -1, -1])), (2, views_of([0, -1, -1], number=2))]
    decisions, state = play(config, *calls, kind=jnp.full_like(KIND, -1))
    assert opened(decisions) == [True, True, False]
    assert state.stamps[KINDS : KINDS + 2].tolist() == [0, 1]


def test_by_task_type_all_tasks_cool_together():
    decisions, state = play(
        RepairConfig(cooldown=5, scope="task_type"), (0, views_of([0, -1, -1])), (1, views_of([2, -1, -1]))
    )
    assert opened(decisions) == [True, False]
    assert state.stamps.tolist() == [0, controller.UNSTAMPED]


def test_without_cooldown_nothing_cools_and_nothing_is_kept():
    decisions, state = play(RepairConfig(), *[(0, views_of([0, -1, -1], number)) for number in range(3)])
    assert opened(decisions) == [True] * 3
    assert state.stamps.size == 0


def test_only_newly_committed_plans_start_a_check():
    calls = [(0, views_of([0, -1, -1], viewed=False)), (0, views_of([0, -1, -1], pending=False))]
    decisions, state = play(RepairConfig(), *calls)
    assert opened(decisions) == [False, False]
    assert not any(d.predicted or d.failed or d.cooling for d in decisions)
    assert (state.signature == -1).all()


def test_equal_plans_are_not_evaluated_again():
    """Their stored evaluation counts, although another one would find no failure."""
    config, views = RepairConfig(), views_of([0, -1, -1])
    state, first = checked(config, controller.reset(config, AGENTS, AGENTS * OPS, TASKS, KINDS), views, 0, KIND)
    enough = evaluated(config, views_of([0, 0, -1]))
    _, again = jax.jit(lambda s, v: controller.check(config, TASKS, KINDS, s, v, 3, lambda: enough))(state, views)
    assert first.predicted and first.failed and first.opened
    assert again.opened and not (again.predicted or again.failed)


CHANGES = {
    "number": lambda v: dataclasses.replace(v, number=v.number.at[1].add(1)),
    "op": lambda v: dataclasses.replace(v, index=v.index.at[1].add(1)),
    "status": lambda v: dataclasses.replace(v, is_pending=v.is_pending.at[1].set(False)),
    "view": lambda v: dataclasses.replace(v, is_viewed=v.is_viewed.at[1].set(False)),
    "specification": lambda v: with_plan(v, spec=v.plan.spec.at[1, 1].set(2)),
    "argument": lambda v: with_plan(v, ops=v.plan.ops.at[1, 0, 1].add(1)),
    "length": lambda v: with_plan(v, length=v.plan.length.at[1].add(1)),
}


def with_plan(views, **changes):
    return dataclasses.replace(views, plan=dataclasses.replace(views.plan, **changes))


@pytest.mark.parametrize("change", CHANGES)
def test_a_signature_tells_plans_apart(change):
    views = views_of([0, 1, 2])
    before, after = controller.sign(views), controller.sign(CHANGES[change](views))
    assert (before != after).any(1).tolist() == [False, True, False]


def test_a_signature_leaves_out_what_is_done_or_not_there():
    views = views_of([0, 1, 2], index=1)
    changed = with_plan(views, ops=views.plan.ops.at[:, :].add(7))
    np.testing.assert_array_equal(controller.sign(views), controller.sign(changed))
    nobody = views_of([0, 1, 2], viewed=False)
    assert (controller.sign(nobody) == -1).all()


def test_a_threshold_below_one_lets_a_ratio_pass():
    views = views_of([0, -1, -1])
    assert opened(play(RepairConfig(thresholds=(1, 0.5, 1)), (0, views))[0]) == [False]
    assert opened(play(RepairConfig(thresholds=(1, 0.6, 1)), (0, views))[0]) == [True]


def test_a_satisfied_check_passes_and_one_without_results_says_nothing():
    enough, nothing = play(RepairConfig(), (0, views_of([0, 0, -1])), (0, views_of(-1)))[0]
    assert enough.predicted and enough.passed and not enough.failed
    assert not (nothing.predicted or nothing.passed or nothing.failed)


def test_switched_off_it_does_nothing():
    config = RepairConfig(enabled=False)
    state = controller.reset(config, AGENTS, AGENTS * OPS, TASKS, KINDS)
    after, decision = controller.check(config, TASKS, KINDS, state, views_of([0, -1, -1]), jnp.int32(0), lambda: 1 / 0)
    assert not (decision.opened | decision.predicted | decision.cooling)
    jax.tree.map(np.testing.assert_array_equal, state, after)


def test_episodes_of_a_batch_are_checked_apart():
    config = RepairConfig(cooldown=5)
    calls = [views_of([0, -1, -1]), views_of([0, 0, -1]), views_of([0, -1, -1], pending=False)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *calls)
    state = controller.reset(config, AGENTS, AGENTS * OPS, TASKS, KINDS)
    _, together = jax.vmap(lambda v: checked(config, state, v, jnp.int32(2), KIND))(batch)
    alone = [play(config, (2, views))[0][0] for views in calls]
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda *x: np.stack(x), *alone), together)


def guided(participants=(), planners=()):
    flags = [jnp.isin(jnp.arange(AGENTS), jnp.array(x, jnp.int32)) for x in (participants, planners)]
    return Guidance(flags[0].any(), jnp.int32(0), *flags, no_plan(AGENTS, OPS, 2))


@pytest.mark.parametrize(
    ("viewed", "guidance", "members"),
    [
        ([1, 1, 1], None, [0]),  # of the failing result
        ([1, 1, 1], guided(), [0]),
        ([1, 1, 1], guided(participants=[1, 2]), [1, 2]),
        ([1, 1, 1], guided(planners=[2]), [2]),
        ([1, 1, 0], guided(participants=[1, 2]), [1]),  # the third is not available
        ([1, 1, 0], guided(participants=[2]), [0]),
        ([0, 1, 1], None, [1, 2]),  # the failing group is not available
    ],
)
def test_members_of_a_channel(viewed, guidance, members):
    evaluation = evaluated(RepairConfig(), views_of([0, -1, -1]))
    views = views_of([0, -1, -1], viewed=viewed)
    assert np.flatnonzero(controller.channel(views, guidance, evaluation)).tolist() == members


def test_members_are_listed_as_text_and_speak_by_number():
    assert text_order(12).tolist() == [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    assert text_rank(12)[[2, 10]].tolist() == [4, 2]
    assert statement_order(12).tolist() == list(range(12))


def test_the_generic_estimator_looks_at_remaining_ops_only():
    views = views_of([0, 0, -1], index=[0, 1, 0])
    found = evaluated(RepairConfig(), views)
    assert found.score[0, 1] == 0.5
    assert np.flatnonzero(found.task == 0).tolist() == [0]
    named = generic.Named(jnp.array([-1, 0, -1]), views.plan.ops[..., 1], views.plan.ops[..., 0] == 1)
    assert generic.groups(views, named).tolist() == [0, 0, -1]


def test_the_generic_estimator_names_the_whole_group_if_nobody_collects():
    views = views_of([0, 0, 1])
    named = generic.Named(jnp.array([-1] * 3), views.plan.ops[..., 1], jnp.zeros((AGENTS, OPS), bool))
    found = generic.evaluate(RepairConfig(), REQUIRED, KIND, views, named)
    assert found.score[found.first, Constraint.TEMPORAL].tolist() == [0, 0]
    assert found.named[::OPS, Constraint.TEMPORAL].all()
    assert not found.checked[:, Constraint.SPATIAL].any()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("spatial_tolerance", -1, "from 0 to"),
        ("temporal_tolerance", 1.5, "whole number"),
        ("cooldown", True, "whole number"),
        ("scope", "world", "target_type, task, task_type"),
        ("scope", None, "scope"),
        ("axes", "yx", "corrected"),
        ("enabled", 1, "True or False"),
        ("thresholds", (1, 1), "three numbers"),
        ("thresholds", (1, 1, -1), "three numbers"),
        ("thresholds", (1, 1, float("nan")), "three numbers"),
        ("thresholds", "111", "three numbers"),
    ],
)
def test_wrong_options_are_refused(option, value, says):
    with pytest.raises(ValueError, match=says) as error:
        RepairConfig(**{option: value})
    assert option in str(error.value)


def test_the_reference_takes_any_value():
    given = {"spatial_tolerance": -3, "temporal_tolerance": None, "task_cooldown_steps": 7, "cooldown_scope": "weird"}
    assert RepairConfig.published(given) == RepairConfig(cooldown=7)
    assert RepairConfig.published({}, cooldown=-1) == RepairConfig()
    assert RepairConfig.published({"cooldown_scope": "resource_type"}).scope == "target_type"


def test_options_are_static_and_published_values_are_there():
    assert hash(RepairConfig(thresholds=[1, 1, 1])) == hash(RepairConfig())
    cube, macrafter = PRESETS["cube"], PRESETS["macrafter"]
    assert (cube.spatial_tolerance, cube.temporal_tolerance, cube.cooldown, cube.scope) == (0, 1, 5, "task")
    assert dataclasses.astuple(macrafter)[1:5] == (1, 2, 20, "target_type")
