"""2: the life of a plan: committed, registered, executed op by op, closed.

Axes: A agents, L ops, W words of an op.  Numbers are sections of docs/coop2.md.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.records import append, columns, ordered, places
from jaxcoop.cognition.state import Held, Records, State, Totals
from jaxcoop.cognition.types import Ended, PlanStatus, no_plan


def nothing_held(agents: int, ops: int, width: int, *, recorded: bool) -> Held:
    """Nobody has a plan."""
    zero = jnp.zeros((agents,), jnp.int32)
    return Held(
        plan=no_plan(agents, ops, width),
        number=zero,
        status=zero,
        index=zero,
        begun=jnp.zeros((agents,), jnp.bool_),
        created=zero,
        created_ms=zero,
        start=zero - 1,
        registered=zero - 1,
        op_steps=jnp.full((agents, ops if recorded else 0, 2), -1, jnp.int32),
    )


def where(mask: Bool[Array, " A"], new: Any, old: Any) -> Any:
    """Rows of `new` where the mask is set, of `old` elsewhere."""
    return jax.tree.map(lambda n, o: jnp.where(mask.reshape(mask.shape + (1,) * (o.ndim - 1)), n, o), new, old)


def is_open(held: Held) -> Bool[Array, " A"]:
    """Plans that are registered and not closed."""
    return (held.number > 0) & (held.registered >= 0) & (held.status <= PlanStatus.EXECUTING)


def commit(state: State, who: Bool[Array, " A"]) -> State:
    """1.1: the plans that passes have made take the place of the current ones."""
    current, totals = state.current, state.totals
    old = where(who & is_open(current), current, state.old)
    zero = jnp.zeros_like(current.number)
    fresh = Held(
        plan=state.minds.made,
        number=totals.committed + 1,
        status=zero,
        index=zero,
        begun=jnp.zeros_like(current.begun),
        created=zero + state.step,
        created_ms=zero + state.now,
        start=zero - 1,
        registered=zero - 1,
        op_steps=jnp.full_like(current.op_steps, -1),
    )
    return state.replace(
        current=where(who, fresh, current), old=old, totals=totals.replace(committed=totals.committed + who)
    )


def register(state: State, who: Bool[Array, " A"]) -> State:
    """2: the current plans of `who` that are new enter the log; those that they replaced are filed as interrupted."""
    current = state.current
    new = who & (current.number > 0) & (current.registered < 0) & (current.status == PlanStatus.PENDING)
    state = close(state, new & (state.old.number > 0), state.old, PlanStatus.INTERRUPTED, Ended.REPLANNED)
    place, following = ordered(state.registrations, new)
    return state.replace(
        current=current.replace(registered=jnp.where(new, place, current.registered)),
        old=state.old.replace(number=jnp.where(new, 0, state.old.number)),
        registrations=following,
    )


def close(
    state: State,
    who: Bool[Array, " A"],
    held: Held,
    status: Array | int,
    reason: Array | int,
) -> State:
    """File plans of `held` with status and reason; they end at the current step."""
    place, following = ordered(state.records.seq, who)
    records = file(state.records, who, held, place, status, reason, state.step, state.now)
    return state.replace(records=records.replace(seq=following), totals=counted(state.totals, who, status, reason))


def counted(totals: Totals, who: Bool[Array, " N"], status: Array | int, reason: Array | int) -> Totals:
    """The sums with closed plans."""
    statuses = jnp.where(who, status, -1)
    closed = (statuses[:, None] == jnp.arange(len(PlanStatus))).sum(0, dtype=jnp.int32)
    replanned = (who & (jnp.asarray(reason) == Ended.REPLANNED)).sum(dtype=jnp.int32)
    return totals.replace(closed=totals.closed + closed, replanned=totals.replanned + replanned)


def file(
    records: Records,
    who: Bool[Array, " N"],
    held: Held,
    seq: Int[Array, " N"],
    status: Array | int,
    reason: Array | int,
    step: Int[Array, ""],
    now: Int[Array, ""],
    agent: Int[Array, " N"] | None = None,
) -> Records:
    """The records with rows of closed plans."""
    if not records.plans.rows.shape[0]:
        return records.replace(plans=append(records.plans, records.plans.rows, who))
    agent = jnp.arange(who.shape[0], dtype=jnp.int32) if agent is None else agent
    rows = columns(
        seq,
        agent,
        held.number,
        held.created,
        held.start,
        step,
        status,
        reason,
        jnp.minimum(held.index, held.plan.length),
        held.plan.length,
        held.created_ms,
        now,
        *(held.plan.spec[:, k] for k in range(held.plan.spec.shape[1])),
    )
    place = places(records.plans, who)
    return records.replace(
        plans=append(records.plans, rows, who),
        plan_ops=records.plan_ops.at[place].set(held.plan.ops, mode="drop"),
        op_steps=records.op_steps.at[place].set(held.op_steps, mode="drop"),
    )


def close_all(state: State, on: Bool[Array, ""]) -> State:
    """2: the end of the episode closes every registered plan, those registered first first."""
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), state.old, state.current)
    agents = state.current.number.shape[0]
    is_old = jnp.arange(2 * agents) < agents
    open_now = jnp.where(is_old, both.number > 0, is_open(both)) & on
    order = jnp.argsort(jnp.where(open_now, both.registered, jnp.iinfo(jnp.int32).max))
    both, who = jax.tree.map(lambda x: x[order], (both, open_now))
    status, reason = int(PlanStatus.INTERRUPTED), int(Ended.EPISODE_ENDED)
    place, following = ordered(state.records.seq, who)
    records = file(
        state.records, who, both, place, status, reason, state.step, state.now, (order % agents).astype(jnp.int32)
    )
    current = state.current
    return state.replace(
        records=records.replace(seq=following),
        totals=counted(state.totals, who, status, reason),
        old=state.old.replace(number=jnp.where(on, 0, state.old.number)),
        current=current.replace(status=jnp.where(on & is_open(current), status, current.status)),
    )


def ops_now(held: Held) -> Int[Array, "A W"]:
    """The current op of each plan; a row of -1 where there is none."""
    last = held.plan.ops.shape[1] - 1
    here = jnp.minimum(held.index, last)
    ops = jnp.take_along_axis(held.plan.ops, here[:, None, None], 1)[:, 0]
    return jnp.where(((held.index < held.plan.length) & (held.number > 0))[:, None], ops, -1)


def stamp(held: Held, who: Bool[Array, " A"], column: int, step: Int[Array, ""]) -> Held:
    """Note when the current op started (column 0) or ended (1)."""
    if not held.op_steps.shape[1]:
        return held
    here = who[:, None] & (jnp.arange(held.op_steps.shape[1]) == held.index[:, None])
    steps = held.op_steps.at[:, :, column].set(jnp.where(here, step, held.op_steps[:, :, column]))
    return held.replace(op_steps=steps)


def issue(held: Held, who: Bool[Array, " A"], step: Int[Array, ""]) -> Held:
    """2: the first step of pending plans, and of ops that were not begun yet."""
    starts = who & (held.status == PlanStatus.PENDING) & (held.number > 0)
    held = stamp(held, who & ~held.begun, 0, step)
    return held.replace(
        status=jnp.where(starts, PlanStatus.EXECUTING, held.status).astype(jnp.int32),
        start=jnp.where(starts, step, held.start),
        begun=held.begun | who,
    )


def advance(
    held: Held, who: Bool[Array, " A"], succeeded: Bool[Array, " A"], step: Int[Array, ""], *, stamps_next: bool
) -> Held:
    """2: after an op that succeeded comes the next one.  `stamps_next`: which counts as started at once."""
    done = who & succeeded & held.begun & (held.index < held.plan.length)
    held = stamp(held, done, 1, step)
    held = held.replace(index=held.index + done, begun=held.begun & ~done)
    return stamp(held, done, 0, step) if stamps_next else held
