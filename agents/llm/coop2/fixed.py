"""Texts without a model: messages that are worked out, and what is sent where a call failed.

Numbers are sections of docs/coop2.md, with an R those of docs/coop2_repair.md.
"""

from typing import Literal

from jaxcoop.agents.llm.coop2.facts import RepairRequest, agent_name
from jaxcoop.agents.llm.coop2.plans import TextPlan
from jaxcoop.cognition import wording

FIRST_MESSAGE = "(nothing has been said yet)"


def leader_request(agent: int) -> str:
    """5.2: what a leader of MA-Crafter asks of everybody; no call is made for it."""
    return wording.leader_request(agent_name(agent))


def chain_summary(agent: int, plan: TextPlan) -> str:
    """5.3: what a speaker of MA-Crafter tells the later ones; no call is made for it."""
    operations = [action.text() for action in plan.actions]
    return wording.plan_summary(agent_name(agent), plan.specification, operations)


def failed_text(agent: int, kind: Literal["leader", "follower", "speaker", "member"]) -> str:
    """6.2: the line that is sent in place of a message that could not be had."""
    name = agent_name(agent)
    return {
        "leader": f"{name}: no directive this time. Go on with the most useful task near you.",
        "follower": f"{name}: understood, I will plan accordingly.",
        "speaker": f"{name}: no proposal this time, I go on as planned.",
        "member": f"{name}: nothing to add this time.",
    }[kind]


def failed_statement(agent: int) -> str:
    """6.2: the statement of a member of a repair channel whose call failed."""
    return f"{agent_name(agent)} could not make a statement and will revise its plan by the advice."


def repair_summary(request: RepairRequest) -> str:
    """6.4: a repair request in one line."""
    tasks = sorted({failure.task for failure in request.failures})
    constraints = sorted({failure.constraint for failure in request.failures})
    return (
        f"Plans are to be revised at step {request.step}: {', '.join(constraints) or 'no constraint'} of "
        f"{', '.join(tasks) or 'no task'} will not be met."
    )
