"""7, plan_logs.json: closed plans."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxcoop.cognition import wording
from jaxcoop.cognition.logs.episode import EpisodeLog
from jaxcoop.cognition.logs.vocabulary import Vocabulary, agent_name
from jaxcoop.cognition.types import Ended, PlanStatus

_REASONS = {
    Ended.NONE: None,
    Ended.REPLANNED: "Replanned",
    Ended.EPISODE_ENDED: "Episode ended",
    Ended.GOAL_MISSED: "Every op was done, the goal was not reached",
}


def plan_history(log: EpisodeLog, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Closed plans in the order in which they were closed."""
    return [_record(log, vocabulary, row) for row in np.argsort(log.plans.seq, kind="stable").tolist()]


def _record(log: EpisodeLog, vocabulary: Vocabulary, row: int) -> dict[str, Any]:
    plans = log.plans
    start, end, length = (int(column[row]) for column in (plans.start_step, plans.end_step, plans.length))
    return {
        "plan_id": int(plans.plan_id[row]),
        "agent_id": agent_name(int(plans.agent[row])),
        "specification": vocabulary.spec(plans.spec[row].tolist()),
        "created_at_step": int(plans.created_step[row]),
        "start_step": None if start < 0 else start,
        "end_step": end,
        "status": PlanStatus(int(plans.status[row])).name.lower(),
        "failure_reason": reason_text(int(plans.reason[row]), vocabulary),
        "duration": None if start < 0 else end - start,
        "actions": [_op(log, vocabulary, row, k) for k in range(length)],
        "progress": f"{int(plans.done[row])}/{length}",
    }


def _op(log: EpisodeLog, vocabulary: Vocabulary, row: int, k: int) -> dict[str, Any]:
    plans = log.plans
    begun, ended = (None if step < 0 else int(step) for step in plans.op_steps[row, k])
    return {**vocabulary.op(plans.ops[row, k].tolist()), "start_step": begun, "end_step": ended,
            "status": _op_status(plans.status[row], k - int(plans.done[row]), begun)}  # fmt: skip


def _op_status(status: int, ahead: int, begun: int | None) -> str:
    """What became of an op that is `ahead` ops behind the last one that was done."""
    if ahead < 0:
        return "success"
    if begun is None or ahead > 0:
        return "pending"
    return "failed" if status == PlanStatus.FAILED else "interrupted"


def reason_text(reason: int, vocabulary: Vocabulary) -> str | None:
    """Why a plan ended, None where there is nothing to say."""
    if reason < Ended.SKILL:
        return _REASONS[Ended(reason)]
    return vocabulary.reason(reason - Ended.SKILL) or None


def plan_rows(log: EpisodeLog) -> dict[tuple[int, int], int]:
    """Row of each closed plan by agent and plan_id."""
    return {key: row for row, key in enumerate(zip(log.plans.agent.tolist(), log.plans.plan_id.tolist()))}


def plan_summary(log: EpisodeLog, vocabulary: Vocabulary, row: int) -> str:
    """5.3: what a plan is for and its first ops, in one line."""
    plans = log.plans
    ops = [_op_text(vocabulary, op) for op in plans.ops[row, : int(plans.length[row])].tolist()]
    name = agent_name(int(plans.agent[row]))
    return wording.plan_summary(name, vocabulary.spec(plans.spec[row].tolist()), ops)


def _op_text(vocabulary: Vocabulary, op: Sequence[int]) -> str:
    action = vocabulary.op(op)
    kind = action.pop("action_type")
    return f"{kind}({', '.join(f'{name}={value}' for name, value in action.items())})"
