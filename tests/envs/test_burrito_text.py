"""The kitchen in words, against texts that were written by hand."""

import jax
import numpy as np
import pytest

from jaxcoop.envs.burrito import text
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.types import BURNT, READY, WARNING, Item, Terrain

FC = """\
Step 7 of 2400. Score of the team: 86.
Map (x grows to the right, y downwards):
  01234567
0 XXXXXXXX
1 X  GX  X
2 W0 GB  X
3 X   X1 S
4 Z  XX  S
5 M  XX  D
6 T   X  X
7 R  PB  U
8 U  PX  X
9 XXXXXXXX
Legend: X counter, S serving window, M meat dispenser, Z mushroom dispenser, T tortilla dispenser, \
R rice dispenser, D stack of dirty plates, P pot, B chopping board, G grill, W sink, U trash, 0 1 ... players
Players:
- player 0 at (1, 2), holds nothing, faces west: sink (0, 2), dirty plate, 1 of 3 rinses
- player 1 (you) at (5, 3), holds plate with steak and tortilla, faces west: counter (4, 3), meat
Stations:
- pot (3, 7): boiled rice, cooking, 12 of 80 steps
- pot (3, 8): charcoal
- grill (3, 1): steak, about to burn, on fire in 61 steps
- grill (3, 2): fried mushroom, on fire
- chopping board (4, 2): chopped meat, 2 of 2 chops, ready to take
- chopping board (4, 7): empty
- sink (0, 2): dirty plate, 1 of 3 rinses
- stack of dirty plates (7, 5): 1 plate
On counters:
- (4, 1): clean plate
- (7, 2): fire extinguisher
- (4, 3): meat
- (4, 4): clean plate
- (4, 5): clean plate
Orders, the next one to serve first:
- mushroom burrito, 593 steps left
- steak burrito, 1 step left"""


def start(layout="fc", agents=0, **changes):
    """An environment and its start on the host, with some fields replaced."""
    env = Burrito(layout=layout, agents=agents)
    state = jax.tree.map(np.array, env.reset(jax.random.key(0)))
    return env, state.replace(**changes)


def at(env, state, x, y, item, clock=0):
    """Lay an item on a cell, in place."""
    cell = env.kitchen.grid.cell(x, y)
    state.item[cell], state.clock[cell] = item, clock


def test_a_scene_reads_as_written_by_hand():
    env, state = start(
        cell=np.array([17, 29], np.int16),
        facing=np.array([3, 3], np.int8),
        held=np.array([Item.NONE, Item.STEAK_TORTILLA_PLATE], np.int8),
        plates=np.int8(1),
        dish=np.array([2, 1, 0, 0], np.int8),
        left=np.array([1186, 1, 0, 0], np.int16),
        t=np.int32(7),
        score=np.float32(86),
    )
    at(env, state, 0, 2, Item.DIRTY_PLATE, 1)
    at(env, state, 3, 7, Item.BOILED_RICE, 12)
    at(env, state, 3, 8, Item.CHARCOAL)
    at(env, state, 3, 1, Item.STEAK, WARNING)
    at(env, state, 3, 2, Item.FRIED_MUSHROOM, BURNT)
    at(env, state, 4, 2, Item.CHOPPED_MEAT, 2)
    at(env, state, 4, 3, Item.MEAT)
    assert text.scene_text(env, state, 1) == FC


def test_nobody_is_you_for_an_onlooker():
    env, state = start()
    assert "(you)" not in text.scene_text(env, state)


@pytest.mark.parametrize("agent", [-1, 2])
def test_a_player_that_there_is_not_is_refused(agent):
    env, state = start()
    with pytest.raises(ValueError, match=f"agent {agent}: must be from 0 to 1"):
        text.scene_text(env, state, agent)


@pytest.mark.parametrize(
    ("clock", "phase"),
    [
        (1, "cooking, 1 of 80 steps"),
        (READY - 1, "cooking, 79 of 80 steps"),
        (READY, "ready, on fire in 142 steps"),
        (WARNING - 1, "ready, on fire in 62 steps"),
        (WARNING, "about to burn, on fire in 61 steps"),
        (BURNT - 1, "about to burn, on fire in 1 step"),
        (BURNT, "on fire"),
    ],
)
def test_food_on_the_fire_goes_through_its_phases(clock, phase):
    env, state = start()
    at(env, state, 3, 7, Item.BOILED_RICE, clock)
    assert text.content_text(env.kitchen, state, env.kitchen.grid.cell(3, 7)) == f"boiled rice, {phase}"


def test_plates_in_the_sink_tell_how_clean_they_are():
    env, state = start()
    sink = env.kitchen.grid.cell(0, 2)
    at(env, state, 0, 2, Item.DIRTY_PLATE)
    assert text.content_text(env.kitchen, state, sink) == "dirty plate, 0 of 3 rinses"
    at(env, state, 0, 2, Item.CLEAN_PLATE)
    assert text.content_text(env.kitchen, state, sink) == "clean plate, ready to take"


def test_an_empty_kitchen_is_said_to_be_empty():
    env, state = start(dish=np.zeros(4, np.int8))
    state.item[:] = Item.NONE
    scene = text.scene_text(env, state)
    assert "On counters:\n- nothing\n" in scene and scene.endswith("\n- none")


def test_a_player_in_front_is_named():
    env, state = start(cell=np.array([17, 18], np.int16), facing=np.array([2, 0], np.int8))
    lines = text.scene_text(env, state).splitlines()
    assert "- player 0 at (1, 2), holds nothing, faces east: player 1" in lines
    assert "- player 1 at (2, 2), holds nothing, faces north: floor (2, 1)" in lines


@pytest.mark.parametrize("agents", [1, 2, 3, 16])
def test_every_player_is_in_the_map_and_in_the_list(agents):
    env, state = start("open", agents)
    scene = text.scene_text(env, state)
    rows = "".join(line[2:] for line in text.map_lines(env.kitchen, state)[2:-1])
    assert sorted(rows.translate(str.maketrans("", "", "XSMZTRDPBGWU "))) == sorted("0123456789abcdef"[:agents])
    assert scene.count("\n- player ") == agents


def test_all_terrain_items_and_skills_have_words_of_their_own():
    assert set(text.TERRAIN_WORDS) == set(Terrain) and set(text.ITEM_WORDS) == set(Item)
    assert len(set(text.TERRAIN_WORDS.values())) == len(Terrain)
    assert len(set(text.ITEM_WORDS.values())) == len(Item) - 1  # the two kinds of dirty plates share theirs
    assert len(set(text.SKILL_WORDS)) == 27
