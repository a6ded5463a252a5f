"""8.3, cube: attempt events of a process log, and the names of their targets."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxcoop.cognition.metrics.attempts import CONSTRAINTS, Event, observed, observed_score, scored
from jaxcoop.cognition.metrics.profiles import first_positive, mapping, number, text_id

Record = Mapping[str, Any]

_WEIGHT = re.compile(r"(?:weight[_\-\s]*|w\s*=?\s*)(\d+)", re.IGNORECASE)
_BLOCK_WORDS = ("block", "push", "push_block")


def cube_target(value: Any, weight: Any = None) -> str | None:
    """Name of a target: `weight_N` where a weight is given or can be read in the value, else the value tidied up."""
    try:
        given = int(weight)
    except (TypeError, ValueError, OverflowError):
        given = 0
    if given > 0:
        return f"weight_{given}"
    text = "" if value is None else str(value).strip().lower()
    if not text:
        return None
    found = _WEIGHT.search(text)
    if found:
        return f"weight_{int(found[1])}"
    return "block" if text in _BLOCK_WORDS else text.replace(" ", "_")


def cube_label(value: Any) -> str:
    """What an axis calls a target."""
    found = _WEIGHT.search(str(value)) if value else None
    return f"w={int(found[1])}" if found else str(value or "block")


def cube_events(process_log: Iterable[Record]) -> list[Event]:
    """The events of all steps: those stored with a step, else those of its pushes."""
    events: list[Event] = []
    for record in process_log:
        if record.get("env_step") is None:
            continue
        stored = record.get("constraint_attempts")
        events += _stored(record, stored) if stored else _rebuilt(record)
    return events


def _stored(record: Record, attempts: Sequence[Record]) -> list[Event]:
    pushes = _pushes(record)
    events = []
    for attempt in attempts:
        task = text_id(attempt.get("task_id"))
        given = mapping(attempt.get("scores"))
        scores = {name: max(0.0, number(given[name])) for name in CONSTRAINTS if name in given}
        if task and scores:
            outcomes = pushes.get(task, [])
            # An attempt that names nobody is made by those whose pushes name the task.
            agents = sorted(map(str, attempt.get("agents") or ())) or _pushers(outcomes)
            events.append(_event(record, task, agents, scores, outcomes, [attempt]))
    return events


def _rebuilt(record: Record) -> list[Event]:
    events = []
    for task, outcomes in sorted(_pushes(record).items()):
        required = _required(record, task, outcomes, [])
        agents = _pushers(outcomes)
        seen = observed(record.get("observed_constraints"), task)
        default = {
            "spatial": float(any(map(_succeeded, outcomes))),
            "temporal": len(agents) / required,
            "dependency": 1.0,
        }
        scores = {name: observed_score(seen[name], required) if name in seen else default[name] for name in CONSTRAINTS}
        events.append(_event(record, task, agents, scores, outcomes, []))
    return events


def _event(
    record: Record,
    task: str,
    agents: list[str],
    scores: Mapping[str, float],
    outcomes: Sequence[Record],
    first: Sequence[Record],
) -> Event:
    """One event; `first`: records that know its block and requirement better than tasks and outcomes do."""
    required = _required(record, task, outcomes, first)
    target = cube_target(None, required)
    sources = [*first, *_tasks(record, task), *(mapping(outcome.get("metadata")) for outcome in outcomes)]
    winners = _pushers(filter(_succeeded, outcomes))
    return {
        "env_step": record["env_step"],
        "task_id": task,
        "action_type": "push",
        "attempt_label": f"push({target}#{task})",
        "attempting_agents": agents,
        "successful_agents": winners,
        "success": bool(winners),
        "required_agents": required,
        "block_id": _first(sources, "block_id"),
        "face": _first(sources, "face"),
        "resource_type": target,
        "target_type": target,
        "target_resource_type": target,
        **scored(scores),
    }


def _pushes(record: Record) -> dict[str, list[Record]]:
    """Outcomes of pushes by the task that they name."""
    found = defaultdict(list)
    for agent, outcome in mapping(record.get("action_outcomes")).items():
        task = text_id(mapping(outcome).get("task_id"))
        if task and outcome.get("action_type") == "push":
            found[task].append({"agent_id": agent, **outcome})
    return dict(found)


def _pushers(outcomes: Iterable[Record]) -> list[str]:
    return sorted({str(outcome.get("agent_id")) for outcome in outcomes})


def _tasks(record: Record, task: str) -> list[Record]:
    return [entry for entry in record.get("active_tasks") or () if text_id(entry.get("task_id")) == task]


def _required(record: Record, task: str, outcomes: Sequence[Record], first: Sequence[Record]) -> int:
    details = [mapping(outcome.get("metadata")) for outcome in outcomes]
    return first_positive(
        [
            *(entry.get("required_agents") for entry in (*first, *_tasks(record, task), *details)),
            *(entry.get("weight") for entry in details),
        ]
    )


def _succeeded(outcome: Record) -> bool:
    return outcome.get("status") == "success"


def _first(records: Iterable[Record], name: str) -> Any:
    return next((record[name] for record in records if record.get(name) is not None), None)
