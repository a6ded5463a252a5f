"""4 and 7, message_log.json: messages with their contents."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxcoop.cognition import wording
from jaxcoop.cognition.logs.episode import REPAIR_SENDER, Check, EpisodeLog, Flags, Ints
from jaxcoop.cognition.logs.export_plans import plan_rows, plan_summary
from jaxcoop.cognition.logs.vocabulary import Vocabulary, agent_name
from jaxcoop.cognition.types import Call, Mail
from jaxcoop.cooperation.constraints import Constraint

TextOf = Callable[[int, int], str | None]
"""(agent, number of its call) -> the text that it wrote, None if it is not known."""

_MARKED = (Mail.LEADER_BROADCAST, Mail.BROADCAST_CHAIN)
"""Types whose messages interrupt agents that execute, in macrafter."""


def message_log(log: EpisodeLog, vocabulary: Vocabulary, text_of: TextOf) -> list[dict[str, Any]]:
    """Messages in the order in which they were sent."""
    plans = plan_rows(log)
    other = log.calls.kind != Call.TEXT
    wordless = set(zip(log.calls.agent[other].tolist(), log.calls.turn[other].tolist()))
    return [
        {
            "timestamp": int(log.messages.time_ms[row]) / 1000,
            "env_step": int(log.messages.env_step[row]),
            "sender": sender_name(log, int(log.messages.sender[row])),
            "recipients": [agent_name(agent) for agent in np.flatnonzero(log.messages.recipients[row]).tolist()],
            "content": _content(log, vocabulary, text_of, plans, wordless, row),
            "metadata": _metadata(log, vocabulary, row),
        }
        for row in np.argsort(log.messages.seq, kind="stable").tolist()
    ]


def sender_name(log: EpisodeLog, sender: int) -> str:
    """Name of an agent, or of the repair channel."""
    return REPAIR_SENDER if sender >= log.agents else agent_name(sender)


def _metadata(log: EpisodeLog, vocabulary: Vocabulary, row: int) -> dict[str, Any]:
    mail = Mail(int(log.messages.mail[row]))
    if mail == Mail.OTHER:
        return {}
    if mail == Mail.REPAIR_REQUEST:
        return {"message_type": "coop2_repair_request"}
    metadata: dict[str, Any] = {"type": mail.name.lower()}
    if mail == Mail.BROADCAST_CHAIN:
        metadata["speaker_order"] = int(log.messages.sender[row])
    if mail in _MARKED and vocabulary.profile == "macrafter":
        metadata["interrupts_execution"] = True
    return metadata


def _content(
    log: EpisodeLog,
    vocabulary: Vocabulary,
    text_of: TextOf,
    plans: dict[tuple[int, int], int],
    wordless: set[tuple[int, int]],
    row: int,
) -> Any:
    """What a message says; calls in `wordless` gave no text for others."""
    messages = log.messages
    sender, call, plan = (int(column[row]) for column in (messages.sender, messages.call, messages.plan))
    if messages.mail[row] == Mail.REPAIR_REQUEST:
        return repair_request(log, vocabulary, text_of, row)
    if call >= 0 and (sender, call) not in wordless:
        return text_of(sender, call) or ""
    if messages.mail[row] == Mail.LEADER_BROADCAST:
        return wording.leader_request(sender_name(log, sender))
    found = plans.get((sender, plan))
    return "" if found is None else plan_summary(log, vocabulary, found)


def repair_request(log: EpisodeLog, vocabulary: Vocabulary, text_of: TextOf, message: int) -> dict[str, Any]:
    """Content of a repair channel's message, a row of `Messages`: failures, advice, and what its members said.

    Every channel that was opened sends one message, so the n-th message is that of the n-th repair.
    """
    sent = _by_seq(log.messages.seq, log.messages.mail == Mail.REPAIR_REQUEST)
    opened = _by_seq(log.repairs.seq, log.repairs.check == Check.REPAIRED)
    number = sent.index(message)
    last = int(log.messages.seq[sent[number - 1]]) if number else -1
    return {
        "type": "coop2_repair_request",
        "env_step": int(log.messages.env_step[message]),
        "failures": failures_of(log, vocabulary, opened[number]) if number < len(opened) else [],
        "advice": wording.REPAIR_ADVICE[vocabulary.profile],
        "transcript": _statements(log, text_of, last, int(log.messages.seq[message])),
    }


def _statements(log: EpisodeLog, text_of: TextOf, after: int, before: int) -> list[dict[str, Any]]:
    calls = log.calls
    said = _by_seq(calls.seq, (calls.kind == Call.STATEMENT) & (calls.seq > after) & (calls.seq < before))
    return [
        {
            "turn": turn,
            "agent_id": agent_name(int(calls.agent[row])),
            "statement": text_of(int(calls.agent[row]), int(calls.turn[row])) or "",
        }
        for turn, row in enumerate(said)
    ]


def _by_seq(seq: Ints, chosen: Flags) -> list[int]:
    """The chosen rows in the order in which they happened."""
    rows = np.flatnonzero(chosen)
    return rows[np.argsort(seq[rows], kind="stable")].tolist()


def failures_of(log: EpisodeLog, vocabulary: Vocabulary, repair: int) -> list[dict[str, Any]]:
    """The constraints that a check predicts to fail."""
    failures = log.failures
    records = []
    for row in np.flatnonzero(failures.repair == repair).tolist():
        task = vocabulary.task(int(failures.task[row]), int(failures.kind[row]))
        records.append(
            {
                "task_id": task.id,
                "target_type": task.type,
                "constraint_type": Constraint(int(failures.constraint[row])).name.lower(),
                "required_agents": task.required,
                "score": float(failures.score[row]),
            }
        )
    return records
