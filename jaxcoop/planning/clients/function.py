"""A Python function in the place of a model: scripted players, tests, and models of one's own."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jaxcoop.planning.clients.base import Client
from jaxcoop.planning.request import Reply, Request

Answering = Callable[[Request], "str | Reply | Awaitable[str | Reply]"]


class FunctionClient(Client):
    """`fn(request) -> str | Reply`, plain or async.

    A plain function runs on the hub's thread, one call after another, so it need not be thread-safe; one that
    blocks (a model in this process) takes `threads > 0` to run that many at once.  `name` stands in the key
    in place of a model name; give a function that changed a new name.  `temperature`: 0 when the function is
    deterministic, None when equal requests may get different answers.
    """

    def __init__(
        self, fn: Answering, name: str | None = None, *, temperature: float | None = 0.0, threads: int = 0
    ) -> None:
        if threads < 0:
            raise ValueError(f"threads is {threads}; allowed: 0 or more")
        self._fn, self._temperature = fn, temperature
        self._name = name or f"function:{getattr(fn, '__qualname__', type(fn).__name__)}"
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="function-client") if threads else None

    def settings(self) -> dict[str, Any]:
        """Name and temperature."""
        return {"model": self._name, "temperature": self._temperature}

    async def ask(self, request: Request, attempt: int) -> Reply:
        """Call the function; its exceptions reach the hub, which retries them."""
        if self._pool is None:
            result = self._call(request)
        else:
            result = await asyncio.get_running_loop().run_in_executor(self._pool, self._call, request)
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, Reply):
            return result
        if not isinstance(result, str):
            raise TypeError(f"{self._name} returned {type(result).__name__}; it must return a str or a Reply")
        return Reply(result)

    def _call(self, request: Request) -> "str | Reply | Awaitable[str | Reply]":
        try:
            return self._fn(request)
        except StopIteration:  # no future can carry it, so the call would never end
            raise RuntimeError(f"{self._name} raised StopIteration: it has no more answers") from None

    async def aclose(self) -> None:
        """Drop calls that have not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
