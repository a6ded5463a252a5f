"""The floor plan of a kitchen: cells, neighbours, walking distances (host side, made once for each layout).

Axes: C = W H cells in reading order (`y * W + x`), D = 4 directions (`Direction`).  (0, 0) is the top left corner.
"""

import dataclasses
from enum import IntEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int, UInt8

MAX_CELLS = 1024
FAR = np.int16(np.iinfo(np.int16).max)
"""Distance of cells that no way connects."""


class Direction(IntEnum):
    """Where a player looks or goes."""

    NORTH = 0
    SOUTH = 1
    EAST = 2
    WEST = 3


LETTERS = "NSEW"
DELTA_X = np.array([0, 0, 1, -1], np.int16)
DELTA_Y = np.array([-1, 1, 0, 0], np.int16)


class LayoutError(ValueError):
    """A layout that cannot be used: names file, line and column."""


@dataclasses.dataclass(frozen=True)
class Grid:
    """Rows of terrain characters; a blank is floor, the only thing to walk on."""

    rows: tuple[str, ...]

    @property
    def width(self) -> int:
        """W."""
        return len(self.rows[0])

    @property
    def height(self) -> int:
        """H."""
        return len(self.rows)

    @property
    def cells(self) -> int:
        """C."""
        return self.width * self.height

    def cell(self, x: int, y: int) -> int:
        """Number of a cell."""
        return y * self.width + x

    def is_inside(self, x: int, y: int) -> bool:
        """Whether there is such a cell."""
        return 0 <= x < self.width and 0 <= y < self.height

    @cached_property
    def characters(self) -> np.ndarray:
        """Terrain of each cell, str[C]."""
        return np.array([character for row in self.rows for character in row])

    @cached_property
    def floor(self) -> Bool[np.ndarray, " C"]:
        """Cells to walk on."""
        return self.characters == " "

    @cached_property
    def x(self) -> Int[np.ndarray, " C"]:
        """Column of each cell."""
        return np.tile(np.arange(self.width, dtype=np.int16), self.height)

    @cached_property
    def y(self) -> Int[np.ndarray, " C"]:
        """Row of each cell."""
        return np.repeat(np.arange(self.height, dtype=np.int16), self.width)

    @cached_property
    def ahead(self) -> Int[np.ndarray, "D C"]:
        """The cell in front of somebody in a cell who looks in a direction; off the grid: the cell itself."""
        x, y = self.x + DELTA_X[:, None], self.y + DELTA_Y[:, None]
        is_in = (x >= 0) & (x < self.width) & (y >= 0) & (y < self.height)
        return np.where(is_in, y * self.width + x, np.arange(self.cells)).astype(np.int16)

    @cached_property
    def steps(self) -> Int[np.ndarray, "D C"]:
        """Where a step in a direction leads: the cell ahead if it is floor, else the cell itself."""
        return np.where(self.floor[self.ahead], self.ahead, np.arange(self.cells, dtype=np.int16))

    @cached_property
    def distances(self) -> Int[np.ndarray, "C C"]:
        """Steps on shortest ways between floor cells; `FAR` where there is none, and for all other cells."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import shortest_path

        start = np.broadcast_to(np.arange(self.cells), self.steps.shape)
        is_step = (self.steps != start) & self.floor
        edges = (np.ones(is_step.sum()), (start[is_step], self.steps[is_step]))
        found = shortest_path(coo_array(edges, shape=(self.cells, self.cells)).tocsr(), unweighted=True)
        found = np.where(np.isfinite(found) & self.floor & self.floor[:, None], found, FAR)
        return found.astype(np.int16)

    @cached_property
    def closer(self) -> UInt8[np.ndarray, "C C"]:
        """`[goal, cell]`: bit d is set where a step in direction d leads one cell nearer to the goal."""
        bits = np.zeros((self.cells, self.cells), np.uint8)
        for d, step in enumerate(self.steps):
            bits |= (self.distances[:, step] < self.distances).astype(np.uint8) << d
        return bits

    @cached_property
    def exits(self) -> UInt8[np.ndarray, " C"]:
        """Bit d is set where a step in direction d leads to another cell."""
        moves = (self.steps != np.arange(self.cells)) & self.floor
        return (moves.astype(np.uint8) << np.arange(4, dtype=np.uint8)[:, None]).sum(0, dtype=np.uint8)
