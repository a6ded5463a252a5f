"""The repair check on maps of the crafting world: what plans are predicted to do, which constraints they miss."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair.config import PRESETS, RepairConfig
from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.cooperation import Constraint
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.envs.macrafter import repair, repair_text
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.ids import KINDS
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import PLACES, Action, Item, Material, Thing

SIDE, OPS = 12, 8
ENV = MACrafter(agents=3, width=SIDE, height=SIDE, balance=False)
CONFIG = PRESETS["macrafter"]
COAL = (5, 5)
COWS = np.array([[9, 2]], np.int16)


def cell(x, y):
    return x * SIDE + y + 1


def op(kind, *arguments):
    return [int(kind), *(int(a) for a in arguments), *[-1] * (4 - len(arguments))]


def world(things=None, agents=((5, 2), (5, 9), (0, 0)), items=None):
    """Grass with one coal and one cow; agents 0 and 1 have a pickaxe."""
    ground = np.full((SIDE, SIDE), Material.GRASS, np.uint8)
    for place, kind in {COAL: Material.COAL, **(things or {})}.items():
        ground[place] = kind
    state = ENV.start(jnp.asarray(ground), *jnp.asarray(COWS.T), *jnp.asarray(np.array(agents, np.int16).T))
    held = state.inventory.at[:2, Item.WOOD_PICKAXE].set(1)
    for (agent, item), count in (items or {}).items():
        held = held.at[agent, item].set(count)
    return state.replace(inventory=held)


def views_of(*plans, index=(0, 0, 0), viewed=None):
    """Pending plans; an agent without ops has none."""
    ops = np.full((3, OPS, 5), -1, np.int32)
    length = np.array([len(plan) for plan in plans] + [0] * (3 - len(plans)), np.int32)
    for agent, plan in enumerate(plans):
        ops[agent, : len(plan)] = np.reshape(plan, (-1, 5))
    has_plan = jnp.asarray(length > 0) if viewed is None else jnp.asarray(viewed)
    plan = Plan(jnp.full((3, 3), -1, jnp.int32), jnp.asarray(ops), jnp.asarray(length))
    return PlanViews(has_plan, has_plan, jnp.ones(3, jnp.int32), jnp.array(index, jnp.int32), plan)


@partial(jax.jit, static_argnums=0)
def check(config, state, views):
    known = repair.MapTasks(ENV.settings, state)
    return repair.check_plans(config, known, views, repair.team_of(ENV.settings, state), state.t)


def checked(state, *plans, config=CONFIG, **options):
    return jax.device_get(check(config, state, views_of(*plans, **options)))


def results(found, config=CONFIG):
    naming = repair_text.map_naming(ENV, np.full((SIDE, SIDE), Material.COAL))
    return {(r["task_id"], r["constraint_type"]): r for r in repair_text.results(config, naming, found)}


def failing(found):
    return {key for key, result in results(found).items() if not result["satisfied"]}


GO, TAKE = op(Op.NAVIGATE, Material.COAL, cell(*COAL), 30), op(Op.COLLECT, Item.COAL, cell(*COAL))
BRIEFLY = op(Op.COLLECT, Item.COAL, cell(*COAL), 1)
WAIT = op(Op.NOOP)


def test_two_that_arrive_together_with_tools_meet_all_constraints():
    """Worked example D."""
    found = checked(world(), [GO, TAKE], [GO, TAKE])
    course = found.prediction.timeline
    assert course.start[:2, 1].tolist() == [2, 3]
    assert course.end[:2, 1].tolist() == [5, 6]
    assert course.after[:2, 1].tolist() == [[5, 4], [5, 6]]
    assert {key[1] for key in results(found)} == {"spatial", "temporal", "dependency"}
    assert failing(found) == set()
    assert found.evaluation.required[found.evaluation.first].tolist() == [2]
    assert found.evaluation.kind[found.evaluation.first].tolist() == [Material.COAL]


def test_one_that_comes_late_is_missed_by_all_constraints():
    """Worked example D, second part."""
    found = checked(world(), [GO, BRIEFLY], [WAIT] * 6 + [GO, BRIEFLY])
    assert found.prediction.timeline.start[1, 7] == 9
    for result in results(found).values():
        assert (result["satisfied"], result["score"], result["agents"]) == (False, 0.5, ["agent_0"])


def test_thresholds_below_one_let_partial_teams_pass():
    config = RepairConfig(spatial_tolerance=1, temporal_tolerance=2, thresholds=(0.5, 0.5, 0.6))
    found = checked(world(), [GO, BRIEFLY], config=config)
    assert found.evaluation.failed[found.evaluation.first].tolist() == [[False, False, True]]


def test_near_is_the_reach_and_the_tolerance_beyond():
    for place, count in (((5, 4), 1), ((4, 4), 1), ((5, 2), 0), ((3, 4), 0)):
        found = checked(world(agents=(place, (0, 9), (0, 0))), [TAKE])
        assert results(found)[str(cell(*COAL)), "spatial"]["score"] == count / 2


def test_only_ops_that_remain_of_viewed_plans_count():
    started = checked(world(), [WAIT, GO, TAKE], [GO, TAKE], index=(1, 0, 0))
    assert started.prediction.timeline.start[0, 2] == 2
    alone = checked(world(), [GO, TAKE], [GO, TAKE], viewed=[True, False, False])
    assert results(alone)[str(cell(*COAL)), "temporal"]["agents"] == ["agent_0"]
    over = checked(world(), [GO, TAKE], [GO, TAKE], index=(2, 2, 0))
    assert not over.evaluation.first.any()


def test_a_collect_without_an_id_belongs_to_what_the_plan_named_last():
    nameless = op(Op.COLLECT, Item.IRON)
    found = checked(world({(2, 2): Material.IRON, (3, 3): Material.IRON}), [GO, WAIT, nameless])
    assert found.prediction.aims.task[0, :3].tolist() == [cell(*COAL) - 1] * 3
    assert found.prediction.after.reshape(3, OPS, 16)[0, 2, Item.IRON] == 1  # but iron is what it takes
    gone = op(Op.NAVIGATE, Material.COAL, cell(7, 7), 30)  # there is none
    found = checked(world({(8, 8): Material.COAL}), [GO, gone, op(Op.COLLECT, Item.COAL)])
    assert found.prediction.aims.task[0, :3].tolist() == [cell(*COAL) - 1, -1, -1]


def test_a_type_is_enough_where_there_is_one_of_it():
    nameless = op(Op.COLLECT, Item.COAL)
    assert checked(world(), [nameless]).prediction.aims.task[0, 0] == cell(*COAL) - 1
    two = world({(8, 8): Material.COAL})
    assert checked(two, [nameless]).prediction.aims.task[0, 0] == -1
    wrong = op(Op.NAVIGATE, Material.COAL, cell(7, 7), 30)
    assert checked(world(), [wrong]).prediction.aims.task[0, 0] == cell(*COAL) - 1


def test_an_id_is_that_of_a_task_first_whatever_its_type():
    state = world({(0, 1): Material.TREE, (8, 8): Material.TABLE})
    state = state.replace(table=state.table.at[1].set(cell(8, 8) - 1))
    found = checked(state, [op(Op.NAVIGATE, Material.TABLE, 2, 30)])
    assert found.prediction.aims.task[0, 0] == cell(0, 1) - 1


def test_things_that_are_no_tasks_are_walked_to():
    cow = SIDE * SIDE + 1
    state = world({(8, 8): Material.TABLE})
    state = state.replace(table=state.table.at[0].set(cell(8, 8) - 1))
    found = checked(
        state,
        [op(Op.NAVIGATE, Thing.COW, cow, 30), WAIT],
        [op(Op.NAVIGATE, Material.TABLE, 1, 30), WAIT],
        [op(Op.NAVIGATE, Thing.COW, cow + 99, 30), WAIT],
    )
    course = found.prediction.timeline
    assert course.after[:, 0].tolist() == [[8, 2], [7, 8], [0, 0]]
    assert course.start[:, 1].tolist() == [3, 3, 1]
    assert (found.prediction.aims.task == -1).all()


def test_moves_go_straight_through_everything():
    steps = op(Op.MOVE, Action.MOVE_DOWN, 4)
    found = checked(world(), [steps, op(Op.MOVE, Action.MOVE_LEFT), WAIT, op(Op.MOVE, 99, 2)])
    course = found.prediction.timeline
    assert course.after[0, :4].tolist() == [[5, 6], [4, 6], [4, 6], [4, 6]]
    assert course.end[0, :4].tolist() == [4, 5, 6, 8]


def held_after(found, agent, number, item):
    return found.prediction.after.reshape(3, OPS, 16)[agent, number, item]


TABLE, PICKAXE = op(Op.PLACE, PLACES.index("table")), op(Op.CRAFT, Action.MAKE_WOOD_PICKAXE)


def test_tools_come_from_what_the_plan_makes_before():
    walk = op(Op.MOVE, Action.MOVE_RIGHT, 5)
    rich = world(items={(2, Item.WOOD): 3})
    found = checked(rich, [], [], [TABLE, walk, PICKAXE, GO, TAKE])
    assert [held_after(found, 2, k, Item.WOOD) for k in range(5)] == [1, 1, 0, 0, 0]
    assert results(found)[str(cell(*COAL)), "dependency"]["agents"] == ["agent_2"]
    assert results(found)[str(cell(*COAL)), "dependency"]["score"] == 0.5
    poor = checked(world(items={(2, Item.WOOD): 2}), [], [], [TABLE, PICKAXE, PICKAXE])
    assert [held_after(poor, 2, k, Item.WOOD) for k in range(3)] == [0, 0, 0]
    assert held_after(poor, 2, 2, Item.WOOD_PICKAXE) == 0
    unplaced = checked(world(items={(2, Item.WOOD): 1}), [], [], [TABLE, PICKAXE])
    assert held_after(unplaced, 2, 1, Item.WOOD) == 1


def test_stations_on_the_map_are_near_as_for_the_rules():
    for place, is_near in (((6, 3), True), ((7, 2), False)):
        state = world({place: Material.TABLE}, items={(0, Item.WOOD): 1})
        assert held_after(checked(state, [PICKAXE]), 0, 0, Item.WOOD_PICKAXE) == 1 + is_near
    corner = world({(1, 1): Material.TABLE}, items={(2, Item.WOOD): 1})
    assert held_after(checked(corner, [], [], [PICKAXE]), 2, 0, Item.WOOD_PICKAXE) == 0  # docs/envs/macrafter.md, E1


def test_a_shared_tool_is_there_once_it_was_given():
    give = op(Op.SHARE, 2, Item.WOOD_PICKAXE, 5)
    in_time = checked(world(), [], [give], [op(Op.NOOP), TAKE])
    late = checked(world(), [], [WAIT, WAIT, WAIT, WAIT, give], [op(Op.NOOP), TAKE])
    assert results(in_time)[str(cell(*COAL)), "dependency"]["score"] == 0.5
    assert results(late)[str(cell(*COAL)), "dependency"]["score"] == 0.0
    assert held_after(in_time, 1, 0, Item.WOOD_PICKAXE) == 0
    assert held_after(in_time, 2, 1, Item.WOOD_PICKAXE) == 1
    for nobody in (7, -1):
        lost = checked(world(), [], [op(Op.SHARE, nobody, Item.WOOD_PICKAXE, 1)])
        assert held_after(lost, 1, 0, Item.WOOD_PICKAXE) == 1


@pytest.mark.parametrize("source", ["tree", "stone", "iron", "diamond", "water", "cow"])
def test_collecting_gives_what_the_rules_give(source):
    item, amount = {"tree": (Item.WOOD, 1), "water": (Item.DRINK, 1), "cow": (Item.FOOD, 6)}.get(
        source, (Item[source.upper()], 1) if source.upper() in Item.__members__ else None
    )
    state = world({(1, 1): KINDS[source]} if source != "cow" else None)
    state = state.replace(inventory=jnp.zeros_like(state.inventory))
    target = -1 if source == "cow" else cell(1, 1)
    found = checked(state, [op(Op.COLLECT, item, target)])
    assert held_after(found, 0, 0, item) == amount


def test_nothing_is_expected_of_an_unknown_op():
    found = checked(world(), [op(77, 1, 2, 3), op(Op.COLLECT, 99), op(Op.CRAFT, 99), op(Op.PLACE, 99), WAIT])
    assert found.prediction.timeline.end[0, 4] == 7
    assert (found.prediction.before == found.prediction.after).all()
    assert not found.evaluation.checked.any()


def test_a_batch_of_episodes_is_judged_like_each_of_them():
    states = [world(), world({(8, 8): Material.COAL}), world({COAL: Material.GRASS})]
    views = [
        views_of([GO, TAKE], [WAIT] * 4 + [op(Op.COLLECT, Item.COAL)]),
        views_of([op(Op.COLLECT, Item.COAL)], [GO, TAKE], [op(Op.COLLECT, Item.IRON)]),
        views_of([GO, TAKE], [], [op(Op.COLLECT, Item.WOOD)]),
    ]
    together = jax.jit(jax.vmap(partial(repair.evaluate, ENV, CONFIG)))(
        *(jax.tree.map(lambda *x: jnp.stack(x), *rows) for rows in (states, views))
    )
    for number, case in enumerate(zip(states, views, strict=True)):
        alone = check(CONFIG, *case).evaluation
        for got, want in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(got[number], want)


def test_requirements_of_the_map_are_those_of_the_environment():
    env = MACrafter(agents=3, width=SIDE, height=SIDE, requirements="coal:3:wood_pickaxe|iron_pickaxe", distance=2)
    state = world(items={(1, Item.WOOD_PICKAXE): 0, (1, Item.IRON_PICKAXE): 1})
    found = jax.jit(partial(repair.evaluate, env, CONFIG))(state, views_of([GO, TAKE], [GO, TAKE], [GO, TAKE]))
    first = np.flatnonzero(found.first)[0]
    assert found.required[first] == 3
    assert found.score[first, SCORED.index(Constraint.DEPENDENCY)] == pytest.approx(2 / 3)
    naming = repair_text.map_naming(env, np.asarray(state.material))
    assert (naming.reach(0), naming.tools(cell(*COAL) - 1)) == (2, 0b1101)
