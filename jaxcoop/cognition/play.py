"""Whole episodes on the device: agents whose planner is a pure function.

Axes: A agents, B episodes.  All episodes of a batch go from primitive step to primitive step together: while anybody
is asked, only answers are made; otherwise all that are ready step.  What an episode does is the same in any batch.
"""

from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import channel, plans, process, schedule, world
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.state import State
from jaxcoop.cognition.types import Answer
from jaxcoop.core.rollout import MEMORY, episode_key, in_groups

ANSWERS = 2**31 + 1
"""Stream of a planner's numbers beside those of the steps and latencies."""


class PlanMaker(Protocol):
    """Answers the calls of a team; a frozen, hashable dataclass with pure methods for one episode."""

    def init(self, key: Array) -> Any:
        """What it remembers at the start of an episode."""
        ...

    def answer(self, key: Array, memory: Any, state: State, asks: Bool[Array, " A"]) -> tuple[Answer, Any]:
        """Answers for the agents in `asks`, all of them asked at one moment; other rows mean nothing."""
        ...


def answer_key(state: State) -> Array:
    """Key of the answers that an episode waits for: equal for equal histories of calls."""
    return jax.random.fold_in(jax.random.fold_in(state.mind_key, ANSWERS), state.minds.calls.sum())


def play(setup: Setup, maker: PlanMaker, root: Array, episodes: Int[Array, " B"]) -> State:
    """Final states [B, ...] of the numbered episodes; compiled once for each (setup, maker, B)."""
    return _play(setup, maker, root, jnp.asarray(episodes, jnp.int32))


@partial(jax.jit, static_argnums=(0, 1))
def _play(setup: Setup, maker: PlanMaker, root: Array, episodes: Int[Array, " B"]) -> State:
    states = in_groups(partial(process.begin, setup, root), episodes)
    memory = jax.vmap(lambda e: maker.init(jax.random.fold_in(episode_key(root, e), MEMORY)))(episodes)
    settle = jax.vmap(partial(schedule.settle, setup))

    def answer(states: State, memory: Any, asks: Array) -> tuple[State, Any]:
        given, after = jax.vmap(maker.answer)(jax.vmap(answer_key)(states), memory, states, asks)
        memory = plans.where(asks.any(1), after, memory)
        return jax.vmap(partial(process.apply, setup))(states, given, asks), memory

    def step(states: State, memory: Any, asks: Array) -> tuple[State, Any]:
        del asks
        on = states.at_barrier & ~states.over
        states = jax.vmap(partial(channel.check, setup))(states, on)
        on = states.at_barrier & ~states.over
        return jax.vmap(partial(world.make_step, setup))(states, on), memory

    def one_round(carry: tuple[State, Any]) -> tuple[State, Any]:
        states, memory = settle(carry[0]), carry[1]
        asks = jax.vmap(schedule.needs)(states)
        return jax.lax.cond(asks.any(), answer, step, states, memory, asks)

    states, _ = jax.lax.while_loop(lambda c: ~c[0].over.all(), one_round, (states, memory))
    return jax.vmap(plans.close_all)(states, states.over)
