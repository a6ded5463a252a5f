"""Tables: what a cell shows, how it fits, and what the exports keep."""

import csv
import io
import json

import pytest

from jaxcoop.report.cells import standard_row
from jaxcoop.report.tables import (
    cell_table,
    show,
    shown_table,
    table,
    to_csv,
    to_json,
    to_markdown,
    with_half,
    with_interval,
)

ROW = {
    "model": "random",
    "condition": "seq_n5_nocomm",
    "mode": "sequential",
    "philosophers": 5,
    "episodes": 30,
    "deadlock_count": 0,
    "true_deadlock_count": 4,
    "throughput": 0.30333,
    "throughput_half": 0.0295,
    "fairness": 0.5679,
    "fairness_half": 0.0675,
    "starvation": 0.8333,
    "timesteps": 27.9,
}
LLM = {
    **ROW,
    "model": "llm",
    "calls": 4185,
    "retried": 0,
    "fallback": 2,
    "malformed": 7,
    "tokens_in": 90,
    "tokens_out": 10,
    "cost": 1.5,
}


def test_values_are_shown_short_and_harmless():
    assert [show(v) for v in (None, float("nan"), True, 12345, 0.123456, 123456.7)] == [
        "-", "-", "yes", "12,345", "0.1235", "123,457",
    ]  # fmt: skip
    assert show("a\x1b[31m\nb") == "a [31m b"


def test_an_interval_is_shown_in_percent_with_digits_that_fit_it():
    assert with_interval(4 / 30, 0.05309569424218104, 0.2968168394441695) == "13.3 [5.3, 29.7]"
    assert with_interval(0.156966, 0.15626, 0.15767) == "15.697 [15.626, 15.767]"
    assert with_interval(0.5, None, None) == "50.0" and with_interval(None, 0, 1) == "-"


def test_a_half_width_is_shown_with_two_significant_digits():
    assert with_half(0.30333, 0.0296) == "0.303 ± 0.030"
    assert with_half(0.2926123, 0.00024) == "0.29261 ± 0.00024"
    assert with_half(11 / 15, 1e-17) == "0.733 ± 0.000"
    assert with_half(0.5, None) == "0.500" and with_half(None, 0.1) == "-"


def test_the_cell_table_shows_true_and_reported_deadlocks_of_sequential_cells():
    made = cell_table([ROW])
    cells = dict(zip(made.columns, made.rows[0]))
    assert cells["deadlock %"] == "13.3 [5.3, 29.7]"
    assert cells["reported %"] == "0.0 [0.0, 11.4]"


def test_simultaneous_cells_have_no_reported_column():
    assert "reported %" not in cell_table([{**ROW, "mode": "simultaneous"}]).columns


def test_resolved_deadlocks_are_shown_per_episode_when_there_are_any():
    assert "resolved" not in cell_table([ROW, {**ROW, "avg_deadlock_events": 0.0}]).columns
    made = cell_table([{**ROW, "avg_deadlock_events": 2.25}, {**ROW, "total_deadlock_events": 0}, ROW])
    assert [dict(zip(made.columns, row))["resolved"] for row in made.rows] == ["2.25", "0.00", "-"]


def test_the_total_of_resolved_deadlocks_is_shared_among_the_episodes():
    assert standard_row({"episodes": 20, "total_deadlock_events": 30})["deadlock_events"] == 1.5


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"timeout_count": 0, "timeout_rate": 0.0, "timeout_ci_low": 0.0, "timeout_ci_high": 0.114}, None),
        ({"timeout_count": 4, "timeout_rate": 4 / 30, "timeout_ci_low": 0.053, "timeout_ci_high": 0.297},
         "13.3 [5.3, 29.7]"),
        ({"timeout_count": 0, "timeout_rate": 0.0, "timeout_ci_low": 0.0, "timeout_ci_high": 0.114, "target_meals": 1},
         "0.0 [0.0, 11.4]"),
        ({"timeout_count": 30, "timeout_rate": 1.0, "timeout_ci_low": None, "timeout_ci_high": None}, "100.0"),
    ],
)  # fmt: skip
def test_timeouts_are_shown_only_where_the_rules_know_them(change, shown):
    made = cell_table([{**ROW, **change}])
    assert dict(zip(made.columns, made.rows[0])).get("timeout %") == shown


def test_consistency_is_shown_where_players_talk():
    assert "consistent %" not in cell_table([ROW, {**ROW, "message_action_consistency": None}]).columns
    made = cell_table([ROW, {**ROW, "message_action_consistency": 76.2257}])
    assert [dict(zip(made.columns, row))["consistent %"] for row in made.rows] == ["-", "76.2"]


def test_columns_of_the_planner_appear_only_with_a_planner():
    planner = {"calls", "retried", "fallback", "malformed", "tokens", "cost $"}
    assert not planner & set(cell_table([ROW]).columns)
    made = cell_table([ROW, LLM])
    cells = dict(zip(made.columns, made.rows[1]))
    assert [cells[name] for name in ("calls", "retried", "fallback", "malformed", "tokens", "cost $")] == [
        "4,185", "0", "2", "7", "100", "1.5",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_lost(width):
    made = cell_table([ROW, {**LLM, "model": "provider/a-model"}], "All")
    text = made.text(width)
    assert max(map(len, text.splitlines())) <= width
    for row in made.rows:
        for cell in row:
            assert cell in text


def test_one_row_that_does_not_fit_is_shown_as_a_list():
    text = cell_table([LLM]).text(80)
    assert any(line.split() == ["calls", "4,185"] for line in text.splitlines())


def test_output_that_is_no_terminal_has_no_colours_and_may_be_ascii():
    class Ascii(io.StringIO):
        encoding = "ascii"

    file = Ascii()
    cell_table([ROW, LLM], "Résumé").print(file)
    text = file.getvalue()
    assert text.isascii() and "\x1b" not in text and "0.303 ~ 0.0" in text


def test_names_are_not_read_as_markup():
    assert "[bold]x[/nope]" in table("t", ["a"], [["[bold]x[/nope]"]]).text()


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="row 1 of 't' has 1 entries for 2 columns"):
        table("t", ["a", "b"], [[1, 2], [1]])


def test_a_table_without_rows_shows_its_headings():
    assert "a  b" in table("t", ["a", "b"], []).text()


def test_markdown_escapes_bars_and_aligns_numbers():
    lines = to_markdown([{**ROW, "model": "a|b"}]).splitlines()
    assert lines[0].startswith("| model | condition | N |") and lines[1].startswith("|---|---|---:|")
    assert "a\\|b" in lines[2]


def test_csv_keeps_full_precision_and_all_keys():
    text = to_csv([{"a": 1 / 3, "list": [1, 2]}, {"b": None, "a": float("nan")}])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert float(rows[0]["a"]) == 1 / 3 and json.loads(rows[0]["list"]) == [1, 2]
    assert rows[1] == {"a": "", "list": "", "b": ""}


def test_json_keeps_full_precision_and_is_valid_with_nan():
    assert json.loads(to_json([{"a": 1 / 3, "b": float("nan")}])) == [{"a": 1 / 3, "b": None}]


def test_the_names_of_the_reference_are_understood():
    row = standard_row(
        {"model": "m", "condition_canonical": "sim_n5_nocomm", "num_episodes": 30, "deadlock_count": 4,
         "avg_throughput": 0.3, "std_throughput": 0.08, "communication": True,
         "ended_before_horizon_but_not_reported_deadlock": 3}
    )  # fmt: skip
    assert row["condition"] == "sim_n5_nocomm" and row["episodes"] == 30 and row["throughput"] == 0.3
    assert row["deadlock_low"] == pytest.approx(0.05309569424218104, rel=1e-12)
    assert row["true_deadlock_rate"] == 7 / 30
    assert row["throughput_half"] == pytest.approx(2.045229642 * 0.08 / 30**0.5, rel=1e-8)
    assert row["communication_rounds"] == 1 and row["prompt"] == "default"


def test_a_table_of_shown_numbers_has_intervals_of_rates_and_half_widths_of_means():
    row = {"model": "greedy", "condition": "small", "episodes": 20, "won_rate": 0.5, "won_low": 0.3, "won_high": 0.7}
    row |= {"score": 18.25, "score_half": 0.04, "steps": 101.85, "steps_half": 8.8}
    made = shown_table([row], ("won", "score", "steps"), "Title")
    assert made.columns == ("model", "condition", "episodes", "won %", "score", "steps")
    assert made.rows == (("greedy", "small", "20", "50.0 [30.0, 70.0]", "18.250 ± 0.040", "101.8 ± 8.8"),)
    assert (made.numeric, made.keys) == ((False, False, True, True, True, True), 2)
