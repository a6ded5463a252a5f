"""The sequential figure (A3): what the models did turn by turn, and how each episode ended.

Source: sections 7.2, 13 and 14 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxcoop.report import style
from jaxcoop.report.cells import Row, find, models
from jaxcoop.report.dpbench_cells import BASE, left_out, study_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACTIONS = ("grab_left", "grab_right", "release", "wait")
_SHADES = (style.BLUE, style.SKY, style.PURPLE, style.GREY)
_MOST_MODELS = 6
_LEAST = 0.02  # of the highest bar: a single episode among thousands still shows how it ended
_OUTCOMES = (
    ("deadlock, reported", style.RED),
    ("circular wait, not reported", style.ORANGE),
    ("ran to the horizon", style.BLUE),
)


def sequential_figure(
    rows: Iterable[Mapping[str, Any]],
    action_shares: Iterable[Mapping[str, Any]] = (),
    *,
    philosophers: int = 5,
) -> "Figure | None":
    """Figure A3: share of each action, and when and how the episodes of sequential cells ended.

    `action_shares` holds rows (model, action, share); a model's episodes come from its row with
    `episode_timesteps` and `episode_deadlock` (as reported).  Up to six models are shown; where there are
    shares, those that have some.
    """
    shares: dict[str, dict[str, float]] = {}
    for entry in action_shares:
        shares.setdefault(str(entry["model"]), {})[str(entry["action"]).lower()] = float(entry["share"])
    rows = study_rows(rows)
    cells = {}
    for name in models(rows):
        row = find(rows, **{**BASE, "model": name, "mode": "sequential", "philosophers": philosophers})
        if row is not None and row.get("episode_timesteps") is not None:
            cells[name] = row
    names = list(dict.fromkeys([*shares, *cells]))
    shown = names[:_MOST_MODELS] if not shares else list(shares)[:_MOST_MODELS]
    if not shown:
        return None
    with_cells = [name for name in shown if name in cells]
    missing = [f"episodes of {name}" for name in shown if name not in cells]
    missing += [] if shares else ["action shares"]
    with style.styled():
        figure = style.new_figure(6.4, max(2.2, 0.7 + 0.95 * max(len(with_cells), 1)) + 0.5)
        parts = figure.subfigures(1, int(bool(shares)) + int(bool(with_cells)), wspace=0.03, squeeze=False)[0]
        if shares:
            axes = parts[0].subplots()
            _draw_shares(axes, shown, shares)
            parts[0].legend(loc="outside lower center", ncols=2)
            _title(parts[0], "a  Actions" if with_cells else "Actions")
        if with_cells:
            _draw_outcomes(parts[-1], with_cells, cells)
            _title(parts[-1], ("b  " if shares else "") + "Episodes by their last timestep")
        others = len(names) - len(shown)
        style.note(
            figure,
            [
                f"Sequential mode, N = {philosophers}, no communication.",
                f"Models with episodes that are not shown: {others}." if others else "",
                left_out(missing),
            ],
        )
    return figure


def outcomes(row: Row) -> dict[int, Counter[int]]:
    """Episodes counted as timestep at the end -> outcome (0 reported, 1 circular wait unreported, 2 horizon).

    An unreported circular wait is told from the episode's column `episode_circular_wait`, or, without one,
    from its end before the horizon (`max_timesteps`, or else the longest episode); at the horizon itself it
    then counts as an ordinary end.
    """
    steps = [int(t) for t in row["episode_timesteps"]]
    reported = row.get("episode_deadlock")
    reported = [False] * len(steps) if reported is None else reported
    waits = row.get("episode_circular_wait")
    if waits is None:
        horizon = row.get("max_timesteps") or max(steps, default=0)
        waits = [t < horizon for t in steps]
    counts: dict[int, Counter[int]] = {}
    for t, is_reported, is_wait in zip(steps, reported, waits, strict=True):
        counts.setdefault(t, Counter())[0 if is_reported else 1 if is_wait else 2] += 1
    return counts


def _title(figure: Any, text: str) -> None:
    figure.suptitle(text, x=0.02, ha="left", fontsize=9, fontweight="bold")


def _draw_shares(axes: "Axes", names: Sequence[str], shares: dict[str, dict[str, float]]) -> None:
    for y, name in enumerate(reversed(names)):
        left = 0.0
        for action, color in zip(ACTIONS, _SHADES):
            share = shares[name].get(action, 0.0)
            axes.barh(y, share, 0.55, left=left, color=color, label=action.replace("_", " ") if y == 0 else None)
            if share >= 0.06:
                ink = "white" if color in (style.BLUE, style.GREY) else style.INK
                axes.text(
                    left + share / 2,
                    y,
                    f"{100 * share:.0f} %",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=ink,
                )
            left += share
    axes.set_yticks(range(len(names)), [style.wrapped(name, 16) for name in reversed(names)])
    axes.set_ylim(-0.5, len(names) - 0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_xlabel("% of decisions")


def _draw_outcomes(figure: Any, names: Sequence[str], cells: dict[str, Row]) -> None:
    grid = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    counts = {name: outcomes(cells[name]) for name in names}
    ends = sorted({t for by_end in counts.values() for t in by_end})
    width = 0.7 * min((b - a for a, b in itertools.pairwise(ends)), default=1)
    for axes, name in zip(grid, names):
        top = max(sum(by_outcome.values()) for by_outcome in counts[name].values())
        for t, by_outcome in counts[name].items():
            bottom = 0.0
            for number, (_, color) in enumerate(_OUTCOMES):
                if by_outcome[number]:
                    height = max(by_outcome[number], _LEAST * top)
                    axes.bar(t, height, width, bottom=bottom, color=color)
                    bottom += height
            axes.text(t, bottom, f"{sum(by_outcome.values()):,}", ha="center", va="bottom", fontsize=7)
        axes.set_ylim(0, 1.25 * top)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_title(name, fontsize=7.5, fontweight="normal", pad=2)
    grid[-1].set_xlabel("last timestep (turns)")
    grid[-1].set_xlim(min(0, min(ends) - width), max(ends) + width)
    if len(ends) <= 8:
        grid[-1].set_xticks(ends)
    present = {number for by_end in counts.values() for by_outcome in by_end.values() for number in by_outcome}
    for number, (label, color) in enumerate(_OUTCOMES):
        if number in present:
            grid[0].bar(0, 0, color=color, label=label)
    figure.legend(loc="outside lower center", ncols=2)
