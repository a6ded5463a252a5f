"""The figures of COOP²: what they count, what they draw, and that nothing breaks where there is little to draw."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from coop2_logs import CRAFTER, CUBE, made, run
from matplotlib.collections import PathCollection

from jaxcoop.cognition.logs import none_of
from jaxcoop.cognition.types import Stage
from jaxcoop.report import style
from jaxcoop.report.coop2_series import Series, average, series_of
from jaxcoop.report.coop2_table import aggregate
from jaxcoop.report.coop2_timeline import stage_bars, stepping_spans, timeline_figure
from jaxcoop.report.coop2_trace import CONSTRAINT_LABELS, repair_figure, trace_figure
from jaxcoop.report.coop2_tradeoff import tradeoff_figure


def series(score, events=(), focus=None, repairs=(), agents=3):
    steps = len(score)
    rows = np.zeros((2, steps)) if focus is None else np.array(focus, float)
    step = np.array([at for at, *_ in events], int)
    scores = np.array([values for _, *values in events], float).reshape(-1, 3)
    return Series(("w=2", "w=1"), agents, rows, step, scores, np.array(score, float), repairs)


def labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_series_count_the_agents_on_each_target():
    log = made(CUBE, seed=4, steps=20)
    found = series_of(log, CUBE)
    assert found.targets == ("w=3", "w=2", "w=1")
    for row, weight in enumerate((3, 2, 1)):
        expected = (log.process.target_kind == weight).sum(1)
        assert found.focus[row].tolist() == [0, *expected]
    assert found.end == 20 and found.score.tolist() == [0, *log.process.score]


def test_series_of_macrafter_know_tools_from_ops():
    log = made(CRAFTER, seed=4, steps=20)
    found = series_of(log, CRAFTER)
    assert found.targets[0] == "tools"
    crafting = (log.process.op[..., 0] == 4).sum(1)
    assert found.focus[0].tolist() == [0, *crafting] and crafting.sum() > 0


def test_series_hold_an_entry_for_each_event_and_each_repair_before_the_end():
    log = made(CUBE, seed=5, steps=30)
    found = series_of(log, CUBE)
    assert len(found.event_step) == (log.process.task >= 0).sum()
    assert found.event_step.min() >= 1 and np.all(np.diff(found.event_step) >= 0)
    assert found.repairs == tuple(sorted({int(step) for step in log.repairs.env_step[-2:]}))
    late = dataclasses.replace(log.repairs, env_step=np.full(5, 30, np.int32))
    assert series_of(dataclasses.replace(log, repairs=late), CUBE).repairs == ()


def test_average_leaves_ended_runs_out_of_focus_and_keeps_their_score():
    short = series([0, 2], [(1, 0.5, 2.0, 1.0)], focus=[[0, 2], [0, 0]])
    long = series([0, 0, 4, 4], [(1, 0.0, 1.0, 1.0), (3, 1, 1, 1)], focus=[[0, 0, 1, 1], [0, 0, 0, 0]])
    mean = average([short, long])
    assert mean.focus[0].tolist() == [0, 1, 1, 1]
    assert mean.score.tolist() == [0, 1, 3, 3]
    assert mean.end == 2 and mean.runs == 2
    assert mean.band[1] == pytest.approx(1.96 * np.sqrt(2) / np.sqrt(2))
    assert mean.satisfied[:, 1].tolist() == [0.25, 1, 1]
    assert np.isnan(mean.satisfied[:, 2]).all() and mean.satisfied[:, 3].tolist() == [1, 1, 1]


def test_one_run_has_no_band():
    assert average([series([0, 1, 3])]).band.tolist() == [0, 0, 0]


def test_runs_of_two_teams_are_not_averaged():
    with pytest.raises(ValueError, match="2 different worlds or team sizes"):
        average([series([0, 1]), series([0, 1], agents=6)])
    with pytest.raises(ValueError, match="give at least one"):
        average([])


@pytest.mark.parametrize("mean", [True, False])
def test_trace_has_a_panel_for_each_model_and_structure(mean):
    cells = {("m", "individual"): [series([0, 1, 2]), series([0, 0])], ("m", "centralized"): [series([0, 4])],
             ("n", "individual"): [series([0, 0], [(1, 1, 0.5, 0)])], ("n", "centralized"): []}  # fmt: skip
    figure = trace_figure(cells, mean=mean)
    panels = [axes for axes in figure.axes if labels(axes)[:3] == list(CONSTRAINT_LABELS)]
    assert len(panels) == 3 and labels(panels[0])[3:] == ["w=2", "w=1"]
    assert sum("no data" in text.get_text() for axes in figure.axes for text in axes.texts) == 1
    assert [axes.get_title(loc="left") for axes in panels if axes.get_title(loc="left")] == ["m", "n"]
    assert style.as_png(figure, dpi=40).startswith(b"\x89PNG")


def test_score_line_of_a_panel_ends_at_the_top_of_the_targets():
    figure = trace_figure({("m", "individual"): [series([0, 2, 6])]}, mean=False)
    twin = next(axes for axes in figure.axes if axes.lines and axes.lines[0].get_drawstyle() == "steps-post")
    assert twin.lines[0].get_ydata().tolist() == [0, 2, 6]
    assert twin.get_ylim()[1] == pytest.approx(6 * (2 + 3) / 2)
    (name,) = (text for axes in figure.axes for text in axes.texts)
    assert name.get_text() == "score" and name.xy == (1.01, 2 / 5)


def test_dots_are_coloured_by_scores_cut_to_one_and_shifted_apart():
    events = [(1, 2.0, 0.5, 0.0)] * 6
    figure = trace_figure({("m", "individual"): [series([0, 0], events)]}, mean=False)
    dots = [c for axes in figure.axes for c in axes.collections if len(c.get_offsets()) == 6]
    assert [float(found.get_array()[0]) for found in dots] == [1, 0.5, 0]
    assert dots[0].get_offsets()[:, 0].tolist() == pytest.approx([0.84, 0.92, 1, 1.08, 1.16, 0.84])


def test_case_study_numbers_its_repairs_and_leaves_out_those_without_room():
    figure = repair_figure(series(range(101), repairs=(10, 11, 40)), "Study")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["R1", "R3"]
    assert len([line for line in figure.axes[0].lines if line.get_marker() == "*"]) == 3
    assert not repair_figure(series([0, 1])).axes[0].texts


def test_figures_of_a_run_without_steps_can_be_drawn():
    log = made(CUBE, seed=1)
    empty = {name: none_of(name, agents=3, ops=3, width=5) for name in ("process", "plans", "messages", "repairs")}
    log = dataclasses.replace(log, **empty)
    nothing = series_of(log, CUBE)
    assert nothing.end == 0 and nothing.score.tolist() == [0]
    for figure in (
        trace_figure({("m", "individual"): [nothing]}),
        trace_figure({("m", "individual"): [nothing]}, mean=False),
        repair_figure(nothing),
        timeline_figure(log),
    ):
        assert style.as_png(figure, dpi=40)


def test_stages_of_an_agent_follow_each_other_up_to_the_end():
    log = made(CUBE, seed=2, steps=12)
    bars = list(stage_bars(log, 1, 100.0))
    assert bars[0][::2] == (0.0, Stage.REASONING)
    assert all(start + length == pytest.approx(after[0]) for (start, length, _), after in pairwise(bars))
    assert bars[-1][0] + bars[-1][1] == 100.0


def test_the_world_steps_while_everybody_executes():
    line = type(none_of("timeline", agents=2))
    ints = lambda *values: np.array(values, np.int32)  # noqa: E731
    rows = line(ints(*range(6)), ints(0, 0, 500, 900, 900, 2000), ints(0, 0, 0, 0, 0, 3), ints(0, 1, 0, 1, 0, 1),
                ints(0, 0, 1, 2, 2, 0))  # fmt: skip
    log = dataclasses.replace(made(CUBE, agents=2), timeline=rows, end_ms=2500)
    assert stepping_spans(log) == [(0.9, 2.0)]
    still = dataclasses.replace(rows, stage=ints(0, 0, 1, 2, 2, 2))
    assert stepping_spans(dataclasses.replace(log, timeline=still)) == [(0.9, 2.5)]


def test_timeline_has_a_row_for_each_agent_and_stops_at_twelve():
    log = made(CUBE, agents=14, steps=10)
    figure = timeline_figure(log)
    assert labels(figure.axes[0]) == ["environment", *(f"agent_{agent}" for agent in range(12))]
    assert labels(timeline_figure(log, agents=[13]).axes[0]) == ["environment", "agent_13"]
    with pytest.raises(ValueError, match="agent 14"):
        timeline_figure(log, agents=[14])


def test_tradeoff_marks_each_line_in_both_panels():
    rows = [
        run(score, structure=name, repair=repair, seed=score + 7)
        for score in (1, 3)
        for name in ("individual", "centralized", "ring")
        for repair in (False, True)
    ]
    rows = [row | {"messages": 3.0 * row["seed"], "interruptions": 2.0, "total_decision_time": 2.0} for row in rows]
    figure = tradeoff_figure(aggregate(rows), "Costs")
    marks = [
        [mark.get_offsets()[0].tolist() for mark in axes.collections if isinstance(mark, PathCollection)]
        for axes in figure.axes
    ]
    assert marks == [[[2.0, 2.0]] * 6, [[29.0, 2.0]] * 6]
    assert style.as_png(figure, dpi=40)
    with pytest.raises(ValueError, match="at least one line"):
        tradeoff_figure([])
