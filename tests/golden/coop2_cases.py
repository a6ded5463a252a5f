"""Recorded cases of COOP², and what several of their tests need: ids, plans as rows, results as text."""

import jax.numpy as jnp
import numpy as np
from recorded import lines_of

from jaxcoop.cognition.types import Plan, PlanViews
from jaxcoop.cooperation.constraints import SCORED


def of_group(group):
    """A reader of the cases of one group, by their ids."""

    def read(path):
        return ((case["id"], case) for case in lines_of(path) if case["group"] == group)

    return read


def number_of(agent):
    """agent_3 is number 3."""
    return int(agent.rsplit("_", 1)[1])


def names(members):
    """The ids of flagged agents, sorted as text."""
    return sorted(f"agent_{i}" for i in np.flatnonzero(np.asarray(members)))


def plan_views(views, agents, ops, row, spec, width):
    """`PlanViews` of recorded views: `row(action)` is an op, `spec(view)` what the plan is for."""
    rows = np.full((agents, ops, width), -1, np.int32)
    specs = np.full((agents, 3), -1, np.int32)
    length, number = np.zeros(agents, np.int32), np.zeros(agents, np.int32)
    is_viewed, is_pending = np.zeros(agents, bool), np.zeros(agents, bool)
    for view in views:
        i = number_of(view["agent_id"])
        is_viewed[i], is_pending[i] = True, view.get("status", "pending") == "pending"
        length[i], number[i], specs[i] = len(view["actions"]), view.get("plan_id", 1), spec(view)
        for k, action in enumerate(view["actions"]):
            rows[i, k] = row(action)
    plan = Plan(spec=jnp.asarray(specs), ops=jnp.asarray(rows), length=jnp.asarray(length))
    arrays = [jnp.asarray(x) for x in (is_viewed, is_pending, number, np.zeros(agents, np.int32))]
    return PlanViews(*arrays, plan=plan)


def results(evaluation, task_id, agents):
    """The results of an evaluation as dicts, by its rows; scores are ratios of whole numbers again."""
    found = []
    ids = np.arange(len(evaluation.task)) // (len(evaluation.task) // agents)
    for row in np.flatnonzero(evaluation.first):
        task, required = evaluation.task[row], int(evaluation.required[row])
        for c, constraint in enumerate(SCORED):
            if not evaluation.checked[row, c]:
                continue
            is_listed = (np.asarray(evaluation.task) == task) & np.asarray(evaluation.named)[:, c]
            members = np.isin(np.arange(agents), ids[is_listed])
            found.append(
                {
                    "task_id": task_id(task),
                    "constraint_type": constraint.name.lower(),
                    "agents": names(members),
                    "score": round(float(evaluation.score[row, c]) * required) / required,
                    "satisfied": not evaluation.failed[row, c],
                }
            )
    return found


def affected(evaluation, agents):
    """Ids of the agents that failing results name."""
    flags = np.asarray(evaluation.named & evaluation.failed & evaluation.checked).any(1)
    return names(flags.reshape(agents, -1).any(1))
