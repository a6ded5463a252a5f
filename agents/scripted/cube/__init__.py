"""Scripted teams of CUBE, by name."""

from jaxcoop.agents.registry import PolicySpec
from jaxcoop.agents.scripted.cube.greedy import GreedyPlanner
from jaxcoop.agents.skilled import SkilledPolicy
from jaxcoop.core import Env, Policy
from jaxcoop.envs.cube import Cube


def _greedy(env: Env) -> Policy:
    """The team of `greedy`; raises `ValueError` for another environment than CUBE."""
    if not isinstance(env, Cube):
        raise ValueError(f"environment {env.name!r}: greedy plays cube")
    return SkilledPolicy(env, GreedyPlanner(env))


POLICIES: dict[str, PolicySpec] = {
    "greedy": PolicySpec("greedy", "teams deliver block after block, several at a time", _greedy, default=True)
}

__all__ = ["POLICIES", "GreedyPlanner"]
