"""From replies to answer words, and the texts that go with them.

Axes: L ops of a plan, W words of an op row, X answer words, S words of a specification.  Numbers are sections of
docs/coop2.md.
"""

import dataclasses

import numpy as np
from jaxtyping import Int

from jaxcoop.agents.llm.coop2.facts import RepairRequest, Role
from jaxcoop.agents.llm.coop2.fixed import failed_statement, failed_text
from jaxcoop.agents.llm.coop2.parsing import Profile, Unreadable, fallback_plan, read_decision, read_plan, read_text
from jaxcoop.agents.llm.coop2.plans import TextPlan
from jaxcoop.agents.llm.coop2.rows import AskRow
from jaxcoop.agents.llm.coop2.words import WIDTHS, plan_words
from jaxcoop.cognition.config import LONGEST_MS
from jaxcoop.cognition.types import SPEC, Call, Verdict
from jaxcoop.planning.process import Status
from jaxcoop.planning.request import Answer


@dataclasses.dataclass(frozen=True)
class Read:
    """What one answer says."""

    verdict: Verdict
    status: Status
    latency_ms: int
    text: str | None = None  # of calls for text and statements, the fixed line where they failed (6.2)
    plan: TextPlan | None = None  # of calls that gave one, the fallback plan where they failed
    reasoning: str = ""


def read_answer(profile: Profile, row: AskRow, role: Role, answer: Answer, *, require_action_type: bool) -> Read:
    """The answer to the call of a row; whatever cannot be had or read has failed (6.1, 6.2)."""
    latency = min(round(1000 * answer.seconds), LONGEST_MS)
    if answer.reply is not None and answer.status == Status.OK:
        try:
            return _read(profile, row.kind, answer.reply.text, latency, require_action_type=require_action_type)
        except Unreadable:
            return _failed(profile, row, role, Status.MALFORMED, latency)
    return _failed(profile, row, role, answer.status, latency)


def _read(profile: Profile, kind: Call, text: str, latency: int, *, require_action_type: bool) -> Read:
    if kind == Call.PLAN:
        plan = read_plan(profile, text, require_action_type=require_action_type)
        return Read(Verdict.OK, Status.OK, latency, plan=plan, reasoning=plan.reasoning)
    if kind != Call.DECIDE:
        return Read(Verdict.OK, Status.OK, latency, text=read_text(text))
    decided = read_decision(profile, text, require_action_type=require_action_type)
    if decided.decision == "resume":
        return Read(Verdict.RESUME, Status.OK, latency, reasoning=decided.reasoning)
    verdict = Verdict.REPLAN_EMPTY if decided.plan is None else Verdict.REPLAN
    return Read(verdict, Status.OK, latency, plan=decided.plan, reasoning=decided.reasoning)


def _failed(profile: Profile, row: AskRow, role: Role, status: Status, latency: int) -> Read:
    """6.2: what stands for an answer that could not be had; a decision that failed is to resume."""
    text = plan = None
    if row.kind == Call.PLAN:
        plan = fallback_plan(profile)
    elif row.kind == Call.STATEMENT:
        text = failed_statement(row.agent)
    elif row.kind == Call.TEXT:
        text = failed_text(row.agent, "member" if role.kind == "independent" else role.kind)
    return Read(Verdict.ERROR, status, latency, text=text, plan=plan)


def answer_words(profile: Profile, ops: int, read: Read) -> Int[np.ndarray, " X"]:
    """The row for the engine: verdict, latency, number of ops, specification, ops, status."""
    spec, rows, length = np.full(SPEC, -1, np.int32), np.full((ops, WIDTHS[profile]), -1, np.int32), 0
    if read.plan is not None:
        spec, rows, length, _ = plan_words(profile, read.plan, ops)
    head = [read.verdict, read.latency_ms, length]
    return np.concatenate([head, spec, rows.reshape(-1), [read.status]]).astype(np.int32)


def with_statement(request: RepairRequest, agent: int, text: str) -> RepairRequest:
    """8: the request after one more statement."""
    return dataclasses.replace(request, statements=(*request.statements, (agent, text)))
