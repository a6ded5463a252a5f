"""The planner hub: one thread with one event loop that carries all requests of a run to a client.

It limits concurrency, merges equal requests, answers from the record, retries, and turns every request into
an `Answer`: whatever happens outside, a rollout gets a status and never an exception. Design:
sections 7.3 and 8 of docs/concepts/planning.md.
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import dataclasses
import math
import os
import threading
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from jaxcoop.planning.backoff import Backoff, Clock, Pace
from jaxcoop.planning.clients.base import Client
from jaxcoop.planning.process import Status
from jaxcoop.planning.record import Call, Record, RecordError
from jaxcoop.planning.request import Answer, Fatal, Rejected, Reply, Request, Transient, clean_text, request_key
from jaxcoop.planning.usage import Session, Usage, usage_of

_FIRST_FAILURES = 8  # requests that may fail before any success until the provider counts as unreachable

T = TypeVar("T")


class Hub:
    """Requests in, answers out.  `submit` works from any thread but the hub's own, also under a running event
    loop.

    `limit`: calls at a time.  `attempts`, `base`, `cap`: see `Backoff`; clients must not retry themselves.
    `timeout`: seconds for one call, on top of the client's own.  `replay`: answer from the record only.
    `reasks`: further asks after a reply that the request calls malformed; then the last one is accepted with status
    MALFORMED.  `max_failures`: consecutive failed
    requests after which the hub gives up.  `parser`: version of whatever reads the replies; a new one asks
    anew.

    Fallbacks are not recorded, so a resumed run asks again.
    """

    def __init__(
        self,
        client: Client,
        record: Record | None = None,
        *,
        limit: int = 128,
        attempts: int = 5,
        base: float = 0.5,
        cap: float = 30.0,
        timeout: float = 120.0,
        replay: bool = False,
        reasks: int = 0,
        max_failures: int = 64,
        parser: str = "1",
        clock: Clock | None = None,
    ) -> None:
        for name, value, least in (
            ("limit", limit, 1),
            ("reasks", reasks, 0),
            ("max_failures", max_failures, 1),
        ):
            if value < least:
                raise ValueError(f"{name} is {value}; allowed: at least {least}")
        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout is {timeout} s; allowed: above 0 and finite")
        self._client, self._replay, self._reasks = client, replay, reasks
        self._backoff = Backoff(attempts, base, cap)
        self._timeout, self._max_failures, self._clock = timeout, max_failures, clock or Clock()
        self._settings, self._parser = client.settings(), parser
        self.record = Record() if record is None else record
        self._reason: str | None = None
        self._missing: dict[str, Request] = {}
        self._session = Session()
        # From here on the hub's thread alone touches this state, so none of it needs a lock.
        self._inflight: dict[str, asyncio.Task[Answer]] = {}
        self._naps: set[asyncio.Future] = set()
        self._gate = asyncio.Semaphore(limit)
        self._prepared: asyncio.Task[None] | None = None
        self._pace = Pace(self._backoff, self._clock)
        self._succeeded, self._failures = False, 0
        self._closed, self._door = False, threading.Lock()  # nothing is handed to the loop once it is told to stop
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_run, args=(self._loop,), name="planner-hub", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    # From outside ---------------------------------------------------------------------------------

    @property
    def unusable(self) -> str | None:
        """None, or one line: what happened, where, and the fix.  From then on every request falls back at
        once.
        """
        return self._reason or self.record.failure

    @property
    def missing(self) -> list[Request]:
        """Replay: the distinct requests the record had no answer to, in order of first asking."""
        return list(self._missing.values())

    def usage(self) -> Usage:
        """The ledger so far."""
        return usage_of(self.record, self._session)

    def waiting_note(self) -> str | None:
        """What the outstanding requests wait for, in a few words; None when there are none."""
        return self._pace.note(len(self._inflight))

    def submit(self, requests: Sequence[Request]) -> "concurrent.futures.Future[list[Answer]]":
        """One answer for each request, in order; the future never raises, and is cancelled by `close`."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("Hub.submit on the hub's own thread would wait for itself; call it from another thread")
        if os.getpid() != self._process:
            raise RuntimeError("Hub.submit in a forked process, which has no thread of the hub; make a new hub there")
        keys = [request_key(r, self._settings, self._parser) for r in requests]
        with self._door:
            if self._closed:
                raise RuntimeError("Hub.submit after close; make a new hub")
            return asyncio.run_coroutine_threadsafe(self._batch(keys, requests), self._loop)

    def close(self) -> None:
        """Cancel what is outstanding, close the client, stop the thread.  The record stays open; call it
        twice freely.
        """
        if threading.current_thread() is self._thread or os.getpid() != self._process:
            return
        with self._door:
            if self._closed:
                return
            self._closed = True
        atexit.unregister(self.close)
        with contextlib.suppress(concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
            asyncio.run_coroutine_threadsafe(self._shutdown(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._loop.is_running():
            self._loop.close()

    def __enter__(self) -> "Hub":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # On the hub's thread ------------------------------------------------------------------------------------

    async def _shutdown(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with contextlib.suppress(Exception):  # a client that cannot close must not keep the run from ending
            await _contained(self._client.aclose())

    async def _batch(self, keys: list[str], requests: Sequence[Request]) -> list[Answer]:
        self._session.asked += len(keys)
        found = [self._lookup(key, request) for key, request in zip(keys, requests, strict=True)]
        waiting = [item for item in found if isinstance(item, asyncio.Task)]
        if waiting:
            await asyncio.wait(waiting)  # unlike gather, being cancelled here does not cancel calls others wait for
        answers = [item.result() if isinstance(item, asyncio.Task) else item for item in found]
        self._session.fallback += sum(a.status == Status.FALLBACK for a in answers)
        self._session.missing += sum(a.status == Status.MISSING for a in answers)
        return answers

    def _lookup(self, key: str, request: Request) -> "Answer | asyncio.Task[Answer]":
        if (task := self._inflight.get(key)) is not None:
            self._session.merged += 1
            return task
        try:
            known = self.record.answer(key)
        except RecordError as err:
            self._give_up(str(err))
            return Answer(None, Status.FALLBACK)
        if known is not None:
            self._session.replayed += 1
            return known
        if self._replay:
            self._missing.setdefault(key, request)
            return Answer(None, Status.MISSING)
        if self.unusable:
            return Answer(None, Status.FALLBACK)
        task = self._inflight[key] = self._loop.create_task(self._total(key, request))
        task.add_done_callback(lambda _: self._inflight.pop(key, None))
        return task

    async def _total(self, key: str, request: Request) -> Answer:
        """`_live`, with every unforeseen error turned into a reason to stop asking."""
        try:
            return await self._live(key, request)
        except Exception as err:
            self._give_up(f"internal error of the planner hub: {type(err).__name__}: {_line(err)}")
            return Answer(None, Status.FALLBACK)

    async def _live(self, key: str, request: Request) -> Answer:
        # A killed session may have paid for malformed replies already: count them instead of asking again.
        earlier = [] if request.malformed is None else self.record.malformed_replies(key)
        if len(earlier) > self._reasks:
            answer = Answer(earlier[-1], Status.MALFORMED)
            self.record.put(key, request, answer, None)
            return answer
        outcome = Answer(None, Status.FALLBACK)
        for reask in range(len(earlier), self._reasks + 1):
            outcome = await self._ask(key, request, reask, last=reask == self._reasks)
            if outcome.status != Status.MALFORMED:
                break
        return outcome

    async def _ask(self, key: str, request: Request, reask: int, *, last: bool) -> Answer:
        """Attempts until a reply comes, and its status; FALLBACK when all failed."""
        lost = 0.0
        try:
            for attempt in range(self._backoff.attempts):
                async with self._gate:
                    await self._wait_for_provider(key)
                    if self.unusable:
                        break
                    start = self._clock.monotonic()
                    try:
                        reply = await self._call(request, reask * self._backoff.attempts + attempt)
                    except asyncio.CancelledError:
                        self._log(key, attempt, reask, "cancelled", start, None)
                        raise
                    except Exception as err:
                        error = err
                    else:
                        return self._arrived(key, request, reply, attempt, reask, self._clock.monotonic() - start, last)
                kind = str(getattr(error, "kind", type(error).__name__))
                lost += self._log(key, attempt, reask, kind, start, error)
                if isinstance(error, Fatal):
                    self._give_up(f"{self._where()}: {kind}: {_line(error)}")
                    break
                if isinstance(error, Rejected) or attempt == self._backoff.attempts - 1:
                    self._failed(error, kind)
                    break
                await self._nap(self._pace.failed(key, attempt, error, f"{kind}: {_line(error)}"))
            return Answer(None, Status.FALLBACK, lost)
        finally:
            self._pace.ended(key)

    async def _call(self, request: Request, number: int) -> Reply:
        """One reply of the client within the time-out.  CancelledError only if this task itself is to stop."""
        try:
            await self._prepare()
            return await asyncio.wait_for(_contained(self._client.ask(request, number)), self._timeout)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            raise Transient("cancelled", "the client dropped the call") from None
        except TimeoutError:
            raise Transient("timeout", f"no answer within {self._timeout:g} s") from None

    def _arrived(
        self, key: str, request: Request, reply: Reply, attempt: int, reask: int, latency: float, last: bool
    ) -> Answer:
        self._succeeded, self._failures = True, 0
        try:
            reason = None if request.malformed is None else request.malformed(reply)
        except BaseException as err:  # a fault of the reader: another reply would cost as much and be read no better
            kind = type(err).__name__
            self.record.put_call(Call(key, attempt, reask, kind, latency, reply, reply.as_json()))
            raise RuntimeError(f"the check for malformed replies raised {kind}: {_line(err)}") from err
        reply = dataclasses.replace(reply, seconds=latency)
        outcome, detail = ("ok", None) if reason is None else ("malformed", reply.as_json())
        answer = Answer(reply, Status.OK if reason is None else Status.MALFORMED)
        call = Call(key, attempt, reask, outcome, latency, reply, detail)
        if reason is None or last:
            self.record.put(key, request, answer, call)
        else:
            self.record.put_call(call)
        return answer

    def _log(self, key: str, attempt: int, reask: int, kind: str, start: float, error: BaseException | None) -> float:
        """Add a call without a reply to the ledger; returns the seconds that it took."""
        detail, seconds = None if error is None else _line(error), self._clock.monotonic() - start
        self.record.put_call(Call(key, attempt, reask, kind, seconds, None, detail))
        return seconds

    async def _prepare(self) -> None:
        """Let the client import and connect once, outside the time-out of any call."""
        if self._prepared is None:
            self._prepared = self._loop.create_task(_contained(self._client.prepare()))
        await asyncio.shield(self._prepared)

    async def _wait_for_provider(self, key: str) -> None:
        while not self.unusable and (wait := self._pace.hold(key)) > 0:
            await self._nap(wait)

    async def _nap(self, seconds: float) -> None:
        """Sleep that ends early when the hub gives up."""
        nap = asyncio.ensure_future(self._clock.sleep(seconds))
        self._naps.add(nap)
        try:
            await asyncio.wait({nap})
        finally:
            self._naps.discard(nap)
            nap.cancel()

    def _failed(self, error: BaseException, kind: str) -> None:
        self._failures += 1
        allowed = self._max_failures if self._succeeded else min(_FIRST_FAILURES, self._max_failures)
        if self._failures >= allowed:
            self._give_up(
                f"{self._where()}: {self._failures} requests in a row failed after "
                f"{self._backoff.attempts} attempts each, last with {kind}: {_line(error)}; "
                "check that the server runs and its limits"
            )

    def _give_up(self, reason: str) -> None:
        self._reason = self._reason or reason
        for nap in self._naps:
            nap.cancel()

    def _where(self) -> str:
        return f"model {self._settings.get('model', '?')}"


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()


def _being_cancelled() -> bool:
    """Whether the current task itself is to stop, rather than something it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _contained(awaitable: Awaitable[T]) -> T:
    """The result; what would end the hub's thread, and leave everybody waiting, becomes an ordinary error."""
    try:
        return await awaitable
    except (Exception, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as err:  # KeyboardInterrupt or SystemExit of a client; Ctrl-C goes to the main thread
        raise Fatal("stopped", f"the client raised {type(err).__name__}{f': {err}' if str(err) else ''}") from None


def _line(err: BaseException) -> str:
    """An error as one line of bounded length."""
    return clean_text(" ".join(str(err).split()))[:500] or type(err).__name__
