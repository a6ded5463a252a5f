"""Cow balancing of MA-Crafter: one rule, one test."""

from functools import partial
from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.macrafter import balance, generate
from jaxcoop.envs.macrafter.types import PLANT_BIT, RESOURCE_SHIFT, Material

GRASS, WATER = int(Material.GRASS), int(Material.WATER)
SIDE = 30  # chunks 0 to 8 in rows of three; the last of each row and column are 6 wide
SLOTS, START = 12, 6
balanced = jax.jit(balance.balance, static_argnames="start_slots")


def world_of(cows=(), later=(), material=None):
    """(material, herd) with cows of the start and later ones; their ids are 100, 101, ..."""
    x, y, ids = (np.full(SLOTS, -1, dtype) for dtype in (np.int16, np.int16, np.int32))
    for first, places in ((0, cows), (START, later)):
        for k, place in enumerate(places):
            if place is not None:
                x[first + k], y[first + k] = place
                ids[first + k] = 100 + first + k
    material = np.full((SIDE, SIDE), GRASS, np.uint8) if material is None else material
    return jnp.asarray(material), balance.Herd(jnp.asarray(x), jnp.asarray(y), jnp.asarray(ids), jnp.int32(500))


def play(material, herd, words, players=((29, 29),), touched=range(9), t=10, is_due=True):
    draws = np.full(9, balance.NEVER, np.uint32)
    for chunk, word in words.items():
        draws[chunk] = word
    x, y = np.array(players, np.int16).T
    mask = jnp.asarray([sum(1 << k for k in touched)], jnp.uint32)
    out = balanced(
        material,
        herd,
        jnp.asarray(x),
        jnp.asarray(y),
        mask,
        jnp.int32(t),
        balance.BalanceDraws(jnp.asarray(draws)),
        jnp.bool_(is_due),
        start_slots=START,
    )
    return jax.device_get(out)


def cows_of(herd):
    """{slot: (x, y, id)}"""
    return {k: (int(herd.x[k]), int(herd.y[k]), int(herd.id[k])) for k in range(SLOTS) if herd.x[k] >= 0}


def test_a_cow_appears_in_an_empty_meadow_behind_the_slots_of_the_start():
    out = play(*world_of(), {0: 0})
    assert cows_of(out) == {START: (0, 0, 500)}
    assert out.next_id == 501


def test_a_cow_appears_with_a_word_below_one_percent_only():
    low = round(0.01 * 2**32)
    assert cows_of(play(*world_of(), {0: low - 1}))
    assert not cows_of(play(*world_of(), {0: low}))


def test_the_word_picks_every_grass_cell_of_the_chunk():
    material = np.full((SIDE, SIDE), WATER, np.uint8)
    cells = [(x, y) for x in range(24, 30) for y in range(12, 24)][5:40]
    material[tuple(np.transpose(cells))] = GRASS
    material[0:24] = GRASS  # the slice of the clipped chunk begins here
    seen = [cows_of(play(*world_of(material=material), {7: word}))[START][:2] for word in range(35)]
    assert seen == cells


def test_a_cow_appears_from_thirty_grass_cells_on():
    material = np.full((SIDE, SIDE), WATER, np.uint8)
    material[0:3, 0:10] = GRASS
    assert cows_of(play(*world_of(material=material), {0: 7}))
    material[2, 9] = WATER
    assert not cows_of(play(*world_of(material=material), {0: 7}))


def test_cells_with_plants_and_with_a_past_are_grass_but_plants_are_in_the_way():
    material = np.full((SIDE, SIDE), WATER, np.uint8)
    material[0:3, 0:10] = GRASS | 1 << RESOURCE_SHIFT
    material[0, 0] |= PLANT_BIT
    assert not cows_of(play(*world_of(material=material), {0: 0}))
    assert cows_of(play(*world_of(material=material), {0: 1})) == {START: (0, 1, 500)}


def test_no_cow_appears_in_a_chunk_that_holds_one():
    assert len(cows_of(play(*world_of([(11, 11)]), {0: 0}))) == 1
    assert len(cows_of(play(*world_of([(12, 11)]), {0: 0}))) == 2


def test_nothing_happens_in_chunks_that_no_object_has_touched():
    assert not cows_of(play(*world_of(), {0: 0}, touched=range(1, 9)))


def test_nothing_happens_in_steps_that_are_not_due():
    assert not cows_of(play(*world_of(), {0: 0}, is_due=False))


@pytest.mark.parametrize(("player", "appears"), [((4, 0), False), ((5, 0), True), ((3, 1), False), ((3, 2), True)])
def test_no_cow_appears_closer_than_five_cells_to_a_player(player, appears):
    out = play(*world_of(), {0: 0}, players=((29, 29), player))
    assert bool(cows_of(out)) == appears


def test_agents_that_never_had_a_cell_keep_no_cow_away():
    assert cows_of(play(*world_of(), {0: 0}, players=((-1, -1),)))


def test_a_cow_of_a_crowd_vanishes_and_the_word_picks_which():
    herd = [(0, 0), (20, 20), (0, 1), (0, 2)]
    for word, slot in ((0, 0), (1, 2), (2, 3), (3, 0)):
        out = play(*world_of(herd), {0: word})
        assert set(range(4)) - set(cows_of(out)) == {slot}
        assert (out.x[slot], out.y[slot], out.id[slot]) == (-1, -1, -1)


def test_a_cow_vanishes_with_a_word_below_ten_percent_only():
    herd = [(0, 0), (0, 1), (0, 2)]
    low = round(0.1 * 2**32)
    assert len(cows_of(play(*world_of(herd), {0: low - 1}))) == 2
    assert len(cows_of(play(*world_of(herd), {0: low}))) == 3


def test_no_cow_vanishes_closer_than_five_cells_to_a_player():
    herd = [(6, 6), (6, 7), (6, 8)]
    assert len(cows_of(play(*world_of(herd), {0: 0}, players=((6, 2),)))) == 3
    assert len(cows_of(play(*world_of(herd), {0: 1}, players=((6, 2),)))) == 2


def test_two_cows_are_a_crowd_in_the_dark_only():
    herd = [(0, 0), (0, 1)]
    assert len(cows_of(play(*world_of(herd), {0: 0}, t=10))) == 2
    assert len(cows_of(play(*world_of(herd), {0: 0}, t=200))) == 1


def test_the_size_of_a_crowd_follows_the_daylight():
    t = np.arange(1000)
    daylight = 1 - np.abs(np.cos(np.pi * ((t / 300) % 1 + 0.3))) ** 3
    np.testing.assert_array_equal(balance.most_cows(jnp.asarray(t, jnp.int32)), np.floor(1.5 + daylight))


def test_cows_of_one_step_are_numbered_by_their_chunks():
    out = play(*world_of([(13, 1), (13, 2), (13, 3)]), {8: 0, 1: 0, 3: 1}, players=((0, 0),))
    assert cows_of(out) == {
        0: (13, 1, 100),
        2: (13, 3, 102),
        START: (0, 12, 500),
        START + 1: (24, 24, 501),
    }
    assert out.next_id == 502


def test_a_later_cow_goes_behind_the_last_one_even_with_gaps_before_it():
    out = play(*world_of([], [None, (13, 1), None]), {0: 0})
    assert cows_of(out) == {START + 1: (13, 1, 107), START + 2: (0, 0, 500)}


def test_later_cows_move_up_in_order_when_the_last_slot_is_taken():
    later = [(13, 1), None, (13, 2), None, (25, 1), (25, 2)]
    out = play(*world_of([], later), {0: 0})
    assert [id for _, _, id in cows_of(out).values()] == [106, 108, 110, 111, 500]
    assert cows_of(out)[SLOTS - 1] == (0, 0, 500)
    assert cows_of(out)[START] == (13, 1, 106)


def test_a_cow_without_a_free_slot_does_not_appear():
    full = [(13, y) for y in range(SLOTS - START)]
    out = play(*world_of([], full), {0: 0})
    assert len(cows_of(out)) == SLOTS - START
    assert out.next_id == 500


def test_slots_of_the_start_stay_free():
    out = play(*world_of([None, (13, 1)]), {0: 0})
    assert set(cows_of(out)) == {1, START}


def test_a_batch_of_herds_is_balanced_like_each_of_them_alone():
    count = 48
    keys = jax.random.split(jax.random.key(3, impl="threefry2x32"), count)
    material, cows = jax.jit(jax.vmap(lambda key: generate.world(key, 64, 64)))(keys)

    def state(key, material, cows):
        key_draws, key_agents = jax.random.split(key)
        x, y = generate.cow_slots(cows, 40)
        pad = jnp.full((8,), -1, jnp.int16)
        x, y = jnp.concatenate([x, pad]), jnp.concatenate([y, pad])
        herd = balance.Herd(x, y, jnp.where(x >= 0, jnp.arange(48, dtype=jnp.int32), -1), jnp.int32(99))
        players = generate.spawn(key_agents, material, cows, 3)
        # words that are low more often than in play
        draws = balance.BalanceDraws(balance.sample_draws(key_draws, 64, 64).word >> 5)
        return herd, *players, jnp.full((2,), 0xFFFFFFFF, jnp.uint32), jnp.int32(200), draws

    args = jax.jit(jax.vmap(state))(keys, material, cows)
    is_due = jnp.arange(count) % 3 != 0
    one = partial(balance.balance, start_slots=40)
    together = jax.device_get(jax.jit(jax.vmap(one))(material, *args, is_due))
    alone = jax.jit(one)
    changed = 0
    for i in range(count):
        want = jax.device_get(alone(*jax.tree.map(itemgetter(i), (material, *args, is_due))))
        for got, expected in zip(jax.tree.leaves(together), jax.tree.leaves(want)):
            np.testing.assert_array_equal(got[i], expected)
        changed += (want.x != args[0].x[i]).sum()
    assert changed > 20


def test_words_of_steps_that_are_not_due_let_nothing_happen():
    key = jax.random.key(0)
    always = balance.sample_draws(key, SIDE, SIDE)
    assert (balance.sample_draws(key, SIDE, SIDE, jnp.bool_(True)).word == always.word).all()
    never = balance.sample_draws(key, SIDE, SIDE, jnp.bool_(False)).word
    np.testing.assert_array_equal(never, np.full(9, balance.NEVER, np.uint32))


def test_balancing_keeps_the_types_of_the_herd_with_64_bit_numbers():
    material, herd = world_of()
    with jax.enable_x64(True):
        place, draws = jnp.zeros(1, jnp.int16), balance.BalanceDraws(jnp.zeros(9, jnp.uint32))
        rest = (place, place, jnp.zeros(1, jnp.uint32), jnp.int32(10), draws, jnp.bool_(True))
        after = jax.eval_shape(partial(balance.balance, start_slots=START), material, herd, *rest)
    for old, new in zip(jax.tree.leaves(herd), jax.tree.leaves(after)):
        assert (new.shape, new.dtype, new.weak_type) == (old.shape, old.dtype, False)


def test_chunks_are_numbered_along_columns_first():
    assert balance.num_chunks(64, 64) == 36
    assert balance.num_chunks(30, 12) == 3
    x, y = jnp.array([0, 11, 12, 63], jnp.int16), jnp.array([0, 12, 0, 63], jnp.int16)
    assert balance.chunk_of(x, y, 64).tolist() == [0, 1, 6, 35]
