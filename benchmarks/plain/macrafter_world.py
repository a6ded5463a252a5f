"""The map of a plain MA-Crafter episode, what stands on it, and its cows (section 11).

Cells are numbered column by column (x-major) on a map with a border as wide as the reach of a collection, so
that everything in reach of a cell has a number.
"""

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from jaxcoop.benchmarks.plain.macrafter_body import Player
from jaxcoop.benchmarks.plain.macrafter_codes import DOWN, GRASS, STEPS, WALKABLE

Place = tuple[int, int]  # x, y

BORDER = 255  # a material that no rule names
PLANT = object()
CHUNK = 12


class Cow:
    """A cow; `slot` is its number in the order of creation."""

    __slots__ = ("cell", "slot")

    def __init__(self, slot: int, cell: int) -> None:
        self.slot, self.cell = slot, cell


class Geometry(NamedTuple):
    """Numbers that depend on the size of the map only."""

    stride: int
    steps: tuple[int, ...]  # by direction
    reach: tuple[int, ...]  # 7: dx outer, dy inner
    around: tuple[int, ...]  # 3 x 3
    chunk_of: list[int]
    columns_of: list[list[tuple[int, int]]]  # of every chunk: first and last + 1 cell of its columns


@lru_cache
def geometry(width: int, height: int, distance: int) -> Geometry:
    """Numbers of a map of that size, with a border of `distance` (at least 1) cells."""
    pad = max(1, distance)
    stride = height + 2 * pad
    chunk_of, columns_of = [-1] * (stride * (width + 2 * pad)), []
    for left in range(0, width, CHUNK):
        for top in range(0, height, CHUNK):
            columns = []
            for x in range(left, min(left + CHUNK, width)):
                first = (x + pad) * stride + pad + top
                stop = first + min(CHUNK, height - top)
                chunk_of[first:stop] = [len(columns_of)] * (stop - first)
                columns.append((first, stop))
            columns_of.append(columns)
    span = range(-distance, distance + 1)
    return Geometry(
        stride,
        tuple(dx * stride + dy for dx, dy in STEPS),
        tuple(dx * stride + dy for dx in span for dy in span if abs(dx) + abs(dy) <= distance),
        tuple(dx * stride + dy for dx in (-1, 0, 1) for dy in (-1, 0, 1)),
        chunk_of,
        columns_of,
    )


class World:
    """Materials, objects and cows; objects are players, cows and `PLANT`."""

    def __init__(
        self,
        material: Any,
        cows: Sequence[Place | None],
        players: Sequence[Place],
        plants: Sequence[Place],
        distance: int,
        rng: random.Random,
    ) -> None:
        self._pad, self.rng = max(1, distance), rng
        self._map = geometry(len(material), len(material[0]), distance)
        edge, outside = bytes([BORDER]) * self._pad, bytes([BORDER]) * (self._map.stride * self._pad)
        columns = b"".join(edge + column.tobytes() + edge for column in np.asarray(material, np.uint8))
        self._material = bytearray(outside + columns + outside)
        self._objects: dict[int, Any] = {}
        self._touched: dict[int, None] = {}  # chunks in the order in which an object first was there
        slots = [None if place is None else Cow(slot, self._cell(place)) for slot, place in enumerate(cows)]
        self.first_cows = [cow for cow in slots if cow]  # they update before the players
        self.later_cows: list[Cow] = []
        self._next_slot = len(slots)
        self.players = [Player(self._cell(place)) for place in players]
        for thing in (*self.first_cows, *self.players):
            self._enter(thing.cell, thing)
        for place in plants:
            self._enter(self._cell(place), PLANT)

    @property
    def material(self) -> list[list[int]]:
        """Material codes [x][y]."""
        stride, pad = self._map.stride, self._pad
        columns = [
            self._material[i : i + stride] for i in range(pad * stride, len(self._material) - pad * stride, stride)
        ]
        return [list(column[pad : stride - pad]) for column in columns]

    @property
    def plants(self) -> list[Place]:
        """Cells of the plants, in order of creation."""
        return [self.place(cell) for cell, thing in self._objects.items() if thing is PLANT]

    @property
    def cows(self) -> dict[int, Place]:
        """Cells of the cows by slot."""
        return {cow.slot: self.place(cow.cell) for cow in (*self.first_cows, *self.later_cows)}

    def place(self, cell: int) -> Place:
        """(x, y) of a numbered cell."""
        return cell // self._map.stride - self._pad, cell % self._map.stride - self._pad

    def _update_cows(self, cows: list[Cow], directions: Sequence[int] | None) -> None:
        """S8, section 11: every cow stays or steps in a random direction."""
        draw, material, objects = self.rng.random, self._material, self._objects
        for cow in cows:
            if directions is None:
                direction = int(draw() * 8)  # half of the time none of the four
                if direction > DOWN:
                    continue
            elif (direction := directions[cow.slot]) < 0:
                continue
            cell = cow.cell + self._map.steps[direction]
            if material[cell] in WALKABLE and cell not in objects:
                del objects[cow.cell]
                cow.cell = cell
                self._enter(cell, cow)

    def _balance(self, daylight: float) -> None:
        """S9, section 11: few cows may appear, many may vanish, chunk by chunk."""
        herds: dict[int, list[Cow]] = {}
        for cow in (*self.first_cows, *self.later_cows):
            herds.setdefault(self._map.chunk_of[cow.cell], []).append(cow)
        for chunk in self._touched:
            herd, columns = herds.get(chunk, []), self._map.columns_of[chunk]
            grass = sum(self._material.count(GRASS, first, stop) for first, stop in columns)
            if len(herd) < (0 if grass < 30 else 1):
                if self.rng.random() < 0.01:
                    cells = [c for first, stop in columns for c in range(first, stop) if self._material[c] == GRASS]
                    cell = self.rng.choice(cells)
                    if cell not in self._objects and self._is_far(cell):
                        self.later_cows.append(Cow(self._next_slot, cell))
                        self._objects[cell] = self.later_cows[-1]
                        self._next_slot += 1
            elif len(herd) > math.floor(1.5 + daylight) and self.rng.random() < 0.1:
                cow = self.rng.choice(herd)
                if self._is_far(cow.cell):
                    self._remove(cow)

    def _is_far(self, cell: int) -> bool:
        """Whether every player, removed ones included, is 5 or more away."""
        x, y = self.place(cell)
        return all(abs(x - px) + abs(y - py) >= 5 for px, py in (self.place(player.cell) for player in self.players))

    def _enter(self, cell: int, thing: Any) -> None:
        self._objects[cell] = thing
        self._touched.setdefault(self._map.chunk_of[cell])

    def _remove(self, cow: Cow) -> None:
        del self._objects[cow.cell]
        (self.first_cows if cow in self.first_cows else self.later_cows).remove(cow)

    def _cell(self, place: Place) -> int:
        return (place[0] + self._pad) * self._map.stride + place[1] + self._pad
