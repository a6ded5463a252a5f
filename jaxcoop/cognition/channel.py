"""COOP²-Repair between "all agents ready" and the primitive step: the check, the channel and its statements.

Axes: A agents.  Numbers are sections of docs/coop2_repair.md.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import passes
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.passes import Deed
from jaxcoop.cognition.records import append, columns, ordered
from jaxcoop.cognition.repair import controller
from jaxcoop.cognition.repair.controller import Decision
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.state import Channel, State
from jaxcoop.cognition.types import NEVER, Call, Mail, PlanStatus, PlanViews, Verdict, is_ready, no_plan
from jaxcoop.core import bits

REPAIR, PREDICTED, PASSED, FAILED, COOLING, STARTED = 1, 2, 3, 4, 5, 6
"""Kinds of notes; `passes.LEADER_TIMEOUT` is 0."""


def no_channel(setup: Setup, rows: int) -> Channel:
    """Nothing checked and no channel open; `rows` is the N of the environment's evaluations."""
    agents = setup.agents
    none = jnp.zeros((agents,), jnp.bool_)
    never = jnp.full((), -1, jnp.int32)
    return Channel(
        check=controller.reset(setup.repair, agents, rows, setup.domain.num_tasks, setup.domain.num_kinds),
        members=none,
        turn=never,
        target=never,
        plan=no_plan(agents, setup.plan_ops, setup.domain.skills.width),
        advised=none,
        repeats=jnp.zeros((), jnp.int32),
    )


def views_of(state: State) -> PlanViews:
    """2.1: plans of agents that are ready."""
    held = state.current
    is_live = (held.number > 0) & (held.status <= PlanStatus.EXECUTING)
    return PlanViews(
        is_viewed=is_ready(state.minds.stage) & is_live,
        is_pending=held.status == PlanStatus.PENDING,
        number=held.number,
        index=held.index,
        plan=held.plan,
    )


def check(setup: Setup, state: State, on: Bool[Array, ""]) -> State:
    """2: predict from the plans; a repair leaves the barrier, anything else does not.  Nothing unless `on`."""
    domain, config = setup.domain, setup.repair
    if not config.enabled:
        return state
    views = views_of(state)
    views = views.replace(is_viewed=views.is_viewed & on)
    before = state.channel.check
    after, decision = controller.check(
        config,
        domain.num_tasks,
        domain.num_kinds,
        before,
        views,
        state.step,
        lambda: domain.evaluate(config, state.world, views),
    )
    old, most = state.channel, setup.fixes.repairs_per_step
    opened = decision.opened & on
    if most:
        opened &= old.repeats < most
    found = decision.evaluation
    acute = found.replace(failed=found.failed & opened)  # guidance is searched for only where something fails
    guidance = domain.guide(config, state.world, views, acute)
    members = controller.channel(views, guidance, found) & opened
    new = Channel(
        check=after,
        members=members,
        turn=jnp.argmax(members).astype(jnp.int32),
        target=guidance.target,
        plan=guidance.plan,
        advised=guidance.has_plan & members,
        repeats=old.repeats + 1,
    )
    kept = old.replace(check=jax.tree.map(lambda n, o: jnp.where(on, n, o), after, before))
    totals = state.totals
    failing = found.first[:, None] & found.failed & found.checked
    state = state.replace(
        channel=jax.tree.map(lambda n, o: jnp.where(opened, n, o), new, kept),
        at_barrier=state.at_barrier & ~opened,
        totals=totals.replace(
            repairs=totals.repairs + opened,
            predicted=totals.predicted + jnp.where(opened, failing.sum(0, dtype=jnp.int32), 0),
            members=totals.members + members.sum(dtype=jnp.int32),
            cooled=totals.cooled + (decision.cooling & on),
        ),
    )
    state = _note_check(state, decision, on, opened)
    return passes.start_call(state, opened & (jnp.arange(setup.agents) == new.turn), int(Call.STATEMENT))


def statement_over(state: State) -> Bool[Array, ""]:
    """The member whose turn it is has spoken."""
    return statement_ends(state) <= state.now


def statement_ends(state: State) -> Int[Array, ""]:
    """When it has spoken; never if no channel is open or the answer is not there yet."""
    turn = state.channel.turn
    speaker = jnp.maximum(turn, 0)
    answered = (turn >= 0) & ~state.minds.asks[speaker]
    return jnp.where(answered, state.minds.wake[speaker], NEVER)


def next_statement(setup: Setup, state: State, on: Bool[Array, ""]) -> tuple[State, Deed]:
    """8: the next member speaks; after the last one the request goes to all members.  Nothing unless `on`."""
    ids = jnp.arange(setup.agents, dtype=jnp.int32)
    chan = state.channel
    spoke = (ids == chan.turn) & on
    fails = (spoke & (state.minds.verdict == Verdict.ERROR)).any()
    ends_run = setup.domain.profile.statements_fail and not setup.fixes.statement_placeholder
    failed = fails if ends_run else jnp.zeros((), jnp.bool_)
    left = chan.members & (ids > chan.turn)
    goes_on = on & left.any() & ~failed
    nxt = jnp.argmax(left).astype(jnp.int32)
    done = on & ~left.any() & ~failed
    state = state.replace(
        channel=chan.replace(turn=jnp.where(on, jnp.where(goes_on, nxt, -1), chan.turn)),
        over=state.over | failed,
        failed=state.failed | failed,
    )
    state = _note(state, done[None], (REPAIR,), chan.members)
    return state, Deed(
        asks=goes_on & (ids == nxt),
        kind=jnp.full((), int(Call.STATEMENT), jnp.int32),
        heard=spoke,
        sends=done,
        sender=jnp.full((), setup.agents, jnp.int32),
        to=chan.members,
        mail=jnp.full((), int(Mail.REPAIR_REQUEST), jnp.int32),
        flags=jnp.zeros((), jnp.int32),
        ends=jnp.zeros_like(spoke),
    )


def _note(
    state: State,
    on: Bool[Array, " K"],
    kinds: tuple[int, ...],
    who: Bool[Array, " A"],
    evaluation: Evaluation | None = None,
) -> State:
    """Rows of these kinds, in this order; the last one that is made is about `who`, and about an evaluation."""
    records = state.records
    if not records.notes.rows.shape[0]:
        return state
    place, following = ordered(records.seq, on)
    rows = columns(place, state.now, state.step, jnp.asarray(kinds), -1)
    where = jnp.where(on.any(), records.notes.count + on.sum() - 1, records.notes.rows.shape[0])
    kept = records.evaluations
    if evaluation is not None:
        kept = jax.tree.map(lambda old, new: old.at[where].set(new, mode="drop"), kept, evaluation)
    return state.replace(
        records=records.replace(
            notes=append(records.notes, rows, on),
            noted=records.noted.at[where].set(bits.pack(who), mode="drop"),
            evaluations=kept,
            seq=following,
        )
    )


def _note_check(state: State, decision: Decision, on: Bool[Array, ""], opened: Bool[Array, ""]) -> State:
    """2.4: what a check logs, in the order of the reference."""
    flags = jnp.stack([decision.predicted, decision.passed, decision.failed, decision.cooling, opened]) & on
    kinds = (PREDICTED, PASSED, FAILED, COOLING, STARTED)
    return _note(state, flags, kinds, state.channel.members & opened, decision.evaluation)
