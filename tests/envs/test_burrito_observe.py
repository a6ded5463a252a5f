"""7: what players see, on kitchens and states that were made by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.layouts import parse
from jaxcoop.envs.burrito.observe import CHANNELS, ENCODINGS, LAYERS, OBJECTS, observe
from jaxcoop.envs.burrito.types import BURNT, READY, WARNING, Item
from jaxcoop.envs.kitchen.grid import Direction

KITCHEN = parse(
    """\
XPGX
D  B
W  S
XMZU

player 1 1 S
player 2 2 W
""",
    name="small",
    source="small.txt",
)


def state_with(*lying, held=(0, 0), facing=(Direction.SOUTH, Direction.WEST), players=((1, 1), (2, 2)), **changes):
    """A state of `KITCHEN`; each of `lying` is (x, y, item) or (x, y, item, clock)."""
    state = jax.tree.map(np.array, Burrito(layout="open").reset(jax.random.key(0)))
    item, clock = np.zeros(KITCHEN.grid.cells, np.int8), np.zeros(KITCHEN.grid.cells, np.uint8)
    for x, y, what, *timer in lying:
        item[KITCHEN.grid.cell(x, y)] = what
        clock[KITCHEN.grid.cell(x, y)] = timer[0] if timer else 0
    return state.replace(
        cell=np.array([KITCHEN.grid.cell(x, y) for x, y in players], np.int16),
        facing=np.array(facing, np.int8),
        held=np.array(held, np.int8),
        item=item,
        clock=clock,
        **changes,
    )


def seen(encoding, state, agents=None):
    return jax.tree.map(np.asarray, observe(KITCHEN, encoding, state, agents))


def channel(state, name):
    """One channel of `lossless` as player 0 sees it."""
    return seen("lossless", state).grid[0, :, :, CHANNELS.index(name)]


def layer(state, name):
    """One layer of `onehot` as player 0 sees it."""
    return seen("onehot", state).grid[0, :, :, LAYERS.index(name)]


def ones(*cells):
    """Zeros with a 1 at each (x, y)."""
    out = np.zeros((4, 4), np.int8)
    for x, y in cells:
        out[y, x] = 1
    return out


def test_terrain_has_the_codes_of_its_three_channels():
    state = state_with()
    np.testing.assert_array_equal(channel(state, "structure"), [[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 2], [1, 0, 0, 0]])
    np.testing.assert_array_equal(channel(state, "dispenser"), [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 3, 4, 0]])
    np.testing.assert_array_equal(channel(state, "tool"), [[0, 2, 4, 0], [1, 0, 0, 3], [5, 0, 0, 0], [0, 0, 0, 6]])


def test_players_are_seen_with_what_they_hold_and_where_they_look():
    state = state_with(held=(Item.FIRE_EXT, Item.CHOPPED_MUSHROOM))
    np.testing.assert_array_equal(channel(state, "player"), ones((1, 1)) + 2 * ones((2, 2)))
    np.testing.assert_array_equal(channel(state, "held"), 40 * ones((1, 1)) + 23 * ones((2, 2)))
    np.testing.assert_array_equal(channel(state, "facing"), 3 * ones((1, 1)) + 4 * ones((2, 2)))
    grids = seen("lossless", state).grid
    for agent, place in enumerate([(1, 1), (2, 2)]):
        np.testing.assert_array_equal(grids[agent, ..., 0], ones(place))
    np.testing.assert_array_equal(grids[0, ..., 1:], grids[1, ..., 1:])


@pytest.mark.parametrize(
    ("clock", "timers", "flags"),
    [
        (1, (1, -1, -1), ()),
        (79, (79, -1, -1), ()),
        (READY, (80, -1, -1), ("is_ready", "is_waiting_for_pickup")),
        (READY + 1, (80, 0, -1), ("is_ready", "is_waiting_for_pickup")),
        (WARNING - 1, (80, 79, -1), ("is_ready", "is_waiting_for_pickup")),
        (WARNING, (80, 80, -1), ("is_ready", "is_warning")),
        (WARNING + 1, (80, 80, 0), ("is_ready", "is_warning")),
        (BURNT - 1, (80, 80, 59), ("is_ready", "is_warning")),
        (BURNT, (80, 80, 60), ("is_ready", "is_burnt")),
    ],
)
def test_one_clock_tells_three_timers_and_the_flags_of_food(clock, timers, flags):
    state = state_with((1, 0, Item.BOILED_RICE, clock))
    for name, timer in zip(("main_timer", "wait_timer", "warn_timer"), timers, strict=True):
        np.testing.assert_array_equal(channel(state, name), timer * ones((1, 0)), err_msg=name)
    np.testing.assert_array_equal(channel(state, "burnt"), (clock == BURNT) * ones((1, 0)))
    there = {name for name in LAYERS[-5:] if layer(state, name)[0, 1]}
    assert there == set(flags)


def test_charcoal_counts_as_ready_burnt_and_extinguished_without_timers():
    state = state_with((2, 0, Item.CHARCOAL))
    np.testing.assert_array_equal(channel(state, "burnt"), ones((2, 0)))
    for name in ("main_timer", "wait_timer", "warn_timer"):
        assert not channel(state, name).any()
    for name in LAYERS[-5:]:
        is_set = name in ("is_ready", "is_burnt", "is_extinguished")
        np.testing.assert_array_equal(layer(state, name), is_set * ones((2, 0)), err_msg=name)


def test_only_lossless_tells_a_plate_of_the_stack_from_other_dirty_plates():
    stack, other = (state_with((0, 0, item)) for item in (Item.STACK_PLATE, Item.DIRTY_PLATE))
    np.testing.assert_array_equal(channel(stack, "item"), channel(other, "item"))
    np.testing.assert_array_equal(channel(stack, "main_timer"), -ones((0, 0)))
    np.testing.assert_array_equal(channel(other, "main_timer"), 0 * ones())
    for encoding in ("onehot", "nopos"):
        for a, b in zip(*(jax.tree.leaves(seen(encoding, state)) for state in (stack, other)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_chops_and_rinses_are_main_timers():
    state = state_with((3, 1, Item.CHOPPED_MEAT, 2), (0, 2, Item.DIRTY_PLATE, 1))
    np.testing.assert_array_equal(channel(state, "main_timer"), 2 * ones((3, 1)) + ones((0, 2)))
    np.testing.assert_array_equal(layer(state, "is_ready"), ones((3, 1)))  # chopped, not the plate


def test_held_items_are_invisible_in_onehot():
    empty, full = state_with(), state_with(held=(Item.MEAT, Item.STEAK_BURRITO))
    np.testing.assert_array_equal(seen("onehot", empty).grid, seen("onehot", full).grid)


def test_layers_of_onehot_are_where_their_names_say():
    state = state_with((0, 0, Item.MUSHROOM_BURRITO))
    np.testing.assert_array_equal(layer(state, "player"), ones((1, 1), (2, 2)))
    np.testing.assert_array_equal(layer(state, "facing_S"), ones((1, 1)))
    np.testing.assert_array_equal(layer(state, "facing_W"), ones((2, 2)))
    np.testing.assert_array_equal(layer(state, "terrain_X"), ones((0, 0), (3, 0), (0, 3)))
    np.testing.assert_array_equal(layer(state, "mushroom_burrito"), ones((0, 0)))
    assert len(LAYERS) == len(set(LAYERS)) == 48 and len(OBJECTS) == 25


def test_the_vector_has_stations_then_flags_then_counts():
    state = state_with(
        (1, 0, Item.BOILED_RICE, WARNING), (3, 1, Item.CHOPPED_MEAT), (0, 0, Item.MEAT), (3, 0, Item.MEAT)
    )
    vector = seen("nopos", state).vector[0]
    np.testing.assert_array_equal(vector[:4], [1, 1, 0, 0])  # pot, board, grill, sink
    np.testing.assert_array_equal(vector[4:9], [1, 0, 1, 0, 0])  # ready, waiting, warning, burnt, extinguished
    assert not vector[9:24].any()
    counts = dict(zip(OBJECTS, vector[24:49].tolist(), strict=True))
    assert {name: count for name, count in counts.items() if count} == {"boiled_rice": 1, "chopped_meat": 1, "meat": 2}
    assert vector.shape == (6 * 4 + 100,) and not vector[49:].any()


def test_orders_are_two_bits_each():
    state = state_with(dish=np.array([2, 1, 1, 0], np.int8))
    np.testing.assert_array_equal(seen("lossless", state).orders, [[0, 1, 1, 0, 1, 0, 0, 0]] * 2)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_chosen_players_see_the_same_as_among_all(encoding):
    state = state_with((1, 0, Item.BOILED_RICE, 7), held=(3, 4))
    everybody, one = seen(encoding, state), seen(encoding, state, jnp.array([1], jnp.int32))
    for a, b in zip(jax.tree.leaves(everybody), jax.tree.leaves(one), strict=True):
        np.testing.assert_array_equal(a[1:], b)
        assert a.dtype == b.dtype


@pytest.mark.parametrize(("encoding", "dtype"), [("lossless", np.int8), ("onehot", np.int8), ("nopos", np.int16)])
def test_a_batch_sees_what_its_states_see_one_by_one(encoding, dtype):
    states = [state_with((2, 0, Item.STEAK, clock), held=(0, clock % 20)) for clock in (0, 90, 222)]
    batch = jax.jit(jax.vmap(lambda state: observe(KITCHEN, encoding, state)))(
        jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    )
    for k, state in enumerate(states):
        for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(seen(encoding, state)), strict=True):
            np.testing.assert_array_equal(a[k], b)
    assert jax.tree.leaves(batch)[1].dtype == dtype and batch.orders.dtype == np.int8
