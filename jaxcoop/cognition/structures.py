"""5.1 to 5.3: the three communication structures of COOP², for both profiles.

Numbers are sections of docs/coop2.md.
"""

import numpy as np

from jaxcoop.cognition.programs import (
    ANSWERS,
    COLLECT,
    COLLECT_PROPOSALS,
    END,
    INTERRUPTS,
    WAIT_PEER,
    Cast,
    Program,
    Role,
    Structure,
    When,
    call,
    gather,
    jump,
    send,
)
from jaxcoop.cognition.types import Call, Mail
from jaxcoop.core.registry import unknown

_PLAN, _TEXT, _DECIDE = call(Call.PLAN), call(Call.TEXT), call(Call.DECIDE)
_ANSWER = send(Mail.FOLLOWER_RESPONSE, flags=ANSWERS)
_TO_REPAIR = jump(When.HAS_REPAIR, "repair")
_REPAIR: Program = ("repair", COLLECT, _PLAN, END)
"""How a MA-Crafter agent meets a repair request: a new plan, and nothing is said."""


def _alone(agents: int) -> Cast:
    return Cast(role=np.zeros(agents, int), peer=np.full(agents, -1), groups=np.zeros((1, agents, agents), bool))


def _led(agents: int) -> Cast:
    """Agent 0 leads."""
    groups = np.zeros((1, agents, agents), bool)
    groups[0, 0, 1:] = True
    groups[0, 1:, 0] = True
    peer = np.zeros(agents, int)
    peer[0] = -1
    return Cast(role=np.minimum(np.arange(agents), 1), peer=peer, groups=groups)


def _in_line(agents: int) -> Cast:
    """Each speaks to all that come later, and waits for the one before."""
    ids = np.arange(agents)
    return Cast(role=np.zeros(agents, int), peer=ids - 1, groups=(ids[None, :] > ids[:, None])[None])


INDIVIDUAL = Structure(
    name="individual",
    roles=(
        Role(
            name="individual",
            reason=(COLLECT, _PLAN, END),
            decide=(
                COLLECT,
                jump(When.EMPTY, "end"),
                jump(When.GOT_REPAIR, "plan"),
                _DECIDE,
                jump(When.DECIDED, "end"),
                "plan",
                _PLAN,
                "end",
                END,
            ),
        ),
    ),
    cast=_alone,
)


def _centralized(*, writes: bool) -> Structure:
    """`writes`: the leader's directive is written by its planner (CUBE), not fixed (MA-Crafter)."""
    directive = send(Mail.LEADER_BROADCAST, flags=0 if writes else INTERRUPTS)
    opening = (_TEXT, directive) if writes else (directive,)
    leads = (*opening, gather(), _PLAN, END)
    follows = (
        COLLECT,
        jump(When.EMPTY, "end"),
        jump(When.GOT_REPAIR, "plan"),
        _DECIDE,
        jump(When.DECIDED, "answer"),
        "plan",
        _PLAN,
        "answer",
        jump(When.NOT_GOT_PEER, "end"),
        jump(When.PEER_READY, "end"),
        _TEXT,
        _ANSWER,
        "end",
        END,
    )
    leader = Role("leader", leads, leads if writes else (_TO_REPAIR, *leads, *_REPAIR))
    follower = Role(
        "follower",
        (WAIT_PEER, COLLECT, jump(When.PEER_READY, "plan"), _TEXT, _ANSWER, "plan", _PLAN, END),
        follows if writes else (_TO_REPAIR, *follows, *_REPAIR),
    )
    return Structure("centralized", (leader, follower), _led, least=2)


def _chain(*, writes: bool) -> Structure:
    """`writes`: a proposal is written before the plan is made (CUBE), not a summary of the plan (MA-Crafter)."""
    speech = send(Mail.BROADCAST_CHAIN, flags=0 if writes else INTERRUPTS)
    says = (_TEXT, speech) if writes else (speech,)
    to_end = jump(When.NO_AUDIENCE, "end")
    proposes = (jump(When.NO_AUDIENCE, "plan"), *says, "plan", _PLAN, END)
    plans = (_PLAN, to_end, *says, "end", END)
    decides = (
        WAIT_PEER,
        COLLECT_PROPOSALS,
        jump(When.EMPTY, "end"),
        jump(When.GOT_REPAIR, "plan"),
        _DECIDE,
        jump(When.KEEPS, "end"),
        jump(When.DECIDED, "talk"),
        "plan",
        _PLAN,
        "talk",
        to_end,
        *says,
        "end",
        END,
    )
    speaker = Role(
        "speaker",
        (WAIT_PEER, COLLECT_PROPOSALS, *(proposes if writes else plans)),
        decides if writes else (_TO_REPAIR, *decides, *_REPAIR),
    )
    return Structure("broadcast_chain", (speaker,), _in_line)


STRUCTURES: dict[str, dict[str, Structure]] = {
    "cube": {s.name: s for s in (INDIVIDUAL, _centralized(writes=True), _chain(writes=True))},
    "macrafter": {s.name: s for s in (INDIVIDUAL, _centralized(writes=False), _chain(writes=False))},
}
"""By profile and name."""


def structure_of(profile: str, name: str) -> Structure:
    """The structure of a profile.  Raises `ValueError` naming those that there are."""
    named = STRUCTURES[profile]
    if name not in named:
        raise unknown("structure", name, named)
    return named[name]
