"""Recorded whole runs, put into the arrays of a log: the exported files say what the recording says."""

import numpy as np
import pytest
from recorded import lines_of

from jaxcoop.cognition.logs import (
    RECORDS,
    EpisodeLog,
    Messages,
    Plans,
    RunInfo,
    Timeline,
    Vocabulary,
    log_row,
    none_of,
    reference_files,
)
from jaxcoop.cognition.types import STAGES, Ended, Mail, PlanStatus

KINDS = {mail.name.lower(): mail for mail in Mail} | {"coop2_repair_request": Mail.REPAIR_REQUEST}
REASONS = {
    None: Ended.NONE,
    "Replanned": Ended.REPLANNED,
    "Episode ended": Ended.EPISODE_ENDED,
    "scripted": Ended.SKILL,
}


class Words(Vocabulary):
    """Specifications by their numbers; ops and reasons have no words of their own."""

    def __init__(self, profile, specs):
        self._profile, self.specs = profile, specs

    @property
    def profile(self):
        return self._profile

    def spec(self, words):
        return self.specs[words[0]]

    def op(self, row):
        return {"action_type": "noop"}

    def reason(self, code):
        return "scripted"


def scenarios(path):
    return ((case["id"], case) for case in lines_of(path))


def ms(seconds):
    return round(1000 * seconds)


def number(agent, agents):
    return agents if agent == "coop2_repair" else int(agent.removeprefix("agent_"))


def ints(values):
    return np.array(values, np.int32)


def timeline_of(expected, agents):
    """The first entries, and those that the events tell of, in their order."""
    rows = [(0, 0, agent, 0) for agent in range(agents)]
    rows += [
        (event["t"], event["env_step"], number(event["agent"], agents), STAGES.index(event["stage"]))
        for event in expected["events"]
        if event["type"] == "stage"
    ]
    return Timeline(ints(range(len(rows))), *(ints(column) for column in zip(*rows)))


def messages_of(expected, agents):
    log = expected["message_log"]
    recipients = np.zeros((len(log), agents), bool)
    for row, message in enumerate(log):
        recipients[row, [number(agent, agents) for agent in message["recipients"]]] = True
    none = ints([-1] * len(log))
    return Messages(
        seq=ints(range(len(log))),
        time_ms=ints([ms(message["timestamp"]) for message in log]),
        env_step=ints([message["env_step"] for message in log]),
        sender=ints([number(message["sender"], agents) for message in log]),
        mail=ints([KINDS[message["type"]] for message in log]),
        call=none,
        plan=none,
        recipients=recipients,
    )


def plans_of(expected, agents, specs):
    history = expected["plan_history"]
    # Rows come in any order: `seq` says which was closed first.
    order = np.random.default_rng(0).permutation(len(history))
    plans = [history[k] for k in order]
    rows, zero = len(plans), ints([0] * len(plans))
    progress = ints([plan["progress"].split("/") for plan in plans]).reshape(rows, 2)
    return Plans(
        seq=ints(order),
        agent=ints([number(plan["agent_id"], agents) for plan in plans]),
        plan_id=ints([plan["plan_id"] for plan in plans]),
        created_step=ints([plan["created_at_step"] for plan in plans]),
        start_step=ints([-1 if plan["start_step"] is None else plan["start_step"] for plan in plans]),
        end_step=ints([plan["end_step"] for plan in plans]),
        status=ints([PlanStatus[plan["status"].upper()] for plan in plans]),
        reason=ints([REASONS[plan["failure_reason"]] for plan in plans]),
        done=progress[:, 0],
        length=progress[:, 1],
        created_ms=zero,
        end_ms=zero,
        spec=ints([[specs.index(plan["specification"]), -1, -1] for plan in plans]).reshape(rows, 3),
        ops=np.full((rows, 8, 1), -1, np.int32),
        op_steps=np.full((rows, 8, 2), -1, np.int32),
    )


@pytest.mark.recorded("coop2", "scenarios.jsonl.gz", scenarios)
def test_coop2_recorded_runs_are_exported_as_they_were(case):
    definition, expected = case["definition"], case["expected"]
    agents = definition["n"]
    specs = sorted({plan["specification"] for plan in expected["plan_history"]})
    records = {name: none_of(name, agents=agents) for name in RECORDS}
    records |= {
        "timeline": timeline_of(expected, agents),
        "messages": messages_of(expected, agents),
        "plans": plans_of(expected, agents, specs),
    }
    log = EpisodeLog(
        agents=agents,
        end_ms=expected["end_ms"],
        timed_out=expected["timed_out"],
        committed=ints([expected["plan_count"][f"agent_{agent}"] for agent in range(agents)]),
        **records,
    )
    words = Words(definition["profile"], specs)
    files = reference_files(log, words, RunInfo(definition["topology"]), lambda *_: None)
    assert files["agent_states.json"] == expected["agent_states"]
    history = files["plan_logs.json"]["plan_history"]
    assert [{key: plan[key] for key in want} for plan, want in zip(history, expected["plan_history"])] == expected[
        "plan_history"
    ]
    assert len(history) == len(expected["plan_history"])
    found = [
        {
            **{key: message[key] for key in ("timestamp", "env_step", "sender", "recipients")},
            "type": message["metadata"].get("type") or message["metadata"]["message_type"],
        }
        for message in files["message_log.json"]
    ]
    assert found == expected["message_log"]
    usage = files["llm_usage.json"]["agents"]
    assert {agent: entry["plan_count"] for agent, entry in usage.items()} == expected["plan_count"]
    row = log_row(log)
    assert row["messages"] == len(found) and row["total_plans"] == len(history)
    entries = [entry for entries in expected["agent_states"].values() for entry in entries]
    assert row["interruptions"] == sum(stage == "interrupted" for *_, stage in entries)
