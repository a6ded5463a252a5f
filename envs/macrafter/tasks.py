"""14: the task set, constraint counts, step metrics and attempt events.

Axes: A agents, M = W*H task slots (cells), E = A rows of events.
The task of a cell is there while the cell is a resource or water; its number is the cell's index.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8

from jaxcoop.cooperation import Attempts, Counts, TaskTable, scores
from jaxcoop.envs.macrafter.collect import Collection, has_tools
from jaxcoop.envs.macrafter.config import TOOLS, Settings, half_points, offsets, requirements
from jaxcoop.envs.macrafter.types import (
    RESOURCE_MASK,
    RESOURCE_SHIFT,
    RESOURCES,
    Action,
    Command,
    Item,
    Material,
    State,
    material_of,
)

TASK_MATERIALS = (*RESOURCES, Material.WATER)

METRICS = (
    "task_set_size",
    "tasks_added",
    "tasks_removed",
    "spatial",
    "temporal",
    "dependency",
    "participation",
    "total_satisfied",
    *(
        f"{kind}_{way}"
        for kind in ("spatial", "temporal", "dependency", "participation")
        for way in ("improved", "worsened")
    ),
    "total_improved",
    "total_worsened",
    "capability_increased",
    "capability_decreased",
)
"""Names of the step metrics, in order."""


@struct.dataclass
class TaskStates:
    """Every cell's task with its counts after a step."""

    active: Bool[Array, " M"]
    required: Int[Array, " M"]  # p; int32, 0 where there is no task
    spatial: Int[Array, " M"]
    temporal: Int[Array, " M"]
    dependency: Int[Array, " M"]
    is_met: Bool[Array, " M"]  # dependency met

    @property
    def ratio(self) -> Float[Array, " M"]:
        """Participation: spatial count / p."""
        return jnp.where(self.active, self.spatial / jnp.maximum(self.required, 1), 0.0).astype(jnp.float32)

    @property
    def status(self) -> Int[Array, " M"]:
        """2 ready, 1 in progress, 0 pending; -1 where there is no task; int8."""
        ready = (self.spatial >= self.required) & (self.temporal >= self.required) & self.is_met
        begun = (self.temporal > 0) | (self.spatial > 0)
        level = jnp.where(ready, jnp.int8(2), begun.astype(jnp.int8))
        return jnp.where(self.active, level, jnp.int8(-1))


def table(settings: Settings, state: State) -> TaskTable:
    """G_t with its requirements; capability is the `Item` of the tool (the best of several), -1 without."""
    material = material_of(state.material.reshape(-1))
    needs, halves = requirements(settings.tasks), half_points(settings.tasks)
    required = np.zeros(len(Material), np.int32)
    capability = np.full(len(Material), -1, np.int32)
    for kind in TASK_MATERIALS:
        required[kind] = needs[kind].agents
        if needs[kind].tools:
            capability[kind] = max(TOOLS[tool] for tool in needs[kind].tools)
    active = jnp.asarray(required)[material] > 0
    cell = jnp.arange(settings.cells, dtype=jnp.int32)
    return TaskTable(
        active=active,
        kind=jnp.where(active, material, 0).astype(jnp.int32),
        place=jnp.stack([cell // settings.height, cell % settings.height], axis=-1),
        required=jnp.asarray(required)[material],
        capability=jnp.asarray(capability)[material],
        value=jnp.asarray(halves)[material].astype(jnp.float32) * 0.5,
    )


def _near_counts(settings: Settings, state: State, who: Bool[Array, " A"]) -> Int[Array, " M"]:
    """How many of the agents `who` are within Manhattan distance D of each cell."""
    steps = np.concatenate([np.zeros((1, 2), np.int16), offsets(settings.distance)])
    x, y = state.x[:, None] + steps[:, 0], state.y[:, None] + steps[:, 1]
    inside = (x >= 0) & (x < settings.width) & (y >= 0) & (y < settings.height) & who[:, None]
    cell = jnp.where(inside, x.astype(jnp.int32) * settings.height + y, settings.cells)
    return jnp.zeros((settings.cells,), jnp.int32).at[cell].add(1, mode="drop")


def task_states(settings: Settings, state: State, collector: Bool[Array, " A"], target: Int[Array, " A"]) -> TaskStates:
    """Counts of every task in a state after a step, in which `collector` collected for the declared `target`s.

    Positions and inventories are those after the step; removed agents do not count.
    """
    alive = ~state.removed
    material = material_of(state.material.reshape(-1))
    needs = requirements(settings.tasks)
    spatial = _near_counts(settings, state, alive)
    declared = collector & (target >= 0) & (target < settings.cells)
    temporal = _near_counts(settings, state, collector & alive & (target < 0))
    temporal = temporal.at[jnp.where(declared & alive, target, settings.cells)].add(1, mode="drop")
    required, dependency = jnp.zeros_like(spatial), jnp.zeros_like(spatial)
    is_met = jnp.zeros(material.shape, jnp.bool_)
    tools = has_tools(settings, state.inventory)
    for kind in TASK_MATERIALS:
        here = material == kind
        count = (tools[kind] & alive).sum(dtype=jnp.int32)
        required = jnp.where(here, needs[kind].agents, required)
        dependency = jnp.where(here, count, dependency)
        is_met = is_met | (here & ((count >= needs[kind].agents) | (not needs[kind].tools)))
    active = required > 0
    return TaskStates(
        active=active,
        required=required,
        spatial=jnp.where(active, spatial, 0),
        temporal=jnp.where(active, temporal, 0),
        dependency=dependency,
        is_met=is_met,
    )


def step_metrics(
    before: TaskStates, after: TaskStates, old: State, new: State
) -> tuple[Int[Array, " 20"], Float[Array, ""]]:
    """Step metrics in the order of `METRICS` (int32), and the mean participation ratio over G_t.

    `before` and `old`: of the previous step, or of the reset.
    """
    both = before.active & after.active
    was_empty = ~before.active.any()
    pairs = (
        (before.spatial, after.spatial),
        (before.temporal, after.temporal),
        (before.dependency, after.dependency),
        (before.ratio, after.ratio),
    )
    begun = [after.active & (value > 0) for _, value in pairs]
    complete = (
        after.active
        & (after.spatial >= after.required)
        & (after.temporal >= after.required)
        & after.is_met
        & (after.dependency >= after.required)
    )
    rose = [both & (b > a) for a, b in pairs]
    fell = [both & (b < a) for a, b in pairs]

    def count(mask: Bool[Array, " M"]) -> Int[Array, ""]:
        return mask.sum(dtype=jnp.int32)

    changes = []
    for up, down, any_progress in zip(rose, fell, begun):
        changes += [jnp.where(was_empty, count(any_progress), count(up)), count(down)]
    any_up, any_down = (jnp.stack(masks).any(0) for masks in (rose, fell))
    difference = new.inventory[:, Item.WOOD :].astype(jnp.int32) - old.inventory[:, Item.WOOD :].astype(jnp.int32)
    difference = jnp.where(new.removed[:, None], 0, difference)
    metrics = [
        count(after.active),
        count(after.active & ~before.active),
        count(before.active & ~after.active),
        *(count(mask) for mask in begun),
        count(complete),
        *changes,
        count(any_up),
        count(any_down),
        jnp.maximum(difference, 0).sum(dtype=jnp.int32),
        jnp.maximum(-difference, 0).sum(dtype=jnp.int32),
    ]
    mean = after.ratio.sum() / jnp.maximum(count(after.active), 1).astype(jnp.float32)
    return jnp.stack(metrics), mean


def known_resource(cell: UInt8[Array, "..."]) -> Int[Array, "..."]:
    """Material of the scored resource that cells are or last were, 0 for none; int32."""
    material = material_of(cell)
    memory = (cell & RESOURCE_MASK) >> RESOURCE_SHIFT
    known = jnp.zeros(cell.shape, jnp.int32)
    for number, kind in enumerate(RESOURCES):
        known = jnp.where((memory == number + 1) | (material == kind), jnp.int32(kind), known)
    for kind in RESOURCES:  # what it is now goes before what it was
        known = jnp.where(material == kind, jnp.int32(kind), known)
    return known


def attempts(
    settings: Settings,
    after: State,
    command: Command,
    done: Collection,
    listed: Bool[Array, " A"],
) -> Attempts:
    """Attempt events of a step, one for each active task that somebody tried to collect.

    Active tasks are the scored ones among `command.plan` of all agents.  A collector attempts its declared target if
    that is active, else the task of its own plan, else every active task whose cell it collected in this step.
    """
    nowhere = settings.cells
    cells = after.material.reshape(-1)
    needs = requirements(settings.tasks)

    def scored(task: Int[Array, " A"]) -> Int[Array, " A"]:
        """The task, -1 unless its cell is known as a scored resource."""
        valid = listed & (task >= 0) & (task < nowhere)
        known = known_resource(cells[jnp.where(valid, task, 0)])
        return jnp.where(valid & (known > 0), task, -1)

    plan = scored(command.plan)
    agents = jnp.arange(plan.shape[0], dtype=jnp.int32)
    same = (plan[:, None] == plan[None, :]) & (plan >= 0)[None, :]  # [A, E]
    first = jnp.where(same, agents[:, None], plan.shape[0]).min(0)
    task = jnp.where((plan >= 0) & (first == agents), plan, -1)  # [E]
    at = jnp.where(task >= 0, task, 0)
    kind = known_resource(cells[at])
    required, is_tool_free = jnp.ones_like(kind), jnp.ones(kind.shape, jnp.bool_)
    holders = jnp.zeros_like(kind)
    tools = has_tools(settings, after.inventory)
    alive = ~after.removed
    for code in RESOURCES:
        here = kind == code
        required = jnp.where(here, needs[code].agents, required)
        is_tool_free = is_tool_free & ~(here & bool(needs[code].tools))
        holders = jnp.where(here, (tools[code] & alive).sum(dtype=jnp.int32), holders)

    collects = (command.action == Action.DO) & listed
    declared = scored(command.target)
    is_active = ((declared[:, None] == task[None, :]) & (task >= 0)).any(1) & (declared >= 0)
    own = jnp.where(is_active, declared, plan)
    got = jnp.zeros(same.shape, jnp.bool_)  # [A, E]: the agent took part in collecting just that
    for column in range(done.cell.shape[1]):
        matches = (done.cell[:, column, None] == task) & (done.code[:, column, None] == kind)
        got = got | (matches & done.received[:, column, None] & (task >= 0))
    tries = collects[:, None] & (task >= 0) & jnp.where((own >= 0)[:, None], own[:, None] == task, got)

    x, y = (at // settings.height).astype(jnp.int32), (at % settings.height).astype(jnp.int32)
    distance = jnp.abs(after.x[:, None] - x) + jnp.abs(after.y[:, None] - y)
    near = ((distance <= settings.distance) & alive[:, None]).sum(0, dtype=jnp.int32)
    is_task = material_of(cells[at]) == kind
    attempting = tries.sum(0, dtype=jnp.int32)
    counts = Counts(
        spatial=jnp.where(is_task, near, 0),
        temporal=attempting,
        dependency=jnp.where(is_tool_free, required, jnp.where(is_task, holders, 0)),
        participation=near,
    )
    success = (tries & got).any(0)
    happened = attempting > 0
    row = jnp.where(tries, agents[None, :], plan.shape[0]).min(1)
    return Attempts(
        task=jnp.where(happened, task, -1),
        required=jnp.where(happened, required, 0),
        attempting=attempting,
        success=success & happened,
        score=jnp.where(success[:, None], jnp.float32(1), scores(required, counts)),
        event=jnp.where(row < plan.shape[0], row, -1),
    )
