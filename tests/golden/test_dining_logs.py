"""Recorded episodes of the reference, said again by a model function, leave logs that end alike."""

import pytest
from recorded import lines_of

from jaxcoop.benchmarks.papers.dpbench_runner import run
from jaxcoop.envs.dining.records import read_log

REPLIES = ("ACTION: GRAB_LEFT", "ACTION: GRAB_RIGHT", "ACTION: RELEASE", "ACTION: WAIT")


def resolved(path):
    """For each mode the first episode of the fewest philosophers in which a circular wait was resolved."""
    found = {}
    for case in lines_of(path):
        best = found.get(case["mode"])
        if case["deadlock_events"] and (best is None or case["n"] < best["n"]):
            found[case["mode"]] = case
    return found.items()


@pytest.mark.recorded("dining", "episodes*.jsonl.gz", resolved)
def test_dining_logs_hold_the_episodes_of_the_reference(case, tmp_path):
    n, mode = case["n"], case["mode"]
    calls = [0] * n

    def recorded(system, user):
        agent = int(system[1:])
        calls[agent] += 1
        return REPLIES[int(case["actions"][(calls[agent] - 1) * n + agent])]

    log = tmp_path / "log.jsonl"
    limit = case["max_timesteps"]
    game = {"philosophers": n, "max_timesteps": limit, "mode": mode, "deadlock_terminal": False, "threads": 1}
    metrics = run(recorded, "{philosopher_name}", "{state}", episodes=1, log_file=log, **game)
    header, *steps, end = read_log(log)
    assert header["config"]["mode"] == mode
    assert end["meals_per_philosopher"] == case["meals"] and end["total_meals"] == case["total_meals"]
    assert end["total_timesteps"] == case["total_timesteps"] == metrics["avg_timesteps"]
    assert (end["throughput"], end["fairness"]) == (case["throughput"], case["fairness"])
    assert end["deadlock_events"] == case["deadlock_events"] == metrics["total_deadlock_events"]
    assert len(steps) * n == case["decision_records"]
    assert [p["meals_eaten"] for p in steps[-1]["table_state"]["philosophers"]] == case["meals"]
    said = "".join(str(REPLIES.index("ACTION: " + d["action"].upper())) for s in steps for d in s["decisions"])
    kept = case["actions"] if mode == "simultaneous" else case["decision_actions"]
    assert kept in (None, said)
    # 17: a simultaneous log shows the table after a circular wait was resolved, a sequential one the wait itself
    waits = [
        s for s in steps if all(p["has_left_fork"] != p["has_right_fork"] for p in s["table_state"]["philosophers"])
    ]
    assert bool(waits) == (mode == "sequential")
