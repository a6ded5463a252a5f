"""3 and 5: the order of a step, fire, orders and rewards, played in scenes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_scenes import (
    BOARD,
    EAST,
    GRILL,
    INTERACT,
    MEAT,
    NORTH,
    OPEN,
    POT,
    SINK,
    STACK,
    STAY,
    TRASH,
    WINDOW,
    events_of,
    hands,
    places,
    scene,
    step,
    terms_of,
    there,
)

from jaxcoop.envs.burrito import Burrito, rules
from jaxcoop.envs.burrito.rewards import SETS
from jaxcoop.envs.burrito.types import BURNT, READY, WARNING, Dish, Item, State

I = Item  # noqa: E741
RING, BY_DEFAULT = Burrito(layout="ring"), Burrito(rewards="default")
S, M = Dish.STEAK, Dish.MUSHROOM


def wait(state, steps, env=OPEN):
    """The last of some steps in which everybody stays."""
    for _ in range(steps - 1):
        state = step(state, *[STAY] * env.num_agents, env=env).state
    return step(state, *[STAY] * env.num_agents, env=env)


def orders(state):
    return [(int(d), int(left)) for d, left in zip(state.dish, state.left) if d]


# 3, 3.1: the order of interactions


def test_burrito_players_interact_in_order_and_see_what_the_earlier_ones_did():
    corner = (2, 3)  # a counter with floor on two sides
    state = scene(corner, corner, env=RING, held=(I.MEAT, I.NONE))
    assert hands(step(state, INTERACT, INTERACT, env=RING).state) == [I.NONE, I.MEAT]
    state = scene(corner, corner, env=RING, held=(I.NONE, I.MEAT))
    done = step(state, INTERACT, INTERACT, env=RING)
    assert hands(done.state) == [I.NONE, I.NONE] and there(done.state, corner, RING) == (I.MEAT, 0)


@pytest.mark.parametrize("pot", [I.NONE, (I.BOILED_RICE, 5), (I.BOILED_RICE, BURNT - 1), I.CHARCOAL])
def test_burrito_wrong_food_at_a_pot_takes_the_turn_of_those_behind(pot):
    state = scene(POT, MEAT, held=(I.TORTILLA, I.NONE), lying={POT: pot})
    done = step(state, INTERACT, INTERACT)
    assert hands(done.state) == [I.TORTILLA, I.NONE] and not events_of(done, 1)
    state = scene(MEAT, POT, held=(I.NONE, I.TORTILLA), lying={POT: pot})  # those before have theirs
    assert hands(step(state, INTERACT, INTERACT).state) == [I.MEAT, I.TORTILLA]


def test_burrito_turns_are_kept_behind_rice_plates_and_fires():
    for held, pot in ((I.RICE, I.NONE), (I.RICE, (I.BOILED_RICE, 5)), (I.CLEAN_PLATE, I.NONE), (I.MEAT, (23, BURNT))):
        state = scene(POT, MEAT, held=(held, I.NONE), lying={POT: pot})
        assert hands(step(state, INTERACT, INTERACT).state)[1] == I.MEAT
    state = scene(GRILL, MEAT, held=(I.RICE, I.NONE))
    assert hands(step(state, INTERACT, INTERACT).state) == [I.RICE, I.MEAT]


def test_burrito_movement_goes_on_when_the_phase_of_interactions_has_ended():
    state = scene(POT, None, held=(I.MEAT, I.NONE), cell=[52, 11], facing=[1, NORTH])
    assert places(step(state, INTERACT, EAST).state)[1] == (2, 1)


# 3.4: the time line of food on the fire


@pytest.mark.parametrize("place, raw, food", [(POT, I.RICE, I.BOILED_RICE), (GRILL, I.CHOPPED_MEAT, I.STEAK)])
def test_burrito_food_is_ready_after_80_warned_of_after_161_and_burnt_after_222_steps(place, raw, food):
    state = scene(place, None, held=(raw, I.NONE))
    state = step(state, INTERACT, STAY).state  # t + 1
    assert there(state, place) == (food, 1)
    served, since, burning = {}, 1, []
    while since < 226:
        plate = state.replace(held=np.array([I.CLEAN_PLATE, 0], np.int8))
        served[since] = hands(step(plate, INTERACT, STAY).state)[0] != I.CLEAN_PLATE
        done = step(state, STAY, STAY)
        state, since = done.state, since + 1
        burning.append(int(done.events.burning))
        assert int(state.counts.fires) == (since >= 222)
    assert [k for k, was in served.items() if was] == list(range(80, 222))
    assert there(state, place) == (food, BURNT)
    assert burning == [0] * 221 + [1] * 4  # first in the step that leads from t + 222
    assert (READY, WARNING, BURNT) == (80, 161, 222)


def test_burrito_fires_cost_everybody_and_can_be_put_out():
    state = scene(POT, None, held=(I.FIRE_EXT, 0), lying={POT: (I.BOILED_RICE, BURNT), GRILL: (I.STEAK, BURNT)})
    done = step(state, STAY, STAY)
    np.testing.assert_allclose(done.events.shaped, [-0.02, -0.02], rtol=1e-6)
    done = step(state, INTERACT, STAY)
    assert there(done.state, POT) == (I.CHARCOAL, 0) and hands(done.state)[0] == I.FIRE_EXT
    assert terms_of(done) == events_of(done) == {"extinguish_fire"} and int(done.events.burning) == 1
    assert (int(done.state.counts.extinguished), int(done.state.counts.fires)) == (1, 0)
    after = wait(done.state, 3).state
    assert there(after, POT) == (I.CHARCOAL, 0) and there(after, GRILL) == (I.STEAK, BURNT)


@pytest.mark.parametrize("place, raw, food", [(POT, I.RICE, 23), (GRILL, I.CHOPPED_MUSHROOM, I.FRIED_MUSHROOM)])
def test_burrito_charcoal_is_taken_or_swapped_for_raw_food_and_thrown_away(place, raw, food):
    taken = step(scene(place, None, lying={place: I.CHARCOAL}), INTERACT, STAY)
    assert hands(taken.state)[0] == I.CHARCOAL and there(taken.state, place) == (I.NONE, 0)
    assert not events_of(taken) and not terms_of(taken)
    swapped = step(scene(place, None, held=(raw, 0), lying={place: I.CHARCOAL}), INTERACT, STAY)
    assert hands(swapped.state)[0] == I.CHARCOAL and there(swapped.state, place) == (food, 1)
    thrown = step(scene(TRASH, None, held=(I.CHARCOAL, 0)), INTERACT, STAY)
    assert hands(thrown.state)[0] == I.NONE
    assert terms_of(thrown) == {"place_charcoal_on_trash"}
    assert events_of(thrown) == {"charcoal_drop", "object_in_trash"}


# 4.4, 4.5, 4.10: plates and boards


def test_burrito_plates_are_washed_by_three_rinses_and_taken():
    state = step(scene(SINK, None, held=(I.STACK_PLATE, 0)), INTERACT, STAY).state
    seen = [there(state, SINK)]
    for _ in range(4):
        state = step(state, INTERACT, STAY).state
        seen.append(there(state, SINK))
    assert seen == [(1, 0), (1, 1), (1, 2), (I.CLEAN_PLATE, 0), (I.NONE, 0)] and hands(state)[0] == I.CLEAN_PLATE


def test_burrito_meat_is_chopped_twice_and_taken():
    state = step(scene(BOARD, None, held=(I.MEAT, 0)), INTERACT, STAY).state
    seen = [there(state, BOARD)]
    for _ in range(3):
        state = step(state, INTERACT, STAY).state
        seen.append(there(state, BOARD))
    assert seen == [(7, 0), (7, 1), (7, 2), (0, 0)] and hands(state)[0] == I.CHOPPED_MEAT


def test_burrito_stacks_give_plates_until_they_are_empty():
    for plates, item in ((2, I.STACK_PLATE), (1, I.STACK_PLATE), (0, I.NONE)):
        done = step(scene(STACK, None, plates=plates), INTERACT, STAY)
        assert hands(done.state)[0] == item and int(done.state.plates) == max(plates - 1, 0)
        assert events_of(done) == {"dirty_plate_pickup"}


# 3.3, 4.9: orders


def test_burrito_orders_lose_2_a_step_and_are_replaced_or_refilled_in_the_order_of_the_cycle():
    state = scene(None, None)
    done = wait(state, 550)
    assert orders(done.state) == [(S, 100), (M, 100)] and int(done.state.t) == 550
    done = wait(done.state, 1)
    assert orders(done.state) == [(S, 98), (M, 98), (M, 1200)]
    done = wait(done.state, 48)
    assert orders(done.state)[:2] == [(S, 2), (M, 2)] and int(done.state.counts.expired) == 0
    done = step(done.state.replace(streak=np.int16(3)), STAY, STAY)  # step 600: both expire, two new ones come
    assert orders(done.state) == [(M, 1102), (M, 1200), (M, 1200)]
    assert (int(done.state.counts.expired), int(done.state.streak), int(done.state.next_recipe)) == (2, 0, 3)
    done = wait(done.state, 100)
    assert len(orders(done.state)) == 3
    done = wait(done.state, 1)
    assert int(done.state.t) == 701 and orders(done.state)[3:] == [(S, 1200)]
    assert float(done.state.score) == 0


def test_burrito_orders_come_round_after_13():
    book = rules.Book(
        *(jnp.asarray(x) for x in (np.zeros(4, np.int8), np.zeros(4, np.int16), np.int8(11), np.int16(0)))
    )
    found, _ = rules.pass_time(book, jnp.int32(701))
    assert (found.dish.tolist(), int(found.next_recipe)) == ([M, S, M, M], 2)


def serve(dish, listed, *, env=OPEN, **fields):
    """A delivery with the orders (dish, left) of a list."""
    listed = [*listed, *[(0, 0)] * (4 - len(listed))]
    held = I.STEAK_BURRITO if dish == S else I.MUSHROOM_BURRITO
    dishes, left = (np.array(x) for x in zip(*listed))
    return step(scene(WINDOW, None, held=(held, 0), dish=dishes, left=left, **fields), INTERACT, STAY, env=env)


def counted(done):
    counts = done.state.counts
    return int(counts.in_order), int(counts.out_of_order), int(counts.unordered)


def test_burrito_deliveries_in_order_out_of_order_and_of_what_nobody_ordered():
    done = serve(S, [(S, 900), (M, 1000)], streak=4)
    assert orders(done.state) == [(M, 998), (M, 1198)] and counted(done) == (1, 0, 0)
    assert (int(done.state.streak), int(done.state.plates), int(done.state.next_recipe)) == (5, 1, 1)
    assert events_of(done) == {"dish_delivery", "in_order_dish_delivery", "correct_dish_delivery"}
    assert done.reward.tolist() == [(80 + 5 * 8) / 2] * 2 and terms_of(done) == {"serve_dish"}
    done = serve(M, [(S, 900), (M, 396), (M, 1000)], streak=4, t=560)
    assert orders(done.state) == [(S, 898), (M, 998), (M, 1198)] and counted(done) == (0, 1, 0)
    assert int(done.state.streak) == 0 and done.reward.tolist() == [(80 + 5) / 2] * 2
    assert events_of(done) == {"dish_delivery", "correct_dish_delivery"}
    done = serve(S, [(M, 900), (M, 900)], streak=4)
    assert orders(done.state) == [(M, 898), (M, 898)] and counted(done) == (0, 0, 1)
    assert (int(done.state.streak), int(done.state.plates), int(done.state.next_recipe)) == (0, 1, 0)
    assert events_of(done) == {"dish_delivery"} and done.reward.tolist() == [0, 0]


def test_burrito_stacks_hold_four_plates_at_most():
    for before, after in ((0, 1), (3, 4), (4, 4)):
        assert int(serve(S, [(S, 900), (M, 900)], plates=before).state.plates) == after


def test_burrito_two_burritos_can_be_served_in_one_step():
    state = scene(WINDOW, (7, 0), held=(I.STEAK_BURRITO, I.MUSHROOM_BURRITO))
    done = step(state, INTERACT, INTERACT)
    assert counted(done) == (2, 0, 0) and int(done.state.plates) == 2 and int(done.state.streak) == 2
    assert done.events.sparse.tolist() == [(80 + 8 + 80 + 16) / 2] * 2
    assert float(done.state.score) == 184 and orders(done.state) == [(M, 1198), (M, 1198)]


@pytest.mark.parametrize("left, tip", [(1200, 8), (792, 8), (791, 5), (396, 5), (395, 3), (2, 3)])
def test_burrito_tips_depend_on_the_time_left_before_the_step(left, tip):
    assert serve(S, [(S, left), (M, 1200)]).reward.tolist() == [(80 + tip) / 2] * 2


@pytest.mark.parametrize(
    "env, factors",
    [
        (OPEN, {0: 1, 1: 2, 3: 2, 4: 5, 99: 5, 100: 5, 2000: 5}),
        (BY_DEFAULT, {0: 10, 1: 20, 2: 30, 3: 40, 99: 40, 500: 40}),
    ],
)
def test_burrito_tips_are_multiplied_by_deliveries_in_a_row(env, factors):
    for streak, factor in factors.items():
        done = serve(S, [(S, 1200), (M, 1200)], env=env, streak=streak)
        assert done.reward.tolist() == [(80 + factor * 8) / 2] * 2
    assert rules.multiplier(jnp.int32(0), env.parameters.multipliers) == 1  # out of order


def test_by_default_burritos_that_nobody_ordered_are_worth_40_and_other_terms_count():
    done = serve(S, [(M, 900), (M, 900)], env=BY_DEFAULT)
    assert done.reward.tolist() == [20, 20] and done.events.shaped.tolist() == [10, 0]
    fire = scene(POT, None, held=(I.FIRE_EXT, 0), lying={POT: (I.BOILED_RICE, BURNT)})
    assert step(fire, INTERACT, STAY, env=BY_DEFAULT).events.shaped.tolist() == [1, 0]
    plated = scene(GRILL, None, held=(I.RICE_PLATE, 0), lying={GRILL: (I.STEAK, READY)})
    assert step(plated, INTERACT, STAY, env=BY_DEFAULT).events.shaped.tolist() == [3 + 5, 0]
    assert step(plated, INTERACT, STAY).events.shaped.tolist() == [2, 0]
    assert set(SETS) == {"eval", "default"}


def test_burrito_steps_keep_the_types_of_the_state():
    state = OPEN.reset(jax.random.key(0))
    assert isinstance(state, State)
    done = step(state, STAY, STAY)
    jax.tree.map(lambda a, b: np.testing.assert_equal((a.shape, a.dtype), (b.shape, b.dtype)), state, done.state)
