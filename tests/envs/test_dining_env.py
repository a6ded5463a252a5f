"""Rules of the table one by one, the runner's options, and bad configurations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcoop.core import bits
from jaxcoop.envs.dining import Dining, rules
from jaxcoop.envs.dining.dialogue import Dialogue
from jaxcoop.envs.dining.types import Seats, from_seats, to_seats

LEFT, RIGHT, RELEASE, WAIT = range(4)


def play(*steps, **options):
    """The table after simultaneous steps, each a list of one action for each philosopher."""
    table = rules.empty_table(len(steps[0]))
    for actions in steps:
        table = rules.simultaneous_step(table, jnp.asarray(actions, jnp.int32), **options)
    return to_seats(table)


def test_the_lower_id_wins_a_fork():
    assert play([RIGHT, LEFT, WAIT]).fork.tolist() == [-1, 0, -1]


def test_fork_zero_goes_to_philosopher_zero_not_to_the_last():
    assert play([LEFT, WAIT, RIGHT]).fork.tolist() == [0, -1, -1]


def test_a_fork_released_in_a_step_can_be_taken_in_it():
    after = play([RIGHT, WAIT, WAIT], [RELEASE, LEFT, WAIT])
    assert after.fork.tolist() == [-1, 1, -1] and after.left.tolist() == [False, True, False]


def test_grabs_that_look_first_do_not_see_releases_of_the_same_step():
    assert play([RIGHT, WAIT, WAIT], [RELEASE, LEFT, WAIT], releases="after").fork.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(("giver", "taker", "taken"), [(0, 1, True), (1, 0, False)])
def test_in_index_order_only_higher_ids_see_a_release(giver, taker, taken):
    first, second = [WAIT] * 3, [WAIT] * 3
    first[giver] = RIGHT if giver == 0 else LEFT
    second[giver], second[taker] = RELEASE, LEFT if taker == 1 else RIGHT
    assert (play(first, second, releases="index_order").fork[1] == taker) == taken


def test_an_eater_keeps_its_forks_for_one_more_step():
    tables = [play(*[[LEFT, WAIT, WAIT], [RIGHT, WAIT, WAIT], [WAIT] * 3][:k]) for k in (2, 3)]
    assert [t.fork.tolist() for t in tables] == [[0, 0, -1], [-1, -1, -1]]
    assert [t.meals.tolist() for t in tables] == [[1, 0, 0], [1, 0, 0]]


def test_an_instant_meal_puts_both_forks_down_at_once():
    after = play([LEFT, WAIT, WAIT], [RIGHT, WAIT, WAIT], meals="instant")
    assert after.fork.tolist() == [-1, -1, -1] and after.meals.tolist() == [1, 0, 0]


def test_a_releasing_eater_leaves_its_lower_neighbour_a_phantom_fork():
    eats = [[WAIT, LEFT, WAIT], [WAIT, RIGHT, WAIT]]
    after = play(*eats, [RIGHT, RELEASE, WAIT])
    assert after.right.tolist() == [True, False, False] and after.fork.tolist() == [-1, -1, -1]
    other = play(*eats, [WAIT, RELEASE, LEFT])  # the upper neighbour gets nothing
    assert not other.left.any() and other.fork.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("number", [-1, 4, 99])
def test_any_other_number_waits(number):
    assert play([number] * 3).fork.tolist() == [-1, -1, -1]


def test_everybody_with_one_fork_is_a_circular_wait_and_two_forks_are_none():
    assert rules.is_circular_wait(from_seats(play([LEFT] * 5)))
    assert rules.is_circular_wait(from_seats(play([RIGHT] * 5)))
    assert not rules.is_circular_wait(from_seats(play([LEFT] * 4 + [WAIT])))
    assert not rules.is_circular_wait(from_seats(play([LEFT, WAIT, WAIT, WAIT, WAIT], [RIGHT, WAIT, LEFT, LEFT, LEFT])))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 70), st.integers(0, 2**31 - 1))
def test_forks_are_held_by_neighbours_and_meals_never_fall(n, seed):
    draw = np.random.default_rng(seed)
    table, meals = rules.empty_table(n), np.zeros(n, int)
    for _ in range(6):
        table = STEP(table, jnp.asarray(draw.integers(0, 4, n), jnp.int32))
        seats, ids = to_seats(table), np.arange(n)
        assert (np.isin(seats.fork, [-1]) | (seats.fork == ids) | (seats.fork == (ids - 1) % n)).all()
        assert not (np.asarray(table.by_left) & np.asarray(table.by_right)).any()
        assert (seats.eating == (seats.left & seats.right)).all()
        assert ((seats.meals - meals) == seats.eating).all()
        meals = seats.meals


STEP = jax.jit(rules.simultaneous_step)


@pytest.mark.parametrize("n", [2, 5, 31, 32, 33, 63, 64, 65, 128])
def test_sets_of_agents_behave_like_lists_of_flags(n):
    flags = np.random.default_rng(n).random(n) < 0.5
    words = bits.pack(jnp.asarray(flags))
    assert words.shape == (bits.num_words(n),)
    np.testing.assert_array_equal(bits.unpack(words, n), flags)
    np.testing.assert_array_equal(bits.unpack(bits.from_previous(words, n), n), np.roll(flags, 1))
    np.testing.assert_array_equal(bits.unpack(bits.from_next(words, n), n), np.roll(flags, -1))
    np.testing.assert_array_equal(bits.get(words, jnp.arange(n)), flags)
    assert bits.count(words) == flags.sum() and bits.count(bits.everybody(n)) == n
    np.testing.assert_array_equal(bits.pack(jnp.ones(n, bool)), bits.everybody(n))
    for i in (0, n // 2, n - 1):
        for value in (True, False):
            changed = bits.unpack(bits.put(words, jnp.int32(i), jnp.bool_(value)), n)
            np.testing.assert_array_equal(changed, np.where(np.arange(n) == i, value, flags))
    for shifted in (bits.from_previous(words, n), bits.from_next(words, n)):  # no bit beyond the last agent
        assert not (np.asarray(shifted) & ~bits.everybody(n)).any()


def rounds(env, action, count):
    """Outcome after `count` rounds of the same action by everybody in turn."""
    state = env.reset(jax.random.key(0))
    step = jax.jit(lambda s: env.step(s, jnp.array([action], jnp.int32), env.sample_draws(jax.random.key(0), s)))
    for _ in range(count * env.philosophers):
        last = step(state)
        state = last.state
    return env.outcome(state), last


def test_a_sequential_circular_wait_happens_and_is_not_reported():
    outcome, last = rounds(Dining(3, "sequential", 30), LEFT, 1)
    assert outcome.deadlock and not outcome.deadlock_reported and last.terminated
    assert outcome.deadlock_timestep == 3


def test_a_resolved_circular_wait_clears_the_table_and_is_counted():
    outcome, last = rounds(Dining(3, "sequential", 30, deadlock_terminal=False), LEFT, 2)
    assert outcome.deadlock_events == 2 and not outcome.deadlock and not last.terminated


def test_a_time_out_is_no_deadlock_unless_meals_are_asked_for():
    assert not rounds(Dining(3, "sequential", 6), WAIT, 2)[0].timeout
    outcome, last = rounds(Dining(3, "sequential", 6, target_meals=1), WAIT, 2)
    assert outcome.timeout and last.truncated and not outcome.deadlock


def test_a_circular_wait_at_the_time_limit_is_a_deadlock():
    env = Dining(3, max_timesteps=1)
    state = env.reset(jax.random.key(0))
    last = env.step(state, jnp.array([LEFT] * 3), env.sample_draws(jax.random.key(0), state))
    assert last.terminated and not last.truncated and env.outcome(last.state).deadlock_timestep == 1


def test_sequential_time_is_rounded_up_to_whole_rounds():
    assert Dining(7, "sequential", 30).limit == 35
    assert Dining(7, "sequential", 30, clock="rounds").limit == 210
    assert Dining(7, "simultaneous", 30).limit == 30


def test_backoff_breaks_a_circular_wait_before_it_is_looked_for():
    env = Dining(3, max_timesteps=5, backoff=True, backoff_threshold=1, backoff_probability=1.0)
    state = env.reset(jax.random.key(0))
    after = env.step(state, jnp.array([LEFT] * 3), env.sample_draws(jax.random.key(1), state))
    assert not after.terminated and (to_seats(after.state.table).fork == -1).all()


def test_a_fork_in_a_strangers_hand_is_refused():
    off = np.zeros(4, bool)
    with pytest.raises(ValueError, match="fork f can only be held by philosopher f or f-1"):
        from_seats(Seats(np.array([2, -1, -1, -1]), off, off, off, np.zeros(4, int)))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"philosophers": 1}, "philosophers 1: must be from 2 to 1,000,000"),
        ({"philosophers": 2.0}, "philosophers 2.0: must be a whole number"),
        ({"philosophers": True}, "must be a whole number"),
        ({"max_timesteps": 0}, "max_timesteps 0: must be from 1"),
        (
            {"philosophers": 10**6, "mode": "sequential", "max_timesteps": 10**4, "clock": "rounds"},
            "turns of the clock",
        ),
        ({"mode": "sim"}, "unknown mode 'sim'; allowed: sequential, simultaneous"),
        ({"meals": None}, "unknown meals None"),
        ({"backoff_probability": "x"}, "backoff_probability 'x': must be a number"),
        ({"backoff_probability": float("nan")}, "backoff_probability nan"),
        ({"backoff_threshold": -1}, "backoff_threshold -1"),
        ({"deadlock_terminal": 1}, "must be True or False"),
    ],
)
def test_options_out_of_range_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        Dining(**options)


def test_numpy_numbers_are_numbers():
    assert Dining(np.int64(7), backoff_probability=np.float32(0.5)) == Dining(7)


def test_a_dialogue_with_more_asks_than_handles_is_refused():
    with pytest.raises(ValueError, match="message handles"):
        Dialogue(Dining(100_000, "sequential"))
