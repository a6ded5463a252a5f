"""7: an episode as the files of the reference, with their names and their forms.

`reference_files` gives their contents, `file_texts` the same as text; writing them is left to the caller.
Numbers are sections of docs/coop2.md.
"""

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxcoop.cognition.logs.episode import EpisodeLog
from jaxcoop.cognition.logs.export_mail import TextOf, message_log
from jaxcoop.cognition.logs.export_plans import plan_history
from jaxcoop.cognition.logs.export_steps import process_log, score_events, task_states
from jaxcoop.cognition.logs.export_trace import trace_events
from jaxcoop.cognition.logs.row import timelines, total_score
from jaxcoop.cognition.logs.vocabulary import Vocabulary, agent_name
from jaxcoop.cognition.metrics import Logs, full_metrics, metric_columns
from jaxcoop.cognition.metrics.decisions import STAGE_NAMES
from jaxcoop.cognition.types import Call, Verdict

METRICS_CSV = "coop2_metrics.csv"


@dataclass(frozen=True)
class RunInfo:
    """What the usage file says of a run beside the episode itself."""

    structure: str
    model: str = ""
    backend: str = ""
    seed: int = 0
    repair: bool = False
    max_steps: int = 0
    budget_seconds: float = 0.0  # 0: no limit


def reference_files(log: EpisodeLog, vocabulary: Vocabulary, info: RunInfo, text_of: TextOf) -> dict[str, Any]:
    """Contents of every file by its name: JSON values, and the lines of the file of measures."""
    history = plan_history(log, vocabulary)
    messages = message_log(log, vocabulary, text_of)
    holdings = capability_changes(log, vocabulary)
    tasks, steps = task_states(log, vocabulary), process_log(log, vocabulary)
    score = {
        "total_score": total_score(log),
        "current_step": log.env_steps,
        "score_events": score_events(log),
    }
    states = agent_states(log)
    logs = Logs(states, messages, history, holdings, tasks, score)
    metrics = full_metrics(logs, vocabulary.profile)
    files = {
        "plan_logs.json": {"plan_history": history, "current_plans": {}},
        "agent_states.json": states,
        "message_log.json": messages,
        "task_states.json": tasks,
        "coop2_process_log.json": steps,
        "coop2_trace.json": trace_events(log, vocabulary, text_of, steps),
        "team_score.json": score,
        "llm_usage.json": usage(log, info),
        "coop2_metrics.json": metrics,
        METRICS_CSV: [["metric", "value"], *map(list, metric_columns(metrics, vocabulary.profile))],
    }
    return files | ({"capability_changes.json": holdings} if vocabulary.profile == "macrafter" else {})


def file_texts(files: dict[str, Any]) -> dict[str, str]:
    """The contents of `reference_files` as texts."""
    texts = {}
    for name, content in files.items():
        if name == METRICS_CSV:
            buffer = io.StringIO()
            csv.writer(buffer, lineterminator="\n").writerows(content)
            texts[name] = buffer.getvalue()
        else:
            texts[name] = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return texts


def agent_states(log: EpisodeLog) -> dict[str, list[list[Any]]]:
    """Timelines: seconds, env_step and name of the stage of every entry, by agent."""
    states: dict[str, list[list[Any]]] = {agent_name(agent): [] for agent in range(log.agents)}
    line = timelines(log)
    for k in np.argsort(log.timeline.seq, kind="stable"):
        entry = [float(line.seconds[k]), int(line.step[k]), STAGE_NAMES[line.stage[k]]]
        states[agent_name(int(line.agent[k]))].append(entry)
    return states


def capability_changes(log: EpisodeLog, vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Items gained and lost."""
    held = log.holdings
    return [
        {
            "agent_id": agent_name(agent),
            "item_name": vocabulary.item(item),
            "old_count": old,
            "new_count": new,
            "change_type": "gain" if new > old else "loss",
            "env_step": step,
        }
        for step, agent, item, old, new in zip(
            *(column.tolist() for column in (held.env_step, held.agent, held.item, held.old, held.new))
        )
    ]


def usage(log: EpisodeLog, info: RunInfo) -> dict[str, Any]:
    """Calls of the run and of each agent, with its role; tokens are counted by the client, not here."""
    agents = {agent_name(agent): _agent_usage(log, info, agent) for agent in range(log.agents)}
    sums: Counter[str] = Counter()
    for entry in agents.values():
        sums.update({name: entry[name] for name in ("api_calls", "llm_errors", "latency_sum", "plan_count")})
    return {
        "model": info.model,
        "backend": info.backend,
        "structure": info.structure,
        "max_steps": info.max_steps,
        "budget_seconds": info.budget_seconds,
        "timed_out": bool(log.timed_out),
        "seed": info.seed,
        "repair": info.repair,
        "totals": dict(sums),
        "agents": agents,
    }


def _agent_usage(log: EpisodeLog, info: RunInfo, agent: int) -> dict[str, Any]:
    calls = log.calls
    own = calls.agent == agent
    failed = own & (calls.verdict == Verdict.ERROR)
    seconds = (calls.end_ms - calls.start_ms)[own] / 1000
    return {
        "role": role(info.structure, agent),
        "api_calls": int(own.sum() - failed.sum()),
        "llm_errors": int(failed.sum()),
        "latency_sum": float(seconds.sum()),
        "latency_max": float(seconds.max(initial=0.0)),
        "calls_by_kind": {kind.name.lower(): int((own & (calls.kind == kind)).sum()) for kind in Call},
        "plan_count": int(log.committed[agent]),
    }


def role(structure: str, agent: int) -> str:
    """What an agent is in a communication structure."""
    if structure == "centralized":
        return "follower" if agent else "leader"
    return {"individual": "individual", "broadcast_chain": f"speaker-{agent}"}.get(structure, "member")
