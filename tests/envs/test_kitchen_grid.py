"""Floor plans of kitchens: neighbours and walking distances."""

import numpy as np
import pytest
from kitchen_oracle import Floor

from jaxcoop.envs.burrito import layouts
from jaxcoop.envs.kitchen.grid import DELTA_X, DELTA_Y, FAR, LETTERS, Direction, Grid

TWO_ROOMS = (
    "XXXXXX",
    "X  X X",
    "X XX X",
    "X    X",
    "XXXXXX",
    "X    X",
    "XXXXXX",
)
NO_FRAME = ("   ", " X ", "   ")


def every_grid():
    return [layouts.load(name).grid for name in layouts.names()] + [Grid(TWO_ROOMS), Grid(NO_FRAME), Grid((" ",))]


@pytest.mark.parametrize("grid", every_grid(), ids=lambda grid: f"{grid.width}x{grid.height}")
def test_kitchen_grids_know_the_ways_that_a_search_finds(grid):
    floor = Floor(grid.rows)
    distance = np.full((grid.cells, grid.cells), FAR)
    closer, exits = np.zeros(distance.shape, int), np.zeros(grid.cells, int)
    steps = np.tile(np.arange(grid.cells), (4, 1))
    for cell in floor.cells:
        ways, found = floor.ways[cell], floor.distances(cell)
        for goal, steps_to_go in found.items():
            distance[goal, cell] = steps_to_go
        exits[cell] = sum(1 << d for d in ways)
        for d, near in ways.items():
            steps[d, cell] = near
    for goal in floor.cells:
        far = floor.distances(goal)
        for cell, steps_to_go in far.items():
            closer[goal, cell] = sum(1 << d for d, near in floor.ways[cell].items() if far[near] < steps_to_go)
    is_floor = np.isin(np.arange(grid.cells), floor.cells)
    np.testing.assert_array_equal(grid.floor, is_floor)
    np.testing.assert_array_equal(grid.distances, distance)
    np.testing.assert_array_equal(grid.closer[:, is_floor], closer[:, is_floor])  # nobody stands elsewhere
    np.testing.assert_array_equal(grid.exits, exits)
    np.testing.assert_array_equal(grid.steps[:, is_floor], steps[:, is_floor])


def test_kitchen_cells_are_numbered_in_reading_order():
    grid = Grid(TWO_ROOMS)
    assert (grid.width, grid.height, grid.cells) == (6, 7, 42)
    assert grid.cell(4, 2) == 16 and (grid.x[16], grid.y[16]) == (4, 2)
    assert grid.characters[grid.cell(3, 1)] == "X" and grid.floor[grid.cell(4, 1)]
    assert grid.is_inside(0, 0) and grid.is_inside(5, 6)
    assert not any(grid.is_inside(*at) for at in ((-1, 0), (0, -1), (6, 0), (0, 7)))


def test_kitchen_directions_are_north_south_east_west():
    grid, middle = Grid(TWO_ROOMS), 22
    assert grid.ahead[:, middle].tolist() == [middle - 6, middle + 6, middle + 1, middle - 1]
    assert [Direction(d).name[0] for d in range(4)] == list(LETTERS)
    for d in Direction:
        assert (DELTA_X[d], DELTA_Y[d]) == (-DELTA_X[d ^ 1], -DELTA_Y[d ^ 1])  # opposite ones differ in the last bit


def test_kitchen_cells_ahead_of_the_edge_are_the_cells_themselves():
    grid = Grid(NO_FRAME)
    north, south, east, west = grid.ahead
    assert north.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5]
    assert south.tolist() == [3, 4, 5, 6, 7, 8, 6, 7, 8]
    assert east.tolist() == [1, 2, 2, 4, 5, 5, 7, 8, 8]
    assert west.tolist() == [0, 0, 1, 3, 3, 4, 6, 6, 7]
    assert grid.steps[Direction.SOUTH].tolist() == [3, 1, 5, 6, 7, 8, 6, 7, 8]  # not into the counter


def test_kitchen_rooms_without_a_way_between_them_are_far():
    grid = Grid(TWO_ROOMS)
    upper, lower, wall = grid.cell(1, 1), grid.cell(1, 5), grid.cell(0, 0)
    assert grid.distances[upper, grid.cell(4, 1)] == 7
    assert {int(grid.distances[pair]) for pair in ((upper, lower), (upper, wall), (wall, wall))} == {int(FAR)}
    assert grid.closer[lower, upper] == 0
