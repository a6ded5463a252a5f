"""10: how agents of MA-Crafter come by the tools that a failing task takes.

Axes: A agents, L ops of a plan, W words of an op row.  Host side, numpy; numbers are sections of docs/coop2_repair.md.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Int

from jaxcoop.agents.llm.coop2.facts import ToolHint
from jaxcoop.agents.llm.coop2.repair_facts import TOOL_ADVICE
from jaxcoop.cognition.logs import TaskWords
from jaxcoop.envs.macrafter.guidance_text import suggestion, tool_names
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.tools import ALL, ANY, STATIONS, TOOL_CRAFTS, TOOL_ITEMS, TOOL_NAMES, is_met
from jaxcoop.envs.macrafter.types import MATERIAL_MASK, State


def tool_hints(
    state: State,
    tasks: Iterable[TaskWords],
    agents: Sequence[int],
    ops: Int[np.ndarray, "A L W"],
    index: Int[np.ndarray, " A"],
    length: Int[np.ndarray, " A"],
) -> tuple[ToolHint, ...]:
    """What each of `agents` lacks for each task, and its next step; `index` and `length` bound what is left to do."""
    near = {agent: stations_near(state, agent) for agent in agents}
    planned = {agent: tools_planned(agent, ops[agent, index[agent] : length[agent]]) for agent in agents}
    hints = []
    for task in tasks:
        tools = _requirement(task)
        advice = {
            agent: _advice(
                suggestion(tools, state.inventory[agent], near[agent], bool(is_met(tools, planned[agent]))),
            )
            for agent in agents
        }
        hints.append(ToolHint(f"{task.type}#{task.id}", ", ".join(tool_names(tools & ALL)), advice))
    return tuple(hints)


def _requirement(task: TaskWords) -> int:
    """The tools of a task as the set that `jaxcoop.envs.macrafter.tools` counts with."""
    joined = task.tool or ""
    names = joined.replace("|", "+").split("+")
    tools = sum(1 << number for number, name in enumerate(TOOL_NAMES) if name in names)
    return tools | (ANY if "|" in joined else 0)


def _advice(code: str) -> str:
    return TOOL_ADVICE.get(code) or code.replace("_", " ")


def stations_near(state: State, agent: int) -> Bool[np.ndarray, " 2"]:
    """Which stations are in the 3 x 3 cells around an agent; nothing is near the first row and column."""
    x, y = int(state.x[agent]), int(state.y[agent])
    if x <= 0 or y <= 0:
        return np.zeros(len(STATIONS), np.bool_)
    around = np.asarray(state.material)[x - 1 : x + 2, y - 1 : y + 2] & MATERIAL_MASK
    return np.array([(around == station).any() for station in STATIONS])


def tools_planned(agent: int, ops: Int[np.ndarray, "L W"]) -> int:
    """The tools that ops bring before their first collect: made, or shared with oneself or with nobody."""
    tools = 0
    for kind, first, second in ops[:, :3].tolist():
        if kind == Op.COLLECT:
            break
        if kind == Op.CRAFT and first in TOOL_CRAFTS:
            tools |= 1 << TOOL_CRAFTS.index(first)
        if kind == Op.SHARE and second in TOOL_ITEMS and first in (agent, -1):
            tools |= 1 << TOOL_ITEMS.index(second)
    return tools
