"""17: tables of recorded episodes, rebuilt from their actions for logs.

Axes: M steps (timesteps or turns), K philosophers that act in one step, N philosophers.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.records import EpisodeTrace
from jaxcoop.envs.dining.types import Table, to_seats


@partial(jax.jit, static_argnames="env")
def replay_tables(env: Dining, actions: Int[Array, "M K"]) -> Table:
    """The tables after each step, before a circular wait is resolved (7.3); leading axis M.

    The back-off rule draws random numbers, so `env.backoff` must be off.
    """
    unresolved = dataclasses.replace(env, deadlock_terminal=True)
    start = env.reset(jax.random.key(0))
    draws = env.sample_draws(jax.random.key(0), start)

    def step(state: object, action: Int[Array, " K"]) -> tuple[object, Table]:
        table = unresolved.step(state, action, draws).state.table
        return env.step(state, action, draws).state, table

    return jax.lax.scan(step, start, actions)[1]


def trace_episode(
    env: Dining,
    actions: np.ndarray,
    messages: list[str | None] | None = None,
    reasoning: list[str | None] | None = None,
) -> EpisodeTrace:
    """One episode as the log writer wants it, from its actions in the order asked (philosophers in id order).

    Raises `ValueError` for an environment whose back-off rule is on: actions alone do not tell its tables.
    """
    if env.backoff:
        raise ValueError("backoff True: the tables of such an episode cannot be rebuilt from its actions")
    steps = np.asarray(actions, np.int32).reshape(-1, env.num_actors)
    # Padding to whole time limits keeps it at one program for each environment.
    padded = np.zeros((env.horizon, env.num_actors), np.int32)
    padded[: len(steps)] = steps
    seats = [field[: len(steps)] for field in to_seats(jax.device_get(replay_tables(env, jnp.asarray(padded))))]
    return EpisodeTrace(
        env.mode,
        *seats,
        actions=steps if not env.is_sequential else steps[:, 0],
        messages=messages,
        reasoning=reasoning,
        deadlock_terminal=env.deadlock_terminal,
    )
