"""Rows of the results table: one per cell, that is, one model under one condition.

A row is made from the metrics of a cell or from its log file; condition names of every release are
understood. Source: sections 7, 12 and 17 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jaxcoop.envs.dining.metrics import aggregate
from jaxcoop.envs.dining.records import read_log
from jaxcoop.envs.dining.types import ACTION_NAMES

# Arguments of `jaxcoop.runs.statistics.with_intervals` for the main table.
CELL_RATES = {"deadlock_count": "deadlock_ci"}
CELL_MEANS = {"std_throughput": "throughput_ci_half", "std_fairness": "fairness_ci_half"}

# Columns of the z-interval table as (value, digits, spread, half-width), read by
# `jaxcoop.runs.statistics.z_interval_table`; 17: its rounding.
Z_TABLE_COLUMNS: tuple[tuple[str, int | None, str | None, str | None], ...] = (
    ("deadlock_rate", 3, "rate", "deadlock_ci_95"),
    ("deadlock_count", None, None, None),
    ("avg_throughput", 3, "std_throughput", "throughput_ci_95"),
    ("avg_fairness", 3, "std_fairness", "fairness_ci_95"),
    ("avg_time_to_deadlock", 1, None, None),
    ("avg_starvation_count", 2, "std_starvation_count", "starvation_ci_95"),
    ("avg_timesteps", 1, None, None),
    ("total_llm_calls", None, None, None),
    ("total_tokens", None, None, None),
)

# That table shows a model without token counts (the random baseline) with 0 tokens, the main table with none.
Z_TABLE_MISSING = {"total_tokens": 0}

_OLD_CODE = re.compile(r"(sim|seq)(\d+)(nc|c)")
_CODE = re.compile(r"(sim|seq)_n(\d+)_(comm|nocomm)")
_MODES = {"sim": "simultaneous", "seq": "sequential"}
_METRICS = (
    "avg_throughput",
    "std_throughput",
    "avg_fairness",
    "std_fairness",
    "avg_starvation_count",
    "std_starvation_count",
    "avg_time_to_deadlock",
    "avg_timesteps",
    "std_timesteps",
    "total_deadlock_events",
    "true_deadlock_count",
    "true_deadlock_rate",
    "avg_time_to_true_deadlock",
    "message_action_consistency",
    "total_llm_calls",
    "total_tokens_in",
    "total_tokens_out",
)


class Condition(NamedTuple):
    """What the name of a condition says; None where the name alone does not tell."""

    code: str  # canonical name
    mode: str | None
    philosophers: int | None
    communication: bool | None
    prompt: str
    memory_window: int
    communication_rounds: int | None


def condition_code(mode: str, num_agents: int, communication: bool) -> str:
    """Code of a condition, such as `sim_n5_nocomm` (7)."""
    return f"{mode[:3]}_n{num_agents}_{'comm' if communication else 'nocomm'}"


def canonical_condition(name: str) -> str:
    """Name of a condition in the current notation: `sim5nc` becomes `sim_n5_nocomm`, others stay."""
    old = _OLD_CODE.fullmatch(name)
    if old is None:
        return name
    mode, number, suffix = old.groups()
    return condition_code(_MODES[mode], int(number), suffix == "c")


def parse_condition(name: str, communication: bool | None = None) -> Condition:
    """Derive the parameters of a condition from its name (17); `communication` overrides what the name says.

    Prompt variant, memory window and rounds come from `prompt_X`, `memory_k…` and `comm_rounds_k`; without
    the latter there is 1 round with communication and 0 without.
    """
    code = canonical_condition(name)
    mode = philosophers = None
    named = None
    if plain := _CODE.fullmatch(code):
        mode, philosophers, named = _MODES[plain[1]], int(plain[2]), plain[3] == "comm"
    prompt = code.removeprefix("prompt_") if code.startswith("prompt_") else "default"
    memory = re.match(r"memory_(\d+)", code)
    rounds = re.match(r"comm_rounds_(\d+)", code)
    if rounds or code.endswith("_with_comm"):
        named = True
    talks = named if communication is None else communication
    number = int(rounds[1]) if rounds else (None if talks is None else int(talks))
    return Condition(code, mode, philosophers, talks, prompt, int(memory[1]) if memory else 0, number)


def cell_row(
    metrics: Mapping[str, Any],
    *,
    model: str,
    condition: str,
    config: Mapping[str, Any] | None = None,
    release: str = "",
) -> dict[str, Any]:
    """Row of a cell from its metrics (`jaxcoop.envs.dining.metrics.aggregate`).

    `config` supplies what the condition's name leaves open (`mode`, `philosophers`, `communication`,
    `max_timesteps`, `temperature`, `deadlock_terminal`).  A missing deadlock count is round(rate * episodes);
    release 0.1.0 counted no deadlock events, so its entry is empty.  Raises ValueError when `metrics` has no
    `num_episodes`.
    """
    if "num_episodes" not in metrics:
        raise ValueError(f"the metrics of {model}, {condition} have no num_episodes; they have {sorted(metrics)}")
    config = config or {}
    parsed = parse_condition(condition, config.get("communication"))
    episodes, rate = int(metrics["num_episodes"]), metrics["deadlock_rate"]
    count = metrics.get("deadlock_count")
    row: dict[str, Any] = {
        "model": model,
        "condition": parsed.code,
        "condition_original": condition,
        "prompt": parsed.prompt,
        "mode": parsed.mode or config.get("mode"),
        "communication": parsed.communication,
        "philosophers": parsed.philosophers or config.get("philosophers"),
        "episodes": episodes,
        "max_timesteps": config.get("max_timesteps"),
        "temperature": config.get("temperature"),
        "memory_window": parsed.memory_window or config.get("memory_window", 0),
        "communication_rounds": _rounds(parsed, config),
        "deadlock_terminal": config.get("deadlock_terminal", True),
        "deadlock_rate": rate,
        "deadlock_count": round(rate * episodes) if count is None else count,
        **{name: metrics.get(name) for name in _METRICS},
        "release": release or None,
    }
    if release == "0.1.0":
        row["total_deadlock_events"] = None
    tokens = (row["total_tokens_in"], row["total_tokens_out"])
    row["total_tokens"] = None if None in tokens else sum(tokens)
    return row


@dataclass
class _LoggedCell:
    """What the records under one header add up to."""

    config: dict[str, Any]
    versions: dict[str, str]
    ends: list[dict[str, Any]] = field(default_factory=list)
    messages: list[str | None] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    calls: int = 0
    tokens: tuple[int, int] = (0, 0)


def rows_from_logs(paths: Iterable[str | Path], *, model: str | None = None) -> list[dict[str, Any]]:
    """One row per cell from log files, in the order met.

    A header with the configuration of an earlier one continues that cell.  Steps of an episode that has no
    `episode_end` (its process was killed) are left out.  The condition's name is the header's `condition`, or
    the code of its mode, size and communication; the model is `model` or the header's.  Cells without a
    finished episode give no row.
    """
    cells: list[_LoggedCell] = []
    for path in paths:
        _read_cells(path, cells)
    return [_logged_row(cell, model) for cell in cells if cell.ends]


def _read_cells(path: str | Path, cells: list[_LoggedCell]) -> None:
    cell: _LoggedCell | None = None
    steps: list[dict[str, Any]] = []  # of the episode being read
    for record in read_log(path):
        if record["type"] == "header":
            same = (known for known in cells if known.config == record["config"])
            cell = next(same, None)
            if cell is None:
                cell = _LoggedCell(record["config"], record["versions"])
                cells.append(cell)
            steps = []
            continue
        if cell is None:
            raise ValueError(f"{path} does not start with a header record; it is not a dining log")
        if record["type"] == "timestep":
            steps.append(record)
        elif record["type"] == "episode_end":
            _add_episode(cell, record, [step for step in steps if step["episode_id"] == record["episode_id"]])
            steps = []


def _add_episode(cell: _LoggedCell, end: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    cell.ends.append(end)
    for step in steps:
        cell.messages += [decision["message"] for decision in step["decisions"]]
        cell.actions += [ACTION_NAMES.index(decision["action"]) for decision in step["decisions"]]
        cell.calls += len(step["llm_calls"])
        cell.tokens = (
            cell.tokens[0] + sum(call.get("tokens_in") or 0 for call in step["llm_calls"]),
            cell.tokens[1] + sum(call.get("tokens_out") or 0 for call in step["llm_calls"]),
        )


def _logged_row(cell: _LoggedCell, model: str | None) -> dict[str, Any]:
    config = cell.config
    talks = bool(config.get("communication", False))
    metrics = aggregate(
        {
            "timesteps": [end["total_timesteps"] for end in cell.ends],
            "deadlock": [end.get("circular_wait", end["deadlock"]) for end in cell.ends],
            "deadlock_reported": [end["deadlock"] for end in cell.ends],
            "deadlock_events": [end.get("deadlock_events", 0) for end in cell.ends],
            "meals": [end["meals_per_philosopher"] for end in cell.ends],
        },
        communication=talks,
        messages=cell.messages,
        actions=cell.actions,
    )
    if cell.calls:
        metrics |= dict(
            zip(
                ("total_llm_calls", "total_tokens_in", "total_tokens_out"),
                (cell.calls, *cell.tokens),
                strict=True,
            )
        )
    code = config.get("condition") or condition_code(config["mode"], config["philosophers"], talks)
    name = model or config.get("model") or "unknown"
    return cell_row(metrics, model=name, condition=code, config=config, release=cell.versions.get("dpbench", ""))


def _rounds(parsed: Condition, config: Mapping[str, Any]) -> int | None:
    """Rounds from the name, or from the configuration where the name leaves them at 1."""
    if parsed.communication and parsed.communication_rounds == 1:
        return config.get("communication_rounds", 1)
    return parsed.communication_rounds
