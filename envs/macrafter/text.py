"""16: what planners read about the crafting world; host side, in our own words.

Three texts: the view of one agent, the hints that go with it, and what the whole team should know about the rules.
Take a state of one episode to the host first (`jax.device_get`).
"""

from collections.abc import Iterable, Sequence

from jaxcoop.core.skills import Report, Status
from jaxcoop.envs.macrafter.config import half_points, requirements
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.hints import VIEW_COLUMNS, VIEW_ROWS, Entity, Surroundings, Target, Utility
from jaxcoop.envs.macrafter.skills import REASONS
from jaxcoop.envs.macrafter.types import (
    ITEM_NAMES,
    MATERIAL_NAMES,
    RESOURCES,
    Last,
    Material,
    Reason,
    State,
)

OUTSIDE = "."
"""A cell of the view that is not part of the world."""

_STATION_NAMES = ("table", "furnace")


def agent_name(agent: int) -> str:
    """Name of an agent everywhere in texts."""
    return f"agent_{agent}"


def short_name(entity: Entity, stations: dict[int, Utility]) -> str:
    """Entry of the view: first three letters of the name and id; stations in full with their local id."""
    if entity.kind == "agent":
        return f"A{entity.name}#{entity.id}"
    if entity.name in _STATION_NAMES:
        station = stations[entity.id]
        return f"{entity.name}#{station.item_id or station.stable_id}"
    return f"{entity.name[:3]}#{entity.id}"


def view_text(env: MACrafter, state: State, agent: int) -> str:
    """What one agent sees: who and where it is, 7 rows of 9 cells around it, what it carries, stations, a legend."""
    around = Surroundings(env, state, agent)
    stations = {station.stable_id: station for station in around.stations()}
    lines = [
        f"You are {agent_name(agent)} (id {int(state.agent_id) + agent}), at x={around.x}, y={around.y}.",
        "Your view (x grows to the right, y grows downwards, you are in the centre):",
    ]
    shown: set[str] = set()
    for row, cells in enumerate(around.view()):
        entries = []
        for column, cell in enumerate(cells):
            # who or what stands in a cell hides the ground
            entities = cell[1:] or cell
            shown |= {entity.name for entity in entities if entity.kind != "agent"}
            entry = ",".join(short_name(entity, stations) for entity in entities) or OUTSIDE
            is_centre = (row, column) == (VIEW_ROWS // 2, VIEW_COLUMNS // 2)
            entries.append(f"[{entry}]" if is_centre else entry)
        lines.append("  " + " ".join(entries))
    lines.append(f"You carry: {inventory_text(around.inventory)}.")
    lines += [_station_line(station) for station in stations.values()] or ["No table or furnace in view."]
    lines.append(legend_text(shown))
    return "\n".join(lines)


def _station_line(station: Utility) -> str:
    name = station.item_id or "none"
    x, y = station.position
    return f"In view: {station.object_type}, local id {name}, id {station.stable_id}, at x={x}, y={y}."


def legend_text(names: Iterable[str]) -> str:
    """What the short names of a view stand for."""
    entries = [f"{name[:3]} = {name}" for name in sorted(names) if len(name) > 3 and name not in _STATION_NAMES]
    return "; ".join(
        [
            "Legend: name#id; the number after # names the thing in actions",
            *entries,
            "A<i> = agent i",
            "[ ] = your own cell",
            f"{OUTSIDE} = outside the world",
        ]
    )


def inventory_text(inventory: Sequence[int]) -> str:
    """Every item that is there, with its number."""
    held = [f"{name} {int(count)}" for name, count in zip(ITEM_NAMES, inventory, strict=True) if count]
    return ", ".join(held) or "nothing"


def hints_text(env: MACrafter, state: State, agent: int) -> str:
    """The targets and stations that one agent can get to, the nearest first."""
    around = Surroundings(env, state, agent)
    targets = [f"- {target_text(target)}" for target in around.reachable()] or ["- none in view"]
    stations = [
        f"- {u.object_type} {u.item_id or u.stable_id} (id {u.stable_id}) at x={u.position[0]}, y={u.position[1]}, "
        f"{_steps(u.distance)}"
        for u in around.utilities()
    ] or ["- none in view"]
    return "\n".join(["Targets you can get to:", *targets, "Tables and furnaces you can get to:", *stations])


def target_text(target: Target) -> str:
    """One target with all a planner needs to choose it."""
    x, y = target.position
    parts = [f"{target.object_type}#{target.item_id} at x={x}, y={y}", _steps(target.distance)]
    if target.purpose == "score":
        parts.append(_points(target.score))
    else:
        parts.append("food, no points")
    parts.append(_agents(target.required_agents))
    if target.required_tool:
        parts.append(f"{target.required_tool} needed: you have {'it' if target.tool_ready else 'none'}")
    return ", ".join(parts)


def _steps(count: int) -> str:
    return "in reach" if count == 0 else f"{count} step{'' if count == 1 else 's'} away"


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count} agents at once"


def _points(score: float) -> str:
    return f"{score:g} point{'' if score == 1 else 's'} a unit"


def team_text(env: MACrafter, seconds: float | None = None) -> str:
    """What the whole team should know: the task, how far one reaches, what each resource takes, how long there is.

    `seconds` is the runner's limit on the wall clock, if it has one.
    """
    needs, points = requirements(env.settings.tasks), half_points(env.settings.tasks)
    team = env.num_agents
    lines = [
        f"You are a team of {team} in a world of {env.width} x {env.height} cells. Together you collect resources; "
        "every unit that anybody receives adds its points to the score of the team.",
        f"Collecting takes everything within Manhattan distance {env.distance} that enough agents with the tool are "
        "working on in the same step. Each of them receives a full unit.",
        "Resources:",
    ]
    impossible = []
    for code in RESOURCES:
        need, name = needs[code], MATERIAL_NAMES[code]
        mode = " or " if need.any_tool else " and "
        tool = f"each holding {mode.join(need.tools)}" if need.tools else "no tool"
        lines.append(f"- {name}: {_agents(need.agents)}, {tool}; {_points(points[code] / 2)}")
        if need.agents > team:
            impossible.append(name)
    if impossible:
        lines.append(f"Out of reach for a team of this size: {', '.join(impossible)}.")
    if needs[Material.WATER].agents == 1 and not needs[Material.WATER].tools:
        lines.append("Water gives drink and cows give food, without points.")
    if env.bag:
        lines.append(f"An agent can carry {env.bag} units; with a full bag it receives nothing.")
    if env.terminate_on_diamond:
        lines.append("The episode ends when the first diamond is collected.")
    limit = "" if seconds is None else f", or until {seconds:g} seconds have passed"
    lines.append(f"The episode lasts at most {env.horizon} steps{limit}.")
    return "\n".join(lines)


def report_text(report: Report, last: Last, agent: int) -> str:
    """What became of an agent's symbolic action in the last step."""
    status = Status(int(report.status[agent]))
    if status != Status.FAILED:
        return "done" if status == Status.SUCCESS else "still under way"
    reason = Reason(int(report.reason[agent]))
    if reason == Reason.TOO_FEW_AGENTS:
        need, have = int(last.need[agent]), int(last.have[agent])
        return f"failed: takes {_agents(need)} with the tool, there were {have}"
    return f"failed: {REASONS.get(reason, 'unknown reason')}"
