"""Any provider through litellm: its only import in the package, made on first use, on the hub's thread.

Importing litellm takes seconds and, unless told otherwise, asks the network for a price list; both are kept
away from `import jaxcoop`.  Design: section 8 of docs/concepts/planning.md.
"""

import logging
import os
from collections.abc import Mapping
from typing import Any

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
from jaxcoop.planning.request import ClientError, Fatal, Rejected, Reply, Request, Transient

# Class names along an exception's inheritance, most specific first -> what the hub should do.
_KINDS: dict[str, tuple[type[ClientError], str]] = {
    "ContextWindowExceededError": (Rejected, "too_long"),
    "ContentPolicyViolationError": (Rejected, "refused"),
    "RateLimitError": (Transient, "rate_limit"),
    "Timeout": (Transient, "timeout"),
    "APITimeoutError": (Transient, "timeout"),
    "AuthenticationError": (Fatal, "auth"),
    "PermissionDeniedError": (Fatal, "auth"),
    "NotFoundError": (Fatal, "not_found"),
    "UnsupportedParamsError": (Fatal, "bad_request"),
    "UnprocessableEntityError": (Fatal, "bad_request"),
    "BadRequestError": (Fatal, "bad_request"),
    "BudgetExceededError": (Fatal, "quota"),
    "InternalServerError": (Transient, "server"),
    "ServiceUnavailableError": (Transient, "server"),
    "BadGatewayError": (Transient, "server"),
    "APIConnectionError": (Transient, "connection"),
    "APIResponseValidationError": (Transient, "garbage"),
    "JSONSchemaValidationError": (Transient, "garbage"),
    "APIError": (Transient, "server"),
}


def import_litellm() -> Any:
    """litellm, offline in all but the calls themselves, and quiet."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_OFFLINE_MODE", "true")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm

    litellm.suppress_debug_info = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return litellm


class LitellmClient(Client):
    """`litellm.acompletion` without its retries and its cache.

    `model` is a litellm name such as "openai/gpt-4o-mini"; for a local server give `api_base`.  `extra` goes
    to litellm as it is and is part of the key.  Prices, in dollars per token, replace litellm's own.
    """

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        input_price: float | None = None,
        output_price: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        checked_sampling(model, temperature, max_tokens, timeout)
        self._model, self._temperature, self._max_tokens = model, temperature, max_tokens
        self._api_base = None if api_base is None else checked_address(api_base)
        self._api_key, self._timeout = api_key, timeout
        self._price = checked_price(input_price, output_price)
        self._extra = dict(extra or {})
        self._litellm: Any = None

    def settings(self) -> dict[str, Any]:
        """Model and sampling."""
        return {"model": self._model, "temperature": self._temperature, "max_tokens": self._max_tokens} | {
            "extra": self._extra
        }

    async def prepare(self) -> None:
        """Import litellm and see that the provider's key is there; raises `Fatal`."""
        try:
            self._litellm = import_litellm()
        except ImportError as err:
            raise Fatal("missing_package", f"litellm cannot be imported ({err}): pip install litellm") from None
        if self._api_key is None and self._api_base is None:
            missing = self._litellm.validate_environment(self._model).get("missing_keys") or []
            if missing:
                names = " and ".join(missing)
                raise Fatal("auth", f"the provider's key is missing: set the environment variable {names}")

    async def ask(self, request: Request, attempt: int) -> Reply:
        """One call; litellm's exceptions become typed errors."""
        try:
            response = await self._litellm.acompletion(
                model=self._model,
                messages=chat_messages(request),
                timeout=self._timeout,
                num_retries=0,
                max_retries=0,
                **self._options(),
                **response_format(request),
                **self._extra,
            )
        except Exception as err:
            raise _typed(err) from None
        try:
            choice = response.choices[0]
            message, usage = choice.message, getattr(response, "usage", None)
            fields = {n: getattr(message, n, None) for n in ("content", "reasoning_content")}
            counts = {n: getattr(usage, n, None) for n in ("prompt_tokens", "completion_tokens")}
            hidden = getattr(response, "_hidden_params", None) or {}
            return chat_reply(fields, choice.finish_reason, counts, hidden.get("response_cost"), self._price)
        except (LookupError, TypeError, AttributeError):
            raise garbage(str(response)) from None

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
            "api_base": self._api_base,
            # Local servers want no key, but the openai library refuses to call without one.
            "api_key": self._api_key or ("unused" if self._is_keyless() else None),
        }
        return {name: value for name, value in options.items() if value is not None}

    def _is_keyless(self) -> bool:
        return self._api_base is not None and not os.environ.get("OPENAI_API_KEY")

    async def aclose(self) -> None:
        """Close litellm's connections of this loop."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()


def _typed(err: Exception) -> ClientError:
    text = " ".join(str(err).split())[:500]
    if "Missing credentials" in text or "invalid_api_key" in text:
        return Fatal("auth", text)
    if "insufficient_quota" in text:
        return Fatal("quota", text)
    for cls in type(err).__mro__:
        if cls.__name__ in _KINDS:
            error, kind = _KINDS[cls.__name__]
            if error is Transient:
                return Transient(kind, text, _retry_after(err))
            return error(kind, text)
    return Transient(type(err).__name__, text)


def _retry_after(err: Exception) -> float | None:
    for source in (
        getattr(err, "litellm_response_headers", None),
        getattr(getattr(err, "response", None), "headers", None),
    ):
        if source and (seconds := retry_seconds(source)) is not None:
            return seconds
    return None
