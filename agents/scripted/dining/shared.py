"""Philosophers that look beyond their own observation: precedence by meals, and a timetable.

Axes: N philosophers, K that decide now (N, or the one whose turn it is).  Each class says what it reads.
Definitions: section 16 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import dataclasses
from typing import Literal

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.dining.local import choose, greedy
from jaxcoop.core import Turn
from jaxcoop.core.registry import unknown
from jaxcoop.envs.dining.types import Action

MEAL_TICKS = 3
"""Length of a lone philosopher's meal: grab, grab, put down (4.1)."""


@struct.dataclass
class Precedence:
    """Chandy and Misra's record, common to the whole table."""

    to_left_user: Bool[Array, " N"]  # who may take fork f first: its left user f, or its right user f-1
    meals: Int[Array, " N"]  # meal counts at the last look


@dataclasses.dataclass(frozen=True)
class ChandyMisra:
    """Chandy and Misra's precedence: left-first, but only with precedence on both forks; a meal ends it.

    Centralised: reads every philosopher's meal count (`state.table.meals`), O(N) per decision.
    Raises `ValueError` for an unknown start.
    """

    num_agents: int  # N
    start: Literal["low", "even"] = "low"  # precedence goes first to the lower id, or to the even id, of two users

    def __post_init__(self) -> None:
        """Check the start."""
        if self.start not in ("low", "even"):
            raise unknown("start", self.start, ("low", "even"))

    def init(self, key: Array) -> Precedence:
        """Precedence before anybody has eaten."""
        del key
        forks = jnp.arange(self.num_agents, dtype=jnp.int32)
        # Users of fork f are f-1 and f, those of fork 0 are N-1 and 0, of which 0 is both the lower and even.
        to_left_user = forks == 0 if self.start == "low" else forks % 2 == 0
        return Precedence(to_left_user=to_left_user, meals=jnp.zeros((self.num_agents,), jnp.int32))

    def act(self, key: Array, memory: Precedence, turn: Turn) -> tuple[Int[Array, " K"], Precedence]:
        """Bring the precedence up to date, then decide."""
        del key
        meals = turn.state.table.meals
        ate = meals > memory.meals  # [N]
        # An eater's left fork goes to its left neighbour, which is that fork's right user; then its right
        # fork to its right neighbour, which is that fork's left user.
        to_left_user = (memory.to_left_user & ~ate) | jnp.roll(ate, 1)
        right_forks = (turn.agents + 1) % self.num_agents
        is_first = to_left_user[turn.agents] & ~to_left_user[right_forks]
        actions = choose(is_first, greedy(turn.obs, jnp.ones_like(is_first)), Action.WAIT)
        return actions, Precedence(to_left_user=to_left_user, meals=meals)


@dataclasses.dataclass(frozen=True)
class ColourTimetable:
    """A common timetable: the ring is coloured, and the colours eat in turn, a whole meal each.

    Reads the clock beside the own id (`state.t`; a tick is a timestep, in sequential mode a round), but
    nothing of the table.
    """

    num_agents: int  # N

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Left, right, put down in the own colour's time; WAIT in the others'."""
        del key
        tick = turn.state.t // (self.num_agents // turn.agents.shape[0])
        is_odd_ring = self.num_agents % 2 == 1  # two colours do not close an odd ring
        last = turn.agents == self.num_agents - 1
        colour = jnp.where(last & is_odd_ring, 2, turn.agents % 2)
        is_own_time = tick // MEAL_TICKS % (3 if is_odd_ring else 2) == colour
        part = tick % MEAL_TICKS
        actions = choose(part == 0, Action.GRAB_LEFT, choose(part == 1, Action.GRAB_RIGHT, Action.WAIT))
        return choose(is_own_time, actions, Action.WAIT), memory
