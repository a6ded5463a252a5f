"""The results table: which runs are shown, how repeats are put together, and its outputs."""

import csv
import io
import math

import pytest
from coop2_logs import run

from jaxcoop.cognition.metrics import QUANTITIES
from jaxcoop.report.coop2_table import (
    HEADS,
    Spread,
    aggregate,
    latest,
    latex,
    mean_interval,
    outputs,
    results_table,
    shown,
)


def test_newest_run_of_a_cell_and_seed_is_kept():
    rows = [run(1, stamp="2"), run(2, stamp="3"), run(3, stamp="1"), run(4, seed=7), run(5, repair=True)]
    assert [row["score"] for row in latest(rows)] == [2, 4, 5]


def test_other_seeds_teams_and_runs_with_repair_are_shown_only_when_asked_for():
    rows = [run(1), run(2, seed=7), run(3, agents=6), run(4, repair=True)]
    assert [row["score"] for row in shown(rows)] == [1]
    assert [row["score"] for row in shown(rows, seed=None, agents=None, repair=None)] == [1, 2, 3, 4]
    assert [row["score"] for row in shown(rows, repair=True)] == [4]


def test_repeats_become_one_line_with_both_spreads():
    (line,) = aggregate([run(score, seed=score) for score in (1, 2, 3)])
    assert (line["score"], line["runs"], line["score_std"]) == (2, 3, 1)
    assert line["score_half"] == pytest.approx(1.96 / math.sqrt(3))
    assert line["steps_half"] == line["steps_std"] == 0


def test_a_line_for_each_seed_has_no_width():
    lines = aggregate([run(1, seed=2), run(5, seed=1), run(3, seed=1, stamp="2")], by_seed=True)
    assert [(line["seed"], line["score"], line["score_half"], line["score_std"]) for line in lines] == [
        (1, 4, 0, 0),
        (2, 1, 0, 0),
    ]


def test_lines_are_sorted_by_team_model_structure_and_repair():
    rows = [
        run(0, agents=6, model="a"),
        run(1, model="a", structure="broadcast_chain"),
        run(2, model="a", structure="centralized", repair=True),
        run(3, model="a", structure="centralized"),
        run(4, model="a"),
        run(5, model="z"),
        run(6, model="z", structure="a_ring"),
    ]
    assert [line["score"] for line in aggregate(rows, models=["z"])] == [5, 6, 4, 3, 2, 1, 0]


def test_the_table_says_which_spread_it_shows():
    lines = aggregate([run(score, seed=score) for score in (1, 2, 4)])
    by_interval = results_table(lines)
    by_deviation = results_table(lines, Spread.DEVIATION)
    assert "95 %" in by_interval.title and "standard deviation" in by_deviation.title
    column = by_interval.columns.index("Score")
    assert (by_interval.rows[0][column], by_deviation.rows[0][column]) == ("2.3 ± 1.7", "2.3 ± 1.5")
    assert by_interval.rows[0][by_interval.columns.index("Score/Step")] == "0.23 ± 0.17"
    assert by_interval.rows[0][by_interval.columns.index("repair")] == "off"


def test_latex_has_rules_between_teams_and_models_only():
    rows = [run(0), run(1, structure="centralized"), run(2, model="a_b"), run(3, agents=6)]
    text = latex(aggregate(rows))
    body = text.split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    assert [len(part.strip().splitlines()) for part in body.split(r"\midrule")] == [1, 2, 1]
    assert r"a\_b" in text and "±" not in text and r"\pm" in text


def test_outputs_hold_every_run_and_every_line():
    rows = [run(score, seed=score) for score in (1, 2)]
    files = outputs(rows, spread=Spread.DEVIATION, title="CUBE")
    assert set(files) == {"runs.csv", "aggregate.csv", "table.md", "table.tex"}
    raw = list(csv.DictReader(io.StringIO(files["runs.csv"])))
    assert [(line["seed"], line["score"]) for line in raw] == [("1", "1"), ("2", "2")]
    (line,) = csv.DictReader(io.StringIO(files["aggregate.csv"]))
    assert float(line["score"]) == 1.5 and {"score_half", "score_std", "runs"} <= line.keys()
    assert files["table.md"].startswith("**CUBE (mean ± standard deviation)**") and "1.5 ± 0.7" in files["table.md"]


def test_nothing_cannot_be_averaged():
    with pytest.raises(ValueError, match="at least one run"):
        mean_interval([])


def test_every_quantity_has_a_heading():
    assert tuple(HEADS) == QUANTITIES
