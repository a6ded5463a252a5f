"""Rows of a team's process as its planner gets them: one agent that asks, and the state of its episode.

Axes: A agents, M messages that are kept, L ops of a plan, W words of an op row, N = A * L planned ops.
Host side, numpy.
"""

import dataclasses
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, UInt32

from jaxcoop.cognition.domain import THOUSANDTHS
from jaxcoop.cognition.records import MESSAGES
from jaxcoop.cognition.types import Call, Stage
from jaxcoop.core import Env
from jaxcoop.planning.planner import Rows
from jaxcoop.planning.process import named_leaves

_COLUMN = {name: k for k, name in enumerate(MESSAGES)}


@dataclasses.dataclass(frozen=True)
class MessageRow:
    """A message without its text."""

    number: int  # counts the messages of the episode
    step: int
    sender: int  # A: the repair channel
    type: int  # `cognition.types.Mail`
    call: int  # number of the sender's last call, -1: none
    plan: int  # number of the sender's plan
    recipients: tuple[int, ...]


class AskRow:
    """One row: names for the fields of `cognition.thinking.Thinking.view`."""

    def __init__(self, rows: Rows, index: int) -> None:
        self._rows, self._index = rows, index
        number = self.number
        self.episode, self.step, self.agent, self.call = map(number, ("episode", "step", "agent", "call"))
        self.kind, self.stage, self.got = Call(number("kind")), Stage(number("stage")), number("got")
        self.has_plan = bool(number("has_plan"))
        self.message_count, self.directive = number("message_count"), number("directive")

    def field(self, name: str) -> np.ndarray:
        """A field of the view."""
        return self._rows[name][self._index]

    def number(self, name: str) -> int:
        """A field that is one number."""
        return int(self._rows[name][self._index])

    @property
    def agents(self) -> int:
        """A."""
        return len(self.field("plans.number"))

    def messages(self, name: str) -> list[MessageRow]:
        """The messages in a set of the agent (`shown`, `history`), oldest first."""
        return [m for m in map(self.message, self.numbers(name)) if m is not None]

    def numbers(self, name: str) -> list[int]:
        """The numbers of the messages in a set of the agent, oldest first."""
        kept, last = len(self.field("messages")), self.message_count - 1
        places = np.flatnonzero(members(self.field(name), kept))
        return sorted(last - (last - int(place)) % kept for place in places)

    def message(self, number: int) -> MessageRow | None:
        """A message by its number; None for one that is not kept any more."""
        kept = len(self.field("messages"))
        if not max(0, self.message_count - kept) <= number < self.message_count:
            return None
        words = self.field("messages")[number % kept]
        to = members(self.field("recipients")[number % kept], self.agents)
        named = {name: int(words[_COLUMN[name]]) for name in ("sender", "type", "call", "plan")}
        return MessageRow(
            number=number,
            step=int(words[_COLUMN["env_step"]]),
            recipients=tuple(int(agent) for agent in np.flatnonzero(to)),
            **named,
        )


def split(rows: Rows) -> list[AskRow]:
    """The rows one by one."""
    return [AskRow(rows, k) for k in range(len(rows["agent"]))]


def by_episode(rows: list[AskRow]) -> Iterator[list[AskRow]]:
    """Rows of one episode and step together; they see the same world."""
    groups: dict[tuple[int, int], list[AskRow]] = {}
    for row in rows:
        groups.setdefault((row.episode, row.step), []).append(row)
    yield from groups.values()


def members(words: UInt32[np.ndarray, " W"], count: int) -> Bool[np.ndarray, " N"]:
    """A set as flags, `jaxcoop.core.bits` on the host."""
    lanes = (np.asarray(words, np.uint32)[:, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return lanes.reshape(-1)[:count] != 0


class WorldReader:
    """States of an environment from the whole numbers in which a view shows them."""

    def __init__(self, env: Env) -> None:
        self._treedef, self._leaves = _form_of(env)

    def state(self, row: AskRow) -> Any:
        """The state, on the host."""
        leaves = [row.field(name) / THOUSANDTHS if is_float else row.field(name) for name, is_float in self._leaves]
        return self._treedef.unflatten(leaves)


@lru_cache(maxsize=64)
def _form_of(env: Env) -> tuple[Any, tuple[tuple[str, bool], ...]]:
    """Structure of a state, and of each leaf the name of its field and whether it is a float."""
    shape = jax.eval_shape(env.reset, jax.random.key(0))
    leaves = ((f"world.{name}", bool(np.issubdtype(leaf.dtype, np.floating))) for name, leaf in named_leaves(shape))
    return jax.tree.structure(shape), tuple(leaves)
