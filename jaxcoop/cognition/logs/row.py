"""8.1: the quantities of the results table straight from the arrays of an episode."""

import numpy as np

from jaxcoop.cognition.logs.episode import EpisodeLog, exact_scores
from jaxcoop.cognition.logs.vocabulary import agent_name
from jaxcoop.cognition.metrics import attempt_rates, make_row
from jaxcoop.cognition.metrics.decisions import Timelines
from jaxcoop.cognition.metrics.rows import Row


def log_row(log: EpisodeLog) -> Row:
    """The row of an episode, equal to what `metrics.read_row` finds in its exported files."""
    process = log.process
    is_event = process.task >= 0
    return make_row(
        score=total_score(log),
        steps=log.env_steps,
        agents=log.agents,
        plans=len(log.plans.seq),
        messages=len(log.messages.seq),
        timelines=timelines(log),
        rates=attempt_rates(exact_scores(process)[is_event], process.success[is_event]),
    )


def total_score(log: EpisodeLog) -> float:
    """Score of the team at the end."""
    return float(log.process.score[-1]) if log.env_steps else 0.0


def timelines(log: EpisodeLog) -> Timelines:
    """The changes of stages in the form that the measures take."""
    line = log.timeline
    return Timelines(
        names=tuple(map(agent_name, range(log.agents))),
        agent=line.agent.astype(np.int64),
        seconds=line.time_ms / 1000,
        step=line.env_step.astype(np.int64),
        stage=line.stage.astype(np.int64),
    )
