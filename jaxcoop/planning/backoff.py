"""How long to wait before another attempt, without a random generator's state.  All retrying of the package
is here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MAX_RETRY_AFTER = 600.0  # seconds; a provider that asks for more is waited for no longer than this


@dataclass(frozen=True)
class Clock:
    """Time as the hub sees it; tests put a virtual one here."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Backoff:
    """Exponential back-off: `base * 2**n` seconds after attempt n, at most `cap`, times 0.5 to 1."""

    attempts: int = 5  # calls for one request before it counts as failed
    base: float = 0.5
    cap: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; allowed: at least 1 (1 means no retry)")
        if not 0 <= self.base <= self.cap:
            raise ValueError(f"back-off base {self.base} and cap {self.cap} s; allowed: 0 <= base <= cap")

    def wait(self, key: str, attempt: int, retry_after: float | None) -> float:
        """Seconds before attempt `attempt + 1`.  The jitter comes from the request's key, so reruns wait
        alike.
        """
        start = 4 * attempt % 56
        jitter = int(key[start : start + 4], 16) / 65536
        wait = min(self.cap, self.base * 2.0**attempt) * (0.5 + 0.5 * jitter)
        # A provider's own figure is a lower bound; the jitter on top keeps waiters from returning all at
        # once.
        return wait if retry_after is None else min(max(retry_after, 0.0), MAX_RETRY_AFTER) + wait
