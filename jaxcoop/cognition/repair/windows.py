"""When the planned actions on a task best fall together: the anchor of each task (4 and 5).

Axes: A agents, L ops of a plan, N = A * L planned ops, row `agent * L + op`; H = 2 N anchors.
Numbers are sections of docs/coop2_repair.md.

Anchors of a task are the first and the last step of every action on it.  An action meets an anchor that is at most the
tolerance outside its steps.  Chosen is the anchor with the largest meeting, the earliest of equal ones.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cooperation.counting import first_with, tally

PAIRS = 1 << 17
"""Pairs of anchors and rows that are compared at a time."""


@struct.dataclass
class Window:
    """The chosen anchor of each row's task; anything where there is none."""

    anchor: Int[Array, " N"]  # step
    size: Int[Array, " N"]  # agents or actions that meet there
    inside: Bool[Array, " N"]  # the row's action is one of them
    first: Bool[Array, " N"]  # the row represents its task


def choose(
    task: Int[Array, " N"],
    start: Int[Array, " N"],
    end: Int[Array, " N"],
    tolerance: int,
    agents: int,
    num_tasks: int,
    by: Literal["agents", "actions"],
) -> Window:
    """The best anchor of each task by the number of distinct agents (CUBE) or of actions (MA-Crafter) that meet there.

    `task` is -1 for rows that act on no task, and below `num_tasks`.
    """
    rows = task.shape[0]
    low, high = start - tolerance, end - 1 + tolerance

    def meeting(anchor: tuple[Int[Array, ""], Int[Array, ""]]) -> Int[Array, ""]:
        which, step = anchor
        meets = (task == which) & (low <= step) & (step <= high)
        if by == "agents":
            meets = meets.reshape(agents, -1).any(1)
        return meets.sum(dtype=jnp.int32)

    anchors = (jnp.tile(task, 2), jnp.concatenate([start, end - 1]))
    if 2 * rows * rows <= PAIRS:
        size = jax.vmap(meeting)(anchors)
    else:
        size = jax.lax.map(meeting, anchors, batch_size=max(PAIRS // rows, 1))

    group = first_with(task, num_tasks)
    slot = jnp.where(jnp.tile(group, 2) < 0, rows, jnp.tile(group, 2))
    best = jnp.zeros((rows,), jnp.int32).at[slot].max(size, mode="drop")
    is_best = size == best[jnp.where(slot < rows, slot, 0)]
    latest = jnp.iinfo(jnp.int32).max
    steps = jnp.where(is_best, anchors[1], latest)
    chosen = jnp.full((rows,), latest, jnp.int32).at[slot].min(steps, mode="drop")
    own = jnp.where(group < 0, 0, group)
    anchor = chosen[own]
    return Window(
        anchor=anchor,
        size=best[own],
        inside=(task >= 0) & (low <= anchor) & (anchor <= high),
        first=(task >= 0) & (group == jnp.arange(rows, dtype=jnp.int32)),
    )


def by_agent(task: Int[Array, " N"], flags: Bool[Array, " N"], agents: int) -> Bool[Array, " N"]:
    """Whether the row's agent has a flag set in any of its rows with the same task."""
    task, flags = task.reshape(agents, -1), flags.reshape(agents, -1)
    same = (task[:, :, None] == task[:, None, :]) & (task >= 0)[:, :, None]  # [A, L, L]
    return (same & flags[:, None, :]).any(-1).reshape(-1)


def distinct_agents(task: Int[Array, " N"], flags: Bool[Array, " N"], agents: int, num_tasks: int) -> Int[Array, " N"]:
    """How many agents have a flag set in any row of the row's task; 0 where there is none."""
    task, flags = task.reshape(agents, -1), flags.reshape(agents, -1)
    same = (task[:, :, None] == task[:, None, :]) & flags[:, None, :] & (task >= 0)[:, :, None]  # [A, L, L]
    ops = jnp.arange(task.shape[1], dtype=jnp.int32)
    is_first = flags & ~(same & (ops[None, :] < ops[:, None])).any(-1)  # counts each agent once for each task
    counted = jnp.where(is_first, task, -1).reshape(-1)
    return tally(counted, task.reshape(-1), num_tasks)
