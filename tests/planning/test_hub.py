"""The hub: every request gets an answer, each reply is paid for once, nothing raises."""

import asyncio
import concurrent.futures
import os
import subprocess
import sys
import textwrap
import time as real_time
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.planning import Hub, Message, Record, Reply, Request, Status
from jaxcoop.planning.clients import FunctionClient
from jaxcoop.planning.request import Fatal, Rejected, request_key

from .asking import ask, echo, status

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
    with pytest.raises(ValueError, match=message):
        Hub(FunctionClient(echo), **options)
