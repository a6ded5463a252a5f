"""1: entering stages, and messages that change them.

Axes: A agents.  Numbers are sections of docs/coop2.md.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.mail import put_in, remember
from jaxcoop.cognition.programs import ANSWERS, INTERRUPTS
from jaxcoop.cognition.records import append, columns, ordered
from jaxcoop.cognition.state import MESSAGE_IN, MESSAGE_OUT, State
from jaxcoop.cognition.types import Mail, Stage

NO_END, RESUMED, COMMITTED = -1, 0, 1
"""How an entry into a stage came about, for the timeline."""


def change(state: State, on: Bool[Array, ""]) -> State:
    """3.1: something changed, so blocked waits and the main loop look again."""
    return state.replace(changed_at=jnp.where(on, state.now, state.changed_at), main_due=state.main_due | on)


def enter(
    state: State,
    who: Bool[Array, " A"],
    stage: Int[Array, " A"] | int,
    came: Int[Array, " A"] | int = NO_END,
    places: Int[Array, " A"] | None = None,
) -> State:
    """The agents `who` enter a stage, in ascending order; none of them is in it.

    `places`: of the rows in the order of records, if they are not the next ones.
    """
    minds, totals, records = state.minds, state.totals, state.records
    stage = jnp.broadcast_to(jnp.asarray(stage, jnp.int32), who.shape)
    one_hot = jnp.arange(4)
    left = jnp.where(who, state.now - minds.since, 0)[:, None] * (minds.stage[:, None] == one_hot)
    place, following = ordered(records.seq, who)
    if places is not None:
        place, following = places, records.seq
    ids = jnp.arange(who.shape[0], dtype=jnp.int32)
    rows = columns(place, state.now, state.step, ids, stage, state.current.number, came)
    state = state.replace(
        minds=minds.replace(stage=jnp.where(who, stage, minds.stage), since=jnp.where(who, state.now, minds.since)),
        totals=totals.replace(
            time_ms=totals.time_ms + left,
            entries=totals.entries + (who[:, None] & (stage[:, None] == one_hot)),
        ),
        records=records.replace(timeline=append(records.timeline, rows, who), seq=following),
    )
    return change(state, who.any())


def deliver(
    setup: Setup,
    state: State,
    on: Bool[Array, ""],
    sender: Int[Array, ""],
    to: Bool[Array, " A"],
    mail: Int[Array, ""],
    flags: Int[Array, ""],
) -> tuple[State, Bool[Array, " A"]]:
    """1.2: one message into the mailboxes of `to`, and whom it interrupts; `sender` A is the repair channel.

    Nothing unless `on`.
    """
    agents = setup.agents
    to = to & on
    is_sender = jnp.arange(agents, dtype=jnp.int32) == sender
    call = jnp.where(is_sender, state.minds.calls - 1, 0).sum() - (sender >= agents)
    number = jnp.where(is_sender, state.current.number + state.minds.has_plan, 0).sum()
    parts = (state.records.seq, state.now, state.step, sender, mail, call, number)
    row = jnp.stack([jnp.asarray(x, jnp.int32) for x in parts])
    index = state.mail.log.count
    is_repair = mail == Mail.REPAIR_REQUEST
    box = put_in(
        state.mail, on, sender, to, setup.tables.peer, row, is_repair=is_repair, is_answer=(flags & ANSWERS) > 0
    )
    box = remember(box, is_sender & on, MESSAGE_OUT, -1, index, state.step)
    box = remember(box, to, MESSAGE_IN, sender, index, state.step)
    totals = state.totals
    state = state.replace(
        mail=box,
        records=state.records.replace(seq=state.records.seq + on),
        totals=totals.replace(
            messages=totals.messages + (is_sender & on),
            repair_messages=totals.repair_messages + (on & (sender >= agents)),
        ),
    )
    marked = is_repair | (mail == Mail.LEADER_BROADCAST) | ((flags & INTERRUPTS) > 0)
    stops = marked | (not setup.domain.profile.marked_only)
    stage = state.minds.stage
    turned = to & ((stage == Stage.WAITING) | ((stage == Stage.EXECUTING) & stops))
    return change(state, on), turned
