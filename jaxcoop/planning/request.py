"""What is asked of a language model, what comes back, and what can go wrong on the way.

A request holds nothing but what the answer may depend on, so equal requests share one call and one recorded
answer. Design: section 7.5 of docs/concepts/planning.md.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jaxcoop.planning.process import Status

MAX_TEXT = 1_000_000  # characters of a reply that are kept; a runaway generation must not fill the record


class Message(NamedTuple):
    """One chat message."""

    role: str  # "system", "user" or "assistant"
    content: str


@dataclass(frozen=True)
class Request:
    """One question to a language model.

    `draw` names an independent sample, such as (episode seed, agent, decision index).  `schema` is a JSON
    schema of the wanted answer, passed on to clients whose provider can enforce one.
    """

    messages: tuple[Message, ...]
    draw: tuple[int, ...] | None = None
    schema: Mapping[str, Any] | None = field(default=None, hash=False)
    malformed: "Callable[[Reply], str | None] | None" = field(default=None, compare=False)

    def as_json(self) -> str:
        """Canonical text of the request, as stored in a record."""
        return _canonical({"messages": self.messages, "draw": self.draw, "schema": self.schema})

    def text(self) -> str:
        """The messages as a person reads them."""
        return "\n\n".join(f"[{m[0]}]\n{m[1]}" for m in self.messages)


@dataclass(frozen=True)
class Reply:
    """What a model returned.  A missing or empty content is the text ""; other fields say why."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0  # US dollars; 0 while `priced` is False
    finish_reason: str | None = None
    reasoning: str | None = None  # text of a separate reasoning field, if the provider sends one
    priced: bool = True  # False: the client knows no price for this model

    def __post_init__(self) -> None:
        """Half a surrogate pair, which JSON can carry and no file can, becomes a question mark."""
        for name in ("text", "reasoning"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, value.encode("utf-8", "replace").decode("utf-8"))

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
    """What the hub hands over for one request: a reply (or None) and how it came about."""

    reply: Reply | None
    status: Status


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


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "item"):
        return value.item()  # numpy scalars
    raise TypeError(f"{type(value).__name__} {value!r} cannot be part of a request; use text, numbers, lists, dicts")
