"""Messages with their texts, and what an agent remembers, from the numbers that the engine keeps.

Numbers are sections of docs/coop2.md.
"""

from typing import Any

from jaxcoop.agents.llm.coop2.facts import REPAIR_REQUEST, Mail, MemoryEvent, PlanState, PlanView, agent_name
from jaxcoop.agents.llm.coop2.fixed import chain_summary, leader_request
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.plans import TextPlan
from jaxcoop.agents.llm.coop2.repair import request_text
from jaxcoop.agents.llm.coop2.rows import AskRow, MessageRow
from jaxcoop.agents.llm.coop2.texts import Kind, Texts
from jaxcoop.agents.llm.coop2.words import text_plan
from jaxcoop.cognition.logs import REPAIR_SENDER, Vocabulary
from jaxcoop.cognition.state import MADE_PLAN, MESSAGE_IN, MESSAGE_OUT
from jaxcoop.cognition.types import Ended, PlanStatus
from jaxcoop.cognition.types import Mail as Type

MISSED = ("plan_goal", "its operations did not achieve the task")
"""2: what failed, and why, where all operations of a plan succeeded and its task was not achieved."""

_MARKED = (Type.LEADER_BROADCAST, Type.BROADCAST_CHAIN)
"""4: types whose messages interrupt agents of MA-Crafter that execute."""


class Mails:
    """Reads messages, plans and memories of rows of a team."""

    def __init__(self, vocabulary: Vocabulary, texts: Texts) -> None:
        self._vocabulary, self._texts = vocabulary, texts

    @property
    def _profile(self) -> Profile:
        return self._vocabulary.profile

    def mail(self, row: AskRow, message: MessageRow) -> Mail:
        """4: a message as prompts show it."""
        recipients = tuple(map(agent_name, message.recipients))
        if message.type == Type.REPAIR_REQUEST:
            request = self._texts.request(row.episode, message.number)
            content = "" if request is None else request_text(self._profile, request)
            return Mail(REPAIR_SENDER, content, message.step, REPAIR_REQUEST, recipients, request=request)
        return Mail(
            sender=agent_name(message.sender),
            content=self._content(row, message),
            step=message.step,
            type="" if message.type == Type.OTHER else Type(message.type).name.lower(),
            recipients=recipients,
            speaker_order=message.sender if message.type == Type.BROADCAST_CHAIN else None,
            interrupts=self._profile == "macrafter" and message.type in _MARKED,
        )

    def mails(self, row: AskRow, name: str) -> tuple[Mail, ...]:
        """The messages in a set of the agent, oldest first."""
        return tuple(self.mail(row, message) for message in row.messages(name))

    def latest(self, row: AskRow, number: int) -> str | None:
        """The text of a message; None for none, and for one that is not kept any more."""
        message = None if number < 0 else row.message(number)
        return None if message is None else self.mail(row, message).content

    def _content(self, row: AskRow, message: MessageRow) -> str:
        """What the sender's last call wrote, or else what follows from its plan; 5.2: a request needs no call."""
        said = self._texts.get(row.episode, Kind.TEXT, message.sender, message.call) if message.call >= 0 else None
        if said is not None:
            return said
        if message.type == Type.LEADER_BROADCAST:
            return leader_request(message.sender)
        plan = self._texts.plan(row.episode, message.sender, message.plan)
        return "" if plan is None else chain_summary(message.sender, plan)

    def plan(self, row: AskRow, agent: int) -> PlanView | None:
        """The plan that an agent has committed last."""
        number = int(row.field("plans.number")[agent])
        if number < 1:
            return None
        status: Any = PlanStatus(int(row.field("plans.status")[agent])).name.lower()
        return self._view(row, agent, number, status, int(row.field("plans.index")[agent]))

    def new_plan(self, row: AskRow) -> PlanView | None:
        """The plan that the agent has made in this pass."""
        return self._view(row, row.agent, int(row.field("plans.number")[row.agent]) + 1, "pending", 0)

    def _view(self, row: AskRow, agent: int, number: int, status: PlanState, index: int) -> PlanView | None:
        plan = self._texts.plan(row.episode, agent, number)
        return None if plan is None else PlanView(plan, number, status, index)

    def recommended(self, row: AskRow, agent: int) -> TextPlan:
        """The plan that the open repair channel advises an agent to make."""
        words = (row.field(f"channel.{name}")[agent] for name in ("spec", "ops", "length"))
        spec, ops, length = words
        return text_plan(self._vocabulary, spec.tolist(), ops, int(length))

    def memory(self, row: AskRow) -> tuple[MemoryEvent, ...]:
        """6.5: the last events, oldest first, without those whose text is not kept any more."""
        events = [[int(word) for word in event] for event in row.field("memory") if event[0] >= 0]
        found = (self._event(row, events, k) for k in range(len(events)))
        return tuple(event for event in found if event is not None)

    def _event(self, row: AskRow, events: list[list[int]], k: int) -> MemoryEvent | None:
        kind, what, number, step = events[k]
        if kind in (MESSAGE_IN, MESSAGE_OUT):
            message = row.message(number)
            if message is None:
                return None
            mail = self.mail(row, message)
            return MemoryEvent("message_in" if kind == MESSAGE_IN else "message_out", step, mail)
        if kind == MADE_PLAN:
            return MemoryEvent("plan", step, plan=self._view(row, row.agent, what, "pending", 0))
        plan = self._view(row, row.agent, _failed_plan(row, events, k), "failed", number)
        operation, reason = self._failure(plan, what, number)
        return MemoryEvent("plan_failure", step, plan=plan, operation=operation, reason=reason)

    def _failure(self, plan: PlanView | None, why: int, index: int) -> tuple[str, str]:
        """2: the operation that failed, and why."""
        if why == Ended.GOAL_MISSED:
            return MISSED
        has_it = plan is not None and index < len(plan.plan.actions)
        return plan.plan.actions[index].text() if plan and has_it else "", self._vocabulary.reason(why - Ended.SKILL)


def _failed_plan(row: AskRow, events: list[list[int]], k: int) -> int:
    """Number of the plan whose failure event `k` is: the last one that was made before."""
    for kind, number, _, _ in reversed(events[:k]):
        if kind == MADE_PLAN:
            return number
    later = (number - 1 for kind, number, _, _ in events[k:] if kind == MADE_PLAN)
    return next(later, int(row.field("plans.number")[row.agent]))
