"""8.2, decision overhead: how often and for how long agents decide and wait.

Axes: N entries of all timelines, one for each change of a stage.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcoop.cognition.metrics.profiles import Profile, mean_and_std
from jaxcoop.cognition.types import Stage

STAGE_NAMES = tuple(stage.name.lower() for stage in Stage)
"""Names of the stages in logs, by `Stage`."""

UNKNOWN = -1
"""Stage of a name that is none."""

DECIDING = (Stage.REASONING, Stage.INTERRUPTED)

COUNTED: dict[Profile, tuple[Stage, ...]] = {
    "cube": (Stage.REASONING, Stage.WAITING, Stage.INTERRUPTED),
    "macrafter": DECIDING,
}
"""Stages whose entries count as decisions."""


@dataclass(frozen=True)
class Timelines:
    """Entries of all agents; those of one agent are in the order of time."""

    names: tuple[str, ...]
    agent: NDArray[np.int64]  # [N] index into `names`
    seconds: NDArray[np.float64]  # [N]
    step: NDArray[np.int64]  # [N] env_step
    stage: NDArray[np.int64]  # [N] Stage, or UNKNOWN

    @classmethod
    def read(cls, states: Mapping[str, Iterable[Sequence[Any]]] | None) -> "Timelines":
        """From agent_states.json: agent -> entries of seconds, step, name of the stage."""
        states = states or {}
        codes = {name: code for code, name in enumerate(STAGE_NAMES)}
        rows = [
            (agent, seconds, step or 0, codes.get(stage, UNKNOWN))
            for agent, entries in enumerate(states.values())
            for seconds, step, stage in entries
        ]
        table = np.array(rows, np.float64).reshape(-1, 4)
        agent, step, stage = (table[:, k].astype(np.int64) for k in (0, 2, 3))
        return cls(tuple(states), agent, table[:, 1], step, stage)

    @cached_property
    def durations(self) -> NDArray[np.float64]:
        """[N] seconds until the same agent's next entry; 0 for its last one, which is still open."""
        order = np.argsort(self.agent, kind="stable")
        agent, seconds = self.agent[order], self.seconds[order]
        gap = np.zeros_like(seconds)
        follows = agent[1:] == agent[:-1]
        gap[:-1][follows] = (seconds[1:] - seconds[:-1])[follows]
        out = np.empty_like(gap)
        out[order] = gap
        return out

    def in_stages(self, stages: Iterable[Stage]) -> NDArray[np.bool_]:
        """[N] whether an entry opens one of the stages."""
        return np.isin(self.stage, [int(stage) for stage in stages])

    @property
    def decision_seconds(self) -> float:
        """Total Dec. (8.1)."""
        return float(self.durations[self.in_stages(DECIDING)].sum())

    @property
    def interruptions(self) -> int:
        """Intr. (8.1)."""
        return int(self.in_stages([Stage.INTERRUPTED]).sum())


def horizon(timelines: Timelines) -> int:
    """T: one more than the latest step of any entry, 1 without entries."""
    return int(timelines.step.max(initial=0)) + 1


def decision_overhead(timelines: Timelines, profile: Profile) -> dict[str, Any]:
    """Counts of decisions and times of deciding and waiting; empty without agents."""
    if not timelines.names:
        return {}
    steps, agents = horizon(timelines), len(timelines.names)
    counted = timelines.in_stages(COUNTED[profile])
    of_agent = np.bincount(timelines.agent[counted], minlength=agents)
    of_step = np.bincount(timelines.step[counted], minlength=steps)
    out: dict[str, Any] = {
        "D_i": dict(zip(timelines.names, of_agent.tolist())),
        "d_t": of_step.tolist(),
        "T": steps,
        "D_delta": float(of_step.sum() / steps),
        "D_std": mean_and_std(of_agent)[1],
    }
    for name, stages in (("decision", DECIDING), ("wait", (Stage.WAITING,))):
        chosen = timelines.in_stages(stages)
        spent = timelines.durations[chosen]
        per_agent = np.bincount(timelines.agent[chosen], spent, agents)
        mean, std = mean_and_std(per_agent)
        out |= {
            f"{name}_time_per_agent": dict(zip(timelines.names, per_agent.tolist())),
            f"{name}_time_per_step": np.bincount(timelines.step[chosen], spent, steps).tolist(),
            f"{name}_time_avg": mean,
            f"{name}_time_std": std,
        }
    return out
