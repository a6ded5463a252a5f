"""8.1: the quantities of an episode that the results table shows."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxcoop.cognition.metrics.attempts import CONSTRAINTS, rates_of
from jaxcoop.cognition.metrics.attempts_cube import cube_events
from jaxcoop.cognition.metrics.attempts_macrafter import macrafter_events
from jaxcoop.cognition.metrics.decisions import Timelines
from jaxcoop.cognition.metrics.profiles import Profile, checked, mapping, number, share, whole

Row = dict[str, float]

QUANTITIES = (
    "score",
    "steps",
    "score_per_step",
    "plans_per_agent",
    "messages",
    "interruptions",
    "total_decision_time",
    *(f"{name}_violation_rate" for name in CONSTRAINTS),
)
"""Keys of a row in the order of the table: the eight quantities, the last one by constraint."""

_CUBE_SCORES = ("total_score", "score", "team_score")


def make_row(
    *,
    score: float,
    steps: int,
    agents: int,
    plans: int,
    messages: int,
    timelines: Timelines,
    rates: Mapping[str, float],
) -> Row:
    """The row of an episode from its counts; `rates` are those of `attempt_rates`."""
    return {
        "score": score,
        "steps": steps,
        "score_per_step": share(score, steps),
        "total_plans": plans,
        "plans_per_agent": share(plans, agents),
        "messages": messages,
        "interruptions": timelines.interruptions,
        "total_decision_time": timelines.decision_seconds,
        **rates,
    }


def read_row(
    *,
    profile: str,
    agents: int,
    metrics: Mapping[str, Any],
    team_score: Mapping[str, Any],
    plan_logs: Mapping[str, Any],
    agent_states: Mapping[str, Any],
    process_log: Sequence[Mapping[str, Any]],
) -> Row:
    """The row of a run from the contents of its JSON files."""
    kind = checked(profile)
    events = cube_events(process_log) if kind == "cube" else macrafter_events(process_log)
    return make_row(
        score=_score(kind, team_score, metrics),
        steps=_steps(kind, team_score, metrics, process_log),
        agents=agents,
        plans=len(plan_logs.get("plan_history") or ()),
        messages=whole(mapping(metrics.get("communication")).get("L_tot")),
        timelines=Timelines.read(agent_states),
        rates=rates_of(events),
    )


def _score(kind: Profile, team_score: Mapping[str, Any], metrics: Mapping[str, Any]) -> float:
    if kind == "cube":
        return number(next((team_score[name] for name in _CUBE_SCORES if name in team_score), 0))
    return number(team_score.get("total_score") or mapping(metrics.get("team_score")).get("total_score"))


def _steps(
    kind: Profile, team_score: Mapping[str, Any], metrics: Mapping[str, Any], process_log: Sequence[Mapping[str, Any]]
) -> int:
    if kind == "macrafter":
        return whole(team_score.get("current_step") or mapping(metrics.get("team_score")).get("current_step"))
    if "current_step" in team_score:
        return whole(team_score["current_step"])
    return max((whole(record.get("env_step")) for record in process_log), default=0)
