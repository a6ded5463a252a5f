"""Goals of plans in the crafting world: names, completion, what counts as achieved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.types import Plan
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.goal_text import goal_missed, is_positive, task_name
from jaxcoop.envs.macrafter.goals import DOES, NAMES, TASKS, collecting, complete, missed, preparing, progress, waiting
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import PLACES, Action, Draws, Item, Material, Thing

ENV = MACrafter(agents=2, width=5, height=5, balance=False)
SKILLS = ENV.skills
PADDING = [-1] * 5


def op(kind, *arguments):
    return [int(kind), *(int(a) for a in arguments), *[-1] * (4 - len(arguments))]


def completed(spec, *ops, room=4):
    """Ops of the completed plan."""
    rows = jnp.array([[*ops, *[PADDING] * (room - len(ops))]], jnp.int32)
    plan = jax.jit(complete)(Plan(jnp.array([spec], jnp.int32), rows, jnp.array([len(ops)], jnp.int32)))
    assert (np.asarray(plan.ops[0, plan.length[0] :]) == -1).all()
    return plan.ops[0, : plan.length[0]].tolist()


def spec(name, kind=-1, ident=-1):
    return [TASKS.index(name), kind, ident]


COAL_7 = spec("collect_coal", Material.COAL, 7)
GO = op(Op.NAVIGATE, Material.COAL, 7, 20)


def test_a_plan_to_collect_gets_a_collect_at_its_end():
    assert completed(COAL_7, GO) == [GO, op(Op.COLLECT, Item.COAL, 7)]
    assert completed(COAL_7) == [op(Op.COLLECT, Item.COAL, 7)]


def test_matching_collects_get_the_id_unless_they_have_one():
    wood = op(Op.COLLECT, Item.WOOD, -1, 3)
    assert completed(COAL_7, op(Op.COLLECT, Item.COAL, -1, 3), wood) == [op(Op.COLLECT, Item.COAL, 7, 3), wood]
    assert completed(COAL_7, op(Op.COLLECT, -1, -1, 2)) == [op(Op.COLLECT, Item.COAL, 7, 2)]
    assert completed(COAL_7, op(Op.COLLECT, Item.COAL, 9)) == [op(Op.COLLECT, Item.COAL, 9)]


def test_plans_to_make_and_to_place_get_their_op():
    stone, wood = op(Op.CRAFT, Action.MAKE_STONE_PICKAXE), op(Op.CRAFT, Action.MAKE_WOOD_PICKAXE)
    assert completed(spec("make_wood_pickaxe", Material.TABLE, 1), stone) == [stone, wood]
    assert completed(spec("make_wood_pickaxe"), wood, GO) == [wood, GO]
    assert completed(spec("place_stone", Material.GRASS, 0)) == [op(Op.PLACE, PLACES.index("stone"))]


def test_a_plan_without_a_goal_or_without_room_is_left_alone():
    assert completed([-1, -1, -1], GO) == [GO]
    assert completed([len(NAMES), -1, -1], GO) == [GO]
    assert completed(COAL_7, GO, GO, room=2) == [GO, GO]


def test_every_goal_has_the_op_that_its_name_says():
    for (kind, what), name in zip(DOES, NAMES):
        word = {Op.COLLECT: "collect", Op.CRAFT: "make", Op.PLACE: "place"}[kind]
        thing = {Op.COLLECT: Item, Op.CRAFT: Action}.get(kind, lambda number: Item(number))
        said = PLACES[what] if kind == Op.PLACE else thing(what).name.lower().removeprefix("make_")
        assert name == f"{word}_{said}"


def test_tasks_of_recommended_plans_are_named_after_their_type():
    kinds = jnp.array([Material.TREE, Material.DIAMOND, Thing.COW, Material.WATER, Material.GRASS, -1])
    assert [NAMES[n] for n in collecting(kinds)[:4]] == [f"collect_{x}" for x in ("wood", "diamond", "food", "drink")]
    assert [NAMES[n] for n in waiting(kinds)[:4]] == [
        f"wait_for_{x}_partner" for x in ("tree", "diamond", "cow", "water")
    ]
    assert NAMES[int(preparing(kinds[1], jnp.int32(2)))] == "prepare_iron_pickaxe_for_diamond"
    for names in (collecting(kinds), waiting(kinds), preparing(kinds, jnp.int32(1))):
        assert names[4:].tolist() == [-1, -1]


@jax.jit
def advance(state, ops):
    """Progress in one step in which the agents begin ops."""
    memory = SKILLS.begin(state, SKILLS.idle(), ops, jnp.ones(2, bool))
    command, memory = SKILLS.command(state, memory)
    nxt = ENV.step(state, command, Draws(cow=jnp.full(state.cow_x.shape, -1, jnp.int8), balance=None)).state
    return nxt, progress(state, nxt, ops)


@pytest.fixture
def state():
    """Agent 0 beside a tree with 3 wood, agent 1 beside a stone that it has no tool for."""
    ground = jnp.full((5, 5), Material.GRASS, jnp.uint8).at[2, 1].set(Material.TREE).at[4, 3].set(Material.STONE)
    nobody = jnp.zeros(0, jnp.int16)
    state = ENV.start(ground, nobody, nobody, jnp.array([2, 4], jnp.int16), jnp.array([2, 2], jnp.int16))
    return state.replace(inventory=state.inventory.at[0, Item.WOOD].set(3))


def achieved(bits):
    return {name for number, name in enumerate(NAMES[: len(DOES)]) if int(bits) >> number & 1}


def test_what_an_agent_does_is_progress_of_its_own(state):
    take = op(Op.COLLECT, Item.STONE)
    state, bits = advance(state, jnp.array([op(Op.COLLECT, Item.WOOD), take], jnp.int32))
    assert [achieved(b) for b in bits] == [{"collect_wood"}, set()]
    state, bits = advance(state, jnp.array([op(Op.PLACE, PLACES.index("table")), take], jnp.int32))
    assert [achieved(b) for b in bits] == [{"place_table"}, set()]
    state, bits = advance(state, jnp.array([op(Op.CRAFT, Action.MAKE_WOOD_PICKAXE), take], jnp.int32))
    assert [achieved(b) for b in bits] == [{"make_wood_pickaxe"}, set()]
    share = op(Op.SHARE, 1, Item.WOOD_PICKAXE, 1)
    _, bits = advance(state, jnp.array([share, op(Op.NOOP)], jnp.int32))
    assert [achieved(b) for b in bits] == [set(), {"make_wood_pickaxe"}]


@pytest.mark.parametrize("idle", [op(Op.MOVE, Action.MOVE_UP, 1), op(Op.NAVIGATE, Material.STONE, 24, 9)])
def test_moving_and_navigating_show_nothing(state, idle):
    _, bits = advance(state, jnp.array([op(Op.SHARE, 1, Item.WOOD, 1), idle], jnp.int32))
    assert [achieved(b) for b in bits] == [set(), set()]


def test_only_goals_can_be_missed():
    names = jnp.array([[0, -1, -1], [1, -1, -1], [12, -1, -1], [13, -1, -1], [-1, -1, -1], [99, -1, -1]], jnp.int32)
    assert missed(names, jnp.full(6, 1, jnp.uint32)).tolist() == [False, True, True, False, False, False]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" collect_Wood (tree#1)", "collect_wood"),
        ("place_table", "place_table"),
        ("collect wood", ""),
        ("collect-wood", ""),
        ("7up(x)", ""),
        ("", ""),
    ],
)
def test_names_lead_the_text(text, name):
    assert task_name(text) == name


def test_amounts_are_positive_as_numbers_as_texts_or_as_things():
    assert all(map(is_positive, (1, 0.5, "2", True, "some", [0])))
    assert not any(map(is_positive, (0, -1, "0", "-3", "", None, [], "nan")))


def outcome(**effects):
    return [{"effects": effects}]


def test_capitals_do_not_matter_for_what_is_collected_and_placed():
    assert not goal_missed("collect_coal", outcome(inventory_delta={"Coal": 1}))
    assert not goal_missed("collect_food", outcome(collections=[{"resource_type": "Cow"}]))
    assert goal_missed("collect_food", outcome(achievement_delta={"eat_plant": 1}))
    assert goal_missed("make_wood_pickaxe", outcome(inventory_delta={"Wood_Pickaxe": 1}))
    assert not goal_missed("make_wood_pickaxe", outcome(achievement_delta={"make_wood_pickaxe": "1"}))
    assert not goal_missed("place_stone", outcome(achievement_delta={"place_stone": 1}))
    assert goal_missed("place_stone", outcome(place_results=[{"object_type": "table", "success": True}]))
    assert goal_missed("collect_wood", [None, {}, {"effects": None}])
