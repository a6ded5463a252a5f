"""8.2: the full set of measures of an episode, and its one line for tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxcoop.cognition.metrics.constraints import capability, constraint_changes, constraint_names
from jaxcoop.cognition.metrics.decisions import Timelines, decision_overhead
from jaxcoop.cognition.metrics.messages import communication
from jaxcoop.cognition.metrics.plans import failure_attribution, planning, task_success
from jaxcoop.cognition.metrics.profiles import checked, mean_and_std, number, share

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Logs:
    """What the measures are made of; files that are missing are empty."""

    agent_states: Mapping[str, Iterable[Sequence[Any]]] = field(default_factory=dict)
    messages: Sequence[Record] = ()
    plans: Sequence[Record] = ()  # `plan_history`
    capability_changes: Sequence[Record] = ()
    task_states: Sequence[Record] = ()
    team_score: Record | None = None  # macrafter only


def full_metrics(logs: Logs, profile: str = "cube") -> dict[str, Any]:
    """All measures, in groups as in coop2_metrics.json; groups without data are empty.

    Profile macrafter adds a copy of the score file and what a point of score took, None where there is no score.
    """
    kind = checked(profile)
    timelines = Timelines.read(logs.agent_states)
    metrics: dict[str, Any] = {
        "decision_overhead": decision_overhead(timelines, kind),
        "communication": communication(logs.messages, timelines.names),
        "planning": planning(logs.plans, kind),
        "capability": capability(logs.capability_changes),
        "constraints": constraint_changes(logs.task_states, kind),
        "task_success": task_success(logs.plans, logs.capability_changes, kind),
        "failure_attribution": failure_attribution(logs.plans),
    }
    if kind == "macrafter":
        score_file = dict(logs.team_score or {})
        metrics["team_score"] = score_file
        metrics["efficiency"] = _efficiency(score_file, timelines, logs)
    return metrics


def _efficiency(score_file: Record, timelines: Timelines, logs: Logs) -> dict[str, float | None]:
    score = number(score_file.get("total_score"))
    spent = {
        "steps": number(score_file.get("current_step")),
        "decision_time": timelines.decision_seconds,
        "messages": float(len(logs.messages)),
        "plans": float(len(logs.plans)),
    }
    return {f"{name}_per_score": amount / score if score else None for name, amount in spent.items()}


def metric_columns(metrics: Mapping[str, Any], profile: str = "cube") -> list[tuple[str, Any]]:
    """Names and values of coop2_metrics.csv, in the order of the file."""
    kind = checked(profile)
    decision, sent, plans, constraints = (
        metrics[group] for group in ("decision_overhead", "communication", "planning", "constraints")
    )
    broken = plans.get("P_int", 0)
    resumed = share(plans.get("P_res", 0), broken)
    times = [f"{name}_time_{what}" for name in ("decision", "wait") for what in ("avg", "std")]
    return [
        *((name, decision.get(name, 0)) for name in ("D_delta", *times)),
        ("L_tot", sent["L_tot"]),
        ("L_std", sent.get("L_std", 0)),
        ("L_avg", mean_and_std(sent["messages_per_agent"].values())[0]),
        ("P_total", plans.get("total_plans", 0)),
        ("P_int", broken),
        ("P_res_rate", resumed),
        ("P_re_rate", 1 - resumed if broken else 0),
        ("P_coherence", plans.get("coherence", 0)),
        ("Z_gain_rate", metrics["capability"]["total_gains"] / decision.get("T", 1)),
        *((f"C_{name}_ratio", _ratio(constraints.get(name, {}))) for name in constraint_names(kind)),
    ]


def _ratio(counts: Mapping[str, int]) -> float:
    """Share of improvements among the changes, one half without any."""
    improved, worsened = counts.get("improved", 0), counts.get("worsened", 0)
    return improved / (improved + worsened) if improved + worsened else 0.5
