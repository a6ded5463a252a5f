"""The figures of the dining-philosophers study, drawn from rows of cells.

Every function takes rows (any naming that `jaxcoop.report.cells` knows), leaves out cells that are missing
and says so in the small print, and returns a matplotlib figure, or None when nothing can be compared.  Cells that
differ from the study's in more than a figure tells are not drawn (`dpbench_cells.study_rows`).  Source of the
selection: section 13 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxcoop.report import style
from jaxcoop.report.cells import Row, find, models
from jaxcoop.report.dpbench_cells import BASE, WILSON, ablated_model, left_out, select, sizes, study_rows
from jaxcoop.report.dpbench_marks import (
    draw_bars,
    draw_circular_wait,
    draw_dot,
    draw_groups,
    draw_model_dots,
    groups_width,
    readings_differ,
)
from jaxcoop.report.dpbench_sequential import sequential_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Iterable[Mapping[str, Any]]

PROMPTS = ("minimal", "default", "theory_of_mind", "symmetry_breaking", "resource_ordering")
ROUNDS = (0, 1, 3, 5)
GROUP_SIZES = (5, 10)
MODES = ("simultaneous", "sequential")
_WIDEST = 8.5  # inches of panels side by side


class _Panel(NamedTuple):
    """A part of a figure."""

    title: str
    inches: float  # that its labels need
    draw: Callable[[Any], None]  # into axes


def rounds_figure(rows: Rows, model: str | None = None) -> "Figure | None":
    """Figure 1: the circular wait as a graph, and the deadlock rate with 0 and 3 discussion rounds.

    None unless both rates are there: the graph alone shows no result, and the base cell stands in figure 2.
    """
    rows = study_rows(rows)
    model = model or ablated_model(rows)
    bars, missing = select(rows, model, [(str(k), {"communication_rounds": k}) for k in (0, 3)])
    if missing:
        return None
    with style.styled():
        figure = style.new_figure(5.6, 2.9)
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        draw_circular_wait(left)
        left.set_title("a  Circular wait")
        draw_bars(right, bars, xlabel="discussion rounds")
        right.set_title("b  Deadlock rate")
        style.note(figure, [f"Model: {model}.", WILSON, sizes(row for _, row in bars)])
    return figure


def models_figure(rows: Rows) -> "Figure | None":
    """Figure 2: deadlock rate of every model, simultaneous beside sequential (N = 5, no communication).

    In sequential mode an open diamond adds the episodes that ended in a circular wait without being reported
    (7.2).
    """
    rows = study_rows(rows)
    panels: list[dict[str, Row]] = []
    for mode in MODES:
        found = {name: find(rows, **{**BASE, "mode": mode, "model": name}) for name in models(rows)}
        panels.append({n: row for n, row in found.items() if row and row.get("deadlock_rate") is not None})
    names = [name for name in models(rows) if any(name in panel for panel in panels)]
    if not names:
        return None
    names.sort(key=lambda n: panels[0][n]["deadlock_rate"] if n in panels[0] else -1.0)
    missing = [f"{n} ({mode})" for n in names for mode, panel in zip(MODES, panels) if n not in panel]
    with style.styled():
        figure = style.new_figure(6.4, 1.75 + 0.26 * len(names))
        for axes, mode, panel, letter in zip(figure.subplots(1, 2, sharey=True), MODES, panels, "ab"):
            draw_model_dots(axes, names, panel, sequential=mode == "sequential")
            axes.set_title(f"{letter}  {mode.capitalize()}", pad=16)
        open_mark = any(readings_differ(row) for row in panels[1].values())
        style.note(
            figure,
            [
                WILSON,
                "Open diamonds: all circular waits, also those the reference does not report." if open_mark else "",
                sizes(row for panel in panels for row in panel.values()),
                left_out(missing),
            ],
        )
    return figure


def ablations_figure(rows: Rows, model: str | None = None, group_sizes: Sequence[int] = GROUP_SIZES) -> "Figure | None":
    """Figure 3: deadlock rate by prompt, by discussion rounds (both of one model), and by group size.

    Group sizes are shown for every model that has cells of at least two of `group_sizes`.
    """
    rows = study_rows(rows)
    model = model or ablated_model(rows)
    prompts, no_prompts = select(rows, model, [(p.replace("_", "\n"), {"prompt": p}) for p in PROMPTS])
    rounds, no_rounds = select(rows, model, [(str(k), {"communication_rounds": k}) for k in ROUNDS])
    groups: dict[str, list[tuple[str, Row]]] = {}
    no_groups: list[str] = []
    for name in models(rows):
        bars, absent = select(rows, name, [(str(n), {"philosophers": n}) for n in group_sizes])
        # One size alone compares nothing.
        if len(bars) > 1:
            groups[name] = bars
        if absent and bars:
            no_groups.append(f"{name} with N = {', '.join(absent)}")
    # The base cell alone is no ablation.
    panels: list[_Panel] = []
    if len(prompts) > 1:
        panels.append(_Panel("Prompt", 0.58 * len(prompts), partial(draw_bars, bars=prompts, label_size=6.5)))
    if len(rounds) > 1:
        panels.append(
            _Panel("Rounds", max(1.2, 0.42 * len(rounds)), partial(draw_bars, bars=rounds, xlabel="discussion rounds"))
        )
    of_one_model = len(panels)
    panels += _group_panels(groups)
    if not panels:
        return None
    missing = [f"prompt {p}" for p in no_prompts] if len(prompts) > 1 else ["all prompts"]
    missing += [f"{k} {'round' if k == '1' else 'rounds'}" for k in no_rounds] if len(rounds) > 1 else ["rounds"]
    missing += no_groups if groups else ["group sizes"]
    with style.styled():
        figure = _panel_figure(panels)
        whose = "Model" if of_one_model == len(panels) else f"Model of {' and '.join('ab'[:of_one_model])}"
        used = [row for _, row in (*prompts, *rounds)] + [row for bars in groups.values() for _, row in bars]
        style.note(figure, [f"{whose}: {model}." if of_one_model else "", WILSON, sizes(used), left_out(missing)])
    return figure


def _group_panels(groups: Mapping[str, Sequence[tuple[str, Row]]]) -> list[_Panel]:
    """One panel, or several of about as many models each where the page is too narrow; none without groups."""
    names = list(groups)
    if not names:
        return []
    size = math.ceil(len(names) / math.ceil(groups_width(groups) / _WIDEST))
    panels = []
    for start in range(0, len(names), size):
        part = {name: groups[name] for name in names[start : start + size]}
        title = "Group size (continued)" if start else "Group size"
        panels.append(_Panel(title, groups_width(part), partial(draw_groups, groups=part, xlabel="philosophers")))
    return panels


def _panel_figure(panels: Sequence[_Panel]) -> "Figure":
    """The panels in their order, in as many rows as the width of a page asks for."""
    lines: list[list[tuple[str, _Panel]]] = [[]]
    for letter, panel in zip(ascii_lowercase, panels):
        title = f"{letter}  {panel.title}" if len(panels) > 1 else panel.title
        if lines[-1] and sum(p.inches for _, p in lines[-1]) + panel.inches > _WIDEST:
            lines.append([])
        lines[-1].append((title, panel))
    widths = [sum(panel.inches for _, panel in line) + 0.25 * len(line) for line in lines]
    figure = style.new_figure(max(3.0, 0.5 + max(widths)), 0.3 + 2.7 * len(lines))
    for part, line in zip(figure.subfigures(len(lines), 1, squeeze=False)[:, 0], lines):
        ratios = [panel.inches for _, panel in line]
        grid = part.subplots(1, len(line), width_ratios=ratios, squeeze=False, sharey=True)[0]
        for axes, (title, panel) in zip(grid, line):
            panel.draw(axes)
            axes.set_title(title)
            if axes is not grid[0]:
                axes.set_ylabel("")
    return figure


def memory_figure(rows: Rows, model: str | None = None) -> "Figure | None":
    """Figure A1: deadlock rate with memory windows, against the baseline without memory."""
    rows = study_rows(rows)
    model = model or ablated_model(rows)
    wanted = [
        ("baseline", {}),
        ("memory 3", {"memory_window": 3}),
        ("memory 5", {"memory_window": 5}),
        ("memory 3\n+ messages", {"memory_window": 3, "communication_rounds": 1}),
    ]
    dots, missing = select(rows, model, wanted)
    if not any(row["memory_window"] for _, row in dots):
        return None
    with style.styled():
        figure = style.new_figure(3.6, 2.7)
        axes = figure.subplots()
        if dots[0][0] == "baseline":
            axes.axhline(dots[0][1]["deadlock_rate"], color=style.GREY, linestyle=(0, (4, 3)), linewidth=0.9)
        for x, (_, row) in enumerate(dots):
            draw_dot(axes, x, row, "deadlock", vertical=True)
        axes.set_xticks(range(len(dots)), [label for label, _ in dots])
        axes.set_xlim(-0.5, len(dots) - 0.5)
        style.rate_axis(axes)
        axes.set_ylim(0, 1.02)
        axes.set_title("Memory")
        dashed = "Dashed: rate of the baseline." if dots[0][0] == "baseline" else ""
        style.note(figure, [f"Model: {model}.", WILSON, dashed, sizes(row for _, row in dots), left_out(missing)])
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
    rows (model, action, share) for the sequential figure.  A figure of an earlier call that these rows do not
    allow is removed, so that the folder never shows two results; other files stay.  Raises OSError when the folder
    cannot be written.
    """
    rows = list(rows)
    figures = {
        "figure1_rounds": rounds_figure(rows, model),
        "figure2_models": models_figure(rows),
        "figure3_ablations": ablations_figure(rows, model),
        "figureA1_memory": memory_figure(rows, model),
        "figureA3_sequential": sequential_figure(rows, action_shares),
    }
    written = {name: style.save(fig, folder, name, formats) for name, fig in figures.items() if fig is not None}
    for name in figures.keys() - written.keys():
        for suffix in formats:
            (folder / f"{name}.{suffix}").unlink(missing_ok=True)
    return written
