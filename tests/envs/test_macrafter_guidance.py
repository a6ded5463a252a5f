"""What a repair channel is advised to do: distances, tools, candidates, plans."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cognition.repair.config import PRESETS
from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.core import rarely as rarely_module
from jaxcoop.core.rarely import rarely
from jaxcoop.envs.macrafter import guidance_text, repair
from jaxcoop.envs.macrafter.config import Requirement
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.fields import steps_to_cells
from jaxcoop.envs.macrafter.goals import NAMES
from jaxcoop.envs.macrafter.guidance import PLAN_OPS, Members, Targets, advise, planned_tools
from jaxcoop.envs.macrafter.hints import Surroundings
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.tools import ANY, is_met, preparations, required_tools, tools_missing
from jaxcoop.envs.macrafter.types import PLACES, Action, Item, Material

CONFIG = PRESETS["macrafter"]
WOOD, STONE, IRON = 1, 2, 4  # pickaxes


def op(kind, *arguments):
    return [int(kind), *(int(a) for a in arguments), *[-1] * (4 - len(arguments))]


@pytest.mark.parametrize(("width", "height", "distance"), [(9, 40, 1), (33, 7, 2)])
def test_steps_are_those_of_a_search_from_each_agent(width, height, distance):
    env = MACrafter(agents=4, width=width, height=height, distance=distance)
    state = jax.jit(env.reset)(jax.random.key(width))
    state = state.replace(removed=jnp.array([False, False, False, True]))
    asks = jnp.array([True, True, False, True])
    steps = np.asarray(jax.jit(partial(steps_to_cells, reach=distance))(state, asks=asks))
    assert (steps[2:] == -1).all()
    for agent in (0, 1):
        around = Surroundings(env, jax.device_get(state), agent)
        want = [around.steps_to(divmod(cell, height), distance) for cell in range(width * height)]
        assert steps[agent].tolist() == want


def inventory(**items):
    row = np.zeros(16, np.int32)
    for name, count in items.items():
        row[Item[name.upper()]] = count
    return row


prepare = jax.jit(preparations)


def prepared(held, tools, near):
    found = prepare(jnp.asarray(held)[None], jnp.array([near]))
    ops = [row for row in found.ops[0, tools].tolist() if row[0] >= 0]
    assert len(ops) == found.count[0, tools]
    return ops, bool(found.makes[0, tools])


PLACE_TABLE, PLACE_FURNACE = op(Op.PLACE, PLACES.index("table")), op(Op.PLACE, PLACES.index("furnace"))
MAKE = [op(Op.CRAFT, action) for action in range(Action.MAKE_WOOD_PICKAXE, Action.MAKE_IRON_PICKAXE + 1)]


def collect(name):
    return op(Op.COLLECT, Item[name.upper()])


@pytest.mark.parametrize(
    ("held", "tools", "near", "ops", "makes"),
    [
        ({"wood": 1}, WOOD, (True, False), [MAKE[0]], True),
        ({"wood": 3}, WOOD, (False, False), [PLACE_TABLE, MAKE[0]], True),
        ({"wood": 2}, WOOD, (False, False), [collect("wood")], False),
        ({"wood": 1}, STONE, (True, False), [collect("stone")], False),
        ({"wood": 3}, STONE, (False, True), [collect("stone")], False),
        ({"wood": 2, "stone": 1}, STONE, (False, False), [collect("wood")], False),
        ({"wood": 1, "coal": 1, "iron": 1, "stone": 4}, IRON, (True, False), [PLACE_FURNACE, MAKE[2]], True),
        ({"wood": 1, "coal": 1, "iron": 1, "stone": 3}, IRON, (True, False), [collect("stone")], False),
        ({"wood": 1, "iron": 1}, IRON, (False, True), [collect("coal")], False),
        ({"wood": 1, "coal": 1}, IRON, (False, True), [collect("iron")], False),
        ({"wood": 4, "stone": 1}, WOOD | STONE, (False, False), [PLACE_TABLE, MAKE[0], MAKE[1]], True),
        ({"wood": 3, "stone": 1}, WOOD | STONE, (False, False), [PLACE_TABLE, MAKE[0], collect("wood")], False),
        ({}, 0, (False, False), [], True),
    ],
)
def test_tools_are_made_or_their_first_missing_part_is_collected(held, tools, near, ops, makes):
    assert prepared(inventory(**held), tools, near) == (ops, makes)


def test_requirements_are_met_by_all_tools_or_by_any():
    both = required_tools(Requirement(2, ("wood_pickaxe", "iron_pickaxe")))
    either = required_tools(Requirement(2, ("wood_pickaxe", "iron_pickaxe"), any_tool=True))
    assert (both, either) == (WOOD | IRON, WOOD | IRON | ANY)
    for tools, met, missing in ((0, (0, 0), (5, 1)), (IRON, (0, 1), (1, 0)), (WOOD | IRON, (1, 1), (0, 0))):
        assert (is_met(both, tools), is_met(either, tools)) == met
        assert (tools_missing(both, tools), tools_missing(either, tools)) == missing


def test_plans_bring_tools_until_they_collect():
    plans = [
        [MAKE[0], collect("wood"), MAKE[1]],
        [op(Op.SHARE, 1, Item.IRON_PICKAXE, 1), op(Op.SHARE, 0, Item.WOOD_PICKAXE, 1)],
        [op(Op.SHARE, -1, Item.STONE_PICKAXE, 1), op(Op.CRAFT, Action.MAKE_IRON_SWORD), MAKE[2]],
    ]
    ops = np.full((3, 3, 5), -1, np.int32)
    for agent, plan in enumerate(plans):
        ops[agent, : len(plan)] = plan
    remains = jnp.asarray(ops[..., 0] >= 0)
    assert planned_tools(jnp.asarray(ops), remains).tolist() == [WOOD, IRON, STONE | IRON]
    assert planned_tools(jnp.asarray(ops), remains.at[:, 0].set(False)).tolist() == [0, 0, IRON]


AGENTS, TASKS, MOST = 12, 30, 4


@partial(jax.jit, static_argnums=(0, 1))
def advised(length, tolerance, targets, steps, members):
    return advise(tolerance, MOST, targets, steps, members, length)


def scene(seed):
    """Random tasks, ways, agents."""
    rng = np.random.default_rng(seed)
    kind = rng.choice([Material.TREE, Material.COAL, Material.IRON, Material.DIAMOND], TASKS).astype(np.int32)
    tools = np.select([kind == k for k in (Material.TREE, Material.COAL, Material.IRON)], [0, WOOD, STONE], 0)
    ident = rng.permutation(200)[:TASKS].astype(np.int32) + 1
    targets = Targets(
        is_wanted=rng.random(TASKS) < 0.8,
        kind=kind,
        required=rng.integers(1, MOST + 1, TASKS).astype(np.int32),
        tools=np.where(kind == Material.DIAMOND, WOOD | IRON | ANY * rng.integers(2), tools).astype(np.int32),
        place=np.zeros((TASKS, 2), np.int32),
        reach=rng.integers(0, 3, TASKS).astype(np.int32),
        ident=ident,
        order=np.argsort(np.argsort(ident.astype(str))).astype(np.int32),
    )
    members = Members(
        is_available=rng.random(AGENTS) < 0.7,
        inventory=rng.integers(0, 3, (AGENTS, 16)).astype(np.int32) * rng.integers(0, 2, (AGENTS, 16)).astype(np.int32),
        near=rng.random((AGENTS, 2)) < 0.4,
        planned=rng.integers(0, 8, AGENTS).astype(np.int32) * (rng.random(AGENTS) < 0.3),
    )
    return targets, rng.integers(-1, 9, (AGENTS, TASKS)).astype(np.int32), members


def held_by(row):
    return sum(1 << k for k, item in enumerate((Item.WOOD_PICKAXE, Item.STONE_PICKAXE, Item.IRON_PICKAXE)) if row[item])


def expected(targets, steps, members):
    """The same by sorting: (slot, participants with their steps until they can collect), best first."""
    found = []
    for slot in np.flatnonzero(targets.is_wanted):
        tools, need = int(targets.tools[slot]), int(targets.required[slot])
        able = []
        for i in np.flatnonzero(members.is_available & (steps[:, slot] >= 0)):
            held = held_by(members.inventory[i])
            has = bool(is_met(tools, held))
            ops, makes = prepared(members.inventory[i], int(tools_missing(tools, held)), tuple(members.near[i]))
            will = makes or bool(is_met(tools, held | int(members.planned[i])))
            able.append((0 if has else 1 if will else 2, int(steps[i, slot]) + len(ops), f"agent_{i}"))
        ready = sorted(entry for entry in able if entry[0] == 0)
        chosen = (ready if len(ready) >= need else sorted(able))[:need]
        if len(chosen) == need:
            times = [time for _, time, _ in chosen]
            is_now, name = all(rank == 0 for rank, _, _ in chosen), str(targets.ident[slot])
            key = (not is_now, max(times), max(times) - min(times), name)
            found.append((key, int(slot), {name: time for _, time, name in chosen}))
    return [(slot, who) for _, slot, who in sorted(found)[:5]]


@pytest.mark.parametrize("seed", range(4))
def test_candidates_are_those_of_a_plain_sort(seed):
    targets, steps, members = scene(seed)
    found = jax.device_get(advised(PLAN_OPS, CONFIG.temporal_tolerance, targets, steps, members)).candidates
    got = [
        (int(found.slot[k]), {f"agent_{i}": int(found.until[k, i]) for i in np.flatnonzero(found.participants[k])})
        for k in np.flatnonzero(found.found)
    ]
    assert got == expected(targets, steps, members)
    assert len(got) == 5


def test_collects_last_as_long_as_plans_may_miss_each_other():
    plan = advised(PLAN_OPS, 6, *scene(1)).guidance.plan
    collects = np.asarray(plan.ops)[np.asarray(plan.ops)[..., 0] == Op.COLLECT]
    assert len(collects) > 0
    assert (collects[:, 3] == 7).all()


def test_plans_need_room():
    with pytest.raises(ValueError, match="ops of a plan 5: must be 6 or more"):
        advised(PLAN_OPS - 1, 2, *scene(0))


SIDE, OPS = 12, 7
ENV = MACrafter(agents=3, width=SIDE, height=SIDE, balance=False)


def cell(x, y):
    return x * SIDE + y + 1


def state_of(things, agents, *items):
    ground = np.full((SIDE, SIDE), Material.GRASS, np.uint8)
    for place, kind in things.items():
        ground[place] = kind
    nobody = jnp.zeros(0, jnp.int16)
    state = ENV.start(jnp.asarray(ground), nobody, nobody, *jnp.asarray(np.array(agents, np.int16).T))
    held = state.inventory
    for agent, item, count in items:
        held = held.at[agent, item].set(count)
    return state.replace(inventory=held)


def views_of(*plans):
    ops = np.full((3, OPS, 5), -1, np.int32)
    for agent, plan in enumerate(plans):
        ops[agent, : len(plan)] = np.reshape(plan, (-1, 5))
    has_plan = jnp.asarray([bool(plan) for plan in plans])
    length = jnp.asarray(np.array([len(plan) for plan in plans], np.int32))
    plan = Plan(jnp.full((3, 3), -1, jnp.int32), jnp.asarray(ops), length)
    return PlanViews(has_plan, has_plan, jnp.ones(3, jnp.int32), jnp.zeros(3, jnp.int32), plan)


def guided(state, views, asks=None):
    evaluation = repair.evaluate(ENV, CONFIG, state, views)
    return repair.guide(ENV, CONFIG, state, views, evaluation, asks).guidance


guide = jax.jit(guided)
COAL, FAR = (5, 5), (5, 9)


def take(place):
    return op(Op.COLLECT, Item.COAL, cell(*place), 3)


def split_world():
    """Two coals; water keeps agent 2, who has no plan, and the first coal from the others."""
    things = {COAL: Material.COAL, FAR: Material.COAL, **{(x, 7): Material.WATER for x in range(SIDE)}}
    agents = ((4, 9), (8, 9), (5, 2))
    return state_of(things, agents, (0, Item.WOOD_PICKAXE, 1), (1, Item.WOOD_PICKAXE, 1))


def test_the_target_is_one_that_enough_can_get_to():
    found = guide(split_world(), views_of([take(COAL)], [take(COAL)], []))
    assert int(found.target) == cell(*FAR) - 1
    assert found.participants.tolist() == [True, True, False] == found.has_plan.tolist()
    go, wait = op(Op.NAVIGATE, Material.COAL, cell(*FAR), 7, 1), op(Op.NOOP)
    collects = op(Op.COLLECT, Item.COAL, cell(*FAR), 3)
    assert found.plan.length.tolist() == [5, 3, 0]
    assert found.plan.ops[0, :5].tolist() == [go, wait, wait, wait, collects]
    assert found.plan.ops[1, :3].tolist() == [go, wait, collects]
    assert [NAMES[word] for word in found.plan.spec[:2, 0]] == ["collect_coal"] * 2
    assert found.plan.spec[0, 1:].tolist() == [Material.COAL, cell(*FAR)]
    assert (found.plan.spec[2] == -1).all()
    assert (np.asarray(found.plan.ops)[0, 5:] == -1).all()


def test_only_types_that_fail_are_recommended():
    trees = {(8, 10): Material.TREE, COAL: Material.COAL}
    state = state_of(trees, ((8, 9), (9, 9), (5, 2)), (0, Item.WOOD_PICKAXE, 1))
    found = guide(state, views_of([take(COAL)], [op(Op.NOOP)], []))
    assert int(found.target) == cell(*COAL) - 1
    assert [NAMES[word] for word in found.plan.spec[:2, 0]] == [
        "wait_for_coal_partner",
        "prepare_wood_pickaxe_for_coal",
    ]
    assert found.plan.ops[1, 0].tolist() == collect("wood")


def test_without_candidates_there_is_no_advice():
    alone = guide(split_world(), views_of([], [], [take(COAL)]))
    assert not alone.has_target
    assert int(alone.target) == -1
    assert not alone.has_plan.any()
    assert (alone.plan.ops == -1).all()


def test_in_a_batch_only_those_get_advice_that_ask():
    states = [split_world(), split_world(), state_of({COAL: Material.COAL}, ((4, 9), (8, 9), (5, 2)))]
    views = [views_of([take(COAL)], [take(COAL)], [])] * 2 + [views_of([take(COAL)], [take(COAL)], [take(COAL)])]
    asks = jnp.array([False, True, True])
    batch = (jax.tree.map(lambda *x: jnp.stack(x), *rows) for rows in (states, views))
    together = jax.jit(jax.vmap(guided))(*batch, asks)
    assert together.has_target.tolist() == [False, True, True]
    assert int(together.target[0]) == -1
    assert (together.plan.ops[0] == -1).all()
    for number in (1, 2):
        alone = guide(states[number], views[number])
        for got, want in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(got[number], want)


def test_a_batch_of_batches_is_worked_off_like_one():
    def root(x):
        return {"root": jnp.sqrt(x)}

    asks = jnp.arange(6).reshape(2, 3) % 2 == 0
    values = jnp.arange(6.0).reshape(2, 3)
    want = np.where(asks, np.sqrt(values), 0)
    np.testing.assert_allclose(jax.vmap(jax.vmap(partial(rarely, root)))(asks, values)["root"], want)
    np.testing.assert_allclose(jax.vmap(partial(rarely, root))(asks[0], values[0])["root"], want[0])
    shared = jax.vmap(jax.vmap(partial(rarely, root), (0, None)), (0, 0))(asks, values[:, 1])["root"]
    np.testing.assert_allclose(shared, np.where(asks, np.sqrt(values[:, 1:2]), 0))
    assert rarely(root, asks[0, 1], values[0, 1])["root"] == 0


@pytest.mark.parametrize("block", [1, 2, 4, 64])
def test_those_that_ask_are_taken_in_blocks_of_any_size(block):
    asks = jnp.array([True, False, True, True, False, True, True])
    got = rarely_module._in_blocks(jnp.sqrt, block, asks, jnp.arange(7.0))
    np.testing.assert_allclose(got, np.where(asks, np.sqrt(np.arange(7.0)), 0))
    assert (rarely_module._in_blocks(jnp.exp, block, ~asks & asks, jnp.arange(7.0)) == 0).all()


SUGGESTED = [
    ({"wood": 1}, WOOD, "table", "craft"),
    ({}, WOOD, "table", "collect_wood_return_craft"),
    ({"wood": 2}, WOOD, "", "place_table_then_craft"),
    ({"wood": 1}, WOOD, "", "collect_wood"),
    ({"stone": 1, "wood": 1}, STONE, "table", "need_wood_pickaxe"),
    ({"wood_pickaxe": 1, "wood": 1}, STONE, "table", "coordinate_stone"),
    ({"wood_pickaxe": 1, "stone": 1}, STONE, "table", "collect_one_wood"),
    ({"wood_pickaxe": 1, "stone": 1, "wood": 2}, STONE, "", "place_table_then_craft"),
    ({"wood_pickaxe": 1, "stone": 1, "wood": 1}, STONE, "", "navigate_table_or_wood"),
    ({"wood_pickaxe": 1, "stone": 1, "wood": 1}, STONE, "table", "craft"),
    ({"iron": 1, "coal": 1, "wood": 1}, IRON, "furnace", "need_stone_pickaxe"),
    ({"stone_pickaxe": 1, "coal": 1, "wood": 1}, IRON, "furnace", "coordinate_iron"),
    ({"stone_pickaxe": 1, "iron": 1, "wood": 1}, IRON, "furnace", "coordinate_coal"),
    ({"stone_pickaxe": 1, "iron": 1, "coal": 1}, IRON, "furnace", "collect_one_wood"),
    ({"stone_pickaxe": 1, "iron": 1, "coal": 1, "wood": 1, "stone": 4}, IRON, "table", "place_furnace_then_craft"),
    ({"stone_pickaxe": 1, "iron": 1, "coal": 1, "wood": 1, "stone": 3}, IRON, "", "collect_stone"),
    ({"stone_pickaxe": 1, "iron": 1, "coal": 1, "wood": 1}, IRON, "furnace", "craft"),
    ({"wood_pickaxe": 1}, WOOD | IRON, "", "need_stone_pickaxe"),
    ({"wood_pickaxe": 1}, WOOD | IRON | ANY, "", "collect"),
    ({}, WOOD | IRON | ANY, "", "collect_wood"),
]


@pytest.mark.parametrize(("held", "tools", "station", "code"), SUGGESTED)
def test_the_next_step_towards_a_tool_is_suggested(held, tools, station, code):
    near = np.array([station == "table", station == "furnace"])
    assert guidance_text.suggestion(tools, inventory(**held), near, planned=False) == code
    want = "collect" if code == "collect" else "finish_plan"
    assert guidance_text.suggestion(tools, inventory(**held), near, planned=True) == want
