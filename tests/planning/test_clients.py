"""Clients against the scripted server: typed errors, replies of every shape, one layer that retries."""

import os
import signal
import subprocess
import sys
import textwrap
import time as real_time
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.benchmarks.loopback import (
    Failures,
    LoopbackServer,
    greedy_left_policy,
    prompt_hash,
    random_policy,
)
from jaxcoop.planning import FRONT_ENDS, Message, Record, Request, Status, TextPlanner
from jaxcoop.planning.clients import DirectClient, LitellmClient
from jaxcoop.planning.clients.base import chat_reply, retry_seconds
from jaxcoop.runs.model import LanguageModel

from . import toy

ROOT = Path(__file__).parents[2]
EPISODES = 24
NAN = float("nan")
BROKEN_ADDRESSES = ["http://[::1", "http://host:99999/v1", "http://:8000/v1", "http://my host/v1", "ftp://host"]


def ask(text, schema=None):
    return Request((Message("system", "be brief"), Message("user", text)), schema=schema)


def toy_server(body):
    return toy.reply_to(Request((Message("user", body["messages"][-1]["content"]),)))


def direct(server, **options):
    return DirectClient("toy", server.url, **options)


def litellm(server, **options):
    return LitellmClient("openai/toy", api_base=server.url, api_key="x", **options)


CLIENTS = pytest.mark.parametrize("client", [direct, litellm])


@pytest.fixture
def serve():
    servers = []

    def start(*args, **options):
        servers.append(LoopbackServer(*args, **options).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()


@CLIENTS
def test_a_reply_carries_text_tokens_and_finish_reason(serve, make_hub, client):
    hub = make_hub(client(serve(lambda body: "three short words")))
    reply = hub.submit([ask("hello you")]).result(60)[0].reply
    assert (reply.text, reply.finish_reason) == ("three short words", "stop")
    assert (reply.tokens_in, reply.tokens_out, reply.priced, reply.cost) == (4, 3, False, 0.0)


@CLIENTS
def test_a_given_price_makes_a_cost(serve, make_hub, client):
    hub = make_hub(client(serve(lambda body: "x y"), input_price=0.5, output_price=2.0))
    reply = hub.submit([ask("hello you")]).result(60)[0].reply
    assert (reply.cost, reply.priced) == (4 * 0.5 + 2 * 2.0, True)


@CLIENTS
def test_sampling_schema_and_extra_reach_the_server(serve, make_hub, client):
    bodies = []
    server = serve(lambda body: bodies.append(body) or "x")
    hub = make_hub(client(server, temperature=0.5, max_tokens=7, extra={"seed": 3}))
    hub.submit([ask("a", {"type": "object"})]).result(60)
    body = bodies[0]
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 7, 3)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert [m["role"] for m in body["messages"]] == ["system", "user"]


@CLIENTS
@pytest.mark.parametrize("kind", ["rate_limit", "server_error", "garbage"])
def test_the_server_sees_exactly_the_configured_attempts(serve, make_hub, client, kind):
    server = serve(failures=Failures(**{kind: 1.0}))
    hub = make_hub(client(server), attempts=3)
    answers = hub.submit([ask(str(i)) for i in range(4)]).result(60)
    assert [a.status for a in answers] == [Status.FALLBACK] * 4
    assert set(server.by_prompt.values()) == {3}
    assert hub.usage().calls == server.requests == 12
    outcome = {"rate_limit": "rate_limit", "server_error": "server", "garbage": None}[kind]
    outcomes = {row[0] for row in hub.record.query("SELECT DISTINCT outcome FROM calls")}
    assert len(outcomes) == 1 and (outcome is None or outcomes == {outcome})


@CLIENTS
def test_retry_after_is_read_from_the_header(serve, make_hub, time, client):
    server = serve(failures=Failures(rate_limit=1.0, retry_after=33))
    make_hub(client(server), attempts=2, base=0.1).submit([ask("a")]).result(60)
    assert 33 <= max(time.sleeps) < 34


@CLIENTS
def test_a_null_content_is_a_reply_with_its_reasoning(serve, make_hub, client):
    server = serve(lambda body: "the answer", failures=Failures(null=1.0))
    answer = make_hub(client(server)).submit([ask("a")]).result(60)[0]
    assert (answer.status, answer.reply.text, answer.reply.reasoning) == (Status.OK, "", "the answer")


@CLIENTS
def test_an_empty_content_keeps_its_finish_reason(serve, make_hub, client):
    answer = make_hub(client(serve(failures=Failures(empty=1.0)))).submit([ask("a")]).result(60)[0]
    assert (answer.reply.text, answer.reply.finish_reason) == ("", "length")


@CLIENTS
def test_a_server_that_is_too_slow_counts_as_timeout(serve, make_hub, client):
    server = serve(failures=Failures(slow=1.0))
    hub = make_hub(client(server, timeout=0.2), attempts=1)
    assert hub.submit([ask("a")]).result(60)[0].status == Status.FALLBACK
    assert hub.usage().timeouts == 1


@CLIENTS
def test_a_port_where_nobody_listens_makes_the_hub_unusable_in_one_line(make_hub, client):
    class Nowhere:
        url = "http://127.0.0.1:9/v1"

    hub = make_hub(client(Nowhere), attempts=1)
    hub.submit([ask(str(i)) for i in range(9)]).result(60)
    assert "8 requests in a row failed" in hub.unusable
    assert "\n" not in hub.unusable


def test_a_huge_reply_is_cut(serve, make_hub):
    server = serve(failures=Failures(huge=1.0))
    reply = make_hub(direct(server)).submit([ask("a")]).result(60)[0].reply
    assert len(reply.text) == 1_000_000


def test_a_wrong_path_is_fatal(serve, make_hub):
    hub = make_hub(DirectClient("toy", serve().url.replace("/v1", "/v2")))
    hub.submit([ask("a")]).result(60)
    assert "not_found" in hub.unusable


def test_an_address_without_a_path_means_the_usual_one(serve, make_hub):
    hub = make_hub(DirectClient("toy", serve().url.removesuffix("/v1")))
    assert hub.submit([ask("a")]).result(60)[0].status == Status.OK


def test_a_missing_provider_key_names_the_environment_variable(make_hub, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hub = make_hub(LitellmClient("openai/gpt-4o-mini"))
    assert hub.submit([ask("a")]).result(60)[0].status == Status.FALLBACK
    assert "OPENAI_API_KEY" in hub.unusable


def test_prices_and_token_estimates_come_from_the_bundled_tables():
    from jaxcoop.planning.clients.prices import estimate_tokens, price_per_token

    cheap, dear = price_per_token("gpt-4o-mini"), price_per_token("gpt-4o")
    assert 0 < cheap[0] < dear[0] and cheap[0] < cheap[1]
    assert price_per_token("openai/no-such-model") is None
    assert 20 < estimate_tokens([Message("user", "hello there " * 20)], "gpt-4o-mini") < 80


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DirectClient("m", "localhost:8000"), "api_base"),
        (lambda: DirectClient("", "http://localhost/v1"), "model is empty"),
        (lambda: LitellmClient("m", temperature=3), "temperature"),
        (lambda: LitellmClient("m", max_tokens=0), "max_tokens"),
        (lambda: LitellmClient("m", input_price=1.0), "prices"),
        (lambda: LitellmClient("m", input_price=NAN, output_price=1.0), "prices"),
        (lambda: LitellmClient("m", input_price=1.0, output_price=-1.0), "prices"),
        (lambda: LitellmClient("m", temperature=NAN), "temperature"),
        (lambda: LitellmClient("m", timeout=float("inf")), "timeout"),
        (lambda: LitellmClient("m", api_base="localhost:8000"), "api_base"),
        *((lambda url=url: DirectClient("m", url), "api_base") for url in BROKEN_ADDRESSES),
    ],
)
def test_wrong_client_settings_are_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_price": -1.0, "output_price": 2.0}, r"input_price -1\.0: must be dollars per million tokens"),
        ({"input_price": 1.0, "output_price": NAN}, "output_price nan: must be dollars per million tokens"),
        ({"input_price": 1.0, "output_price": float("inf")}, "output_price inf"),
        ({"request_timeout": NAN}, "request_timeout nan"),
        ({"request_timeout": float("inf")}, "request_timeout inf"),
    ],
)
def test_options_of_a_language_model_are_refused_in_the_units_they_were_given_in(options, message):
    with pytest.raises(ValueError, match=message):
        LanguageModel("openai/x", **options)


def test_half_a_price_is_refused_in_the_units_it_was_given_in():
    with pytest.raises(ValueError, match=r"input_price 0\.5 and output_price None: give both, in dollars per million"):
        LanguageModel("openai/x", input_price=0.5).make_client()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10**30, "completion_tokens": -3}, (2**53, 0)),
        ({"prompt_tokens": NAN, "completion_tokens": float("inf")}, (0, 0)),
        ({"prompt_tokens": "7", "completion_tokens": [7]}, (0, 0)),
        ([1, 2], (0, 0)),
        (None, (0, 0)),
    ],
)
def test_a_usage_that_makes_no_sense_does_not_cost_the_reply(usage, tokens):
    reply = chat_reply({"content": "hello"}, {"why": 1}, usage, None, (1.0, 1.0))
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.priced) == ("hello", *tokens, True)
    assert reply.cost == sum(tokens)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("2.5", 2.5), ("0", 0.0), ("1e300", 600.0), ("nan", None), ("inf", None), ("-3", None), ("Wed, 21 Oct", None)],
)
def test_a_retry_after_is_a_finite_number_of_at_most_ten_minutes(header, seconds):
    assert retry_seconds({"retry-after": header}) == seconds


@CLIENTS
def test_half_a_surrogate_pair_in_a_prompt_reaches_the_server_as_a_question_mark(serve, make_hub, client):
    bodies = []
    hub = make_hub(client(serve(lambda body: bodies.append(body) or "x")))
    assert hub.submit([ask("left \ud800 right")]).result(60)[0].status == Status.OK
    assert bodies[0]["messages"][1]["content"] == "left ? right"


def test_a_tenth_of_rate_limits_costs_little_more_than_the_time_the_provider_asks_for(serve, make_hub):
    server = serve(lambda body: "x", latency=0.02, failures=Failures(rate_limit=0.1, retry_after=0.05))
    hub = make_hub(direct(server), clock=None)
    start = real_time.monotonic()
    answers = hub.submit([ask(str(i)) for i in range(500)]).result(60)
    assert all(a.status == Status.OK for a in answers)
    assert real_time.monotonic() - start < 6.0  # with everybody waiting for each back-off: above 15 s


def test_a_storm_of_rate_limits_loses_no_answer(serve, make_hub):
    server = serve(toy_server, failures=Failures(rate_limit=0.6, retry_after=0.01))
    hub = make_hub(direct(server), limit=50, attempts=40, base=0.0, cap=0.0, clock=None)
    answers = hub.submit([ask(str(i)) for i in range(200)]).result(60)
    assert all(a.status == Status.OK and a.reply.text for a in answers)
    assert server.by_status[200] == 200
    assert hub.usage().rate_limited == server.by_status[429] > 100
    assert server.peak <= 50


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_is_the_same_with_a_fifth_of_all_calls_failing(serve, make_hub, name):
    def run(failures):
        server = serve(toy_server, failures=failures)
        hub = make_hub(direct(server), attempts=30, base=0.0, cap=0.0)
        planner = TextPlanner(hub, toy.write, toy.read, toy.WORDS)
        return FRONT_ENDS[name](toy.Toy(), planner, toy.reset(EPISODES)), hub.usage()

    calm, _ = run(None)
    stormy, usage = run(Failures(rate_limit=0.1, server_error=0.05, garbage=0.05, retry_after=0.0))
    toy.assert_equal(calm, stormy)
    assert usage.retried > 10
    assert np.asarray(stormy.status)[..., 1:].sum() == 0


@pytest.mark.slow
def test_after_kill_9_no_answer_is_asked_for_twice(serve, tmp_path):
    server = serve(toy_server, latency=0.01)
    script = textwrap.dedent("""
        import sys
        from tests.planning import toy
        from jaxcoop.planning import FRONT_ENDS, Hub, Record, TextPlanner
        from jaxcoop.planning.clients import DirectClient
        hub = Hub(DirectClient("toy", sys.argv[1]), Record(sys.argv[2]), limit=2)
        planner = TextPlanner(hub, toy.write, toy.read, toy.WORDS)
        final = FRONT_ENDS["segments"](toy.Toy(), planner, toy.reset(24))
        print(int(final.total.sum()), hub.usage().replayed, flush=True)
        planner.close()
    """)
    command = [sys.executable, "-c", script, server.url, str(tmp_path / "r")]
    child = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    while server.requests < 60 and child.poll() is None:
        real_time.sleep(0.005)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    real_time.sleep(0.2)  # replies on their way when the process died
    with Record(tmp_path / "r") as record:
        kept = record.count_answers()
    asked = server.requests
    # Two calls were in flight at most, and two answers perhaps still in the socket.
    assert kept >= asked - 4
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    total, replayed = map(int, done.stdout.split())
    assert replayed == kept
    repeated = sum(count - 1 for count in server.by_prompt.values())
    assert repeated == asked - kept
    with Record(tmp_path / "r") as record:
        assert record.count_answers() == len(server.by_prompt)
    planner = TextPlanner(LocalHub(), toy.write, toy.read, toy.WORDS)
    assert total == int(FRONT_ENDS["segments"](toy.Toy(), planner, toy.reset(EPISODES)).total.sum())


class LocalHub:
    """The scripted model without a server."""

    unusable = None

    def submit(self, requests):
        from concurrent.futures import Future

        from jaxcoop.planning import Answer, Reply

        future = Future()
        future.set_result([Answer(Reply(toy.reply_to(r)), Status.OK) for r in requests])
        return future

    def close(self):
        pass


@pytest.mark.slow
def test_importing_the_package_imports_no_provider_and_opens_no_socket():
    script = textwrap.dedent("""
        import sys
        opened = []
        sys.addaudithook(lambda name, _: name.startswith("socket.") and opened.append(name))
        import jaxcoop, jaxcoop.planning, jaxcoop.planning.clients, jaxcoop.benchmarks.loopback
        from jaxcoop.planning.clients import DirectClient, LitellmClient
        LitellmClient("openai/x"), DirectClient("x", "http://127.0.0.1:9/v1")
        heavy = {"litellm", "openai", "aiohttp", "httpx", "matplotlib"} & sys.modules.keys()
        print(sorted(heavy), [n for n in opened if n[7:] in ("connect", "getaddrinfo", "bind")])
    """)
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "[] []", result.stderr


# The server itself --------------------------------------------------------------------------------


def test_policies_answer_equal_prompts_alike_with_labelled_lines():
    body = {"messages": [{"role": "user", "content": "left fork: AVAILABLE\nright fork: TAKEN"}]}
    assert random_policy(body) == random_policy(dict(body))
    assert [line.split(":")[0] for line in random_policy(body).splitlines()] == [
        "THINKING",
        "MESSAGE",
        "ACTION",
    ]
    assert greedy_left_policy(body).endswith("ACTION: GRAB_LEFT")
    assert len({random_policy({"messages": [i]}).split()[-1] for i in range(40)}) == 4


def test_failures_follow_from_seed_prompt_and_attempt_alone():
    failures = Failures(rate_limit=0.25, null=0.25, seed=4)
    kinds = [failures.kind(prompt_hash({"messages": i}), 0) for i in range(2000)]
    assert kinds == [failures.kind(prompt_hash({"messages": i}), 0) for i in range(2000)]
    assert 400 < kinds.count("rate_limit") < 600 and 400 < kinds.count("null") < 600
    with pytest.raises(ValueError, match="failure rates"):
        Failures(null=0.9, empty=0.9)


def test_the_server_runs_as_a_program():
    command = [sys.executable, "-m", "jaxcoop.benchmarks.loopback", "--port", "0", "--policy", "greedy-left"]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().startswith("listening on http://127.0.0.1:")
    finally:
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (0, "0 requests served\n")
