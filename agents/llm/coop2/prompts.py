"""6.4: prompts of every call: plan, interrupt, text and repair statement.

Numbers are sections of docs/coop2.md.  What each prompt says, and in which order, follows 6.4; the wording is our own.
"""

import dataclasses
import json
from functools import cache
from typing import Literal

from jaxcoop.agents.llm.coop2 import sections as part
from jaxcoop.agents.llm.coop2 import system_cube, system_macrafter
from jaxcoop.agents.llm.coop2.facts import Facts, RepairRequest, agent_name
from jaxcoop.agents.llm.coop2.fixed import FIRST_MESSAGE
from jaxcoop.agents.llm.coop2.parsing import Kind, Profile, malformed, reply_model
from jaxcoop.agents.llm.coop2.plans import operations_text
from jaxcoop.agents.llm.coop2.repair import repair_section, statement_text
from jaxcoop.agents.llm.coop2.roles import role_text
from jaxcoop.agents.llm.coop2.schemas import prompt_schema, provider_schema
from jaxcoop.planning.request import Message, Request

CallKind = Literal["plan", "interrupt", "text", "statement"]

TEXT_MEMORY_EVENTS = 3
EXPLORING = "exploring"
"""6.4: what a leader or speaker of CUBE without a plan is said to be doing."""

_WORLDS = {"cube": system_cube, "macrafter": system_macrafter}
_GAMES = {"cube": "CUBE, a game of moving blocks", "macrafter": "MA-Crafter, a game of gathering and crafting"}


@dataclasses.dataclass(frozen=True)
class Prompt:
    """What is asked in one call."""

    kind: CallKind
    profile: Profile
    user: str
    system: str | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages."""
        system = () if self.system is None else (Message("system", self.system),)
        return (*system, Message("user", self.user))

    def request(
        self,
        draw: tuple[int, ...],
        *,
        check: bool = False,
        enforce_schema: bool = False,
        require_action_type: bool = False,
    ) -> Request:
        """The request to a hub.  `draw` names the sample.

        `check` lets the hub see whether a reply can be read, and ask again if it is told to (6.2: the reference never
        does); `enforce_schema` also passes the schema on to providers that can enforce one.
        """
        kind = self.kind if self.kind == "plan" or self.kind == "interrupt" else "text"
        return Request(
            messages=self.messages,
            draw=draw,
            schema=None if kind == "text" or not enforce_schema else provider_schema(reply_model(self.profile, kind)),
            malformed=malformed(self.profile, kind, require_action_type=require_action_type) if check else None,
        )


def system_prompt(facts: Facts) -> str:
    """Who the agent is, the world, what it can do, and its role."""
    team = "the only agent" if facts.team == 1 else f"one of {facts.team} agents who work as a team"
    world = _WORLDS[facts.profile]
    identity = f"You are {facts.name}, {team} in {_GAMES[facts.profile]}."
    return part.joined([identity, world.WORLD, world.ACTIONS, role_text(facts)])


def plan_prompt(facts: Facts) -> Prompt:
    """A plan call."""
    is_repair = facts.request is not None
    closing = (
        "Write a new plan for yourself that repairs this." if is_repair else "Write your plan for the coming steps."
    ) + " All agents carry out their plans at the same time; you are asked again when yours ends."
    user = part.joined(
        [
            part.prefix_text(facts),
            part.step_text(facts),
            part.configuration_text(facts),
            part.team_text(facts),
            part.status_text(facts),
            part.position_text(facts),
            part.visible_text(facts),
            part.view_text(facts),
            facts.world.hints,
            part.memory_text(facts),
            part.messages_text(facts),
            repair_section(facts),
            closing,
            _schema_text(facts.profile, "plan"),
        ]
    )
    return Prompt("plan", facts.profile, user, system_prompt(facts))


def interrupt_prompt(facts: Facts) -> Prompt:
    """An interrupt call."""
    inventory = f"You carry: {facts.world.inventory}" if facts.world.inventory else ""
    user = part.joined(
        [
            f"Step: {facts.step}. You were interrupted by a message.",
            part.configuration_text(facts),
            part.view_text(facts),
            facts.world.hints,
            part.status_text(facts),
            inventory,
            part.position_text(facts),
            part.memory_text(facts),
            part.proposals_text(facts),
            part.plan_status_text(facts.plan),
            "\n".join(["Messages:", *(part.mail_text(mail, detailed=True) for mail in facts.messages)]),
            "Decide what to do with your plan. Resume it if it still fits what was said. Replan if you are asked for "
            "something else, if your plan gets in the way of the others, or if the team needs you elsewhere; then give "
            "the whole new plan. A new plan drops what you are doing now, so do not replan to do the same again.",
            _schema_text(facts.profile, "interrupt"),
        ]
    )
    return Prompt("interrupt", facts.profile, user, system_prompt(facts))


def text_prompt(facts: Facts) -> Prompt:
    """A free-text call: a leader's directive, a follower's answer, a speaker's proposal, a member's message."""
    answer = _answer_text if facts.profile == "cube" else _report_text
    texts = {"leader": _directive_text, "follower": answer, "speaker": _proposal_text}
    return Prompt("text", facts.profile, texts.get(facts.role.kind, _member_text)(facts))


def statement_prompt(facts: Facts, request: RepairRequest) -> Prompt:
    """A repair statement; `request.statements` are those made before this one."""
    return Prompt("statement", facts.profile, statement_text(facts, request), system_prompt(facts))


def _specification(facts: Facts) -> str:
    return EXPLORING if facts.plan is None else facts.plan.plan.specification


def _directive_text(facts: Facts) -> str:
    followers = [agent for agent in range(facts.team) if agent != facts.agent]
    return (
        f"You are {facts.name} and lead a team. Your followers: {part.names_text(followers)}.\n"
        f"Your own plan: {_specification(facts)}\n\n"
        "Write a directive to all of them in 2 to 3 sentences: what the team goes for now, and who is to do what. "
        "Write the directive only."
    )


def _answer_text(facts: Facts) -> str:
    return (
        f"You are {facts.name} and follow {agent_name(facts.role.leader)}, who says:\n"
        f"  {part.indented(facts.directive or FIRST_MESSAGE)}\n\n"
        f"{_decided(facts)}Answer your leader in 1 to 2 sentences: say that you have understood and what you will do. "
        "Write the answer only."
    )


def _proposal_text(facts: Facts) -> str:
    count = len(facts.collected)
    earlier = "is 1 earlier proposal" if count == 1 else f"are {count or 'no'} earlier proposals"
    return (
        f"You are {facts.name}, and your team speaks in turn. Your plan: {_specification(facts)}. There {earlier}.\n\n"
        "Write your proposal to those who speak after you in 2 to 3 sentences: what you go for, where you need help, "
        "and when. Write the proposal only."
    )


def _report_text(facts: Facts) -> str:
    """The answer of a follower in MA-Crafter."""
    leader = agent_name(facts.role.leader)
    return part.joined(
        [
            f"You are {facts.name}. Your leader {leader} says:\n  {part.indented(facts.directive or FIRST_MESSAGE)}",
            f"Your plan: {_plan_summary(facts)}",
            part.position_text(facts),
            f"You carry: {facts.world.inventory}",
            facts.world.hints,
            part.memory_text(facts, TEXT_MEMORY_EVENTS),
            f"{_decided(facts)}Answer in 2 to 4 sentences: what you have, what you can get to, what you are going to "
            "do, and what you need from others. Write the answer only.",
        ]
    )


def _member_text(facts: Facts) -> str:
    """A message in a structure of one's own, which 6.4 says nothing about."""
    return part.joined(
        [
            f"You are {facts.name}, and your team talks before it plans. {facts.role.text}".strip(),
            part.prefix_text(facts) or FIRST_MESSAGE,
            f"Your plan: {_plan_summary(facts)}",
            part.position_text(facts),
            facts.world.hints,
            "Write a message to your team in 1 to 3 sentences: what you are going to do, and what you need from "
            "others. Write the message only.",
        ]
    )


def _plan_summary(facts: Facts) -> str:
    if facts.plan is None:
        return "none"
    return f"{facts.plan.plan.specification}: {operations_text(facts.plan.plan.actions)}"


def _decided(facts: Facts) -> str:
    """What a follower has decided after an interrupt, which its answer is to report."""
    if facts.decision is None:
        return ""
    kept = facts.decision == "resumed"
    what = "You go on with your plan" if kept else "You have made a new plan"
    return f"{what}: {_specification(facts)}. "


@cache
def _schema_text(profile: Profile, kind: Kind) -> str:
    """6.2: the schema, at the end of the last message."""
    schema = json.dumps(prompt_schema(reply_model(profile, kind)), separators=(",", ":"))
    return f"Reply with one JSON object that fits this schema, and nothing else:\n{schema}"
