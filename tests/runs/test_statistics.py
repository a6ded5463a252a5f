"""Intervals and tables of finished runs (the recorded values are compared in tests/golden)."""

import subprocess
import sys

import pytest

from jaxcoop.runs.statistics import (
    RATE,
    Interval,
    t_half_width,
    wilson_interval,
    with_intervals,
    z_half_width,
    z_interval_table,
)

ROW = {"model": "a", "condition": "c", "episodes": 20, "deaths": 5, "rate": 0.25, "mean": 0.12345, "std": 0.5}


def test_four_of_thirty_has_the_published_wilson_interval():
    assert wilson_interval(4, 30) == (0.05309569424218104, 0.2968168394441695)


@pytest.mark.parametrize("successes", [-1, 31])
def test_an_impossible_number_of_successes_is_refused(successes):
    with pytest.raises(ValueError, match=rf"successes is {successes}, must be in 0\.\.30"):
        wilson_interval(successes, 30)


def test_intervals_are_added_beside_the_row():
    out = with_intervals(ROW, rates={"deaths": "death"}, means={"std": "half", "other": "other_half"})
    assert (out["death_low"], out["death_high"]) == wilson_interval(5, 20)
    assert out["half"] == t_half_width(0.5, 20) and out["other_half"] is None
    assert "half" not in ROW


def test_the_z_table_rounds_values_and_half_widths_alike():
    columns = [
        Interval("rate", 2, RATE, "rate_half"),
        ("mean", 3, "std", "mean_half"),
        ("deaths", None, None, None),
    ]
    (line,) = z_interval_table([ROW], columns)
    assert line == {
        "model": "a",
        "condition": "c",
        "episodes": 20,
        "rate": 0.25,
        "rate_half": 0.19,
        "mean": 0.123,
        "mean_half": round(z_half_width(0.5, 20), 3),
        "deaths": 5,
    }


def test_the_z_table_keeps_the_first_of_equal_cells():
    lines = z_interval_table([ROW, ROW | {"mean": 9.0}, ROW | {"model": "b"}], [Interval("mean", 1)])
    assert [(line["model"], line["mean"]) for line in lines] == [("a", 0.1), ("b", 0.1)]


def test_missing_values_stay_empty_unless_a_default_is_given():
    columns = [
        Interval("tokens", None),
        Interval("gone", 1, RATE, "gone_half"),
        Interval("mean", 1, "no_std", "m"),
    ]
    (line,) = z_interval_table([ROW], columns)
    assert (line["tokens"], line["gone"], line["gone_half"], line["m"]) == (None, None, None, None)
    (line,) = z_interval_table([ROW], columns, missing={"tokens": 0})
    assert (line["tokens"], line["gone"]) == (0, None)


def test_scipy_is_loaded_only_for_a_computation_that_needs_it():
    code = (
        "import sys, jaxcoop.runs.statistics as s\n"
        "before = set(sys.modules)\n"
        "s.wilson_interval(1, 2); s.wald_half_width(.5, 2)\n"
        "assert 'scipy.stats' not in sys.modules\n"
        "s.t_half_width(1.0, 5)\n"
        "assert 'scipy.stats' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
