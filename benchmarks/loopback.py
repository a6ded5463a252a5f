"""A scripted OpenAI-compatible chat server on the loopback interface, for tests and the callback benchmark.

It answers from a function of the request, takes a set time, and fails in chosen ways at chosen rates;
failures follow from a seed and the prompt, not from the order of arrival.  `python -m
jaxcoop.benchmarks.loopback --help` runs one.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxcoop.benchmarks.cognitive_replies import cognitive_policy

Respond = Callable[[dict[str, Any]], str]  # request body -> reply text

ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
_REASONS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}


def prompt_hash(body: dict[str, Any]) -> str:
    """Hex digest of the messages of a request; the key of `LoopbackServer.by_prompt`."""
    return hashlib.sha256(json.dumps(body.get("messages"), sort_keys=True).encode()).hexdigest()


def random_policy(body: dict[str, Any]) -> str:
    """Labelled lines with an action drawn from the hash of the prompt: equal prompts, equal answers."""
    return _labelled(ACTIONS[int(prompt_hash(body)[:8], 16) % len(ACTIONS)], "chosen by the hash of the prompt")


def greedy_left_policy(body: dict[str, Any]) -> str:
    """Take the left fork, then the right one, whenever the prompt shows it as available; else wait."""
    text = str(body["messages"][-1].get("content", "")) if body.get("messages") else ""
    free = {side: re.search(rf"{side}[ _]fork[^\n]*?\bAVAILABLE\b", text, re.IGNORECASE) for side in ("left", "right")}
    action = "GRAB_LEFT" if free["left"] else "GRAB_RIGHT" if free["right"] else "WAIT"
    return _labelled(action, "left first, then right")


POLICIES: dict[str, Respond] = {"coop2": cognitive_policy, "greedy-left": greedy_left_policy, "random": random_policy}


def _labelled(action: str, why: str) -> str:
    return f"THINKING: {why}\nMESSAGE: I am going to {action.lower().replace('_', ' ')}.\nACTION: {action}"


@dataclass(frozen=True)
class Failures:
    """Shares of requests, 0 to 1 each and in sum, that go wrong in one way."""

    rate_limit: float = 0.0  # HTTP 429 with Retry-After
    server_error: float = 0.0  # HTTP 500
    garbage: float = 0.0  # HTTP 200, body is not JSON
    empty: float = 0.0  # content is ""
    null: float = 0.0  # content is null, the text sits in the reasoning field
    slow: float = 0.0  # right answer after `slow_s`
    huge: float = 0.0  # the right answer behind `huge_chars` characters
    retry_after: float = 0.05  # seconds, sent with every 429
    slow_s: float = 30.0
    huge_chars: int = 2_000_000
    seed: int = 0

    def __post_init__(self) -> None:
        rates = [getattr(self, kind) for kind in _KINDS]
        if min(rates) < 0 or sum(rates) > 1 + 1e-9:
            raise ValueError(f"failure rates are {dict(zip(_KINDS, rates))}; allowed: 0 or more, 1 in sum at most")

    def kind(self, prompt: str, attempt: int) -> str:
        """What happens to this attempt (from 0) at this prompt: "ok" or the name of a failure."""
        digest = hashlib.sha256(f"{self.seed} {prompt} {attempt}".encode()).digest()
        left = int.from_bytes(digest[:8], "big") / 2**64
        for kind in _KINDS:
            left -= getattr(self, kind)
            if left < 0:
                return kind
        return "ok"


_KINDS = ("rate_limit", "server_error", "garbage", "empty", "null", "slow", "huge")


class LoopbackServer:
    """Context manager: a server in a thread.  `url` ends in /v1.

    Counters: `requests` (all), `by_prompt` (prompt hash -> requests), `by_status` (HTTP status -> replies),
    `by_kind` ("ok" or failure -> requests), `peak` (most requests in work at a time).
    """

    def __init__(
        self,
        reply: Respond = random_policy,
        *,
        latency: float = 0.0,
        failures: Failures | None = None,
        port: int = 0,
    ) -> None:
        if latency < 0:
            raise ValueError(f"latency is {latency} s; allowed: 0 or more")
        self._reply, self._latency, self._failures, self._port = reply, latency, failures or Failures(), port
        self.requests = self.peak = self._working = 0
        self.by_prompt: Counter[str] = Counter()
        self.by_status: Counter[int] = Counter()
        self.by_kind: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback-server", daemon=True)

    @property
    def url(self) -> str:
        """Base address for OpenAI-compatible clients."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> "LoopbackServer":
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=2**24, backlog=2048)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        threading.Event().wait()  # not `join`: interrupted, it would take the running thread for ended

    async def _stop(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length:\s*(\d+)", head, re.IGNORECASE)
                raw = await reader.readexactly(int(length[1])) if length else b""
                status, headers, payload = await self._respond(head.split(b" ", 2)[1], raw)
                self.by_status[status] += 1
                lines = [f"HTTP/1.1 {status} {_REASONS[status]}", "Content-Type: application/json", *headers]
                lines += [f"Content-Length: {len(payload)}", "", ""]
                writer.write("\r\n".join(lines).encode() + payload)
                await writer.drain()
        writer.close()

    async def _respond(self, path: bytes, raw: bytes) -> tuple[int, list[str], bytes]:
        if path != b"/v1/chat/completions":
            return 404, [], _error(f"no such path: {path.decode(errors='replace')}")
        body = json.loads(raw)
        prompt = prompt_hash(body)
        attempt = self.by_prompt[prompt]
        self.by_prompt[prompt] += 1
        self.requests += 1
        kind = self._failures.kind(prompt, attempt)
        self.by_kind[kind] += 1
        self._working += 1
        self.peak = max(self.peak, self._working)
        try:
            if delay := self._failures.slow_s if kind == "slow" else self._latency:
                await asyncio.sleep(delay)
        finally:
            self._working -= 1
        return self._outcome(kind, body)

    def _outcome(self, kind: str, body: dict[str, Any]) -> tuple[int, list[str], bytes]:
        if kind == "rate_limit":
            return 429, [f"Retry-After: {self._failures.retry_after:g}"], _error("rate limit reached")
        if kind == "server_error":
            return 500, [], _error("internal error")
        if kind == "garbage":
            return 200, [], b'{"choices": [<html>'
        try:
            text = self._reply(body)
        except Exception as err:
            return 500, [], _error(f"the reply function raised {type(err).__name__}: {err}")
        message: dict[str, Any] = {"role": "assistant", "content": text}
        finish = "stop"
        if kind == "empty":
            message["content"], finish = "", "length"
        elif kind == "null":
            message |= {"content": None, "reasoning_content": text}
        elif kind == "huge":
            message["content"] = "x" * self._failures.huge_chars + "\n" + text
        words = sum(len(str(m.get("content")).split()) for m in body.get("messages", []))
        usage = {"prompt_tokens": words, "completion_tokens": len(text.split())}
        usage["total_tokens"] = sum(usage.values())
        choice = {"index": 0, "message": message, "finish_reason": finish}
        data = {"id": "loopback", "object": "chat.completion", "created": 0, "model": body.get("model", "")}
        return 200, [], json.dumps(data | {"choices": [choice], "usage": usage}).encode()


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "loopback", "code": None}}).encode()


def main(arguments: list[str] | None = None) -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m jaxcoop.benchmarks.loopback",
        description="A scripted OpenAI-compatible chat server on 127.0.0.1.",
    )
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one (default 8000)")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds each answer takes (default 0)")
    parser.add_argument(
        "--failure-rate",
        type=float,
        default=0.0,
        help="share of requests, 0 to 1, that fail with HTTP 500 (default 0)",
    )
    parser.add_argument("--policy", choices=sorted(POLICIES), default="random", help="who answers (default random)")
    options = parser.parse_args(arguments)
    try:
        failures = Failures(server_error=options.failure_rate)
        server = LoopbackServer(
            POLICIES[options.policy], latency=options.latency / 1000, failures=failures, port=options.port
        )
    except ValueError as err:
        parser.error(str(err))
    try:
        with server:
            print(f"listening on {server.url}", flush=True)
            server.wait()
    except OSError as err:
        parser.error(f"port {options.port} cannot be used ({err.strerror}); choose another with --port")
    except KeyboardInterrupt:
        print(f"{server.requests} requests served")


if __name__ == "__main__":
    main()
