"""Attempt events: one for each task that somebody tried to do in a step, with its constraint scores.

Axes: A agents, C = 3 scored constraints (spatial, temporal, dependency).
An event sits in the row of the first agent that names its task, so that A rows hold all events of a step and nothing
has the size agents x tasks.
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation.constraints import SCORED, deficits
from jaxcoop.cooperation.counting import any_with, first_with, tally


@struct.dataclass
class Attempts:
    """The attempt events of one step; row i is an event if `task[i]` is not -1."""

    task: Int[Array, " A"]  # -1: no event in this row
    required: Int[Array, " A"]  # p(g)
    attempting: Int[Array, " A"]  # agents that tried
    success: Bool[Array, " A"]  # some of them did it
    score: Float[Array, "A C"]  # s_c, may exceed 1
    event: Int[Array, " A"]  # the row of the event that agent i takes part in; -1: none


@struct.dataclass
class Totals:
    """Running sums over the attempt events of an episode."""

    events: Int[Array, ""]
    successes: Int[Array, ""]
    deficit: Float[Array, " C"]  # sum of v_c


def events(
    named: Int[Array, " A"],
    succeeded: Bool[Array, " A"],
    num_tasks: int,
) -> tuple[Int[Array, " A"], Int[Array, " A"], Int[Array, " A"], Bool[Array, " A"]]:
    """Group the agents by the task that each names (-1: none): `(task, event, attempting, success)`.

    `task[i]` is the task of the event in row i or -1, `event[i]` the row that agent i takes part in or -1,
    `attempting` and `success` belong to the rows.
    """
    event = first_with(named, num_tasks)
    task = jnp.where(event == jnp.arange(named.shape[0], dtype=jnp.int32), named, -1)
    return task, event, tally(named, task, num_tasks), any_with(named, succeeded, task, num_tasks)


def no_attempts(agents: int) -> Attempts:
    """A step in which nobody tried anything."""
    zero = jnp.zeros((agents,), jnp.int32)
    score = jnp.zeros((agents, len(SCORED)), jnp.float32)
    return Attempts(task=zero - 1, required=zero, attempting=zero, success=zero > 0, score=score, event=zero - 1)


def no_totals() -> Totals:
    """No events yet."""
    zero = jnp.zeros((), jnp.int32)
    return Totals(zero, zero, jnp.zeros((len(SCORED),), jnp.float32))


def add(totals: Totals, attempts: Attempts, live: Bool[Array, ""] | bool = True) -> Totals:
    """Totals with one more step's events, unless the episode has ended; further axes at the end are a batch."""
    is_event = (attempts.task >= 0) & live
    # One constraint at a time: the array of all three is made for traces only.
    gap = [jnp.where(is_event, deficits(attempts.score[:, c]), jnp.float32(0)).sum(0) for c in range(len(SCORED))]
    return Totals(
        events=totals.events + is_event.sum(0, dtype=jnp.int32),
        successes=totals.successes + (is_event & attempts.success).sum(0, dtype=jnp.int32),
        deficit=totals.deficit + jnp.stack(gap),
    )


def violations(totals: Totals) -> Float[Array, " C"]:
    """Viol_c: mean deficit over the events; 0 without any."""
    return totals.deficit / jnp.maximum(totals.events, 1).astype(jnp.float32)
