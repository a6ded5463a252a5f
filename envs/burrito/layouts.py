"""9: kitchens from text: the ones that come with the package and those of users (host side).

A layout file is the grid, a blank line, and one line for each thing at the start:

    XXPWX
    X   S
    XMTRX

    player 1 1 S
    clean_plate 0 1
    stack 2

`player X Y D` looks in direction N, S, E or W; objects lie on counters, plates also in sinks; `stack N` is the number
of dirty plates in the stacks.  Digits 1 to 9 in the grid are another way to place players, looking south.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int

from jaxcoop.envs.burrito.types import ITEM_NAMES, MAX_PLAYERS, PLATE_LIMIT, TERRAIN, Item, Terrain
from jaxcoop.envs.kitchen.grid import LETTERS, MAX_CELLS, Direction, Grid, LayoutError
from jaxcoop.envs.kitchen.library import Library

LYING = tuple(
    name
    for item, name in enumerate(ITEM_NAMES)
    if item not in (Item.NONE, Item.STEAK, Item.FRIED_MUSHROOM, Item.BOILED_RICE)
)
"""What can lie on a counter at the start."""


@dataclasses.dataclass(frozen=True)
class Kitchen:
    """A layout: terrain and what is where at the start; positions are cell numbers."""

    name: str
    grid: Grid
    starts: tuple[tuple[int, int], ...]  # (cell, Direction) of each player
    objects: tuple[tuple[int, int], ...]  # (cell, Item)
    plates: int

    @cached_property
    def terrain(self) -> Int[np.ndarray, " C"]:
        """`Terrain` of each cell; int8."""
        return np.array([TERRAIN.index(c) for c in self.grid.characters], np.int8)

    @cached_property
    def regions(self) -> Int[np.ndarray, " C"]:
        """Number of the connected part of the floor that a cell belongs to, in reading order; -1: not floor; int16."""
        found = np.full(self.grid.cells, -1, np.int16)
        for cell in np.flatnonzero(self.grid.floor):
            if found[cell] < 0:
                found[self.grid.distances[cell] < np.iinfo(np.int16).max] = found.max() + 1
        return found


def parse(text: str, *, name: str, source: str) -> Kitchen:
    """A kitchen from the text of a layout file; `source` names the file in errors (`LayoutError`)."""

    def wrong(line: int, column: int, what: str) -> LayoutError:
        return LayoutError(f"{source}, line {line}, column {column}: {what}")

    # A row of blanks is floor; the grid ends at a line with nothing in it.
    lines = [line.rstrip("\r") for line in text.split("\n")]
    end = next((k for k, line in enumerate(lines) if not line), len(lines))
    rows = lines[:end]
    width, height = max(map(len, rows), default=0), len(rows)
    if width < 1:
        raise wrong(1, 1, "there is no grid; begin with a row of terrain such as XXPWX")
    if width * height > MAX_CELLS:
        raise wrong(1, 1, f"{width} x {height} cells; at most {MAX_CELLS:,} in all")
    drawn: dict[int, int] = {}
    for y, row in enumerate(rows):
        if len(row) < width:
            raise wrong(y + 1, len(row) + 1, f"the row is shorter than {width} cells; fill it up with X")
        for x, character in enumerate(row):
            if character in "123456789":
                if int(character) in drawn:
                    raise wrong(y + 1, x + 1, f"player {character} is there twice")
                drawn[int(character)] = y * width + x
            elif character not in TERRAIN:
                raise wrong(y + 1, x + 1, f"unknown terrain {character!r}; allowed: {' '.join(TERRAIN[1:])}, a blank")
    grid = Grid(tuple("".join(" " if c in "123456789" else c for c in row) for row in rows))
    missing = next((k for k in range(1, len(drawn) + 1) if k not in drawn), None)
    if missing:
        raise wrong(1, 1, f"players {sorted(drawn)} are drawn, player {missing} is not; number them from 1 on")
    starts = [(drawn[k], int(Direction.SOUTH)) for k in sorted(drawn)]
    objects, stacks = {}, []
    for line, column, words in _things(lines, end):
        if words[0] == "stack":
            if len(words) != 2 or not _is_number(words[1]) or int(words[1]) > PLATE_LIMIT:
                raise wrong(line, column, f"must be `stack N` with N from 0 to {PLATE_LIMIT}")
            if stacks:
                raise wrong(line, column, "the stack is given twice")
            stacks.append(int(words[1]))
            continue
        cell = _place(grid, words, lambda what, at=(line, column): wrong(*at, what))
        terrain = TERRAIN.index(grid.characters[cell])
        if words[0] == "player":
            if drawn:
                raise wrong(line, column, "players are drawn in the grid already; use one of the two ways")
            if terrain != Terrain.FLOOR:
                raise wrong(line, column, f"the player stands in {str(grid.characters[cell])!r}; must be on floor")
            if cell in (start for start, _ in starts):
                raise wrong(line, column, "two players start in one cell")
            starts.append((cell, LETTERS.index(words[3])))
        else:
            item = ITEM_NAMES.index(words[0])
            allowed = {Terrain.COUNTER: range(len(ITEM_NAMES)), Terrain.SINK: (Item.DIRTY_PLATE, Item.CLEAN_PLATE)}
            if item not in allowed.get(Terrain(terrain), ()):
                character = str(grid.characters[cell])
                raise wrong(line, column, f"{words[0]} cannot lie on {character!r}; put it on a counter X")
            if cell in objects:
                raise wrong(line, column, "two objects lie on one cell")
            objects[cell] = item
    if "S" not in grid.characters:
        raise wrong(1, 1, "there is no serving window S")
    if not starts:
        raise wrong(1, 1, "there are no players; add a line such as `player 1 1 S` below the grid")
    if len(starts) > MAX_PLAYERS:
        raise wrong(1, 1, f"{len(starts)} players; at most {MAX_PLAYERS}")
    return Kitchen(name, grid, tuple(starts), tuple(sorted(objects.items())), sum(stacks))


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _things(lines: list[str], end: int) -> Iterator[tuple[int, int, list[str]]]:
    """(line, column, words) of the lines below the grid."""
    for number, line in enumerate(lines[end:], end + 1):
        if line.strip():
            yield number, len(line) - len(line.lstrip()) + 1, line.split()


def _place(grid: Grid, words: list[str], wrong: Callable[[str], LayoutError]) -> int:
    """The cell of a `player` or of an object; raises what `wrong` makes."""
    is_player = words[0] == "player"
    if not is_player and words[0] not in LYING:
        raise wrong(f"unknown thing {words[0]!r}; allowed: player, stack, {', '.join(LYING)}")
    form = "`player X Y D` with D one of N, S, E, W" if is_player else f"`{words[0]} X Y`"
    if len(words) != 3 + is_player or not (_is_number(words[1]) and _is_number(words[2])):
        raise wrong(f"must be {form}")
    if is_player and words[3] not in tuple(LETTERS):
        raise wrong(f"direction {words[3]!r}; must be one of N, S, E, W")
    x, y = int(words[1]), int(words[2])
    if not grid.is_inside(x, y):
        raise wrong(f"({x}, {y}) is outside; x must be from 0 to {grid.width - 1}, y from 0 to {grid.height - 1}")
    return grid.cell(x, y)


LIBRARY = Library(Path(__file__).parent / "layouts", parse)
names, load = LIBRARY.names, LIBRARY.load
