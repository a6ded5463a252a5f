"""Scripted teams of the crafting world, by name."""

from jaxcoop.agents.registry import PolicySpec
from jaxcoop.agents.scripted.macrafter.planner import GreedyTeam
from jaxcoop.agents.skilled import SkilledPolicy
from jaxcoop.core import Env, Policy
from jaxcoop.envs.macrafter import MACrafter


def _greedy(env: Env) -> Policy:
    if not isinstance(env, MACrafter):
        raise ValueError(f"{env.name}: the crafting team plays macrafter only")
    return SkilledPolicy(env, GreedyTeam(env))


POLICIES: dict[str, PolicySpec] = {
    "greedy": PolicySpec(
        "greedy",
        "squads that share everything and work their way up to the diamonds; sees the whole state",
        _greedy,
        default=True,
    )
}

__all__ = ["POLICIES", "GreedyTeam"]
