"""What is written down of one episode: typed rows, numpy arrays, host side.

Axes: every record has its own rows; A agents, L ops of a plan, W words of an op row, S = 3 words of a specification,
C = 3 scored constraints, T primitive steps.  Integers are int32 unless a field says otherwise; `seq` numbers the
events of an episode in the order in which they happened.  Numbers are sections of docs/coop2.md.
"""

import dataclasses
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float32]

RecordT = TypeVar("RecordT")

REPAIR_SENDER = "coop2_repair"
"""Name of the sender with the number A."""


class Check(IntEnum):
    """What came of a check of plans before a step."""

    PASSED = 0
    COOLING = 1  # failures, but every key is cooling down
    REPAIRED = 2  # the channel was opened


@dataclass(frozen=True)
class Timeline:
    """1: changes of stages."""

    seq: Ints
    time_ms: Ints
    env_step: Ints
    agent: Ints
    stage: Ints  # Stage


@dataclass(frozen=True)
class Messages:
    """4: messages, one row for all its recipients."""

    seq: Ints
    time_ms: Ints
    env_step: Ints
    sender: Ints  # agent, or A for the repair channel
    mail: Ints  # Mail
    call: Ints  # the sender's call that wrote it, -1: none
    plan: Ints  # the sender's plan that it tells of, -1: none
    recipients: Flags  # [rows, A]


@dataclass(frozen=True)
class Plans:
    """2: closed plans."""

    seq: Ints
    agent: Ints
    plan_id: Ints
    created_step: Ints
    start_step: Ints  # -1: never started
    end_step: Ints
    status: Ints  # PlanStatus
    reason: Ints  # Ended, or Ended.SKILL + the skills' reason
    done: Ints  # ops done
    length: Ints  # number of ops
    created_ms: Ints
    end_ms: Ints
    spec: Ints  # [rows, S]
    ops: Ints  # [rows, L, W]
    op_steps: Ints  # [rows, L, 2] first and last step of each op, -1: none


@dataclass(frozen=True)
class Calls:
    """6: calls to the planner."""

    seq: Ints
    agent: Ints
    kind: Ints  # Call
    start_ms: Ints
    end_ms: Ints
    verdict: Ints  # Verdict
    env_step: Ints
    turn: Ints  # number of the agent's call


@dataclass(frozen=True)
class Repairs:
    """Checks of plans before steps, and the channels that they opened."""

    seq: Ints
    time_ms: Ints
    env_step: Ints
    check: Ints  # Check
    is_new: Flags  # evaluated now, not taken over from the last check
    members: Flags  # [rows, A] of the channel; nobody unless it was opened


@dataclass(frozen=True)
class Failures:
    """Constraints that checks predict to fail."""

    repair: Ints  # row of `Repairs`
    task: Ints  # slot of the task
    kind: Ints  # the environment's code of its type, -1: none
    constraint: Ints  # Constraint
    score: Floats


@dataclass(frozen=True)
class Process:
    """7, process log: one row for each primitive step."""

    plan: Ints  # [T, A] plan_id, -1: none
    index: Ints  # [T, A] op before the step
    op: Ints  # [T, A, W]
    index_after: Ints  # [T, A]
    status: Ints  # [T, A] PlanStatus after the step
    target: Ints  # [T, A] slot of the task that the plan aims at, -1: none
    target_kind: Ints  # [T, A] the environment's code of its type, -1: none
    task: Ints  # [T, A] task of the attempt event in this row, -1: no event
    required: Ints  # [T, A]
    attempting: Ints  # [T, A]
    success: Flags  # [T, A]
    scores: Floats  # [T, A, C]
    event: Ints  # [T, A] row of the event that the agent takes part in, -1: none
    score: Floats  # [T] of the team, after the step


@dataclass(frozen=True)
class Changes:
    """7, task states: constraints of tasks that moved in a step.  Empty unless asked for."""

    env_step: Ints
    task: Ints  # slot
    kind: Ints  # the environment's code of its type, -1: none
    constraint: Ints  # Constraint
    improved: Flags  # else worsened


@dataclass(frozen=True)
class Holdings:
    """7, capability changes: items that agents gained or lost.  Empty unless asked for."""

    env_step: Ints
    agent: Ints
    item: Ints  # the environment's code
    old: Ints
    new: Ints


@dataclass(frozen=True)
class EpisodeLog:
    """Everything of one episode."""

    agents: int
    end_ms: int  # when the last pass has ended
    timed_out: bool
    committed: Ints  # [A] plans that each agent committed, also those that were never registered
    timeline: Timeline
    messages: Messages
    plans: Plans
    calls: Calls
    repairs: Repairs
    failures: Failures
    process: Process
    changes: Changes
    holdings: Holdings

    @property
    def env_steps(self) -> int:
        """Primitive steps that were made."""
        return len(self.process.score)


RECORDS: dict[str, type] = {
    "timeline": Timeline,
    "messages": Messages,
    "plans": Plans,
    "calls": Calls,
    "repairs": Repairs,
    "failures": Failures,
    "process": Process,
    "changes": Changes,
    "holdings": Holdings,
}
"""Records of an episode by the name of their field."""

_INNER: dict[tuple[str, str], str] = {
    ("messages", "recipients"): "A",
    ("plans", "spec"): "S",
    ("plans", "ops"): "LW",
    ("plans", "op_steps"): "L2",
    ("repairs", "members"): "A",
    **{("process", name): "A" for name in (
        "plan", "index", "index_after", "status", "target", "target_kind", "task", "required",
        "attempting", "success", "event",
    )},
    ("process", "op"): "AW",
    ("process", "scores"): "AC",
}  # fmt: skip
"""Axes of a field behind its rows."""


def none_of(name: str, *, agents: int, ops: int = 1, width: int = 1) -> Any:
    """The record of this name without rows."""
    sizes = {"A": agents, "L": ops, "W": width, "S": 3, "C": 3, "2": 2}
    arrays = {}
    for field in dataclasses.fields(RECORDS[name]):
        shape = tuple(sizes[axis] for axis in _INNER.get((name, field.name), ""))
        arrays[field.name] = np.zeros((0, *shape), dtype_of(field))
    return RECORDS[name](**arrays)


def dtype_of(field: "dataclasses.Field[Any]") -> type[np.generic]:
    """Type of the entries of a record's field."""
    return {Flags: np.bool_, Floats: np.float32}.get(field.type, np.int32)  # type: ignore[arg-type]


def exact_scores(process: Process) -> NDArray[np.float64]:
    """[T, A, C] scores as agents / required in double precision, which single precision only comes close to."""
    required = np.maximum(process.required, 1)[..., None].astype(np.float64)
    return np.rint(process.scores.astype(np.float64) * required) / required
