"""8: what a philosopher sees of the table; and which actions can have an effect.

Axes: N philosophers, K of them that are asked for (default: all).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.dining.rules import from_right
from jaxcoop.envs.dining.types import BY_LEFT_USER, BY_RIGHT_USER, FREE, Action, Obs, Table


def side_forks(table: Table, agents: Int[Array, " K"] | None) -> tuple[Array, Array]:
    """Codes of the left and of the right fork of each philosopher."""
    if agents is None or agents.shape[0] == table.fork.shape[0]:
        return table.fork, from_right(table.fork)
    return table.fork[agents], table.fork[(agents + 1) % table.fork.shape[0]]


def rows(x: Array, agents: Int[Array, " K"] | None) -> Array:
    """Entries of the given philosophers; all of them are asked for in id order."""
    return x if agents is None or agents.shape[0] == x.shape[0] else x[agents]


def observe(table: Table, agents: Int[Array, " K"] | None = None) -> Obs:
    """Observation of each philosopher; nobody sees who holds a fork, nor the clock, nor others' meals."""
    left_fork, right_fork = side_forks(table, agents)
    return Obs(
        eating=rows(table.eating, agents),
        meals=rows(table.meals, agents),
        left_available=(left_fork == FREE) | (left_fork == BY_LEFT_USER),
        right_available=(right_fork == FREE) | (right_fork == BY_RIGHT_USER),
        holding_left=rows(table.left, agents),
        holding_right=rows(table.right, agents),
    )


def legal(table: Table, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 4"]:
    """14, point 6: grabs of free forks, RELEASE when something is held, WAIT always."""
    left_fork, right_fork = side_forks(table, agents)
    holding = rows(table.left, agents) | rows(table.right, agents)
    mask = {
        Action.GRAB_LEFT: left_fork == FREE,
        Action.GRAB_RIGHT: right_fork == FREE,
        Action.RELEASE: holding,
        Action.WAIT: jnp.ones_like(holding),
    }
    return jnp.stack([mask[action] for action in Action], axis=-1)
