"""What planners read about the crafting world."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.skills import Report
from jaxcoop.envs.macrafter import text
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.hints import Surroundings
from jaxcoop.envs.macrafter.types import Item, Material, Reason

ENV = MACrafter(agents=2, width=12, height=8)
LETTERS = {"s": 3, "T": 6, "i": 9, "D": 10, "t": 11, "f": 12, "w": 1}
WORLD = """
    0T....i....w
    .s.C........
    .t..........
    ............
    ............
    ............
    ...........f
    ..........1.
"""


def start(drawing, **inventory):
    """The state of a drawing of 12 x 8 cells on the host; agent 0 holds `inventory`."""
    rows = drawing.split()
    cells = {(x, y): letter for y, row in enumerate(rows) for x, letter in enumerate(row)}
    material = np.array([[LETTERS.get(cells[x, y], 2) for y in range(8)] for x in range(12)], np.uint8)
    cows = np.array([cell for cell, letter in sorted(cells.items()) if letter == "C"] or [(-1, -1)], np.int16)
    agents = np.array([next(cell for cell, letter in cells.items() if letter == name) for name in "01"], np.int16)
    state = ENV.start(jnp.asarray(material), *(jnp.asarray(part) for part in (*cows.T, *agents.T)))
    held = state.inventory
    for name, count in inventory.items():
        held = held.at[0, int(Item[name.upper()])].set(count)
    table = np.flatnonzero(material.reshape(-1) == Material.TABLE).astype(np.int16)
    state = dataclasses.replace(state, inventory=held, table=state.table.at[: len(table)].set(jnp.asarray(table)))
    return jax.device_get(state)


def test_the_view_names_every_cell_by_what_is_in_it():
    lines = text.view_text(ENV, start(WORLD, wood=2), 0).splitlines()
    assert lines[0] == "You are agent_0 (id 98), at x=0, y=0."
    grid = [line.split() for line in lines[2:9]]
    assert grid[0] == ["."] * 9
    assert grid[3] == [*["."] * 4, "[A0#98]", "tre#9", "gra#17", "gra#25", "gra#33"]
    assert grid[4][5:] == ["sto#10", "gra#18", "cow#97", "gra#34"]
    assert grid[5][5] == "table#1"
    assert lines[9] == "You carry: health 9, food 9, drink 9, energy 9, wood 2."
    assert lines[10] == "In view: table, local id 1, id 11, at x=1, y=2."
    assert "sto = stone" in lines[-1]
    assert "san" not in lines[-1]


def test_a_station_without_a_local_id_is_named_by_its_cell():
    assert "furnace#95" in text.view_text(ENV, start(WORLD), 1)


def test_agents_that_are_gone_are_not_seen():
    state = start(WORLD.replace("0T", "01").replace(".1.", "..."))
    assert "A1#" in text.view_text(ENV, state, 0)
    state = dataclasses.replace(state, removed=np.array([False, True]))
    assert "A1#" not in text.view_text(ENV, state, 0)


@pytest.mark.parametrize("agent", [-1, 2])
def test_an_agent_of_another_team_is_refused(agent):
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        Surroundings(ENV, start(WORLD), agent)


def test_targets_whose_tool_is_held_come_first_then_the_nearer_ones():
    targets = Surroundings(ENV, start(WORLD), 0).reachable()
    assert [(t.object_type, t.distance, t.tool_ready) for t in targets] == [
        ("tree", 0, True),
        ("cow", 5, True),  # through the table, as the planner thinks
        ("stone", 1, False),
    ]
    targets = Surroundings(ENV, start(WORLD, wood_pickaxe=1), 0).reachable()
    assert [t.object_type for t in targets] == ["tree", "stone", "cow"]
    assert [t.score for t in targets] == [1.0, 15.0, 0.0]


def test_targets_behind_water_are_not_listed():
    moat = """
        0w.T........
        .w..........
        .w..........
        .w..........
        .w..........
        .w..........
        .w..........
        .w........1.
    """
    assert Surroundings(ENV, start(moat), 0).reachable() == []
    assert [t.object_type for t in Surroundings(ENV, start(moat.replace("0w", "0.")), 0).reachable()] == ["tree"]


@pytest.mark.parametrize(("distance", "steps"), [(1, 1), (2, 0)])
def test_targets_are_in_reach_as_far_as_the_option_says(distance, steps):
    env = dataclasses.replace(ENV, distance=distance)
    lone_tree = "\n".join(["0.T........."] + ["............"] * 6 + ["..........1."])
    assert [t.distance for t in Surroundings(env, start(lone_tree), 0).reachable()] == [steps]


def test_the_hints_list_targets_and_stations():
    lines = text.hints_text(ENV, start(WORLD), 0).splitlines()
    assert lines[1] == "- tree#9 at x=1, y=0, in reach, 1 point a unit, 1 agent"
    assert lines[2] == "- cow#97 at x=3, y=1, 5 steps away, food, no points, 1 agent"
    assert lines[3].endswith("1 step away, 15 points a unit, 1 agent, wood_pickaxe needed: you have none")
    assert lines[-1] == "- table 1 (id 11) at x=1, y=2, 2 steps away"


def test_the_hints_say_so_when_there_is_nothing():
    empty = "\n".join(["0..........."] + ["............"] * 6 + ["..........1."])
    assert text.hints_text(ENV, start(empty), 0).count("none in view") == 2


def test_the_team_is_told_what_it_is_too_small_for():
    told = text.team_text(ENV, seconds=120)
    assert "- coal: 2 agents at once, each holding wood_pickaxe; 75 points a unit" in told
    assert "Out of reach for a team of this size: iron, diamond." in told
    assert "at most 200 steps, or until 120 seconds have passed" in told
    assert "Out of reach" not in text.team_text(MACrafter(agents=3))


def test_the_team_is_told_of_options():
    told = text.team_text(
        MACrafter(bag=30, terminate_on_diamond=True, requirements="tree:1,stone:2:wood_pickaxe|iron_pickaxe")
    )
    assert "carry 30 units" in told
    assert "first diamond" in told
    assert "- stone: 2 agents at once, each holding wood_pickaxe or iron_pickaxe" in told
    assert "diamond: 1 agent, no tool" in told


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        (0, 0, "still under way"),
        (1, 0, "done"),
        (2, Reason.TIMEOUT, "failed: not there in time"),
        (2, Reason.TOO_FEW_AGENTS, "failed: takes 3 agents at once with the tool, there were 1"),
    ],
)
def test_reports_are_said_in_words(status, reason, said):
    last = start(WORLD).last
    last = dataclasses.replace(last, need=np.array([3, 0]), have=np.array([1, 0]))
    report = Report(np.array([status, 0]), np.array([int(reason), 0]))
    assert text.report_text(report, last, 0) == said
