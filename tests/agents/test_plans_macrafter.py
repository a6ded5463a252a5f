"""Whole plans for MA-Crafter: what a team collects with them, and what each agent plans on small maps."""

import dataclasses
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.scripted.macrafter import waves
from jaxcoop.agents.scripted.plans.macrafter import CrafterPlans
from jaxcoop.agents.scripted.plans.macrafter_meetings import GIVEN_UP, PATIENCE, nothing_tried, remembered
from jaxcoop.agents.scripted.plans.macrafter_ways import disk, flood, nearest, unpack
from jaxcoop.agents.scripted.plans.mistakes import Mistakes
from jaxcoop.cognition import process
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.latency import Latency
from jaxcoop.cognition.mail import GOT_REPAIR
from jaxcoop.cognition.play import play
from jaxcoop.cognition.structures import structure_of
from jaxcoop.cognition.types import Call, PlanStatus, Verdict
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.goals import NAMES, TASKS
from jaxcoop.envs.macrafter.minds import CrafterMinds
from jaxcoop.envs.macrafter.presets import PRESETS
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import PLACES, Action, Item, Material

EPISODES = 12
MARKS = {
    ".": Material.GRASS,
    "T": Material.TREE,
    "#": Material.STONE,
    "~": Material.WATER,
    "C": Material.COAL,
    "I": Material.IRON,
    "D": Material.DIAMOND,
    "t": Material.TABLE,
}


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "least"), [("paper_3", 700), ("paper_6", 700)])
def test_silent_teams_make_tools_and_score_steadily(preset, least):
    env = MACrafter(**PRESETS[preset])
    setup = Setup(CrafterMinds(env), structure_of("macrafter", "individual"), budget_ms=0, latency=Latency())
    final = play(setup, CrafterPlans(env), jax.random.key(0), jnp.arange(EPISODES))
    score, items = np.asarray(final.totals.score), np.asarray(final.world.inventory)
    assert score.mean() > least
    assert np.median(score) > least
    assert (items[:, :, Item.STONE_PICKAXE] > 0).mean() > 0.8
    closed = np.asarray(final.totals.closed).sum(0)
    assert closed[PlanStatus.SUCCESS] > closed[PlanStatus.FAILED]


ENV = MACrafter(agents=3, width=16, height=16)
TOOLS = {Item.WOOD_PICKAXE: 1, Item.STONE_PICKAXE: 1, Item.WOOD: 1}


def world(*rows, items=(), **changes):
    """A map of 16 x 16, grass where nothing is drawn; letters a to c are agents on grass, who hold `items` each."""
    material, places = np.full((16, 16), Material.GRASS, np.uint8), {}
    for y, line in enumerate(rows):
        for x, mark in enumerate(line):
            if mark in "abc":
                places[mark] = (x, y)
            else:
                material[x, y] = MARKS[mark]
    x, y = (jnp.array(v) for v in zip(*(places[mark] for mark in "abc")))
    nowhere = jnp.full((1,), -1)
    state = ENV.start(jnp.asarray(material), nowhere, nowhere, x, y)
    inventory = np.array(state.inventory)
    for item, amount in dict(items).items():
        inventory[:, item] = amount
    return dataclasses.replace(state, inventory=jnp.asarray(inventory), **changes)


def cell(x, y):
    return x * 16 + y


@cache
def blank_state():
    setup = Setup(CrafterMinds(ENV), structure_of("macrafter", "individual"))
    return jax.jit(partial(process.begin, setup))(jax.random.key(0), 0)


@cache
def answering(mistakes, knows_plans):
    maker = CrafterPlans(ENV, mistakes, knows_plans)
    return jax.jit(lambda key, state, asks: maker.answer(key, maker.init(key), state, asks))


def state_of(world, kind=Call.PLAN, asks=(True, True, True)):
    state = blank_state()
    minds = state.minds.replace(asks=jnp.array(asks), kind=jnp.full((3,), int(kind), jnp.int32))
    return state.replace(world=world, minds=minds)


def ask(state, mistakes=None, *, knows_plans=False):
    answer, _ = answering(mistakes or Mistakes(), knows_plans)(jax.random.key(1), state, state.minds.asks)
    return jax.device_get(answer)


def ops_of(answer, agent):
    return [[int(x) for x in op] for op in answer.plan.ops[agent, : answer.plan.length[agent]]]


def tasks_of(answer):
    return [NAMES[name] if name >= 0 else "" for name in answer.plan.spec[:, 0]]


TREES = ("", "..T.....T", "", ".a.b.....c", "", "..........T")


def test_without_tools_everybody_cuts_trees_each_its_own():
    answer = ask(state_of(world(*TREES)))
    assert tasks_of(answer) == ["collect_wood"] * 3
    assert len(set(answer.plan.spec[:, 2].tolist())) == 3
    first = ops_of(answer, 0)
    assert first[0] == [Op.NAVIGATE, Material.TREE, cell(2, 1) + 1, 14, 1]
    assert first[1] == [Op.COLLECT, Item.WOOD, cell(2, 1) + 1, 3, -1]
    assert [op[0] for op in first] == [Op.NAVIGATE, Op.COLLECT] * 2  # and another tree


def test_with_enough_wood_a_table_is_put_up_and_the_tool_made():
    answer = ask(state_of(world(*TREES, items={Item.WOOD: 7})))
    assert tasks_of(answer) == ["make_wood_pickaxe"] * 3
    assert [op[:2] for op in ops_of(answer, 1)] == [
        [Op.PLACE, PLACES.index("table")],
        [Op.CRAFT, Action.MAKE_WOOD_PICKAXE],
    ]


def test_a_table_that_is_near_is_used():
    tables = jnp.full((32,), -1, jnp.int16).at[0].set(cell(5, 5))
    small = world("", "", "", ".a.b.....c", "", ".....t", items={Item.WOOD: 7}, table=tables)
    answer = ask(state_of(small))
    assert ops_of(answer, 0)[0][:3] == [Op.NAVIGATE, Material.TABLE, 1]
    assert ops_of(answer, 0)[1][:2] == [Op.CRAFT, Action.MAKE_WOOD_PICKAXE]


IRON = ("", "", "...a....", "......I..", "...b..c.")


def test_the_squad_meets_at_the_iron_and_waits_for_the_last_one():
    answer = ask(state_of(world(*IRON, items=TOOLS)))
    assert tasks_of(answer) == ["collect_iron"] * 3
    assert answer.plan.spec[:, 2].tolist() == [cell(6, 3) + 1] * 3
    assert ops_of(answer, 0)[0] == [Op.NAVIGATE, Material.IRON, cell(6, 3) + 1, 16, 1]
    waits = ops_of(answer, 2)
    assert [op[0] for op in waits] == [Op.NOOP] * 3 + [Op.COLLECT]  # it is there; the others take three steps
    assert waits[-1][:3] == [Op.COLLECT, Item.IRON, cell(6, 3) + 1]


def test_where_rock_leaves_no_place_it_is_dug_out():
    tunnel = ("################", "################", "######I#########", "....a.b.c.......", "################")
    answer = ask(state_of(world(*tunnel, items=TOOLS)))
    assert tasks_of(answer) == ["collect_iron"] * 3
    digs = [a for a in range(3) if [Op.COLLECT, Item.STONE] in [op[:2] for op in ops_of(answer, a)]]
    assert len(digs) == 2  # one stands in the tunnel
    beside = {cell(5, 2) + 1, cell(7, 2) + 1}
    for agent in digs:
        go, collect, enter, *_ = ops_of(answer, agent)
        assert go[:3] == [Op.NAVIGATE, Material.STONE, collect[2]]
        assert enter == [Op.NAVIGATE, Material.PATH, collect[2], 20, 0]
        beside.remove(collect[2])


def test_who_found_no_way_to_the_meeting_does_something_of_its_own():
    state = state_of(world(*IRON, "#", items=TOOLS))
    ops = state.current.plan.ops.at[0, 0, 0].set(int(Op.NAVIGATE))
    held = state.current.replace(
        number=jnp.ones((3,), jnp.int32),
        status=jnp.full((3,), int(PlanStatus.FAILED), jnp.int32),
        plan=state.current.plan.replace(ops=ops, length=jnp.ones((3,), jnp.int32)),
    )
    assert tasks_of(ask(state.replace(current=held))) == ["collect_stone", "collect_iron", "collect_iron"]


def test_the_thirsty_drink_before_anything_else():
    low = world("~", *IRON[1:], items={**TOOLS, Item.DRINK: 2})
    assert tasks_of(ask(state_of(low))) == ["collect_drink"] * 3
    late = dataclasses.replace(low, t=jnp.int32(180))  # they last until the end of the episode
    assert tasks_of(ask(state_of(late))) == ["collect_iron"] * 3


def test_the_tired_sleep():
    answer = ask(state_of(world(*IRON, items={**TOOLS, Item.ENERGY: 1})))
    assert ops_of(answer, 0)[0][0] == Op.SLEEP


ALL_WRONG = Mistakes(wrong_tool=1, too_few=1, out_of_step=1, follows=0)


def test_who_lacks_the_tool_goes_for_the_ore_by_mistake():
    answer = ask(state_of(world(*IRON, "T")), ALL_WRONG)
    assert tasks_of(answer) == ["collect_iron"] * 3


def test_who_leaves_its_partners_works_for_itself():
    rocks = world(*IRON, "#......#.......#", items={**TOOLS, Item.IRON_PICKAXE: 1})
    assert tasks_of(ask(state_of(rocks))) == ["collect_iron"] * 3
    assert tasks_of(ask(state_of(rocks), ALL_WRONG)) == ["collect_stone"] * 3


def test_out_of_step_comes_on_top_of_the_waiting():
    state = state_of(world(*IRON, items=TOOLS))
    right, wrong = (ops_of(ask(state, m), 0) for m in (Mistakes(), Mistakes(out_of_step=1)))
    assert right[0] == wrong[0]
    assert right[-1] == wrong[-1]
    assert len(wrong) > len(right)
    assert {op[0] for op in wrong[1:-1]} == {Op.NOOP}


def after_repair(state, target):
    channel = state.channel
    plan = channel.plan.replace(
        spec=channel.plan.spec.at[:].set(jnp.array([TASKS.index("collect_coal"), Material.COAL, 7])),
        ops=channel.plan.ops.at[:, 0].set(jnp.array([Op.NOOP, -1, -1, -1, -1])),
        length=jnp.ones((3,), jnp.int32),
    )
    advised = jnp.array([True, False, False])
    channel = channel.replace(members=jnp.ones((3,), bool), target=jnp.int32(target), plan=plan, advised=advised)
    return state.replace(channel=channel, minds=state.minds.replace(got=jnp.full((3,), GOT_REPAIR, jnp.int32)))


def test_after_a_repair_the_advised_follow_and_the_others_go_for_its_target():
    two = world(*IRON, "", "", "............I", items=TOOLS)
    answer = ask(after_repair(state_of(two), cell(12, 7)))
    assert ops_of(answer, 0) == [[Op.NOOP, -1, -1, -1, -1]]
    assert answer.plan.spec[1:, 2].tolist() == [cell(12, 7) + 1] * 2


def test_after_a_repair_nobody_makes_mistakes():
    answer = ask(after_repair(state_of(world(*IRON, "#", items=TOOLS)), cell(6, 3)), ALL_WRONG)
    assert tasks_of(answer) == ["collect_iron"] * 3  # the advised one does not follow, but joins in


def committed(state, cells, kind=Material.IRON):
    """Everybody carries out a plan to collect one of these cells."""
    spec = jnp.stack([jnp.full((3,), 3), jnp.full((3,), int(kind)), jnp.array(cells) + 1], 1).astype(jnp.int32)
    held = state.current
    return state.replace(
        current=held.replace(
            number=jnp.arange(1, 4, dtype=jnp.int32),
            status=jnp.full((3,), int(PlanStatus.EXECUTING), jnp.int32),
            plan=held.plan.replace(spec=spec),
        )
    )


def test_who_got_mail_replans_if_its_object_is_gone():
    here, gone = cell(6, 3), cell(0, 0)
    state = committed(state_of(world(*IRON, items=TOOLS), Call.DECIDE), [here, here, gone])
    assert ask(state).verdict.tolist() == [Verdict.RESUME, Verdict.RESUME, Verdict.REPLAN]


def test_who_knows_that_its_partners_are_elsewhere_replans():
    two = world(*IRON, "", "", "............I", items=TOOLS)
    here, there = cell(6, 3), cell(12, 7)
    state = committed(state_of(two, Call.DECIDE), [here, here, there])
    assert ask(state).verdict.tolist() == [Verdict.RESUME] * 3
    assert ask(state, knows_plans=True).verdict.tolist() == [Verdict.REPLAN] * 3


def test_who_knows_what_the_others_have_agreed_on_joins_them():
    two = world(*IRON, "", "", "............I", items=TOOLS)
    state = committed(state_of(two, asks=(False, False, True)), [cell(12, 7)] * 3)
    assert ask(state).plan.spec[2, 2] == cell(6, 3) + 1
    assert ask(state, knows_plans=True).plan.spec[2, 2] == cell(12, 7) + 1


def test_targets_at_which_nothing_is_got_are_given_up():
    squads = CrafterPlans(ENV).squads
    memory, here = nothing_tried(squads), jnp.array([70])
    for _ in range(PATIENCE):
        memory = remembered(squads, memory, here, jnp.array([squads.size]))
        assert (memory.given_up == -1).all()
    memory = remembered(squads, memory, here, jnp.array([1]))
    assert memory.given_up[0].tolist() == [70] + [-1] * (GIVEN_UP - 1)


def test_waves_find_the_nearest_cell_by_walking():
    walls = np.zeros((16, 16), bool)
    walls[4, :15] = True  # a wall with a gap at the lower end
    ground, size = waves.pack(jnp.asarray(~walls)), waves.num_words(16, 16)
    x, y = jnp.array([3, 3]), jnp.array([0, 14])
    goals = jnp.broadcast_to(waves.union(16, size, jnp.array([5, 0]), jnp.array([14, 2])), (2, size))
    found = nearest(16, ground, goals, x, y, jnp.array([True, True]))
    assert found.found.all()
    assert list(zip(found.x.tolist(), found.y.tolist())) == [(0, 2), (5, 14)]
    assert found.steps.tolist() == [4, 3]
    assert not nearest(16, ground, goals, x, y, jnp.array([False, True])).found[0]


def test_floods_stop_at_walls_and_disks_at_two_steps():
    walls = np.zeros((16, 16), bool)
    walls[4] = True
    size = waves.num_words(16, 16)
    begin = waves.single(16, size, jnp.array([2]), jnp.array([9]))
    reached = unpack(flood(16, waves.pack(jnp.asarray(~walls)), begin), 16, 16)[0]
    assert reached[:4].all()
    assert not reached[4:].any()
    assert unpack(disk(16, size, jnp.array([8]), jnp.array([8])), 16, 16).sum() == 13
