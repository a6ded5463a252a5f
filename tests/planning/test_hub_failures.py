"""The hub when calls fail: it tries again, gives up, and says what it waits for."""

import asyncio
import threading
import time as real_time

import pytest

from jaxcoop.planning import Status
from jaxcoop.planning.backoff import MAX_RETRY_AFTER, Backoff, Pace
from jaxcoop.planning.clients import FunctionClient
from jaxcoop.planning.request import Fatal, Rejected, Transient

from .asking import ask, echo, flaky, status

# Retries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attempts", [1, 3, 5])
def test_a_failing_request_is_called_exactly_as_often_as_configured(make_hub, attempts):
    fn, seen = flaky(99)
    hub = make_hub(fn, attempts=attempts)
    assert status(hub, [ask("a"), ask("b")]) == [Status.FALLBACK] * 2
    assert list(seen.values()) == [attempts] * 2
    assert (hub.usage().calls, hub.usage().retried) == (2 * attempts, 2 * (attempts - 1))


def test_the_back_off_doubles_up_to_the_cap_with_jitter_from_the_key(make_hub, time):
    fn, _ = flaky(6)
    assert status(make_hub(fn, attempts=7, base=1.0, cap=8.0), [ask("a")]) == [Status.OK]
    assert len(time.sleeps) == 6
    for wait, full in zip(time.sleeps, [1, 2, 4, 8, 8, 8], strict=True):
        assert full / 2 <= wait < full
    key = "0123456789abcdef" * 4
    backoff = Backoff(5, 1.0, 8.0)
    assert backoff.wait(key, 2, None) == backoff.wait(key, 2, None) != backoff.wait(key[::-1], 2, None)


def test_the_providers_own_waiting_time_is_honoured(make_hub, time):
    fn, _ = flaky(1, lambda: Transient("rate_limit", retry_after=17.0))
    assert status(make_hub(fn, base=0.5), [ask("a")]) == [Status.OK]
    assert 17.0 <= max(time.sleeps) < 18.0


def test_a_rate_limit_holds_back_all_requests(make_hub, time):
    starts = {}

    def fn(request):
        starts.setdefault(echo(request), []).append(time.now)
        if echo(request) == "a" and len(starts["a"]) == 1:
            raise Transient("rate_limit", retry_after=10.0)
        return "x"

    hub = make_hub(fn, limit=1)
    assert status(hub, [ask("a"), ask("b")]) == [Status.OK] * 2
    assert starts["b"][0] >= 10.0


def test_a_rate_limit_holds_the_others_for_the_providers_time_not_for_the_back_off(time):
    pace = Pace(Backoff(5, base=20.0), time.clock())
    own = pace.failed("8" * 64, 0, Transient("rate_limit", retry_after=1.0), "")
    assert own >= 1.0 + 10.0
    assert 1.0 < pace.hold("f" * 64) <= 1.25  # the others come back a little apart
    assert pace.hold("0" * 64) == 1.0
    time.now = 1.0
    assert pace.hold("f" * 64) == 0.0


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -5.0, "soon", True])
def test_a_waiting_time_that_is_none_leaves_the_ordinary_back_off(make_hub, time, seconds):
    fn, _ = flaky(1, lambda: Transient("rate_limit", retry_after=seconds))
    assert status(make_hub(fn, base=0.5), [ask("a")]) == [Status.OK]
    assert len(time.sleeps) == 1 and 0.25 <= time.sleeps[0] < 0.5


def test_an_absurd_waiting_time_is_cut(make_hub, time):
    fn, _ = flaky(1, lambda: Transient("rate_limit", retry_after=10**400))
    assert status(make_hub(fn, base=0.5), [ask("a")]) == [Status.OK]
    assert MAX_RETRY_AFTER <= max(time.sleeps) < MAX_RETRY_AFTER + 1


def test_a_call_without_an_answer_ends_at_the_timeout(make_hub):
    async def never(request):
        await asyncio.sleep(60)

    hub = make_hub(never, attempts=2, timeout=0.02)
    assert status(hub, [ask("a")]) == [Status.FALLBACK]
    assert hub.usage().timeouts == 2


def test_fallbacks_are_not_recorded_so_a_later_ask_calls_again(make_hub):
    fn, seen = flaky(2)
    hub = make_hub(fn, attempts=2)
    assert status(hub, [ask("a")]) == [Status.FALLBACK]
    assert status(hub, [ask("a")]) == [Status.OK]
    assert sum(seen.values()) == 3


def test_a_refused_request_is_not_retried_and_the_others_go_on(make_hub):
    def fn(request):
        if echo(request) == "bad":
            raise Rejected("refused", "content filter")
        return "x"

    hub = make_hub(fn)
    assert status(hub, [ask("bad"), ask("good")]) == [Status.FALLBACK, Status.OK]
    assert hub.usage().calls == 2
    assert hub.unusable is None


# Giving up ----------------------------------------------------------------------------------------


def test_a_fatal_error_stops_all_calls_and_says_why(make_hub):
    def fn(request):
        raise Fatal("auth", "wrong\nkey")

    hub = make_hub(fn)
    assert status(hub, [ask("a")]) == [Status.FALLBACK]
    assert "auth" in hub.unusable and "wrong key" in hub.unusable and "\n" not in hub.unusable
    assert status(hub, [ask(str(i)) for i in range(50)]) == [Status.FALLBACK] * 50
    assert hub.usage().calls == 1


def test_a_provider_that_never_answers_is_given_up_after_eight_requests(make_hub):
    fn, seen = flaky(99, lambda: Transient("connection", "refused"))
    hub = make_hub(fn, attempts=2)
    for i in range(20):
        status(hub, [ask(str(i))])
    assert len(seen) == 8
    assert "connection: refused" in hub.unusable


def test_a_provider_that_worked_once_is_given_up_after_max_failures_in_a_row(make_hub):
    def fn(request):
        if int(echo(request)) % 20 == 0 and int(echo(request)) < 40:
            return "x"
        raise Transient("server")

    hub = make_hub(fn, attempts=1, max_failures=30)
    for i in range(100):
        status(hub, [ask(str(i))])
    assert hub.usage().calls == 21 + 30  # 0..20, then 21..50


def test_giving_up_wakes_requests_that_wait_for_their_next_attempt(make_hub):
    waiting = threading.Event()

    def fn(request):
        if echo(request) == "slow":
            waiting.set()
            raise Transient("server")
        raise Fatal("auth")

    hub = make_hub(fn, base=500.0, cap=500.0, clock=None)
    slow = hub.submit([ask("slow")])
    waiting.wait(5)
    hub.submit([ask("fatal")]).result(5)
    assert [a.status for a in slow.result(5)] == [Status.FALLBACK]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("way", ["plain", "async", "threads"])
def test_a_function_that_would_end_its_thread_ends_the_calls_and_leaves_nobody_waiting(make_hub, way, error):
    def plain(request):
        raise error("enough")

    async def later(request):
        await asyncio.sleep(0)
        raise error("enough")

    hub = make_hub(FunctionClient(later if way == "async" else plain, "m", threads=2 * (way == "threads")))
    assert status(hub, [ask("a"), ask("b")]) == [Status.FALLBACK] * 2
    assert f"the client raised {error.__name__}: enough" in hub.unusable


def test_a_script_without_further_answers_fails_the_request_instead_of_hanging(make_hub):
    replies = iter(["x"])
    hub = make_hub(FunctionClient(lambda _: next(replies), "m", threads=1), attempts=2, timeout=5.0)
    assert status(hub, [ask("a")]) + status(hub, [ask("b")]) == [Status.OK, Status.FALLBACK]
    assert hub.usage().timeouts == 0
    assert "no more answers" in hub.record.query("SELECT detail FROM calls WHERE outcome = 'RuntimeError'")[0][0]


# What it waits for --------------------------------------------------------------------------------


def eventually(condition, seconds=5.0):
    end = real_time.monotonic() + seconds
    while not condition() and real_time.monotonic() < end:
        real_time.sleep(0.005)
    return condition()


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (Transient("rate_limit", retry_after=710.0), "rate limited, next call in 10 min"),
        (Transient("rate_limit", retry_after=60.0), "rate limited, next call in 60 s"),
        (Transient("server", "HTTP 500", 400.0), "retrying 2 requests in 7 min (last: server: HTTP 500)"),
        (None, "waiting for 2 answers"),
    ],
)
def test_the_hub_says_what_outstanding_requests_wait_for(make_hub, error, note):
    async def fn(request):
        if error is None:
            await asyncio.sleep(60)
        raise error

    hub = make_hub(fn, clock=None, base=9.0)
    assert hub.waiting_note() is None
    hub.submit([ask("a"), ask("b")])
    assert eventually(lambda: hub.waiting_note() == note), hub.waiting_note()


def test_nothing_is_said_to_be_retried_once_it_has_ended(make_hub):
    fn, _ = flaky(1)
    hub = make_hub(fn)
    assert status(hub, [ask("a")]) == [Status.OK]
    assert eventually(lambda: hub.waiting_note() is None)
