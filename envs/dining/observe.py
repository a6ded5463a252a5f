"""8: what a philosopher sees of the table; and which actions can have an effect.

Axes: N philosophers, K of them that are asked for (default: all).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.core import bits
from jaxcoop.envs.dining.types import Action, Obs, Table


def is_everybody(table: Table, agents: Int[Array, " K"] | None) -> bool:
    """Whether the whole table is asked for; the ids are then 0 … N-1, in order."""
    return agents is None or agents.shape[0] == table.meals.shape[0]


def members(words: Array, table: Table, agents: Int[Array, " K"] | None, seat: int = 0) -> Bool[Array, " K"]:
    """Which of the philosophers (with `seat` 1: whose right fork) are in the set."""
    n = table.meals.shape[0]
    if agents is None or is_everybody(table, agents):
        return bits.unpack(bits.from_next(words, n) if seat else words, n)
    return bits.get(words, (agents + seat) % n)


def observe(table: Table, agents: Int[Array, " K"] | None = None) -> Obs:
    """Observation of each philosopher; nobody sees who holds a fork, nor the clock, nor others' meals."""
    return Obs(
        eating=members(table.eating, table, agents),
        meals=table.meals if agents is None or is_everybody(table, agents) else table.meals[agents],
        left_available=~members(table.by_right, table, agents),
        right_available=~members(table.by_left, table, agents, seat=1),
        holding_left=members(table.left, table, agents),
        holding_right=members(table.right, table, agents),
    )


def legal(table: Table, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 4"]:
    """14, point 6: grabs of free forks, RELEASE when something is held, WAIT always."""
    held = table.by_left | table.by_right
    holding = members(table.left | table.right, table, agents)
    mask = {
        Action.GRAB_LEFT: ~members(held, table, agents),
        Action.GRAB_RIGHT: ~members(held, table, agents, seat=1),
        Action.RELEASE: holding,
        Action.WAIT: jnp.ones_like(holding),
    }
    return jnp.stack([mask[action] for action in Action], axis=-1)
