"""Metrics, intervals, reply parsing and runner records equal the recorded reference, case by case."""

import json

import numpy as np
import pytest
from recorded import close, each_group, each_line, lines_of

from jaxcoop.envs.dining import metrics, records, replies
from jaxcoop.envs.dining.prompts import build_prompts
from jaxcoop.envs.dining.text import NO_MESSAGE, PromptRenderer
from jaxcoop.envs.dining.types import ACTION_NAMES
from jaxcoop.runs import statistics

KINDS = (
    "fairness",
    "aggregate",
    "wilson",
    "t_half",
    "wald_half",
    "z_half",
    "mann_whitney",
    "consistency",
    "message_classes",
    "parsing",
    "sanitize",
)


def recorded(kind):
    """Marks a test that runs once for each recorded case of a kind."""

    def read(path):
        return ((f"{kind}-{k}", case) for k, case in enumerate(json.loads(path.read_text()).get(kind, [])))

    return pytest.mark.recorded("dining", "metrics_cases*.json", read)


def codes(decisions):
    return [message for _, message in decisions], [ACTION_NAMES.index(action) for action, _ in decisions]


def kinds(path):
    return ((kind, kind) for kind in json.loads(path.read_text()))


@pytest.mark.recorded("dining", "metrics_cases*.json", kinds)
def test_dining_recorded_kind_of_metrics_is_compared(case):
    assert case in KINDS


def test_dining_default_data_hold_every_kind_of_metrics(default_data):
    cases = json.loads((default_data / "dining" / "metrics_cases.json").read_text())
    assert all(cases[kind] for kind in KINDS)
    assert len(cases["fairness"]) >= 60


@recorded("fairness")
def test_dining_fairness_throughput_and_starvation_are_exact_to_the_last_bit(case):
    meals = np.asarray(case["meals"], np.int64)
    assert float(metrics.fairness(meals)) == case["fairness"]
    assert float(metrics.throughput(meals.sum(), case["timesteps"])) == case["throughput"]
    assert int(metrics.starvation(meals)) == case["starvation"]


def tables_of_one_size(path):
    """The cases of fairness with the same number of philosophers, together."""
    by_size = {}
    for case in json.loads(path.read_text()).get("fairness", []):
        by_size.setdefault(len(case["meals"]), []).append(case)
    return ((f"n{size}", cases) for size, cases in by_size.items())


@pytest.mark.recorded("dining", "metrics_cases*.json", tables_of_one_size)
def test_dining_fairness_of_a_batch_equals_fairness_one_by_one(case):
    batch = metrics.fairness(np.array([one["meals"] for one in case]))
    np.testing.assert_array_equal(batch, [one["fairness"] for one in case])


@recorded("aggregate")
def test_dining_cell_metrics_equal_the_recorded_ones(case):
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


@recorded("wilson")
def test_dining_wilson_intervals_equal_the_recorded_ones(case):
    low, high = statistics.wilson_interval(case["k"], case["n"], case.get("z", statistics.Z_95))
    assert (low, high) == (close(case["low"]), close(case["high"]))


@recorded("t_half")
def test_dining_t_half_widths_equal_the_recorded_ones(case):
    assert statistics.t_half_width(case["std"], case["n"], case["alpha"]) == close(case["half"])


@recorded("wald_half")
def test_dining_wald_half_widths_equal_the_recorded_ones(case):
    assert statistics.wald_half_width(case["p"], case["n"]) == close(case["half"])


@recorded("z_half")
def test_dining_z_half_widths_equal_the_recorded_ones(case):
    assert statistics.z_half_width(case["std"], case["n"]) == close(case["half"])


@recorded("mann_whitney")
def test_dining_mann_whitney_tests_equal_the_recorded_ones(case):
    result = statistics.mann_whitney(case["a"], case["b"])._asdict()
    assert result == {key: close(case[key]) for key in ("u_statistic", "p_value", "significant")}


@recorded("consistency")
def test_dining_message_action_consistency_is_exact(case):
    assert metrics.consistency(*codes(case["decisions"])) == case["percent"]


@recorded("message_classes")
def test_dining_message_classes_equal_the_recorded_ones(case):
    assert metrics.message_classes(case["message"]) == case["classes"]


@recorded("parsing")
def test_dining_replies_are_read_as_the_reference_reads_them(case):
    parsed = replies.parse_reply(case["response"], communication=True)
    assert (ACTION_NAMES[parsed.action], parsed.message, parsed.reasoning) == (
        case["action"],
        case["message"],
        case["reasoning"],
    )


@recorded("sanitize")
def test_dining_messages_are_cut_as_the_reference_cuts_them(case):
    assert replies.sanitize(case["text"]) == case["out"]


@pytest.mark.recorded("dining", "episodes*.jsonl.gz", each_line)
def test_dining_runner_keeps_the_recorded_decision_records(case):
    kept, _ = records.decision_records([int(digit) for digit in case["actions"]], case["n"], case["mode"])
    assert kept.size == case["decision_records"] == case["call_records"]
    assert int(records.record_count(case["total_timesteps"], case["n"], case["mode"])) == case["call_records"]
    if case["decision_actions"] is not None:
        assert "".join(map(str, kept)) == case["decision_actions"]


def test_dining_default_data_hold_decision_records(default_data):
    assert any(case["decision_actions"] is not None for case in lines_of(default_data / "dining/episodes.jsonl.gz"))


def observed_tables(path):
    """The arrays of each group of tables, without the group's name."""
    data = np.load(path)
    for prefix in each_group(data):
        yield prefix, {key.removeprefix(f"{prefix}_"): data[key] for key in data.files if key.startswith(f"{prefix}_")}


@pytest.mark.recorded("dining", "observations*.npz", observed_tables)
def test_dining_observations_are_rendered_as_recorded(case):
    n = case["fork"].shape[1]
    renderer = PromptRenderer(build_prompts(), n)
    for k, holders in enumerate(case["fork"]):
        for i in range(n):
            row = {"agent": i, "num_agents": n}
            row |= {name.removeprefix("o_"): array[k, i] for name, array in case.items() if name.startswith("o_")}
            own = (-1, i)
            hands = [side for side, flag in (("left fork", "hl"), ("right fork", "hr")) if case[flag][k, i]]
            assert renderer.values(row) == {
                "philosopher_name": f"P{i}",
                "state": "eating" if case["eat"][k, i] else "hungry",
                "meals_eaten": case["meals"][k, i],
                "left_fork_status": "AVAILABLE" if holders[i] in own else "TAKEN",
                "right_fork_status": "AVAILABLE" if holders[(i + 1) % n] in own else "TAKEN",
                "holding_status": ", ".join(hands) or "nothing",
                "left_message": NO_MESSAGE,
                "right_message": NO_MESSAGE,
                "all_messages": NO_MESSAGE,
            }
