"""What a repair check found, and what it advises, with names instead of numbers; host side, plain numpy.

Axes: A agents, L ops of a plan, N = A * L planned ops, row `agent * L + op`.
Numbers are sections of docs/coop2_repair.md.  Take the arrays of one episode to the host first (`jax.device_get`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxcoop.cognition.logs import agent_name
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cooperation import Constraint
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.envs.macrafter import guidance_text
from jaxcoop.envs.macrafter.config import requirements
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.goals import NAMES
from jaxcoop.envs.macrafter.guidance import Advice
from jaxcoop.envs.macrafter.guidance_text import names_of, numbers_of, tool_names
from jaxcoop.envs.macrafter.repair import Check
from jaxcoop.envs.macrafter.tools import ALL, required_tools
from jaxcoop.envs.macrafter.types import MATERIAL_MASK
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary, kind_name

ORDER = (Constraint.TEMPORAL, Constraint.SPATIAL, Constraint.DEPENDENCY)
"""5: results of a task come in this order."""

MAX_BLOCKED = 3
"""10: candidates that are listed while tools are missing."""


@dataclasses.dataclass(frozen=True)
class Naming:
    """What the numbers of an episode stand for."""

    words: MACrafterVocabulary
    task: Callable[[int], str]  # id of a task slot
    tools: Callable[[int], int]  # its requirement, as in `tools`
    reach: Callable[[int], int]  # distance from which it is collected


def map_naming(env: MACrafter, material: np.ndarray) -> Naming:
    """Names for the tasks of a map (`State.material`)."""
    needs, cells = requirements(env.settings.tasks), np.asarray(material).reshape(-1) & MATERIAL_MASK
    return Naming(
        words=MACrafterVocabulary(env, NAMES),
        task=lambda slot: str(slot + 1),
        tools=lambda slot: required_tools(needs[int(cells[slot])]),
        reach=lambda slot: env.distance,
    )


def results(config: RepairConfig, naming: Naming, check: Check) -> list[dict[str, Any]]:
    """5: every result, in the order of task slots."""
    return [_result(config, naming, check, row, constraint) for row in _tasks(check) for constraint in ORDER]


def _tasks(check: Check) -> list[int]:
    """Rows that represent the tasks, in the order of these."""
    rows = np.flatnonzero(check.evaluation.first)
    return [int(row) for row in rows[np.argsort(np.asarray(check.evaluation.task)[rows], kind="stable")]]


def _result(config: RepairConfig, naming: Naming, check: Check, row: int, constraint: Constraint) -> dict[str, Any]:
    evaluation, column = check.evaluation, SCORED.index(constraint)
    slot, required = int(evaluation.task[row]), int(evaluation.required[row])
    details = {Constraint.TEMPORAL: _meeting, Constraint.SPATIAL: _distance, Constraint.DEPENDENCY: _tool}
    return {
        "task_id": naming.task(slot),
        "constraint_type": constraint.name.lower(),
        "agents": names_of(_named(check, slot, column)),
        "required_agents": required,
        # the ratio of whole numbers again
        "score": round(float(evaluation.score[row, column]) * required) / required,
        "satisfied": not evaluation.failed[row, column],
        "metadata": details[constraint](config, naming, check, row),
    }


def _named(check: Check, slot: int, column: int) -> np.ndarray:
    """Agents that a result names."""
    evaluation = check.evaluation
    rows = np.asarray((evaluation.task == slot) & evaluation.named[:, column])
    return np.asarray(rows.reshape(len(check.prediction.remains), -1).any(1))


def _meeting(config: RepairConfig, naming: Naming, check: Check, row: int) -> dict[str, Any]:
    """When a task is planned to be collected, and the window that was chosen."""
    del naming
    mine = np.asarray(check.evaluation.task == check.evaluation.task[row])
    inside = np.asarray(check.prediction.timeline.start).reshape(-1)[mine & np.asarray(check.window.inside)]
    return {
        "collect_steps": {str(step): who for step, who in _collect_steps(check, row).items()},
        "planned_agents": names_of(mine.reshape(len(check.prediction.remains), -1).any(1)),
        "selected_step": int(check.window.anchor[row]),
        "selected_window": [int(inside.min()), int(inside.max())],
        "temporal_tolerance": config.temporal_tolerance,
    }


def _distance(config: RepairConfig, naming: Naming, check: Check, row: int) -> dict[str, Any]:
    reach = naming.reach(int(check.evaluation.task[row]))
    return {
        "distance_threshold": reach,
        "effective_distance_threshold": reach + config.spatial_tolerance,
        "selected_step": int(check.window.anchor[row]),
        "spatial_tolerance": config.spatial_tolerance,
    }


def _tool(config: RepairConfig, naming: Naming, check: Check, row: int) -> dict[str, Any]:
    del config
    tools = tool_names(naming.tools(int(check.evaluation.task[row])) & ALL)
    return {
        "required_tool": tools[0] if len(tools) == 1 else tools,
        "selected_step": int(check.window.anchor[row]),
    }


def _collect_steps(check: Check, row: int) -> dict[int, list[str]]:
    """First steps of the collects of a task with their agents, in the order in which plans have them."""
    steps: dict[int, set[str]] = {}
    length, start = check.prediction.remains.shape[1], np.asarray(check.prediction.timeline.start).reshape(-1)
    for other in np.flatnonzero(check.evaluation.task == check.evaluation.task[row]):
        steps.setdefault(int(start[other]), set()).add(agent_name(int(other) // length))
    return {step: sorted(who) for step, who in steps.items()}


def guidance(config: RepairConfig, naming: Naming, check: Check, advice: Advice) -> dict[str, Any]:
    """10: what a repair channel is told; parts that are empty are left out."""
    failing = [row for row in _tasks(check) if check.evaluation.failed[row].any()]
    dependency = SCORED.index(Constraint.DEPENDENCY)
    lacking = [row for row in failing if check.evaluation.failed[row, dependency]]
    numbers = np.flatnonzero(advice.candidates.found)
    found = [guidance_text.candidate(config, naming.words, advice, int(k)) for k in numbers]
    members = numbers_of(advice.guidance.has_plan)
    parts = {
        "strategy": "dependency_first" if lacking else "soft_sync",
        "task_hints": [_task_hint(config, naming, check, row) for row in failing],
        "dependency_prerequisites": [_dependency_hint(naming, check, advice, row) for row in lacking],
        "recommended_target": found[0] if found else None,
        "recommended_plans": {agent_name(i): guidance_text.plan(naming.words, advice, i) for i in members},
        "reachable_shared_targets": [] if lacking else found,
        "blocked_targets_after_prerequisites": found[:MAX_BLOCKED] if lacking else [],
    }
    return {name: part for name, part in parts.items() if part}


def _task_hint(config: RepairConfig, naming: Naming, check: Check, row: int) -> dict[str, Any]:
    """10: which constraints of a task fail, and when its collects are planned if they do not meet."""
    evaluation, slot = check.evaluation, int(check.evaluation.task[row])
    failed = [constraint for column, constraint in enumerate(SCORED) if evaluation.failed[row, column]]
    agents = {name for c in failed for name in names_of(_named(check, slot, SCORED.index(c)))}
    steps: dict[str, int] = {}
    if Constraint.TEMPORAL in failed:
        for step, who in _collect_steps(check, row).items():
            steps.update(dict.fromkeys(who, step))
    spread = max(steps.values()) - min(steps.values()) if steps else None
    hint = {
        "task_id": naming.task(slot),
        "constraints": sorted(constraint.name.lower() for constraint in failed),
        "agents": sorted(agents),
        "collect_steps_by_agent": {name: steps[name] for name in sorted(steps)},
        "gap_advice": spread is not None and spread > config.temporal_tolerance,
    }
    return hint if spread is None else {**hint, "predicted_collect_spread": spread}


def _dependency_hint(naming: Naming, check: Check, advice: Advice, row: int) -> dict[str, Any]:
    """10: for each agent with a plan how it gets the tools of a task."""
    slot = int(check.evaluation.task[row])
    tools, members = naming.tools(slot), numbers_of(advice.members.is_available)
    return {
        "task_id": naming.task(slot),
        "target_type": kind_name(int(check.evaluation.kind[row])),
        "required_agents": int(check.evaluation.required[row]),
        **guidance_text.requirement(tools),
        "agent_prerequisites": [guidance_text.tool_hint(tools, advice, i) for i in members],
    }
