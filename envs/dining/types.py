"""DPBench dining table: codes and state.

Axes: N philosophers (= forks), W words of 32 of them, K philosophers that act in one step (N, or 1 in sequential
mode).
Philosopher i sits between fork i (left) and fork i+1 mod N (right); 1: topology.
"""

from enum import IntEnum
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.core.bits import WORD, num_words


class Action(IntEnum):
    """3: what a philosopher can do.  An impossible action, or any other number, does nothing."""

    GRAB_LEFT = 0
    GRAB_RIGHT = 1
    RELEASE = 2
    WAIT = 3


ACTION_NAMES = ("grab_left", "grab_right", "release", "wait")


@struct.dataclass
class Table:
    """2: the dining table, as sets of philosophers and forks (`core.bits`), W words of 32.

    The hand flags are state of their own: they may disagree with the forks (4.3).  A fork is in at most one of
    `by_left` and `by_right`; in none of them it is free.
    """

    by_left: UInt32[Array, " W"]  # fork f is held by philosopher f, whose left fork it is
    by_right: UInt32[Array, " W"]  # fork f is held by philosopher f-1, whose right fork it is
    left: UInt32[Array, " W"]  # flag "I hold my left fork"
    right: UInt32[Array, " W"]  # flag "I hold my right fork"
    eating: UInt32[Array, " W"]  # the others are hungry; there is no third phase
    meals: Int[Array, " N"]  # meals so far


@struct.dataclass
class State:
    """An episode: the table and the runner's bookkeeping."""

    table: Table
    t: Int[Array, ""]  # table clock: timesteps (simultaneous) or turns (sequential)
    waiting: Int[Array, ""]  # hungry philosophers with exactly one fork in hand; N means circular wait (6)
    deadlock: Bool[Array, ""]  # a circular wait ended the episode
    deadlock_events: Int[Array, ""]  # circular waits that were resolved (7.3)
    hold_counts: Int[Array, " N"]  # 7.4: checks in a row with exactly one fork; empty when back-off is off


@struct.dataclass
class Draws:
    """The random numbers of a step."""

    backoff: Float[Array, " N"]  # U[0, 1) for 7.4; empty when back-off is off


@struct.dataclass
class Obs:
    """8: what K philosophers see of the table.  A fork in one's own hand counts as available."""

    eating: Bool[Array, " K"]
    meals: Int[Array, " K"]
    left_available: Bool[Array, " K"]
    right_available: Bool[Array, " K"]
    holding_left: Bool[Array, " K"]
    holding_right: Bool[Array, " K"]


@struct.dataclass
class Events:
    """What happened in a step."""

    meals: Int[Array, ""]  # philosophers whose meal count rose
    circular_wait: Bool[Array, ""]  # the predicate of 6 on the table after the step, before any resolution


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    meals: Int[Array, " N"]
    timesteps: Int[Array, ""]  # simultaneous: timesteps; sequential: turns
    deadlock: Bool[Array, ""]  # the episode ended in a circular wait
    deadlock_reported: Bool[Array, ""]  # 7.2: what the reference reports, never true in sequential mode
    deadlock_timestep: Int[Array, ""]  # clock of that end; 0: none
    deadlock_events: Int[Array, ""]
    timeout: Bool[Array, ""]  # 14, point 3: the limit came before everyone had `target_meals`


class Seats(NamedTuple):
    """A table in the notation of logs and recorded traces: an entry for each fork and philosopher."""

    fork: np.ndarray  # [..., N] holder id, -1 free
    left: np.ndarray  # [..., N] bool
    right: np.ndarray
    eating: np.ndarray
    meals: np.ndarray  # [..., N] int


def to_seats(table: Table) -> Seats:
    """Host copy of a table (any leading axes) in the notation of logs."""
    n = table.meals.shape[-1]
    sets = (table.by_left, table.by_right, table.left, table.right, table.eating)
    by_left, by_right, left, right, eating = (_unpacked(np.asarray(x), n) for x in sets)
    ids = np.arange(n)
    fork = np.where(by_left, ids, np.where(by_right, (ids - 1) % n, -1)).astype(np.int32)
    return Seats(fork, left, right, eating, np.asarray(table.meals))


def from_seats(seats: Seats) -> Table:
    """The inverse of `to_seats`.

    Raises `ValueError` if a fork is held by somebody who does not sit beside it.
    """
    fork = np.asarray(seats.fork)
    ids = np.arange(fork.shape[-1])
    by_left, by_right = fork == ids, fork == (ids - 1) % fork.shape[-1]
    if not (by_left | by_right | (fork == -1)).all():
        raise ValueError(f"fork holders {fork.tolist()}: fork f can only be held by philosopher f or f-1")
    sets = (by_left, by_right, seats.left, seats.right, seats.eating)
    packed = (jnp.asarray(_packed(np.asarray(x, np.bool_))) for x in sets)
    return Table(*packed, jnp.asarray(seats.meals, jnp.int32))


def _unpacked(words: np.ndarray, num_agents: int) -> np.ndarray:
    lanes = (words[..., None] >> np.arange(WORD, dtype=np.uint32)) & 1
    return lanes.reshape(*words.shape[:-1], -1)[..., :num_agents] != 0


def _packed(members: np.ndarray) -> np.ndarray:
    n = members.shape[-1]
    padded = np.zeros((*members.shape[:-1], num_words(n) * WORD), np.uint32)
    padded[..., :n] = members
    lanes = padded.reshape(*members.shape[:-1], num_words(n), WORD)
    return (lanes << np.arange(WORD, dtype=np.uint32)).sum(-1, dtype=np.uint32)
