"""The figures of the dining-philosophers study, drawn from rows of cells.

Every function takes rows (any naming that `jaxcoop.report.cells` knows), leaves out cells that are missing
and says so in the small print, and returns a matplotlib figure, or None when nothing can be drawn. Source of
the selection: section 13 of the DPBench behaviour notes, docs/environments/dining.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxcoop.report import style
from jaxcoop.report.cells import Row, find, models, standard_rows
from jaxcoop.report.dpbench_sequential import sequential_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Iterable[Mapping[str, Any]]

# 13: the condition that all ablations start from.
BASE = {
    "mode": "simultaneous",
    "philosophers": 5,
    "communication_rounds": 0,
    "memory_window": 0,
    "prompt": "default",
}
PROMPTS = ("minimal", "default", "theory_of_mind", "symmetry_breaking", "resource_ordering")
ROUNDS = (0, 1, 3, 5)
GROUP_SIZES = (5, 10)
FAILURE, SUCCESS = 0.5, 0.25  # shaded zones of the cross-model figure
_WILSON = "Whiskers: 95 % Wilson intervals."


def rounds_figure(rows: Rows, model: str | None = None) -> "Figure | None":
    """Figure 1: the circular wait as a graph, and the deadlock rate with 0 and 3 discussion rounds."""
    rows = standard_rows(rows)
    model = model or _ablated_model(rows)
    bars, missing = _select(rows, model, [(str(k), {"communication_rounds": k}) for k in (0, 3)])
    if not bars:
        return None
    with style.styled():
        figure = style.new_figure(5.6, 2.9)
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _draw_circular_wait(left)
        _draw_bars(right, bars, xlabel="discussion rounds")
        right.set_title("b  Deadlock rate")
        style.note(figure, [f"Model: {model}.", _WILSON, _sizes(row for _, row in bars), _left_out(missing)])
    return figure


def models_figure(rows: Rows) -> "Figure | None":
    """Figure 2: deadlock rate of every model, simultaneous beside sequential (N = 5, no communication).

    In sequential mode an open diamond adds the episodes that ended in a circular wait without being reported
    (7.2).
    """
    rows = standard_rows(rows)
    names = models(rows)
    panels = []
    for mode in ("simultaneous", "sequential"):
        found = {name: find(rows, **{**BASE, "mode": mode, "model": name}) for name in names}
        panels.append({n: row for n, row in found.items() if row and row.get("deadlock_rate") is not None})
    names = [name for name in names if any(name in panel for panel in panels)]
    if not names:
        return None
    names.sort(key=lambda n: panels[0][n]["deadlock_rate"] if n in panels[0] else -1.0)
    missing = [f"{n} ({m})" for n in names for m, p in zip(("simultaneous", "sequential"), panels) if n not in p]
    with style.styled():
        figure = style.new_figure(6.4, 1.75 + 0.26 * len(names))
        for axes, mode, panel, letter in zip(
            figure.subplots(1, 2, sharey=True), ("Simultaneous", "Sequential"), panels, "ab"
        ):
            _draw_model_dots(axes, names, panel, sequential=mode == "Sequential")
            axes.set_title(f"{letter}  {mode}", pad=16)
        open_mark = any("true_deadlock_rate" in row and _differs(row) for row in panels[1].values())
        style.note(
            figure,
            [
                _WILSON,
                "Open diamonds: all circular waits, also those the reference does not report." if open_mark else "",
                _sizes(row for panel in panels for row in panel.values()),
                _left_out(missing),
            ],
        )
    return figure


def ablations_figure(rows: Rows, model: str | None = None, group_sizes: Sequence[int] = GROUP_SIZES) -> "Figure | None":
    """Figure 3: deadlock rate by prompt, by discussion rounds (both of one model), and by group size.

    Group sizes are shown for every model that has cells of at least two of `group_sizes`.
    """
    rows = standard_rows(rows)
    model = model or _ablated_model(rows)
    prompts, no_prompts = _select(rows, model, [(p.replace("_", "\n"), {"prompt": p}) for p in PROMPTS])
    rounds, no_rounds = _select(rows, model, [(str(k), {"communication_rounds": k}) for k in ROUNDS])
    groups: dict[str, list[tuple[str, Row]]] = {}
    no_groups: list[str] = []
    for name in models(rows):
        bars, absent = _select(rows, name, [(str(n), {"philosophers": n}) for n in group_sizes])
        # One size alone compares nothing.
        if len(bars) > 1:
            groups[name] = bars
        if absent and bars:
            no_groups.append(f"{name} with N = {', '.join(absent)}")
    # The base cell alone is no ablation.
    panels: list[tuple[str, float, Callable[[Axes], None]]] = []  # title, inches, drawing
    if len(prompts) > 1:
        width = 0.58 * len(prompts)
        panels.append(("Prompt", width, lambda axes: _draw_bars(axes, prompts, label_size=6.5)))
    if len(rounds) > 1:
        width = 0.42 * len(rounds)
        panels.append(("Rounds", width, lambda axes: _draw_bars(axes, rounds, xlabel="discussion rounds")))
    whose = f"Model of {' and '.join('ab'[: len(panels)])}: {model}." if panels else ""
    if groups:
        panels.append(("Group size", 0.9 * len(groups) + 0.3, lambda axes: _draw_groups(axes, groups)))
    if not panels:
        return None
    missing = [f"prompt {p.replace(chr(10), ' ')}" for p in no_prompts] if len(prompts) > 1 else ["all prompts"]
    missing += [f"{k} rounds" for k in no_rounds] if len(rounds) > 1 else ["rounds"]
    missing += no_groups if groups else ["group sizes"]
    with style.styled():
        widths = [width for _, width, _ in panels]
        figure = style.new_figure(max(3.0, 0.6 + sum(widths)), 3.0)
        grid = figure.subplots(1, len(panels), width_ratios=widths, squeeze=False, sharey=True)[0]
        for axes, (title, _, draw), letter in zip(grid, panels, "abc"):
            draw(axes)
            axes.set_title(f"{letter}  {title}")
            if axes is not grid[0]:
                axes.set_ylabel("")
        used = [row for _, row in (*prompts, *rounds)] + [row for bars in groups.values() for _, row in bars]
        style.note(figure, [whose, _WILSON, _sizes(used), _left_out(missing)])
    return figure


def memory_figure(rows: Rows, model: str | None = None) -> "Figure | None":
    """Figure A1: deadlock rate with memory windows, against the baseline without memory."""
    rows = standard_rows(rows)
    model = model or _ablated_model(rows)
    wanted = [
        ("baseline", {}),
        ("memory 3", {"memory_window": 3}),
        ("memory 5", {"memory_window": 5}),
        ("memory 3\n+ messages", {"memory_window": 3, "communication_rounds": 1}),
    ]
    dots, missing = _select(rows, model, wanted)
    if not any(row["memory_window"] for _, row in dots):
        return None
    with style.styled():
        figure = style.new_figure(3.6, 2.7)
        axes = figure.subplots()
        if dots[0][0] == "baseline":
            axes.axhline(dots[0][1]["deadlock_rate"], color=style.GREY, linestyle=(0, (4, 3)), linewidth=0.9)
        for x, (_, row) in enumerate(dots):
            _draw_dot(axes, x, row, "deadlock", vertical=True)
        axes.set_xticks(range(len(dots)), [label for label, _ in dots])
        axes.set_xlim(-0.5, len(dots) - 0.5)
        style.rate_axis(axes)
        axes.set_ylim(0, 1.02)
        axes.set_title("Memory")
        dashed = "Dashed: rate of the baseline." if dots[0][0] == "baseline" else ""
        style.note(
            figure,
            [f"Model: {model}.", _WILSON, dashed, _sizes(row for _, row in dots), _left_out(missing)],
        )
    return figure


def write_figures(
    rows: Rows,
    folder: Path,
    *,
    model: str | None = None,
    action_shares: Rows = (),
    formats: Sequence[str] = ("pdf", "png"),
) -> dict[str, list[Path]]:
    """Draw all figures that `rows` allow into `folder`; returns the written files by figure name.

    `model` is the one whose ablations are shown (default: the one with most of them); `action_shares` are
    rows (model, action, share) for the sequential figure.  Raises OSError when the folder cannot be written.
    """
    rows = standard_rows(rows)
    figures = {
        "figure1_rounds": rounds_figure(rows, model),
        "figure2_models": models_figure(rows),
        "figure3_ablations": ablations_figure(rows, model),
        "figureA1_memory": memory_figure(rows, model),
        "figureA3_sequential": sequential_figure(rows, action_shares),
    }
    return {name: style.save(fig, folder, name, formats) for name, fig in figures.items() if fig is not None}


# Selecting


def _ablated_model(rows: list[Row]) -> str | None:
    """The model with the most simultaneous cells; the first met of equals."""
    cells = [str(row["model"]) for row in rows if row.get("mode") == "simultaneous"]
    return max(models(rows), key=cells.count, default=None)


def _select(
    rows: list[Row], model: str | None, wanted: Sequence[tuple[str, dict[str, Any]]]
) -> tuple[list[tuple[str, Row]], list[str]]:
    """(label, row) of each wanted change of the base condition that has a rate; labels of the others."""
    found, missing = [], []
    for label, change in wanted:
        row = find(rows, **{**BASE, "model": model, **change})
        if row is not None and row.get("deadlock_rate") is not None:
            found.append((label, row))
        else:
            missing.append(label.replace("\n", " "))
    return found, missing


def _sizes(rows: Iterable[Row]) -> str:
    counts = sorted({row["episodes"] for row in rows if row.get("episodes")})
    if not counts:
        return ""
    span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{span} episodes per cell."


def _left_out(missing: Sequence[str]) -> str:
    return f"Left out, no data: {'; '.join(missing)}." if missing else ""


def _differs(row: Row) -> bool:
    return not math.isclose(row["true_deadlock_rate"], row["deadlock_rate"], abs_tol=1e-12)


# Drawing


def _whisker(row: Row, name: str) -> tuple[list[float], list[float]] | None:
    rate, low, high = (row.get(f"{name}_{end}") for end in ("rate", "low", "high"))
    if rate is None or low is None or high is None:
        return None
    return [max(0.0, rate - low)], [max(0.0, high - rate)]


def _draw_bars(axes: "Axes", bars: Sequence[tuple[str, Row]], xlabel: str = "", label_size: float = 7.5) -> None:
    for x, (_, row) in enumerate(bars):
        _draw_bar(axes, x, row)
    axes.set_xticks(range(len(bars)), [label for label, _ in bars], fontsize=label_size)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    axes.set_xlabel(xlabel)
    style.rate_axis(axes)


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
    axes.text(x, top + 0.03, f"{100 * rate:.0f} %", ha="center", va="bottom", fontsize=7, bbox=ground)


def _draw_groups(axes: "Axes", groups: dict[str, list[tuple[str, Row]]]) -> None:
    ticks, labels = [], []
    x = 0.0
    for name, bars in groups.items():
        for label, row in bars:
            _draw_bar(axes, x, row)
            ticks.append(x)
            labels.append(label)
            x += 0.8
        middle = (ticks[-len(bars)] + ticks[-1]) / 2
        axes.annotate(
            style.wrapped(name), (middle, 0), (0, -17), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="top", fontsize=7,
        )  # fmt: skip
        x += 0.9
    axes.set_xticks(ticks, labels)
    axes.set_xlim(-0.7, ticks[-1] + 0.7)
    lines = max(style.wrapped(name).count("\n") for name in groups) + 1
    axes.set_xlabel("philosophers", labelpad=4 + 9 * lines)
    style.rate_axis(axes)


def _draw_dot(axes: "Axes", at: float, row: Row, name: str, *, vertical: bool, hollow: bool = False) -> None:
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


def _draw_model_dots(axes: "Axes", names: Sequence[str], panel: dict[str, Row], *, sequential: bool) -> None:
    axes.axvspan(FAILURE, 1, color=style.RED, alpha=0.10, linewidth=0)
    axes.axvspan(0, SUCCESS, color=style.GREEN, alpha=0.10, linewidth=0)
    for x, text, color in (((1 + FAILURE) / 2, "failure", style.RED), (SUCCESS / 2, "success", style.GREEN)):
        axes.text(
            x,
            1.01,
            text,
            color=color,
            ha="center",
            va="bottom",
            fontsize=7,
            transform=axes.get_xaxis_transform(),
        )
    for y, name in enumerate(names):
        row = panel.get(name)
        if row is None:
            axes.text(0.5, y, "no data", color=style.GREY, ha="center", va="center", fontsize=7)
            continue
        both = sequential and row.get("true_deadlock_rate") is not None and _differs(row)
        _draw_dot(axes, y + (0.16 if both else 0), row, "deadlock", vertical=False)
        if both:
            _draw_dot(axes, y - 0.16, row, "true_deadlock", vertical=False, hollow=True)
    axes.set_yticks(range(len(names)), [style.wrapped(name, 18) for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1"])
    axes.grid(axis="y", color=style.PALE, linewidth=0.5)
    axes.set_xlabel("deadlock rate")


def _draw_circular_wait(axes: "Axes", philosophers: int = 5) -> None:
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
    axes.set_title("a  Circular wait")
