"""6.4: the parts of which prompts are put together.  Numbers are sections of docs/coop2.md.

Every part is a text without a final line break; an empty one is left out.
"""

from collections.abc import Iterable, Sequence

from jaxcoop.agents.llm.coop2.facts import Facts, Mail, MemoryEvent, PlanView, agent_name, is_repair
from jaxcoop.agents.llm.coop2.fixed import FIRST_MESSAGE, repair_summary
from jaxcoop.agents.llm.coop2.plans import operations_text
from jaxcoop.cognition.logs import REPAIR_SENDER

MEMORY_EVENTS = 5
REMAINING_OPERATIONS = 5
LISTED_AGENTS = 12
"""Teams up to this size are listed name by name."""


def joined(parts: Iterable[str]) -> str:
    """Parts with a blank line between them."""
    return "\n\n".join(part for part in parts if part)


def names_text(agents: Sequence[int]) -> str:
    """Names of agents; a long unbroken run of them as a range."""
    if len(agents) > LISTED_AGENTS and list(agents) == list(range(agents[0], agents[-1] + 1)):
        return f"{agent_name(agents[0])} to {agent_name(agents[-1])}"
    return ", ".join(agent_name(agent) for agent in agents)


def team_text(facts: Facts) -> str:
    """Who is in the team, as far as the role knows it."""
    role, you = facts.role, f"You are {facts.name}."
    whole = facts.profile == "macrafter"
    if role.kind == "independent" and not whole:
        return f"Team: {you}"
    if role.kind == "follower" and not whole:
        return f"Team: {you} Your leader is {agent_name(role.leader)}."
    if facts.team == 1:
        return f"Team: {you} Nobody else is there."
    order = " They speak in this order." if role.kind == "speaker" else ""
    others = [agent for agent in range(facts.team) if agent != facts.agent]
    listed = others if facts.team <= LISTED_AGENTS else list(range(facts.team))
    end = "" if listed is others else ", you included"
    return f"Team: {you} Your collaborators are {names_text(listed)}{end}.{order}"


def mail_text(mail: Mail, detailed: bool = False) -> str:
    """One message in a line; `detailed` with what is known of it beside the text."""
    about = []
    if detailed:
        about += [mail.type] if mail.type else []
        about.append(f"step {mail.step}")
        about += [f"to {recipients_text(mail)}"] if mail.recipients else []
        about += [f"turn {mail.speaker_order + 1}"] if mail.speaker_order is not None else []
        about += ["meant to interrupt"] if mail.interrupts else []
    note = f" ({'; '.join(about)})" if about else ""
    return f"- {mail.sender}{note}: {indented(mail.content)}"


def recipients_text(mail: Mail) -> str:
    """Who a message is for; of many only the number."""
    count = len(mail.recipients)
    return ", ".join(mail.recipients) if count <= LISTED_AGENTS else f"{count} agents"


def indented(text: str) -> str:
    """A text whose further lines stand below the first, so that no message can pass for another part of a prompt."""
    return "\n  ".join(text.strip().splitlines())


def prefix_text(facts: Facts) -> str:
    """What the structure puts before everything else."""
    kind = facts.role.kind
    if kind == "follower":
        leader = agent_name(facts.role.leader)
        return f"The latest message of your leader {leader}:\n  {indented(facts.directive or FIRST_MESSAGE)}"
    if kind == "leader" and facts.profile == "macrafter":
        return _listed("What your followers answered:", facts.collected, "Nobody answered in time.")
    if kind == "speaker":
        return _listed(
            "What earlier speakers proposed, oldest first:", facts.collected, "Nobody has proposed anything yet."
        )
    if kind == "member":
        return _listed("What has been said, oldest first:", facts.collected, "")
    return ""


def proposals_text(facts: Facts) -> str:
    """A chain's proposals as they were known before an interrupt."""
    if facts.role.kind != "speaker":
        return ""
    return _listed("Proposals known before this interrupt, oldest first:", facts.collected, "No proposals were known.")


def _listed(heading: str, mails: Sequence[Mail], nothing: str) -> str:
    return "\n".join([heading, *(mail_text(mail) for mail in mails)]) if mails else nothing


def step_text(facts: Facts) -> str:
    """How many steps have been made."""
    return f"Step: {facts.step}"


def configuration_text(facts: Facts) -> str:
    """What the task takes, after a goal of one's own."""
    goal = f"Your goal: {facts.goal}" if facts.goal and facts.role.kind == "independent" else ""
    return joined([goal, f"Cooperative configuration:\n{facts.world.configuration}"])


def status_text(facts: Facts) -> str:
    """Vitals, tools and resources."""
    return f"Your state: {facts.world.status}" if facts.world.status else ""


def position_text(facts: Facts) -> str:
    """Where one is."""
    return f"Your position: {facts.world.position}"


def visible_text(facts: Facts) -> str:
    """How far one sees."""
    return f"Visible area: {facts.world.visible_area}" if facts.world.visible_area else ""


def view_text(facts: Facts) -> str:
    """What is there, with ids."""
    return f"What you see:\n{facts.world.view}"


def memory_text(facts: Facts, limit: int = MEMORY_EVENTS) -> str:
    """The last events that one remembers."""
    if not facts.memory:
        return "Recent events: none yet."
    lines = [f"- step {event.step}: {_event_text(facts, event)}" for event in facts.memory[-limit:]]
    return "\n".join(["Recent events, oldest first:", *lines])


def _event_text(facts: Facts, event: MemoryEvent) -> str:
    mail, view = event.mail, event.plan
    if event.kind == "plan_failure":
        task = "" if view is None else f" {view.plan.specification}"
        return f"your plan{task} failed at {event.operation or 'an unknown operation'}{_because(event.reason)}"
    if view is not None:
        return f"you planned {view.plan.specification}: {operations_text(view.plan.actions)}"
    if mail is None:
        return event.kind
    content = mail.content
    if mail.request is not None and facts.profile == "macrafter":
        content = repair_summary(mail.request)
    who = f"you to {recipients_text(mail)}" if event.kind == "message_out" else f"{mail.sender} to you"
    return f"{who}: {indented(content)}"


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def messages_text(facts: Facts) -> str:
    """Messages in a plan prompt: those of an individual agent in R, and in a replan after a repair request."""
    is_listed = facts.role.kind == "member" or facts.request is not None
    is_listed |= facts.role.kind == "independent" and not facts.interrupted
    mails = facts.messages if is_listed else ()
    if facts.profile == "cube":
        mails = tuple(mail for mail in mails if not is_repair(mail))
    if not mails:
        return ""
    lines = [
        f"- {REPAIR_SENDER}: {repair_summary(mail.request)}" if mail.request is not None else mail_text(mail)
        for mail in mails
    ]
    return "\n".join(["Messages that you received:", *lines])


def plan_status_text(view: PlanView | None) -> str:
    """What one is doing: task, id, status, progress, the current operation and the next ones."""
    if view is None:
        return "Your plan: none"
    actions, index = view.plan.actions, view.index
    lines = [
        f"Your plan: {view.plan.specification} (plan {view.number}, {view.status}, {index} of {len(actions)} "
        "operations done)",
        f"- now: {actions[index].text() if index < len(actions) else 'nothing'}",
    ]
    remaining = actions[index + 1 :]
    if remaining:
        lines.append(f"- then: {operations_text(remaining, REMAINING_OPERATIONS)}")
    return "\n".join(lines)
