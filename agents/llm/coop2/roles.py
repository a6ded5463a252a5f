"""5, 6.4: what each place in a communication structure means, as the end of the system prompt.

Numbers are sections of docs/coop2.md.
"""

from jaxcoop.agents.llm.coop2.facts import Facts, agent_name

INDEPENDENT = (
    "You decide for yourself and are in no regular contact with the others. Judge from what you see what they are "
    "doing, and choose what helps most."
)
LEADER = (
    "You lead the team. You tell the others what to do, hear their answers, and then settle your own plan. See to it "
    "that everybody has something useful to do, and that a task which takes several agents gets them at the same place "
    "at the same time."
)
FOLLOWER = (
    "You follow {leader}. You are told what to do, you answer, and then you plan. Do what your leader asks as far as "
    "it is possible, and say so plainly where it is not."
)
FIRST = (
    "You speak first, and all others hear you. Set a direction: name what the team should go for and who is needed "
    "where and when."
)
MIDDLE = (
    "You are speaker {number} of {team}. You have heard those before you and are heard by those after you. Build on "
    "what was proposed, fill gaps, and repeat nothing."
)
LAST = (
    "You speak last and have heard everybody. Settle what is still open and fit your plan to what the others will do."
)
MEMBER = "You are part of the team. Read what the others say, and fit your plan to theirs."


def role_text(facts: Facts) -> str:
    """What the agent is in the team."""
    role = facts.role
    return "# Your role\n" + (role.text or _texts(facts)[role.kind])


def _texts(facts: Facts) -> dict[str, str]:
    position, team = facts.role.position, facts.team
    speaker = FIRST if position == 0 else LAST if position == team - 1 else MIDDLE
    return {
        "independent": INDEPENDENT,
        "leader": LEADER,
        "follower": FOLLOWER.format(leader=agent_name(facts.role.leader)),
        "speaker": speaker.format(number=position + 1, team=team),
        "member": MEMBER,
    }
