"""The timeline of stages: what every agent does on the cognitive clock, and when the world moves.

Source: section 9 of docs/coop2.md.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxcoop.cognition.logs import EpisodeLog, agent_name
from jaxcoop.cognition.types import Ended, PlanStatus, Stage
from jaxcoop.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_AGENTS = 12
"""Rows that a figure shows unless agents are named."""

STAGE_COLORS = {
    Stage.REASONING: style.ORANGE,
    Stage.WAITING: style.PALE,
    Stage.EXECUTING: style.GREEN,
    Stage.INTERRUPTED: style.RED,
}
_SENT, _RECEIVED = "#7B4EA8", style.BLUE
_SIGNS = {PlanStatus.SUCCESS: "✓", PlanStatus.FAILED: "✗", PlanStatus.INTERRUPTED: "↺"}
_UNFINISHED = "…"
_STEP_TICKS = 12
_WIDTH = 7.4  # inches
_LETTER = 0.045  # inches that a letter of a plan's label takes


def timeline_figure(log: EpisodeLog, agents: Sequence[int] | None = None, title: str = "") -> "Figure":
    """The first agents of an episode, or those that are named.  Raises ValueError for an agent that there is not."""
    shown = list(range(min(log.agents, MOST_AGENTS))) if agents is None else list(agents)
    for agent in shown:
        if not 0 <= agent < log.agents:
            raise ValueError(f"agent {agent} is not in the team; give numbers from 0 to {log.agents - 1}")
    end = max(log.end_ms, 1) / 1000
    with style.styled():
        figure = style.new_figure(_WIDTH, 1.5 + 0.46 * len(shown))
        axes = figure.subplots()
        axes.set_xlim(0, end)
        axes.set_ylim(len(shown) + 0.6, -0.6)
        _draw_world(axes, log, end)
        for row, agent in enumerate(shown, start=1):
            _draw_stages(axes, log, agent, row, end)
            _draw_plans(axes, log, agent, row, end)
            _draw_mail(axes, log, agent, row)
        axes.set_yticks(range(len(shown) + 1), ["environment", *map(agent_name, shown)])
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("cognitive clock [s]")
        axes.set_title(title)
        _step_axis(axes, log, end)
        _legend(figure)
        left_out = log.agents - len(shown)
        style.note(
            figure,
            [
                "Top: green while the environment steps.",
                "Boxes: plans with their number; ✓ succeeded, ✗ failed, ↺ replaced, … cut off by the end.",
                f"{left_out} more agents are not shown." if left_out else "",
            ],
        )
    return figure


def stage_bars(log: EpisodeLog, agent: int, end: float) -> Iterator[tuple[float, float, Stage]]:
    """Start, length and stage of an agent's entries in seconds; the last one goes on to the end."""
    rows = np.flatnonzero(log.timeline.agent == agent)
    rows = rows[np.argsort(log.timeline.seq[rows], kind="stable")]
    starts = log.timeline.time_ms[rows] / 1000
    for start, stop, stage in zip(starts, [*starts[1:], max(end, *starts[-1:])], log.timeline.stage[rows]):
        yield float(start), float(stop - start), Stage(int(stage))


def stepping_spans(log: EpisodeLog) -> list[tuple[float, float]]:
    """Start and end, in seconds, of every time in which all agents execute; equal where steps take no time."""
    line = log.timeline
    stage = np.full(log.agents, -1)
    spans: list[tuple[float, float]] = []
    began: float | None = None
    for row in np.argsort(line.seq, kind="stable"):
        stage[line.agent[row]] = line.stage[row]
        now = float(line.time_ms[row]) / 1000
        if (stage == Stage.EXECUTING).all():
            began = now if began is None else began
        elif began is not None:
            spans.append((began, now))
            began = None
    return [*spans, (began, max(began, log.end_ms / 1000))] if began is not None else spans


def _draw_world(axes: "Axes", log: EpisodeLog, end: float) -> None:
    """The top bar: green while the world moves, pale while it waits."""
    axes.barh(0, end, 0.5, color=style.PALE, linewidth=0)
    for start, stop in stepping_spans(log):
        # A step that takes no time is still seen, as a line.
        axes.barh(0, stop - start, 0.5, start, color=style.GREEN, edgecolor=style.GREEN, linewidth=0.7)


def _draw_stages(axes: "Axes", log: EpisodeLog, agent: int, row: int, end: float) -> None:
    for start, length, stage in stage_bars(log, agent, end):
        axes.barh(row - 0.12, length, 0.28, start, color=STAGE_COLORS[stage], linewidth=0)


def _draw_plans(axes: "Axes", log: EpisodeLog, agent: int, row: int, end: float) -> None:
    """A box for each closed plan, with its number and its end where there is room."""
    plans = log.plans
    inches = _WIDTH * 0.8 / end
    for k in np.flatnonzero(plans.agent == agent):
        start, stop = plans.created_ms[k] / 1000, plans.end_ms[k] / 1000
        sign = _SIGNS.get(PlanStatus(int(plans.status[k])), "")
        if plans.reason[k] == Ended.EPISODE_ENDED:
            sign = _UNFINISHED
        axes.barh(row + 0.2, stop - start, 0.26, start, color="white", edgecolor=style.GREY, linewidth=0.6)
        for label in (f"{int(plans.plan_id[k])}{sign}", sign):
            if len(label) * _LETTER < (stop - start) * inches:
                axes.text((start + stop) / 2, row + 0.21, label, ha="center", va="center", fontsize=5.5)
                break


def _draw_mail(axes: "Axes", log: EpisodeLog, agent: int, row: int) -> None:
    mail = log.messages
    for chosen, color, top in (
        (mail.sender == agent, _SENT, row - 0.5),
        (mail.recipients[:, agent], _RECEIVED, row - 0.38),
    ):
        times = mail.time_ms[chosen] / 1000
        axes.vlines(times, top, top + 0.11, color=color, linewidth=1.0, zorder=3)


def _step_axis(axes: "Axes", log: EpisodeLog, end: float) -> None:
    """The steps of the world above, at the times at which they were first seen."""
    times, first = np.unique(log.timeline.env_step, return_index=True)[0], []
    for step in times:
        first.append(float(log.timeline.time_ms[log.timeline.env_step == step].min()) / 1000)
    above = axes.secondary_xaxis("top")
    kept: list[int] = []
    for k, at in enumerate(first):
        if not kept or at - first[kept[-1]] > end / _STEP_TICKS / 1.5:
            kept.append(k)
    above.set_xticks([first[k] for k in kept], [str(int(times[k])) for k in kept], fontsize=6.5)
    above.set_xlabel("environment step", fontsize=7)


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(color=color, label=stage.name.lower()) for stage, color in STAGE_COLORS.items()
    ]
    handles += [Line2D([], [], color=color, linewidth=1.2, label=label) for color, label in
                ((_SENT, "message sent"), (_RECEIVED, "message received"))]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=6, handlelength=1.2, columnspacing=1.2)
