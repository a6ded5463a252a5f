"""What the process figures of COOP² draw: an episode by environment step, and the mean of several.

Axes: R target rows, T + 1 bins (bin t is environment step t; nothing has happened in bin 0), E attempt events, C = 3
scored constraints.  Numbers are sections of docs/coop2.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jaxcoop.cognition.logs import Check, EpisodeLog, Vocabulary
from jaxcoop.cognition.logs.episode import exact_scores
from jaxcoop.cognition.metrics import cube_label
from jaxcoop.cognition.types import SPEC
from jaxcoop.runs.statistics import Z_95

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Series:
    """One episode."""

    targets: tuple[str, ...]  # labels of the R rows, top to bottom
    agents: int
    focus: Floats  # [R, T + 1] agents whose plan aims at the target
    event_step: Ints  # [E]
    scores: Floats  # [E, C]
    score: Floats  # [T + 1] of the team
    repairs: tuple[int, ...]  # distinct steps before the end at which a repair began

    @property
    def end(self) -> int:
        """T: steps that were made."""
        return len(self.score) - 1


@dataclass(frozen=True)
class Average:
    """Several episodes of one condition; bins up to the longest one's end."""

    targets: tuple[str, ...]
    agents: int
    runs: int
    focus: Floats  # [R, T + 1] mean over the runs that have not ended
    satisfied: Floats  # [C, T + 1] mean score of all events of the step, at most 1; NaN without events
    score: Floats  # [T + 1] mean; a run that has ended keeps its score
    band: Floats  # [T + 1] half width of 95 %
    end: float  # mean of the ends


def series_of(log: EpisodeLog, vocabulary: Vocabulary) -> Series:
    """The series of an episode; focuses that are none of the vocabulary's targets are not counted."""
    process, steps = log.process, log.env_steps
    focus = np.zeros((len(vocabulary.targets), steps + 1))
    rows = {name: row for row, name in enumerate(vocabulary.targets)}
    specs = {key: log.plans.spec[k] for k, key in enumerate(zip(log.plans.agent.tolist(), log.plans.plan_id.tolist()))}
    for t in range(steps):
        for agent in range(log.agents):
            spec = specs.get((agent, int(process.plan[t, agent])), np.full(SPEC, -1))
            name = vocabulary.focus(spec.tolist(), process.op[t, agent].tolist(), int(process.target_kind[t, agent]))
            if name in rows:
                focus[rows[name], t + 1] += 1
    step, row = np.nonzero(process.task >= 0)
    opened = log.repairs.env_step[log.repairs.check == Check.REPAIRED]
    return Series(
        targets=tuple(map(cube_label, vocabulary.targets)) if vocabulary.profile == "cube" else vocabulary.targets,
        agents=log.agents,
        focus=focus,
        event_step=step + 1,
        scores=exact_scores(process)[step, row],
        score=np.concatenate([np.zeros(1), process.score.astype(np.float64)]),
        repairs=tuple(sorted({int(at) for at in opened if at < steps})),
    )


def shown_score(scores: Floats) -> Floats:
    """9: a constraint score as its colour shows it, 0 to 1."""
    return np.clip(scores, 0.0, 1.0)


def average(runs: Sequence[Series]) -> Average:
    """The mean of episodes.  Raises ValueError without any, or if their teams or targets differ."""
    if not runs:
        raise ValueError("there is no run to average; give at least one")
    kinds = {(run.targets, run.agents) for run in runs}
    if len(kinds) > 1:
        raise ValueError(f"runs of {len(kinds)} different worlds or team sizes cannot be averaged; give those of one")
    ends = np.array([run.end for run in runs])
    bins = int(ends.max()) + 1
    focus, active = np.zeros((len(runs[0].targets), bins)), np.zeros(bins)
    score = np.empty((len(runs), bins))
    for number, run in enumerate(runs):
        focus[:, : run.end + 1] += run.focus
        active[: run.end + 1] += 1
        score[number] = run.score[np.minimum(np.arange(bins), run.end)]
    deviation = score.std(0, ddof=1) if len(runs) > 1 else np.zeros(bins)
    return Average(
        targets=runs[0].targets,
        agents=runs[0].agents,
        runs=len(runs),
        focus=focus / active,
        satisfied=_satisfied(runs, bins),
        score=score.mean(0),
        band=Z_95 * deviation / np.sqrt(len(runs)),
        end=float(ends.mean()),
    )


def _satisfied(runs: Sequence[Series], bins: int) -> Floats:
    step = np.concatenate([run.event_step for run in runs])
    scores = shown_score(np.concatenate([run.scores for run in runs]))
    count = np.bincount(step, minlength=bins)
    sums = np.stack([np.bincount(step, column, bins) for column in scores.T])
    return np.where(count > 0, sums / np.maximum(count, 1), np.nan)
