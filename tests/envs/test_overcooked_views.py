"""Overcooked from outside: layout files, bad options, observations, legal actions, words, pictures, results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.pictures import agent_color
from jaxcoop.envs.kitchen.grid import LayoutError
from jaxcoop.envs.overcooked import Overcooked, interact, layouts, observe, render, text
from jaxcoop.envs.overcooked.presets import PRESETS
from jaxcoop.envs.overcooked.results import RESULTS
from jaxcoop.envs.overcooked.types import READY, RECIPES, Action, Item

ROOM = Overcooked()
GRID = "XXPXX\nO 1 X\nXDXSX\n"
OOO = Item.SOUP + RECIPES.index((3, 0))


def made(name="mine", text=GRID):
    return layouts.parse(text, name=name, source="mine.txt")


@pytest.mark.parametrize("layout", layouts.names())
def test_every_layout_that_comes_along_can_be_played(layout):
    env = Overcooked(layout=layout)
    state = jax.jit(env.reset)(jax.random.key(0))
    assert env.kitchen.starts == tuple(state.cell.tolist()) and len(env.kitchen.pots) in (1, 2)
    assert any(options.get("layout") == layout for options in PRESETS.values())


def test_a_layout_without_orders_takes_every_soup():
    kitchen = made()
    assert kitchen.orders == tuple(range(Item.SOUP, Item.SOUP + len(RECIPES)))
    assert set(kitchen.values[list(kitchen.orders)]) == {20} and set(kitchen.times[list(kitchen.orders)]) == {20}


def test_numbers_of_a_layout_file():
    kitchen = made(text=GRID + "\norder onion\nbonus tomato tomato onion\nonion_value 3\ntomato_value 4\ntime 7\n")
    assert {soup: float(kitchen.values[soup]) for soup in kitchen.orders} == {4: 3, Item.SOUP + 7: 22}
    assert kitchen.times[Item.SOUP] == 7 and kitchen.best[Item.NONE] == 22


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1, column 1: there is no grid"),
        ("XXX\nX1\n", "line 2, column 3: the row is shorter than 3 cells"),
        ("XXX\nX?X\nXXX", "line 2, column 2: unknown terrain '\\?'"),
        ("XXX\n 1X\nXXX", "line 2, column 1: there is floor at the edge"),
        ("XXXX\nX11X\nXXXX", "line 2, column 3: player 1 is there twice"),
        ("XXX\nX2X\nXXX", "players \\[2\\] are drawn; number them from 1 on"),
        ("XXX\nX X\nXXX", "players \\[\\] are drawn"),
        ("XXX\nX1X\nXXX", "there is no pot P"),
        ("XPX\nX1S\nXDX", "there is no dispenser of ingredients, O or T"),
        (GRID + "\norder salt\n", "line 5, column 1: must be `order` and 1 to 3 times onion or tomato"),
        (GRID + "\norder onion\nbonus onion\n", "line 6, column 1: this soup is ordered already"),
        (GRID + "\ntime 0\n", "time '0'; must be a whole number from 1 to 126"),
        (GRID + "\nonion_time 43\ntomato_time 2\n", "onion_time '43'; must be a whole number from 1 to 42"),
        (GRID + "\nsalt 3\n", "line 5, column 1: 'salt'; allowed, numbers once: order, bonus, value"),
        (GRID + "\nonion_time 3\n", "give time alone, or both onion_time and tomato_time"),
        (GRID + "\ntime 3\nonion_time 3\ntomato_time 3\n", "give time alone"),
        ("X" * 40 + ("\n" + "X" * 40) * 30, "at most 1,024 in all"),
    ],
)
def test_a_layout_file_that_cannot_be_used_is_refused_with_its_place(content, message):
    with pytest.raises(LayoutError, match=f"mine.txt, .*{message}"):
        made(text=content)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "cramped_rom"}, "unknown layout 'cramped_rom'.*did you mean 'cramped_room'"),
        ({"layout": 3}, "layout 3: must be a name or the path of a text file"),
        ({"layout": "./nowhere.txt"}, "layout './nowhere.txt': cannot be read"),
        ({"agents": -1}, "agents -1: must be from 0 to 6"),
        ({"agents": 7}, "agents 7: must be from 0 to 6"),
        ({"agents": 2.5}, "agents 2.5: must be a whole number"),
        ({"max_steps": 0}, "max_steps 0: must be from 1 to"),
        ({"shaping": float("nan")}, "shaping nan: must be from"),
        ({"old_dynamics": 1}, "old_dynamics 1: must be True or False"),
        ({"observation": "pixels"}, "unknown observation 'pixels'; allowed: lossless"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Overcooked(**options)


def test_a_layout_from_a_file_is_played(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text(GRID)
    env = Overcooked(layout=str(path), agents=1)
    path.unlink()  # its text is part of the configuration
    assert env == Overcooked(layout=env.layout, agents=1)
    assert env.kitchen.name == "own" and env.starts == (7,)
    assert env.observe(env.reset(jax.random.key(0))).shape == (1, 3, 5, 21)


def test_teams_of_other_sizes_stand_on_free_floor():
    assert Overcooked(agents=1).starts == (11,)
    more = Overcooked(agents=6)
    assert sorted(more.starts) == [6, 7, 8, 11, 12, 13] and more.starts[:2] == ROOM.starts
    assert more.observe(more.reset(jax.random.key(0))).shape == (6, 4, 5, 46)


def test_the_layers_have_their_names():
    state = ROOM.reset(jax.random.key(0))
    pot = int(ROOM.kitchen.pots[0])
    state = state.replace(
        item=state.item.at[pot].set(OOO).at[0].set(Item.DISH),
        clock=state.clock.at[pot].set(READY + 5),
        held=jnp.asarray([Item.ONION, OOO], jnp.int8),
        t=jnp.int32(361),
    )
    seen = np.asarray(ROOM.observe(state))
    layer = {name: seen[0, ..., k] for k, name in enumerate(observe.LAYERS)}
    assert seen.shape == (2, 4, 5, 26) and seen.dtype == np.int8
    assert layer["own_cell"][2, 1] == layer["other_cell"][1, 3] == 1 == layer["own_faces_north"][2, 1]
    assert layer["pots"][0, 2] == 1 and layer["time_left"][0, 2] == 5 and layer["onions_in_soup"][0, 2] == 3
    assert layer["onions_in_soup"][1, 3] == 3 and layer["soup_done"][1, 3] == 1 and layer["soup_done"][0, 2] == 0
    assert layer["onions"][2, 1] == 1 and layer["dishes"][0, 0] == 1
    assert layer["urgency"].all() and not ROOM.observe(state.replace(t=jnp.int32(360)))[..., -1].any()
    np.testing.assert_array_equal(seen[1, ..., 0], layer["other_cell"])
    np.testing.assert_array_equal(ROOM.observe(state, jnp.asarray([1]))[0], seen[1])


@pytest.mark.parametrize("old", [False, True])
def test_an_action_is_legal_if_it_can_have_an_effect(old):
    env = Overcooked(old_dynamics=old, layout="counter_circuit")
    key = jax.random.key(3)
    state = env.reset(key)
    stay = jnp.full((2,), Action.STAY, jnp.int32)
    legal, step = jax.jit(env.legal), jax.jit(lambda s, a: env.step(s, a, env.sample_draws(key, s)))
    for k in range(60):
        allowed, still = np.asarray(legal(state)), step(state, stay).state
        for player in range(2):
            acted = step(state, stay.at[player].set(Action.INTERACT)).state
            changed = any((getattr(acted, name) != getattr(still, name)).any() for name in ("held", "item", "clock"))
            assert allowed[player, Action.INTERACT] == changed
            for direction in range(4):
                leads_on = env.kitchen.grid.floor[env.kitchen.grid.ahead[direction, state.cell[player]]]
                assert allowed[player, direction] == (leads_on or state.facing[player] != direction)
        state = step(state, jax.random.randint(jax.random.fold_in(key, k), (2,), 0, 6)).state
    only = legal(state, jnp.asarray([1]))
    np.testing.assert_array_equal(only[0], legal(state)[1])


def scenery():
    state = ROOM.reset(jax.random.key(0))
    pot = int(ROOM.kitchen.pots[0])
    return jax.device_get(
        state.replace(
            item=state.item.at[pot].set(OOO).at[0].set(Item.DISH),
            clock=state.clock.at[pot].set(READY + 1),
            held=jnp.asarray([Item.ONION, OOO], jnp.int8),
        )
    )


def test_a_scene_says_what_there_is():
    told = text.scene(ROOM, scenery(), 1)
    for line in (
        "Step 0 of 400. Points so far: 0.",
        "- player_0: at (1, 2), looks north at the floor (1, 1), holds an onion",
        "- player_1 (you): at (3, 1), looks north at the counter (3, 0), holds a soup of 3 onions",
        "- pot at (2, 0): cooking 3 onions, ready in 1 step",
        "- a dish at (0, 0)",
    ):
        assert line in told.splitlines()


def test_pots_are_told_in_every_stage():
    assert text.pot_text(Item.NONE, 0) == "empty"
    assert text.pot_text(Item.SOUP + 3, 0) == "holds 1 onion and 1 tomato, not full, not cooking"
    assert text.pot_text(OOO, 0) == "holds 3 onions, full, not cooking"
    assert text.pot_text(OOO, READY + 2).endswith("ready in 2 steps")
    assert "is ready" in text.pot_text(OOO, READY)


def test_the_task_text_names_orders_and_rules():
    told = text.task_text(Overcooked(layout="counter_circuit"))
    assert "- 1 onion and 1 tomato: 68 points, cooks 22 steps" in told and "empty hands" in told
    assert "by itself" in text.task_text(Overcooked(old_dynamics=True))


def test_events_have_their_names():
    tables = interact.tables(ROOM.kitchen, False)
    word = int(np.bitwise_or.reduce(tables.reports))
    assert "soup_delivery" in text.event_names(word) and text.event_names(0) == ()


@pytest.mark.parametrize("layout", layouts.names())
def test_a_picture_has_the_documented_shape_and_depends_on_the_state_alone(layout):
    env = Overcooked(layout=layout)
    state, grid = jax.device_get(env.reset(jax.random.key(0))), env.kitchen.grid
    picture = render.frame(env, state, cell=32)
    width = max(grid.width * 32, render.MIN_WIDTH) + 2 * render.MARGIN
    assert picture.dtype == np.uint8
    assert picture.shape == (render.HEADER + grid.height * 32 + render.MARGIN, width, 3)
    np.testing.assert_array_equal(picture, render.frame(env, state, cell=32))


def test_a_picture_shows_players_and_what_lies_about():
    state = scenery()
    base = render.frame(ROOM, state)
    for player in range(2):
        assert (base == np.array(agent_color(player), np.uint8)).all(-1).any()
    for change in (
        {"held": np.zeros(2, np.int8)},
        {"facing": np.ones(2, np.int8)},
        {"item": np.zeros_like(state.item)},
        {"clock": np.minimum(state.clock, READY)},
        {"t": np.int32(5)},
    ):
        assert (render.frame(ROOM, state.replace(**change)) != base).any()


@pytest.mark.parametrize("cell", [15, 0, 1000])
def test_cells_of_a_size_that_cannot_be_drawn_are_refused(cell):
    with pytest.raises(ValueError, match=f"cell {cell}: must be from 16 to 192"):
        render.frame(ROOM, scenery(), cell=cell)


def test_results_have_a_row():
    outcome = jax.tree.map(lambda x: np.stack([x, x]), jax.device_get(ROOM.outcome(scenery())))
    columns = RESULTS.columns(outcome)
    assert {len(column) for column in columns.values()} == {2}
    row = RESULTS.cell(columns)
    assert row["any_delivery_rate"] == 0 and row["score"] == 0 and row["episodes"] == 2
    assert set(RESULTS.shown) <= {*RESULTS.rates.values(), *row}
