"""What planners get wrong: the errors of weak models, drawn for each plan.

Axes: A agents.  The three kinds are those that COOP² counts as violated constraints: a plan without the tool that its
task requires (dependency), one for another task than the partners' (spatial), one that acts at another time than they
do (temporal).
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.core.options import check_ranges
from jaxcoop.core.registry import unknown

LONGEST_PAUSE = 6
"""Steps that a plan out of step waits at most before it acts; one at least."""


@dataclasses.dataclass(frozen=True)
class Mistakes:
    """Probabilities, each for one plan of one agent.  Raises `ValueError` for one that is not from 0 to 1."""

    wrong_tool: float = 0.0  # goes for a task of the team without the tool that it takes
    too_few: float = 0.0  # goes for a task of its own where partners count on it
    out_of_step: float = 0.0  # waits before the op that has to be done together
    follows: float = 1.0  # of plans after a repair: takes the advised one, if there is one

    def __post_init__(self) -> None:
        """Check every probability."""
        check_ranges(self, [(field.name, 0, 1) for field in dataclasses.fields(self)])


LEVELS: Mapping[str, Mistakes] = MappingProxyType(
    {
        "perfect": Mistakes(),
        "strong": Mistakes(wrong_tool=0.03, too_few=0.05, out_of_step=0.10, follows=0.95),
        "middling": Mistakes(wrong_tool=0.10, too_few=0.20, out_of_step=0.30, follows=0.85),
        "weak": Mistakes(wrong_tool=0.25, too_few=0.40, out_of_step=0.50, follows=0.70),
    }
)
"""Mistakes in the spirit of models of different strength; the numbers are invented, not measured."""


def mistakes_of(level: str) -> Mistakes:
    """The mistakes of a level.  Raises `ValueError` naming those that there are."""
    if level not in LEVELS:
        raise unknown("level of mistakes", level, LEVELS)
    return LEVELS[level]


class Slips(NamedTuple):
    """What goes wrong in the plans that are made now."""

    wrong_tool: Bool[Array, " A"]
    too_few: Bool[Array, " A"]
    pause: Int[Array, " A"]  # steps to wait before acting, 0: in step
    follows: Bool[Array, " A"]  # takes advice


def slips_of(mistakes: Mistakes, key: Array, is_careful: Bool[Array, " A"]) -> Slips:
    """Drawn for every agent; those who are careful slip in nothing, but need not follow advice either."""
    agents = is_careful.shape[0]
    key_kinds, key_pause = jax.random.split(key)
    draw = jax.random.uniform(key_kinds, (4, agents))
    pause = jax.random.randint(key_pause, (agents,), 1, LONGEST_PAUSE + 1, jnp.int32)
    slips = ~is_careful
    return Slips(
        wrong_tool=slips & (draw[0] < mistakes.wrong_tool),
        too_few=slips & (draw[1] < mistakes.too_few),
        pause=jnp.where(slips & (draw[2] < mistakes.out_of_step), pause, 0),
        follows=draw[3] < mistakes.follows,
    )
