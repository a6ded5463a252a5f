"""Recorded episodes of the reference, said again by a model function, leave logs that end alike."""

import gzip
import json

import pytest

from jaxcoop.benchmarks.papers.dpbench_runner import run
from jaxcoop.envs.dining.records import read_log

REPLIES = ("ACTION: GRAB_LEFT", "ACTION: GRAB_RIGHT", "ACTION: RELEASE", "ACTION: WAIT")


def resolved_case(path, mode):
    """The first episode of three philosophers in which a circular wait was resolved."""
    for line in gzip.decompress(path.read_bytes()).splitlines():
        case = json.loads(line)
        if (case["n"], case["mode"]) == (3, mode) and case["deadlock_events"]:
            return case
    pytest.skip(f"no {mode} episode of three philosophers with a resolved circular wait in {path}")


@pytest.mark.parametrize("mode", ["simultaneous", "sequential"])
def test_dining_logs_hold_the_episodes_of_the_reference(golden, tmp_path, mode):
    case = resolved_case(golden("dining", "episodes*.jsonl.gz"), mode)
    calls = [0, 0, 0]

    def recorded(system, user):
        agent = int(system[1:])
        calls[agent] += 1
        return REPLIES[int(case["actions"][(calls[agent] - 1) * 3 + agent])]

    log = tmp_path / "log.jsonl"
    limit = case["max_timesteps"]
    game = {"philosophers": 3, "max_timesteps": limit, "mode": mode, "deadlock_terminal": False, "threads": 1}
    metrics = run(recorded, "{philosopher_name}", "{state}", episodes=1, log_file=log, **game)
    header, *steps, end = read_log(log)
    assert header["config"]["mode"] == mode
    assert end["meals_per_philosopher"] == case["meals"] and end["total_meals"] == case["total_meals"]
    assert end["total_timesteps"] == case["total_timesteps"] == metrics["avg_timesteps"]
    assert (end["throughput"], end["fairness"]) == (case["throughput"], case["fairness"])
    assert end["deadlock_events"] == case["deadlock_events"] == metrics["total_deadlock_events"]
    assert len(steps) * 3 == case["decision_records"]
    assert [p["meals_eaten"] for p in steps[-1]["table_state"]["philosophers"]] == case["meals"]
    said = "".join(str(REPLIES.index("ACTION: " + d["action"].upper())) for s in steps for d in s["decisions"])
    assert said == (case["actions"] if mode == "simultaneous" else case["decision_actions"])
    # 17: a simultaneous log shows the table after a circular wait was resolved, a sequential one the wait itself
    waits = [
        s for s in steps if all(p["has_left_fork"] != p["has_right_fork"] for p in s["table_state"]["philosophers"])
    ]
    assert bool(waits) == (mode == "sequential")
