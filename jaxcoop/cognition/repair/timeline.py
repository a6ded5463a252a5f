"""Where each planned op begins and ends, and where its agent is then, if everything goes as planned (3).

Axes: A agents, L ops of a plan, N = A * L planned ops, row `agent * L + op`.  Positions are pairs of the environment's
coordinates.  Numbers are sections of docs/coop2_repair.md.

An environment says what every op is meant to do (`Planned`); `predict` puts the ops of each agent one after another.
What they do to inventories depends on the ops of others: `in_order` goes through all of them by the time they end.
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair.views import text_rank

MOVES = MappingProxyType({"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)})
"""3: the published displacement of one step.  It is in (x, y): where positions are (row, column), as in CUBE, a step to
the right is predicted one row down.  `RepairConfig.axes` has the corrected mode."""

LONGEST = 1_000_000
"""Durations above this are predicted as this long."""


@struct.dataclass
class Planned:
    """What planned ops are meant to do.  Rows that do not remain mean nothing."""

    remains: Bool[Array, "A L"]  # of a viewed plan, the current op or a later one
    duration: Int[Array, "A L"]  # steps, where it does not travel; below 1 counts as 1
    shift: Int[Array, "A L 2"]  # displacement of a move, 0 elsewhere
    travels: Bool[Array, "A L"]  # a navigation whose target is known
    target: Int[Array, "A L 2"]  # of it
    threshold: Int[Array, "A L"]  # distance from the target at which it ends


@struct.dataclass
class Timeline:
    """Each planned op covers the steps from `start` to before `end`."""

    start: Int[Array, "A L"]
    end: Int[Array, "A L"]
    before: Int[Array, "A L 2"]  # position when it starts
    after: Int[Array, "A L 2"]  # when it ends, and where it counts as done


def predict(planned: Planned, position: Int[Array, "A 2"], step: Int[Array, ""]) -> Timeline:
    """3: one op after another from the agents' present positions; navigation always arrives, nothing is in the way."""

    def advance(carry: tuple[Array, Array], op: Planned) -> tuple[tuple[Array, Array], Timeline]:
        clock, before = carry
        distance = jnp.abs(op.target - before).sum(-1)
        duration = jnp.where(op.travels, distance - op.threshold, op.duration)
        end = jnp.where(op.remains, clock + jnp.clip(duration, 1, LONGEST), clock)
        moved = jnp.where(op.travels[:, None], _landing(before, op.target, op.threshold), before + op.shift)
        after = jnp.where(op.remains[:, None], moved, before)
        return (end, after), Timeline(clock, end, before, after)

    by_op = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), planned)
    clock = jnp.broadcast_to(jnp.asarray(step, jnp.int32), position.shape[:1])
    _, found = jax.lax.scan(advance, (clock, position.astype(jnp.int32)), by_op)
    return jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), found)


def _landing(start: Int[Array, "A 2"], target: Int[Array, "A 2"], threshold: Int[Array, " A"]) -> Int[Array, "A 2"]:
    """3: where a navigation ends: short of the target by the threshold, along the first axis that it has to cover."""
    gap = start - target
    is_first = gap[:, 0] != 0
    axis = jnp.stack([is_first, ~is_first], axis=-1)
    short = jnp.where(axis, jnp.sign(gap) * threshold[:, None], 0)
    is_there = jnp.abs(gap).sum(-1) <= threshold
    return jnp.where(is_there[:, None], start, target + short)


def by_end(timeline: Timeline, happens: Bool[Array, "A L"]) -> Int[Array, " N"]:
    """3: rows sorted by the end, the start and the id of the agent as text; those that do not happen come last."""
    agents, length = happens.shape
    end = jnp.where(happens, timeline.end, jnp.iinfo(jnp.int32).max)
    # Two ops of one agent never end at once, so the order is complete.
    return jnp.lexsort((np.repeat(text_rank(agents), length), timeline.start.reshape(-1), end.reshape(-1))).astype(
        jnp.int32
    )


def in_order(
    timeline: Timeline,
    happens: Bool[Array, "A L"],
    effect: Callable[[Any, Int[Array, ""]], tuple[Any, Any]],
    carry: Any,
) -> tuple[Any, Any]:
    """3: `carry, seen = effect(carry, row)` for every op that happens, by the time it ends.

    Returns the last carry, and what was seen with a leading axis N, by row; zeros where nothing happens.
    """
    happening = happens.reshape(-1)

    def visit(carry: Any, row: Int[Array, ""]) -> tuple[Any, Any]:
        is_real = happening[row]
        after, seen = effect(carry, row)
        after = jax.tree.map(lambda new, old: jnp.where(is_real, new, old), after, carry)
        return after, jax.tree.map(lambda x: jnp.where(is_real, x, jnp.zeros_like(x)), seen)

    order = by_end(timeline, happens)
    carry, seen = jax.lax.scan(visit, carry, order)
    return carry, jax.tree.map(lambda x: jnp.zeros_like(x).at[order].set(x, unique_indices=True), seen)
