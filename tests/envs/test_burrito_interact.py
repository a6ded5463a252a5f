"""4: what interactions do, for all terrains, hands and contents."""

import json
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.envs.burrito import interact
from jaxcoop.envs.burrito.interact import CONTENTS, COOKED, EVENTS, UNLOGGED, effect, exists, item_of, phase_of
from jaxcoop.envs.burrito.types import ITEM_NAMES, TERMS, Dish, Item, Terrain

I, T = Item, Terrain  # noqa: E741
CASES = [(t, h, c) for t in T for h in I for c in range(CONTENTS) if exists(t, h, c)]
PLATED = range(I.RICE_PLATE, I.MUSHROOM_BURRITO + 1)
PLATES = (I.DIRTY_PLATE, I.STACK_PLATE, I.CLEAN_PLATE, *PLATED)
READY_FOOD = {item: interact._FOOD + 4 * k + interact.READY for k, item in enumerate(COOKED)}


def words():
    """(changes, reports) by terrain, hand and content."""
    tables = interact.tables()
    return (word.reshape(len(T), len(I), CONTENTS) for word in (tables.changes, tables.reports))


def test_burrito_tables_say_what_the_rules_say():
    changes, reports = words()
    for case in CASES:
        done, word, report = effect(*case), int(changes[case]), int(reports[case])
        assert (word & 31, word >> 5 & 31, word >> 10 & 1, bool(word >> 11 & 1)) == (
            done.hand,
            done.lies,
            done.clock,
            done.resets,
        )
        assert (bool(word >> 12 & 1), word >> 13 & 3, bool(word >> 15 & 1)) == (
            done.takes_plate,
            done.dish,
            done.ends_phase,
        )
        names = [EVENTS[k - 1] for k in (report & 255, report >> 8 & 255) if k]
        assert names == [name for name in done.events if name not in UNLOGGED]
        terms = {TERMS[k - 1] for k in (report >> 16 & 31,) if k}
        assert terms | ({"food_assembly"} if report >> 21 & 1 else set()) == set(done.terms)


def test_burrito_plates_are_never_made_nor_lost():
    for terrain, hand, content in CASES:
        done = effect(terrain, hand, content)
        before = (hand in PLATES) + (item_of(content) in PLATES)
        after = (done.hand in PLATES) + (done.lies in PLATES)
        assert before + done.takes_plate == after + (done.dish > 0), (terrain, hand, content)


def test_burrito_food_on_the_fire_is_never_held_and_stays_on_its_kind_of_fire():
    for terrain, hand, content in CASES:
        done = effect(terrain, hand, content)
        assert done.hand not in COOKED
        if done.lies in COOKED and item_of(content) != done.lies:
            assert terrain == (T.POT if done.lies == I.BOILED_RICE else T.GRILL)
            assert done.resets


def test_burrito_interactions_with_floor_or_with_anything_that_does_not_fit_do_nothing():
    for terrain, hand, content in CASES:
        done = effect(terrain, hand, content)
        if terrain == T.FLOOR or (terrain in (T.MEAT, T.MUSHROOM, T.RICE, T.DIRTY_PLATES) and hand):
            assert (done.hand, done.lies, done.events, done.terms) == (hand, item_of(content), (), ())


def test_a_burrito_can_be_put_together_in_any_order():
    """4.12: steak or mushroom, rice and tortilla, each from its station, in all orders."""
    for food, burrito in ((I.STEAK, I.STEAK_BURRITO), (I.FRIED_MUSHROOM, I.MUSHROOM_BURRITO)):
        steps = ((T.GRILL, READY_FOOD[food]), (T.POT, READY_FOOD[I.BOILED_RICE]), (T.TORTILLA, 0))
        seen = set()
        for order in permutations(steps):
            hand = I.CLEAN_PLATE
            for terrain, content in order:
                done = effect(terrain, hand, content)
                assert ("food_assembly" in done.terms) == (hand != I.CLEAN_PLATE and terrain != T.TORTILLA)
                hand = I(done.hand)
                seen.add(hand)
            assert hand == burrito
        assert len(seen) == 7


def test_burrito_fillings_exclude_each_other_and_nothing_goes_onto_a_plate_twice():
    for terrain, hand, content in CASES:
        phase, names = phase_of(content), interact.name_of(hand)
        if terrain in (T.POT, T.GRILL) and phase >= 0 and hand in PLATED:
            has_filling = "steak" in names or "mushroom" in names
            twice = has_filling if terrain == T.GRILL else "rice" in names or "burrito" in names
            kind = item_of(content) == I.BOILED_RICE
            fits = kind == (terrain == T.POT) and not twice and phase in (interact.READY, interact.WARNING)
            assert (effect(terrain, hand, content).hand != hand) == fits, (terrain, hand, content)


@pytest.mark.parametrize("plate", [p for p in PLATES if p in interact.WITH_TORTILLA])
def test_a_tortilla_is_put_onto_a_plate_on_the_counter_in_one_direction_only(plate):
    onto = effect(T.COUNTER, plate, I.TORTILLA)
    assert (onto.hand, onto.lies, onto.events) == (interact.WITH_TORTILLA[plate], I.NONE, ())
    back = effect(T.COUNTER, I.TORTILLA, plate)
    if plate == I.CLEAN_PLATE:
        assert (back.hand, back.lies, back.events) == (I.TORTILLA_PLATE, I.NONE, ())
    else:
        assert (back.hand, back.lies, back.events) == (plate, I.TORTILLA, ("tortilla_pickup", "tortilla_drop"))


def test_burrito_things_on_counters_are_swapped_with_events_of_what_the_hand_held():
    swap = effect(T.COUNTER, I.MEAT, I.CLEAN_PLATE)
    assert (swap.hand, swap.lies, swap.events) == (I.CLEAN_PLATE, I.MEAT, ("meat_pickup", "meat_drop"))
    assert effect(T.COUNTER, I.CLEAN_PLATE, I.RICE_PLATE).hand == I.RICE_PLATE  # two plates are not merged


def test_burrito_trash_takes_what_is_no_plate_and_keeps_the_plate_of_the_rest():
    for hand in I:
        if exists(T.TRASH, hand, 0):
            done = effect(T.TRASH, hand, 0)
            if hand in (*interact.INGREDIENTS, I.CHARCOAL):
                assert (done.hand, done.events) == (I.NONE, (f"{ITEM_NAMES[hand]}_drop", "object_in_trash"))
            elif hand in PLATED:
                assert (done.hand, done.events) == (I.DIRTY_PLATE, ("object_in_trash",))
            else:
                assert (done.hand, done.events) == (hand, ())
            assert done.terms == (("place_charcoal_on_trash",) if hand == I.CHARCOAL else ())


def test_burrito_windows_take_burritos_only():
    served = {hand: effect(T.SERVING, hand, 0).dish for hand in I if exists(T.SERVING, hand, 0)}
    assert {h: d for h, d in served.items() if d} == {I.STEAK_BURRITO: Dish.STEAK, I.MUSHROOM_BURRITO: Dish.MUSHROOM}


def test_burrito_pots_end_the_phase_for_wrong_food_unless_they_burn():
    """3.1, 4.7: the grill has no such rule."""
    wrong = {I.MEAT, I.MUSHROOM, I.TORTILLA, I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM}
    for terrain, hand, content in CASES:
        is_rice_or_free = item_of(content) in (I.NONE, I.CHARCOAL, I.BOILED_RICE)
        if terrain == T.POT and is_rice_or_free:
            ends = hand in wrong and phase_of(content) != interact.BURNT
            assert effect(terrain, hand, content).ends_phase == ends, (hand, content)
        elif terrain != T.POT:
            assert not effect(terrain, hand, content).ends_phase


def test_all_burrito_events_are_recorded_in_the_original():
    folder = Path(__file__).parents[1] / "golden" / "data" / "burrito"
    names = json.loads((folder / "event_names.json").read_text())
    assert set(EVENTS) <= set(names) and list(EVENTS) == sorted(EVENTS)
    seen = np.zeros(len(names), bool)
    for path in folder.glob("*.npz"):
        with np.load(path) as file:
            if "events" in file:
                seen |= file["events"].any((0, 1, 2))
    assert {name for name, is_seen in zip(names, seen) if is_seen} == set(EVENTS)
