"""Metrics, intervals, reply parsing and runner records equal the recorded reference, case by case."""

import gzip
import json

import numpy as np
import pytest

from jaxcoop.envs.dining import metrics, records, replies
from jaxcoop.envs.dining.prompts import build_prompts
from jaxcoop.envs.dining.text import NO_MESSAGE, PromptRenderer
from jaxcoop.envs.dining.types import ACTION_NAMES
from jaxcoop.runs import statistics


@pytest.fixture(scope="module")
def cases(golden):
    return json.loads(golden("dining", "metrics_cases*.json").read_text())


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value


def codes(decisions):
    return [message for _, message in decisions], [ACTION_NAMES.index(action) for action, _ in decisions]


def test_dining_fairness_throughput_and_starvation_are_exact_to_the_last_bit(cases):
    assert len(cases["fairness"]) >= 60
    for case in cases["fairness"]:
        meals = np.asarray(case["meals"], np.int64)
        assert float(metrics.fairness(meals)) == case["fairness"], case
        assert float(metrics.throughput(meals.sum(), case["timesteps"])) == case["throughput"], case
        assert int(metrics.starvation(meals)) == case["starvation"], case


def test_dining_fairness_of_a_batch_equals_fairness_one_by_one(cases):
    by_size = {}
    for case in cases["fairness"]:
        by_size.setdefault(len(case["meals"]), []).append(case)
    for same in by_size.values():
        batch = metrics.fairness(np.array([case["meals"] for case in same]))
        np.testing.assert_array_equal(batch, [case["fairness"] for case in same])


def test_dining_cell_metrics_equal_the_recorded_ones(cases):
    for case in cases["aggregate"]:
        episodes = case["episodes"]
        decisions = [decision for episode in episodes for decision in episode.get("decisions", [])]
        messages, actions = codes(decisions)
        width = max((len(episode["meals"]) for episode in episodes), default=0)
        assert {len(episode["meals"]) for episode in episodes} <= {width}, "tables of one size per case"
        out = metrics.aggregate(
            {
                "timesteps": [episode["timesteps"] for episode in episodes],
                "deadlock": [episode["deadlock"] for episode in episodes],
                "deadlock_events": [episode.get("deadlock_events", 0) for episode in episodes],
                "meals": np.array([episode["meals"] for episode in episodes]).reshape(len(episodes), width),
            },
            communication=case["communication"],
            messages=messages,
            actions=actions,
        )
        own = {key: out.pop(key) for key in list(out) if "true" in key}
        assert out == {key: close(value) for key, value in case["out"].items()}
        assert not own or own["true_deadlock_count"] == out["deadlock_count"]


def test_dining_wilson_intervals_equal_the_recorded_ones(cases):
    for case in cases["wilson"]:
        low, high = statistics.wilson_interval(case["k"], case["n"], case.get("z", statistics.Z_95))
        assert (low, high) == (close(case["low"]), close(case["high"])), case


def test_dining_t_half_widths_equal_the_recorded_ones(cases):
    for case in cases["t_half"]:
        assert statistics.t_half_width(case["std"], case["n"], case["alpha"]) == close(case["half"]), case


def test_dining_wald_half_widths_equal_the_recorded_ones(cases):
    for case in cases["wald_half"]:
        assert statistics.wald_half_width(case["p"], case["n"]) == close(case["half"]), case


def test_dining_z_half_widths_equal_the_recorded_ones(cases):
    for case in cases["z_half"]:
        assert statistics.z_half_width(case["std"], case["n"]) == close(case["half"]), case


def test_dining_mann_whitney_tests_equal_the_recorded_ones(cases):
    for case in cases["mann_whitney"]:
        result = statistics.mann_whitney(case["a"], case["b"])._asdict()
        assert result == {key: close(case[key]) for key in ("u_statistic", "p_value", "significant")}, case


def test_dining_message_action_consistency_is_exact(cases):
    for case in cases["consistency"]:
        assert metrics.consistency(*codes(case["decisions"])) == case["percent"], case


def test_dining_message_classes_equal_the_recorded_ones(cases):
    for case in cases["message_classes"]:
        assert metrics.message_classes(case["message"]) == case["classes"], case


def test_dining_replies_are_read_as_the_reference_reads_them(cases):
    for case in cases["parsing"]:
        parsed = replies.parse_reply(case["response"], communication=True)
        seen = (ACTION_NAMES[parsed.action], parsed.message, parsed.reasoning)
        assert seen == (case["action"], case["message"], case["reasoning"]), case["response"][:80]


def test_dining_messages_are_cut_as_the_reference_cuts_them(cases):
    for case in cases["sanitize"]:
        assert replies.sanitize(case["text"]) == case["out"], case["text"]


def test_dining_runner_keeps_the_recorded_decision_records(golden):
    checked = 0
    with gzip.open(golden("dining", "episodes*.jsonl.gz"), "rt") as lines:
        for episode in map(json.loads, lines):
            actions = [int(digit) for digit in episode["actions"]]
            kept, _ = records.decision_records(actions, episode["n"], episode["mode"])
            assert kept.size == episode["decision_records"] == episode["call_records"]
            count = records.record_count(episode["total_timesteps"], episode["n"], episode["mode"])
            assert int(count) == episode["call_records"]
            if episode["decision_actions"] is not None:
                assert "".join(map(str, kept)) == episode["decision_actions"]
                checked += 1
    assert checked > 0


def test_dining_observations_are_rendered_as_recorded(golden):
    tables = np.load(golden("dining", "observations*.npz"))
    renderers = {}
    rows = 0
    for prefix in sorted({name.rsplit("_fork", 1)[0] for name in tables.files if name.endswith("_fork")}):
        for k, holders in enumerate(tables[f"{prefix}_fork"]):
            n = holders.size
            renderer = renderers.setdefault(n, PromptRenderer(build_prompts(), n))
            for i in range(n):
                row = {
                    "agent": i,
                    "num_agents": n,
                    "eating": tables[f"{prefix}_o_eating"][k, i],
                    "meals": tables[f"{prefix}_o_meals"][k, i],
                    "left_available": tables[f"{prefix}_o_left_available"][k, i],
                    "right_available": tables[f"{prefix}_o_right_available"][k, i],
                    "holding_left": tables[f"{prefix}_o_holding_left"][k, i],
                    "holding_right": tables[f"{prefix}_o_holding_right"][k, i],
                }
                values = renderer.values(row)
                own = (-1, i)
                hands = [
                    side
                    for side, flag in (("left fork", "hl"), ("right fork", "hr"))
                    if tables[f"{prefix}_{flag}"][k, i]
                ]
                assert values == {
                    "philosopher_name": f"P{i}",
                    "state": "eating" if tables[f"{prefix}_eat"][k, i] else "hungry",
                    "meals_eaten": tables[f"{prefix}_meals"][k, i],
                    "left_fork_status": "AVAILABLE" if holders[i] in own else "TAKEN",
                    "right_fork_status": "AVAILABLE" if holders[(i + 1) % n] in own else "TAKEN",
                    "holding_status": ", ".join(hands) or "nothing",
                    "left_message": NO_MESSAGE,
                    "right_message": NO_MESSAGE,
                    "all_messages": NO_MESSAGE,
                }
                rows += 1
    assert rows > 0
