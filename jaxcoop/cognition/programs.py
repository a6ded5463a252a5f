"""5: communication structures as data: what agents do when they reason or were interrupted, step by step.

Numbers are sections of docs/coop2.md.  A structure names roles; a role has two programs, one for each stage in which
an agent thinks.  The engine interprets them, so a new structure needs no change of the engine.
"""

import dataclasses
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache

import numpy as np

from jaxcoop.cognition.types import Call, Mail
from jaxcoop.core.registry import unknown

GATHER_MS = 30_000
"""5.2: how long a leader waits for answers."""


class Do(IntEnum):
    """What an instruction does."""

    END = 0  # commit the plan that was made in this pass, or else resume the old one
    COLLECT = 1  # empty the mailbox; x = 1: into the history of proposals
    CALL = 2  # ask the planner; x: kind (Call)
    SEND = 3  # one message; x: type (Mail), y: group of recipients, z: `INTERRUPTS` | `ANSWERS`
    WAIT_PEER = 4  # until the peer is ready or a message of it is in the mailbox
    GATHER = 5  # until all of group y have answered, at most x ms; then empty the mailbox
    JUMP = 6  # to instruction y if x (When) holds


class When(IntEnum):
    """Conditions of jumps."""

    ALWAYS = 0
    EMPTY = 1  # nothing was in the mailbox when it was emptied
    GOT_REPAIR = 2  # a repair request was
    GOT_PEER = 3  # a message of the peer was
    NOT_GOT_PEER = 4
    HAS_REPAIR = 5  # a repair request is in the mailbox now
    PEER_READY = 6
    NO_AUDIENCE = 7  # group 0 of this agent is empty
    KEEPS = 8  # the decision was to resume
    DECIDED = 9  # the decision needs no further plan: resume, or replan with a plan


INTERRUPTS, ANSWERS = 1, 2
"""Flags of a message: it interrupts agents that execute; it counts as an answer for `GATHER`."""


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One step of a program; `to` names the label that a jump goes to."""

    do: Do
    x: int = 0
    y: int = 0
    z: int = 0
    to: str = ""


Program = Sequence[Instruction | str]
"""Instructions and labels (strings, each in front of the instruction that it names)."""

END = Instruction(Do.END)
COLLECT = Instruction(Do.COLLECT)
COLLECT_PROPOSALS = Instruction(Do.COLLECT, 1)
WAIT_PEER = Instruction(Do.WAIT_PEER)


def call(kind: Call) -> Instruction:
    """Ask the planner."""
    return Instruction(Do.CALL, int(kind))


def send(mail: Mail, group: int = 0, flags: int = 0) -> Instruction:
    """Send one message to a group."""
    return Instruction(Do.SEND, int(mail), group, flags)


def gather(timeout_ms: int = GATHER_MS, group: int = 0) -> Instruction:
    """Wait for the answers of a group."""
    return Instruction(Do.GATHER, timeout_ms, group)


def jump(when: When, to: str) -> Instruction:
    """Go on at a label if a condition holds."""
    return Instruction(Do.JUMP, int(when), to=to)


@dataclasses.dataclass(frozen=True)
class Role:
    """What agents of one kind do."""

    name: str
    reason: tuple[Instruction | str, ...]  # in stage R
    decide: tuple[Instruction | str, ...]  # in stage I


@dataclasses.dataclass(frozen=True)
class Cast:
    """Who plays what in a team of n."""

    role: np.ndarray  # [n] index into `Structure.roles`
    peer: np.ndarray  # [n] the agent that WAIT_PEER waits for, -1: nobody
    groups: np.ndarray  # [G, n, n] bool: `groups[g, i]` are the recipients of agent i


@dataclasses.dataclass(frozen=True)
class Structure:
    """A communication structure.  `cast(n)` gives the cast of a team of n agents, n >= `least`."""

    name: str
    roles: tuple[Role, ...]
    cast: Callable[[int], Cast]
    least: int = 1


@dataclasses.dataclass(frozen=True)
class Tables:
    """A structure for a team of n, as the engine reads it."""

    code: np.ndarray  # [P, 4] do, x, y, z
    entry: np.ndarray  # [n, 2] first instruction in stage R and in stage I
    peer: np.ndarray  # [n]
    groups: np.ndarray  # [G, n, n]


def _assembled(program: Program, start: int) -> list[tuple[int, int, int, int]]:
    """Rows of a program that begins at address `start`."""
    labels: dict[str, int] = {}
    address = start
    for item in program:
        if isinstance(item, str):
            labels[item] = address
        else:
            address += 1
    rows = []
    for item in program:
        if isinstance(item, str):
            continue
        if item.do == Do.JUMP and item.to not in labels:
            raise unknown("label", item.to, labels)
        target = labels[item.to] if item.do == Do.JUMP else item.y
        rows.append((int(item.do), int(item.x), int(target), int(item.z)))
    if not rows or rows[-1][0] != Do.END:
        raise ValueError("a program of a communication structure must end with END")
    return rows


@lru_cache(maxsize=64)
def tables(structure: Structure, agents: int) -> Tables:
    """The structure for a team.  Raises `ValueError` for a team that is too small."""
    if agents < structure.least:
        raise ValueError(f"agents {agents}: structure {structure.name!r} needs {structure.least} or more")
    rows: list[tuple[int, int, int, int]] = []
    entries = []
    for role in structure.roles:
        pair = []
        for program in (role.reason, role.decide):
            pair.append(len(rows))
            rows += _assembled(program, len(rows))
        entries.append(pair)
    cast = structure.cast(agents)
    groups = np.asarray(cast.groups, bool)
    return Tables(
        code=np.asarray(rows, np.int32),
        entry=np.asarray(entries, np.int32)[cast.role],
        peer=np.asarray(cast.peer, np.int32),
        groups=groups,
    )
