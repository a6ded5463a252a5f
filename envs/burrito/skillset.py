"""8.1 to 8.3: the 27 macro-skills, and what cells they can be aimed at, as tables (host side).

A skill that looks at a cell sees its terrain, what lies there and in which phase, and the agent's hand.  The formulas
are worked out here for every terrain and content, three times: for a hand that the skill allows, for an empty hand that
it does not allow, and for a full one; as bits of a word, one for each skill.
"""

import dataclasses
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import Array, Int

from jaxcoop.envs.burrito.interact import (
    BURNT,
    CHOPPED,
    CONTENTS,
    READY,
    WARNING,
    exists,
    item_of,
    phase_of,
)
from jaxcoop.envs.burrito.types import Item, Terrain

I, T = Item, Terrain  # noqa: E741  the table below is full of them
EMPTY = Item.NONE
ANY = tuple(item for item in Item if item)
"""Any object in the hand."""

_DIRTY = (I.DIRTY_PLATE, I.STACK_PLATE)
_ONE = (I.RICE_PLATE, I.STEAK_PLATE, I.FRIED_MUSHROOM_PLATE, I.TORTILLA_PLATE)
_TWO = (
    I.RICE_TORTILLA_PLATE,
    I.STEAK_TORTILLA_PLATE,
    I.FRIED_MUSHROOM_TORTILLA_PLATE,
    I.STEAK_RICE_PLATE,
    I.FRIED_MUSHROOM_RICE_PLATE,
)
_TO_GRILL = (I.CLEAN_PLATE, I.RICE_PLATE, I.TORTILLA_PLATE, I.RICE_TORTILLA_PLATE)
_TO_POT = (
    I.CLEAN_PLATE,
    I.TORTILLA_PLATE,
    I.FRIED_MUSHROOM_PLATE,
    I.STEAK_PLATE,
    I.STEAK_TORTILLA_PLATE,
    I.FRIED_MUSHROOM_TORTILLA_PLATE,
)
_TO_TORTILLA = (
    EMPTY,
    I.CLEAN_PLATE,
    I.FRIED_MUSHROOM_PLATE,
    I.STEAK_PLATE,
    I.RICE_PLATE,
    I.STEAK_RICE_PLATE,
    I.FRIED_MUSHROOM_RICE_PLATE,
)
_FOODS = (I.STEAK, I.FRIED_MUSHROOM, I.BOILED_RICE)


# 8.1: the formulas, over p (the hand is allowed), e (it is empty), t (terrain), o (object) and s (its state).


def _always(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return True


def _place(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return t and p and o


def _chop(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return t and ((p and not o) or (e and o and s))


def _wash(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return t and ((p and not o) or (e and o))


def _bring(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return t and p


def _fetch(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return (t and p) != o


def _fetch_onto(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return p and (t or o)


def _take_out(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return (t and p and o) != (o and not t)


def _take_ready(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return (t and p and o and s) != (o and not t)


def _grab(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return o and p


def _get(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return o and p and s


def _lay(p: bool, e: bool, t: bool, o: bool, s: bool) -> bool:
    return o and p and t


@dataclasses.dataclass(frozen=True)
class SkillSpec:
    """One line of the table in 8.1.

    `terrain`, `objects`: empty means that the skill has no such condition.  `state`: which flags an object has to
    have.  `formula`: how the flags p, e, t, o, s of 8.2 make a target.
    """

    name: str
    formula: Callable[[bool, bool, bool, bool, bool], bool]
    terrain: tuple[Terrain, ...] = ()
    hands: tuple[Item, ...] = ()
    objects: tuple[Item, ...] = ()
    state: str = ""


SKILLS = (
    SkillSpec("GO_TO_PAN_AND_FRY_INGREDIENT", _place, (T.GRILL,), (I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM)),
    SkillSpec("GO_TO_POT_AND_BOIL_RICE", _place, (T.POT,), (I.RICE,)),
    SkillSpec(
        "GO_TO_CHOP_BOARD_AND_CHOP_INGREDIENT",
        _chop,
        (T.BOARD,),
        (I.MEAT, I.MUSHROOM),
        (I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM),
        "not ready",
    ),
    SkillSpec("GO_TO_PUT_OUT_FIRE", _place, (T.POT, T.GRILL), (I.FIRE_EXT,), _FOODS, "burnt"),
    SkillSpec("STAY", _always),
    SkillSpec("GO_TO_SINK_TO_WASH_PLATE", _wash, (T.SINK,), _DIRTY, (I.DIRTY_PLATE, I.STACK_PLATE)),
    SkillSpec("GO_TO_TRASH_AND_THROW", _bring, (T.TRASH,), (I.CHARCOAL,)),
    SkillSpec("GO_TO_SERVE_DISH", _bring, (T.SERVING,), (I.STEAK_BURRITO, I.MUSHROOM_BURRITO)),
    SkillSpec("GRAB_MEAT", _fetch, (T.MEAT,), (EMPTY,), (I.MEAT,)),
    SkillSpec("GRAB_MUSHROOM", _fetch, (T.MUSHROOM,), (EMPTY,), (I.MUSHROOM,)),
    SkillSpec("GRAB_TORTILLA", _fetch_onto, (T.TORTILLA,), _TO_TORTILLA, (I.TORTILLA,)),
    SkillSpec("GRAB_RICE", _fetch, (T.RICE,), (EMPTY,), (I.RICE,)),
    SkillSpec("GRAB_DIRTY_PLATE", _fetch, (T.DIRTY_PLATES,), (EMPTY,), _DIRTY),
    SkillSpec("GRAB_CLEAN_PLATE", _take_out, (T.SINK,), (EMPTY,), (I.CLEAN_PLATE,)),
    SkillSpec("GRAB_FIRE_EXT", _grab, (), (EMPTY, *ANY), (I.FIRE_EXT,)),
    SkillSpec(
        "GRAB_CHOPPED_MUSHROOM",
        _take_ready,
        (T.BOARD,),
        (EMPTY,),
        (I.CHOPPED_MUSHROOM,),
        "ready",
    ),
    SkillSpec("GRAB_CHOPPED_MEAT", _take_ready, (T.BOARD,), (EMPTY,), (I.CHOPPED_MEAT,), "ready"),
    SkillSpec("GRAB_ONE_INGREDIENT_PLATE", _grab, (), (EMPTY, *ANY), _ONE),
    SkillSpec("GRAB_TWO_INTREDIENT_PLATE", _grab, (), (EMPTY, *ANY), _TWO),
    SkillSpec("GRAB_MURHSOOM_BURRITO_PLATE", _grab, (), (EMPTY, *ANY), (I.MUSHROOM_BURRITO,)),
    SkillSpec("GRAB_STEAK_BURRITO_PLATE", _grab, (), (EMPTY, *ANY), (I.STEAK_BURRITO,)),
    SkillSpec("GET_MURHSOOM_FROM_GRILLER", _get, (), _TO_GRILL, (I.FRIED_MUSHROOM,), "waiting or warning"),
    SkillSpec("GET_STEAK_FROM_GRILLER", _get, (), _TO_GRILL, (I.STEAK,), "waiting or warning"),
    SkillSpec("GET_BOILED_RICE", _get, (), _TO_POT, (I.BOILED_RICE,), "waiting or warning"),
    SkillSpec(
        "GRAB_CHARCOAL",
        _take_out,
        (T.GRILL, T.POT),
        (EMPTY, I.RICE, I.CHOPPED_MEAT, I.CHOPPED_MUSHROOM),
        (I.CHARCOAL,),
    ),
    SkillSpec("PASS_OBJECT", _lay, (T.COUNTER,), ANY, ANY),
    SkillSpec("PUT_DOWN_OBJECT", _lay, (T.COUNTER,), ANY),
)
"""8.1, in order.  The odd spellings are the reference's names."""

NAMES = tuple(spec.name for spec in SKILLS)
CHOP, PUT_OUT_FIRE, STAY, WASH, PASS = 2, 3, 4, 5, 25

PASS_CELLS = ((5, 1), (5, 2), (5, 3), (4, 3), (4, 6))
"""8.3: the (x, y) that PASS_OBJECT looks at, in every layout."""


def _has_state(spec: SkillSpec, terrain: Terrain, content: int) -> bool:
    """8.2, s: whether an object has a flag that the skill asks for; plain objects on counters have none."""
    phase = phase_of(content)
    is_on_board = terrain == T.BOARD
    match spec.state:
        case "not ready":
            return (is_on_board and content < CHOPPED) or phase == 0
        case "ready":
            return (is_on_board and content >= CHOPPED) or phase > 0
        case "burnt":
            return phase == BURNT
        case "waiting or warning":
            return phase in (READY, WARNING)
    return True


def _flags(skill: int, terrain: Terrain, content: int) -> tuple[bool, bool, bool]:
    """8.2: t, o and s at a cell."""
    spec, item = SKILLS[skill], item_of(content)
    is_terrain = not spec.terrain or terrain in spec.terrain
    if not spec.objects and item:
        is_terrain = False
    is_object = item in spec.objects if spec.objects and item else not spec.objects or skill == PASS
    return is_terrain, is_object, not item or _has_state(spec, terrain, content)


def _is_candidate(skill: int, terrain: Terrain, content: int) -> bool:
    """8.3: whether the skill looks at the cell at all; PASS_OBJECT does at its own list."""
    spec, item = SKILLS[skill], item_of(content)
    if skill in (PASS, STAY):
        return skill == PASS
    if not spec.objects:
        return terrain in spec.terrain and not item
    lies = item in spec.objects and _has_state(spec, terrain, content)
    is_terrain = terrain in spec.terrain
    return lies and is_terrain if skill == PUT_OUT_FIRE else lies or is_terrain


@dataclasses.dataclass(frozen=True)
class Words:
    """Bits of skills.  `formula` and `target`: [2, terrains, contents], for hands that the skill allows and for others;
    `target` asks for both the formula and that the cell is looked at.  `allowed` [items]: the skills that allow what is
    in the hand.  Two skills also go on with an empty hand, which they do not allow: `GOES_ON` has bits for that.
    """

    formula: Int[np.ndarray, "2 T K"]
    target: Int[np.ndarray, "2 T K"]
    allowed: Int[np.ndarray, " I"]


ALLOWED, OTHER = range(2)
GOES_ON = {CHOP: len(SKILLS), WASH: len(SKILLS) + 1}
"""Skill -> the bit that stands for it in an empty hand."""


@lru_cache(maxsize=1)
def words() -> Words:
    """The tables of all skills."""
    formula = np.zeros((2, len(T), CONTENTS), np.int32)
    target = np.zeros_like(formula)
    for skill, spec in enumerate(SKILLS):
        hands = [(ALLOWED, skill, (True, False)), (OTHER, skill, (False, False))]
        hands += [(ALLOWED, GOES_ON[skill], (False, True))] if skill in GOES_ON else []
        for terrain in T:
            for content in range(CONTENTS):
                if not exists(terrain, EMPTY, content):
                    continue
                t, o, s = _flags(skill, terrain, content)
                for kind, bit, (p, e) in hands:
                    is_true = spec.formula(p, e, t, o, s)
                    formula[kind, terrain, content] |= is_true << bit
                    target[kind, terrain, content] |= (is_true and _is_candidate(skill, terrain, content)) << bit
    allowed = [sum((item in spec.hands) << skill for skill, spec in enumerate(SKILLS)) for item in I]
    allowed[EMPTY] |= sum(1 << bit for bit in GOES_ON.values())
    return Words(formula, target, np.array(allowed, np.int32))


def for_hand(allowed: Array, allows: Array, others: Array) -> Array:
    """The bits of the skills for one hand: `allowed` of what it holds, and the words of a cell for both kinds."""
    word = (allows & allowed) | (others & ~allowed)
    for skill, bit in GOES_ON.items():
        word |= (word >> bit & 1) << skill
    return word
