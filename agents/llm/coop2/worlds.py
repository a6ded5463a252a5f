"""What an agent perceives, from a state of one episode on the host (`jax.device_get`).

The texts are those of `jaxcoop.envs.cube.text` and `jaxcoop.envs.macrafter.text`.
"""

from collections.abc import Iterable
from typing import Any

from jaxcoop.agents.llm.coop2.facts import World
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.envs.cube import text as cube_text
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.types import State as CubeState
from jaxcoop.envs.macrafter import text as macrafter_text
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.hints import VIEW_COLUMNS, VIEW_ROWS
from jaxcoop.envs.macrafter.types import DIRECTION_NAMES, ITEM_NAMES, Item
from jaxcoop.envs.macrafter.types import State as MACrafterState

VITALS = ("health", "food", "drink", "energy")


def worlds(
    profile: Profile, env: Any, state: Any, agents: Iterable[int], seconds: float | None = None
) -> dict[int, World]:
    """What each of `agents` perceives; `seconds` is the limit on the wall clock, if there is one."""
    if profile == "cube":
        return cube_worlds(env, state, agents)
    return macrafter_worlds(env, state, agents, seconds)


def cube_worlds(env: Cube, state: CubeState, agents: Iterable[int]) -> dict[int, World]:
    """What each of `agents` perceives of CUBE; the views of all are written at once."""
    views, cells = cube_text.symbolic_views(env, state), cube_text.agent_cells(state)
    configuration = f"{cube_text.task_text(env)}\nDelivered so far: {float(state.score):g}."
    return {
        agent: World(
            configuration=configuration,
            view=views[agent],
            position="row {}, column {}".format(*cells[agent]) if agent in cells else "not on the grid",
        )
        for agent in agents
    }


def macrafter_worlds(
    env: MACrafter, state: MACrafterState, agents: Iterable[int], seconds: float | None = None
) -> dict[int, World]:
    """What each of `agents` perceives of MA-Crafter; `seconds` is the limit on the wall clock, if there is one."""
    configuration = macrafter_text.team_text(env, seconds)
    return {agent: _macrafter_world(env, state, agent, configuration) for agent in agents}


def _macrafter_world(env: MACrafter, state: MACrafterState, agent: int, configuration: str) -> World:
    inventory = [int(count) for count in state.inventory[agent]]
    x, y = int(state.x[agent]), int(state.y[agent])
    left, top = x - VIEW_COLUMNS // 2, y - VIEW_ROWS // 2
    return World(
        configuration=configuration,
        view=macrafter_text.view_text(env, state, agent),
        position=f"x={x}, y={y}, facing {DIRECTION_NAMES[int(state.facing[agent])]}",
        visible_area=f"x from {left} to {left + VIEW_COLUMNS - 1}, y from {top} to {top + VIEW_ROWS - 1}",
        status=_status_text(inventory, is_asleep=bool(state.sleeping[agent])),
        inventory=macrafter_text.inventory_text(inventory),
        hints=macrafter_text.hints_text(env, state, agent),
    )


def _status_text(inventory: list[int], is_asleep: bool) -> str:
    """Vitals with zeros, then what is there of tools and resources."""
    vitals = ", ".join(f"{name} {inventory[ITEM_NAMES.index(name)]}" for name in VITALS)
    tools = [name for name, count in zip(ITEM_NAMES, inventory) if count and name.endswith(("pickaxe", "sword"))]
    resources = [
        f"{name} {count}"
        for name, count in zip(
            ITEM_NAMES[Item.SAPLING : Item.WOOD_PICKAXE], inventory[Item.SAPLING : Item.WOOD_PICKAXE]
        )
        if count
    ]
    asleep = "; you are asleep" if is_asleep else ""
    return f"{vitals}; tools: {', '.join(tools) or 'none'}; resources: {', '.join(resources) or 'none'}{asleep}"
