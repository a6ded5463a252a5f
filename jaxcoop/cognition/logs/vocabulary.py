"""What an environment supplies so that its episodes can be put into words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxcoop.cognition.metrics import Profile


@dataclass(frozen=True)
class TaskWords:
    """A task as logs name it."""

    id: str
    type: str  # target type: weight_2, coal, …
    required: int  # agents that it takes
    tool: str | None = None  # what each of them needs to hold
    place: tuple[int, int] | None = None  # where it is, if that never changes
    details: Mapping[str, Any] = field(default_factory=dict)  # further entries of its records


class Vocabulary(Protocol):
    """Names of everything that arrays hold numbers of."""

    @property
    def profile(self) -> Profile:
        """Whose rules the logs follow."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """Focuses that figures show, from the top row to the bottom."""
        ...

    def spec(self, words: Sequence[int]) -> str:
        """A plan's specification as text."""
        ...

    def op(self, row: Sequence[int]) -> dict[str, Any]:
        """An op as a planner writes it: `action_type` and its arguments; type noop for a row that is no op."""
        ...

    def task(self, slot: int, kind: int) -> TaskWords:
        """The task of a slot; `kind` is the code of its type, -1 where nothing is known but the slot."""
        ...

    def reason(self, code: int) -> str:
        """Why an op failed, by the number of its skill's reason."""
        ...

    def focus(self, words: Sequence[int], row: Sequence[int], kind: int) -> str:
        """7: what an agent is after, from its specification, its op and the type of its plan's target (-1: none)."""
        ...

    def item(self, code: int) -> str:
        """Name of an item of `Holdings`."""
        ...


def agent_name(agent: int) -> str:
    """Name of an agent in logs."""
    return f"agent_{agent}"
