"""Operations of MA-Crafter as rows of its skills.  Numbers are sections of docs/envs/macrafter.md.

Rows hold no free text: a type that does not exist becomes one that fits no cell, an item that nobody can have or an
agent that there is not becomes -1.  The skills treat these as the text would have been: no path, none available, no
such agent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxcoop.agents.llm.coop2.plans import Operation, int32
from jaxcoop.envs.macrafter.ids import kind_of
from jaxcoop.envs.macrafter.skills import OPS, Op
from jaxcoop.envs.macrafter.types import ACTION_NAMES, DIRECTION_NAMES, ITEM_NAMES, PLACES, Action

WIDTH = 1 + max(len(op.arguments) for op in OPS)

_NO_KIND = len(OPS)
"""A kind that does nothing for ever (12.3)."""

_IDS = ("task_id", "resource_id", "target_id", "item_id")
"""12.3: what names the task of a collect, the first that is given."""

_SOURCES = {"wood": "tree", "food": "cow", "drink": "water"}
"""What a planner may call a thing after what it yields."""


def spec_kind(name: str) -> int:
    """Code of the type in a specification; what is called after its yield counts as what yields it."""
    word = _word(name)
    return kind_of(_SOURCES.get(word, word))


def op_row(action: Operation) -> list[int]:
    """The row of an operation; arguments that are not given are -1, their default."""
    row = [-1] * WIDTH
    words = _WORDS.get(action.kind)
    if words is None:
        row[0] = _NO_KIND
        return row
    row[0] = Op[action.kind.upper()].value
    arguments = words(action.args)
    row[1 : 1 + len(arguments)] = arguments
    return row


def _word(name: Any) -> str:
    return str(name).strip().lower().replace(" ", "_")


def _index(names: Sequence[str], name: Any, first: int = 0) -> int:
    word = _word(name)
    return names.index(word) + first if word in names else -1


def _move(args: Mapping[str, Any]) -> list[int]:
    return [_index(DIRECTION_NAMES, args.get("direction"), int(Action.MOVE_LEFT)), int32(args.get("num_steps"))]


def _navigate(args: Mapping[str, Any]) -> list[int]:
    name = args.get("object_type")
    kind = kind_of(name if isinstance(name, str) else None)
    return [kind, int32(args.get("item_id")), int32(args.get("timeout")), int32(args.get("radius"))]


def _collect(args: Mapping[str, Any]) -> list[int]:
    ident = next((args[name] for name in _IDS if args.get(name)), None)
    target = args.get("target") or args.get("resource_type")
    return [_index(ITEM_NAMES, target), int32(ident), int32(args.get("steps"))]


def _craft(args: Mapping[str, Any]) -> list[int]:
    return [_index(ACTION_NAMES, f"make_{_word(args.get('object_type'))}")]


def _place(args: Mapping[str, Any]) -> list[int]:
    return [_index(PLACES, args.get("object_type"))]


def _share(args: Mapping[str, Any]) -> list[int]:
    recipient = int32(_word(args.get("recipient_agent_id")).removeprefix("agent_"))
    return [recipient, _index(ITEM_NAMES, args.get("resource_type")), int32(args.get("quantity"))]


def _nothing(args: Mapping[str, Any]) -> list[int]:
    del args
    return []


_WORDS = {
    "noop": _nothing,
    "move": _move,
    "navigate": _navigate,
    "collect": _collect,
    "craft": _craft,
    "place": _place,
    "sleep": _nothing,
    "share": _share,
}
