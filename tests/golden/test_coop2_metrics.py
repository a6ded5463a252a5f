"""The process measures of COOP² equal the recorded reference, case by case."""

import pytest
from recorded import lines_of

from jaxcoop.cognition.metrics import Logs, full_metrics, metric_columns

GROUPS = ("metrics.all", "metrics.csv")


def recorded(group):
    """Marks a test that runs once for each recorded case of a group."""

    def read(path):
        return ((case["id"], case) for case in lines_of(path) if case["group"] == group)

    return pytest.mark.recorded("coop2", "cases.jsonl.gz", read)


def measured(case):
    logs = dict(case["input"])
    plans = logs.pop("plans", {})
    return full_metrics(Logs(plans=plans.get("plan_history", ()), **logs))


def close(value):
    """The value with numbers within 1e-9, and keys as JSON has them."""
    if isinstance(value, dict):
        return {str(key): close(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [close(entry) for entry in value]
    return pytest.approx(value, rel=0, abs=1e-9) if isinstance(value, float) else value


def as_json(value):
    """The value as it comes back from a JSON file."""
    if isinstance(value, dict):
        return {str(key): as_json(entry) for key, entry in value.items()}
    return value


@recorded("metrics.all")
def test_coop2_full_metrics_equal_the_recorded_ones(case):
    assert as_json(measured(case)) == close(case["expected"])


@recorded("metrics.csv")
def test_coop2_metric_columns_equal_the_recorded_ones(case):
    assert [list(column) for column in metric_columns(measured(case))] == close(case["expected"])


def test_coop2_default_data_hold_the_metrics(default_data):
    cases = lines_of(default_data / "coop2" / "cases.jsonl.gz")
    assert [sum(case["group"] == group for case in cases) for group in GROUPS] == [17, 17]
