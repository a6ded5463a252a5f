"""Meals as cooperative tasks, in the vocabulary of all environments.

Axes: N philosophers (= tasks), K that act in one step.
Task i is the next meal of philosopher i.  What it takes is a pair of forks held at the same time, so the units that are
counted against `required` are forks, not agents: a philosopher that holds one of them is half way, and a table of
half-way philosophers is the circular wait.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxcoop.cooperation import Counts, TaskTable
from jaxcoop.core import bits
from jaxcoop.envs.dining.types import Action, Table

FORKS_OF_A_MEAL = 2


def tasks(table: Table) -> TaskTable:
    """A hungry philosopher's meal is an active task; worth 1, the reward of a meal."""
    n = table.meals.shape[0]
    ids = jnp.arange(n, dtype=jnp.int32)
    return TaskTable(
        active=~bits.unpack(table.eating, n),
        kind=jnp.zeros((n,), jnp.int32),
        place=jnp.stack([ids, (ids + 1) % n], axis=-1),  # its left and right fork
        required=jnp.full((n,), FORKS_OF_A_MEAL, jnp.int32),
        capability=jnp.full((n,), -1, jnp.int32),
        value=jnp.ones((n,), jnp.float32),
    )


def counts(table: Table) -> Counts:
    """Forks of each meal: both lie beside its philosopher (spatial), those in its hands now count as temporal."""
    n = table.meals.shape[0]
    held = bits.unpack(table.left, n).astype(jnp.int32) + bits.unpack(table.right, n).astype(jnp.int32)
    both = jnp.full((n,), FORKS_OF_A_MEAL, jnp.int32)
    return Counts(spatial=both, temporal=held, dependency=both, participation=held)


def attempts(agents: Int[Array, " K"], actions: Int[Array, " K"]) -> Int[Array, " K"]:
    """A grab is aimed at the philosopher's own meal; nothing else is aimed at any."""
    is_grab = (actions == Action.GRAB_LEFT) | (actions == Action.GRAB_RIGHT)
    return jnp.where(is_grab, agents, -1)
