"""How long to wait before another attempt, without a random generator's state.  All retrying of the package
is here.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MAX_RETRY_AFTER = 600.0  # seconds; a provider that asks for more is waited for no longer than this
_HOLD_SPREAD = 0.25  # part of a hold over which the requests behind it return
_NOTE = 100  # characters of an error in a waiting note


def bounded_retry_after(seconds: object) -> float | None:
    """A provider's waiting time, at most `MAX_RETRY_AFTER`; None for what is no finite number from 0 up."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    return float(min(seconds, MAX_RETRY_AFTER)) if 0 <= seconds < math.inf else None


@dataclass(frozen=True)
class Clock:
    """Time as the hub sees it; tests put a virtual one here."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Backoff:
    """Exponential back-off: `base * 2**n` seconds after attempt n, at most `cap`, times 0.5 to 1.

    On top of it comes what the provider asked for.
    """

    attempts: int = 5  # calls for one request before it counts as failed
    base: float = 0.5
    cap: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}; allowed: at least 1 (1 means no retry)")
        if not 0 <= self.base <= self.cap < math.inf:
            raise ValueError(f"back-off base {self.base} and cap {self.cap} s; allowed: 0 <= base <= cap, finite")

    def wait(self, key: str, attempt: int, retry_after: float | None) -> float:
        """Seconds before attempt `attempt + 1` of the request with this key, on top of what the provider asked."""
        own = min(self.cap, self.base * 2.0**attempt) * (0.5 + 0.5 * _jitter(key, 4 * attempt % 56))
        # A provider's figure is a lower bound; the jitter on top keeps waiters from returning all at once.
        return own if retry_after is None else retry_after + own


class Pace:
    """Who waits how long: one request after its own failure, everybody after a rate limit.

    Belongs to the hub's thread; `note` may be called from any.
    """

    def __init__(self, backoff: Backoff, clock: Clock) -> None:
        self._backoff, self._now = backoff, clock.monotonic
        self._hold_until = 0.0
        self._retries: dict[str, float] = {}  # requests that failed and are tried again -> time of the next attempt
        self._last_error = ""

    def failed(self, key: str, attempt: int, error: Exception, text: str) -> float:
        """Seconds until this request is tried again; a rate limit with a waiting time holds everybody.

        The hold is the provider's time alone: with the request's own back-off added, the back-offs of a few
        unlucky requests would keep all others from calling.
        """
        now, retry_after = self._now(), bounded_retry_after(getattr(error, "retry_after", None))
        if retry_after and getattr(error, "kind", "") == "rate_limit":
            self._hold_until = max(self._hold_until, now + retry_after)
        wait = self._backoff.wait(key, attempt, retry_after)
        self._retries[key], self._last_error = now + wait, text[:_NOTE]
        return wait

    def ended(self, key: str) -> None:
        """No further attempt follows."""
        self._retries.pop(key, None)

    def hold(self, key: str) -> float:
        """Seconds this request is held back, 0 or less if it is not.  Those held return a little apart."""
        left = self._hold_until - self._now()
        return left + max(0.0, min(self._backoff.base, left * _HOLD_SPREAD)) * _jitter(key, 60)

    def note(self, outstanding: int) -> str | None:
        """What `outstanding` requests wait for, in a few words; None when there are none."""
        if not outstanding:
            return None
        now, retries = self._now(), list(self._retries.values())
        if (hold := self._hold_until - now) > 0:
            return f"rate limited, next call in {_span(hold)}"
        if not retries:
            return f"waiting for {_count(outstanding, 'answer')}"
        pause = min(retries) - now
        idle = len(retries) == outstanding and pause >= 1  # nothing is under way meanwhile
        return f"retrying {_count(len(retries), 'request')}{f' in {_span(pause)}' * idle} (last: {self._last_error})"


def _span(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds <= 90 else f"{math.ceil(seconds / 60)} min"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _jitter(key: str, start: int) -> float:
    """0 to 1 from four digits of a request's key, so reruns wait alike."""
    return int(key[start : start + 4], 16) / 65536
