"""8.3, macrafter: attempt events of a process log, and the categories of resources."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxcoop.cognition.metrics.attempts import Event, observed, observed_score, scored
from jaxcoop.cognition.metrics.profiles import first_positive, mapping, text_id

Record = Mapping[str, Any]

SCORED_RESOURCES = ("wood", "stone", "coal", "iron", "diamond")

_CATEGORIES = {
    "tree": "wood",
    **dict.fromkeys(("table", "crafting_table", "furnace", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe"), "tools"),
    **dict.fromkeys(("water", "drink", "cow", "food"), "survival"),
}
_TOOL_WORDS = ("table", "pickaxe", "furnace", "craft", "place_")
_SURVIVAL_WORDS = ("cow", "food", "water", "drink")
_TARGET_NAMES = ("task_id", "resource_id", "target_id", "item_id")
_NO_TOOL = ("", "none", "null", "[]")


def resource_category(value: Any) -> str | None:
    """The category of a resource or thing; one that is not known is its own."""
    name = "" if value is None else str(value).strip().lower().replace(" ", "_")
    return _CATEGORIES.get(name, name) or None


def resource_of_text(text: str | None) -> str | None:
    """The category that a free text speaks of: a scored resource, else tools, else survival."""
    words = (text or "").lower()
    for name in SCORED_RESOURCES:
        if re.search(rf"\b{name}\b|collect_{name}", words):
            return name
    for category, signs in (("tools", _TOOL_WORDS), ("survival", _SURVIVAL_WORDS)):
        if any(sign in words for sign in signs):
            return category
    return None


def macrafter_events(process_log: Iterable[Record]) -> list[Event]:
    """The events of all steps, rebuilt from agents and active tasks; steps without these give the stored ones."""
    events: list[Event] = []
    for record in process_log:
        if record.get("agents") and record.get("active_tasks"):
            events += _Step(record).events()
        else:
            events += [dict(event) for event in record.get("constraint_attempts") or ()]
    return events


class _Step:
    """A process record whose agents are matched with its scored tasks."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.agents: Sequence[Record] = record["agents"]
        self.tasks = {
            text_id(task.get("task_id")): task
            for task in record["active_tasks"]
            if text_id(task.get("task_id")) and _category_of(task) in SCORED_RESOURCES
        }

    def events(self) -> list[Event]:
        """One for each task that somebody tries."""
        trying: dict[str, list[Record]] = {}
        for agent in self.agents:
            for task in self.targets(agent):
                trying.setdefault(task, []).append(agent)
        return [self.event(task, agents) for task, agents in sorted(trying.items())]

    def targets(self, agent: Record) -> list[str]:
        """What a collecting agent aims at: named by its action, else its only target, else what it collected."""
        action = _issued(agent)
        if action.get("action_type") != "collect":
            return []
        named = [text_id(action.get(name)) for name in _TARGET_NAMES]
        aimed = [task for task in dict.fromkeys(named) if task in self.tasks]
        if aimed:
            return aimed
        active = [text_id(task) for task in agent.get("active_target_ids") or ()]
        active = [task for task in dict.fromkeys(active) if task in self.tasks]
        if len(active) == 1:
            return active
        taken = _collections_of(agent)
        return [name for name, task in self.tasks.items() if any(_is_of(part, task) for part in taken)]

    def event(self, name: str, agents: Sequence[Record]) -> Event:
        """The event of one task."""
        task = self.tasks[name]
        category, required = _category_of(task), first_positive([task.get("required_agents")])
        winners = [agent for agent in agents if self.has_succeeded(agent, task)]
        losers = [agent for agent in agents if agent not in winners]
        return {
            "env_step": self.record.get("env_step"),
            "task_id": name,
            "action_type": "collect",
            "attempt_label": f"collect({category}#{name})",
            "attempting_agents": _names(agents),
            "successful_agents": _names(winners),
            "blocked_agents": _names(losers),
            "block_reasons": sorted({_reason(agent) for agent in losers}),
            "success": bool(winners),
            "required_agents": required,
            "required_tool": task.get("required_tool"),
            "resource_type": category,
            "target_resource_type": category,
            "target_position": task.get("position"),
            "actual_collections": [_taken(agent, part) for agent in agents for part in _collections_of(agent)],
            **scored(self.scores(name, required, len(agents), bool(winners))),
        }

    def has_succeeded(self, agent: Record, task: Record) -> bool:
        """It took part in collecting just this task."""
        outcome = mapping(agent.get("action_outcome"))
        return outcome.get("status") == "success" and any(_is_of(part, task) for part in _collections_of(agent))

    def scores(self, name: str, required: int, trying: int, has_succeeded: bool) -> dict[str, float]:
        """All 1 after a success; else what was observed, with the number of those who try for the time."""
        if has_succeeded:
            return dict.fromkeys(("spatial", "temporal", "dependency"), 1.0)
        scores = {"temporal": trying / required}
        sources = [
            observed(self.record.get(key), name) for key in ("observed_constraints", "grounded_action_constraints")
        ]
        for constraint in ("spatial", "dependency"):
            seen = [observed_score(source[constraint], required) for source in sources if constraint in source]
            scores[constraint] = max(seen, default=0.0)
        if _needs_no_tool(self.tasks[name].get("required_tool")):
            scores["dependency"] = 1.0
        return scores


def _issued(agent: Record) -> dict[str, Any]:
    """The symbolic action and its arguments, overridden by those of the action that was issued."""
    merged: dict[str, Any] = {}
    for key in ("symbolic_action", "action"):
        action = mapping(agent.get(key))
        merged |= {**action, **mapping(action.get("args"))}
    return merged


def _collections(agent: Record) -> list[Record]:
    effects = mapping(mapping(agent.get("action_outcome")).get("effects"))
    return list(effects.get("collections") or ())


def _collections_of(agent: Record) -> list[Record]:
    """The collections in the agent's outcome that it took part in."""
    own = _plain(agent.get("agent_id"))
    return [part for part in _collections(agent) if own and own in map(_plain, part.get("participating_agents") or ())]


def _plain(agent: Any) -> str:
    return text_id(agent).removeprefix("agent_")


def _is_of(collection: Record, task: Record) -> bool:
    is_there = collection.get("position") == task.get("position")
    return is_there and resource_category(collection.get("resource_type")) == _category_of(task)


def _category_of(task: Record) -> str | None:
    return resource_category(task.get("resource_type") or task.get("target_type"))


def _taken(agent: Record, collection: Record) -> dict[str, Any]:
    raw = collection.get("resource_type")
    return {
        "agent_id": agent.get("agent_id"),
        "position": collection.get("position"),
        "raw_resource_type": raw,
        "resource_type": resource_category(raw),
    }


def _reason(agent: Record) -> str:
    """Why an agent did not get the task: its own reason, else a code for what it collected instead."""
    own = mapping(agent.get("action_outcome")).get("reason")
    if own:
        return str(own)
    taken = sorted(str(part.get("resource_type")) for part in _collections_of(agent))
    if taken:
        return "other:" + ", ".join(taken)
    return "not_collected_by_agent" if _collections(agent) else "not_collected"


def _names(agents: Iterable[Record]) -> list[str]:
    return [str(agent.get("agent_id")) for agent in agents]


def _needs_no_tool(tool: Any) -> bool:
    return not tool or str(tool).strip().lower() in _NO_TOOL
