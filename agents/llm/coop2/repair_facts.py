"""From what a check and its guidance say, with names, to the facts of a repair request.

The dictionaries are those that the environments write of `Evaluation` and `Guidance`, in the form of the reference's
logs.  Numbers are sections of docs/coop2_repair.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxcoop.agents.llm.coop2.facts import Candidate, Failure, PlanView, RepairRequest, ToolHint
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan, specification

TOOL_ADVICE = {
    "collect": "holds it",
    "finish_plan": "will get it by the present plan",
    "craft": "craft it now",
    "collect_wood": "collect wood",
    "collect_wood_return_craft": "collect wood, come back and craft it",
    "place_table_then_craft": "place a table and craft it",
    "place_furnace_then_craft": "place a furnace and craft it",
    "navigate_table_or_wood": "go to a table, or collect wood for one",
    "need_wood_pickaxe": "get a wood_pickaxe first",
    "need_stone_pickaxe": "get a stone_pickaxe first",
    "coordinate_stone": "collect stone",
    "coordinate_coal": "collect coal, together if it takes several",
    "coordinate_iron": "collect iron, together if it takes several",
    "collect_one_wood": "collect 1 wood",
    "collect_stone": "collect stone",
}
"""10: what each code of a dependency hint asks of an agent."""


def repair_request(
    step: int,
    failures: Iterable[Mapping[str, Any]],
    guidance: Mapping[str, Any] | None,
    views: Mapping[int, PlanView],
    statements: Sequence[tuple[int, str]] = (),
) -> RepairRequest:
    """8: the facts of a request.  `failures` are the results that are not satisfied; `guidance` may be missing."""
    advice = guidance or {}
    target = advice.get("recommended_target")
    block = _block_name(target)
    return RepairRequest(
        step=step,
        failures=tuple(_failure(result) for result in failures),
        views=views,
        recommended={_number(agent): _plan(plan, block) for agent, plan in advice.get("recommended_plans", {}).items()},
        strategy=advice.get("strategy", ""),
        target=None if target is None else _candidate(target),
        candidates=tuple(_candidate(one) for one in advice.get("reachable_shared_targets", ())),
        tools=tuple(_tool_hint(hint) for hint in advice.get("dependency_prerequisites", ())),
        blocked=tuple(_candidate(one) for one in advice.get("blocked_targets_after_prerequisites", ())),
        statements=tuple(statements),
    )


def _failure(result: Mapping[str, Any]) -> Failure:
    details = result.get("metadata", {})
    return Failure(
        task=str(result["task_id"]),
        constraint=result["constraint_type"],
        score=float(result["score"]),
        required=int(result["required_agents"]),
        agents=tuple(_number(agent) for agent in result["agents"]),
        about=_when(details),
        tool=_tools(details.get("required_tool")),
    )


def _when(details: Mapping[str, Any]) -> str:
    """What is known of the time and place that the plans aim at."""
    parts = []
    starts = details.get("collect_steps", {})
    if starts:
        planned = "; ".join(f"{', '.join(who)} at step {step}" for step, who in starts.items())
        parts.append(f"planned: {planned}")
    elif "selected_step" in details:
        parts.append(f"expected at step {details['selected_step']}")
    if "effective_distance_threshold" in details:
        parts.append(f"within distance {details['effective_distance_threshold']}")
    return ", ".join(parts)


def _tools(tools: Any) -> str:
    return tools if isinstance(tools, str) else ", ".join(tools or ())


def _plan(plan: Mapping[str, Any], block: str) -> TextPlan:
    actions = tuple(Operation(action["action_type"], action["args"]) for action in plan["actions"])
    return TextPlan(plan.get("task", block), actions)


def _block_name(target: Mapping[str, Any] | None) -> str:
    """What recommended plans of CUBE are for: they name no task."""
    return "" if target is None else specification("push_block", "block", int(target["target_id"]))


def _candidate(target: Mapping[str, Any]) -> Candidate:
    place = target.get("position")
    is_block = "position" not in target
    return Candidate(
        target=f"{'block' if is_block else target['target_type']}#{target['target_id']}",
        participants=tuple(_number(a) for a in target.get("recommended_participants", target.get("participants", ()))),
        position=None if place is None else (place[0], place[1]),
        steps=target.get("max_estimated_steps"),
        timeout=target.get("recommended_timeout"),
        stage=target.get("dependency_stage", ""),
        reach=target.get("reachability", ""),
    )


def _tool_hint(hint: Mapping[str, Any]) -> ToolHint:
    advice = {_number(one["agent_id"]): _advice(one["suggestion"]) for one in hint["agent_prerequisites"]}
    return ToolHint(f"{hint['target_type']}#{hint['task_id']}", _tools(hint["required_tool"]), advice)


def _advice(code: str) -> str:
    return TOOL_ADVICE.get(code) or code.replace("_", " ")


def _number(agent: str) -> int:
    """Number of `agent_<number>`."""
    return int(agent.rpartition("_")[2])
