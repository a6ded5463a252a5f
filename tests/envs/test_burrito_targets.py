"""8.1 to 8.3: what the macro-skills of Burrito aim at, against the rules in plain Python and scene by scene."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_scenes import BOARD, COUNTER, GRILL, OPEN, POT, SINK, STACK, TRASH, WINDOW, random_states, scene
from burrito_scenes import MEAT as MEATS
from kitchen_oracle import Floor

from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.interact import name_of
from jaxcoop.envs.burrito.skillset import NAMES
from jaxcoop.envs.burrito.types import BURNT, READY, WARNING, Item

I = Item  # noqa: E741
ONE = "boiled_rice-plate chopped_steak-plate fried_mushroom-plate tortilla-plate"
TWO = "boiled_rice-tortilla-plate chopped_steak-tortilla-plate fried_mushroom-tortilla-plate"
TWO += " chopped_steak-boiled_rice-plate fried_mushroom-boiled_rice-plate"
TO_GRILL = "clean_plate boiled_rice-plate tortilla-plate boiled_rice-tortilla-plate"
TO_POT = "clean_plate tortilla-plate fried_mushroom-plate chopped_steak-plate chopped_steak-tortilla-plate"
TO_POT += " fried_mushroom-tortilla-plate"
TO_TORTILLA = "none clean_plate fried_mushroom-plate chopped_steak-plate boiled_rice-plate"
TO_TORTILLA += " chopped_steak-boiled_rice-plate fried_mushroom-boiled_rice-plate"
CHOPPED, EATEN = "chopped_meat chopped_mushroom", "waiting warning"

PAN, CHOP, FIRE, STAY, WASH, THROW, SERVE = 0, 2, 3, 4, 5, 6, 7
GRAB_MEAT, DIRTY, CLEAN, CHOPPED_MEAT, GRAB_ONE, RICE, CHARCOAL, PASS, PUT_DOWN = 8, 12, 13, 16, 17, 23, 24, 25, 26
STATES = 40
"""Looked at in one program."""
PASS_LIST = [(5, 1), (5, 2), (5, 3), (4, 3), (4, 6)]

# terrain, hands ("none": empty, "any": full), objects ("" no condition), state, formula over p, e, t, o, s.
TABLE = {
    0: ("G", CHOPPED, "", "", lambda p, e, t, o, s: t and p and o),
    1: ("P", "rice", "", "", lambda p, e, t, o, s: t and p and o),
    2: ("B", "meat mushroom", CHOPPED, "unready", lambda p, e, t, o, s: t and ((p and not o) or (e and o and s))),
    3: ("PG", "fire_ext", "chopped_steak fried_mushroom boiled_rice", "burnt", lambda p, e, t, o, s: t and p and o),
    5: ("W", "dirty_plate", "dirty_plate", "", lambda p, e, t, o, s: t and ((p and not o) or (e and o))),
    6: ("U", "charcoal", "", "", lambda p, e, t, o, s: t and p),
    7: ("S", "steak_burrito mushroom_burrito", "", "", lambda p, e, t, o, s: t and p),
    8: ("M", "none", "meat", "", lambda p, e, t, o, s: (t and p) ^ o),
    9: ("Z", "none", "mushroom", "", lambda p, e, t, o, s: (t and p) ^ o),
    10: ("T", TO_TORTILLA, "tortilla", "", lambda p, e, t, o, s: p and (t or o)),
    11: ("R", "none", "rice", "", lambda p, e, t, o, s: (t and p) ^ o),
    12: ("D", "none", "dirty_plate", "", lambda p, e, t, o, s: (t and p) ^ o),
    13: ("W", "none", "clean_plate", "", lambda p, e, t, o, s: (t and p and o) ^ (o and not t)),
    14: ("", "none any", "fire_ext", "", lambda p, e, t, o, s: o and p),
    15: ("B", "none", "chopped_mushroom", "ready", lambda p, e, t, o, s: (t and p and o and s) ^ (o and not t)),
    16: ("B", "none", "chopped_meat", "ready", lambda p, e, t, o, s: (t and p and o and s) ^ (o and not t)),
    17: ("", "none any", ONE, "", lambda p, e, t, o, s: o and p),
    18: ("", "none any", TWO, "", lambda p, e, t, o, s: o and p),
    19: ("", "none any", "mushroom_burrito", "", lambda p, e, t, o, s: o and p),
    20: ("", "none any", "steak_burrito", "", lambda p, e, t, o, s: o and p),
    21: ("", TO_GRILL, "fried_mushroom", EATEN, lambda p, e, t, o, s: o and p and s),
    22: ("", TO_GRILL, "chopped_steak", EATEN, lambda p, e, t, o, s: o and p and s),
    23: ("", TO_POT, "boiled_rice", EATEN, lambda p, e, t, o, s: o and p and s),
    24: ("GP", "none rice " + CHOPPED, "charcoal", "", lambda p, e, t, o, s: (t and p and o) ^ (o and not t)),
    25: ("X", "any", "any", "", lambda p, e, t, o, s: o and p and t),
    26: ("X", "any", "", "", lambda p, e, t, o, s: o and p and t),
}


class Look:
    """One player's choice of targets in a kitchen of which `lies` [C] says name, clock."""

    def __init__(self, env, item, clock, cell, held):
        self.grid, self.floor, self.here = env.kitchen.grid, floor_of(env), cell
        self.lies, self.clock, self.hand = [name_of(k) for k in item], clock.tolist(), name_of(held)
        self.far = self.floor.distances(cell)

    def state(self, cell):
        """Names of the flags of what lies on a cell that are true, `unready` for one that is there and false."""
        clock, terrain = self.clock[cell], self.grid.characters[cell]
        if terrain == "B":
            return {"ready" if clock == 2 else "unready"}
        if terrain in "PG" and self.lies[cell] != "charcoal":
            return {("unready", "waiting", "warning", "burnt")[sum(clock >= k for k in (READY, WARNING, BURNT))]}
        return set()

    def choose(self, skill):
        """(target, stand, direction) or nothing."""
        if skill == STAY:
            return None
        terrain, hands, objects, state, formula = TABLE[skill]
        is_any = self.hand != "none" and "any" in hands.split()
        p, e = is_any or self.hand in hands.split(), self.hand == "none"
        found = []
        for cell in self.candidates(skill, terrain, objects, state):
            lies = self.lies[cell]
            t = (not terrain or self.grid.characters[cell] in terrain) and (bool(objects) or lies == "none")
            o = not objects or objects == "any" or (lies != "none" and lies in objects.split())
            s = not state or lies == "none" or bool(self.state(cell) & set(state.split()))
            if not formula(p, e, t, o, s):
                continue
            x, y = int(self.grid.x[cell]), cell // self.grid.width
            for direction, (dx, dy) in enumerate([(0, -1), (0, 1), (1, 0), (-1, 0)]):
                stand = cell - dx - dy * self.grid.width
                if self.grid.is_inside(x - dx, y - dy) and stand in self.far:
                    found.append((self.far[stand], (x, y), (x - dx, y - dy), (dx, dy), cell, stand, direction))
        return min(found)[4:] if found else None

    def candidates(self, skill, terrain, objects, state):
        kitchen = self.grid.characters
        if skill == PASS:
            return [self.grid.cell(x, y) for x, y in PASS_LIST if self.grid.is_inside(x, y)]
        places = {c for c in range(len(kitchen)) if terrain and kitchen[c] in terrain}
        if not objects:
            return {c for c in places if self.lies[c] == "none"}
        lying = {c for c, name in enumerate(self.lies) if name in objects.split()}
        lying = {c for c in lying if not state or self.state(c) & set(state.split())}
        return lying & places if skill == FIRE else lying | places


@cache
def floor_of(env):
    return Floor(env.kitchen.grid.rows)


@cache
def chooser(env):
    """Mask [A, 27]; target, goal, where to look, interactions [27, A] of all skills in a state."""
    skills, everybody = env.skills, jnp.ones((env.num_agents,), jnp.bool_)

    def one(state, skill):
        ops = jnp.full((env.num_agents, 1), skill, jnp.int32)
        memory = skills.begin(state, skills.idle(), ops, everybody)
        return memory.target, memory.goal, memory.facing, memory.repeats

    return jax.jit(jax.vmap(lambda s: (skills.feasible(s), *jax.vmap(lambda k: one(s, k))(jnp.arange(27)))))


@pytest.mark.parametrize("layout", ["open", "fc", "hallway"])
def test_burrito_masks_targets_and_goals_are_those_of_the_text(layout):
    env, count, rng = Burrito(layout=layout, controller="pinned"), STATES, np.random.default_rng(8)
    states = random_states(env, rng, count)
    is_counter = env.kitchen.grid.characters == "X"  # from full of things to nearly empty
    emptied = rng.random(states.item.shape) < np.linspace(0, 1, count)[:, None]
    states = states.replace(
        item=np.where(emptied & is_counter, 0, states.item).astype(np.int8),
        held=np.where(rng.random((count, 2)) < 0.3, 0, states.held).astype(np.int8),
    )
    mask, *chosen = jax.device_get(chooser(env)(states))
    times = np.zeros((27, 2), int)
    for k in range(count):
        for player in range(2):
            cell = int(states.cell[k, player])
            look = Look(env, states.item[k], states.clock[k], cell, states.held[k, player])
            for skill in range(27):
                want = look.choose(skill)
                got = tuple(int(x[k, skill, player]) for x in chosen)
                assert got[:3] == (want or (cell, cell, states.facing[k, player])), (k, player, NAMES[skill])
                assert bool(mask[k, player, skill]) == (want is not None or skill == STAY)
                assert (got[3] > 0) == (want is not None)
                times[skill, int(mask[k, player, skill])] += 1
    assert (np.delete(times[:, 1], STAY) > 0).sum() >= 24  # nearly all of them were possible somewhere


def aim(state, skill):
    """(x, y) of the target of player 0, None: impossible."""
    mask, target, *_ = chooser(OPEN)(jax.tree.map(lambda x: x[None], state))
    if not mask[0, 0, skill]:
        return None
    cell = int(target[0, skill, 0])
    return cell % OPEN.kitchen.grid.width, cell // OPEN.kitchen.grid.width


def test_full_hands_fetch_meat_from_counters_and_empty_ones_from_the_nearest_place():
    near = (9, 1)
    for held, lying, target in (
        (I.RICE, {near: I.MEAT}, near),
        (I.RICE, {}, None),
        (I.NONE, {}, MEATS),
        (I.NONE, {near: I.MEAT}, near),
        (I.NONE, {(0, 1): I.MEAT}, MEATS),
    ):
        assert aim(scene(None, None, held=(held, 0), lying=lying, cell=[18, 11]), GRAB_MEAT) == target


def test_dirty_plates_are_looked_for_at_empty_stacks_and_in_sinks():
    state = scene(STACK, None, plates=0)
    assert aim(state, DIRTY) == STACK
    assert aim(scene(STACK, None, held=(I.MEAT, 0)), DIRTY) is None
    for held in (I.NONE, I.MEAT):
        assert aim(scene(SINK, None, held=(held, 0), lying={SINK: (I.DIRTY_PLATE, 1)}), DIRTY) == SINK


def test_clean_plates_are_swapped_on_counters_but_taken_from_the_sink_with_empty_hands_only():
    for held, in_sink in ((I.NONE, SINK), (I.MEAT, None), (I.CLEAN_PLATE, None)):
        assert aim(scene(SINK, None, held=(held, 0), lying={SINK: I.CLEAN_PLATE}), CLEAN) == in_sink
        assert aim(scene(COUNTER, None, held=(held, 0), lying={COUNTER: I.CLEAN_PLATE}), CLEAN) == COUNTER


def test_chopped_food_is_taken_from_boards_only_when_ready_and_never_from_counters():
    for held in (I.NONE, I.CLEAN_PLATE):
        assert aim(scene(COUNTER, None, held=(held, 0), lying={COUNTER: I.CHOPPED_MEAT}), CHOPPED_MEAT) is None
    for clock, target in ((1, None), (2, BOARD)):
        assert aim(scene(BOARD, None, lying={BOARD: (I.CHOPPED_MEAT, clock)}), CHOPPED_MEAT) == target
    assert aim(scene(BOARD, None, held=(I.MEAT, 0), lying={BOARD: (I.CHOPPED_MEAT, 2)}), CHOPPED_MEAT) is None


@pytest.mark.parametrize(
    "skill, item", list(enumerate([I.RICE_PLATE, 13, I.MUSHROOM_BURRITO, I.STEAK_BURRITO], GRAB_ONE))
)
def test_plates_with_food_are_fetched_with_any_hand(skill, item):
    for held in (I.NONE, I.MEAT, I.CLEAN_PLATE, I.CHARCOAL):
        assert aim(scene(COUNTER, None, held=(held, 0), lying={COUNTER: item}), skill) == COUNTER


def test_only_charcoal_is_thrown_away():
    for held, target in ((I.CHARCOAL, TRASH), (I.MEAT, None), (I.RICE_PLATE, None), (I.NONE, None)):
        assert aim(scene(TRASH, None, held=(held, 0)), THROW) == target


def test_food_goes_onto_free_grills_only_and_charcoal_comes_off_by_its_own_skill():
    for lying, on_grill, off in ((I.NONE, GRILL, None), (I.CHARCOAL, (7, 6), GRILL), ((I.STEAK, 5), (7, 6), None)):
        state = scene(GRILL, None, held=(I.CHOPPED_MEAT, 0), lying={GRILL: lying})
        assert (aim(state, PAN), aim(state, CHARCOAL)) == (on_grill, off)
    for held, off in ((I.NONE, POT), (I.RICE, POT), (I.CHOPPED_MEAT, POT), (I.MEAT, None)):  # 3.1 for chopped meat
        assert aim(scene(POT, None, held=(held, 0), lying={POT: I.CHARCOAL}), CHARCOAL) == off


def test_boards_and_sinks_are_gone_on_with_by_empty_hands():
    for clock, target in ((0, BOARD), (1, BOARD), (2, None)):
        assert aim(scene(BOARD, None, lying={BOARD: (I.CHOPPED_MUSHROOM, clock)}), CHOP) == target
    assert aim(scene(SINK, None, lying={SINK: (I.DIRTY_PLATE, 2)}), WASH) == SINK
    assert aim(scene(SINK, None), WASH) is None
    assert aim(scene(SINK, None, held=(I.DIRTY_PLATE, 0), lying={SINK: I.CLEAN_PLATE}), WASH) == SINK


def test_food_is_taken_off_the_fire_from_ready_to_burnt():
    for clock, target in ((READY - 1, None), (READY, POT), (BURNT - 1, POT), (BURNT, None)):
        held = scene(POT, None, held=(I.CLEAN_PLATE, 0), lying={POT: (I.BOILED_RICE, clock)})
        assert aim(held, RICE) == target
        fire = scene(POT, None, held=(I.FIRE_EXT, 0), lying={POT: (I.BOILED_RICE, clock)})
        assert aim(fire, FIRE) == (POT if clock == BURNT else None)


@pytest.mark.parametrize(
    "layout, places",
    [
        ("open", [(4, 6)]),
        ("ring", [(4, 3), (5, 3)]),
        ("fc", [(4, 3), (4, 6)]),
        ("hallway", [(5, 1), (5, 2), (5, 3)]),
    ],
)
def test_burritos_are_handed_over_at_the_counters_of_the_list(layout, places):
    """From everywhere; also where something lies, for which the things are swapped."""
    env = Burrito(layout=layout, controller="pinned")
    width, floor = env.kitchen.grid.width, np.flatnonzero(env.kitchen.grid.floor)
    seen = set()
    for lying in ({}, dict.fromkeys(places, I.MEAT)):
        state = scene(None, None, env=env, held=(I.CLEAN_PLATE, I.CLEAN_PLATE), lying=lying)
        for start in range(0, len(floor), STATES):
            cells = np.resize(floor[start:], STATES)
            states = jax.tree.map(lambda x: np.broadcast_to(x, (STATES, *x.shape)), state)
            states = states.replace(cell=np.stack([cells, cells], 1).astype(np.int16))
            mask, target, *_ = jax.device_get(chooser(env)(states))
            assert mask[:, :, PASS].all()
            seen |= {(int(c) % width, int(c) // width) for c in target[:, PASS].flat}
    assert seen == set(places)


def test_nothing_is_handed_over_put_down_or_served_with_the_wrong_hands():
    assert aim(scene(COUNTER, None), PASS) is None and aim(scene(COUNTER, None), PUT_DOWN) is None
    assert aim(scene(WINDOW, None, held=(I.RICE_PLATE, 0)), SERVE) is None
    assert aim(scene(WINDOW, None, held=(I.STEAK_BURRITO, 0)), SERVE) == WINDOW
