"""The process trace of COOP²: constraints, targets and score over environment steps (9 of docs/coop2.md).

Rows of a panel from top to bottom: spatial, temporal and dependency, a rule, then the targets.  A panel shows one run
or the average of several; the case study shows one run with its repairs.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxcoop.report import style
from jaxcoop.report.coop2_series import Average, Series, average, shown_score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CONSTRAINT_LABELS = ("spat.", "temp.", "dep.")
NUM_CONSTRAINTS = len(CONSTRAINT_LABELS)
JITTER, JITTERED = 0.08, 5
"""9: dots of events are shifted by multiples of `JITTER`, as many different ones as `JITTERED`."""

_FOCUS_COLORS = ("#FFFFFF", style.BLUE)
_SCORE_COLORS = ("#B2182B", "#F7C873", "#1A7F4B")  # a constraint: not met at all, half, met
_SCORE_LINE, _END, _STAR = "#111111", "#D62728", "#E0A800"
_HEAD = 1.2  # rows above the panel for the marks of repairs
_APART = 0.035  # of the width of a panel, from number to number of repairs

Cells = Mapping[tuple[str, str], Sequence[Series]]
"""(model, structure) -> runs."""


def trace_figure(cells: Cells, *, mean: bool = True, title: str = "") -> "Figure":
    """A panel for each model (columns) and structure (rows): the average of its runs, or only the first of them.

    Raises ValueError without any run.
    """
    shown = {key: runs for key, runs in cells.items() if runs}
    if not shown:
        raise ValueError("there is no run to draw; give at least one series for a model and a structure")
    models = list(dict.fromkeys(model for model, _ in shown))
    structures = list(dict.fromkeys(structure for _, structure in shown))
    rows = len(next(iter(shown.values()))[0].targets) + NUM_CONSTRAINTS
    drawn = {key: average(runs) if mean else runs[0] for key, runs in shown.items()}
    with style.styled():
        figure = style.new_figure(1.2 + 3.3 * len(models), 0.9 + (0.17 * rows + 0.55) * len(structures))
        grid = figure.subplots(len(structures), len(models), squeeze=False)
        last = math.ceil(max(data.end for data in drawn.values()))
        largest = max(data.agents for data in drawn.values())
        for i, structure in enumerate(structures):
            for j, model in enumerate(models):
                axes: Axes = grid[i, j]
                data = drawn.get((model, structure))
                if data is None:
                    _empty(axes)
                else:
                    draw_panel(axes, data, last, largest)
                if i == 0:
                    axes.set_title(model)
                if j == len(models) - 1:
                    _name_score(axes, rows)
                if j == 0:
                    axes.set_ylabel(style.wrapped(structure.replace("_", " "), 14))
                if i == len(structures) - 1:
                    axes.set_xlabel("environment step")
        _legends(figure, grid, largest)
        figure.suptitle(title, fontsize=10)
        style.note(figure, [_what(drawn, mean), "Black line: score of the team; dashed red line: end."])
    return figure


def _name_score(axes: "Axes", rows: int) -> None:
    """What the scale on the right is of, above it."""
    place = 1.01, (rows - NUM_CONSTRAINTS) / rows
    axes.annotate("score", place, (0, 3), xycoords="axes fraction", textcoords="offset points", fontsize=6,
                  color=style.GREY)  # fmt: skip


def _what(drawn: Mapping[Any, Series | Average], mean: bool) -> str:
    if not mean:
        return "One run per panel; dots are attempts."
    runs = sorted({data.runs for data in drawn.values() if isinstance(data, Average)})
    count = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f"Mean of {count} run{'' if runs == [1] else 's'} per panel, score with its 95 % band."


def repair_figure(run: Series, title: str = "") -> "Figure":
    """The case study: one run, with a star and a hatched band at each step at which a repair began."""
    with style.styled():
        rows = len(run.targets) + NUM_CONSTRAINTS + _HEAD
        figure = style.new_figure(7.2, 0.9 + 0.24 * rows)
        axes = figure.subplots()
        largest = max(1, int(run.focus.max(initial=0)))
        draw_panel(axes, run, run.end, largest, head=_HEAD if run.repairs else 0)
        _draw_repairs(axes, run)
        axes.set_xlabel("environment step")
        axes.set_title(title)
        _legends(figure, np.array([[axes]]), largest)
        marks = "Star and hatched band: a repair began." if run.repairs else "No repair began."
        style.note(figure, ["Dots are attempts; black line: score of the team; dashed red line: end.", marks])
    return figure


def _draw_repairs(axes: "Axes", run: Series) -> None:
    """Stars and bands; those that are too close to the last number have none."""
    labelled = -math.inf
    for number, step in enumerate(run.repairs, start=1):
        axes.axvspan(step - 0.5, step + 0.5, facecolor="none", edgecolor=_STAR, hatch="////", linewidth=0, zorder=1)
        axes.plot(step, -0.82, "*", markersize=8, color=_STAR, markeredgecolor=style.INK, markeredgewidth=0.4)
        if step - labelled >= run.end * _APART:
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            axes.text(step, -1.16, f"R{number}", ha="center", va="bottom", fontsize=6.5, bbox=ground)
            labelled = step


def draw_panel(axes: "Axes", data: Series | Average, last: int, largest: int, head: float = 0) -> None:
    """One panel up to step `last`; `largest` is the number of agents at the end of the scale of focuses.

    `head` rows above the constraints stay free.
    """
    rows = len(data.targets)
    bins = data.focus.shape[1]
    extent = (-0.5, bins - 0.5, NUM_CONSTRAINTS + rows - 0.5, NUM_CONSTRAINTS - 0.5)
    axes.imshow(
        data.focus, cmap=_map(_FOCUS_COLORS), vmin=0, vmax=largest, aspect="auto", interpolation="nearest",
        extent=extent, zorder=0,
    )  # fmt: skip
    if isinstance(data, Series):
        _draw_events(axes, data)
    else:
        axes.imshow(
            data.satisfied, cmap=_map(_SCORE_COLORS), vmin=0, vmax=1, aspect="auto", interpolation="nearest",
            extent=(-0.5, bins - 0.5, NUM_CONSTRAINTS - 0.5, -0.5), zorder=0,
        )  # fmt: skip
    axes.axhline(NUM_CONSTRAINTS - 0.5, color=style.INK, linewidth=0.9)
    for row in range(rows + NUM_CONSTRAINTS - 1):
        axes.axhline(row + 0.5, color=style.PALE, linewidth=0.4, zorder=1)
    if isinstance(data, Average):
        # Beyond the mean end only the longer runs would show.
        axes.axvspan(data.end + 0.5, max(last, data.end) + 1.5, color="white", linewidth=0, zorder=2)
    axes.axvline(data.end + 0.5, color=_END, linestyle=(0, (3, 2)), linewidth=1.0, zorder=4)
    axes.set_xlim(-0.5, last + 1)
    axes.set_ylim(NUM_CONSTRAINTS + rows - 0.5, -0.5 - head)
    axes.set_yticks(range(NUM_CONSTRAINTS + rows), [*CONSTRAINT_LABELS, *data.targets], fontsize=6.5)
    axes.tick_params(axis="y", length=0)
    _draw_score(axes, data, rows / (head + NUM_CONSTRAINTS + rows))


def _draw_events(axes: "Axes", run: Series) -> None:
    """A dot for each event and constraint."""
    shift = (np.arange(len(run.event_step)) % JITTERED - JITTERED // 2) * JITTER
    for row in range(NUM_CONSTRAINTS):
        axes.scatter(
            run.event_step + shift, np.full(len(shift), row), c=shown_score(run.scores[:, row]),
            cmap=_map(_SCORE_COLORS), vmin=0, vmax=1, s=11, linewidths=0.2, edgecolors=style.INK, zorder=3,
        )  # fmt: skip


def _draw_score(axes: "Axes", data: Series | Average, share: float) -> None:
    """The score as a line in the target rows, which are the lower `share` of the panel."""
    from matplotlib.ticker import MaxNLocator

    top = float((data.score + getattr(data, "band", 0.0)).max()) or 1.0
    twin = axes.twinx()
    twin.set_ylim(0, top / share)
    kept = int(data.end) + 1
    steps = np.arange(kept)
    if isinstance(data, Average):
        low, high = (data.score + sign * data.band for sign in (-1, 1))
        twin.fill_between(steps, low[:kept], high[:kept], step="post", color=_SCORE_LINE, alpha=0.15, linewidth=0)
    twin.plot(steps, data.score[:kept], drawstyle="steps-post", color=_SCORE_LINE, linewidth=1.1)
    ticks = [tick for tick in MaxNLocator(3).tick_values(0, top) if tick <= top]
    twin.set_yticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=6)
    twin.tick_params(axis="y", length=2)


def _map(colors: Sequence[str]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("coop2", list(colors))


def _legends(figure: "Figure", grid: Any, largest: int) -> None:
    """Scales of both colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    for colors, top, label in ((_SCORE_COLORS, 1, "constraint score"), (_FOCUS_COLORS, largest, "agents on target")):
        scale = ScalarMappable(Normalize(0, top), _map(colors))
        ticks = [0, 0.5, 1] if top == 1 and colors is _SCORE_COLORS else sorted({0, largest})
        bar = figure.colorbar(scale, ax=grid.ravel().tolist(), shrink=0.8, aspect=25, pad=0.015, ticks=ticks)
        bar.set_label(label, fontsize=6.5)
        bar.ax.tick_params(labelsize=6)


def _empty(axes: "Axes") -> None:
    axes.text(0.5, 0.5, "no data", ha="center", va="center", fontsize=7, color=style.GREY, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
