"""Kitchens from text: the six of the package, those of users, and what is wrong with a file."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.layouts import load, names, parse
from jaxcoop.envs.burrito.types import ITEM_NAMES, TERRAIN, Item, Terrain
from jaxcoop.envs.kitchen.grid import Direction, LayoutError

GOOD = """\
XXPWX
X   S
XMTRX

player 1 1 S
player 3 1 W
clean_plate 0 1
dirty_plate 3 0
stack 2
"""


def kitchen(text, name="mine"):
    return parse(text, name=name, source="mine.txt")


def same(one, other):
    return dataclasses.replace(one, name="") == dataclasses.replace(other, name="")


def test_a_burrito_layout_says_where_everything_is():
    found = kitchen(GOOD)
    assert (found.name, found.grid.width, found.grid.height, found.plates) == ("mine", 5, 3, 2)
    assert found.starts == ((6, Direction.SOUTH), (8, Direction.WEST))
    assert found.objects == ((3, Item.DIRTY_PLATE), (5, Item.CLEAN_PLATE))
    assert [TERRAIN[code] for code in found.terrain] == list("XXPWXX   SXMTRX")


def test_players_may_be_drawn_in_the_grid_of_a_burrito_layout():
    found = kitchen("XXSX\nX2 1\nXXXX\n")
    assert found.starts == ((7, Direction.SOUTH), (5, Direction.SOUTH))
    assert found.grid.rows == ("XXSX", "X   ", "XXXX")


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n",
        GOOD.rstrip(),
        GOOD.replace("player", "  player"),
        GOOD.replace("clean_plate 0 1\ndirty_plate 3 0", "dirty_plate 3 0\n\nclean_plate  0   1"),
    ],
)
def test_line_ends_and_blanks_of_burrito_layouts_do_not_matter(text):
    assert same(kitchen(text), kitchen(GOOD))


WRONG = {
    "no grid": ("", 1, 1, "no grid"),
    "only things": ("\nplayer 1 1 S", 1, 1, "no grid"),
    "not rectangular": (GOOD.replace("X   S", "X  S"), 2, 5, "shorter than 5"),
    "unknown terrain": (GOOD.replace("XXPWX", "XXPQX"), 1, 4, "'Q'; allowed: X S M"),
    "player 0": (GOOD.replace("X   S", "X 0 S"), 2, 3, "'0'"),
    "tab": (GOOD.replace("X   S", "X \t S"), 2, 3, r"'\t'"),
    "too large": (("X" * 40 + "\n") * 30, 1, 1, "40 x 30 cells; at most 1,024"),
    "no window": (GOOD.replace("S\n", "X\n", 1), 1, 1, "no serving window"),
    "no players": ("XSX\nX X\nXXX\n\nmeat 0 0", 1, 1, "no players"),
    "drawn twice": ("XSXX\nX11X\nXXXX", 2, 3, "player 1 is there twice"),
    "not from 1": ("XSXX\nX13X\nXXXX", 1, 1, "player 2 is not"),
    "drawn and listed": ("XSXX\nX1 X\nXXXX\n\nplayer 2 1 N", 5, 1, "drawn in the grid already"),
    "in a wall": (GOOD.replace("player 3 1", "player 4 1"), 6, 1, "stands in 'S'; must be on floor"),
    "same cell": (GOOD.replace("player 3 1", "player 1 1"), 6, 1, "two players start in one cell"),
    "direction": (GOOD.replace("3 1 W", "3 1 Q"), 6, 1, "'Q'; must be one of N, S, E, W"),
    "two directions": (GOOD.replace("3 1 W", "3 1 NS"), 6, 1, "'NS'"),
    "no direction": (GOOD.replace("3 1 W", "3 1"), 6, 1, "must be `player X Y D`"),
    "not a number": (GOOD.replace("clean_plate 0 1", "clean_plate a 1"), 7, 1, "must be `clean_plate X Y`"),
    "negative": (GOOD.replace("clean_plate 0 1", "clean_plate -1 1"), 7, 1, "must be `clean_plate X Y`"),
    "outside": (GOOD.replace("clean_plate 0 1", "clean_plate 5 1"), 7, 1, "x must be from 0 to 4, y from 0 to 2"),
    "unknown thing": (GOOD.replace("clean_plate", "cleanplate"), 7, 1, "'cleanplate'; allowed: player, stack"),
    "on the fire only": (GOOD.replace("clean_plate", "chopped_steak"), 7, 1, "unknown thing 'chopped_steak'"),
    "on floor": (GOOD.replace("clean_plate 0 1", "meat 2 1"), 7, 1, "meat cannot lie on ' '; put it on a counter X"),
    "in a sink": (GOOD.replace("dirty_plate 3 0", "rice 3 0"), 8, 1, "rice cannot lie on 'W'"),
    "two objects": (GOOD.replace("dirty_plate 3 0", "meat 0 1"), 8, 1, "two objects lie on one cell"),
    "stack of many": (GOOD.replace("stack 2", "stack 5"), 9, 1, "with N from 0 to 4"),
    "stack of words": (GOOD.replace("stack 2", "  stack two"), 9, 3, "must be `stack N`"),
    "stack twice": (GOOD.replace("stack 2", "stack 2\nstack 1"), 10, 1, "given twice"),
    "full-width digit": (GOOD.replace("clean_plate 0 1", "clean_plate \uff10 1"), 7, 1, "must be `clean_plate X Y`"),
    "stack somewhere": (GOOD.replace("stack 2", "stack 2 1"), 9, 1, "must be `stack N`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_in_burrito_layouts_name_file_line_and_column(case):
    text, line, column, what = WRONG[case]
    with pytest.raises(LayoutError) as found:
        kitchen(text)
    assert str(found.value).startswith(f"mine.txt, line {line}, column {column}: ")
    assert what in str(found.value)


def test_floor_at_the_end_of_a_burrito_grid_is_kept(tmp_path):
    assert kitchen("XXS  \nX1   \nX    \n").grid.rows == ("XXS  ", "X    ", "X    ")
    assert kitchen("S1X\nX X\n   \n").grid.height == 3
    file = tmp_path / "open.txt"
    file.write_text("\ufeffS1    \n      \n", encoding="utf-8")
    assert Burrito(layout=str(file)).kitchen.grid.rows == ("S     ", "      ")


def test_more_players_than_allowed_are_refused_in_a_burrito_layout():
    line = "\n".join(f"player {x} 0 N" for x in range(1, 18))
    with pytest.raises(LayoutError, match="17 players; at most 16"):
        kitchen("S" + " " * 20 + "\n\n" + line)


def test_a_burrito_layout_of_a_file_is_that_of_its_text(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text(GOOD)
    env = Burrito(layout=str(file))
    assert same(env.kitchen, kitchen(GOOD))
    file.unlink()  # the text is kept
    assert same(dataclasses.replace(env, max_steps=7).kitchen, kitchen(GOOD))
    state = env.reset(jax.random.key(0))
    assert (int(state.plates), state.cell.tolist(), state.facing.tolist()) == (2, [6, 8], [1, 3])
    assert (int(state.item[3]), int(state.item[5])) == (Item.DIRTY_PLATE, Item.CLEAN_PLATE)


def test_burrito_layouts_that_cannot_be_read_are_errors_that_name_them(tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text(GOOD.replace("XXPWX", "XXPQX"))
    with pytest.raises(LayoutError, match=r"bad\.txt, line 1, column 4"):
        Burrito(layout=str(bad))
    with pytest.raises(ValueError, match=r"missing\.txt.*cannot be read"):
        Burrito(layout=str(tmp_path / "missing.txt"))
    bad.write_bytes(b"XX\xffSX\n")
    with pytest.raises(ValueError, match=r"bad\.txt.*cannot be read"):
        Burrito(layout=str(bad))
    bad.write_text("")
    with pytest.raises(LayoutError, match=r"bad\.txt, line 1, column 1: there is no grid"):
        Burrito(layout=str(bad))
    with pytest.raises(ValueError, match=r"kitchn.*open.*ring"):
        Burrito(layout="kitchn")
    with pytest.raises(ValueError, match="must be a name or the path"):
        Burrito(layout=3)


def test_all_burrito_layouts_are_those_of_the_notes():
    assert names() == ("fc", "fc_rev", "hallway", "open", "open_3p", "ring")
    assert load("fc_rev").starts == load("fc").starts[::-1]
    assert same(dataclasses.replace(load("open_3p"), starts=load("open").starts), load("open"))
    for name in names():
        found = load(name)
        assert found.name == name and found.plates == 0
        assert {ITEM_NAMES[item] for _, item in found.objects} <= {"clean_plate", "dirty_plate", "fire_ext"}
    assert len(load("open_3p").starts) == 3


def test_the_parts_of_the_floor_are_numbered_in_reading_order():
    found = load("fc")
    assert found.regions.max() == 1
    left, right = (found.regions[found.grid.cell(x, y)] for x, y in ((1, 1), (6, 8)))
    assert (left, right) == (0, 1)
    np.testing.assert_array_equal(found.regions >= 0, found.terrain == Terrain.FLOOR)
    assert load("ring").regions.max() == 0


@pytest.mark.parametrize("name", ["open", "ring", "fc", "hallway"])
def test_burrito_layouts_are_those_that_were_recorded(name):
    """The start of the recorded episodes."""
    data = Path(__file__).parents[1] / "golden" / "data" / "burrito"
    episode, found = np.load(data / f"{name}_random.npz"), load(name)
    lies = np.zeros(found.grid.cells, int)
    for cell, item in found.objects:
        lies[cell] = item
    np.testing.assert_array_equal(lies, episode["obj"][0, 0].reshape(-1))
    assert [found.grid.cell(*place) for place in episode["pos"][0, 0].tolist()] == [cell for cell, _ in found.starts]
    assert episode["ori"][0, 0].tolist() == [facing for _, facing in found.starts]
