"""The published cells follow from their episodes: metrics, intervals, tests, the article's numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.envs.dining import cells, metrics, records
from jaxcoop.envs.dining.types import ACTION_NAMES
from jaxcoop.runs import statistics

HORIZON = 30  # timesteps, in every published cell
PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "papers" / "dpbench_published.json"


@pytest.fixture(scope="module")
def published():
    return json.loads(PUBLISHED.read_text())


def recomputed(cell):
    """Row of a published cell from its episodes; calls and tokens, which these do not tell, are copied."""
    out = metrics.aggregate(
        {
            "timesteps": cell["episodes_total_timesteps"],
            "deadlock": cell["episodes_deadlock"],
            "meals": cell["episodes_meals"],
        }
    )
    out |= {key: cell[key] for key in ("total_llm_calls", "total_tokens_in", "total_tokens_out")}
    row = cells.cell_row(
        out,
        model=cell["model"],
        condition=cell["condition_original"],
        config={key: cell[key] for key in ("mode", "communication", "philosophers", "max_timesteps")},
        release=cell["release"],
    )
    return statistics.with_intervals(row, rates=cells.CELL_RATES, means=cells.CELL_MEANS)


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value


NAMES = {"condition_canonical": "condition", "prompt_variant": "prompt"}
FIELDS = (
    "condition_canonical",
    "prompt_variant",
    "mode",
    "communication",
    "philosophers",
    "episodes",
    "memory_window",
    "communication_rounds",
    "deadlock_terminal",
    "deadlock_rate",
    "deadlock_count",
    "deadlock_ci_low",
    "deadlock_ci_high",
    "avg_throughput",
    "std_throughput",
    "throughput_ci_half",
    "avg_fairness",
    "std_fairness",
    "fairness_ci_half",
    "avg_starvation_count",
    "avg_time_to_deadlock",
    "avg_timesteps",
    "total_deadlock_events",
    "total_tokens",
)


@pytest.mark.parametrize("field", FIELDS)
def test_dining_published_cells_follow_from_their_episodes(published, field):
    assert len(published["cells"]) == 36
    for cell in published["cells"]:
        row = recomputed(cell)
        assert row[NAMES.get(field, field)] == close(cell[field]), (
            cell["model"],
            cell["condition_canonical"],
        )


def test_dining_published_call_totals_are_the_record_counts(published):
    for cell in published["cells"]:
        count = records.record_count(cell["episodes_total_timesteps"], cell["philosophers"], cell["mode"]).sum()
        assert count == cell["total_llm_calls"], (cell["model"], cell["condition_canonical"])


def test_dining_published_mean_meals_follow_from_the_episodes(published):
    for cell in published["cells"]:
        means = np.mean(cell["episodes_meals"], axis=0)
        np.testing.assert_array_equal(np.round(means, 6), cell["mean_meals_per_philosopher"])


def test_dining_published_early_ends_are_counted_in_the_cells(published):
    for cell in published["cells"]:
        early = np.asarray(cell["episodes_total_timesteps"]) < HORIZON
        silent = early & ~np.asarray(cell["episodes_deadlock"])
        assert early.sum() == cell["ended_before_horizon"]
        assert silent.sum() == cell["ended_before_horizon_but_not_reported_deadlock"]


def test_dining_statements_of_the_article_round_from_the_cells(published):
    rows = {(row["model"], row["condition"]): row for row in map(recomputed, published["cells"])}
    for statement in published["paper"]["statements"]:
        row = rows[statement["model"], statement["condition"]]
        assert row["episodes"] == statement["cell_n"]
        assert round(100 * row["deadlock_rate"], 1) == statement["deadlock_pct"], statement
        low, high = statement["ci_pct"]
        if low is None:  # only an upper bound is stated, for cells of 20 and of 30 episodes at once
            assert round(100 * row["deadlock_ci_high"], 1) <= high, statement
        else:
            assert (round(100 * row["deadlock_ci_low"], 1), round(100 * row["deadlock_ci_high"], 1)) == (
                low,
                high,
            )
        if "throughput" in statement:
            assert round(row["avg_throughput"], 3) == statement["throughput"], statement


def test_dining_article_states_the_consistency_of_its_three_round_cell(published):
    stated = [statement for statement in published["paper"]["statements"] if "consistency_pct" in statement]
    by_name = {(cell["model"], cell["condition_canonical"]): cell for cell in published["cells"]}
    assert len(stated) == 1
    for statement in stated:
        cell = by_name[statement["model"], statement["condition"]]
        assert round(cell["message_action_consistency"], 1) == statement["consistency_pct"]


def test_dining_z_interval_table_is_reproduced_digit_for_digit(published):
    rows = [recomputed(cell) for cell in published["cells"]]
    table = statistics.z_interval_table(rows, cells.Z_TABLE_COLUMNS, missing=cells.Z_TABLE_MISSING)
    lines = {(line["model"], line["condition"]): line for line in table}
    expected = published["z_interval_table"]["rows"]
    assert len(expected) == 12
    for row in expected:
        assert lines[row["model"], row["condition"]] == row


def test_dining_mann_whitney_results_are_the_published_ones(published):
    rate = {(cell["model"], cell["condition_canonical"]): cell["deadlock_rate"] for cell in published["cells"]}
    models = ("gemini-2.5-flash", "llama-4-maverick")

    def rates(condition):
        return [rate[model, condition] for model in models]

    compared = {
        "simultaneous_vs_sequential_n5": ("sim_n5_nocomm", "seq_n5_nocomm"),
        "communication_vs_no_communication_n5": ("sim_n5_comm", "sim_n5_nocomm"),
        "n5_vs_n10_simultaneous": ("sim_n5_nocomm", "sim_n10_nocomm"),
    }
    stored = published["mann_whitney_over_model_level_deadlock_rates"]
    assert stored.keys() == compared.keys()
    for name, (first, second) in compared.items():
        result = statistics.mann_whitney(rates(first), rates(second))._asdict()
        assert result == {key: close(value) for key, value in stored[name].items()}, name


def test_dining_published_action_shares_are_shares_of_the_decision_records(published):
    totals = {
        cell["model"]: cell["total_llm_calls"]
        for cell in published["cells"]
        if cell["condition_canonical"] == "seq_n5_nocomm"
    }
    by_model = {}
    for line in published["sequential_action_shares"]:
        by_model.setdefault(line["model"], []).append(line)
    assert len(by_model) == 2
    for model, lines in by_model.items():
        actions = np.repeat([ACTION_NAMES.index(line["action"]) for line in lines], [line["count"] for line in lines])
        assert actions.size == totals[model] == lines[0]["total"]
        shares = metrics.action_shares(actions)
        assert {ACTION_NAMES[code]: share for code, share in enumerate(shares)} == {
            line["action"]: close(line["share"]) for line in lines
        }
