"""Recorded checks of MA-Crafter plans: predicted events, results, guidance, channel.

The recorded tasks are a list with ids, amounts and distances of their own; the steps to them are straight lines.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_cases import affected, names, number_of, of_group, plan_views
from flax import struct

from jaxcoop.cognition.repair.config import PRESETS, RepairConfig
from jaxcoop.cognition.repair.controller import channel
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.envs.macrafter import repair_text
from jaxcoop.envs.macrafter.config import TOOLS
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.goals import NAMES
from jaxcoop.envs.macrafter.guidance import Members, Targets, advise, planned_tools
from jaxcoop.envs.macrafter.ids import KINDS, Places
from jaxcoop.envs.macrafter.prediction import Facts, Team
from jaxcoop.envs.macrafter.repair import check_plans, failing_kinds
from jaxcoop.envs.macrafter.skills import GOT_FROM, Op
from jaxcoop.envs.macrafter.tools import WIDTH
from jaxcoop.envs.macrafter.types import ITEM_NAMES, PLACES, Action, Item
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary, kind_name

CASES = pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("repair.macrafter"))
AGENTS, OPS, TASKS, MOST = 6, 12, 5, 3
"""Sizes that hold every recorded case; MOST is the largest number of agents that a task takes."""


@struct.dataclass
class ListTasks:
    """`Known` of a list of tasks with ids of their own; there are no other objects."""

    ident: Any  # [M], 0 for none
    every: Facts  # [M]

    @property
    def num_tasks(self):
        return TASKS

    def task_of(self, ident):
        same = (ident[..., None] == self.ident) & (ident > 0)[..., None]
        return jnp.where(same.any(-1), jnp.argmax(same, -1), -1).astype(jnp.int32)

    def only_task(self, kind):
        same = (kind[..., None] == self.every.kind) & (self.ident > 0)
        return jnp.where(same.sum(-1) == 1, jnp.argmax(same, -1), -1).astype(jnp.int32)

    def object_of(self, kind, ident):
        nowhere = jnp.full(ident.shape, -1, jnp.int32)
        return Places(nowhere >= 0, nowhere, nowhere)

    def facts(self, slot):
        return jax.tree.map(lambda values: values[slot], self.every)


def tasks_of(world):
    ident, place = np.zeros(TASKS, np.int32), np.zeros((TASKS, 2), np.int32)
    kind, required, tools, reach = np.full(TASKS, -1, np.int32), *np.zeros((3, TASKS), np.int32)
    is_placed = np.zeros(TASKS, bool)
    for slot, task in enumerate(world["tasks"]):
        ident[slot], kind[slot], required[slot] = task["task_id"], KINDS[task["target_type"]], task["required_agents"]
        tools[slot] = 1 << list(TOOLS).index(task["tool"]) if task.get("tool") else 0
        reach[slot], is_placed[slot] = task.get("distance_threshold", 1), task["position"] is not None
        place[slot] = task["position"] or 0
    facts = Facts(kind, required, tools, place, is_placed, reach)
    return ListTasks(ident, facts)


def team_of(world):
    position, inventory, near = (
        np.zeros((AGENTS, 2), np.int32),
        np.zeros((AGENTS, 16), np.int32),
        np.zeros((AGENTS, 2), bool),
    )
    for agent, state in world["states"].items():
        i = number_of(agent)
        position[i] = state["position"]
        for item, count in state["inventory"].items():
            inventory[i, ITEM_NAMES.index(item)] = count
        near[i] = [name in state["metadata"]["nearby_utilities"] for name in ("table", "furnace")]
    return Team(position, inventory, near)


def row(action):
    """A recorded op as a row; a collect may name the type instead of the item."""
    args, kind = action["args"], Op[action["action_type"].upper()]
    words = {
        Op.NOOP: lambda: [],
        Op.MOVE: lambda: [Action[f"MOVE_{args['direction'].upper()}"], args["num_steps"]],
        Op.NAVIGATE: lambda: [KINDS[args["object_type"]], args["item_id"], args["timeout"]],
        Op.COLLECT: lambda: [item_of(args["target"]), args.get("task_id", -1), args.get("steps", -1)],
        Op.CRAFT: lambda: [Action[f"MAKE_{args['object_type'].upper()}"]],
        Op.PLACE: lambda: [PLACES.index(args["object_type"])],
        Op.SHARE: lambda: [
            number_of(args["recipient_agent_id"]), ITEM_NAMES.index(args["resource_type"]), args["quantity"]
        ],
    }[kind]()  # fmt: skip
    return [kind, *words, *[-1] * (WIDTH - 1 - len(words))]


def item_of(name):
    return GOT_FROM[KINDS[name]] if KINDS.get(name) in GOT_FROM else Item[name.upper()]


@partial(jax.jit, static_argnums=0)
def checked(config, tasks, views, team, step):
    return check_plans(config, tasks, views, team, step)


@partial(jax.jit, static_argnums=0)
def advised(config, tasks, views, team, check):
    facts = tasks.every
    gap = jnp.abs(team.position[:, None] - facts.place).sum(-1)
    steps = jnp.where(facts.is_placed, jnp.maximum(gap - facts.reach, 0), -1)
    is_wanted = failing_kinds(check.evaluation)[facts.kind] & facts.is_placed & (tasks.ident > 0)
    targets = Targets(
        is_wanted=is_wanted,
        kind=facts.kind,
        required=facts.required,
        tools=facts.tools,
        place=facts.place,
        reach=facts.reach,
        ident=tasks.ident,
        order=text_ranks(tasks.ident),
    )
    members = Members(
        is_available=views.is_viewed,
        inventory=team.inventory,
        near=team.near,
        planned=planned_tools(views.plan.ops, remaining(views)),
    )
    return advise(config.temporal_tolerance, MOST, targets, steps, members, OPS)


def text_ranks(ident):
    """Places of the recorded ids, all of one or two digits, as text."""
    key = jnp.where(ident < 10, ident * 100, ident * 10)
    return jnp.argsort(jnp.argsort(key)).astype(jnp.int32)


@dataclasses.dataclass
class Replay:
    """What becomes of a recorded case here."""

    config: RepairConfig
    naming: repair_text.Naming
    views: Any
    check: Any
    advice: Any


@pytest.fixture
def replay(case):
    world = case["input"]["world"]
    config = dataclasses.replace(PRESETS["macrafter"], **world.get("cfg", {}))
    tasks, team = tasks_of(world), team_of(world)
    views = plan_views(views_of(case), AGENTS, OPS, row, lambda view: [-1] * 3, WIDTH)
    check = checked(config, tasks, views, team, case["input"]["env_step"])
    advice = advised(config, tasks, views, team, check)
    naming = repair_text.Naming(
        words=MACrafterVocabulary(MACrafter(), NAMES),
        task=lambda slot: str(tasks.ident[slot]),
        tools=lambda slot: int(tasks.every.tools[slot]),
        reach=lambda slot: int(tasks.every.reach[slot]),
    )
    return Replay(config, naming, views, *jax.device_get((check, advice)))


class Held:
    """An inventory, equal to a recorded one that may list zeros."""

    def __init__(self, row):
        self.items = {ITEM_NAMES[item]: int(row[item]) for item in np.flatnonzero(row)}

    def __eq__(self, recorded):
        return self.items == {name: count for name, count in recorded.items() if count}

    def __repr__(self):
        return repr(self.items)


def views_of(case):
    return case["input"]["plan_views"]


def target_type(case, aims, action, agent, op):
    """What a recorded event calls its target."""
    named = [action["args"].get(name) for name in ("resource_type", "object_type", "target")]
    kind = int(aims.kind[agent, op])
    return kind_name(kind) if kind >= 0 else next(filter(None, named), None)


@CASES
def test_coop2_macrafter_events_are_those_predicted(case, replay):
    seen, course = replay.check.prediction, replay.check.prediction.timeline
    tasks = {str(task["task_id"]) for task in case["input"]["world"]["tasks"]}
    recorded = iter(case["expected"]["evaluation"]["metadata"]["prediction"]["events"])
    for view in case["input"]["plan_views"]:
        agent = number_of(view["agent_id"])
        assert seen.remains[agent].sum() == len(view["actions"])
        for op, action in enumerate(view["actions"]):
            want, n, task = next(recorded), agent * OPS + op, seen.aims.task[agent, op]
            assert want == {
                "agent_id": view["agent_id"],
                "action_type": action["action_type"],
                "start_step": course.start[agent, op],
                "end_step": course.end[agent, op],
                "position_before": course.before[agent, op].tolist(),
                "position_after": course.after[agent, op].tolist(),
                # an id that is no task's has no slot
                "task_id": replay.naming.task(task) if task >= 0 or want["task_id"] in tasks else want["task_id"],
                "target_type": target_type(case, seen.aims, action, agent, op),
                "inventory_before": Held(seen.before[n]),
                "inventory_after": Held(seen.after[n]),
            }
    assert next(recorded, None) is None


@CASES
def test_coop2_macrafter_plans_end_as_predicted(case, replay):
    course, after = replay.check.prediction.timeline, replay.check.prediction.after.reshape(AGENTS, OPS, -1)
    last = {view["agent_id"]: (number_of(view["agent_id"]), len(view["actions"]) - 1) for view in views_of(case)}
    # what another agent gave away or took when an agent's own plan was over shows in no event
    assert case["expected"]["evaluation"]["metadata"]["prediction"]["final"] == {
        agent: [course.after[at].tolist(), Held(after[at])] for agent, at in last.items()
    }


@CASES
def test_coop2_macrafter_results_are_those_recorded(case, replay):
    want = case["expected"]["evaluation"]
    got = repair_text.results(replay.config, replay.naming, replay.check)
    for result in got:
        del result["required_agents"]
        result |= {"has_reason": not result["satisfied"], "score": pytest.approx(result["score"], abs=1e-9)}
    assert got == want["results"]
    assert [result for result in got if not result["satisfied"]] == want["failures"]
    assert want["should_repair"] == bool(want["failures"])
    assert affected(replay.check.evaluation, AGENTS) == want["affected_agents"]
    times = {result["task_id"]: result["metadata"] for result in got if result["constraint_type"] == "temporal"}
    assert want["metadata"]["task_event_summary"] == times
    assert want["metadata"]["tasks_evaluated"] == sorted(times)
    assert want["metadata"]["unresolved_agents"] == []


@CASES
def test_coop2_macrafter_guidance_is_that_recorded(case, replay):
    fails = bool(replay.check.evaluation.failed.any())
    got = repair_text.guidance(replay.config, replay.naming, replay.check, replay.advice) if fails else None
    assert got == case["expected"]["guidance"]


@CASES
def test_coop2_macrafter_channel_is_that_recorded(case, replay):
    fails = bool(replay.check.evaluation.failed.any())
    members = names(channel(replay.views, replay.advice.guidance, replay.check.evaluation)) if fails else None
    assert members == case["expected"]["channel"]
