"""7, coop2_trace.json: commits and outcomes of ops (macrafter), checks of plans and repairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxcoop.cognition.logs.episode import Check, EpisodeLog
from jaxcoop.cognition.logs.export_mail import TextOf, failures_of, repair_request
from jaxcoop.cognition.logs.vocabulary import Vocabulary, agent_name
from jaxcoop.cognition.types import Mail

Event = dict[str, Any]

When = tuple[int, int, int]
"""Place of an event in the trace: step, milliseconds, place among the events of one moment."""

_AT_ONCE = -1
"""Milliseconds of what ends with a step, which comes before all else that is seen with the same number of steps."""


def trace_events(
    log: EpisodeLog, vocabulary: Vocabulary, text_of: TextOf, records: Sequence[Mapping[str, Any]]
) -> list[Event]:
    """Events in the order in which they happened: with each number of steps first the ops that ended with the last one.

    `records` are those of the process log.
    """
    events = _checks(log, vocabulary) + _channel_messages(log, vocabulary, text_of)
    if vocabulary.profile == "macrafter":
        events += _commits(log, vocabulary) + _outcomes(records)
    return [event for _, event in sorted(events, key=lambda entry: entry[0])]


def _event(name: str, step: int, payload: Any, agent: str | None = None, task: str | None = None) -> Event:
    return {"event_type": name, "env_step": step, "agent_id": agent, "task_id": task, "payload": payload}


def _commits(log: EpisodeLog, vocabulary: Vocabulary) -> list[tuple[When, Event]]:
    plans = log.plans
    events = []
    for row in range(len(plans.seq)):
        step, agent = int(plans.created_step[row]), int(plans.agent[row])
        payload = {"plan_id": int(plans.plan_id[row]), "specification": vocabulary.spec(plans.spec[row].tolist())}
        # Plans are committed before the check of the same moment; agents go in ascending order.
        when = (step, int(plans.created_ms[row]), agent - log.agents)
        events.append((when, _event("plan_committed", step, payload, agent_name(agent))))
    return events


def _outcomes(records: Sequence[Mapping[str, Any]]) -> list[tuple[When, Event]]:
    """Ops that ended, or attempted a task."""
    events = []
    for record in records:
        for number, agent in enumerate(record["agents"]):
            outcome = agent["action_outcome"]
            if outcome["status"] != "running":
                payload = {"action": agent["symbolic_action"], **outcome}
                task = agent["action"].get("task_id")
                event = _event("action_outcome", record["env_step"], payload, agent["agent_id"], task)
                events.append(((record["env_step"], _AT_ONCE, number), event))
    return events


def _checks(log: EpisodeLog, vocabulary: Vocabulary) -> list[tuple[When, Event]]:
    timed = []
    repairs = log.repairs
    for row in range(len(repairs.seq)):
        events = []
        step, check = int(repairs.env_step[row]), Check(int(repairs.check[row]))
        failures = failures_of(log, vocabulary, row)
        if repairs.is_new[row]:
            events.append(_event("pre_execution_prediction", step, {"failures": failures}))
            events += [_event("constraint_predicted_failure", step, fail, task=fail["task_id"]) for fail in failures]
        tasks = sorted({fail["task_id"] for fail in failures})
        members = [agent_name(agent) for agent in np.flatnonzero(repairs.members[row]).tolist()]
        if check == Check.PASSED:
            events.append(_event("pre_execution_check_passed", step, {}))
        elif check == Check.COOLING:
            events.append(_event("repair_task_cooldown", step, {"tasks": tasks}))
        else:
            events.append(_event("repair_started", step, {"agents": members, "tasks": tasks}))
        when = (step, int(repairs.time_ms[row]), int(repairs.seq[row]))
        timed += [(when, event) for event in events]
    return timed


def _channel_messages(log: EpisodeLog, vocabulary: Vocabulary, text_of: TextOf) -> list[tuple[When, Event]]:
    messages = log.messages
    events = []
    for row in np.flatnonzero(messages.mail == Mail.REPAIR_REQUEST).tolist():
        step = int(messages.env_step[row])
        payload = {
            "agents": [agent_name(agent) for agent in np.flatnonzero(messages.recipients[row]).tolist()],
            "content": repair_request(log, vocabulary, text_of, row),
        }
        when = (step, int(messages.time_ms[row]), int(messages.seq[row]))
        events.append((when, _event("repair_message", step, payload)))
    return events
