"""Attempt events and the names of their targets equal the recorded reference, case by case."""

import pytest
from recorded import lines_of

from jaxcoop.cognition.metrics import (
    ATTEMPT_RATES,
    cube_events,
    cube_label,
    cube_target,
    macrafter_events,
    resource_category,
    resource_of_text,
)
from jaxcoop.cognition.metrics.attempts import rates_of

SIZES = {
    "attempts.cube": 13,
    "attempts.macrafter": 17,
    "attempts.cube.target": 12,
    "attempts.macrafter.resource": 7,
    "attempts.macrafter.resource_text": 8,
}


def recorded(group):
    """Marks a test that runs once for each recorded case of a group."""

    def read(path):
        return ((case["id"], case) for case in lines_of(path) if case["group"] == group)

    return pytest.mark.recorded("coop2", "cases.jsonl.gz", read)


def close(value):
    """The value with numbers within 1e-9."""
    if isinstance(value, dict):
        return {key: close(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [close(entry) for entry in value]
    return pytest.approx(value, rel=0, abs=1e-9) if isinstance(value, float) else value


def check(events, expected):
    assert events == close(expected["events"])
    rates = rates_of(events)
    assert rates == close(expected["rates"])
    assert tuple(rates) == ATTEMPT_RATES


@recorded("attempts.cube")
def test_coop2_attempts_of_cube_equal_the_recorded_ones(case):
    check(cube_events(case["input"]["process_log"]), case["expected"])


@recorded("attempts.macrafter")
def test_coop2_attempts_of_macrafter_equal_the_recorded_ones(case):
    check(macrafter_events(case["input"]["process_log"]), case["expected"])


@recorded("attempts.cube.target")
def test_coop2_targets_of_cube_are_named_as_recorded(case):
    value, weight = case["input"]["value"], case["input"]["weight"]
    assert {"target": cube_target(value, weight), "label": cube_label(value)} == case["expected"]


@recorded("attempts.macrafter.resource")
def test_coop2_resources_of_macrafter_are_named_as_recorded(case):
    assert resource_category(case["input"]["value"]) == case["expected"]


@recorded("attempts.macrafter.resource_text")
def test_coop2_texts_about_resources_are_read_as_recorded(case):
    assert resource_of_text(case["input"]["text"]) == case["expected"]


def test_coop2_default_data_hold_the_attempts(default_data):
    cases = lines_of(default_data / "coop2" / "cases.jsonl.gz")
    assert {group: sum(case["group"] == group for case in cases) for group in SIZES} == SIZES
