"""8: what a repair channel is told, and the part of a plan prompt that is made of it.

Numbers are sections of docs/coop2_repair.md.
"""

from collections.abc import Iterable, Mapping

from jaxcoop.agents.llm.coop2.facts import Candidate, Facts, Failure, PlanView, RepairRequest, ToolHint, agent_name
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.plans import TextPlan, operations_text
from jaxcoop.agents.llm.coop2.sections import indented, joined, names_text
from jaxcoop.cognition.wording import REPAIR_ADVICE

FAILURES = {"cube": 6, "macrafter": 8}
TEAMMATES = 5
CANDIDATES = 5
TOOL_HINTS = 5
BLOCKED = 3
VIEWS = 12
VIEW_OPERATIONS = 4
STATEMENT = 280
"""8: how many failures, plans of teammates, targets, hints and plans a prompt shows, how many operations of each plan,
and how many characters of each statement.
"""


INSTRUCTIONS = {
    "soft_sync": "Keep the shared target if you can, arrive at about the same time, and stay long enough to overlap.",
    "dependency_first": "See to the missing tools first; go for the shared target when enough of you hold them.",
    "align_push": "Line up on one face, wait for the last to arrive, then push together.",
}
"""9, 10: what each strategy of the guidance asks for."""

ADVISORY = "All of this is advice. The plan that you write is the one that counts."

_MET = {
    "spatial": "will be in place",
    "temporal": "will act at the same time",
    "dependency": "will hold what is needed",
}


def failure_text(failure: Failure, detailed: bool = False) -> str:
    """A failing constraint and why it fails; `detailed` with the agents and what is known of the task."""
    met = max(0, round(failure.score * failure.required))
    what = _MET.get(failure.constraint, "will meet it")
    text = f"{failure.task}, {failure.constraint}: {met} of {failure.required} agents {what}"
    if not detailed:
        return text
    about = [failure.about] if failure.about else []
    about += [f"tool {failure.tool}"] if failure.tool else []
    about += [f"agents {names_text(failure.agents)}"] if failure.agents else []
    return f"{text} ({'; '.join(about)})" if about else text


def request_text(profile: Profile, request: RepairRequest) -> str:
    """8: the whole request as it is sent to the channel."""
    return joined(
        [
            f"Repair request at step {request.step}: before this step is made, plans are checked, and some will not "
            "work.",
            _lines("Failures:", (failure_text(f, detailed=True) for f in request.failures)),
            _lines("Plans that were checked:", _view_lines(request.views, None)),
            f"Advice: {REPAIR_ADVICE[profile]}",
            _guidance_text(request),
            _transcript_text(request),
        ]
    )


def _guidance_text(request: RepairRequest) -> str:
    return joined(
        [
            _strategy_text(request),
            "" if request.target is None else f"Recommended target: {_candidate_text(request.target)}",
            _lines("Recommended plans:", _plan_lines(request.recommended)),
            _lines("Other targets:", map(_candidate_text, request.candidates)),
            _lines("Tools:", map(_tool_text, request.tools)),
            _lines("Targets once the tools are there:", map(_candidate_text, request.blocked)),
        ]
    )


def _transcript_text(request: RepairRequest) -> str:
    """The round of statements, and what follows from it."""
    if not request.statements:
        return "Revise your plan now."
    order = names_text([agent for agent, _ in request.statements])
    return "\n".join(
        [
            f"Channel, one statement each, in the order {order}:",
            *(f"{turn}. {agent_name(who)}: {indented(said)}" for turn, (who, said) in enumerate(request.statements, 1)),
            "Revise your plan now so that it fits these statements.",
        ]
    )


def repair_section(facts: Facts) -> str:
    """8: the part of a plan prompt that is about the latest repair request; empty if there is none."""
    request = facts.request
    if request is None:
        return ""
    is_full = facts.profile == "macrafter"
    failures = request.failures[: FAILURES[facts.profile]]
    own = request.recommended.get(facts.agent)
    others = [(agent, plan) for agent, plan in sorted(request.recommended.items()) if agent != facts.agent]
    parts = [
        f"# Repair\nA check before step {request.step} found that the present plans will not work.",
        _lines("Failures:", (failure_text(failure, detailed=is_full) for failure in failures)),
        f"Recommended for you: {'no plan' if own is None else _plan_text(own)}",
        _lines("Recommended for teammates:", _plan_lines(dict(others[:TEAMMATES]))),
    ]
    if is_full:
        parts += _macrafter_parts(request)
    return joined([*parts, ADVISORY])


def _macrafter_parts(request: RepairRequest) -> list[str]:
    """8: what only MA-Crafter's section holds."""
    views = dict(sorted(request.views.items())[:VIEWS])
    statements = (f"{agent_name(agent)}: {_cut(said)}" for agent, said in request.statements)
    return [
        _strategy_text(request),
        "" if request.target is None else f"Recommended target: {_candidate_text(request.target)}",
        _lines("Candidate targets:", map(_candidate_text, request.candidates[:CANDIDATES])),
        _lines("Tools:", map(_tool_text, request.tools[:TOOL_HINTS])),
        _lines("Targets once the tools are there:", map(_candidate_text, request.blocked[:BLOCKED])),
        _lines("Present plans:", _view_lines(views, VIEW_OPERATIONS)),
        _lines("Statements in the channel:", statements),
    ]


def _strategy_text(request: RepairRequest) -> str:
    if not request.strategy:
        return ""
    instruction = INSTRUCTIONS.get(request.strategy, "")
    return f"Strategy: {request.strategy}. {instruction}".strip()


def statement_text(facts: Facts, request: RepairRequest) -> str:
    """8: what a member of the channel is asked; `request.statements` are those made before its turn."""
    own = request.recommended.get(facts.agent)
    shown = request.failures[: FAILURES[facts.profile]]
    said = (f"{agent_name(agent)}: {_cut(text)}" for agent, text in request.statements)
    view = request.views.get(facts.agent)
    plan = "none" if view is None else f"{view.plan.specification}: {operations_text(view.plan.actions[view.index :])}"
    return joined(
        [
            f"Before step {request.step} is made, a check of all plans found that some will not work.",
            _lines("Failures:", (failure_text(failure, detailed=True) for failure in shown)),
            f"Your plan: {plan}",
            f"Advice: {REPAIR_ADVICE[facts.profile]}",
            "" if own is None else f"Recommended for you: {_plan_text(own)}",
            "" if request.target is None else f"Recommended target: {_candidate_text(request.target)}",
            _lines("Said before you:", said) or "You speak first.",
            "Each member of this channel says one thing, once; then all of you revise your plans. Say in one or two "
            "plain sentences what you will do: which task, which place, and when you will be there and act.",
        ]
    )


def _plan_text(plan: TextPlan) -> str:
    return f"{plan.specification}: {operations_text(plan.actions)}"


def _plan_lines(plans: Mapping[int, TextPlan]) -> Iterable[str]:
    return (f"{agent_name(agent)}: {_plan_text(plan)}" for agent, plan in sorted(plans.items()))


def _view_lines(views: Mapping[int, PlanView], limit: int | None) -> Iterable[str]:
    for agent, view in sorted(views.items()):
        actions = operations_text(view.plan.actions[view.index :], limit)
        yield f"{agent_name(agent)}: {view.plan.specification} ({view.status}): {actions}"


def _candidate_text(candidate: Candidate) -> str:
    parts = [candidate.target]
    parts += [f"at {candidate.position}"] if candidate.position is not None else []
    parts.append(f"for {names_text(candidate.participants)}")
    parts += [f"{candidate.steps} steps until all can act"] if candidate.steps is not None else []
    parts += [f"time-out {candidate.timeout}"] if candidate.timeout is not None else []
    parts += [candidate.stage.replace("_", " ")] if candidate.stage else []
    parts += [f"reach {candidate.reach}"] if candidate.reach else []
    return ", ".join(parts)


def _tool_text(hint: ToolHint) -> str:
    advice = "; ".join(f"{agent_name(agent)}: {what}" for agent, what in sorted(hint.advice.items()))
    return f"{hint.task} needs {hint.tool}; {advice}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= STATEMENT else line[: STATEMENT - 1] + "…"


def _lines(heading: str, lines: Iterable[str]) -> str:
    """A heading with its lines; empty without any."""
    listed = [f"- {line}" for line in lines]
    return "\n".join([heading, *listed]) if listed else ""
