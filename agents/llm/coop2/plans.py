"""Plans as text: what a reply says and what prompts, logs and messages show.

Numbers are sections of docs/coop2.md.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxcoop.cognition import wording

_INT32 = 2**31 - 1

ATTACHED = ("resource_type", "task_id", "target_id")
"""6.3: what is put into collects after a reply was read; prompts do not show it, since no reply may hold it."""


class Operation(NamedTuple):
    """One operation of a plan."""

    kind: str
    args: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The form of logs."""
        return {"action_type": self.kind, "args": dict(self.args)}

    def text(self) -> str:
        """The form of prompts: `push(block_id=4, num_steps=3)`."""
        hidden = ATTACHED if self.kind == "collect" else ()
        said = (f"{name}={value}" for name, value in self.args.items() if name not in hidden)
        return f"{self.kind}({', '.join(said)})"


@dataclasses.dataclass(frozen=True)
class TextPlan:
    """A plan.  `task`, `target` and `number` are the parts of the specification, empty and -1 where it has none."""

    specification: str
    actions: tuple[Operation, ...]
    task: str = ""
    target: str = ""  # type of what it is about: block in CUBE, as the reply gave it in MA-Crafter
    number: int = -1  # its id
    reasoning: str = ""


def specification(task: str, target: str, number: int) -> str:
    """6.3: the text form of a task."""
    return f"{task}({target}#{number})"


def operations_text(actions: Sequence[Operation], limit: int | None = None) -> str:
    """Operations one after the other, at most `limit` of them."""
    return wording.operations_text([action.text() for action in actions], limit)


def int32(value: Any) -> int:
    """A whole number, or one written as text, cut to 32 bits; -1 for anything else."""
    if isinstance(value, str):
        digits = value.strip()
        value = int(digits) if len(digits) <= 20 and digits.removeprefix("-").isdecimal() else None
    if isinstance(value, bool) or not isinstance(value, int):
        return -1
    return max(-_INT32 - 1, min(value, _INT32))
