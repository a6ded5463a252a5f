"""What score costs: mean score against decision time, and against messages and interruptions (9 of docs/coop2.md)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxcoop.report import style
from jaxcoop.report.cells import Row, models
from jaxcoop.report.coop2_table import STRUCTURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = dict(zip(STRUCTURES, "os^"))
OTHER_MARKER = "D"

_COLORS = (style.BLUE, style.RED, style.GREEN, style.ORANGE, "#7B4EA8", style.GREY)
_AREA, _AREA_PER_AGENT = 12.0, 8.0  # points²


def tradeoff_figure(lines: Sequence[Row], title: str = "") -> "Figure":
    """Two panels from lines of `coop2_table.aggregate`; bars are 95 % intervals, filled marks are runs with repair.

    Raises ValueError without lines.
    """
    if not lines:
        raise ValueError("there is nothing to draw; give at least one line of an aggregate")
    names = models(lines)
    colors = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(names)}
    with style.styled():
        figure = style.new_figure(6.8, 3.0)
        left, right = figure.subplots(1, 2, sharey=True)
        for line in lines:
            decision = line["total_decision_time"], line["total_decision_time_half"]
            _draw(left, line, *decision, colors[line["model"]])
            load = line["messages"] + line["interruptions"]
            width = math.hypot(line["messages_half"], line["interruptions_half"])
            _draw(right, line, load, width, colors[line["model"]])
        left.set_xlabel("total decision time [s]")
        right.set_xlabel("messages + interruptions")
        left.set_ylabel("score")
        for axes in (left, right):
            axes.grid(color=style.PALE, linewidth=0.5)
            axes.margins(0.08)
        _legend(figure, lines, colors)
        figure.suptitle(title, fontsize=10)
        style.note(figure, [_sizes_note(lines), "Bars: 95 % intervals of means."])
    return figure


def _draw(axes: "Axes", line: Row, x: float, half: float, color: str) -> None:
    area = _area(line["agents"])
    axes.errorbar(x, line["score"], xerr=half or None, yerr=line["score_half"] or None, fmt="none", ecolor=color,
                  elinewidth=0.8, capsize=1.8, zorder=2)  # fmt: skip
    marker = MARKERS.get(line["structure"], OTHER_MARKER)
    face = color if line.get("repair") else "white"
    axes.scatter(x, line["score"], s=area, marker=marker, facecolors=face, edgecolors=color, linewidths=1.1, zorder=3)


def _area(agents: int) -> float:
    # Large teams grow slowly: 256 agents would cover the panel.
    return _AREA + _AREA_PER_AGENT * min(agents, 6) + 6 * math.log2(max(agents, 6) / 6)


def _legend(figure: "Figure", lines: Sequence[Row], colors: dict[str, str]) -> None:
    from matplotlib.lines import Line2D

    def mark(marker: str, color: str, label: str, size: float = 5.5, face: str = "white") -> Line2D:
        return Line2D(
            [], [], linestyle="none", marker=marker, color=color, markerfacecolor=face, markersize=size, label=label
        )

    structures = list(dict.fromkeys(line["structure"] for line in lines))
    handles = [mark("o", color, name, face=color) for name, color in colors.items()]
    handles += [mark(MARKERS.get(name, OTHER_MARKER), style.INK, name.replace("_", " ")) for name in structures]
    sizes = sorted({line["agents"] for line in lines})
    handles += [mark("o", style.GREY, f"{agents} agents", math.sqrt(_area(agents))) for agents in sizes]
    figure.legend(handles=handles, loc="outside right upper", handletextpad=0.3, labelspacing=0.5)


def _sizes_note(lines: Sequence[Row]) -> str:
    runs = sorted({line["runs"] for line in lines})
    count = str(runs[0]) if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    both = len({bool(line.get("repair")) for line in lines}) > 1
    return f"{count} run{'' if runs == [1] else 's'} per mark." + (" Filled: with repair." if both else "")
