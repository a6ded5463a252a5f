"""Pictures of the kitchen."""

import jax
import numpy as np
import pytest

from jaxcoop.core.pictures import INK, agent_color
from jaxcoop.envs.burrito import render, sprites
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.types import BURNT, READY, WARNING, Item, Terrain
from jaxcoop.envs.kitchen import draw

CELL = 48


def start(layout="open", agents=0, **changes):
    """An environment and its start on the host, with some fields replaced."""
    env = Burrito(layout=layout, agents=agents)
    state = jax.tree.map(np.array, env.reset(jax.random.key(0)))
    return env, state.replace(**changes)


def with_item(env, state, x, y, item, clock=0):
    """The state with an item on a cell."""
    cell = env.kitchen.grid.cell(x, y)
    items, clocks = state.item.copy(), state.clock.copy()
    items[cell], clocks[cell] = item, clock
    return state.replace(item=items, clock=clocks)


def part(env, picture, x, y, cell=CELL):
    """The part of a picture that shows a cell of the kitchen."""
    left = (picture.shape[1] - env.kitchen.grid.width * cell) // 2 + x * cell
    return picture[render.HEADER + y * cell :, left:][:cell, :cell]


def has_color(area, color):
    return bool((area == np.asarray(color, np.uint8)).all(-1).any())


@pytest.mark.parametrize(("layout", "agents"), [("open", 1), ("open", 2), ("fc", 0), ("ring", 3), ("open", 16)])
def test_a_picture_has_the_documented_shape_and_depends_on_the_state_alone(layout, agents):
    env, state = start(layout, agents)
    grid = env.kitchen.grid
    for cell in (None, 24, 8):
        picture = render.frame(env, state, cell=cell)
        height = render.HEADER + grid.height * (cell or 64) + render.MARGIN
        width = max(grid.width * (cell or 64), render.MIN_WIDTH) + 2 * render.MARGIN
        assert picture.dtype == np.uint8 and picture.shape == (height, width, 3)
        np.testing.assert_array_equal(picture, render.frame(env, state, cell=cell))


@pytest.mark.parametrize("cell", [7, 0, -1, 129])
def test_cells_of_a_size_that_cannot_be_drawn_are_refused(cell):
    env, state = start()
    with pytest.raises(ValueError, match=f"cell {cell}: must be from 8 to 128"):
        render.frame(env, state, cell=cell)


@pytest.mark.parametrize("size", [8, 24, 64])
def test_all_stations_and_items_look_different(size):
    stations = {sprites.station(code, size).tobytes() for code in Terrain}
    assert len(stations) == len(Terrain)
    items = [item for item in Item if item not in (Item.NONE, Item.STACK_PLATE)]
    assert len({sprites.item(item, size).tobytes() for item in items}) == len(items)


def test_stations_are_told_apart_without_their_letters():
    size = sprites.LETTER_CELL - 1
    assert len({sprites.station(code, size).tobytes() for code in Terrain}) == len(Terrain)


@pytest.mark.parametrize("cell", [8, 20, 48])
def test_players_carry_their_colour_and_no_other_floor_does(cell):
    env, state = start("open_3p")
    picture = render.frame(env, state, cell=cell)
    for agent, (x, y) in enumerate([(1, 2), (6, 4), (6, 2)]):
        assert has_color(part(env, picture, x, y, cell), agent_color(agent))
        assert not has_color(part(env, picture, x + 1, y, cell), agent_color(agent))


def test_the_wedge_of_a_player_is_at_the_side_it_faces():
    middle, far = slice(CELL // 2 - 2, CELL // 2 + 2), CELL - 5
    sides = (np.s_[:5, middle], np.s_[far:, middle], np.s_[middle, far:], np.s_[middle, :5])
    for facing in range(4):
        env, state = start(facing=np.array([facing, 0], np.int8))
        area = part(env, render.frame(env, state, cell=CELL), 1, 2)
        assert [has_color(area[side], INK) for side in sides] == [side == facing for side in range(4)]


@pytest.mark.parametrize("item", [item for item in Item if item != Item.NONE])
def test_what_lies_on_a_counter_or_is_held_shows_there_and_only_there(item):
    env, state = start()
    empty = render.frame(env, state, cell=CELL)
    for other, (x, y) in (
        (with_item(env, state, 0, 0, item), (0, 0)),
        (state.replace(held=np.array([item, 0], np.int8)), (1, 2)),
    ):
        picture = render.frame(env, other, cell=CELL)
        assert (part(env, picture, x, y) != part(env, empty, x, y)).any()
        part(env, picture, x, y)[:] = part(env, empty, x, y)
        assert (picture == empty).all()


def test_food_on_the_fire_looks_different_in_every_phase():
    env, state = start()
    looks = [
        part(env, render.frame(env, with_item(env, state, 2, 6, Item.BOILED_RICE, clock), cell=CELL), 2, 6)
        for clock in (1, READY // 2, READY, (READY + WARNING) // 2, WARNING, (WARNING + BURNT) // 2, BURNT)
    ]
    assert len({look.tobytes() for look in looks}) == len(looks)
    yellow, fire = (255, 212, 0), (226, 62, 28)
    assert [has_color(look, yellow) for look in looks] == [False] * 4 + [True] * 2 + [False]
    assert [has_color(look, fire) for look in looks] == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("x", "y", "item", "clocks"), [(2, 0, Item.CHOPPED_MEAT, range(3)), (9, 2, Item.DIRTY_PLATE, range(3))]
)
def test_every_chop_and_rinse_shows(x, y, item, clocks):
    env, state = start()
    looks = {render.frame(env, with_item(env, state, x, y, item, clock)).tobytes() for clock in clocks}
    assert len(looks) == len(clocks)


CHANGES = {
    "step": {"t": np.int32(1)},
    "score": {"score": np.float32(84)},
    "plates": {"plates": np.int8(2)},
    "streak": {"streak": np.int16(3)},
    "place": {"cell": np.array([22, 46], np.int16)},
    "facing": {"facing": np.array([0, 1], np.int8)},
    "order": {"dish": np.array([2, 2, 0, 0], np.int8)},
    "more orders": {"dish": np.array([1, 2, 1, 0], np.int8), "left": np.array([1200, 1200, 1200, 0], np.int16)},
    "time of an order": {"left": np.array([1200, 900, 0, 0], np.int16)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_a_state_shows(change):
    env, state = start()
    assert (render.frame(env, state) != render.frame(env, state.replace(**CHANGES[change]))).any()


def test_the_stack_shows_its_plates_one_by_one():
    looks = [
        part(*(lambda e, s: (e, render.frame(e, s, cell=CELL)))(*start(plates=np.int8(k))), 5, 0) for k in range(5)
    ]
    assert len({look.tobytes() for look in looks}) == 5


def test_a_bar_fills_from_the_left():
    picture = np.zeros((10, 42, 3), np.uint8)
    draw.bar(picture, 0, 0, 42, 10, 0.25, draw.GOOD)
    filled = (picture[5] == np.asarray(draw.GOOD)).all(-1)
    assert filled[1:11].all() and filled.sum() == 10
