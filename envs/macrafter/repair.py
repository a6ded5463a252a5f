"""The repair check of MA-Crafter: predicted constraints and advice, from the state of an episode.

Axes: A agents, L ops of a plan, M = W * H task slots (cells), N = A * L planned ops.
Numbers are sections of docs/coop2_repair.md.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8

from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.cognition.repair.windows import Window
from jaxcoop.cognition.types import PlanViews, no_plan
from jaxcoop.core.rarely import rarely
from jaxcoop.envs.macrafter import ids, players
from jaxcoop.envs.macrafter.config import Settings, requirements
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.fields import steps_to_cells
from jaxcoop.envs.macrafter.guidance import Advice, Members, Targets, advise, planned_tools
from jaxcoop.envs.macrafter.prediction import Facts, Known, Prediction, Team, estimate, meetings, predict
from jaxcoop.envs.macrafter.tasks import TASK_MATERIALS
from jaxcoop.envs.macrafter.tools import STATIONS, required_tools
from jaxcoop.envs.macrafter.types import Material, State, Thing, material_of

NUM_KINDS = max(Thing) + 1
"""Types of targets have numbers below this."""


@dataclasses.dataclass(frozen=True)
class MapTasks(Known):
    """Every resource and water cell of a map is a task, as in `tasks.table`; its id is one more than its slot."""

    settings: Settings
    state: State

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.settings.cells

    def task_of(self, ident: Int[Array, "..."]) -> Int[Array, "..."]:
        """The cell with the id, if it is a task."""
        is_cell = (ident >= 1) & (ident <= self.settings.cells)
        slot = jnp.where(is_cell, ident - 1, 0)
        return jnp.where(is_cell & (self._required[self._material(slot)] > 0), slot, -1)

    def only_task(self, kind: Int[Array, "..."]) -> Int[Array, "..."]:
        """The cell, if just one is of the type; costs nothing where no type is given."""
        asks = (kind >= 0).any()
        return jnp.where(asks, rarely(_only_cells, asks, self.state.material, kind), -1)

    def object_of(self, kind: Int[Array, "..."], ident: Int[Array, "..."]) -> ids.Places:
        """Whatever `navigate` finds."""
        found = ids.resolve(self.state, kind.reshape(-1), ident.reshape(-1))
        return ids.Places(*(x.reshape(kind.shape) for x in (found.found, found.x, found.y)))

    def facts(self, slot: Int[Array, "..."]) -> Facts:
        """What its material takes."""
        slot = jnp.maximum(slot, 0)
        kind = self._material(slot)
        height = self.settings.height
        return Facts(
            kind=kind,
            required=self._required[kind],
            tools=self._tools[kind],
            place=jnp.stack([slot // height, slot % height], axis=-1),
            is_placed=jnp.ones(slot.shape, jnp.bool_),
            reach=jnp.full(slot.shape, self.settings.distance, jnp.int32),
        )

    def _material(self, slot: Int[Array, "..."]) -> Int[Array, "..."]:
        return material_of(self.state.material.reshape(-1)[slot]).astype(jnp.int32)

    @property
    def _required(self) -> Array:
        """Agents by material, 0 where it is no task."""
        return self._by_material("required")

    @property
    def _tools(self) -> Array:
        return self._by_material("tools")

    def _by_material(self, what: str) -> Array:
        needs = requirements(self.settings.tasks)
        table = np.zeros(len(Material), np.int32)
        for kind in TASK_MATERIALS:
            table[kind] = needs[kind].agents if what == "required" else required_tools(needs[kind])
        return jnp.asarray(table)


def _only_cells(cells: UInt8[Array, "W H"], kind: Int[Array, "..."]) -> Int[Array, "..."]:
    """The cell of each type if just one is made of it, -1."""
    material = material_of(cells.reshape(-1))
    places = jnp.arange(material.shape[0], dtype=jnp.int32)
    slot = jnp.full(kind.shape, -1, jnp.int32)
    for task in TASK_MATERIALS:
        here = material == task
        is_only = here.sum(dtype=jnp.int32) == 1
        slot = jnp.where((kind == task) & is_only, jnp.where(here, places, 0).sum(dtype=jnp.int32), slot)
    return slot


def team_of(settings: Settings, state: State) -> Team:
    """Where the agents are, and what they have."""
    block = players.neighbourhood(settings, state.x, state.y)
    material = material_of(state.material.reshape(-1)[jnp.minimum(block, settings.cells - 1)])
    inside = block < settings.cells
    near = [(inside & (material == station)).any(1) for station in STATIONS]
    return Team(
        position=jnp.stack([state.x, state.y], axis=-1).astype(jnp.int32),
        inventory=state.inventory.astype(jnp.int32),
        near=jnp.stack(near, axis=-1),
    )


@struct.dataclass
class Check:
    """An evaluation, and what it comes from."""

    evaluation: Evaluation
    prediction: Prediction
    window: Window


def evaluate(env: MACrafter, config: RepairConfig, state: State, views: PlanViews) -> Evaluation:
    """5: which constraints of which tasks the viewed plans will meet.  Slots are cells, as in `env.tasks`."""
    return check_plans(config, MapTasks(env.settings, state), views, team_of(env.settings, state), state.t).evaluation


def check_plans(config: RepairConfig, known: Known, views: PlanViews, team: Team, step: Int[Array, ""]) -> Check:
    """3, 5: the viewed plans played forward from a step on, and judged."""
    seen = predict(known, views, team, step)
    task, window = meetings(config, known, views, seen)
    return Check(estimate(config, known, seen, task, window), seen, window)


def guide(
    env: MACrafter,
    config: RepairConfig,
    state: State,
    views: PlanViews,
    evaluation: Evaluation,
    asks: Bool[Array, ""] | None = None,
) -> Advice:
    """10: what a repair channel is advised to do; `.guidance` is what the engine needs.

    Steps are those of the ways that `navigate` would take now.  An episode that does not ask costs nothing and gets
    no advice; by default those ask in which something fails.
    """
    asks = evaluation.failed.any() if asks is None else asks
    advice = rarely(partial(_guide, env, config), asks, state, views, evaluation)
    agents, length, width = views.plan.ops.shape
    nothing = jax.tree.map(jnp.zeros_like, advice.guidance)
    nothing = nothing.replace(target=nothing.target - 1, plan=no_plan(agents, length, width))
    guidance = jax.tree.map(lambda some, none: jnp.where(asks, some, none), advice.guidance, nothing)
    return advice.replace(guidance=guidance)


def _guide(env: MACrafter, config: RepairConfig, state: State, views: PlanViews, evaluation: Evaluation) -> Advice:
    settings, team = env.settings, team_of(env.settings, state)
    targets = map_targets(settings, state, failing_kinds(evaluation))
    members = Members(
        is_available=views.is_viewed,
        inventory=team.inventory,
        near=team.near,
        planned=planned_tools(views.plan.ops, remaining(views)),
    )
    needs = requirements(settings.tasks)
    most = max(needs[kind].agents for kind in TASK_MATERIALS)
    steps = steps_to_cells(state, settings.distance, views.is_viewed)
    return advise(config.temporal_tolerance, most, targets, steps, members, views.plan.ops.shape[1])


def failing_kinds(evaluation: Evaluation) -> Bool[Array, " 19"]:
    """10: the types of failing tasks, all types if none of these has one."""
    fails = evaluation.failed.any(1) & (evaluation.kind >= 0)
    kinds = jnp.arange(NUM_KINDS, dtype=jnp.int32)
    found = (fails[:, None] & (evaluation.kind[:, None] == kinds)).any(0)
    return found | ~found.any()


def map_targets(settings: Settings, state: State, kinds: Bool[Array, " 19"]) -> Targets:
    """The tasks of a map whose type is one of `kinds`."""
    slots = jnp.arange(settings.cells, dtype=jnp.int32)
    facts = MapTasks(settings, state).facts(slots)
    names = [str(slot + 1) for slot in range(settings.cells)]
    order = np.argsort(sorted(range(len(names)), key=names.__getitem__)).astype(np.int32)
    return Targets(
        is_wanted=kinds[facts.kind] & (facts.required > 0),
        kind=facts.kind,
        required=facts.required,
        tools=facts.tools,
        place=facts.place,
        reach=facts.reach,
        ident=slots + 1,
        order=jnp.asarray(order),
    )
