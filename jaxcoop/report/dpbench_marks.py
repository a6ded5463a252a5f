"""What the figures of the dining-philosophers study are drawn with: bars, dots with whiskers, the circular wait.

Rows are those of `jaxcoop.report.cells`; rates are fractions.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxcoop.report import style
from jaxcoop.report.cells import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bars = Sequence[tuple[str, Row]]
"""(label, row) of bars side by side."""

FAILURE, SUCCESS = 0.5, 0.25  # shaded zones of the cross-model figure
_LABEL = 7  # points, the percentage above a bar
_STEP, _GAP = 0.8, 0.55  # from bar to bar within a group; more from group to group
# "100 %" takes 0.32 inches; bars of a group are as far apart, and a little more.
_INCHES_PER_UNIT = 0.36 / _STEP
_NAME = 11  # letters of a line of a model's name below its bars


def draw_bars(axes: "Axes", bars: Bars, xlabel: str = "", label_size: float = 7.5) -> None:
    """A bar for each deadlock rate, with its whisker and its percentage."""
    for x, (_, row) in enumerate(bars):
        _draw_bar(axes, x, row)
    axes.set_xticks(range(len(bars)), [label for label, _ in bars], fontsize=label_size)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    axes.set_xlabel(xlabel)
    style.rate_axis(axes)


def groups_width(groups: Mapping[str, Bars]) -> float:
    """Inches in which `draw_groups` has room for all its labels."""
    return _INCHES_PER_UNIT * sum(_group_units(bars) for bars in groups.values())


def draw_groups(axes: "Axes", groups: Mapping[str, Bars], xlabel: str) -> None:
    """Bars of several models, each model's side by side above its name."""
    ticks, labels = [], []
    x = 0.0
    for name, bars in groups.items():
        for number, (label, row) in enumerate(bars):
            ticks.append(x + _STEP * number)
            labels.append(label)
            _draw_bar(axes, ticks[-1], row)
        middle = (ticks[-len(bars)] + ticks[-1]) / 2
        axes.annotate(
            style.wrapped(name, _NAME), (middle, 0), (0, -17), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="top", fontsize=7,
        )  # fmt: skip
        x += _group_units(bars)
    axes.set_xticks(ticks, labels)
    axes.set_xlim(-(_STEP + _GAP) / 2, x - (_STEP + _GAP) / 2)
    lines = max(style.wrapped(name, _NAME).count("\n") for name in groups) + 1
    axes.set_xlabel(xlabel, labelpad=4 + 9 * lines)
    style.rate_axis(axes)


def _group_units(bars: Bars) -> float:
    """Units of the horizontal axis that a group takes; the name below needs those of two bars at least."""
    return _STEP * max(len(bars), 2) + _GAP


def _draw_bar(axes: "Axes", x: float, row: Row) -> None:
    rate = row["deadlock_rate"]
    # A bar of height 0 stays visible as a line.
    axes.bar(x, max(rate, 0.006), 0.66, color=style.rate_color(rate))
    whisker = _whisker(row, "deadlock")
    if whisker:
        axes.errorbar(x, rate, yerr=whisker, color=style.INK, linewidth=0.8, capsize=2, capthick=0.8)
    top = row["deadlock_high"] if whisker else rate
    # The white ground keeps grid lines out of the digits.
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(x, top + 0.03, f"{100 * rate:.0f} %", ha="center", va="bottom", fontsize=_LABEL, bbox=ground)


def _whisker(row: Row, name: str) -> tuple[list[float], list[float]] | None:
    rate, low, high = (row.get(f"{name}_{end}") for end in ("rate", "low", "high"))
    if rate is None or low is None or high is None:
        return None
    return [max(0.0, rate - low)], [max(0.0, high - rate)]


def draw_dot(axes: "Axes", at: float, row: Row, name: str, *, vertical: bool, hollow: bool = False) -> None:
    """The rate `name` with its whisker, at `at` of the axis that carries no rates; `hollow`: an open diamond."""
    rate = row[f"{name}_rate"]
    color = style.rate_color(rate)
    whisker = _whisker(row, name)
    x, y = (at, rate) if vertical else (rate, at)
    axes.errorbar(
        x, y, yerr=whisker if vertical else None, xerr=None if vertical else whisker,
        fmt="D" if hollow else "o", markersize=4.5 if hollow else 5.5, color=color,
        markerfacecolor="white" if hollow else color, linewidth=0.9 if hollow else 1.4, capsize=2.5,
        clip_on=False, zorder=3,
    )  # fmt: skip


def draw_model_dots(axes: "Axes", names: Sequence[str], panel: Mapping[str, Row], *, sequential: bool) -> None:
    """A line for each model with its rate, and the open diamond of 7.2 where the two readings differ."""
    axes.axvspan(FAILURE, 1, color=style.RED, alpha=0.10, linewidth=0)
    axes.axvspan(0, SUCCESS, color=style.GREEN, alpha=0.10, linewidth=0)
    for x, text, color in (((1 + FAILURE) / 2, "failure", style.RED), (SUCCESS / 2, "success", style.GREEN)):
        axes.text(
            x, 1.01, text, color=color, ha="center", va="bottom", fontsize=7, transform=axes.get_xaxis_transform()
        )
    for y, name in enumerate(names):
        row = panel.get(name)
        if row is None:
            axes.text(0.5, y, "no data", color=style.GREY, ha="center", va="center", fontsize=7)
            continue
        both = sequential and readings_differ(row)
        draw_dot(axes, y + (0.16 if both else 0), row, "deadlock", vertical=False)
        if both:
            draw_dot(axes, y - 0.16, row, "true_deadlock", vertical=False, hollow=True)
    axes.set_yticks(range(len(names)), [style.wrapped(name, 18) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1"])
    axes.grid(axis="y", color=style.PALE, linewidth=0.5)
    axes.set_xlabel("deadlock rate")


def readings_differ(row: Row) -> bool:
    """7.2: whether episodes ended in a circular wait that is not reported."""
    true = row.get("true_deadlock_rate")
    return true is not None and not math.isclose(true, row["deadlock_rate"], abs_tol=1e-12)


def draw_circular_wait(axes: "Axes", philosophers: int = 5) -> None:
    """Everyone holds the left fork and waits for the right one, which the next philosopher holds."""
    nodes = []
    for i in range(2 * philosophers):
        angle = math.pi / 2 - math.pi * i / philosophers
        nodes.append((math.cos(angle), math.sin(angle)))
    for i, (x, y) in enumerate(nodes):
        is_fork = i % 2 == 1
        axes.annotate(
            "", nodes[(i + 1) % len(nodes)], (x, y),
            arrowprops={
                "arrowstyle": "-|>", "shrinkA": 10, "shrinkB": 10, "linewidth": 1.1, "mutation_scale": 9,
                "color": style.BLUE if is_fork else style.RED, "linestyle": "-" if is_fork else (0, (3, 2)),
                "connectionstyle": "arc3,rad=-0.12",
            },
        )  # fmt: skip
        axes.plot(
            x, y, "s" if is_fork else "o", markersize=13 if is_fork else 17, markeredgecolor=style.INK,
            markerfacecolor="#EFEFEF" if is_fork else "white", markeredgewidth=0.9,
        )  # fmt: skip
        name = f"$f_{{{(i // 2 + 1) % philosophers}}}$" if is_fork else f"$P_{{{i // 2}}}$"
        axes.text(x, y - 0.01, name, ha="center", va="center", fontsize=7.5)
    axes.plot([], [], linestyle=(0, (3, 2)), color=style.RED, label="waits for")
    axes.plot([], [], color=style.BLUE, label="is held by")
    axes.legend(loc="center", handlelength=2.2)
    axes.set_xlim(-1.25, 1.25)
    axes.set_ylim(-1.2, 1.25)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.axis("off")
