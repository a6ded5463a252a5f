"""What plans are for, and whether they got there; section numbers are those of docs/coop2.md.

Axes: A agents, L ops of a plan, W words of an op row.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.cognition.types import Plan
from jaxcoop.envs.macrafter.config import TOOLS
from jaxcoop.envs.macrafter.ids import KINDS
from jaxcoop.envs.macrafter.players import CRAFT_ACHIEVEMENTS, MADE, PLACE_ACHIEVEMENTS
from jaxcoop.envs.macrafter.skills import GAINED_BY, GOT_FROM, Op
from jaxcoop.envs.macrafter.types import ITEM_NAMES, PLACES, Action, Item, State

TASKS = (
    "collect_wood",
    "collect_stone",
    "collect_coal",
    "collect_iron",
    "collect_diamond",
    "collect_food",
    "make_wood_pickaxe",
    "make_stone_pickaxe",
    "make_iron_pickaxe",
    "place_table",
    "place_furnace",
    "place_stone",
)
"""Names of what planners may plan for; a specification is (number of the name, type of the object, its id)."""

DOES = (
    (Op.COLLECT, Item.WOOD),
    (Op.COLLECT, Item.STONE),
    (Op.COLLECT, Item.COAL),
    (Op.COLLECT, Item.IRON),
    (Op.COLLECT, Item.DIAMOND),
    (Op.COLLECT, Item.FOOD),
    (Op.CRAFT, Action.MAKE_WOOD_PICKAXE),
    (Op.CRAFT, Action.MAKE_STONE_PICKAXE),
    (Op.CRAFT, Action.MAKE_IRON_PICKAXE),
    (Op.PLACE, PLACES.index("table")),
    (Op.PLACE, PLACES.index("furnace")),
    (Op.PLACE, PLACES.index("stone")),
    (Op.COLLECT, Item.DRINK),
)
"""Kind and first argument of the op that does what each of `TASKS` says, and of the one that collects drink."""

COLLECTS_FROM = {source: DOES.index((Op.COLLECT, item)) for source, item in GOT_FROM.items()}
"""Number of the task to collect what a `Material` or `Thing` gives."""


_NAME_OF = {code: name for name, code in KINDS.items()}
_SOURCES = tuple(GOT_FROM)
_GIVEN = tuple(ITEM_NAMES[item] for item in GOT_FROM.values())

NAMES = (
    *TASKS,
    "collect_drink",
    *(f"wait_for_{_NAME_OF[source]}_partner" for source in _SOURCES),
    *(f"prepare_{tool}_for_{item}" for tool in TOOLS for item in _GIVEN),
)
"""Every name by number: those of `DOES`, which can be checked, and what else recommended plans are for (`guidance`)."""


def collecting(kind: Int[Array, "..."]) -> Int[Array, "..."]:
    """Number of the task to collect from a `Material` or `Thing`; -1 for one that gives nothing."""
    return _by_source(kind, [COLLECTS_FROM[source] for source in _SOURCES])


def waiting(kind: Int[Array, "..."]) -> Int[Array, "..."]:
    """Number of the task to wait there for others."""
    return _by_source(kind, [len(DOES) + number for number in range(len(_SOURCES))])


def preparing(kind: Int[Array, "..."], tool: Int[Array, "..."]) -> Int[Array, "..."]:
    """Number of the task to make tool number `tool` of `TOOLS` for it."""
    first = len(DOES) + len(_SOURCES)
    number = _by_source(kind, [first + number for number in range(len(_SOURCES))])
    return jnp.where(number < 0, -1, number + tool * len(_SOURCES))


def _by_source(kind: Int[Array, "..."], values: list[int]) -> Int[Array, "..."]:
    table = np.full(max(_SOURCES) + 2, -1, np.int32)
    table[list(_SOURCES)] = values
    return jnp.asarray(table)[jnp.where((kind >= 0) & (kind <= max(_SOURCES)), kind, len(table) - 1)]


def no_progress(agents: int) -> UInt32[Array, " A"]:
    """At the start of plans."""
    return jnp.zeros((agents,), jnp.uint32)


def progress(before: State, after: State, ops: Int[Array, "A W"]) -> UInt32[Array, " A"]:
    """2: which tasks of `DOES` each agent achieved in a step in which it ran `ops`, as bits.

    Anything that the outcome of the op shows counts, so a unit that a teammate gave away does as well; moving and
    navigating have no outcome.
    """
    last, kind = after.last, ops[:, 0]
    shows = (last.status >= 0) & (kind >= Op.NOOP) & (kind != Op.MOVE) & (kind != Op.NAVIGATE)
    rose = after.inventory > before.inventory
    risen, took = last.risen.astype(jnp.uint32), last.took.astype(jnp.uint32)
    has_placed = (kind == Op.PLACE) & (last.status == 1)
    done = []
    for op, what in DOES:
        if op == Op.COLLECT:
            counters = [counter for counter, item in GAINED_BY.items() if item == what]
            sources = [source for source, item in GOT_FROM.items() if item == what]
            done.append(rose[:, what] | _has(risen, *counters) | _has(took, *sources))
        elif op == Op.CRAFT:
            done.append(rose[:, MADE[Action(what)]] | _has(risen, CRAFT_ACHIEVEMENTS[Action(what)]))
        else:
            done.append(_has(risen, PLACE_ACHIEVEMENTS[what]) | (has_placed & (ops[:, 1] == what)))
    bits = jnp.zeros_like(risen)
    for number, is_done in enumerate(done):
        bits |= is_done.astype(jnp.uint32) << number
    return jnp.where(shows, bits, jnp.uint32(0))


def missed(spec: Int[Array, "A S"], bits: UInt32[Array, " A"]) -> Bool[Array, " A"]:
    """2: whether a plan that got through all its ops has failed, as none of them achieved what it is for.

    `bits`: `progress` of all steps of the plan.  A plan for anything else has not failed.
    """
    name = spec[:, 0]
    is_task = (name >= 0) & (name < len(DOES))
    number = jnp.where(is_task, name, 0).astype(jnp.uint32)
    return is_task & ((bits >> number) & 1 == 0)


def complete(plan: Plan) -> Plan:
    """6.3: plans with what their tasks ask for.

    In a plan for `collect_X` each collect of X, or of nothing in particular, is one of X, and of the object of the
    task unless it names one.  Where no op does what the task says, one that does is put at the end, if there is room.
    """
    name, ident = plan.spec[:, :1], plan.spec[:, 2:3]
    kind, first, second = (plan.ops[..., k] for k in range(3))
    is_op = jnp.arange(plan.ops.shape[1], dtype=jnp.int32) < plan.length[:, None]
    want, what = _wanted(name)
    takes = is_op & (kind == Op.COLLECT) & (want == Op.COLLECT) & ((first == what) | (first < 0))
    ops = plan.ops.at[..., 1].set(jnp.where(takes, what, first))
    ops = ops.at[..., 2].set(jnp.where(takes & (second < 0), ident, second))
    does = takes | (is_op & (kind == want) & (first == what))
    lacks = (want[:, 0] >= 0) & ~does.any(1) & (plan.length < plan.ops.shape[1])
    row = jnp.full((*name.shape, plan.ops.shape[2]), -1, jnp.int32)
    row = row.at[..., 0].set(want).at[..., 1].set(what).at[..., 2].set(jnp.where(want == Op.COLLECT, ident, -1))
    is_end = jnp.arange(plan.ops.shape[1], dtype=jnp.int32) == plan.length[:, None]
    ops = jnp.where((is_end & lacks[:, None])[..., None], row, ops)
    return dataclasses.replace(plan, ops=ops, length=plan.length + lacks.astype(plan.length.dtype))


def _wanted(name: Int[Array, "..."]) -> tuple[Int[Array, "..."], Int[Array, "..."]]:
    """Kind and first argument of the op that does what each task says; -1 for any other name."""
    is_task = (name >= 0) & (name < len(DOES))
    number = jnp.where(is_task, name, 0)
    table = jnp.asarray(np.array(DOES, np.int32).T)
    return jnp.where(is_task, table[0][number], -1), jnp.where(is_task, table[1][number], -1)


def _has(bits: UInt32[Array, " A"], *numbers: int) -> Bool[Array, " A"]:
    return bits & np.uint32(sum(1 << int(number) for number in numbers)) > 0
