"""What the hub asks: a client sends one request to one model and returns a reply or raises a typed error."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from jaxcoop.planning.backoff import bounded_retry_after
from jaxcoop.planning.request import MAX_TEXT, Reply, Request, Transient

_MAX_REASON = 200  # characters of a finish reason that are kept


class Client(ABC):
    """One model behind one door.  All methods but `settings` run on the hub's event loop.

    A client never retries and never caches: the hub does both.
    """

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What an answer depends on besides the request: "model", "temperature", ...; part of each request's
        key.

        Addresses and keys stay out, so a record outlives a server that moved.
        """

    async def prepare(self) -> None:  # noqa: B027  (most clients have nothing to prepare)
        """Import and check what is needed, once, before the first call; raises `Fatal`."""

    @abstractmethod
    async def ask(self, request: Request, attempt: int) -> Reply:
        """The reply to one request; raises `Transient`, `Rejected` or `Fatal`.  `attempt` counts from 0."""

    async def aclose(self) -> None:  # noqa: B027
        """Release connections."""


def chat_reply(
    message: Mapping[str, Any],
    finish_reason: object,
    usage: object,
    cost: object,
    price: tuple[float, float] | None,
) -> Reply:
    """A `Reply` from the parts of an OpenAI-style chat completion.

    `cost`: the client's own figure in dollars, or None.  `price`: dollars per token (in, out), used instead
    of a missing cost.  A null content becomes the text "": the reply was paid for, and the reader calls it
    malformed.  Nor does a usage without rhyme or reason cost the reply.
    """
    counts = usage if isinstance(usage, Mapping) else {}
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    reply = Reply(
        text=_text_of(message.get("content"))[:MAX_TEXT],
        tokens_in=counts.get("prompt_tokens") or 0,
        tokens_out=counts.get("completion_tokens") or 0,
        cost=cost,  # pyright: ignore[reportArgumentType]  (a `Reply` puts any figure right)
        finish_reason=None if finish_reason is None else str(finish_reason)[:_MAX_REASON],
        reasoning=None if reasoning is None else str(reasoning)[:MAX_TEXT],
    )
    if price is None:
        return reply
    return dataclasses.replace(reply, cost=reply.tokens_in * price[0] + reply.tokens_out * price[1], priced=True)


def chat_messages(request: Request) -> list[dict[str, str]]:
    """Messages in the form of the OpenAI chat interface."""
    return [{"role": role, "content": content} for role, content in request.messages]


def response_format(request: Request) -> dict[str, Any]:
    """The `response_format` parameter for a request with a schema, else nothing."""
    if request.schema is None:
        return {}
    schema = {"name": "answer", "schema": dict(request.schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def retry_seconds(headers: Mapping[str, str] | None) -> float | None:
    """Seconds of a Retry-After header; None when absent, given as a date, or no finite number from 0 up."""
    try:
        return bounded_retry_after(float((headers or {}).get("retry-after", "")))
    except ValueError:
        return None


def checked_price(input_price: float | None, output_price: float | None) -> tuple[float, float] | None:
    """Dollars per token (in, out), or None when neither is given; raises ValueError for half a price."""
    if input_price is None and output_price is None:
        return None
    if input_price is None or output_price is None or not all(0 <= p < math.inf for p in (input_price, output_price)):
        raise ValueError(
            f"prices per token are {input_price} (input) and {output_price} (output); "
            "give both, finite and 0 or more, or none"
        )
    return float(input_price), float(output_price)


def checked_sampling(model: str, temperature: float | None, max_tokens: int | None, timeout: float) -> None:
    """Refuse settings no provider accepts, before any call is paid for; raises ValueError."""
    if not model:
        raise ValueError("model is empty; name one, for example openai/gpt-4o-mini")
    if temperature is not None and not 0 <= temperature <= 2:
        raise ValueError(f"temperature is {temperature}; allowed: 0 to 2, or None for the provider's default")
    if max_tokens is not None and max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; allowed: at least 1, or None")
    if not 0 < timeout < math.inf:
        raise ValueError(f"timeout is {timeout} s; allowed: above 0 and finite")


def checked_address(api_base: str) -> str:
    """`api_base` without a final slash; raises ValueError for what no HTTP client can call."""
    try:
        parts = urlsplit(api_base)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half a pair of brackets, a port beyond 65535
        usable = False
    if not usable or any(c.isspace() for c in api_base):
        raise ValueError(f"api_base is {api_base!r}; it must look like http://127.0.0.1:8000/v1")
    return api_base.rstrip("/")


def garbage(what: str) -> Transient:
    """The error for a reply that is not a chat completion."""
    return Transient("garbage", f"the server's reply is not a chat completion: {what[:200]}")


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):  # some providers send a list of parts
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return ""
