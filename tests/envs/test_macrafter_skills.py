"""Symbolic actions of the crafting world: names of things, primitives, statuses."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.skills import Status
from jaxcoop.envs.macrafter import ids
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.skills import OPS, OWN_TARGET, MACrafterSkills, Op
from jaxcoop.envs.macrafter.types import Achievement, Action, Draws, Item, Material, Reason, Thing

ENV = MACrafter(agents=2, width=7, height=4, max_steps=1000, balance=False, end_on_death=False)
SKILLS = MACrafterSkills(ENV)
LETTERS = {".": 2, "w": 1, "s": 3, "T": 6, "L": 7, "c": 8, "i": 9, "t": 11, "f": 12}
PENDING, SUCCESS, FAILED = (int(status) for status in Status)
NOBODY = (-1, -1)


def world(text, inventory=()):
    """The state of a drawing: `0`, `1` agents, `C` cows on grass, other letters as in `LETTERS`."""
    rows = text.split()
    cells = {(x, y): letter for y, row in enumerate(rows) for x, letter in enumerate(row)}
    material = np.array([[LETTERS.get(cells[x, y], 2) for y in range(4)] for x in range(7)], np.uint8)
    cows = np.array([cell for cell, letter in sorted(cells.items()) if letter == "C"] or [NOBODY], np.int16)
    agents = np.array(
        [next((cell for cell, letter in cells.items() if letter == name), NOBODY) for name in "01"], np.int16
    )
    state = ENV.start(jnp.asarray(material), *(jnp.asarray(part) for part in (*cows.T, *agents.T)))
    held = state.inventory
    for agent, item, count in inventory:
        held = held.at[agent, int(item)].set(count)
    tables = np.flatnonzero(material.reshape(-1) == Material.TABLE)
    table = state.table.at[: len(tables)].set(jnp.asarray(tables, jnp.int16))
    return dataclasses.replace(state, inventory=held, table=table)


def op(kind, *arguments):
    return [int(kind), *(int(a) for a in arguments), *[-1] * (SKILLS.width - 1 - len(arguments))]


def cell(x, y):
    return x * 4 + y + 1


NOTHING = op(Op.NOOP)


@jax.jit
def advance(state, memory, ops, fresh):
    memory = SKILLS.begin(state, memory, ops, fresh)
    command, memory = SKILLS.command(state, memory)
    nxt = ENV.step(state, command, Draws(cow=jnp.full(state.cow_x.shape, -1, jnp.int8), balance=None)).state
    return nxt, memory, command, SKILLS.check(nxt, memory)


def play(state, first, second=NOTHING, steps=1):
    """Primitives, statuses and reasons of agent 0 in each step of its op, and the last state."""
    memory, ended, seen = SKILLS.idle(), np.ones(2, bool), []
    for _ in range(steps):
        state, memory, command, report = advance(state, memory, jnp.array([first, second], jnp.int32), ended)
        ended = np.asarray(report.status) != Status.PENDING
        seen.append((int(command.action[0]), int(report.status[0]), int(report.reason[0])))
        if ended[0]:
            break
    return seen, state


@pytest.mark.parametrize(
    ("kind", "ident", "place"),
    [
        (Material.TABLE, 1, (1, 0)),
        (Material.TABLE, 2, (4, 3)),
        (Material.TABLE, cell(4, 3), (4, 3)),
        (Material.TABLE, 3, None),
        (Material.TREE, cell(2, 1), (2, 1)),
        (Material.STONE, cell(2, 1), None),
        (Thing.COW, 29, (0, 3)),
        (Thing.COW, 30, (5, 1)),
        (Thing.COW, 31, None),
        (Thing.PLAYER, 31, (0, 0)),
        (Thing.PLAYER, 32, None),
        (ids.ANY, 30, (5, 1)),
        (ids.ANY, cell(2, 1), (2, 1)),
        (Material.GRASS, 0, None),
        (Thing.COW, -1, None),
        (Material.TREE, 2**31 - 1, None),
        (Thing.PLAYER, -(2**31), None),
    ],
)
def test_things_are_found_by_type_and_id(kind, ident, place):
    state = world("0t..... ..T..C. ....... C...t..")  # agent 1 is not in the world
    found = ids.resolve(state, jnp.array([kind], jnp.int32), jnp.array([ident], jnp.int32))
    assert bool(found.found[0]) == (place is not None)
    assert (int(found.x[0]), int(found.y[0])) == (place or NOBODY)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tree", Material.TREE),
        (" Furnace ", Material.FURNACE),
        ("cow", Thing.COW),
        ("player", Thing.PLAYER),
        ("Agent 2", Thing.PLAYER),
        ("agent", Thing.PLAYER),
        ("2", Thing.PLAYER),
        ("unicorn", Material.NONE),
        ("", ids.ANY),
        (None, ids.ANY),
    ],
)
def test_types_are_understood_as_planners_write_them(name, kind):
    assert ids.kind_of(name) == kind


def test_agents_have_the_ids_after_those_of_the_cows():
    assert ids.agent_ids(world("0...C.. ....... ..C.... ......1")).tolist() == [31, 32]


def test_a_material_that_is_gone_is_not_found_by_the_id_of_its_cell():
    state = world("0...... ..T.... ....... .......")
    state = dataclasses.replace(state, material=state.material.at[2, 1].set(Material.GRASS))
    found = ids.resolve(state, jnp.array([Material.TREE], jnp.int32), jnp.array([cell(2, 1)], jnp.int32))
    assert not found.found[0]


def test_navigate_walks_until_it_is_within_the_radius():
    seen, state = play(world("0...... ....... ....... ......T"), op(Op.NAVIGATE, Material.TREE, cell(6, 3)), steps=20)
    assert len(seen) == 8
    assert seen[0] == (Action.MOVE_DOWN, PENDING, 0)
    assert seen[-1][1] == SUCCESS
    assert (int(state.x[0]), int(state.y[0])) == (5, 3)


def test_navigate_to_something_near_is_one_noop():
    seen, _ = play(world("0T..... ....... ....... ......."), op(Op.NAVIGATE, Material.TREE, cell(1, 0)), steps=3)
    assert seen == [(Action.NOOP, SUCCESS, 0)]


@pytest.mark.parametrize(("timeout", "end"), [(2, (FAILED, Reason.TIMEOUT)), (3, (SUCCESS, 0))])
def test_the_time_limit_of_navigate_wins_over_an_arrival_in_the_same_step(timeout, end):
    start = world("0..T... ....... ....... .......")
    seen, state = play(start, op(Op.NAVIGATE, Material.TREE, cell(3, 0), timeout), steps=5)
    assert int(state.x[0]) == 2
    assert len(seen) == 2
    assert seen[-1][1:] == end


def test_navigate_to_something_unknown_fails_after_one_noop():
    seen, _ = play(world("0...... ....... ....... ......."), op(Op.NAVIGATE, Material.TREE, cell(3, 0)), steps=3)
    assert seen == [(Action.NOOP, FAILED, Reason.NO_PATH)]


def test_navigate_fails_when_somebody_stands_in_the_only_way():
    start = world("0.1...T sssssss sssssss sssssss")
    seen, _ = play(start, op(Op.NAVIGATE, Material.TREE, cell(6, 0)), steps=3)
    assert seen == [(Action.NOOP, FAILED, Reason.NO_PATH)]


def test_the_planner_takes_a_table_for_passable_and_bumps_into_it():
    start = world("0t...T. sssssss sssssss sssssss")
    seen, state = play(start, op(Op.NAVIGATE, Material.TREE, cell(5, 0), 4), steps=9)
    assert [s[0] for s in seen] == [Action.MOVE_RIGHT] * 4
    assert seen[-1][1:] == (FAILED, Reason.TIMEOUT)
    assert int(state.x[0]) == 0


def test_navigate_goes_to_where_an_agent_was_at_the_start():
    start = world("0...1.. sssssss sssssss sssssss")
    away = op(Op.MOVE, Action.MOVE_RIGHT, 9)
    seen, state = play(start, op(Op.NAVIGATE, Thing.PLAYER, 30), away, steps=9)
    assert [s[1] for s in seen] == [PENDING, PENDING, SUCCESS]
    assert int(state.x[1]) == 6


@pytest.mark.parametrize(("steps", "length"), [(3, 3), (1, 1), (-1, 1), (0, 1)])
def test_move_ends_after_its_steps_blocked_or_not(steps, length):
    seen, state = play(world("0.s.... ....... ....... ......."), op(Op.MOVE, Action.MOVE_RIGHT, steps), steps=9)
    assert seen == [(Action.MOVE_RIGHT, PENDING, 0)] * (length - 1) + [(Action.MOVE_RIGHT, SUCCESS, 0)]
    assert int(state.x[0]) == 1


def test_an_unknown_op_does_nothing_and_never_ends():
    seen, _ = play(world("0...... ....... ....... ......."), op(99, 2, 3), steps=4)
    assert seen == [(Action.NOOP, PENDING, 0)] * 4


@pytest.mark.parametrize("extreme", [-(2**31), 2**31 - 1])
@pytest.mark.parametrize("kind", list(Op))
def test_every_argument_has_a_defined_result(kind, extreme):
    start = world("0C..... .T.1... ....... .......")
    seen, state = play(start, op(kind, *[extreme] * (SKILLS.width - 1)))
    assert 0 <= seen[0][0] < ENV.num_actions
    assert (np.asarray(state.inventory) >= 0).all()


def test_collect_waits_for_others_as_many_steps_as_it_may():
    start = world("0c..... ....... ....... .......", [(0, Item.WOOD_PICKAXE, 1)])
    waits, _ = play(start, op(Op.COLLECT, Item.COAL, cell(1, 0)), steps=9)
    assert waits == [(Action.DO, PENDING, 0)] * 2 + [(Action.DO, FAILED, Reason.TOO_FEW_AGENTS)]
    once, _ = play(start, op(Op.COLLECT, Item.COAL, cell(1, 0), 0), steps=9)
    assert once == [(Action.DO, FAILED, Reason.TOO_FEW_AGENTS)]


def test_collect_of_nothing_in_reach_fails_at_once():
    seen, _ = play(world("0...... ....... ....... ......."), op(Op.COLLECT, Item.WOOD), steps=9)
    assert seen == [(Action.DO, FAILED, Reason.NOTHING_IN_RANGE)]


@pytest.mark.parametrize(
    ("target", "end"),
    [(Item.WOOD, (SUCCESS, 0)), (-1, (SUCCESS, 0)), (Item.STONE, (FAILED, Reason.COLLECTED_OTHER))],
)
def test_collect_succeeds_with_its_target_only(target, end):
    seen, state = play(world("0T..... ....... ....... ......."), op(Op.COLLECT, target))
    assert seen[0][1:] == end
    assert int(state.inventory[0, Item.WOOD]) == 1


def test_a_collect_at_the_cap_counts_by_what_was_taken():
    start = world("0T..... ....... ....... .......", [(0, Item.WOOD, 20)])
    seen, _ = play(start, op(Op.COLLECT, Item.WOOD))
    assert seen[0][1] == SUCCESS


def last_of(**fields):
    """A state whose last step ended like this for agent 0."""
    state = world("0T..... ....... ....... ......1")
    changed = {name: getattr(state.last, name).at[0].set(value) for name, value in fields.items()}
    return dataclasses.replace(state, last=dataclasses.replace(state.last, **changed))


def running(*ops, elapsed=1):
    memory = SKILLS.idle()
    return dataclasses.replace(memory, op=jnp.array([*ops, NOTHING][:2], jnp.int32), elapsed=memory.elapsed + elapsed)


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        (Item.DRINK, {"changed": 1 << Item.DRINK}),  # E16: also when it was lost
        (Item.SAPLING, {"risen": 1 << Achievement.COLLECT_SAPLING}),
        (Item.FOOD, {"risen": 1 << Achievement.EAT_COW}),
        (Item.FOOD, {"took": 1 << Thing.COW}),
        (Item.DRINK, {"took": 1 << Material.WATER}),
        (Item.WOOD, {"took": 1 << Material.TREE}),
    ],
)
def test_a_collect_is_named_by_changed_items_achievements_and_what_was_taken(item, fields):
    report = SKILLS.check(last_of(status=1, **fields), running(op(Op.COLLECT, item)))
    assert int(report.status[0]) == SUCCESS
    report = SKILLS.check(last_of(status=1), running(op(Op.COLLECT, item)))
    assert (int(report.status[0]), int(report.reason[0])) == (FAILED, Reason.COLLECTED_OTHER)


@pytest.mark.parametrize("kind", list(Op))
def test_an_action_of_an_agent_that_is_gone_has_failed(kind):
    report = SKILLS.check(last_of(status=-1), running(op(kind, 1, 1, 1, 1)))
    assert (int(report.status[0]), int(report.reason[0])) == (FAILED, Reason.REMOVED)


def test_nothing_is_reported_of_an_agent_that_does_nothing():
    assert np.asarray(SKILLS.check(last_of(status=-1), SKILLS.idle()).status).tolist() == [PENDING] * 2


def test_craft_and_place_end_as_the_primitive_did():
    start = world("....... .0..... ....... .......", [(0, Item.WOOD, 3)])
    placed, state = play(start, op(Op.PLACE, 1))
    assert placed == [(Action.PLACE_TABLE, SUCCESS, 0)]
    crafted, state = play(state, op(Op.CRAFT, Action.MAKE_WOOD_PICKAXE))
    assert crafted == [(Action.MAKE_WOOD_PICKAXE, SUCCESS, 0)]
    assert int(state.inventory[0, Item.WOOD_PICKAXE]) == 1
    again, _ = play(state, op(Op.CRAFT, Action.MAKE_WOOD_PICKAXE))
    assert again == [(Action.MAKE_WOOD_PICKAXE, FAILED, Reason.REQUIREMENTS)]
    again, _ = play(state, op(Op.PLACE, 1))
    assert again == [(Action.PLACE_TABLE, FAILED, Reason.MISSING_RESOURCES)]


@pytest.mark.parametrize("unknown", [op(Op.CRAFT, Action.SHARE), op(Op.CRAFT, -1), op(Op.PLACE, 4)])
def test_a_primitive_that_does_not_exist_is_a_noop_that_succeeds(unknown):
    seen, _ = play(world("0...... ....... ....... ......."), unknown)
    assert seen == [(Action.NOOP, SUCCESS, 0)]


@pytest.mark.parametrize(("quantity", "moved"), [(2, 2), (9, 3), (-1, 1), (0, 1), (-5, 1)])
def test_share_moves_at_least_one_unit(quantity, moved):
    start = world("0...... ....... ....... ......1", [(0, Item.COAL, 3), (1, Item.COAL, 6)])
    seen, state = play(start, op(Op.SHARE, 1, Item.COAL, quantity))
    assert seen == [(Action.SHARE, SUCCESS, 0)]
    assert np.asarray(state.inventory)[:, Item.COAL].tolist() == [3 - moved, 6 + moved]


def test_a_new_op_replaces_the_running_one():
    state = world("0...... ....... ....... .......")
    memory, fresh = SKILLS.idle(), jnp.ones(2, jnp.bool_)
    state, memory, _, report = advance(state, memory, jnp.array([op(Op.MOVE, 2, 5), NOTHING], jnp.int32), fresh)
    assert int(report.status[0]) == PENDING
    ops = jnp.array([op(Op.MOVE, 4, 2), NOTHING], jnp.int32)
    _, _, command, _ = advance(state, memory, ops, ~fresh)
    assert int(command.action[0]) == Action.MOVE_RIGHT
    _, memory, command, report = advance(state, memory, ops, fresh)
    assert int(command.action[0]) == Action.MOVE_DOWN
    assert (int(memory.elapsed[0]), int(report.status[0])) == (1, PENDING)


@pytest.mark.parametrize(
    ("plan", "named"), [(OWN_TARGET, cell(1, 0) - 1), (-1, -1), (cell(3, 3), cell(3, 3) - 1), (10**6, -1)]
)
def test_the_task_of_a_plan_is_its_own_or_that_of_the_running_collect(plan, named):
    memory = running(op(Op.COLLECT, Item.WOOD, cell(1, 0)))
    command, _ = SKILLS.command(last_of(), dataclasses.replace(memory, plan=memory.plan * 0 + plan))
    assert (int(command.target[0]), int(command.plan[0])) == (cell(1, 0) - 1, named)


def types_of(tree):
    return [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in jax.tree.leaves(tree)]


@pytest.mark.parametrize("agents", [1, 3, 128])
@pytest.mark.parametrize("x64", [False, True])
def test_memory_keeps_its_type(agents, x64):
    env = MACrafter(agents=agents, width=12, height=40)
    skills = env.skills
    with jax.enable_x64(x64):

        def step(memory, ops, fresh):
            state = env.reset(jax.random.key(0))
            memory = skills.begin(state, memory, ops, fresh)
            command, after = skills.command(state, memory)
            return memory, after, command, skills.check(state, after)

        ops, fresh = jax.ShapeDtypeStruct((agents, 5), jnp.int32), jax.ShapeDtypeStruct((agents,), jnp.bool_)
        idle = jax.eval_shape(skills.idle)
        begun, after, command, report = jax.eval_shape(step, idle, ops, fresh)
    assert types_of(begun) == types_of(idle) == types_of(after)
    assert {leaf.dtype for leaf in jax.tree.leaves(command)} == {jnp.dtype(jnp.int32)}
    assert types_of(report) == [((agents,), jnp.dtype(jnp.int8), False)] * 2


def test_ops_and_reasons_are_listed_by_their_numbers():
    assert [spec.name for spec in OPS] == [kind.name.lower() for kind in Op]
    assert SKILLS.width == 5
    assert SKILLS.reasons[0] == ""
    assert all(SKILLS.reasons[number] for number in Reason if number)
