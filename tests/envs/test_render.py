"""Pictures of CUBE, MA-Crafter and the dining table: shapes, colours, marks, and that they show what changed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.pictures import PAPER, agent_color
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube import render as cube
from jaxcoop.envs.cube import types as cube_types
from jaxcoop.envs.dining import Dining, rules
from jaxcoop.envs.dining import render as dining
from jaxcoop.envs.macrafter import render as crafter
from jaxcoop.envs.macrafter import sprites
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.types import Item, Material, Reason

SIZES = (1, 3, 16, 128)
HEAVY = 1


@dataclasses.dataclass(frozen=True)
class Board:
    side: int = 15
    weights: tuple[int, ...] = (1, 3)
    horizon: int = 50
    step_cost: float = 0.01
    deliver_reward: float = 1.0


def cube_state(row, col, *, block_row=(1, 5), block_col=(3, 6), aim=None, t=0, score=0.0):
    agents = len(row)
    last = cube_types.Last(np.zeros(agents, np.int8), np.full(agents, -1, np.int16))
    return cube_types.State(
        row=np.asarray(row, np.int16),
        col=np.asarray(col, np.int16),
        block_row=np.asarray(block_row, np.int16),
        block_col=np.asarray(block_col, np.int16),
        t=np.int32(t),
        score=np.float32(score),
        aim=np.full(agents, -1, np.int16) if aim is None else np.asarray(aim, np.int16),
        phantom=np.full(agents, -1, np.int16),
        last=last,
        attempts=None,
    )


def spread(agents, side=15):
    """Rows and columns of agents in the first columns; more than the cells share them."""
    cells = np.arange(agents) % (side * 2)
    return cells % side, cells // side


def crafter_state(agents, side=16, **changes):
    """A meadow with the agents in its first rows, nothing carried, all vitals full."""
    env = MACrafter(agents=agents, width=side, height=side)
    state = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), jax.eval_shape(env.reset, jax.random.key(0)))
    inventory = np.zeros_like(state.inventory)
    inventory[:, : Item.SAPLING] = 9
    state = state.replace(
        material=np.full_like(state.material, Material.GRASS),
        cow_x=np.full_like(state.cow_x, -1),
        x=(np.arange(agents) % side).astype(np.int16),
        y=(np.arange(agents) // side).astype(np.int16),
        inventory=inventory,
    )
    return env, state.replace(**changes)


def cube_cell(picture, row, col, cell):
    left = (picture.shape[1] - Board.side * cell) // 2 + col * cell
    return picture[cube.HEADER + row * cell :, left:][:cell, :cell]


def crafter_cell(picture, x, y, cell):
    return picture[crafter.HEADER + y * cell :, crafter.MARGIN + x * cell :][:cell, :cell]


def has_color(area, color):
    return bool((area == np.asarray(color, np.uint8)).all(-1).any())


def panel(picture):
    return picture[crafter.HEADER :, -crafter.PANEL :]


@pytest.mark.parametrize("agents", SIZES)
def test_a_cube_picture_has_the_documented_shape_and_depends_on_the_state_alone(agents):
    state = cube_state(*spread(agents))
    for cell, width in ((None, 15 * 48), (24, 15 * 24), (4, cube.MIN_WIDTH)):
        picture = cube.frame(Board(), state, cell=cell)
        height = cube.HEADER + 15 * (cell or 48) + cube.MARGIN
        assert picture.dtype == np.uint8 and picture.shape == (height, width + 2 * cube.MARGIN, 3)
        np.testing.assert_array_equal(picture, cube.frame(Board(), state, cell=cell))


@pytest.mark.parametrize("agents", SIZES)
def test_a_crafter_picture_has_the_documented_shape_and_depends_on_the_state_alone(agents):
    env, state = crafter_state(agents)
    for cell, body in ((None, 16 * 40), (20, 16 * 20), (4, crafter.MIN_BODY)):
        picture = crafter.frame(env, state, cell=cell)
        width = 16 * (cell or 40) + 2 * crafter.MARGIN + crafter.PANEL
        assert picture.dtype == np.uint8 and picture.shape == (crafter.HEADER + body + crafter.MARGIN, width, 3)
        np.testing.assert_array_equal(picture, crafter.frame(env, state, cell=cell))


def test_the_default_picture_of_a_large_world_is_768_pixels_high():
    env, state = crafter_state(3, side=64)
    assert crafter.frame(env, state).shape == (768 + crafter.HEADER + crafter.MARGIN, 768 + 16 + crafter.PANEL, 3)


@pytest.mark.parametrize("cell", [3, 0, -1, 1000])
def test_cells_of_a_size_that_cannot_be_drawn_are_refused(cell):
    with pytest.raises(ValueError, match=f"cell {cell}: must be from 4 to"):
        cube.frame(Board(), cube_state([0], [0]), cell=cell)
    env, state = crafter_state(1)
    with pytest.raises(ValueError, match=f"cell {cell}: must be from 4 to"):
        crafter.frame(env, state, cell=cell)


def test_no_two_of_hundreds_of_agents_have_one_colour():
    assert len({agent_color(agent) for agent in range(512)}) == 512


@pytest.mark.parametrize("cell", [4, 15, 48])
def test_the_cell_of_a_cube_agent_carries_its_colour_and_no_other_cell_does(cell):
    picture = cube.frame(Board(), cube_state([2, 9], [4, 11]), cell=cell)
    for agent, (row, col) in enumerate([(2, 4), (9, 11)]):
        assert has_color(cube_cell(picture, row, col, cell), agent_color(agent))
        assert not has_color(cube_cell(picture, row + 1, col, cell), agent_color(agent))


def test_agents_on_one_cell_of_cube_share_a_disc():
    area = cube_cell(cube.frame(Board(), cube_state([2, 2, 2], [4, 4, 4])), 2, 4, 48)
    assert all(has_color(area, agent_color(agent)) for agent in range(3))


def test_the_goal_column_and_blocks_differ_from_the_floor():
    picture = cube.frame(Board(), cube_state([0], [0]))
    floor = cube_cell(picture, 12, 2, 48)
    assert (cube_cell(picture, 12, 14, 48) != floor).any()
    for row in range(5, 8):
        for col in range(6, 9):
            assert (cube_cell(picture, row, col, 48) != floor).any(-1).mean() > 0.9


def test_the_score_of_cube_is_out_of_the_value_of_all_blocks():
    env = Cube(side=15, agents=1, blocks="1:1,3:1", deliver_reward=2.0)
    lines = cube._texts(env, cube_state([0], [0]))
    assert "score 0 / 8" in lines[0]


CUBE_CHANGES = {
    "step": {"t": 1},
    "score": {"score": 1.0},
    "agent": {"row": [3, 2]},
    "unplaced": {"row": [-1, 2], "col": [-1, 4]},
    "block": {"block_col": (3, 7)},
    "delivered": {"block_row": (-1, 5), "block_col": (-1, 6)},
    "aim": {"aim": [4 * HEAVY + cube_types.Face.LEFT, -1]},
}


@pytest.mark.parametrize("change", CUBE_CHANGES)
def test_every_change_of_a_cube_state_shows(change):
    scene = {"row": [2, 2], "col": [1, 4]}
    before, after = cube_state(**scene), cube_state(**{**scene, **CUBE_CHANGES[change]})
    assert (cube.frame(Board(), before) != cube.frame(Board(), after)).any()


def test_the_wedge_of_a_cube_agent_is_on_the_side_of_the_block_that_it_pushes():
    still = cube_cell(cube.frame(Board(), cube_state([6], [5])), 6, 5, 48)
    sides = {
        cube_types.Face.LEFT: np.s_[16:32, 40:],  # whoever stands left of the block pushes to the right
        cube_types.Face.RIGHT: np.s_[16:32, :8],
        cube_types.Face.UP: np.s_[40:, 16:32],
        cube_types.Face.DOWN: np.s_[:8, 16:32],
    }
    for face, side in sides.items():
        pushing = cube_cell(cube.frame(Board(), cube_state([6], [5], aim=[4 * HEAVY + face])), 6, 5, 48)
        for other in sides.values():
            assert (pushing[other] != still[other]).any() == (other == side)


@pytest.mark.parametrize("cell", [4, 12, 40])
def test_the_cell_of_a_crafter_agent_carries_its_colour(cell):
    env, state = crafter_state(3, x=np.array([2, 9, 15], np.int16), y=np.array([3, 14, 0], np.int16))
    picture = crafter.frame(env, state, cell=cell)
    for agent in range(3):
        assert has_color(crafter_cell(picture, state.x[agent], state.y[agent], cell), agent_color(agent))


def test_x_is_the_column_and_y_the_row():
    env, state = crafter_state(1)
    material = state.material.copy()
    material[5, 9] = Material.WATER
    picture = crafter.frame(env, state.replace(material=material), cell=20)
    changed = (picture != crafter.frame(env, state, cell=20)).any(-1)
    rows, cols = np.nonzero(changed)
    assert rows.min() >= crafter.HEADER + 180 and rows.max() < crafter.HEADER + 200
    assert cols.min() >= crafter.MARGIN + 100 and cols.max() < crafter.MARGIN + 120


@pytest.mark.parametrize("size", [4, 12, 40])
def test_all_materials_look_different(size):
    cells = sprites.cells(size)
    looks = {cells[m, 0].tobytes() for m in Material}
    assert len(looks) == len(Material)


def test_all_items_look_different():
    assert len({sprites.item(item, 16).tobytes() for item in Item}) == len(Item)


def changed_at(array, index, value):
    made = array.copy()
    made[index] = value
    return made


CRAFTER_CHANGES = {
    "step": lambda s: s.replace(t=np.int32(1)),
    "score": lambda s: s.replace(score=np.float32(2.5)),
    "cell": lambda s: s.replace(material=changed_at(s.material, (4, 4), Material.TABLE)),
    "plant": lambda s: s.replace(material=changed_at(s.material, (4, 4), Material.GRASS | 0x80)),
    "cow": lambda s: s.replace(cow_x=changed_at(s.cow_x, 0, 6), cow_y=changed_at(s.cow_y, 0, 6)),
    "agent": lambda s: s.replace(x=changed_at(s.x, 0, 7)),
    "facing": lambda s: s.replace(facing=changed_at(s.facing, 0, 2)),
    "asleep": lambda s: s.replace(sleeping=changed_at(s.sleeping, 0, True)),
    "removed": lambda s: s.replace(removed=changed_at(s.removed, 0, True)),
    "unlocked": lambda s: s.replace(unlocked=np.uint32(4)),
    "collected": lambda s: s.replace(last=s.last.replace(took=changed_at(s.last.took, 0, 1 << Material.TREE))),
    "failed": lambda s: s.replace(last=s.last.replace(reason=changed_at(s.last.reason, 0, Reason.NO_PATH))),
}


@pytest.mark.parametrize("change", CRAFTER_CHANGES)
def test_every_change_of_a_crafter_state_shows(change):
    env, state = crafter_state(3)
    assert (crafter.frame(env, state) != crafter.frame(env, CRAFTER_CHANGES[change](state))).any()


@pytest.mark.parametrize("item", Item)
def test_the_panel_shows_every_item_and_only_there(item):
    env, state = crafter_state(3)
    carrying = state.replace(inventory=changed_at(state.inventory, (1, item), 4))
    before, after = crafter.frame(env, state), crafter.frame(env, carrying)
    rows = np.nonzero((before != after).any((1, 2)))[0] - crafter.HEADER
    assert len(rows) and rows.min() >= crafter.ROW and rows.max() < 2 * crafter.ROW
    assert (before[:, : -crafter.PANEL] == after[:, : -crafter.PANEL]).all()


@pytest.mark.parametrize(("value", "is_red"), [(0, True), (3, True), (4, False), (9, False)])
def test_vitals_up_to_three_are_printed_in_red(value, is_red):
    number = crafter._bar(Item.DRINK, value)[:, 38:, :3].astype(int)  # the digits beside the bar
    ink = number[(number != PAPER).any(-1)]
    assert ((ink[:, 0] - ink[:, 1]).max() > 80) == is_red


def test_six_agents_have_a_row_each_and_of_more_the_last_ones_are_counted():
    env, state = crafter_state(6, side=64)
    rows = panel(crafter.frame(env, state))
    for agent in range(6):
        assert has_color(rows[agent * crafter.ROW :][: crafter.ROW], agent_color(agent))
    many_env, many = crafter_state(128, side=64)
    shown = panel(crafter.frame(many_env, many))
    assert not has_color(shown, agent_color(100))
    fewer_env, fewer = crafter_state(127, side=64)
    assert (shown != panel(crafter.frame(fewer_env, fewer))).any()  # "+121 more" and "+120 more"


def test_an_agent_without_a_place_to_start_is_in_its_row_alone():
    env, state = crafter_state(2)
    nowhere = state.replace(x=changed_at(state.x, 1, -1), y=changed_at(state.y, 1, -1))
    picture = crafter.frame(env, nowhere.replace(removed=np.array([False, True])))
    assert not has_color(picture[:, : -crafter.PANEL], agent_color(1))


def table_after(*steps, **changes):
    """The dining table after simultaneous steps, each a list of one action for each philosopher."""
    env = Dining(philosophers=len(steps[0]))
    state = env.reset(jax.random.key(0))
    table = state.table
    for actions in steps:
        table = rules.simultaneous_step(table, jnp.asarray(actions, jnp.int32))
    return env, jax.tree.map(np.asarray, state.replace(table=table, **changes))


@pytest.mark.parametrize("philosophers", [2, 3, 16, 128])
def test_a_dining_picture_has_the_documented_shape_and_depends_on_the_state_alone(philosophers):
    env, state = table_after([3] * philosophers)
    for cell in (12, 4):
        side = dining.side(philosophers, cell)
        picture = dining.frame(env, state, cell=cell)
        assert picture.shape == (dining.HEADER + side, max(side, dining.MIN_WIDTH), 3) and picture.dtype == np.uint8
        np.testing.assert_array_equal(picture, dining.frame(env, state, cell=cell))
    assert dining.frame(env, state).shape[1] <= dining.TARGET_PIXELS


LEFT, RIGHT, RELEASE, WAIT = range(4)


def test_every_change_of_a_dining_state_shows():
    nothing = [WAIT, WAIT, WAIT]
    scenes = (
        table_after(nothing),
        table_after([LEFT, WAIT, WAIT]),
        table_after([RIGHT, WAIT, WAIT]),
        table_after([LEFT, WAIT, WAIT], [RIGHT, WAIT, WAIT]),
        table_after(nothing, t=jnp.int32(1)),
        table_after(nothing, deadlock=jnp.bool_(True)),
    )
    pictures = [dining.frame(*scene) for scene in scenes]
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_table_that_is_too_large_to_draw_is_refused():
    env = Dining(philosophers=100_000)
    state = jax.tree.map(np.asarray, env.reset(jax.random.key(0)))
    with pytest.raises(ValueError, match="philosophers 100,000 at 4 pixels"):
        dining.frame(env, state)
