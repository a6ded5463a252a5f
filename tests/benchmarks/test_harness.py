"""The measurements measure what they say."""

import jax
import pytest

from jaxcoop.agents.random import RandomPolicy
from jaxcoop.benchmarks import harness
from jaxcoop.benchmarks.throughput import scaling, throughput
from jaxcoop.core import make
from jaxcoop.core.batch import totals


class Scripted:
    """Runs whose times are known."""

    def __init__(self, name, log, runs):
        self.name, self.log, self.left = name, log, list(runs)

    def run(self):
        self.log.append(self.name)
        return self.left.pop(0)


def test_programs_run_in_turns():
    log = []
    run = harness.Run(steps=10, wall_s=1.0, cpu_s=2.0)
    programs = {name: Scripted(name, log, [run] * 3) for name in "ab"}
    runs = harness.in_turns(programs, 3)
    assert log == ["a", "b", "a", "b", "a", "b"]
    assert {name: len(r) for name, r in runs.items()} == {"a": 3, "b": 3}


def test_rates_are_medians_of_wall_and_of_cpu_time():
    rate = harness.rate_of([harness.Run(100, wall, cpu) for wall, cpu in ((1.0, 2.0), (2.0, 4.0), (100.0, 1.0))])
    assert (rate.steps_per_s, rate.slowest, rate.fastest) == (50.0, 1.0, 100.0)
    assert rate.steps_per_cpu_s == 50.0
    assert rate.runs == 3


def test_a_ratio_compares_runs_of_the_same_turn():
    ours = [harness.Run(100, 1, cpu) for cpu in (1.0, 2.0, 10.0)]
    others = [harness.Run(10, 1, cpu) for cpu in (1.0, 2.0, 5.0)]
    assert harness.median_ratio(ours, others) == 10.0


def test_a_run_counts_the_steps_that_the_slots_have_made():
    program = harness.Rollouts(make("null", agents=3, max_steps=7), RandomPolicy(), 8, run_s=0.002, chunk=5)
    before = totals(program.batch)["steps"]
    run = program.run()
    assert totals(program.batch)["steps"] - before == run.steps == 8 * 5 * program.chunks
    assert run.wall_s > 0
    assert program.describe()["mean_length"] == 7


def test_chunks_end_where_episodes_may_end():
    env = make("dining", mode="sequential", philosophers=5, max_timesteps=10)
    assert harness.Rollouts(env, RandomPolicy(), 2, run_s=0.001, chunk=12).chunk == 15


def test_a_batch_below_one_is_refused():
    with pytest.raises(ValueError, match="batch 0: must be 1 or more"):
        harness.Rollouts(make("null"), RandomPolicy(), 0)


@pytest.mark.parametrize("name", ["dining", "null"])
def test_a_team_of_another_size_keeps_the_other_options(name):
    env = make(name)
    larger = harness.with_team(env, 12)
    assert larger.num_agents == 12
    assert harness.with_team(larger, env.num_agents) == env


def test_a_team_that_is_not_allowed_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"dining: no team of 1 agents \(philosophers 1: must be from 2"):
        harness.with_team(make("dining"), 1)


def test_throughput_gives_a_plain_row_for_each_batch():
    import json

    result = throughput("dining", batches=(1, 16), repeats=2, run_s=0.002, options={"max_timesteps": 10})
    assert [row["batch"] for row in result["rows"]] == [1, 16]
    for row in result["rows"]:
        assert row["agent_steps_per_s"] == pytest.approx(5 * row["steps_per_s"])
        assert row["cpu_us_per_step"] == pytest.approx(5e-3 * row["cpu_ns_per_agent_step"])
        assert row["share_of_null"] > 0
        assert row["state_bytes"] > 0
        assert 1 <= row["mean_length"] <= 10
    assert json.loads(json.dumps(result)) == result
    assert result["machine"]["versions"]["jax"] == jax.__version__


def test_team_sizes_hold_the_agents_in_play_constant():
    result = scaling("null", teams=(2, 8), agents_in_play=16, repeats=1, run_s=0.001)
    assert [(row["agents"], row["batch"]) for row in result["rows"]] == [(2, 8), (8, 2)]
    assert result["rows"][0]["relative_cost"] == 1.0


def test_an_onlooker_makes_every_observation():
    env = make("dining", philosophers=3, max_timesteps=20)
    looking = harness.Rollouts(env, harness.Onlooker(), 4, run_s=0.001, chunk=5)
    assert (looking.batch.memory != 0).all()


def test_starts_that_are_not_made_anew_are_counted_as_repeated():
    env = make("cube", side=8, agents=2, blocks="1:2", max_steps=5)
    program = harness.Rollouts(env, RandomPolicy(), 4, run_s=0.001, chunk=20, pool=1, fresh=False)
    assert program.describe()["reused_share"] > 0
    assert harness.start_cost(env, RandomPolicy()) > 0
    assert harness.start_cost(make("null"), RandomPolicy()) is None
