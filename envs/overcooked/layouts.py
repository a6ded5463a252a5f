"""1: kitchens from text: the ones that come with the package and those of users (host side).

A layout file is the grid, a blank line, and one line for each order and number:

    XXPXX
    O  2O
    X1  X
    XDXSX

    order onion onion onion
    bonus onion tomato
    onion_value 21
    tomato_value 13
    time 20

Digits are the starts of the players.  `bonus` is an order that counts twice.  Without orders every soup is ordered.
"""

import dataclasses
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from jaxcoop.envs.kitchen.grid import MAX_CELLS, Grid, LayoutError
from jaxcoop.envs.kitchen.library import Library
from jaxcoop.envs.overcooked.types import (
    ITEMS,
    MAX_INGREDIENTS,
    MAX_TIME,
    ONIONS_IN,
    RECIPES,
    TERRAIN,
    TOMATOES_IN,
    Item,
    Terrain,
)

DIGITS = "123456789"
BONUS = 2
"""5: what the value of a bonus order is multiplied with."""

DEFAULT = 20
"""1: value and time of cooking of every soup, unless the layout says something else."""

LIMITS = {"value": 10_000, "time": MAX_TIME}
NUMBERS = tuple(f"{what}{kind}" for what in ("", "onion_", "tomato_") for kind in LIMITS)
"""Names of the numbers of a layout file: of every soup, or of each ingredient in it."""


@dataclasses.dataclass(frozen=True)
class Kitchen:
    """A layout: terrain, orders, and where players start; positions are cell numbers."""

    name: str
    grid: Grid
    starts: tuple[int, ...]
    orders: tuple[int, ...]  # items; those with a bonus are among them
    bonus: tuple[int, ...]
    numbers: tuple[tuple[str, int], ...]  # by name (`NUMBERS`)

    @cached_property
    def terrain(self) -> Int[np.ndarray, " C"]:
        """`Terrain` of each cell; int8."""
        return np.array([TERRAIN.index(c) for c in self.grid.characters], np.int8)

    @cached_property
    def pots(self) -> Int[np.ndarray, " P"]:
        """Cells of the pots in reading order; int32."""
        return np.flatnonzero(self.terrain == Terrain.POT).astype(np.int32)

    @cached_property
    def pot_of(self) -> Int[np.ndarray, " C"]:
        """Number of the pot in each cell, -1: none; int16."""
        found = np.full(self.grid.cells, -1, np.int16)
        found[self.pots] = np.arange(len(self.pots))
        return found

    @cached_property
    def values(self) -> Float[np.ndarray, " 13"]:
        """5: what the delivery of each item is worth; float32."""
        ordered, twice = (np.isin(np.arange(ITEMS), items) for items in (self.orders, self.bonus))
        return (self._per_soup("value") * ordered * np.where(twice, BONUS, 1)).astype(np.float32)

    @cached_property
    def times(self) -> UInt8[np.ndarray, " 13"]:
        """How long each soup cooks, in steps; 0 for other items."""
        return self._per_soup("time").astype(np.uint8)

    @cached_property
    def best(self) -> Float[np.ndarray, " 13"]:
        """Highest value that a pot with this content (NONE: empty) can still reach; 0 for other items; float32."""
        found = np.zeros(ITEMS, np.float32)
        for item in (Item.NONE, *range(Item.SOUP, ITEMS)):
            onions, tomatoes = ONIONS_IN - ONIONS_IN[item], TOMATOES_IN - TOMATOES_IN[item]
            found[item] = self.values[(onions >= 0) & (tomatoes >= 0)].max()
        return found

    def _per_soup(self, kind: str) -> np.ndarray:
        numbers = dict(self.numbers)
        if f"onion_{kind}" in numbers:
            onion, tomato = numbers[f"onion_{kind}"], numbers[f"tomato_{kind}"]
            return onion * ONIONS_IN.astype(np.int32) + tomato * TOMATOES_IN.astype(np.int32)
        return np.where(np.arange(ITEMS) >= Item.SOUP, numbers.get(kind, DEFAULT), 0)


def parse(text: str, *, name: str, source: str) -> Kitchen:
    """A kitchen from the text of a layout file; `source` names the file in errors (`LayoutError`)."""
    lines = text.rstrip().splitlines()
    end = next((k for k, line in enumerate(lines) if not line.strip()), len(lines))
    grid, starts = _plan(lines[:end], source)
    orders, bonus, numbers = [], [], {}
    for number, line in enumerate(lines[end:], end + 1):
        match line.split():
            case []:
                pass
            case ["order" | "bonus" as kind, *words]:
                item = _soup(words)
                if item is None or item in orders:
                    what = f"must be `{kind}` and 1 to {MAX_INGREDIENTS} times onion or tomato"
                    raise _wrong(source, number, 1, what if item is None else "this soup is ordered already")
                orders.append(item)
                bonus += [item] if kind == "bonus" else []
            case [word, value] if word in NUMBERS and word not in numbers:
                high = LIMITS[word.split("_")[-1]] // (MAX_INGREDIENTS if "_" in word else 1)
                if not value.isdigit() or not 1 <= int(value) <= high:
                    raise _wrong(source, number, 1, f"{word} {value!r}; must be a whole number from 1 to {high:,}")
                numbers[word] = int(value)
            case [word, *_]:
                raise _wrong(source, number, 1, f"{word!r}; allowed, numbers once: order, bonus, {', '.join(NUMBERS)}")
    for kind in LIMITS:
        given = {word for word in numbers if word.split("_")[-1] == kind}
        if given not in (set(), {kind}, {f"onion_{kind}", f"tomato_{kind}"}):
            raise _wrong(source, end + 1, 1, f"give {kind} alone, or both onion_{kind} and tomato_{kind}")
    ordered = tuple(sorted(orders)) or tuple(range(Item.SOUP, ITEMS))
    return Kitchen(name, grid, starts, ordered, tuple(sorted(bonus)), tuple(sorted(numbers.items())))


def _plan(rows: list[str], source: str) -> tuple[Grid, tuple[int, ...]]:
    """Grid and starts."""
    width, height = max(map(len, rows), default=0), len(rows)
    if width < 1:
        raise _wrong(source, 1, 1, "there is no grid; begin with a row of terrain such as XXPXX")
    if width * height > MAX_CELLS:
        raise _wrong(source, 1, 1, f"{width} x {height} cells; at most {MAX_CELLS:,} in all")
    starts: dict[int, int] = {}
    for y, row in enumerate(rows):
        if len(row) < width:
            raise _wrong(source, y + 1, len(row) + 1, f"the row is shorter than {width} cells; fill it up with X")
        for x, character in enumerate(row):
            if character not in TERRAIN + DIGITS:
                allowed = f"allowed: {' '.join(TERRAIN[1:])}, a blank, digits for players"
                raise _wrong(source, y + 1, x + 1, f"unknown terrain {character!r}; {allowed}")
            if character in " " + DIGITS and (x in (0, width - 1) or y in (0, height - 1)):
                raise _wrong(source, y + 1, x + 1, "there is floor at the edge; put a counter X there")
            if character in DIGITS:
                if int(character) in starts:
                    raise _wrong(source, y + 1, x + 1, f"player {character} is there twice")
                starts[int(character)] = y * width + x
    if sorted(starts) != list(range(1, len(starts) + 1)) or not starts:
        raise _wrong(source, 1, 1, f"players {sorted(starts)} are drawn; number them from 1 on without a gap")
    grid = Grid(tuple("".join(" " if c in DIGITS else c for c in row) for row in rows))
    for needed, what in (("P", "pot P"), ("S", "serving window S"), ("D", "dish dispenser D")):
        if needed not in grid.characters:
            raise _wrong(source, 1, 1, f"there is no {what}")
    if not {"O", "T"} & set(grid.characters):
        raise _wrong(source, 1, 1, "there is no dispenser of ingredients, O or T")
    return grid, tuple(starts[k] for k in sorted(starts))


def _soup(words: list[str]) -> int | None:
    """The item of a soup of these ingredients; None where there is none."""
    recipe = (words.count("onion"), words.count("tomato"))
    return Item.SOUP + RECIPES.index(recipe) if sum(recipe) == len(words) and recipe in RECIPES else None


def _wrong(source: str, line: int, column: int, what: str) -> LayoutError:
    return LayoutError(f"{source}, line {line}, column {column}: {what}")


LIBRARY = Library(Path(__file__).parent / "layouts", parse)
names, load = LIBRARY.names, LIBRARY.load
