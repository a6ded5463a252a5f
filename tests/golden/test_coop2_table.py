"""Rows of the results table and their aggregates equal the recorded reference, case by case."""

import pytest
from recorded import lines_of

from jaxcoop.cognition.metrics import QUANTITIES, read_row
from jaxcoop.report.coop2_table import cell_text, mean_interval

SIZES = {"table.row": 7, "table.aggregate": 4}
ONLY_WITH_EVENTS = {"attempt_success_rate", "successful_attempt_events"}
"""Entries that the reference leaves out of a row without attempt events; here they are 0."""


def recorded(group):
    """Marks a test that runs once for each recorded case of a group."""

    def read(path):
        return ((case["id"], case) for case in lines_of(path) if case["group"] == group)

    return pytest.mark.recorded("coop2", "cases.jsonl.gz", read)


def close(value):
    """The number within 1e-9."""
    return pytest.approx(value, rel=0, abs=1e-9)


@recorded("table.row")
def test_coop2_rows_equal_the_recorded_ones(case):
    logs = dict(case["input"])
    row = read_row(agents=logs.pop("n_agents"), **logs)
    missing = row.keys() - case["expected"].keys()
    assert missing == (set() if row["attempt_constraint_events"] else ONLY_WITH_EVENTS)
    assert not any(row.pop(name) for name in missing)
    assert row == {name: close(value) for name, value in case["expected"].items()}
    assert set(QUANTITIES) <= row.keys()


@recorded("table.aggregate")
def test_coop2_repeats_are_aggregated_as_recorded(case):
    expected = case["expected"]
    mean, half, runs = mean_interval(case["input"]["values"])
    assert (mean, half, runs) == (close(expected["mean"]), close(expected["ci95"]), expected["runs"])
    assert [cell_text(mean, half, digits) for digits in (1, 2)] == [expected["text1"], expected["text2"]]


def test_coop2_default_data_hold_rows_and_aggregates(default_data):
    cases = lines_of(default_data / "coop2" / "cases.jsonl.gz")
    assert {group: sum(case["group"] == group for case in cases) for group in SIZES} == SIZES
