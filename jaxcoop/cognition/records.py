"""What an episode leaves for traces: typed rows in buffers of fixed capacity, in the order of one counter.

Axes: N rows that may be added at once.  A buffer of capacity 0 costs nothing; one that is full drops rows and goes on
counting them, so that a reader sees that some are missing.
"""

import dataclasses

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

TIMELINE = ("seq", "time_ms", "env_step", "agent", "stage", "plan", "committed")
"""Entries into stages; `committed`: 1 new plan, 0 resumed, -1 no end of a pass."""

PLANS = (
    "seq",
    "agent",
    "plan_id",
    "created_step",
    "start_step",  # -1: none
    "end_step",
    "status",
    "reason",
    "ops_done",
    "ops",
    "created_ms",
    "end_ms",
    "spec_0",
    "spec_1",
    "spec_2",
)
"""Closed plans; `Records.plan_ops` and `Records.op_steps` hold their ops and when these started and ended."""

CALLS = ("seq", "agent", "kind", "start_ms", "end_ms", "verdict", "env_step", "number")
"""Calls of the planner that have ended; `seq` is that of their start, `number` counts the calls of the agent."""

NOTES = ("seq", "time_ms", "env_step", "kind", "agent")
"""Repairs, checks and time-outs; `Records.noted` names the agents concerned."""

MESSAGES = ("seq", "time_ms", "env_step", "sender", "type", "call", "plan")
"""`call`: number of the sender's last call, -1: none yet; `plan`: number of the plan that it made, or else follows."""


@dataclasses.dataclass(frozen=True)
class Capacity:
    """Rows that an episode can keep; 0 keeps none."""

    timeline: int = 0
    plans: int = 0
    calls: int = 0
    notes: int = 0
    messages: int = 0  # also what mailboxes and memories hold: planners that read messages need them
    steps: int = 0  # primitive steps whose ops are kept


class Rows(struct.PyTreeNode):
    """One buffer."""

    rows: Int[Array, "C W"]
    count: Int[Array, ""]  # rows added so far, also those that found no place


def no_rows(capacity: int, width: int) -> Rows:
    """An empty buffer."""
    return Rows(rows=jnp.zeros((capacity, width), jnp.int32), count=jnp.zeros((), jnp.int32))


def places(buffer: Rows, mask: Bool[Array, " N"]) -> Int[Array, " N"]:
    """Where the masked rows go, in their order; rows that are not masked or find no place lie beyond the end."""
    index = buffer.count + jnp.cumsum(mask.astype(jnp.int32)) - 1
    return jnp.where(mask, index, buffer.rows.shape[0])


def append(buffer: Rows, rows: Int[Array, "N W"], mask: Bool[Array, " N"]) -> Rows:
    """The buffer with the masked rows at its end."""
    count = buffer.count + mask.sum(dtype=jnp.int32)
    if not buffer.rows.shape[0]:
        return buffer.replace(count=count)
    return Rows(rows=buffer.rows.at[places(buffer, mask)].set(rows, mode="drop"), count=count)


def columns(first: Array, *rest: Array | int) -> Int[Array, "N W"]:
    """Rows from columns [N] and scalars."""
    parts = [jnp.broadcast_to(jnp.asarray(x, jnp.int32), first.shape) for x in (first, *rest)]
    return jnp.stack(parts, -1)


def ordered(seq: Int[Array, ""], mask: Bool[Array, " N"]) -> tuple[Int[Array, " N"], Int[Array, ""]]:
    """Numbers for the masked rows in their order, and the next free one."""
    counts = jnp.cumsum(mask.astype(jnp.int32))
    return seq + counts - 1, seq + counts[-1]
