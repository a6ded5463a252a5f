"""Scripted planners of teams that think, by name."""

from jaxcoop.agents.minds.options import MindOptions, can_think
from jaxcoop.agents.scripted.plans import LEVELS, plan_maker
from jaxcoop.cognition.play import PlanMaker
from jaxcoop.core import Env
from jaxcoop.core.registry import unknown

PLANS = "plans"
"""Name of the planner without mistakes; `plans_LEVEL` makes those of a level."""

PERFECT = "perfect"
_SAYS = {PERFECT: "thinks: whole plans, without mistakes"}


def levels() -> dict[str, str]:
    """Level of mistakes by name of the player."""
    return {PLANS if level == PERFECT else f"{PLANS}_{level}": level for level in LEVELS}


def is_mind(agent: str, env_name: str) -> bool:
    """Whether the name is that of a team that thinks by script."""
    return can_think(env_name) and agent in levels()


def list_minds(env_name: str) -> dict[str, str]:
    """Players that think in the environment, each with a line that describes it."""
    if not can_think(env_name):
        return {}
    return {name: _SAYS.get(level, f"the same with the mistakes of {level} models") for name, level in levels().items()}


def player_of(level: str) -> str:
    """Name of the player that makes the mistakes of a level.  Raises `ValueError` for an unknown level."""
    names = {level: name for name, level in levels().items()}
    if level not in names:
        raise unknown("level of mistakes", level, names)
    return names[level]


def make_planner(agent: str, env: Env, options: MindOptions) -> PlanMaker:
    """The planner of a team.  Raises `ValueError` for an unknown name."""
    if agent not in levels():
        raise unknown("scripted planner", agent, levels())
    return plan_maker(env, options.structure, levels()[agent], options.plan_ops)
