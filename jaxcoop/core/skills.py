"""Skills: temporally extended actions of agents, compiled into primitives step by step.

Axes: A agents, W width of an op row.  An op is a row `(kind, arg0, …)` of int32, unused entries -1.  A skill runs until
`check` says otherwise; what it needs to remember in between is the memory, one row per agent.

    memory = skills.idle()
    draws = skills.sample_draws(key, state)
    memory = skills.begin(state, memory, ops, fresh, draws) # agents in `fresh` start their op
    command, memory = skills.command(state, memory, draws)  # one primitive for each agent
    step = env.step(state, command, env_draws)
    report = skills.check(step.state, memory)               # running, succeeded or failed, and why
"""

import dataclasses
from enum import IntEnum
from typing import Any, Protocol

from flax import struct
from jaxtyping import Array, Bool, Int


@struct.dataclass
class NoDraws:
    """The draws of a step without randomness."""


class Status(IntEnum):
    """State of a skill after a step."""

    PENDING = 0
    SUCCESS = 1
    FAILED = 2


@struct.dataclass
class Report:
    """What became of the agents' skills in the last step."""

    status: Int[Array, " A"]  # `Status`, int8
    reason: Int[Array, " A"]  # index into `Skills.reasons`, int8; 0 unless failed


@dataclasses.dataclass(frozen=True)
class OpSpec:
    """Name and arguments of one kind of op."""

    name: str
    arguments: tuple[str, ...] = ()


class Skills(Protocol):
    """The symbolic actions of an environment; pure functions over all agents of one episode, batched by `vmap`."""

    @property
    def ops(self) -> tuple[OpSpec, ...]:
        """The kinds of ops; `ops[k]` is the kind with number k."""
        ...

    @property
    def reasons(self) -> tuple[str, ...]:
        """Texts of the failure reasons; entry 0 is empty."""
        ...

    @property
    def width(self) -> int:
        """W: one more than the largest number of arguments."""
        ...

    def idle(self) -> Any:
        """Memory when no agent runs a skill; leaves have the leading axis A."""
        ...

    def sample_draws(self, key: Array, state: Any) -> Any:
        """Every random number of the coming `begin` and `command`; none by default."""
        del key, state
        return NoDraws()

    def begin(
        self, state: Any, memory: Any, ops: Int[Array, "A W"], fresh: Bool[Array, " A"], draws: Any = None
    ) -> Any:
        """Start the op of each agent in `fresh`; whatever it ran before is cancelled.  Unknown kinds are defined.

        Skills without randomness ignore `draws`, here and below.
        """
        ...

    def command(self, state: Any, memory: Any, draws: Any = None) -> tuple[Any, Any]:
        """What all agents do in the coming step (the environment's `Command`), and the new memory."""
        ...

    def check(self, state: Any, memory: Any) -> Report:
        """Status of each agent's skill, from the state after the step; PENDING for an agent that runs none."""
        ...
