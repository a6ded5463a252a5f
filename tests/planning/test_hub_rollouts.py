"""Rollouts whose answers come from a hub: replay, fallbacks, and errors that end them."""

import asyncio
import threading

import numpy as np
import pytest

from jaxcoop.planning import FRONT_ENDS, PlannerUnusable, Record, Status, TextPlanner
from jaxcoop.planning.request import Fatal, Transient

from . import toy
from .asking import ask, echo, status

EPISODES = 24
PROCESS = toy.Toy()


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


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_with_an_unusable_hub_ends_with_one_clear_error(make_hub, name):
    def fn(request):
        raise Fatal("not_found", "no such model")

    planner = TextPlanner(make_hub(fn), toy.write, toy.read, toy.WORDS)
    with pytest.raises(PlannerUnusable, match="scripted: not_found: no such model"):
        FRONT_ENDS[name](PROCESS, planner, toy.reset(EPISODES))


def test_a_rollout_whose_hub_is_closed_meanwhile_does_not_hang(make_hub):
    async def never(request):
        await asyncio.sleep(60)

    hub = make_hub(never)
    planner = TextPlanner(hub, toy.write, toy.read, toy.WORDS)
    threading.Timer(0.1, hub.close).start()
    with pytest.raises(PlannerUnusable, match="closed"):
        FRONT_ENDS["segments"](PROCESS, planner, toy.reset(EPISODES))
