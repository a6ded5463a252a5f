"""Plans of MA-Crafter op by op, from what each agent is after.

Axes: A agents, L ops of a plan.
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.plans.base import Draft, blank
from jaxcoop.agents.scripted.plans.macrafter_aims import Aim, Wants
from jaxcoop.cognition.types import Plan
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.goals import TASKS, collecting, waiting
from jaxcoop.envs.macrafter.skills import GOT_FROM, Op
from jaxcoop.envs.macrafter.tools import WIDTH
from jaxcoop.envs.macrafter.types import DELTA_X, DELTA_Y, PLACES, Action, Item, Material, State, material_of

LONGEST_TIMEOUT = 100
"""Steps of a navigation at most, as for language models."""
HASTE = 10
"""Steps that a time-out leaves beyond twice the estimate."""
ALONE, TOGETHER = 3, 6
"""Steps that a collect goes on while others are missing."""
LONGEST_WAIT = 6
"""Steps that an agent waits for the last one before it collects; for a later one it just waits."""
REST = 3
SIPS = 4


@struct.dataclass
class Goals:
    """Two things in turn that each agent gathers."""

    gathers: Bool[Array, " A"]
    found: Bool[Array, "A 2"]
    kind: Int[Array, "A 2"]  # Material or Thing
    ident: Int[Array, "A 2"]
    steps: Int[Array, "A 2"]  # until the agent is beside it
    side: Int[Array, " A"]  # 0 to 3: where it goes to look for something else


@struct.dataclass
class Joined:
    """What each agent collects with others, if that is its aim."""

    cell: Int[Array, " A"]
    kind: Int[Array, " A"]
    dig: Int[Array, " A"]  # cell that it digs out first, -1: none
    steps: Int[Array, " A"]  # until it can collect
    latest: Int[Array, " A"]  # until the last one can


def write(
    settings: Settings,
    ops: int,
    world: State,
    aim: Int[Array, " A"],
    wants: Wants,
    goals: Goals,
    joined: Joined,
    pause: Int[Array, " A"],
    is_lost: Bool[Array, " A"],
) -> Plan:
    """The plans; `pause`: steps that each waits too long before it collects with others.

    `is_lost`: who did not get where it wanted to.
    """
    draft = _get_round(blank(aim.shape[0], ops, WIDTH), world, is_lost)
    draft = _gather(draft, aim, goals)
    draft = _craft(draft, world, aim == Aim.CRAFT, wants)
    draft, collects = _meet(settings, draft, world, aim == Aim.MEET, joined, pause)
    for _ in range(ops):
        draft = draft.add(aim == Aim.SLEEP, int(Op.SLEEP))
    for _ in range(REST):
        draft = draft.add(aim == Aim.REST, int(Op.NOOP))
    return _named(draft, aim, wants, goals, joined, collects)


def _get_round(draft: Draft, world: State, is_lost: Bool[Array, " A"]) -> Draft:
    """One step aside and two on for those who stand before a station, which `navigate` takes for open ground."""
    d = world.facing.astype(jnp.int32)
    width, height = world.material.shape
    x = jnp.clip(world.x + jnp.asarray(DELTA_X)[d], 0, width - 1).astype(jnp.int32)
    y = jnp.clip(world.y + jnp.asarray(DELTA_Y)[d], 0, height - 1).astype(jnp.int32)
    ahead = material_of(world.material)[x, y]
    stands = is_lost & ((ahead == Material.TABLE) | (ahead == Material.FURNACE))
    turn = (jnp.arange(d.shape[0], dtype=jnp.int32) + world.t) % 2
    side = int(Action.MOVE_LEFT) + (2 - d // 2 * 2) + turn
    draft = draft.add(stands, int(Op.MOVE), side, 1)
    return draft.add(stands, int(Op.MOVE), int(Action.MOVE_LEFT) + d, 2)


def _gather(draft: Draft, aim: Int[Array, " A"], goals: Goals) -> Draft:
    """Walk there and collect, twice; who finds nothing looks elsewhere."""
    for turn in range(2):
        kind, ident, steps = goals.kind[:, turn], goals.ident[:, turn], goals.steps[:, turn]
        goes = goals.found[:, turn] & goals.gathers
        draft = draft.add(goes & (steps > 0), int(Op.NAVIGATE), kind, ident, _timeout(steps), 1)
        draft = draft.add(goes, int(Op.COLLECT), item_of(kind), ident, ALONE)
    for _ in range(SIPS):
        drinks = goals.found[:, 0] & (aim == Aim.DRINK)
        draft = draft.add(drinks, int(Op.COLLECT), int(Item.DRINK), goals.ident[:, 0], ALONE)
    lost = goals.gathers & ~goals.found[:, 0]
    for _ in range(2):
        draft = draft.add(lost, int(Op.MOVE), int(Action.MOVE_LEFT) + goals.side, 5)
    return draft


def _craft(draft: Draft, world: State, crafts: Bool[Array, " A"], wants: Wants) -> Draft:
    """To the station, or put up one, and make the tool; nothing can be made in the first column and row."""
    at_furnace = wants.tier == 2
    station = jnp.where(at_furnace, int(Material.FURNACE), int(Material.TABLE))
    place = jnp.where(at_furnace, PLACES.index("furnace"), PLACES.index("table"))
    goes = crafts & ~wants.is_there
    draft = draft.add(goes & wants.puts & (world.x == 0), int(Op.MOVE), int(Action.MOVE_RIGHT), 1)
    draft = draft.add(goes & wants.puts & (world.y == 0), int(Op.MOVE), int(Action.MOVE_DOWN), 1)
    draft = draft.add(goes & wants.puts, int(Op.PLACE), place)
    draft = draft.add(goes & ~wants.puts, int(Op.NAVIGATE), station, wants.station + 1, 40, 1)
    return draft.add(crafts, int(Op.CRAFT), int(Action.MAKE_WOOD_PICKAXE) + jnp.minimum(wants.tier, 2))


def _meet(
    settings: Settings, draft: Draft, world: State, meets: Bool[Array, " A"], joined: Joined, pause: Int[Array, " A"]
) -> tuple[Draft, Bool[Array, " A"]]:
    """Walk to the target or dig out a place beside it, wait for the last one, collect; also who gets to collecting."""
    x, y = world.x.astype(jnp.int32), world.y.astype(jnp.int32)

    def gap(cell: Array) -> Int[Array, " A"]:
        return jnp.abs(x - cell // settings.height) + jnp.abs(y - cell % settings.height)

    away = meets & (gap(joined.cell) > settings.distance)
    digs = away & (joined.dig >= 0)
    timeout = _timeout(joined.steps)
    draft = draft.add(away & ~digs, int(Op.NAVIGATE), joined.kind, joined.cell + 1, timeout, settings.distance)
    draft = draft.add(digs & (gap(joined.dig) > 1), int(Op.NAVIGATE), int(Material.STONE), joined.dig + 1, timeout, 1)
    draft = draft.add(digs, int(Op.COLLECT), int(Item.STONE), joined.dig + 1, ALONE)
    draft = draft.add(digs, int(Op.NAVIGATE), int(Material.PATH), joined.dig + 1, 2 * HASTE, 0)
    late = jnp.maximum(joined.latest - joined.steps, 0)
    collects = meets & (late <= LONGEST_WAIT)
    room = draft.ops.shape[1] - draft.length - collects
    waits = jnp.minimum(jnp.where(collects, late + pause, LONGEST_WAIT), room)
    for number in range(LONGEST_WAIT):
        draft = draft.add(meets & (waits > number), int(Op.NOOP))
    return draft.add(collects, int(Op.COLLECT), item_of(joined.kind), joined.cell + 1, TOGETHER), collects


def _named(
    draft: Draft, aim: Int[Array, " A"], wants: Wants, goals: Goals, joined: Joined, collects: Bool[Array, " A"]
) -> Plan:
    """The plans with what they are for; -1 for what has no name."""
    none = jnp.full_like(aim, -1)
    gathers = goals.gathers & goals.found[:, 0]
    name = jnp.where(gathers, collecting(goals.kind[:, 0]), none)
    kind = jnp.where(gathers, goals.kind[:, 0], none)
    ident = jnp.where(gathers, goals.ident[:, 0], none)
    crafts = aim == Aim.CRAFT
    station = jnp.where(wants.tier == 2, int(Material.FURNACE), int(Material.TABLE))
    name = jnp.where(crafts, TASKS.index("make_wood_pickaxe") + jnp.minimum(wants.tier, 2), name)
    kind, ident = jnp.where(crafts, station, kind), jnp.where(crafts & ~wants.puts, wants.station + 1, ident)
    meets = aim == Aim.MEET
    name = jnp.where(meets, jnp.where(collects, collecting(joined.kind), waiting(joined.kind)), name)
    kind, ident = jnp.where(meets, joined.kind, kind), jnp.where(meets, joined.cell + 1, ident)
    return draft.plan(name, kind, ident)


def _timeout(steps: Int[Array, " A"]) -> Int[Array, " A"]:
    return jnp.minimum(2 * steps + HASTE, LONGEST_TIMEOUT)


def item_of(kind: Int[Array, " A"]) -> Int[Array, " A"]:
    """The item that a `Material` or `Thing` gives, -1: none."""
    item = jnp.full_like(kind, -1)
    for source, gives in GOT_FROM.items():
        item = jnp.where(kind == source, int(gives), item)
    return item
