"""The front ends: one host call for all, none for nobody, equal states by every schedule."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import Future
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.planning import (
    FRONT_ENDS,
    FunctionPlanner,
    PlannerUnusable,
    ProcessError,
    Status,
    View,
    batches,
)
from jaxcoop.planning.batches import advance_states, apply_answers

from . import toy

EPISODES = 24
PROCESS = toy.Toy()


def spying(seen, fn=toy.decide):
    def answer(rows):
        seen.append({name: x.copy() for name, x in rows.items()})
        return fn(rows)

    return FunctionPlanner(answer, toy.WORDS)


@pytest.fixture(scope="module")
def expected():
    """Final states by a plain loop over episodes, one step at a time, on the host."""
    states = toy.reset(EPISODES)
    need, done = jax.jit(jax.vmap(PROCESS.need)), jax.jit(jax.vmap(PROCESS.done))
    view, apply, advance = (jax.jit(jax.vmap(f)) for f in (PROCESS.view, PROCESS.apply, PROCESS.advance))
    while not np.asarray(done(states)).all():
        mask = np.asarray(need(states))
        v = view(states)
        fields = {k: np.repeat(np.asarray(x)[:, None], toy.AGENTS, 1) for k, x in v.episode.items()}
        fields |= {k: np.asarray(x) for k, x in v.agent.items()}
        answers = np.full((EPISODES, toy.AGENTS, toy.WORDS), -1, np.int32)
        if mask.any():
            answers[mask] = toy.decide({k: x[mask] for k, x in fields.items()})
        states = advance(apply(states, answers, mask))
    return states


def test_the_toy_makes_agents_and_episodes_drift_apart(expected):
    assert len(np.unique(np.asarray(expected.decisions))) > 1
    assert (np.asarray(expected.status).sum((1, 2)) == np.asarray(expected.decisions).sum(1)).all()


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("quota", [1, EPISODES // 4, EPISODES + 1, None])
def test_segments_give_the_states_of_the_plain_loop(expected, groups, quota):
    got = FRONT_ENDS["segments"](PROCESS, spying([]), toy.reset(EPISODES), groups=groups, quota=quota)
    toy.assert_equal(got, expected)


@pytest.mark.parametrize("quota", [1, 7, EPISODES, None])
def test_lanes_give_the_states_of_the_plain_loop(expected, quota):
    got = FRONT_ENDS["lanes"](PROCESS, spying([]), toy.reset(EPISODES), quota=quota)
    toy.assert_equal(got, expected)


def test_in_graph_gives_the_states_of_the_plain_loop(expected):
    toy.assert_equal(FRONT_ENDS["in_graph"](PROCESS, spying([]), toy.reset(EPISODES)), expected)


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_answers_that_come_late_and_out_of_order_change_nothing(expected, name):
    class Shuffled:
        unusable = None
        count = 0

        def submit(self, rows):
            future = Future()
            self.count += 1
            delay = (self.count * 7919 % 13) * 1e-3
            threading.Timer(delay, lambda: future.set_result(toy.decide(rows))).start()
            return future

        def close(self):
            pass

    toy.assert_equal(FRONT_ENDS[name](PROCESS, Shuffled(), toy.reset(EPISODES), quota=3, timeout=20), expected)


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_every_needy_row_is_asked_once_and_no_other(expected, name):
    seen = []
    FRONT_ENDS[name](PROCESS, spying(seen), toy.reset(EPISODES))
    rows = [(int(r["seed"][i]), int(r["agent"][i]), int(r["decisions"][i])) for r in seen for i in range(len(r["t"]))]
    decisions = np.asarray(expected.decisions)
    due = {(e, a, d) for e in range(EPISODES) for a in range(toy.AGENTS) for d in range(decisions[e, a])}
    assert len(rows) == len(set(rows))
    assert set(rows) == due


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_the_callers_states_stay_valid(name):
    states = toy.reset(EPISODES)
    FRONT_ENDS[name](PROCESS, spying([]), states, groups=1)
    toy.assert_equal(states, toy.reset(EPISODES))


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_new_planner_and_an_equal_process_compile_nothing(name):
    FRONT_ENDS[name](PROCESS, spying([]), toy.reset(EPISODES))
    before = toy.traces["advance"]
    for first in (100, 200):
        FRONT_ENDS[name](toy.Toy(), spying([]), toy.reset(EPISODES, first))
    assert toy.traces["advance"] == before


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_progress_ends_with_every_row_answered(expected, name):
    reports = []
    FRONT_ENDS[name](PROCESS, spying([]), toy.reset(EPISODES), on_round=reports.append)
    assert reports[-1].answered == np.asarray(expected.decisions).sum()
    assert reports[-1].done == reports[-1].episodes == EPISODES


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_rollout_that_waits_says_so_and_what_for(expected, name, monkeypatch):
    monkeypatch.setattr(batches, "NOTE_EVERY", 0.3)

    class Slow:
        unusable = None
        count = 0

        def submit(self, rows):
            future = Future()
            self.count += 1
            words = toy.decide(rows)
            threading.Timer(1.2 * (self.count == 1), lambda: future.set_result(words)).start()
            return future

        def waiting_note(self):
            return "rate limited"

        def close(self):
            pass

    reports = []
    got = FRONT_ENDS[name](PROCESS, Slow(), toy.reset(EPISODES), groups=1, quota=EPISODES, on_round=reports.append)
    toy.assert_equal(got, expected)
    waits = [report for report in reports if report.note]
    assert len(waits) >= 2 and {report.note for report in waits} == {"rate limited"}
    assert waits[0].done == 0 and waits[0].answered < np.asarray(expected.decisions).sum()
    assert reports[-1].note is None


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_planner_function_that_fails_is_reported_as_itself(name):
    def broken(rows):
        raise ZeroDivisionError("in the planner")

    with pytest.raises(ZeroDivisionError, match="in the planner"):
        FRONT_ENDS[name](PROCESS, FunctionPlanner(broken, toy.WORDS), toy.reset(EPISODES))


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
@pytest.mark.parametrize(
    "wrong",
    [
        lambda r: np.zeros((1, 9), np.int32),
        lambda r: np.zeros((len(r["t"]), 3)),
        lambda r: np.full((len(r["t"]), 3), 9),
    ],
    ids=["shape", "dtype", "status"],
)
def test_wrong_words_of_a_planner_are_named(name, wrong):
    with pytest.raises(ValueError, match="the planner function gave"):
        FRONT_ENDS[name](PROCESS, FunctionPlanner(wrong, toy.WORDS), toy.reset(EPISODES))


@pytest.mark.parametrize(("name", "good"), [("segments", 5), ("lanes", 60)])  # lanes submit each episode by itself
def test_an_unusable_planner_hands_back_states_that_continue_to_the_same_end(expected, name, good):
    class Failing:
        def __init__(self, good):
            self.good, self.unusable = good, None

        def submit(self, rows):
            self.good -= 1
            future = Future()
            words = toy.decide(rows)
            if self.good < 0:
                self.unusable = "model x: auth: wrong key"
                words[:, -1] = Status.FALLBACK
            future.set_result(words)
            return future

        def close(self):
            pass

    with pytest.raises(PlannerUnusable, match="wrong key") as caught:
        FRONT_ENDS[name](PROCESS, Failing(good), toy.reset(EPISODES))
    states = caught.value.states
    assert 0 < np.asarray(states.decisions).sum() < np.asarray(expected.decisions).sum()
    assert np.asarray(states.status)[..., Status.FALLBACK].sum() == 0
    toy.assert_equal(FRONT_ENDS["segments"](PROCESS, spying([]), states), expected)


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_silent_planner_ends_in_an_error_after_the_timeout(name):
    class Silent:
        unusable = None

        def submit(self, rows):
            return Future()

        def close(self):
            pass

    with pytest.raises((PlannerUnusable, TimeoutError), match=r"no answer from the planner within 0\.1 s"):
        FRONT_ENDS[name](PROCESS, Silent(), toy.reset(EPISODES), timeout=0.1)


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_a_process_that_outlives_its_bound_is_refused(name):
    with pytest.raises(RuntimeError, match="max_rounds=2"):
        FRONT_ENDS[name](toy.Toy(max_rounds=2), spying([]), toy.reset(EPISODES))


@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_ctrl_c_while_waiting_is_an_ordinary_keyboard_interrupt(name):
    class Silent:
        unusable = None
        asked = False

        def submit(self, rows):
            if not self.asked:
                self.asked = True
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            return Future()

        def close(self):
            pass

    with pytest.raises(KeyboardInterrupt):
        FRONT_ENDS[name](PROCESS, Silent(), toy.reset(EPISODES))


def test_waiting_and_finished_episodes_keep_every_bit():
    states = toy.reset(EPISODES)
    half = jnp.arange(EPISODES) % 3
    states = states.replace(
        t=jnp.where(half == 0, PROCESS.horizon, 0),  # finished, though `left` is 0
        left=jnp.where((half == 1)[:, None], jnp.array([0, 3]), jnp.where((half == 2)[:, None], 2, 0)),
    )
    before = toy.bits(states)
    after, need, done = advance_states(PROCESS, states, np.int32(EPISODES + 1), np.int32(9))
    held, ran = np.asarray(half) != 2, np.asarray(half) == 2
    for old, new in zip(before, toy.bits(after), strict=True):
        np.testing.assert_array_equal(old[held], new[held])
    assert (np.asarray(after.t)[ran] == 2).all()
    np.testing.assert_array_equal(np.asarray(done), np.asarray(half) == 0)
    np.testing.assert_array_equal(np.asarray(need)[held & ~np.asarray(done)], [[True, False]] * 8)


def test_apply_changes_no_episode_without_an_answer():
    states = toy.reset(EPISODES)
    before = toy.bits(states)
    answers = np.full((EPISODES, toy.AGENTS, toy.WORDS), 3, np.int32)
    answered = np.zeros((EPISODES, toy.AGENTS), bool)
    answered[5, 1] = True
    after = toy.bits(apply_answers(PROCESS, states, answers, answered))
    others = np.arange(EPISODES) != 5
    assert all((old[others] == new[others]).all() for old, new in zip(before, after, strict=True))


# contract -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("need", lambda self, s: s.left, "need"),
        ("view", lambda self, s: View({"x": s.noise}, {}), "quantise"),
        ("view", lambda self, s: View({"x": s.t}, {"x": s.left}), "rename"),
        ("view", lambda self, s: View({}, {"x": s.t}), "first axis"),
        ("advance", lambda self, s: s.replace(t=s.t.astype(jnp.float32)), "turns t from"),
        ("done", lambda self, s: s.left == 0, "one bool"),
    ],
)
def test_a_process_that_breaks_its_contract_is_refused_before_it_runs(method, value, message):
    process = type("Wrong", (toy.Toy,), {method: value})()
    with pytest.raises(ProcessError, match=message):
        FRONT_ENDS["segments"](process, spying([]), toy.reset(4))


@pytest.mark.parametrize("options", [{"groups": 0}, {"quota": 0}, {"timeout": 0.0}])
@pytest.mark.parametrize("name", sorted(FRONT_ENDS))
def test_impossible_schedules_are_refused(name, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is 0"):
        FRONT_ENDS[name](PROCESS, spying([]), toy.reset(4), **options)


@pytest.mark.slow
def test_eight_devices_give_the_states_of_one_and_in_graph_is_refused_there():
    script = """
        import os
        import jax, numpy as np
        from jax.sharding import NamedSharding, PartitionSpec as P
        from tests.planning import toy
        from jaxcoop.planning import FRONT_ENDS, FunctionPlanner
        planner = FunctionPlanner(toy.decide, toy.WORDS)
        mesh = jax.make_mesh((8,), ("ep",))
        spread = jax.device_put(toy.reset(24), NamedSharding(mesh, P("ep")))
        want = FRONT_ENDS["segments"](toy.Toy(), planner, toy.reset(24), groups=1)
        got = FRONT_ENDS["segments"](toy.Toy(), planner, spread)
        toy.assert_equal(got, want)
        assert got.t.sharding == spread.t.sharding
        toy.assert_equal(FRONT_ENDS["lanes"](toy.Toy(), planner, spread), want)
        try:
            FRONT_ENDS["in_graph"](toy.Toy(), planner, spread)
        except ValueError as err:
            assert "terminate_timeout" in str(err)
        else:
            raise AssertionError("in_graph was not refused")
        os.environ["XLA_FLAGS"] += " --xla_cpu_collective_call_warn_stuck_timeout_seconds=600"
        os.environ["XLA_FLAGS"] += " --xla_cpu_collective_call_terminate_timeout_seconds=3600"
        toy.assert_equal(FRONT_ENDS["in_graph"](toy.Toy(), planner, spread), want)
        print("equal")
    """
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=root,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "PATH": "", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.stdout.strip().endswith("equal"), result.stderr
