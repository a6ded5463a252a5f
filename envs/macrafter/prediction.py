"""What plans will do if nothing gets in their way, and which constraints that leaves open; on the device.

Axes: A agents, L ops of a plan, W words of an op row, N = A * L planned ops, row `agent * L + op`, C scored
constraints.  Numbers are sections of docs/coop2_repair.md.

What there is to act on comes as `Known`: a map, or a list of tasks.
"""

from typing import Protocol

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair import timeline, windows
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.cognition.types import PlanViews
from jaxcoop.cooperation import Constraint
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.cooperation.counting import first_with
from jaxcoop.envs.macrafter.collect import YIELDS
from jaxcoop.envs.macrafter.ids import Places
from jaxcoop.envs.macrafter.players import CRAFTS, MADE
from jaxcoop.envs.macrafter.requests import RECIPES
from jaxcoop.envs.macrafter.skills import GOT_FROM, Op
from jaxcoop.envs.macrafter.tools import ALL, STATIONS, is_met, tools_held
from jaxcoop.envs.macrafter.types import DELTA_X, DELTA_Y, PLACES, Action, Item

NOTHING = -1
COLLECT_STEPS = 3
"""3: a collect without a number of steps."""

OBJECT_REACH = 1
"""5: distance at which something that is no task is reached."""


@struct.dataclass
class Facts:
    """What tasks are, of any shape."""

    kind: Int[Array, "..."]  # type of the target, as in `ids.KINDS`
    required: Int[Array, "..."]  # agents
    tools: Int[Array, "..."]  # requirement of `tools`
    place: Int[Array, "... 2"]
    is_placed: Bool[Array, "..."]  # it is known where
    reach: Int[Array, "..."]  # distance from which it is collected


class Known(Protocol):
    """The tasks and objects that there are.  Arguments and results are of any shape; slots of -1 are no task."""

    @property
    def num_tasks(self) -> int:
        """Slots are below this."""
        ...

    def task_of(self, ident: Int[Array, "..."]) -> Int[Array, "..."]:
        """Slot of the task with an id."""
        ...

    def only_task(self, kind: Int[Array, "..."]) -> Int[Array, "..."]:
        """Slot of the task of a type of which there is just one."""
        ...

    def object_of(self, kind: Int[Array, "..."], ident: Int[Array, "..."]) -> Places:
        """Where something else with an id is."""
        ...

    def facts(self, slot: Int[Array, "..."]) -> Facts:
        """What the tasks are; anything for a slot of -1."""
        ...


@struct.dataclass
class Team:
    """Agents as they are now."""

    position: Int[Array, "A 2"]
    inventory: Int[Array, "A 16"]
    near: Bool[Array, "A 2"]  # stations in the order of `tools.STATIONS`


@struct.dataclass
class Aims:
    """What planned ops are aimed at."""

    task: Int[Array, "A L"]  # slot of the task that the op belongs to, -1: none
    kind: Int[Array, "A L"]  # type of what a collect takes, -1: unknown
    place: Int[Array, "A L 2"]  # where a navigate leads to
    is_placed: Bool[Array, "A L"]
    reach: Int[Array, "A L"]


@struct.dataclass
class Prediction:
    """Every planned op: what for, when, where and with what."""

    remains: Bool[Array, "A L"]
    aims: Aims
    timeline: timeline.Timeline
    before: Int[Array, "N 16"]  # inventory of its agent when it takes effect, zeros for ops that do not remain
    after: Int[Array, "N 16"]


def predict(known: Known, views: PlanViews, team: Team, step: Int[Array, ""]) -> Prediction:
    """3, 5: the remaining ops of all viewed plans, each successful as far as inventories allow."""
    remains = remaining(views)
    aims = aims_of(known, views.plan.ops, remains)
    kind, first, second, third = (views.plan.ops[..., k] for k in range(4))
    steps = jnp.where(kind == Op.COLLECT, jnp.where(third < 0, COLLECT_STEPS, third), 1)
    is_move = (kind == Op.MOVE) & (first >= Action.MOVE_LEFT) & (first <= Action.MOVE_DOWN)
    moves = jnp.where(second < 0, 1, second)
    way = jnp.stack([jnp.asarray(DELTA_X, jnp.int32), jnp.asarray(DELTA_Y, jnp.int32)], axis=-1)
    shift = way[jnp.where(is_move, first - Action.MOVE_LEFT, 0)] * moves[..., None]
    planned = timeline.Planned(
        remains=remains,
        duration=jnp.where(kind == Op.MOVE, moves, steps),
        shift=jnp.where(is_move[..., None], shift, 0),
        travels=(kind == Op.NAVIGATE) & aims.is_placed,
        target=aims.place,
        threshold=aims.reach,
    )
    course = timeline.predict(planned, team.position, step)
    before, after = _inventories(views.plan.ops, aims.kind, course, remains, team)
    return Prediction(remains=remains, aims=aims, timeline=course, before=before, after=after)


def aims_of(known: Known, ops: Int[Array, "A L W"], remains: Bool[Array, "A L"]) -> Aims:
    """5: what each op is aimed at; only navigates and collects are.

    That is the task with the op's id, or else the only task of the type that it names, or else, for a navigate, some
    object with that id.  An op that names nothing known belongs to whatever the last op before it named.
    """
    kind, first, ident = (ops[..., k] for k in range(3))
    takes, goes = remains & (kind == Op.COLLECT), remains & (kind == Op.NAVIGATE)
    named = jnp.where(goes, first, jnp.where(takes, _source_of(first), NOTHING))
    ident = jnp.where(goes | takes, jnp.maximum(ident, 0), 0)
    own = jnp.where(ident > 0, known.task_of(ident), NOTHING)
    lacks = (own < 0) & (named >= 0)
    slot = jnp.where(lacks, known.only_task(jnp.where(lacks, named, NOTHING)), own)
    facts, is_task = known.facts(slot), slot >= 0
    thing = known.object_of(named, ident)
    is_thing = goes & ~is_task & (ident > 0) & thing.found
    return Aims(
        task=_carried(slot, is_task | (ident > 0)),
        kind=jnp.where(is_task, facts.kind, named),
        place=jnp.where(is_thing[..., None], jnp.stack([thing.x, thing.y], axis=-1), facts.place),
        is_placed=is_thing | (is_task & facts.is_placed),
        reach=jnp.where(is_task, facts.reach, OBJECT_REACH),
    )


def _source_of(item: Int[Array, "..."]) -> Int[Array, "..."]:
    """Type of what gives an `Item`; -1 for any other number."""
    table = np.full(len(Item) + 1, NOTHING, np.int32)
    for source, gives in GOT_FROM.items():
        table[gives] = source
    return jnp.asarray(table)[jnp.where((item >= 0) & (item < len(Item)), item, len(Item))]


def _carried(slot: Int[Array, "A L"], names: Bool[Array, "A L"]) -> Int[Array, "A L"]:
    """3: the task of each op: the one that it names, or what the last op before it that names something does."""
    ops = jnp.arange(slot.shape[1], dtype=jnp.int32)
    last = jnp.max(jnp.where(names[:, None, :] & (ops <= ops[:, None]), ops, -1), axis=-1)  # [A, L]
    found = jnp.take_along_axis(slot, jnp.maximum(last, 0), axis=1)
    return jnp.where(last >= 0, found, NOTHING)


def _inventories(
    ops: Int[Array, "A L W"],
    kind: Int[Array, "A L"],
    course: timeline.Timeline,
    remains: Bool[Array, "A L"],
    team: Team,
) -> tuple[Int[Array, "N 16"], Int[Array, "N 16"]]:
    """5: inventory of each op's agent before and after it takes effect."""
    agents, length, width = ops.shape
    rows = ops.reshape(-1, width)
    effect = _effect_of(ops, kind).reshape(-1)
    need, change, asks, gives = (jnp.asarray(table) for table in _effects())

    def act(carry: tuple[Array, Array], row: Int[Array, ""]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        inventory, near = carry
        who, what, op = row // length, effect[row], rows[row]
        before = inventory[who]
        is_done = (before >= need[what]).all() & (near[who] | ~asks[what]).all()
        inventory = inventory.at[who].add(jnp.where(is_done, change[what], 0))
        near = near.at[who].set(near[who] | (gives[what] & is_done))
        # 5: a share moves what there is of what was asked for.
        to, item = op[1], op[2]
        is_share = (op[0] == Op.SHARE) & (to >= 0) & (to < agents) & (item >= 0) & (item < len(Item))
        to, item = jnp.where(is_share, to, 0), jnp.where(is_share, item, 0)
        moved = jnp.where(is_share, jnp.clip(jnp.maximum(op[3], 1), 0, jnp.maximum(before[item], 0)), 0)
        inventory = inventory.at[who, item].add(-moved).at[to, item].add(moved)
        return (inventory, near), (before, inventory[who])

    start = (team.inventory.astype(jnp.int32), team.near)
    return timeline.in_order(course, remains, act, start)[1]


def _effects() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """5: of each effect what it needs and changes [E, 16], the stations that it needs and brings [E, 2]; 0 is none.

    The effects are those of collecting each of `YIELDS`, of `CRAFTS` and of `PLACES`, in this order.
    """
    size = 1 + len(YIELDS) + len(CRAFTS) + len(PLACES)
    need, change = np.zeros((2, size, len(Item)), np.int32)
    asks, gives = np.zeros((2, size, len(STATIONS)), np.bool_)
    for row, (item, amount, _) in enumerate(YIELDS.values(), 1):
        change[row, item] = amount
    for row, (action, (recipe, station)) in enumerate(CRAFTS.items(), 1 + len(YIELDS)):
        for item, amount in recipe:
            need[row, item] = amount
        change[row] = -need[row]
        change[row, MADE[action]] += 1
        asks[row, STATIONS.index(station)] = True
    for row, (name, (item, amount)) in enumerate(zip(PLACES, RECIPES, strict=True), 1 + len(YIELDS) + len(CRAFTS)):
        need[row, item] = amount
        change[row] = -need[row]
        gives[row] = [station.name.lower() == name for station in STATIONS]
    return need, change, asks, gives


def _effect_of(ops: Int[Array, "A L W"], kind: Int[Array, "A L"]) -> Int[Array, "A L"]:
    """Row of `_effects` of each op; `kind`: type of what it collects."""
    op, first = ops[..., 0], ops[..., 1]
    effect = jnp.zeros_like(op)
    for row, source in enumerate(YIELDS, 1):
        effect = jnp.where((op == Op.COLLECT) & (kind == source), row, effect)
    craft, place = first - min(CRAFTS), first
    is_craft = (op == Op.CRAFT) & (craft >= 0) & (craft < len(CRAFTS))
    is_place = (op == Op.PLACE) & (place >= 0) & (place < len(PLACES))
    effect = jnp.where(is_craft, 1 + len(YIELDS) + craft, effect)
    return jnp.where(is_place, 1 + len(YIELDS) + len(CRAFTS) + place, effect)


def meetings(config: RepairConfig, known: Known, views: PlanViews, seen: Prediction) -> tuple[Array, windows.Window]:
    """5: the task that each row collects from (int32[N], -1: none), and the steps at which most of these meet."""
    collects = seen.remains & (views.plan.ops[..., 0] == Op.COLLECT)
    task = jnp.where(collects, seen.aims.task, NOTHING).reshape(-1)
    start, end = seen.timeline.start.reshape(-1), seen.timeline.end.reshape(-1)
    agents, tolerance = views.plan.ops.shape[0], config.temporal_tolerance
    # rows stand for their tasks, as there are fewer
    group = first_with(task, known.num_tasks)
    return task, windows.choose(group, start, end, tolerance, agents, task.shape[0], "actions")


def estimate(
    config: RepairConfig, known: Known, seen: Prediction, task: Int[Array, " N"], window: windows.Window
) -> Evaluation:
    """5: constraints of every task that a viewed plan collects from; the last two arguments are from `meetings`."""
    agents, facts = seen.remains.shape[0], known.facts(task)
    group, groups = first_with(task, known.num_tasks), task.shape[0]
    position = seen.timeline.after.reshape(-1, 2)
    gap = jnp.abs(position - facts.place).sum(-1)
    near = window.inside & facts.is_placed & (gap <= facts.reach + config.spatial_tolerance)
    able = window.inside & is_met(facts.tools, tools_held(seen.before))
    flags = {Constraint.SPATIAL: near, Constraint.TEMPORAL: window.inside, Constraint.DEPENDENCY: able}
    required = jnp.where(task >= 0, facts.required, 0)
    is_free = facts.tools & ALL == 0
    score, named = [], []
    for constraint in SCORED:
        count = windows.distinct_agents(group, flags[constraint], agents, groups)
        ratio = count.astype(jnp.float32) / jnp.maximum(required, 1).astype(jnp.float32)
        score.append(jnp.where(is_free, 1.0, ratio) if constraint == Constraint.DEPENDENCY else ratio)
        # 5: whoever satisfies it, or else everybody in the window.
        named.append(windows.by_agent(group, jnp.where(count > 0, flags[constraint], window.inside), agents))
    is_row = task >= 0
    checked = jnp.broadcast_to(is_row[:, None], (task.shape[0], len(SCORED)))
    scores = jnp.where(checked, jnp.stack(score, axis=-1), 0.0).astype(jnp.float32)
    return Evaluation(
        task=task,
        first=window.first,
        required=required,
        kind=jnp.where(is_row, facts.kind, NOTHING),
        checked=checked,
        score=scores,
        failed=config.fails(scores) & checked,
        named=jnp.stack(named, axis=-1) & checked,
    )
