"""What is asked of a language model, what comes back, and what can go wrong on the way.

A request holds nothing but what the answer may depend on, so equal requests share one call and one recorded
answer. Design: section 7.5 of docs/concepts/planning.md.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real  # numpy's numbers too
from typing import Any, NamedTuple

from jaxcoop.planning.process import Status

MAX_TEXT = 1_000_000  # characters of a reply that are kept; a runaway generation must not fill the record
_MAX_AMOUNT = 2**53  # largest count or cost kept; sqlite holds it, and a float exactly


def clean_text(text: str) -> str:
    """`text` with a question mark for each half of a surrogate pair: JSON and Python can carry one, no file and
    no connection can.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


class Message(NamedTuple):
    """One chat message."""

    role: str  # "system", "user" or "assistant"
    content: str


@dataclass(frozen=True)
class Request:
    """One question to a language model.

    `draw` names an independent sample, such as (episode seed, agent, decision index).  `schema` is a JSON
    schema of the wanted answer, passed on to clients whose provider can enforce one.  Messages are kept as
    `clean_text` leaves them, so every client sends the same.
    """

    messages: tuple[Message, ...]
    draw: tuple[int, ...] | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    malformed: "Callable[[Reply], str | None] | None" = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Replace what no client could send."""
        cleaned = tuple(Message(clean_text(role), clean_text(content)) for role, content in self.messages)
        object.__setattr__(self, "messages", cleaned)

    def as_json(self) -> str:
        """Canonical text of the request, as stored in a record."""
        return _canonical({"messages": self.messages, "draw": self.draw, "schema": self.schema})

    def text(self) -> str:
        """The messages as a person reads them."""
        return "\n\n".join(f"[{m[0]}]\n{m[1]}" for m in self.messages)


@dataclass(frozen=True)
class Reply:
    """What a model returned.  A missing or empty content is the text ""; other fields say why.

    Figures come from outside and are put right, never refused: a token count or a time that is no number from 0 up
    is 0, a cost that is none counts as unknown, and all are cut at 2**53.
    """

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0  # US dollars; 0 while `priced` is False
    finish_reason: str | None = None
    reasoning: str | None = None  # text of a separate reasoning field, if the provider sends one
    priced: bool = True  # False: the client knows no price for this model
    seconds: float = field(default=0.0, compare=False)  # what the call took; set by the hub, recorded with the answer

    def __post_init__(self) -> None:
        """Make every field one that can be stored: an answer that was paid for must not be lost over a figure."""
        for name in ("text", "reasoning", "finish_reason"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, clean_text(value))
        for name in ("tokens_in", "tokens_out"):
            object.__setattr__(self, name, int(_amount(getattr(self, name)) or 0))
        cost = _amount(self.cost)
        object.__setattr__(self, "cost", float(cost or 0))
        object.__setattr__(self, "seconds", float(_amount(self.seconds) or 0))
        object.__setattr__(self, "priced", bool(self.priced) and cost is not None)

    def as_json(self) -> str:
        """Canonical text of the reply, as stored in a record."""
        return _canonical(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> "Reply":
        """Inverse of `as_json`; fields of other versions are ignored."""
        known = {f.name for f in dataclasses.fields(Reply)}
        return Reply(**{k: v for k, v in json.loads(text).items() if k in known})


@dataclass(frozen=True)
class Answer:
    """What the hub hands over for one request: a reply (or None) and how it came about.

    `lost_s`: seconds that the calls of a request took that brought no reply; not recorded, as no such answer is.
    """

    reply: Reply | None
    status: Status
    lost_s: float = field(default=0.0, compare=False)

    @property
    def seconds(self) -> float:
        """What the call took that decided the answer, or else all calls; waits between calls do not count."""
        return self.lost_s if self.reply is None else self.reply.seconds


class ClientError(Exception):
    """A call that brought no reply.  `kind` is a short word for ledgers: rate_limit, timeout, auth, ..."""

    def __init__(self, kind: str, message: str = "") -> None:
        super().__init__(message or kind)
        self.kind = kind


class Transient(ClientError):  # noqa: N818  (named for what it means to the hub)
    """Worth another attempt: rate limit, time-out, server or network trouble.  `retry_after`: seconds, or
    None.
    """

    def __init__(self, kind: str, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(kind, message)
        self.retry_after = retry_after


class Rejected(ClientError):  # noqa: N818  (named for what it means to the hub)
    """The provider refuses this one request (content filter, prompt too long); another attempt would be
    refused too.
    """


class Fatal(ClientError):  # noqa: N818  (named for what it means to the hub)
    """No request can succeed: wrong key, unknown model, wrong settings, missing package."""


def request_key(request: Request, settings: Mapping[str, Any], parser: str) -> str:
    """sha256 over everything an answer depends on: client settings, parser version, messages, schema, draw.

    At temperature 0 the draw is left out, so equal prompts of different episodes share one call.
    """
    draw = None if settings.get("temperature") == 0 else request.draw
    blob = _canonical([settings, parser, request.messages, request.schema, draw])
    return hashlib.sha256(blob.encode()).hexdigest()


def _amount(value: Any) -> Any:
    """A number from 0 up, cut at 2**53, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    number: Any = value
    return min(number, _MAX_AMOUNT) if 0 <= number < math.inf else None


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()  # numpy scalars
    raise TypeError(f"{type(value).__name__} {value!r} cannot be part of a request; use text, numbers, lists, dicts")
