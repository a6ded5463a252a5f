"""Scripted planners that make whole plans for agents that think, by environment.

They answer the calls of `jaxcoop.cognition` on the device; `jaxcoop.cognition.play.play` runs them.
"""

from typing import TYPE_CHECKING

from jaxcoop.agents.scripted.plans.mistakes import LEVELS, Mistakes, mistakes_of
from jaxcoop.core import Env

if TYPE_CHECKING:
    from jaxcoop.agents.scripted.plans.cube import CubePlans
    from jaxcoop.agents.scripted.plans.macrafter import CrafterPlans

SILENT = "individual"
"""Structure in which nobody tells anybody what it plans."""


def plan_maker(
    env: Env, structure: str, mistakes: Mistakes | str = "perfect", ops: int = 8
) -> "CubePlans | CrafterPlans":
    """The planner of a team: in every structure but `SILENT` the agents know each other's plans.

    `mistakes`: or one of `LEVELS` by name; `ops`: as in `Setup.plan_ops`.  Raises `ValueError` for an environment
    without such a planner and for too few ops.
    """
    chosen = mistakes_of(mistakes) if isinstance(mistakes, str) else mistakes
    if env.name == "cube":
        from jaxcoop.agents.scripted.plans.cube import CubePlans as Plans
    elif env.name == "macrafter":
        from jaxcoop.agents.scripted.plans.macrafter import CrafterPlans as Plans
    else:
        raise ValueError(f"environment {env.name!r}: scripted plans exist for cube and macrafter")
    return Plans(env, chosen, knows_plans=structure != SILENT, ops=ops)  # type: ignore[arg-type]  # its own env


__all__ = ["LEVELS", "SILENT", "Mistakes", "mistakes_of", "plan_maker"]
