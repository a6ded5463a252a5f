"""DPBench's own interface: metrics, log lines and records of a model function."""

import pytest

from jaxcoop.benchmarks.papers.dpbench_runner import run
from jaxcoop.envs.dining.cells import rows_from_logs
from jaxcoop.envs.dining.records import read_log

SYSTEM = "{philosopher_name}"
DECISION = "{holding_status} {left_fork_status} {right_fork_status} {state} {left_message} {right_message}"


def parity(system, user):
    """The resource-ordering protocol, played by text."""
    first, second = ("right", "left") if int(system[1:]) % 2 == 0 else ("left", "right")
    held, hungry = user[: user.index(" A") if " A" in user else user.index(" T")], "hungry" in user
    words = user.replace(held, "", 1).split()
    free = {"left": words[0] == "AVAILABLE", "right": words[1] == "AVAILABLE"}
    for side in (first, second):
        if side not in held:
            act = f"GRAB_{side.upper()}" if hungry and free[side] else "WAIT"
            return f"THINKING: {side} first\nMESSAGE: I grab {side}\nACTION: {act}", 7, 3
    return "ACTION: WAIT", 7, 3


@pytest.mark.slow
def test_a_model_function_that_orders_forks_gives_the_published_cell(tmp_path):
    metrics = run(parity, SYSTEM, DECISION, episodes=3, max_timesteps=30, log_file=tmp_path / "log.jsonl")
    assert metrics["num_episodes"] == 3 and metrics["deadlock_count"] == 0
    assert metrics["avg_throughput"] == pytest.approx(0.7333333333333333)
    assert metrics["avg_fairness"] == pytest.approx(0.40909090909090917)
    assert metrics["total_llm_calls"] == 3 * 5 * 30 and metrics["total_tokens_in"] == 7 * 3 * 5 * 30
    ends = [line for line in read_log(tmp_path / "log.jsonl") if line["type"] == "episode_end"]
    assert [end["meals_per_philosopher"] for end in ends] == [[6, 0, 10, 0, 6]] * 3
    row = rows_from_logs([tmp_path / "log.jsonl"])[0]
    assert row["condition"] == "sim_n5_nocomm" and row["episodes"] == 3
    assert row["avg_throughput"] == metrics["avg_throughput"]


def test_a_record_lets_the_same_call_go_on(tmp_path):
    calls = []

    def counted(system, user):
        calls.append(system)
        return "ACTION: GRAB_LEFT"

    for _ in range(2):
        metrics = run(counted, SYSTEM, DECISION, episodes=4, record=tmp_path / "record")
        assert metrics["deadlock_rate"] == 1.0 and metrics["avg_time_to_deadlock"] == 1.0
    assert len(calls) == 4 * 5


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"system_prompt": " "}, "system_prompt is blank"),
        ({"decision_prompt": "{nobody}"}, "nobody"),
        ({"model_fn": None}, "must be callable"),
        ({"episodes": 0}, "episodes 0"),
        ({"communication_rounds": 0}, "communication_rounds 0"),
        ({"memory_window": -1}, "memory_window -1"),
        ({"philosophers": 1}, "philosophers 1: must be from 2"),
        ({"backoff_probability": 1.5}, "backoff_probability 1.5"),
        ({"mode": "parallel"}, "parallel"),
    ],
)
def test_wrong_arguments_are_named(wrong, says):
    arguments = {"model_fn": parity, "system_prompt": SYSTEM, "decision_prompt": DECISION} | wrong
    with pytest.raises(ValueError, match=says):
        run(**arguments)
