"""What a repair check in CUBE found, and what it advises, with names instead of numbers; host side, plain numpy.

Axes: A agents, L ops of a plan, N = A * L planned ops, row `agent * L + op`.
Numbers are sections of docs/coop2_repair.md.  Take the arrays of one episode to the host first (`jax.device_get`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cooperation.constraints import SCORED, Constraint
from jaxcoop.envs.cube.guidance import Advice
from jaxcoop.envs.cube.repair import Prediction
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.text import agent_name, op_action, task_id
from jaxcoop.envs.cube.types import FACES


def results(config: RepairConfig, evaluation: Evaluation, found: Prediction) -> list[dict[str, Any]]:
    """4: every result, by the ids of tasks as text."""
    summary = summaries(config, evaluation, found)
    listed = []
    for row in _tasks(evaluation):
        name = _name(evaluation.task[row])
        for column, constraint in enumerate(SCORED):
            required, score = int(evaluation.required[row]), float(evaluation.score[row, column])
            listed.append(
                {
                    "task_id": name,
                    "constraint_type": constraint.name.lower(),
                    "agents": _agents(found, (evaluation.task == evaluation.task[row]) & evaluation.named[:, column]),
                    "required_agents": required,
                    "score": round(score * required) / required,  # the ratio of whole numbers again
                    "satisfied": not evaluation.failed[row, column],
                    "metadata": _details(constraint, summary[name]),
                }
            )
    return listed


def summaries(config: RepairConfig, evaluation: Evaluation, found: Prediction) -> dict[str, dict[str, Any]]:
    """4: what is planned for each task with a push: who, when, and who meets."""
    length = found.block.shape[1]
    start, end = (np.asarray(x).reshape(-1) for x in (found.timeline.start, found.timeline.end))
    told = {}
    for row in _tasks(evaluation):
        mine = np.asarray(evaluation.task == evaluation.task[row])
        told[_name(evaluation.task[row])] = {
            "planned_agents": _agents(found, mine),
            # of an agent with several pushes the last one
            "push_intervals": {agent_name(r // length): [int(start[r]), int(end[r])] for r in _numbers(mine)},
            "selected_step": int(found.window.anchor[row]),
            "spatial_agents": _agents(found, mine & found.near),
            "synchronized_agents": _agents(found, mine & found.window.inside),
            "temporal_tolerance": config.temporal_tolerance,
        }
    return told


def guidance(weights: Sequence[int], evaluation: Evaluation, advice: Advice) -> dict[str, Any]:
    """9: what a repair channel is told; `weights` are those of the blocks."""
    members = _numbers(advice.guidance.has_plan)
    return {
        "strategy": "align_push",
        "task_hints": [
            {
                "task_id": _name(evaluation.task[row]),
                "block_id": int(evaluation.task[row]) // NUM_FACES,
                "face": FACES[int(evaluation.task[row]) % NUM_FACES],
                "constraint": constraint.name.lower(),
                "required_agents": int(evaluation.required[row]),
            }
            for row in _tasks(evaluation)
            for column, constraint in enumerate(SCORED)
            if evaluation.failed[row, column]
        ],
        "recommended_target": _target(weights, advice) if advice.guidance.has_target else None,
        "recommended_plans": {agent_name(i): _plan(advice, i) for i in members},
    }


def _target(weights: Sequence[int], advice: Advice) -> dict[str, Any]:
    """The recommended block; cells are missing where the team finds its places by itself."""
    slot = int(advice.guidance.target)
    block, members = slot // NUM_FACES, _sorted_names(advice.guidance.participants)
    cells = {agent_name(i): advice.team.cell[i].tolist() for i in _numbers((advice.team.cell >= 0).all(1))}
    return {
        "task_id": _name(slot),
        "target_id": str(block),
        "target_type": f"weight_{weights[block]}",
        "required_agents": int(weights[block]),
        "participants": members,
        "cell_assignments": cells,
        "synchronize_push_at_step": int(advice.push_at),
    }


def _plan(advice: Advice, agent: int) -> dict[str, Any]:
    """A recommended plan."""
    plan, cell = advice.guidance.plan, advice.team.cell[agent]
    actions = [op_action(row) or {} for row in plan.ops[agent, : plan.length[agent]]]
    said: dict[str, Any] = {
        "actions": [{"action_type": action.pop("action_type"), "args": action} for action in actions],
        "synchronize_push_at_step": int(advice.push_at),
    }
    return said | ({"assigned_face_cell": cell.tolist()} if (cell >= 0).all() else {})


def _tasks(evaluation: Evaluation) -> list[int]:
    """Rows that represent the tasks, by the ids of these as text."""
    return sorted(_numbers(evaluation.first), key=lambda row: _name(evaluation.task[row]))


def _details(constraint: Constraint, summary: dict[str, Any]) -> dict[str, Any]:
    """What is known of a result beside its score."""
    step = summary["selected_step"]
    if constraint == Constraint.SPATIAL:
        return {"selected_step": step, "spatial_agents": summary["spatial_agents"]}
    if constraint == Constraint.TEMPORAL:
        return {
            "pushing_agents": summary["synchronized_agents"],
            "selected_step": step,
            "temporal_tolerance": summary["temporal_tolerance"],
        }
    return {}


def _name(slot: Any) -> str:
    return task_id(*divmod(int(slot), NUM_FACES))


def _agents(found: Prediction, rows: Any) -> list[str]:
    """Agents with one of these rows."""
    return _sorted_names(np.asarray(rows).reshape(found.block.shape).any(1))


def _sorted_names(flags: Any) -> list[str]:
    return sorted(map(agent_name, _numbers(flags)))


def _numbers(flags: Any) -> list[int]:
    """Indices of flags that are set."""
    return [int(i) for i in np.flatnonzero(flags)]
