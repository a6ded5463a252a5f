"""Recorded calls of the repair controller with the generic estimator: what it evaluates, logs, opens and stamps."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_cases import affected, names, of_group, plan_views, results

from jaxcoop.cognition.repair import controller, generic
from jaxcoop.cognition.repair.config import RepairConfig

AGENTS, OPS = 3, 2
ID_ARGUMENTS = ("task_id", "resource_id", "target_id", "item_id")


@partial(jax.jit, static_argnames=("config", "kinds"))
def call(config, kinds, required, kind, state, views, step):
    """One check; op rows are (is collect, task slot), the second word of a specification is the view's task slot."""
    ops = views.plan.ops
    named = generic.Named(view=views.plan.spec[:, 1], op=ops[..., 1], collects=ops[..., 0] == 1)

    def evaluate():
        return generic.evaluate(config, required, kind, views, named)

    state, decision = controller.check(config, len(required), kinds, state, views, step, evaluate)
    return state, decision, generic.groups(views, named)


class Table:
    """The tasks of a case in slots; an id that is none of them has the slot behind the last one."""

    def __init__(self, tasks):
        self.ids = [task["task_id"] for task in tasks]
        self.kinds = sorted({task["target_type"] for task in tasks})
        self.required = jnp.array([task["required_agents"] for task in tasks], jnp.int32)
        self.kind = jnp.array([self.kinds.index(task["target_type"]) for task in tasks], jnp.int32)

    def slot(self, task_id):
        return -1 if task_id is None else self.ids.index(task_id) if task_id in self.ids else len(self.ids)

    def row(self, action):
        named = next((action["args"][name] for name in ID_ARGUMENTS if name in action["args"]), None)
        return [action["action_type"] == "collect", self.slot(named)]

    def spec(self, view):
        return [-1, self.slot(view.get("task_id")), -1]

    def stamps(self, scope, stamps):
        """Stamped keys as text."""
        types = {"task": [], "task_type": ["task_type:collect"], "target_type": self.kinds}[scope]
        types = [name if scope == "task_type" else f"target_type:{name}" for name in types]
        keys = [*types, *([] if scope == "task_type" else [f"task:{i}" for i in self.ids]), "__unknown_task__"]
        assert len(stamps) in (0, len(keys))
        return {key: int(stamp) for key, stamp in zip(keys, stamps) if stamp != controller.UNSTAMPED}


def trace_of(decision, failures):
    """Types of the logged events in their order."""
    logged = [
        ("pre_execution_prediction", decision.predicted),
        ("pre_execution_check_passed", decision.passed),
        *[("constraint_predicted_failure", decision.failed)] * len(failures),
        ("repair_task_cooldown", decision.cooling),
        ("repair_started", decision.opened),
        ("repair_message", decision.opened),
    ]
    return [name for name, is_logged in logged if is_logged]


@pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("repair.controller"))
def test_controller_calls_replay(case):
    definition = case["input"]["definition"]
    table = Table(definition["tasks"])
    config = RepairConfig.published(definition["config"], definition.get("override"))
    if not definition.get("enabled", True):
        config = RepairConfig(enabled=False)
    state = controller.reset(config, AGENTS, AGENTS * OPS, len(table.ids), len(table.kinds))
    for given, expected in zip(case["input"]["calls"], case["expected"], strict=True):
        views = plan_views(given["views"], AGENTS, OPS, table.row, table.spec, width=2)
        step = jnp.int32(given["env_step"])
        state, decision, group = jax.device_get(
            call(config, len(table.kinds), table.required, table.kind, state, views, step)
        )
        all_results = results(decision.evaluation, lambda task: table.ids[task], AGENTS)
        failures = [[x["task_id"], x["constraint_type"], x["score"]] for x in all_results if not x["satisfied"]]
        assert trace_of(decision, failures) == expected["trace"]
        assert table.stamps(config.scope, state.stamps) == expected["last_repair_step"]

        dispatched = [{**d, "failures": sorted(d["failures"])} for d in expected["dispatched"]]
        opened = {"affected_agents": affected(decision.evaluation, AGENTS), "env_step": given["env_step"]}
        assert dispatched == ([{**opened, "failures": sorted(failures)}] if decision.opened else [])
        if expected["returned"]:
            is_viewed = np.asarray(views.is_viewed)
            named = [task if task < len(table.ids) else 404 for task in group[is_viewed & (group >= 0)]]
            ids = {str(task) if task == 404 else table.ids[task] for task in named}
            assert expected["returned"] == {
                "affected_agents": affected(decision.evaluation, AGENTS),
                "should_repair": bool(decision.opened),
                "tasks_evaluated": sorted(ids),
                "unresolved_agents": names(is_viewed & (group < 0)),
            }
        else:
            assert not decision.opened
