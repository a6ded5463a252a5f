"""Teams that think with a language model: a scripted server on loopback, reached through litellm itself."""

import contextlib
import os
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcoop
from jaxcoop.agents.llm.coop2.team import PARSER, MindTeam
from jaxcoop.agents.llm.coop2.texts import Kind
from jaxcoop.benchmarks.cognitive_replies import cognitive_policy
from jaxcoop.benchmarks.loopback import Failures, LoopbackServer
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.records import MESSAGES, Capacity
from jaxcoop.cognition.repair.config import PRESETS
from jaxcoop.cognition.structures import structure_of
from jaxcoop.cognition.types import Call
from jaxcoop.cognition.types import Mail as Type
from jaxcoop.envs.cube.minds import CubeMinds
from jaxcoop.planning import FRONT_ENDS, Status
from jaxcoop.planning.record import Record
from jaxcoop.runs.model import LanguageModel

EPISODES = 4
SETUP = Setup(
    CubeMinds(jaxcoop.make("cube", side=10, agents=3, blocks="2:1,3:1", max_steps=24)),
    structure_of("cube", "centralized"),
    repair=PRESETS["cube"],
    capacity=Capacity(messages=64, calls=400),
)
"""Times of calls are measured."""


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


@contextlib.contextmanager
def team_of(url, path, **options):
    """A team whose answers are recorded at `path`, and its hub."""
    model = LanguageModel("openai/scripted", api_base=url, **options)
    with Record(path) as record, model.make_hub(record, PARSER) as hub:
        team = MindTeam(SETUP, hub, 0)
        yield team, hub
        team.planner.close()


def play(team, front_end="segments"):
    """Final states on the host, and what was thought."""
    states = team.begin(jax.random.key(0), jnp.arange(EPISODES, dtype=jnp.int32))
    final = FRONT_ENDS[front_end](team.process, team.planner, states)
    return jax.device_get(final), team.take_events()


def same(got, expected):
    """Equal in every leaf."""
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b, jax.tree_util.keystr(path))


def same_columns(got, expected):
    assert got.keys() == expected.keys()
    for name in got:
        np.testing.assert_array_equal(got[name], expected[name], name)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A record, the server's address and counters, final states, events, texts; the server is off afterwards."""
    os.environ["OPENAI_API_KEY"] = "not-a-real-key"
    path = tmp_path_factory.mktemp("played") / "llm.sqlite"
    with LoopbackServer(cognitive_policy, latency=0.02) as server, team_of(server.url, path) as (team, hub):
        states, events = play(team)
        texts = sorted(hub.record.query("SELECT episode, handle, text FROM texts"))
        usage = hub.usage()
    return path, server, states, events, texts, usage


def test_every_call_reaches_the_server_once_and_its_time_counts(played):
    _, server, states, events, _, usage = played
    assert usage.calls == server.requests == len(events["call"]) == states.minds.calls.sum()
    assert usage.fallback == usage.malformed == 0 and states.totals.errors.sum() == 0
    assert (events["latency_ms"] >= 20).all() and (events["status"] == Status.OK).all()
    rows, count = states.records.calls.rows, states.records.calls.count
    took = [(r[4] - r[3]) for e in range(EPISODES) for r in rows[e, : count[e]]]
    assert sorted(took)[len(took) // 2] >= 20
    assert states.now.min() > 20 * 3


def test_all_kinds_of_calls_are_made_and_plans_work(played):
    states, events = played[2], played[3]
    assert set(events["kind"]) == {Call.TEXT, Call.PLAN, Call.DECIDE, Call.STATEMENT}
    assert states.totals.repairs.sum() > 0 and states.totals.score.max() > 0 and not states.stuck.any()
    order = list(zip(events["episode"], events["step"], events["agent"], events["call"]))
    assert order == sorted(set(order))
    assert all(said for said, kind in zip(events["said"], events["kind"]) if kind != Call.DECIDE)


def test_texts_of_messages_are_those_that_their_calls_wrote(played):
    path, server, states, events, _, _ = played
    wrote = {
        (e, a, c): said
        for e, a, c, k, said in zip(*(events[n] for n in ("episode", "agent", "call", "kind", "said")))
        if k in (Call.TEXT, Call.STATEMENT)
    }
    columns = {name: k for k, name in enumerate(MESSAGES)}
    with team_of(server.url, path) as (team, _):
        for episode in range(EPISODES):
            text_of = team.texts.of_episode(episode)
            log = states.mail.log
            for number, row in enumerate(log.rows[episode, : log.count[episode]]):
                if row[columns["type"]] == Type.REPAIR_REQUEST:
                    request = team.texts.request(episode, number)
                    assert request.step == row[columns["env_step"]] and request.failures
                    assert [said for _, said in request.statements] == [
                        team.texts.get(episode, Kind.SAID, agent, number) for agent, _ in request.statements
                    ]
                    continue
                place = (episode, int(row[columns["sender"]]), int(row[columns["call"]]))
                assert text_of(*place[1:]) == wrote[place]


@pytest.mark.parametrize("front_end", ["segments", pytest.param("in_graph", marks=pytest.mark.slow)])
def test_a_replay_without_a_server_gives_equal_states(played, tmp_path, front_end):
    path, server, states, events, texts, _ = played
    with team_of(server.url, tmp_path / "llm.sqlite", replay=path) as (team, hub):
        again, thoughts = play(team, front_end)
        assert not hub.missing and hub.usage().calls == 0
        assert sorted(hub.record.query("SELECT episode, handle, text FROM texts")) == texts
    same(again, states)
    same_columns(thoughts, events)


def test_a_fifth_of_failing_calls_is_counted_and_never_ends_the_run(played, tmp_path):
    failures = Failures(rate_limit=0.07, server_error=0.06, garbage=0.07, retry_after=0.01)
    with (
        LoopbackServer(cognitive_policy, failures=failures) as server,
        team_of(server.url, tmp_path / "llm.sqlite", attempts=8) as (team, hub),
    ):
        states, events = play(team)
        usage = hub.usage()
    kinds: Counter = server.by_kind
    assert min(kinds["rate_limit"], kinds["server_error"], kinds["garbage"]) > 0
    assert usage.calls == server.requests and usage.rate_limited == kinds["rate_limit"]
    assert usage.errors == kinds["server_error"] + kinds["garbage"]
    assert usage.fallback == 0 and (events["status"] == Status.OK).all()
    assert states.over.all() and not states.failed.any()


def test_replies_that_cannot_be_read_take_the_fixed_course(played, tmp_path):
    failures = Failures(empty=0.3)
    with (
        LoopbackServer(cognitive_policy, failures=failures) as server,
        team_of(server.url, tmp_path / "llm.sqlite") as (team, hub),
    ):
        states, events = play(team)
        assert hub.usage().malformed == server.by_kind["empty"] > 0
    failed = events["status"] == Status.MALFORMED
    assert failed.sum() == server.by_kind["empty"]
    ends_run = failed & (events["kind"] == Call.STATEMENT)
    assert states.totals.errors.sum() == failed.sum()
    assert states.failed.sum() == ends_run.sum()
    said = {Call(k): said for k, said in zip(events["kind"][failed], events["said"][failed])}
    assert said[Call.PLAN] == "Fallback: move towards blocks"
    assert "agent_" in said[Call.TEXT]
