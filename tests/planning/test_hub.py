"""The hub: every request gets an answer, each reply is paid for once, nothing raises."""

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import textwrap
import threading
import time as real_time
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.planning import FRONT_ENDS, Message, PlannerUnusable, Record, Reply, Request, Status, TextPlanner
from jaxcoop.planning.backoff import MAX_RETRY_AFTER, Backoff, Pace
from jaxcoop.planning.clients import FunctionClient
from jaxcoop.planning.request import Fatal, Rejected, Transient, request_key

from . import toy

EPISODES = 24
PROCESS = toy.Toy()


def ask(text, draw=None, malformed=None):
    return Request((Message("user", text),), draw, malformed=malformed)


def status(hub, requests):
    return [a.status for a in hub.submit(requests).result(20)]


def echo(request):
    return request.messages[-1].content


def flaky(failures, error=lambda: Transient("server")):
    """A function that fails each request `failures` times before it answers."""
    seen = {}

    def fn(request):
        seen[request] = seen.get(request, 0) + 1
        if seen[request] <= failures:
            raise error()
        return echo(request)

    return fn, seen


# Answers ------------------------------------------------------------------------------------------


def test_answers_come_in_the_order_of_the_requests(make_hub):
    async def later(request):
        await asyncio.sleep(0.001 * (5 - int(echo(request))))
        return echo(request)

    answers = make_hub(later).submit([ask(str(i)) for i in range(5)]).result(20)
    assert [a.reply.text for a in answers] == ["0", "1", "2", "3", "4"]


def test_equal_requests_in_flight_share_one_call(make_hub):
    calls = []

    async def slow(request):
        calls.append(request)
        await asyncio.sleep(0.05)
        return "x"

    hub = make_hub(slow)
    first, second = hub.submit([ask("a")] * 3), hub.submit([ask("a")])
    assert len(first.result(20) + second.result(20)) == 4
    assert len(calls) == 1
    assert hub.usage().merged == 3


def test_recorded_requests_are_not_asked_again(make_hub):
    hub = make_hub(echo)
    assert status(hub, [ask("a")]) == status(hub, [ask("a")]) == [Status.OK]
    usage = hub.usage()
    assert (usage.asked, usage.calls, usage.replayed) == (2, 1, 1)


@pytest.mark.parametrize(("temperature", "calls"), [(0.0, 1), (0.7, 2), (None, 2)])
def test_the_draw_counts_unless_the_temperature_is_zero(make_hub, temperature, calls):
    hub = make_hub(FunctionClient(echo, "m", temperature=temperature))
    status(hub, [ask("a", (0, 1, 2)), ask("a", (0, 1, 3))])
    assert hub.usage().calls == calls


@pytest.mark.parametrize("part", ["settings", "parser", "messages", "schema", "draw"])
def test_every_part_of_a_key_changes_it(part):
    base = {
        "settings": {"model": "m", "temperature": 1},
        "parser": "1",
        "messages": "a",
        "schema": None,
        "draw": (1,),
    }
    other = base | {
        part: {"settings": {"model": "n", "temperature": 1}, "schema": {"type": "object"}, "draw": (2,)}.get(part, "b")
    }
    keys = [
        request_key(Request((Message("user", p["messages"]),), p["draw"], p["schema"]), p["settings"], p["parser"])
        for p in (base, other)
    ]
    assert keys[0] != keys[1]


def test_numpy_integers_in_a_draw_make_the_same_key():
    settings = {"temperature": 1.0}
    assert request_key(ask("a", (np.int32(4),)), settings, "1") == request_key(ask("a", (4,)), settings, "1")


def test_no_more_calls_at_a_time_than_the_limit(make_hub):
    now, peak = [0], [0]

    async def busy(request):
        now[0] += 1
        peak[0] = max(peak[0], now[0])
        await asyncio.sleep(0.002)
        now[0] -= 1
        return "x"

    status(make_hub(busy, limit=5), [ask(str(i)) for i in range(40)])
    assert peak[0] == 5


def test_many_slow_answers_overlap(make_hub):
    async def slow(request):
        await asyncio.sleep(0.1)
        return "x"

    hub = make_hub(slow, limit=50)
    start = real_time.monotonic()
    assert status(hub, [ask(str(i)) for i in range(100)]) == [Status.OK] * 100
    assert real_time.monotonic() - start < 2.0  # one by one: 10 s


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


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_with_an_unusable_hub_ends_with_one_clear_error(make_hub, name):
    def fn(request):
        raise Fatal("not_found", "no such model")

    planner = TextPlanner(make_hub(fn), toy.write, toy.read, toy.WORDS)
    with pytest.raises(PlannerUnusable, match="scripted: not_found: no such model"):
        FRONT_ENDS[name](PROCESS, planner, toy.reset(EPISODES))


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


# Malformed replies --------------------------------------------------------------------------------


def digits_only(reply):
    return None if reply.text.isdigit() else "not a number"


number_please = ask("a", malformed=digits_only)


def test_a_malformed_reply_is_asked_again_and_kept_in_the_ledger(make_hub):
    replies = iter(["what?", "7"])
    hub = make_hub(lambda _: next(replies), reasks=2)
    answer = hub.submit([number_please]).result(20)[0]
    assert (answer.reply.text, answer.status) == ("7", Status.OK)
    usage = hub.usage()
    assert (usage.calls, usage.malformed, usage.reasked, usage.retried) == (2, 1, 1, 0)
    assert "what?" in hub.record.query("SELECT detail FROM calls WHERE outcome = 'malformed'")[0][0]


def test_after_the_last_reask_the_reply_is_accepted_as_malformed_and_recorded(make_hub):
    hub = make_hub(lambda _: "what?", reasks=2)
    assert status(hub, [number_please]) == [Status.MALFORMED]
    assert status(hub, [number_please]) == [Status.MALFORMED]
    assert hub.usage().calls == 3


def test_malformed_replies_of_a_killed_session_count_as_asked(make_hub, tmp_path):
    calls = []

    def dies_at_the_second(request):
        calls.append(request)
        if len(calls) == 2:
            raise Fatal("auth")
        return "what?"

    with Record(tmp_path / "r") as record:
        status(make_hub(dies_at_the_second, record, reasks=2), [number_please])
        hub = make_hub(lambda _: "what?", record, reasks=2)
        assert status(hub, [number_please]) == [Status.MALFORMED]
        assert record.query("SELECT count(*) FROM calls WHERE outcome = 'malformed'") == [(3,)]


def test_an_empty_reply_is_malformed_not_lost(make_hub):
    reply = Reply("", finish_reason="length", reasoning="thinking")
    hub = make_hub(lambda _: reply)
    answer = hub.submit([number_please]).result(20)[0]
    assert (answer.reply, answer.status) == (reply, Status.MALFORMED)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_check_for_malformed_replies_that_fails_is_named_and_pays_for_no_second_reply(make_hub, error):
    def broken(reply):
        raise error("in the check")

    hub = make_hub(lambda _: Reply("x", tokens_out=5))
    assert status(hub, [ask("a", malformed=broken)]) == [Status.FALLBACK]
    assert f"the check for malformed replies raised {error.__name__}: in the check" in hub.unusable
    assert (hub.usage().calls, hub.usage().tokens_out) == (1, 5)


def test_a_reply_with_absurd_figures_and_an_error_with_half_a_surrogate_pair_are_kept(make_hub, tmp_path):
    def fn(request):
        if echo(request) == "bad":
            raise Rejected("refused", "no \ud800")
        return Reply("x \udfff", 10**30, -1, float("nan"), "stop \ud800")

    with Record(tmp_path / "r") as record:
        hub = make_hub(fn, record)
        assert status(hub, [ask("bad"), *(ask(str(i)) for i in range(5))]) == [Status.FALLBACK] + [Status.OK] * 5
        assert hub.unusable is None
        hub.close()
    with Record(tmp_path / "r") as record:
        assert record.count_answers() == 5
        assert record.query("SELECT count(*) FROM calls") == [(6,)]


def test_half_a_surrogate_pair_in_a_request_becomes_a_question_mark():
    assert ask("left \ud800 right").messages[0].content == "left ? right"
    assert request_key(ask("\ud800"), {}, "1") == request_key(ask("?"), {}, "1")


# Around the loop ----------------------------------------------------------------------------------


def test_the_hub_works_under_a_running_event_loop(make_hub):
    async def notebook():
        return status(make_hub(echo), [ask("a")])

    assert asyncio.run(notebook()) == [Status.OK]


def test_submit_on_the_hubs_own_thread_is_refused(make_hub):
    hub = None
    errors = []

    def fn(request):
        try:
            hub.submit([ask("b")])
        except RuntimeError as err:
            errors.append(str(err))
        return "x"

    hub = make_hub(fn)
    status(hub, [ask("a")])
    assert "own thread" in errors[0]


def test_a_forked_process_is_refused_at_once_and_its_end_disturbs_nobody():
    script = """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from jaxcoop.planning import Hub, Message, Request
        from jaxcoop.planning.clients import FunctionClient
        hub = Hub(FunctionClient(lambda _: "x"))
        request = Request((Message("user", "a"),))
        if os.fork() == 0:
            try:
                hub.submit([request]).result(5)
            except RuntimeError as err:
                print(err, flush=True)
            sys.exit()
        os.wait()
        print(hub.submit([request]).result(5)[0].reply.text)
    """
    start = real_time.monotonic()
    root = Path(__file__).parents[2]
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=root, env=env, capture_output=True, text=True, timeout=120
    )
    child, parent = done.stdout.splitlines()
    assert "in a forked process" in child and parent == "x"
    assert real_time.monotonic() - start < 60


def test_close_cancels_what_is_outstanding_and_keeps_what_arrived(make_hub, tmp_path):
    async def fn(request):
        if echo(request) == "slow":
            await asyncio.sleep(60)
        return "x"

    record = Record(tmp_path / "r")
    hub = make_hub(fn, record)
    assert status(hub, [ask("fast")]) == [Status.OK]
    slow = hub.submit([ask("slow")])
    real_time.sleep(0.05)
    hub.close()
    hub.close()
    with pytest.raises(concurrent.futures.CancelledError):
        slow.result(5)
    with pytest.raises(RuntimeError, match="after close"):
        hub.submit([ask("x")])
    assert record.count_answers() == 1
    assert record.query("SELECT outcome FROM calls ORDER BY seq") == [("ok",), ("cancelled",)]


def test_a_rollout_whose_hub_is_closed_meanwhile_does_not_hang(make_hub):
    async def never(request):
        await asyncio.sleep(60)

    hub = make_hub(never)
    planner = TextPlanner(hub, toy.write, toy.read, toy.WORDS)
    threading.Timer(0.1, hub.close).start()
    with pytest.raises(PlannerUnusable, match="closed"):
        FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit"),
        ({"attempts": 0}, "attempts"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": float("nan")}, "timeout"),
        ({"cap": float("inf")}, "cap"),
        ({"base": 9, "cap": 1}, "cap"),
    ],
)
def test_impossible_options_are_refused(options, message):
    from jaxcoop.planning import Hub

    with pytest.raises(ValueError, match=message):
        Hub(FunctionClient(echo), **options)


# Rollouts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_is_replayed_without_a_call(make_hub, tmp_path, name):
    def refuse(request):
        raise AssertionError("called during replay")

    with Record(tmp_path / "r") as record:
        planner = TextPlanner(make_hub(toy.reply_to, record), toy.write, toy.read, toy.WORDS)
        live = FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))
    with Record(tmp_path / "r") as record:
        hub = make_hub(refuse, record, replay=True)
        again = FRONT_ENDS[name](PROCESS, TextPlanner(hub, toy.write, toy.read, toy.WORDS), toy.reset(EPISODES))
        assert hub.missing == []
        assert hub.usage().missing == 0
    toy.assert_equal(again, live)
    assert np.asarray(live.status)[..., Status.OK].sum() == np.asarray(live.decisions).sum()


def test_a_replay_lists_the_requests_the_record_lacks(make_hub):
    hub = make_hub(echo, replay=True)
    assert status(hub, [ask("the lost question"), ask("the lost question")]) == [Status.MISSING] * 2
    assert [r.text() for r in hub.missing] == ["[user]\nthe lost question"]


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_completes_on_fallbacks_and_counts_them(make_hub, name):
    def fn(request):
        if "agent=1" in echo(request):
            raise Transient("server")
        return toy.reply_to(request)

    hub = make_hub(fn, attempts=2, max_failures=10_000)
    final = FRONT_ENDS[name](PROCESS, TextPlanner(hub, toy.write, toy.read, toy.WORDS), toy.reset(EPISODES))
    counts = np.asarray(final.status)
    assert (counts[:, 1, Status.FALLBACK] == np.asarray(final.decisions)[:, 1]).all()
    assert (counts[:, 0, Status.OK] == np.asarray(final.decisions)[:, 0]).all()
    assert hub.usage().fallback == counts[..., Status.FALLBACK].sum()


def test_garbage_replies_are_counted_as_malformed_by_the_reader(make_hub):
    planner = TextPlanner(make_hub(lambda _: "no idea"), toy.write, toy.read, toy.WORDS)
    final = FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))
    assert np.asarray(final.status)[..., Status.MALFORMED].sum() == np.asarray(final.decisions).sum()


def test_a_reader_that_fails_is_reported_as_itself(make_hub):
    def broken(rows, answers):
        raise KeyError("reader")

    planner = TextPlanner(make_hub(echo), toy.write, broken, toy.WORDS)
    with pytest.raises(KeyError, match="reader"):
        FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))


def test_a_writer_with_too_few_requests_is_named(make_hub):
    planner = TextPlanner(make_hub(echo), lambda rows: [], toy.read, toy.WORDS)
    with pytest.raises(ValueError, match=r"write\(\) gave 0 requests"):
        FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))
