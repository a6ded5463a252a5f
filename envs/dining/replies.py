"""Reading a philosopher's reply: labelled text lines, or the JSON object of the article.

Text is the default form, with the reference's exact (and forgiving) rules; `reply_format="json"` is the
option.  In both, a reply without a usable action is WAIT, and `Parsed.found` tells the caller to count it as
malformed. Source: section 9 of the DPBench behaviour notes, docs/envs/dining.md.

Every pattern is linear in the text: white space is matched possessively (`*+`) and each lazy stretch stops at
the first character that can end it, so no reply can make the parser backtrack.
"""

import json
import re
from typing import Any, Literal, NamedTuple, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from jaxcoop.envs.dining.types import ACTION_NAMES, Action

MAX_REPLY = 10_000  # characters read of a reply
MAX_MESSAGE = 200  # characters kept of a message
_MAX_JSON_STARTS = 64  # opening braces tried before a reply counts as "no JSON object"

ReplyFormat = Literal["text", "json"]
# Where the action was read: the word after the label, anywhere in the text, a JSON object, or nowhere.
Source = Literal["label", "text", "json", "none"]

_ACTION = re.compile(r"ACTION:\s*+(\w++)")
_MESSAGE = re.compile(r"MESSAGE:\s*+(.+?)(?=\n|ACTION:|$)", re.IGNORECASE)
_REASONING = re.compile(r"THINKING:\s*+(.+?)(?=\nMESSAGE:|\nACTION:|$)", re.IGNORECASE | re.DOTALL)
_NO_MESSAGE = frozenset({"none", "n/a", "-", ""})
# 9: tried in this order, so a text with several action words yields the first of these.
_ACTION_WORDS = (
    (Action.GRAB_LEFT, ("GRAB_LEFT", "GRABLEFT")),
    (Action.GRAB_RIGHT, ("GRAB_RIGHT", "GRABRIGHT")),
    (Action.RELEASE, ("RELEASE",)),
    (Action.WAIT, ("WAIT",)),
)


class FoundAction(NamedTuple):
    """An action code and where it came from; `source` is "none" when WAIT is only the fallback."""

    action: int
    source: Source


class Parsed(NamedTuple):
    """A reply after parsing."""

    action: int  # 0..3
    message: str | None  # None: silent, or communication is off
    reasoning: str | None
    found: bool  # False: no action was recognised and `action` is the WAIT fallback
    source: Source


class JsonReply(BaseModel):
    """Schema of the JSON reply form; the spelling of `action` is free in case, space, `-` and `_`."""

    model_config = ConfigDict(extra="ignore")

    action: int = Field(ge=0, le=3)
    message: str | None = None
    thinking: str | None = Field(default=None, validation_alias=AliasChoices("thinking", "reasoning"))

    @field_validator("action", mode="before")
    @classmethod
    def _read_action(cls, value: Any) -> int:
        name = re.sub(r"[\s_-]+", "", value).lower() if isinstance(value, str) else value
        for code, action in enumerate(ACTION_NAMES):
            if name == action.replace("_", ""):
                return code
        raise ValueError(f"action {value!r} is none of {', '.join(ACTION_NAMES)}")

    @field_validator("message", "thinking", mode="before")
    @classmethod
    def _drop_non_text(cls, value: Any) -> str | None:
        """A wrong type beside a good action costs the text, not the action."""
        return value if isinstance(value, str) else None


def sanitize(message: str | None) -> str:
    """First 200 characters of a message without surrounding white space; empty for None."""
    return (message or "")[:MAX_MESSAGE].strip()


def parse_action(text: str) -> FoundAction:
    """Action of a text reply (9): read from the word after the first `ACTION:`, else from the whole text."""
    upper = text[:MAX_REPLY].upper()
    label = _ACTION.search(upper)
    searched = label.group(1) if label else upper
    for code, words in _ACTION_WORDS:
        if any(word in searched for word in words):
            return FoundAction(code, "label" if label else "text")
    return FoundAction(Action.WAIT, "none")


def parse_message(text: str) -> str | None:
    """Message line of a text reply, at most 200 characters; None when absent or one of none, n/a, -."""
    match = _MESSAGE.search(text[:MAX_REPLY])
    return _clean_message(match.group(1)) if match else None


def parse_reasoning(text: str) -> str | None:
    """Thinking part of a text reply (may span lines); None when absent or empty.  Only logged."""
    match = _REASONING.search(text[:MAX_REPLY])
    return match.group(1).strip() or None if match else None


def parse_reply(
    text: str | None, communication: bool, reply_format: ReplyFormat = "text", *, discussion: bool = False
) -> Parsed:
    """Read a reply of any content; never raises on `text`.

    Messages are read only with `communication`.  A `discussion` reply carries no action: `action` is WAIT and
    `found` says whether it holds a message.  Raises ValueError for an unknown `reply_format`.
    """
    check_reply_format(reply_format)
    cut = (text or "")[:MAX_REPLY]
    if reply_format == "json":
        return _parse_json(cut, communication, discussion)
    message = parse_message(cut) if communication else None
    if discussion:
        return Parsed(Action.WAIT, message, parse_reasoning(cut), message is not None, "none")
    action, source = parse_action(cut)
    return Parsed(action, message, parse_reasoning(cut), source != "none", source)


def check_reply_format(reply_format: str) -> None:
    """Raise ValueError unless the reply form is a known one."""
    if reply_format not in get_args(ReplyFormat):
        raise ValueError(f"reply_format {reply_format!r} is unknown; choose one of {', '.join(get_args(ReplyFormat))}")


def _clean_message(raw: str) -> str | None:
    message = raw.strip()
    return None if message.lower() in _NO_MESSAGE else sanitize(message) or None


def _parse_json(text: str, communication: bool, discussion: bool) -> Parsed:
    """First JSON object in the text (fences and prose around it are skipped) that satisfies the schema."""
    for candidate in _json_objects(text):
        if discussion:
            if "message" not in candidate:
                continue
            candidate = {**candidate, "action": ACTION_NAMES[Action.WAIT]}
        try:
            reply = JsonReply.model_validate(candidate)
        except ValidationError:
            continue
        # A JSON string may hold line breaks, with which a message could imitate other parts of a neighbour's
        # prompt.
        message = _clean_message(" ".join((reply.message or "").split())) if communication else None
        reasoning = (reply.thinking or "").strip() or None
        if discussion:
            return Parsed(Action.WAIT, message, reasoning, message is not None, "none")
        return Parsed(reply.action, message, reasoning, True, "json")
    return Parsed(Action.WAIT, None, None, False, "none")


def _json_objects(text: str) -> list[dict[str, Any]]:
    """Objects that decode from an opening brace, left to right, not looking inside those already read."""
    decoder = json.JSONDecoder()
    objects: list[dict[str, Any]] = []
    position = text.find("{")
    for _ in range(_MAX_JSON_STARTS):
        if position < 0:
            break
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # nested deeper than the decoder goes: as good as no object
            end = position + 1
        else:
            objects.append({str(key).lower(): item for key, item in value.items()})
        position = text.find("{", end)
    return objects
