"""DPBench dining table: codes and state.

Axes: N philosophers (= forks), K philosophers that act in one step (N, or 1 in sequential mode).
Philosopher i sits between fork i (left) and fork i+1 mod N (right); 1: topology.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, Int8


class Action(IntEnum):
    """3: what a philosopher can do.  An impossible action, or any other number, does nothing."""

    GRAB_LEFT = 0
    GRAB_RIGHT = 1
    RELEASE = 2
    WAIT = 3


ACTION_NAMES = ("grab_left", "grab_right", "release", "wait")

FREE, BY_LEFT_USER, BY_RIGHT_USER = 0, 1, 2
"""Fork codes: free; held by philosopher f, whose left fork it is; held by philosopher f-1, whose right fork it is."""


@struct.dataclass
class Table:
    """2: the dining table.  The hand flags are state of their own: they may disagree with `fork` (4.3)."""

    fork: Int8[Array, " N"]  # FREE, BY_LEFT_USER or BY_RIGHT_USER
    left: Bool[Array, " N"]  # flag "I hold my left fork"
    right: Bool[Array, " N"]  # flag "I hold my right fork"
    eating: Bool[Array, " N"]  # False: hungry; there is no third phase
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


class HolderTable(NamedTuple):
    """A table in the notation of recorded traces: holder ids instead of fork codes."""

    fork: np.ndarray  # [..., N] holder id, -1 free
    left: np.ndarray
    right: np.ndarray
    eating: np.ndarray
    meals: np.ndarray


def holders(fork: np.ndarray) -> np.ndarray:
    """Holder id of each fork (-1 free) from fork codes `[..., N]`."""
    ids = np.arange(fork.shape[-1])
    holder = np.where(fork == BY_LEFT_USER, ids, (ids - 1) % fork.shape[-1])
    return np.where(fork == FREE, -1, holder).astype(np.int32)


def fork_codes(holder: np.ndarray) -> np.ndarray:
    """Fork codes `[..., N]` from holder ids (-1 free); the inverse of `holders`.

    Raises `ValueError` if a fork is held by somebody who does not sit beside it.
    """
    holder = np.asarray(holder)
    ids = np.arange(holder.shape[-1])
    codes = np.where(holder == ids, BY_LEFT_USER, BY_RIGHT_USER)
    codes = np.where(holder < 0, FREE, codes).astype(np.int8)
    if not np.array_equal(holders(codes), np.where(holder < 0, -1, holder)):
        raise ValueError(f"fork holders {holder.tolist()}: fork f can only be held by philosopher f or f-1")
    return codes
