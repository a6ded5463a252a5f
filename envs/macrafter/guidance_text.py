"""Recommended targets, plans and next steps towards tools, with names instead of numbers; host side, plain numpy.

Numbers are sections of docs/coop2_repair.md.  Take the arrays of one episode to the host first (`jax.device_get`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jaxcoop.cognition.logs import agent_name
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.envs.macrafter.goals import DOES, NAMES
from jaxcoop.envs.macrafter.guidance import HAS, HASTE, Advice
from jaxcoop.envs.macrafter.tools import ALL, ANY, STATIONS, TOOL_NAMES, is_met, tools_held, tools_missing
from jaxcoop.envs.macrafter.types import Item, Material
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary, kind_name

GOOD, USABLE = 6, 12
"""10: steps until the last participant can collect that are a good and a usable target."""


def numbers_of(flags: Any) -> list[int]:
    """Flagged agents, in the order of their ids as text."""
    return sorted((int(agent) for agent in np.flatnonzero(flags)), key=str)


def names_of(flags: Any) -> list[str]:
    """Their ids."""
    return [agent_name(agent) for agent in numbers_of(flags)]


def tool_names(tools: int) -> list[str]:
    """Names of a set of tools."""
    return [name for number, name in enumerate(TOOL_NAMES) if tools >> number & 1]


def requirement(tools: int) -> dict[str, Any]:
    """The tools that a task takes, and whether all of them or any."""
    return {"required_tool": tool_names(tools & ALL), "required_tool_mode": "any" if tools & ANY else "all"}


def stations(near: Any) -> list[str]:
    """Names of the stations that are near."""
    return sorted(station.name.lower() for station, is_near in zip(STATIONS, near, strict=True) if is_near)


def candidate(config: RepairConfig, words: MACrafterVocabulary, advice: Advice, k: int) -> dict[str, Any]:
    """10: all that is known of a candidate."""
    candidates, facts = advice.candidates, advice.candidates.facts
    can_come = advice.members.is_available & (candidates.steps[k] >= 0)
    has_tools = candidates.rank[k] == HAS
    is_ready_after = has_tools | candidates.makes[k]
    who, ready = candidates.participants[k], names_of(can_come & has_tools)
    latest, spread, task = int(candidates.latest[k]), int(candidates.spread[k]), str(int(facts.ident[k]))
    is_good = latest <= GOOD and spread <= config.temporal_tolerance + 2
    return {
        "task_id": task,
        "target_id": task,
        "target_type": kind_name(int(facts.kind[k])),
        "position": [int(x) for x in facts.place[k]],
        "distance_threshold": int(facts.reach[k]),
        "required_agents": int(facts.required[k]),
        **requirement(int(facts.tools[k])),
        "reachability": "good" if is_good else "usable" if latest <= USABLE else "far",
        "dependency_stage": "collect_ready" if candidates.is_now[k] else "prepare_tools",
        "collect_ready_now": bool(candidates.is_now[k]),
        "all_recommended_participants_ready_after_stage": bool((is_ready_after | ~who).all()),
        "missing_prerequisite_agents": names_of(who & ~is_ready_after),
        "max_estimated_steps": latest,
        "arrival_spread": spread,
        "recommended_timeout": latest + HASTE,
        "ready_participants": ready,
        "tool_ready_participant_count": len(ready),
        "recommended_participants": names_of(who),
        "estimated_steps_by_agent": {agent_name(i): int(candidates.steps[k, i]) for i in numbers_of(can_come)},
        "estimated_steps_by_recommended_agent": {agent_name(i): int(candidates.until[k, i]) for i in numbers_of(who)},
        "participant_readiness": {agent_name(i): _readiness(words, advice, k, i) for i in numbers_of(who)},
    }


def _readiness(words: MACrafterVocabulary, advice: Advice, k: int, agent: int) -> dict[str, Any]:
    """10: how far a participant is from being able to collect a candidate."""
    candidates = advice.candidates
    ops = [_op(words, row) for row in candidates.ops[k, agent] if row[0] >= 0]
    return {
        "agent_id": agent_name(agent),
        "has_required_tool": bool(candidates.rank[k, agent] == HAS),
        "missing_required_tools": tool_names(int(candidates.missing[k, agent])),
        "planned_acquires_required_tool": bool(candidates.planned[k, agent]),
        "will_acquire_required_tool": bool(candidates.makes[k, agent]),
        "readiness_rank": int(candidates.rank[k, agent]),
        "navigation_steps": int(candidates.steps[k, agent]),
        "prerequisite_actions": ops,
        "prerequisite_step_count": len(ops),
        "estimated_steps_to_collect": int(candidates.until[k, agent]),
        "nearby_utilities": stations(advice.members.near[agent]),
    }


def plan(words: MACrafterVocabulary, advice: Advice, agent: int) -> dict[str, Any]:
    """10: a recommended plan."""
    plans = advice.guidance.plan
    name, kind, ident = (int(word) for word in plans.spec[agent])
    ops = [_op(words, row) for row in plans.ops[agent, : int(plans.length[agent])]]
    if name < len(DOES):
        ops[-1]["args"] |= {"resource_type": kind_name(kind), "task_id": str(ident), "target_id": str(ident)}
    return {"task": f"{NAMES[name]}({kind_name(kind)}#{ident})", "actions": ops}


def _op(words: MACrafterVocabulary, row: Any) -> dict[str, Any]:
    args = words.op(row)
    return {"action_type": args.pop("action_type"), "args": args}


def tool_hint(tools: int, advice: Advice, agent: int) -> dict[str, Any]:
    """10: whether an agent has the tools of a task, and how to come by them."""
    members = advice.members
    has = bool(is_met(tools, int(tools_held(members.inventory[agent]))))
    planned = bool(is_met(tools, int(members.planned[agent])))
    return {
        "agent_id": agent_name(agent),
        "has_required_tool": has,
        "planned_acquires_required_tool": planned,
        "can_participate_after_current_plan": has or planned,
        "nearby_utilities": stations(members.near[agent]),
        "suggestion": suggestion(tools, members.inventory[agent], members.near[agent], planned),
    }


def suggestion(tools: int, inventory: Any, near: Any, planned: bool) -> str:
    """10: code of the next step towards the tools of a task; the first one that is missing decides."""
    held = int(tools_held(inventory))
    if is_met(tools, held):
        return "collect"
    if planned:
        return "finish_plan"
    tool = tool_names(int(tools_missing(tools, held)))[0]
    steps, station = {
        "wood_pickaxe": (_to_wood, Material.TABLE),
        "stone_pickaxe": (_to_stone, Material.TABLE),
        "iron_pickaxe": (_to_iron, Material.FURNACE),
    }[tool]
    return next(steps(inventory, bool(near[STATIONS.index(station)])))


def _to_wood(inventory: Any, has_table: bool) -> Iterator[str]:
    if has_table:
        yield "craft" if inventory[Item.WOOD] >= 1 else "collect_wood_return_craft"
    yield "place_table_then_craft" if inventory[Item.WOOD] >= 2 else "collect_wood"


def _to_stone(inventory: Any, has_table: bool) -> Iterator[str]:
    if inventory[Item.WOOD_PICKAXE] < 1:
        yield "need_wood_pickaxe"
    if inventory[Item.STONE] < 1:
        yield "coordinate_stone"
    if inventory[Item.WOOD] < 1:
        yield "collect_one_wood"
    if not has_table:
        yield "place_table_then_craft" if inventory[Item.WOOD] >= 2 else "navigate_table_or_wood"
    yield "craft"


def _to_iron(inventory: Any, has_furnace: bool) -> Iterator[str]:
    if inventory[Item.STONE_PICKAXE] < 1:
        yield "need_stone_pickaxe"
    if inventory[Item.IRON] < 1:
        yield "coordinate_iron"
    if inventory[Item.COAL] < 1:
        yield "coordinate_coal"
    if inventory[Item.WOOD] < 1:
        yield "collect_one_wood"
    if not has_furnace:
        yield "place_furnace_then_craft" if inventory[Item.STONE] >= 4 else "collect_stone"
    yield "craft"
