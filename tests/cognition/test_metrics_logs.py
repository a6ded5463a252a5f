"""Logs of episodes: exported and read back, as tables, and their forms in JSON."""

import dataclasses
import json

import numpy as np
import pytest
from coop2_logs import CRAFTER, CUBE, made

from jaxcoop.cognition.logs import (
    RECORDS,
    Check,
    Holdings,
    RunInfo,
    file_texts,
    from_tables,
    log_row,
    reference_files,
    to_tables,
)
from jaxcoop.cognition.logs.episode import Changes
from jaxcoop.cognition.metrics import cube_events, macrafter_events, read_row
from jaxcoop.cognition.metrics.attempts import rates_of
from jaxcoop.cognition.types import Call, Mail
from jaxcoop.cognition.wording import leader_request
from jaxcoop.cooperation.constraints import Constraint

VOCABULARIES = {"cube": CUBE, "macrafter": CRAFTER}
INFO = RunInfo("broadcast_chain", model="scripted", seed=42)


def text_of(agent, call):
    return None if call == 2 else f"agent {agent} says {call}"


def exported(profile, log):
    """The files as somebody reads them."""
    texts = file_texts(reference_files(log, VOCABULARIES[profile], INFO, text_of))
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in texts.items()}


def row_of(profile, files, agents=3):
    return read_row(
        profile=profile,
        agents=agents,
        metrics=files["coop2_metrics.json"],
        team_score=files["team_score.json"],
        plan_logs=files["plan_logs.json"],
        agent_states=files["agent_states.json"],
        process_log=files["coop2_process_log.json"],
    )


@pytest.mark.parametrize("profile", VOCABULARIES)
@pytest.mark.parametrize("seed", range(4))
def test_coop2_row_of_the_arrays_is_that_of_the_exported_files(profile, seed):
    log = made(VOCABULARIES[profile], seed=seed, steps=40)
    row = log_row(log)
    assert row["attempt_constraint_events"] > 0 and row["interruptions"] > 0
    assert row_of(profile, exported(profile, log)) == pytest.approx(row, rel=0, abs=1e-9)


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_row_follows_the_files_when_one_score_changes(profile):
    log = made(VOCABULARIES[profile], seed=1)
    t, agent = np.argwhere((log.process.task >= 0) & ~log.process.success)[0]
    log.process.scores[t, agent] = 0  # nobody is where the task is
    changed = log_row(log)["spatial_violation_rate"]
    assert row_of(profile, exported(profile, log))["spatial_violation_rate"] == pytest.approx(changed, abs=1e-9)


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_events_read_back_have_the_agents_and_results_of_the_arrays(profile):
    log = made(VOCABULARIES[profile], seed=2, steps=40)
    records = exported(profile, log)["coop2_process_log.json"]
    events = cube_events(records) if profile == "cube" else macrafter_events(records)
    process = log.process
    expected = []
    for t, row in np.argwhere(process.task >= 0).tolist():
        task = VOCABULARIES[profile].task(int(process.task[t, row]), int(process.target_kind[t, row]))
        members = [f"agent_{a}" for a in np.flatnonzero(process.event[t] == row)]
        expected.append((t + 1, task.id, members, bool(process.success[t, row]), int(process.required[t, row])))
    names = ("env_step", "task_id", "attempting_agents", "success", "required_agents")
    assert sorted(tuple(event[name] for name in names) for event in events) == sorted(expected)
    assert rates_of(events)["successful_attempt_events"] == process.success.sum()


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_logs_survive_parquet(profile, tmp_path):
    from pyarrow import parquet

    logs = [made(VOCABULARIES[profile], seed=seed, steps=20 + seed, repairs=seed > 0) for seed in range(3)]
    tables = {}
    for name, table in to_tables(logs, first=7).items():
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        tables[name] = parquet.read_table(tmp_path / f"{name}.parquet")
    back = from_tables(tables)
    assert list(back) == [7, 8, 9]
    for log, other in zip(logs, back.values()):
        assert (log.agents, log.end_ms, log.timed_out) == (other.agents, other.end_ms, other.timed_out)
        assert np.array_equal(log.committed, other.committed)
        for name, record in RECORDS.items():
            for field in dataclasses.fields(record):
                want, got = (getattr(getattr(one, name), field.name) for one in (log, other))
                assert want.shape == got.shape and want.dtype == got.dtype, (name, field.name)
                assert np.array_equal(want, got), (name, field.name)


def test_coop2_tables_refuse_teams_of_two_sizes_and_missing_tables():
    with pytest.raises(ValueError, match="shapes"):
        to_tables([made(CUBE), made(CUBE, agents=2)])
    with pytest.raises(ValueError, match="give at least one"):
        to_tables([])
    tables = to_tables([made(CUBE)])
    del tables["plans"]
    with pytest.raises(ValueError, match="plans"):
        from_tables(tables)


def test_coop2_plan_log_holds_the_entries_of_the_reference():
    log = made(CUBE)
    plan = exported("cube", log)["plan_logs.json"]["plan_history"][0]
    assert set(plan) == {
        "plan_id", "agent_id", "specification", "created_at_step", "start_step", "end_step", "status",
        "failure_reason", "duration", "progress", "actions",
    }  # fmt: skip
    history = exported("cube", log)["plan_logs.json"]["plan_history"]
    assert {plan["failure_reason"] for plan in history} >= {None, "Episode ended"}
    ended = [plan for plan in history if plan["failure_reason"] == "Episode ended"]
    assert [op["status"] for op in ended[0]["actions"]] == ["success", "interrupted"]
    assert all(plan["duration"] == plan["end_step"] - plan["start_step"] for plan in history)


def test_coop2_plan_that_never_started_has_no_start_and_no_duration():
    log = made(CRAFTER)
    log.plans.start_step[0] = -1
    log.plans.op_steps[0] = -1
    log.plans.done[0] = 0
    plan = exported("macrafter", log)["plan_logs.json"]["plan_history"][0]
    assert (plan["start_step"], plan["duration"], plan["progress"]) == (None, None, "0/2")
    assert [op["status"] for op in plan["actions"]] == ["pending", "pending"]


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_messages_are_marked_by_their_types(profile):
    log = made(VOCABULARIES[profile], steps=60)
    messages = exported(profile, log)["message_log.json"]
    assert [message["timestamp"] for message in messages] == (log.messages.time_ms / 1000).tolist()
    marked = {message["metadata"]["type"] for message in messages if message["metadata"].get("interrupts_execution")}
    assert marked == ({"leader_broadcast", "broadcast_chain"} if profile == "macrafter" else set())
    chain = [message for message in messages if message["metadata"].get("type") == "broadcast_chain"]
    assert chain and all(message["sender"] == f"agent_{message['metadata']['speaker_order']}" for message in chain)
    contents = {message["content"] for message in messages if message["sender"] != "coop2_repair"}
    assert any("says" in text for text in contents) and any(" has planned " in text for text in contents)


def test_coop2_message_after_a_call_that_gave_a_plan_tells_of_the_plan():
    log = made(CRAFTER)
    row = np.flatnonzero((log.messages.call == 0) & (log.messages.mail != Mail.LEADER_BROADCAST))[0]
    log.calls.agent[0] = log.messages.sender[row]
    name = f"agent_{int(log.messages.sender[row])}"

    def content():
        return exported("macrafter", log)["message_log.json"][row]["content"]

    assert "says 0" in content()
    log.calls.kind[0] = Call.PLAN
    assert content().startswith(f"{name} has planned ")
    log.messages.mail[row] = Mail.LEADER_BROADCAST
    assert content() == leader_request(name)


def test_coop2_collect_that_attempts_nothing_is_no_attempt_in_the_file_either():
    log = made(CRAFTER, seed=2, steps=40)
    process = log.process
    members = [(t, np.flatnonzero(process.event[t] >= 0)) for t in range(40)]
    t, (first, second) = next((t, who) for t, who in members if len(who) == 2 and np.ptp(process.event[t, who]) == 0)
    process.event[t, second], process.target[t, second] = -1, -1
    records = exported("macrafter", log)["coop2_process_log.json"]
    (event,) = macrafter_events([records[t]])
    assert event["attempting_agents"] == [f"agent_{first}"]
    assert records[t]["agents"][second]["symbolic_action"]["action_type"] == "collect"


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_repair_messages_tell_failures_and_statements_of_their_own_channel(profile):
    log = made(VOCABULARIES[profile])
    files = exported(profile, log)
    requests = [m for m in files["message_log.json"] if m["sender"] == "coop2_repair"]
    assert [m["metadata"] for m in requests] == [{"message_type": "coop2_repair_request"}] * 2
    assert [[fail["constraint_type"] for fail in m["content"]["failures"]] for m in requests] == [
        ["spatial", "temporal"],
        ["dependency"],
    ]
    # all calls come after the messages in this log
    assert [m["content"]["transcript"] for m in requests] == [[], []]
    log.messages.seq[:] += 1000
    log.calls.seq[:] = log.messages.seq[-2] - 500 + np.arange(len(log.calls.seq))
    log.calls.seq[-1] = log.messages.seq[-1]
    log.messages.seq[-1] += 1
    log.calls.kind[-1], log.calls.turn[-1], log.calls.agent[-1] = 3, 5, 1
    requests = [m for m in exported(profile, log)["message_log.json"] if m["sender"] == "coop2_repair"]
    assert len(requests[0]["content"]["transcript"]) == (log.calls.kind[:-1] == Call.STATEMENT).sum() > 0
    assert requests[1]["content"]["transcript"] == [{"turn": 0, "agent_id": "agent_1", "statement": "agent 1 says 5"}]


@pytest.mark.parametrize("profile", VOCABULARIES)
def test_coop2_trace_tells_of_checks_and_in_macrafter_of_commits_and_outcomes(profile):
    log = made(VOCABULARIES[profile])
    events = exported(profile, log)["coop2_trace.json"]
    names = [event["event_type"] for event in events]
    assert [names.count(name) for name in ("repair_started", "repair_message", "repair_task_cooldown")] == [2, 2, 1]
    assert names.count("pre_execution_prediction") == log.repairs.is_new.sum()
    assert names.count("pre_execution_check_passed") == (log.repairs.check == Check.PASSED).sum()
    # the check that cools down was taken over from the one before: its failure is not predicted again
    assert names.count("constraint_predicted_failure") == 3
    assert ("plan_committed" in names, "action_outcome" in names) == ((profile == "macrafter",) * 2)
    assert [event["env_step"] for event in events] == sorted(event["env_step"] for event in events)


def test_coop2_trace_follows_the_clock_within_a_step():
    log = made(CRAFTER)
    log.repairs.env_step[:], log.repairs.time_ms[:] = 9, [10, 20, 40, 20, 60]
    log.repairs.seq[:] = [7, 9, 20, 8, 30]
    log.messages.env_step[-2:], log.messages.time_ms[-2:], log.messages.seq[-2:] = 9, [30, 70], [15, 35]
    log.plans.created_step[:] = 0
    log.plans.created_step[0], log.plans.created_ms[0] = 9, 20
    events = [event for event in exported("macrafter", log)["coop2_trace.json"] if event["env_step"] == 9]
    names = [event["event_type"] for event in events if "constraint" not in event["event_type"]]
    own = names[names.index("pre_execution_prediction") :]
    assert set(names[: names.index("pre_execution_prediction")]) == {"action_outcome"}
    assert own == [
        "pre_execution_prediction", "pre_execution_check_passed",  # 10 ms
        "plan_committed",  # 20 ms, before the checks of the same moment
        "pre_execution_prediction", "repair_started", "pre_execution_prediction", "pre_execution_check_passed",
        "repair_message",  # 30 ms
        "repair_task_cooldown",
        "pre_execution_prediction", "repair_started", "repair_message",
    ]  # fmt: skip


def test_coop2_usage_counts_calls_by_their_results():
    log = made(CUBE)
    usage = exported("cube", log)["llm_usage.json"]
    roles = [entry["role"] for entry in usage["agents"].values()]
    assert roles == ["speaker-0", "speaker-1", "speaker-2"]
    assert usage["totals"]["api_calls"] + usage["totals"]["llm_errors"] == len(log.calls.seq)
    assert usage["totals"]["latency_sum"] == pytest.approx(0.3 * len(log.calls.seq))
    assert usage["totals"]["plan_count"] == log.committed.sum()
    assert [entry["latency_max"] for entry in usage["agents"].values()] == pytest.approx([0.3] * 3)


def test_coop2_changes_and_holdings_reach_the_measures():
    log = made(CRAFTER)
    ints = lambda *values: np.array(values, np.int32)  # noqa: E731
    log = dataclasses.replace(
        log,
        changes=Changes(ints(1, 1, 2), ints(10, 11, 10), ints(6, 3, 6), ints(0, 1, 0), np.array([True, False, True])),
        holdings=Holdings(ints(1, 2), ints(0, 1), ints(5, 5), ints(0, 4), ints(3, 1)),
    )
    files = exported("macrafter", log)
    metrics = files["coop2_metrics.json"]
    assert metrics["constraints"]["spatial"] == {"improved": 1, "worsened": 0}
    assert metrics["constraints"]["temporal"] == {"improved": 0, "worsened": 1}
    assert metrics["task_success"]["resources_collected"] == {"wood": 3}
    assert [
        files["task_states.json"][0]["metrics"]["capability_changes"][way] for way in ("increased", "decreased")
    ] == [1, 0]
    assert files["capability_changes.json"][1]["change_type"] == "loss"
    assert Constraint.PARTICIPATION.name.lower() not in metrics["constraints"]
    assert files["coop2_metrics.csv"].splitlines()[0] == "metric,value"


def test_coop2_score_events_add_up_to_the_score():
    log = made(CUBE)
    score = exported("cube", log)["team_score.json"]
    assert score["total_score"] > 0
    assert sum(event["gain"] for event in score["score_events"]) == pytest.approx(score["total_score"])
    steps = exported("cube", log)["coop2_process_log.json"]
    assert [event for record in steps for event in record["score_events"]] == score["score_events"]
