"""Rules of Overcooked that recorded data do not reach, and properties of every step."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.env import NoDraws
from jaxcoop.envs.kitchen.grid import Direction
from jaxcoop.envs.overcooked import Overcooked, interact, rules
from jaxcoop.envs.overcooked.types import (
    EVENTS,
    FULL,
    ITEMS,
    ONIONS_IN,
    READY,
    RECIPES,
    TOMATOES_IN,
    Action,
    Item,
    Stage,
    Terrain,
)

NORTH, SOUTH, EAST, WEST, STAY, INTERACT = Action
ROOM = Overcooked()  # cramped_room: pot at (2, 0), onions at (0, 1) and (4, 1), dishes at (1, 3), window at (3, 3)
OLD = Overcooked(old_dynamics=True)
TOMATOES = Overcooked(layout="counter_circuit")
POT = 2
OOO = Item.SOUP + RECIPES.index((3, 0))
OO = Item.SOUP + RECIPES.index((2, 0))
O = Item.SOUP + RECIPES.index((1, 0))  # noqa: E741


def at(env=ROOM, *, pot=(Item.NONE, 0), lying=(), **fields):
    """A state: cells as (x, y), the content of the first pot, things on counters as {(x, y): item}."""
    state, grid = env.reset(jax.random.key(0)), env.kitchen.grid
    if "cell" in fields:
        fields["cell"] = [grid.cell(x, y) for x, y in fields["cell"]]
    changes = {name: jnp.asarray(value, getattr(state, name).dtype) for name, value in fields.items()}
    item = state.item.at[env.kitchen.pots[0]].set(pot[0])
    for (x, y), thing in dict(lying).items():
        item = item.at[grid.cell(x, y)].set(thing)
    return state.replace(item=item, clock=state.clock.at[env.kitchen.pots[0]].set(pot[1]), **changes)


def step(state, *actions, env=ROOM):
    return env.step(state, jnp.asarray(actions, jnp.int32), NoDraws())


def names_of(word):
    return {name for bit, name in enumerate(EVENTS) if int(word) >> bit & 1}


def cells(state, env=ROOM):
    width = env.kitchen.grid.width
    return [(c % width, c // width) for c in state.cell.tolist()]


COOK = {"cell": [(2, 1), (1, 2)], "facing": [Direction.NORTH, Direction.SOUTH]}


def test_players_start_where_the_layout_says_looking_north():
    state = ROOM.reset(jax.random.key(5))
    assert cells(state) == [(1, 2), (3, 1)]
    assert state.facing.tolist() == [Direction.NORTH] * 2
    assert not state.held.any() and not state.item.any() and not state.clock.any()


def test_a_soup_from_onion_to_delivery():
    state = at(cell=[(2, 1), (3, 2)], facing=[Direction.NORTH, Direction.SOUTH], held=[Item.ONION, Item.NONE])
    for size in (1, 2, 3):
        done = step(state, INTERACT, STAY)
        assert done.events.shaped.tolist() == [3, 0] and done.state.clock[POT] == 0
        assert (ONIONS_IN[done.state.item[POT]], TOMATOES_IN[done.state.item[POT]]) == (size, 0)
        state = done.state.replace(held=jnp.asarray([Item.ONION, Item.NONE], jnp.int8))
    done = step(state, INTERACT, STAY)  # a full pot takes no more
    assert done.state.item[POT] == OOO and done.state.held[0] == Item.ONION
    done = step(done.state.replace(held=jnp.zeros(2, jnp.int8)), INTERACT, STAY)
    assert done.state.clock[POT] == READY + 19  # the step in which it begins counts
    state = done.state.replace(held=jnp.asarray([Item.DISH, Item.NONE], jnp.int8))
    for left in range(18, -1, -1):
        done = step(state, INTERACT, STAY)
        assert done.state.held[0] == Item.DISH and done.state.clock[POT] == READY + left
        state = done.state
    done = step(state, INTERACT, STAY)
    assert done.state.held[0] == OOO and done.state.item[POT] == Item.NONE and done.state.clock[POT] == 0
    assert done.events.shaped.tolist() == [5, 0] and done.reward.tolist() == [0, 0]
    done = step(done.state.replace(held=done.state.held[::-1]), STAY, INTERACT)
    assert done.events.sparse.tolist() == [0, 20] and done.reward.tolist() == [20, 20]
    counts = done.state.counts
    assert (int(counts.deliveries), int(counts.placements), int(counts.cooked), int(counts.pickups)) == (1, 3, 1, 1)


def test_a_pot_that_is_partly_filled_can_be_started_and_its_soup_is_worth_nothing_here():
    state = at(pot=(OO, 0), **COOK)
    assert step(state, INTERACT, STAY).state.clock[POT] == READY + 19
    state = at(cell=[(3, 2), (1, 1)], facing=[Direction.SOUTH] * 2, held=[OO, 0])
    done = step(state, INTERACT, STAY)
    assert done.events.sparse.tolist() == [0, 0] and done.state.held[0] == Item.NONE
    assert (int(done.state.counts.deliveries), int(done.state.counts.unordered)) == (1, 1)


def test_by_the_old_rules_full_pots_start_by_themselves_and_no_others():
    assert step(at(OLD, pot=(OO, 0), **COOK), INTERACT, STAY, env=OLD).state.clock[POT] == 0
    done = step(at(OLD, pot=(OO, 0), held=[Item.ONION, 0], **COOK), INTERACT, STAY, env=OLD)
    assert done.state.item[POT] == OOO and done.state.clock[POT] == READY + 19
    assert int(done.state.counts.cooked) == 1
    assert step(at(pot=(OO, 0), held=[Item.ONION, 0], **COOK), INTERACT, STAY).state.clock[POT] == 0


def test_players_act_in_order_on_the_same_cell():
    kitchen = Overcooked(layout="coordination_ring")
    ring = {"cell": [(1, 2), (3, 2)], "facing": [Direction.EAST, Direction.WEST]}  # the counter in the middle
    done = step(at(kitchen, held=[Item.ONION, Item.NONE], **ring), INTERACT, INTERACT, env=kitchen)
    assert done.state.held.tolist() == [Item.NONE, Item.ONION]  # put down and taken in one step
    done = step(at(kitchen, held=[Item.NONE, Item.ONION], **ring), INTERACT, INTERACT, env=kitchen)
    assert done.state.held.tolist() == [Item.NONE, Item.NONE]
    assert int((done.state.item == Item.ONION).sum()) == 1


def test_an_interaction_with_floor_or_a_player_does_nothing():
    state = at(cell=[(1, 1), (2, 1)], facing=[Direction.EAST, Direction.SOUTH], held=[Item.ONION, Item.NONE])
    done = step(state, INTERACT, INTERACT)
    assert done.state.held.tolist() == state.held.tolist() and not done.events.logged.any()
    assert cells(done.state) == cells(state)


@pytest.mark.parametrize(
    ("starts", "actions", "ends", "meets"),
    [
        ([(1, 1), (3, 1)], (EAST, WEST), [(1, 1), (3, 1)], True),  # one free cell between them
        ([(1, 1), (2, 1)], (EAST, WEST), [(1, 1), (2, 1)], True),  # past each other
        ([(1, 1), (2, 1)], (EAST, STAY), [(1, 1), (2, 1)], True),  # into somebody
        ([(1, 1), (2, 1)], (EAST, EAST), [(2, 1), (3, 1)], False),  # in a row
        ([(1, 1), (2, 1)], (EAST, SOUTH), [(2, 1), (2, 2)], False),
        ([(1, 1), (3, 1)], (NORTH, EAST), [(1, 1), (3, 1)], False),  # against counters
    ],
)
def test_two_who_meet_stay_and_turn(starts, actions, ends, meets):
    done = step(at(cell=starts), *actions)
    assert cells(done.state) == ends and bool(done.events.collided) == meets
    assert done.state.facing.tolist() == [a if a < STAY else Direction.NORTH for a in actions]
    assert int(done.state.counts.collisions) == meets


def test_when_two_of_three_meet_the_third_stays_as_well():
    env = Overcooked(agents=3)
    done = step(at(env, cell=[(1, 1), (2, 1), (1, 2)]), EAST, WEST, EAST, env=env)
    assert cells(done.state) == [(1, 1), (2, 1), (1, 2)] and done.state.facing[2] == Direction.EAST


def test_a_dish_is_useful_while_pots_in_use_outnumber_the_dishes_in_hands():
    by_dishes = {"cell": [(1, 2), (3, 1)], "facing": [Direction.SOUTH, Direction.NORTH]}
    dish = lambda **what: step(at(**by_dishes, **what), INTERACT, STAY).events  # noqa: E731
    for pot, paid in (((Item.NONE, 0), 0), ((O, 0), 3), ((OOO, 0), 0), ((OOO, READY + 4), 3), ((OOO, READY), 3)):
        events = dish(pot=pot)
        assert events.shaped.tolist() == [paid, 0]
        assert ("useful_dish_pickup" in names_of(events.logged[0])) == (paid > 0)
    assert dish(pot=(O, 0), held=[Item.NONE, Item.DISH]).shaped[0] == 0
    assert dish(pot=(O, 0), lying={(0, 2): Item.DISH}).shaped[0] == 0


def test_pots_count_as_they_were_when_the_step_began():
    who = {"cell": [(2, 1), (1, 2)], "facing": [Direction.NORTH, Direction.SOUTH]}
    done = step(at(held=[Item.ONION, Item.NONE], **who), INTERACT, INTERACT)
    assert done.events.shaped.tolist() == [3, 0]
    done = step(at(pot=(OOO, READY), held=[Item.DISH, Item.NONE], **who), INTERACT, INTERACT)
    assert done.events.shaped.tolist() == [5, 3]  # the soup is gone, and the dish with it


def test_dishes_pay_nothing_to_teams_other_than_two():
    env = Overcooked(agents=3)
    done = step(at(env, cell=[(1, 2), (3, 1), (3, 2)], facing=[1, 0, 0], pot=(O, 0)), INTERACT, STAY, STAY, env=env)
    assert done.state.held[0] == Item.DISH and done.events.shaped.tolist() == [0, 0, 0]
    assert names_of(done.events.logged[0]) == {"dish_pickup"}


def test_orders_of_the_tomato_kitchen():
    values = {RECIPES[soup - Item.SOUP]: float(TOMATOES.kitchen.values[soup]) for soup in TOMATOES.kitchen.orders}
    assert values == {(1, 2): 47, (2, 1): 55, (1, 1): 68}
    assert TOMATOES.kitchen.values[OOO] == 0 and TOMATOES.kitchen.times[OOO] == 45


def test_the_shaped_reward_is_added_with_its_factor():
    env = dataclasses.replace(ROOM, shaping=0.5)
    done = step(at(held=[Item.ONION, 0], **COOK), INTERACT, STAY, env=env)
    assert done.reward.tolist() == [1.5, 0] and done.events.shaped.tolist() == [3, 0]
    assert float(done.state.shaped) == 3 and float(done.state.score) == 0


@pytest.mark.parametrize("action", [-1, 6, 99, -(2**31), 2**31 - 1])
def test_numbers_that_are_no_action_stay(action):
    state = at(held=[Item.ONION, 0], **COOK)
    got, want = step(state, action, action), step(state, STAY, STAY)
    jax.tree.map(np.testing.assert_array_equal, got, want)


def test_nothing_changes_after_the_end():
    state = at(held=[Item.ONION, 0], pot=(OOO, READY + 3), t=399, **COOK)
    last = step(state, STAY, EAST)
    assert last.truncated and not last.terminated and last.state.t == 400
    after = step(last.state, INTERACT, EAST)
    assert after.truncated and not after.reward.any()
    jax.tree.map(np.testing.assert_array_equal, after.state, last.state)


@pytest.mark.parametrize("env", [ROOM, OLD, TOMATOES])
def test_no_interaction_loses_or_invents_anything(env):
    """Ingredients and dishes are taken from dispensers, put into pots, dished up or delivered, and nothing else."""
    for hand, item, phase in np.ndindex(ITEMS, ITEMS, interact.PHASES):
        for terrain in Terrain:
            if (terrain != Terrain.POT and phase) or (terrain == Terrain.POT and 0 < item < Item.SOUP):
                continue
            done = interact.effect(env.kitchen, env.old_dynamics, terrain, hand, item, phase)
            before, after = sorted((hand, item)), sorted((done.hand, done.lies))
            if done.places:
                mass = [ONIONS_IN[x] + TOMATOES_IN[x] + (x in (Item.ONION, Item.TOMATO)) for x in before + after]
                assert sum(mass[:2]) == sum(mass[2:])
            elif done.takes:
                assert (done.hand, done.lies, hand) == (item, Item.NONE, Item.DISH)
            elif done.delivers:
                assert (hand >= Item.SOUP, done.hand, done.lies) == (True, Item.NONE, item)
            elif before != after:
                assert terrain in interact.SUPPLIES and done.hand == interact.SUPPLIES[terrain] and not hand


def test_what_a_pot_can_still_be_worth_decides_what_putting_something_in_is_called():
    tt = Item.SOUP + RECIPES.index((0, 2))
    assert interact.potting(TOMATOES.kitchen, Item.TOMATO, Item.NONE, tt - 3)[1:3] == (
        "optimal_tomato_potting",
        "viable_tomato_potting",
    )
    ttt = interact.with_one_more(tt, Item.TOMATO)
    spoilt = interact.potting(TOMATOES.kitchen, Item.TOMATO, tt, ttt)
    assert spoilt == ("potting_tomato", "catastrophic_tomato_potting")
    tomato = interact.with_one_more(Item.NONE, Item.TOMATO)
    again = interact.potting(ROOM.kitchen, Item.ONION, tomato, interact.with_one_more(tomato, Item.ONION))
    assert "useless_onion_potting" in again and "catastrophic_onion_potting" not in again


def test_tasks_follow_their_pot():
    def look(pot, env=ROOM):
        table = env.tasks(at(env, pot=pot))
        return [x.tolist()[0] for x in (table.active, table.kind, table.capability, table.value)]

    assert look((Item.NONE, 0)) == [True, Stage.FILL, Item.ONION, 20]
    assert look((OOO, 0)) == [True, Stage.START, Item.NONE, 20]
    assert look((OOO, READY + 1)) == [False, Stage.COOK, -1, 20]
    assert look((OO, READY)) == [True, Stage.SERVE, Item.DISH, 0]
    assert look((OO, 0), TOMATOES) == [True, Stage.FILL, Item.TOMATO, 55]
    assert ROOM.tasks(at()).place.tolist() == [[2, 0]]


def test_an_attempt_is_an_interaction_with_a_pot_and_succeeds_if_it_does_something():
    state = at(held=[Item.DISH, 0], **COOK)
    assert ROOM.attempts(state, jnp.asarray([INTERACT, INTERACT])).tolist() == [0, -1]
    failed = step(state, INTERACT, STAY)
    assert failed.events.attempts.task.tolist() == [0, -1] and not failed.events.attempts.success.any()
    assert failed.events.attempts.score[0].tolist() == [1, 1, 0]
    done = step(failed.state.replace(held=jnp.asarray([Item.ONION, 0], jnp.int8)), INTERACT, STAY)
    assert done.events.attempts.success.tolist() == [True, False]
    totals = done.state.attempts
    assert (int(totals.events), int(totals.successes), totals.deficit.tolist()) == (2, 1, [0, 0, 1])


def test_two_at_one_pot_make_one_attempt():
    kitchen = Overcooked(layout="asymmetric_advantages")  # pots at (4, 2) and (4, 3) between two rooms
    state = at(kitchen, cell=[(3, 2), (5, 2)], facing=[Direction.EAST, Direction.WEST], held=[Item.ONION, Item.DISH])
    found = step(state, INTERACT, INTERACT, env=kitchen).events.attempts
    assert found.task.tolist() == [0, -1] and found.event.tolist() == [0, 0]
    assert found.attempting.tolist() == [2, 0] and found.score[0].tolist() == [2, 2, 1]


def test_a_batch_and_a_large_team_play_like_one_episode_alone():
    for env in (ROOM, Overcooked(layout="counter_circuit", agents=6)):
        state = env.reset(jax.random.key(0))
        actions = jax.random.randint(jax.random.key(1), (5, 40, env.num_agents), 0, 6)

        def play(actions, env=env, state=state):
            def one(state, action):
                done = env.step(state, action, NoDraws())
                return done.state, (done.state, done.events)

            return jax.lax.scan(one, state, actions)[1]

        batch = jax.jit(jax.vmap(play))(actions)
        single = jax.jit(play)(actions[3])
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[3], b), batch, single)


def test_sums_over_many_cells_are_exact():
    flags = jax.random.bernoulli(jax.random.key(0), 0.5, (1000, 3))
    np.testing.assert_array_equal(rules.count_cells(flags), np.asarray(flags).sum(0))


def test_every_soup_has_its_code():
    assert [(int(ONIONS_IN[i]), int(TOMATOES_IN[i])) for i in range(Item.SOUP, ITEMS)] == list(RECIPES)
    assert all((sum(RECIPES[i - Item.SOUP]) == 3) == (i >= FULL) for i in range(Item.SOUP, ITEMS))
