"""Measures in corners that recorded data do not reach: the form of macrafter, and records with gaps."""

import numpy as np
import pytest

from jaxcoop.cognition.metrics import (
    Logs,
    attempt_rates,
    cube_events,
    full_metrics,
    macrafter_events,
    metric_columns,
    read_row,
)
from jaxcoop.cognition.metrics.decisions import Timelines


def plan(agent, start, spec, status, reason=None, end=None, number=1):
    return {"agent_id": agent, "start_step": start, "end_step": end, "specification": spec, "status": status,
            "failure_reason": reason, "plan_id": number}  # fmt: skip


STATES = {
    "agent_0": [
        [0.0, 0, "reasoning"], [2.0, 0, "waiting"], [3.0, 0, "executing"], [4.0, 2, "interrupted"], [6.0, 2, "waiting"],
    ],
    "agent_1": [[0.0, 0, "reasoning"], [1.0, 0, "waiting"]],
}  # fmt: skip


def test_waiting_counts_as_a_decision_in_cube_only():
    for profile, counts, per_step in (("cube", [4, 2], [4, 0, 2]), ("macrafter", [2, 1], [2, 0, 1])):
        found = full_metrics(Logs(STATES), profile)["decision_overhead"]
        assert list(found["D_i"].values()) == counts and found["d_t"] == per_step
        assert found["decision_time_per_agent"] == {"agent_0": 4.0, "agent_1": 1.0}
        assert found["wait_time_per_step"] == [1.0, 0.0, 0.0]


def test_stages_of_unknown_names_take_no_time_but_end_the_one_before():
    line = Timelines.read(
        {"agent_0": [[0, 0, "reasoning"], [2, 0, "asleep"], [5, None, "reasoning"], [6, 1, "waiting"]]}
    )
    assert line.decision_seconds == 3 and line.step.tolist() == [0, 0, 0, 1]


def test_plans_of_macrafter_count_as_broken_only_when_something_else_than_the_end_interrupts_them():
    plans = [
        plan("agent_0", 0, "a", "interrupted", "Replanned", 2, 1),
        plan("agent_0", 2, "a", "failed", "x", 3, 2),
        plan("agent_0", 3, "b", "interrupted", "Replanned", 3, 3),
        plan("agent_0", 3, "c", "abandoned", None, 4, 4),
        plan("agent_0", 4, "c", "interrupted", "Episode ended", 5, 5),
    ]
    found = full_metrics(Logs(plans=plans), "macrafter")["planning"]
    names = ("P_int", "P_failed", "P_abandoned", "P_episode_ended", "P_non_success", "P_res", "P_re_total")
    assert [found[name] for name in names] == [2, 1, 1, 1, 4, 1, 1]
    cube = full_metrics(Logs(plans=plans), "cube")["planning"]
    assert (cube["P_int"], cube["P_res"], cube["P_re_total"]) == (5, 2, 2) and "P_failed" not in cube


def test_plans_of_macrafter_are_ordered_by_number_within_a_step_and_without_a_start_come_first():
    plans = [plan("agent_0", 3, "b", "success", None, 4, 3), plan("agent_0", 3, "a", "interrupted", "Replanned", 3, 2),
             plan("agent_0", None, "b", "interrupted", "Replanned", 0, 1)]  # fmt: skip
    found = full_metrics(Logs(plans=plans), "macrafter")["planning"]
    assert (found["P_res"], found["P_re_total"]) == (0, 2)
    assert full_metrics(Logs(plans=plans), "cube")["planning"]["P_res"] == 1  # the file's order within a step


def test_a_plan_without_an_end_is_active_in_its_first_step_only():
    plans = [plan("agent_0", 4, "a", "success"), plan("agent_1", 0, "b", "success", None, 4)]
    assert full_metrics(Logs(plans=plans))["planning"]["coherence"] == pytest.approx((4 + 0) / 5)


def test_macrafter_adds_up_amounts_and_knows_no_participation():
    gains = [{"agent_id": "agent_0", "item_name": "wood", "change_type": "gain", "old_count": 1, "new_count": 4},
             {"agent_id": "agent_0", "item_name": "wood", "change_type": "gain"}]  # fmt: skip
    states = [{"metrics": {"constraint_changes": {"participation": {"improved_tasks": ["1"]}}}}]
    logs = Logs(
        STATES, plans=[plan("agent_0", 0, "a", "success", None, 1)], capability_changes=gains, task_states=states
    )
    for profile, wood, plus in (("cube", 2, 1), ("macrafter", 4, 0)):
        metrics = full_metrics(logs, profile)
        assert metrics["task_success"]["resources_collected"] == {"wood": wood}
        assert metrics["constraints"]["C_plus"] == plus
        names = [name for name, _ in metric_columns(metrics, profile)]
        assert ("C_participation_ratio" in names) == (profile == "cube")


def test_macrafter_tells_what_a_point_took_and_nothing_without_points():
    logs = Logs(STATES, [{"sender": "agent_0"}] * 3, team_score={"total_score": 2, "current_step": 10})
    metrics = full_metrics(logs, "macrafter")
    assert metrics["team_score"] == {"total_score": 2, "current_step": 10}
    assert metrics["efficiency"] == {"steps_per_score": 5, "decision_time_per_score": 2.5, "messages_per_score": 1.5,
                                     "plans_per_score": 0}  # fmt: skip
    assert set(full_metrics(Logs(STATES), "macrafter")["efficiency"].values()) == {None}


def test_items_that_neither_came_nor_went_are_losses_in_the_tables_but_not_in_the_total():
    found = full_metrics(Logs(capability_changes=[{"change_type": "spent", "env_step": 4}]))["capability"]
    assert (found["total_losses"], found["losses_per_agent"], found["losses_per_step"]) == (0, {"unknown": 1}, {4: 1})


def test_share_of_improvements():
    states = [
        {"metrics": {"constraint_changes": {"spatial": {"improved_tasks": ["1", "2", "3"], "worsened_tasks": ["1"]}}}}
    ]
    assert dict(metric_columns(full_metrics(Logs(task_states=states))))["C_spatial_ratio"] == 0.75


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="'chess'; choose one of cube, macrafter"):
        full_metrics(Logs(), "chess")


def row(profile, team_score, metrics=None, process_log=()):
    return read_row(profile=profile, agents=2, metrics=metrics or {}, team_score=team_score, plan_logs={},
                    agent_states={}, process_log=list(process_log))  # fmt: skip


def test_first_score_of_cube_counts_even_if_it_is_null():
    assert row("cube", {"total_score": None, "score": 3})["score"] == 0
    assert row("cube", {"team_score": "4"})["score"] == 4
    assert row("cube", {}, process_log=[{"env_step": 3}, {"env_step": 7}, {"env_step": None}])["steps"] == 7
    assert row("cube", {"current_step": None}, process_log=[{"env_step": 3}])["steps"] == 0


def test_a_row_without_agents_or_steps_has_zeros():
    found = read_row(profile="cube", agents=0, metrics={}, team_score={"score": 2}, plan_logs={"plan_history": [{}]},
                     agent_states={}, process_log=[])  # fmt: skip
    assert found["plans_per_agent"] == found["score_per_step"] == found["total_decision_time"] == 0


def test_rates_leave_out_what_an_event_does_not_tell():
    rates = attempt_rates([[0.5, np.nan, 2.0], [0.0, np.nan, 1.0]], [True, False])
    assert rates["spatial_violation_rate"] == 0.75 and rates["spatial_checks"] == 2
    assert rates["temporal_checks"] == rates["temporal_score"] == rates["temporal_violation_rate"] == 0
    assert rates["dependency_score"] == 1.0 and rates["attempt_success_rate"] == 0.5


def test_block_and_requirement_of_a_push_come_from_the_task_before_the_outcome():
    outcome = {"action_type": "push", "task_id": "t", "metadata": {"required_agents": 3, "block_id": 9, "weight": 4}}
    record = {"env_step": 1, "action_outcomes": {"agent_1": outcome}, "active_tasks": [{"task_id": "t", "block_id": 5}]}
    (event,) = cube_events([record])
    assert (event["required_agents"], event["block_id"], event["attempting_agents"]) == (3, 5, ["agent_1"])
    record["active_tasks"][0]["required_agents"] = 2
    assert cube_events([record])[0]["required_agents"] == 2
    outcome["metadata"] = {"weight": 4}
    record["active_tasks"] = []
    assert cube_events([record])[0]["required_agents"] == 4


def crafter_step(agent, tasks=("7",), observed=(), grounded=()):
    coal = {"resource_type": "coal", "required_agents": 2, "required_tool": "t"}
    return {
        "env_step": 2,
        "active_tasks": [{"task_id": name, "position": [1, int(name)], **coal} for name in tasks],
        "agents": [{"agent_id": "agent_3", **agent}],
        "observed_constraints": list(observed),
        "grounded_action_constraints": list(grounded),
    }


def test_an_action_overrides_what_the_symbolic_one_names():
    agent = {"action": {"action_type": "collect", "task_id": "8"},
             "symbolic_action": {"action_type": "collect", "args": {"task_id": "7"}}}  # fmt: skip
    assert [event["task_id"] for event in macrafter_events([crafter_step(agent, ("7", "8"))])] == ["8"]
    agent["action"] = {"args": {"target_id": "7"}}
    assert [event["task_id"] for event in macrafter_events([crafter_step(agent, ("7", "8"))])] == ["7"]


def test_an_agent_with_two_targets_attempts_what_it_collected():
    part = {"resource_type": "coal", "position": [1, 8], "participating_agents": [3]}
    agent = {"action": {"action_type": "collect"}, "active_target_ids": ["7", "8"],
             "action_outcome": {"status": "success", "effects": {"collections": [part]}}}  # fmt: skip
    (event,) = macrafter_events([crafter_step(agent, ("7", "8"))])
    assert event["task_id"] == "8" and event["success"]


@pytest.mark.parametrize(("observed", "grounded", "spatial"), [(0.5, 1.0, 1.0), (1.0, 0.5, 1.0), (None, None, 0.5)])
def test_a_grounded_score_counts_only_if_it_is_higher(observed, grounded, spatial):
    def result(score):
        return {"task_id": "7", "constraint_type": "spatial", "score": score, "agents": ["agent_0"]}

    agent = {"action": {"action_type": "collect", "task_id": 7}}
    (event,) = macrafter_events([crafter_step(agent, observed=[result(observed)], grounded=[result(grounded)])])
    assert event["constraint_scores"] == {"spatial": spatial, "temporal": 0.5, "dependency": 0.0}
