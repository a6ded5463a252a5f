"""Rows of results under one set of names, whatever names they arrive with.

A cell is one agent under one condition.  Cells come from own runs (short names) and from the metrics of the
reference implementation and its releases (`avg_throughput`, `deadlock_ci_low`, ...); tables and figures read
short names only. Source of the metrics: section 12 of the DPBench behaviour notes,
docs/envs/dining.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from jaxcoop.runs.statistics import t_half_width, wilson_interval

Row = dict[str, Any]

# Short name -> the reference's names for it, first found wins.
_ALIASES = {
    "model": ("agent",),
    "condition": ("condition_canonical",),
    "prompt": ("prompt_variant",),
    "episodes": ("num_episodes",),
    "deadlock_low": ("deadlock_ci_low",),
    "deadlock_high": ("deadlock_ci_high",),
    "deadlock_events": ("avg_deadlock_events",),
    "timeout_low": ("timeout_ci_low",),
    "timeout_high": ("timeout_ci_high",),
    "throughput": ("avg_throughput",),
    "throughput_half": ("throughput_ci_half",),
    "fairness": ("avg_fairness",),
    "fairness_half": ("fairness_ci_half",),
    "starvation": ("avg_starvation_count",),
    "time_to_deadlock": ("avg_time_to_deadlock",),
    "time_to_true_deadlock": ("avg_time_to_true_deadlock",),
    "timesteps": ("avg_timesteps",),
    "calls": ("total_llm_calls",),
    "tokens_in": ("total_tokens_in",),
    "tokens_out": ("total_tokens_out",),
    "episode_timesteps": ("episodes_total_timesteps",),
    "episode_deadlock": ("episodes_deadlock",),
}
_DEFAULTS = {"prompt": "default", "memory_window": 0}


def standard_row(row: Mapping[str, Any]) -> Row:
    """A copy of `row` under the short names, with intervals filled in where counts or deviations allow.

    `deadlock_*` is what the reference reports, `true_deadlock_*` counts every episode that ended in a
    circular wait (7.2: the two differ in sequential mode); `deadlock_events` are the circular waits that were
    resolved, per episode (7.3).  Rates are fractions, intervals 95 % Wilson, half-widths t.
    """
    out = dict(row)
    for name, others in _ALIASES.items():
        if out.get(name) is None:
            out[name] = next((row[other] for other in others if row.get(other) is not None), None)
    for name, value in _DEFAULTS.items():
        if out.get(name) is None:
            out[name] = value
    if out.get("communication_rounds") is None:
        out["communication_rounds"] = int(bool(out.get("communication")))
    unreported = row.get("ended_before_horizon_but_not_reported_deadlock")
    if out.get("true_deadlock_count") is None and unreported is not None and row.get("deadlock_count") is not None:
        out["true_deadlock_count"] = row["deadlock_count"] + unreported
    if out["deadlock_events"] is None and row.get("total_deadlock_events") is not None and out["episodes"]:
        out["deadlock_events"] = row["total_deadlock_events"] / out["episodes"]
    for name in ("deadlock", "true_deadlock"):
        _fill_rate(out, name)
    for name in ("throughput", "fairness"):
        if out.get(f"{name}_half") is None:
            out[f"{name}_half"] = t_half_width(row.get(f"std_{name}"), out["episodes"] or 0)
    return out


def standard_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """`standard_row` of each."""
    return [standard_row(row) for row in rows]


def _fill_rate(row: Row, name: str) -> None:
    count, episodes = row.get(f"{name}_count"), row.get("episodes")
    if count is None or not episodes:
        return
    if row.get(f"{name}_rate") is None:
        row[f"{name}_rate"] = count / episodes
    if row.get(f"{name}_low") is None or row.get(f"{name}_high") is None:
        row[f"{name}_low"], row[f"{name}_high"] = wilson_interval(count, episodes)


def find(rows: Iterable[Row], **wanted: Any) -> Row | None:
    """The first row whose entries equal all of `wanted`, or None."""
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), None)


def models(rows: Iterable[Row]) -> list[str]:
    """The distinct models in the order met."""
    return list(dict.fromkeys(str(row["model"]) for row in rows if row.get("model") is not None))
