"""Cost of host calls: every front end and client is measured on the same work."""

import numpy as np
import pytest

from jaxcoop.benchmarks import callback
from jaxcoop.planning import FRONT_ENDS


def test_every_front_end_is_measured_beside_the_device_and_asks_for_the_same_decisions():
    result = callback.front_ends(episodes=(4,), agents=2, horizon=8, repeats=1)
    assert [row["front_end"] for row in result["rows"]] == ["device", *FRONT_ENDS]
    (decisions,) = {row["decisions"] for row in result["rows"]}
    assert 4 * 2 * 2 <= decisions <= 4 * 2 * 8
    assert result["rows"][0]["times_device"] == 1.0


def test_a_front_end_that_ends_in_other_states_is_refused(monkeypatch):
    def lazy(process, planner, states):
        planner.submit({"seed": np.zeros(1, int), "t": np.zeros(1, int), "agent": np.zeros(1, int)})
        return states

    monkeypatch.setattr(callback, "FRONT_ENDS", {"lazy": lazy})
    with pytest.raises(RuntimeError, match="front end 'lazy' ends in other states"):
        callback.front_ends(episodes=(2,), agents=2, horizon=4, repeats=1)


def test_every_call_of_a_client_is_answered():
    result = callback.clients(names=("function", "direct"), calls=10, limit=4)
    assert [(row["client"], row["calls"]) for row in result["rows"]] == [("function", 10), ("direct", 10)]
    assert all(row["calls_per_s"] > 0 for row in result["rows"])


def test_a_client_whose_calls_fail_is_refused(monkeypatch):
    def fails(name, url):
        return callback.FunctionClient(lambda request: 1 / 0)

    monkeypatch.setattr(callback, "client_of", fails)
    monkeypatch.setattr(callback, "Hub", lambda client, limit: real_hub(client, limit=limit, attempts=1, base=0.01))
    with pytest.raises(RuntimeError, match=r"client 'function': .* calls failed"):
        callback.clients(names=("function",), calls=2, limit=1)


real_hub = callback.Hub


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf")])
def test_a_latency_out_of_range_is_refused_before_a_server_starts(monkeypatch, latency):
    monkeypatch.setattr(callback.subprocess, "Popen", None)
    with pytest.raises(ValueError, match=r"latency_ms .*: must be from 0 to 60,000"):
        callback.clients(names=("function",), calls=1, latency_ms=latency)
