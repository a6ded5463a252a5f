"""A thin client for OpenAI-compatible servers: 20 to 40 times less CPU per call than litellm.

Meant for local servers that give hundreds of answers a second.  Needs the extra `direct` (aiohttp).
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from jaxcoop.planning.clients.base import (
    Client,
    chat_messages,
    chat_reply,
    checked_address,
    checked_price,
    checked_sampling,
    garbage,
    response_format,
    retry_seconds,
)
from jaxcoop.planning.request import Fatal, Rejected, Reply, Request, Transient

_FATAL = {
    400: "bad_request",
    401: "auth",
    403: "auth",
    404: "not_found",
    405: "not_found",
    422: "bad_request",
}
_REFUSED = ("context_length", "context length", "content_filter", "content_policy", "maximum context")


class DirectClient(Client):
    """POST {api_base}/chat/completions.  `extra` is merged into the body of each request and is part of the
    key.
    """

    def __init__(
        self,
        model: str,
        api_base: str,
        *,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_price: float | None = None,
        output_price: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        checked_sampling(model, temperature, max_tokens, timeout)
        base = checked_address(api_base)
        self._url = f"{base}/chat/completions" if urlsplit(base).path else f"{base}/v1/chat/completions"
        self._model, self._temperature, self._max_tokens = model, temperature, max_tokens
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._timeout, self._extra = timeout, dict(extra or {})
        self._price = checked_price(input_price, output_price)
        self._session: Any = None

    def settings(self) -> dict[str, Any]:
        """Model and sampling."""
        return {"model": self._model, "temperature": self._temperature, "max_tokens": self._max_tokens} | {
            "extra": self._extra
        }

    async def prepare(self) -> None:
        """Open one session on the hub's loop."""
        try:
            import aiohttp
        except ImportError:
            raise Fatal("missing_package", "the direct client needs aiohttp: pip install 'jaxcoop[direct]'") from None
        # The hub limits concurrency; a second limit in the connector would only hide waiting time.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=self._timeout)
        )

    async def ask(self, request: Request, attempt: int) -> Reply:
        """One call; HTTP statuses become typed errors."""
        import aiohttp

        body = {"model": self._model, "messages": chat_messages(request)} | response_format(request) | self._extra
        if self._temperature is not None:
            body["temperature"] = self._temperature
        if self._max_tokens is not None:
            body["max_tokens"] = self._max_tokens
        try:
            async with self._session.post(self._url, json=body, headers=self._headers) as response:
                text = await response.text(errors="replace")
                if response.status >= 300:
                    raise _http_error(response.status, text, response.headers)
        except TimeoutError:
            raise Transient("timeout", f"no answer from {self._url} within {self._timeout:g} s") from None
        except aiohttp.ClientError as err:
            raise Transient("connection", f"{self._url}: {err}") from None
        try:
            data = json.loads(text)
            choice = data["choices"][0]
            return chat_reply(choice["message"], choice.get("finish_reason"), data.get("usage"), None, self._price)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise garbage(text) from None

    async def aclose(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()


def _http_error(status: int, text: str, headers: Mapping[str, str]) -> Exception:
    lines = f"HTTP {status}: {' '.join(text.split())[:300]}"
    if status == 429:
        if "insufficient_quota" in text:
            return Fatal("quota", lines)
        return Transient("rate_limit", lines, retry_seconds(headers))
    if status in (400, 413, 422) and (status == 413 or any(word in text.lower() for word in _REFUSED)):
        return Rejected("refused", lines)
    if status in _FATAL:
        return Fatal(_FATAL[status], lines)
    if status in (408, 504):
        return Transient("timeout", lines, retry_seconds(headers))
    return Transient("server", lines, retry_seconds(headers))
