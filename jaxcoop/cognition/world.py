"""1.1 and 2: the primitive step that all agents make together.

Axes: A agents.  Numbers are sections of docs/coop2.md.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxcoop.cognition import channel, plans
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.mail import remember
from jaxcoop.cognition.records import append, columns
from jaxcoop.cognition.stages import enter
from jaxcoop.cognition.state import PLAN_FAILED, State
from jaxcoop.cognition.types import Ended, PlanStatus, Stage
from jaxcoop.cooperation import Attempts
from jaxcoop.core.skills import Status


def make_step(setup: Setup, state: State, on: Bool[Array, ""]) -> State:
    """One primitive step of an episode at the barrier; nothing unless `on`."""
    domain = setup.domain
    everybody = jnp.ones((setup.agents,), jnp.bool_) & on
    state = enter(state, everybody & (state.minds.stage == Stage.WAITING), Stage.EXECUTING)
    if not domain.profile.at_commit:
        state = plans.register(state, everybody)
    is_new = everybody & (state.current.status == PlanStatus.PENDING)
    fresh = everybody & ~state.current.begun
    ops = plans.ops_now(state.current)
    index = state.current.index
    before = state
    state = state.replace(
        current=plans.issue(state.current, everybody, state.step),
        records=state.records.replace(seq=state.records.seq + on),
        channel=state.channel.replace(repeats=jnp.where(on, 0, state.channel.repeats)),
    )

    key = jax.random.fold_in(state.mind_key, state.step)
    draws = domain.skills.sample_draws(key, state.world)
    memory = domain.announce(state.skill, state.current.plan)
    memory = domain.skills.begin(state.world, memory, ops, fresh, draws)
    command, memory = domain.skills.command(state.world, memory, draws)
    world_draws = domain.env.sample_draws(jax.random.fold_in(state.world_key, state.step), state.world)
    step, attempts = domain.step(state.world, command, world_draws)
    report = domain.skills.check(step.state, memory)
    goal = domain.watch(plans.where(is_new, domain.no_goal(), state.goal), state.world, step.state, ops)

    def put(new: Any, old: Any) -> Any:
        return jax.tree.map(lambda n, o: jnp.where(on, n, o), new, old)

    state = state.replace(
        world=put(step.state, state.world),
        skill=put(memory, state.skill),
        goal=put(goal, state.goal),
        step=state.step + on,
        now=state.now + jnp.where(on, setup.step_ms, 0),
        at_barrier=state.at_barrier & ~on,
        main_due=state.main_due | on,
        over=state.over | (on & (step.terminated | step.truncated)),
        totals=state.totals.replace(score=jnp.where(on, domain.score(step.state), state.totals.score)),
    )
    state = _after(setup, state, everybody, ops, report.status, report.reason)
    return _record(setup, before, state, on, ops, index, attempts)


def _after(setup: Setup, state: State, who: Bool[Array, " A"], ops: Array, status: Array, reason: Array) -> State:
    """2: what became of the ops, and of the plans that have ended; ascending, each with its entry into R."""
    profile = setup.domain.profile
    runs = who & (ops[:, 0] >= 0) & (state.current.status == PlanStatus.EXECUTING)
    current = plans.advance(state.current, runs, status == Status.SUCCESS, state.step, stamps_next=profile.stamps_next)
    state = state.replace(current=current)
    at_end = runs & (status == Status.SUCCESS) & (current.index >= current.plan.length)
    missed = at_end & setup.domain.missed(state.goal, current.plan)
    failed = runs & ((status == Status.FAILED) | missed)
    ended = at_end | failed
    result = jnp.where(failed, PlanStatus.FAILED, PlanStatus.SUCCESS).astype(jnp.int32)
    why = jnp.where(missed, Ended.GOAL_MISSED, jnp.where(failed, Ended.SKILL + reason, Ended.NONE)).astype(jnp.int32)
    # A plan's end and its agent's entry into R alternate in the order of records.
    seq = state.records.seq
    place = seq + 2 * (jnp.cumsum(ended) - 1)
    records = plans.file(state.records, ended, current, place, result, why, state.step, state.now)
    state = state.replace(
        records=records,
        totals=plans.counted(state.totals, ended, result, why),
        current=current.replace(status=jnp.where(ended, result, current.status)),
    )
    if profile.at_commit:
        state = state.replace(mail=remember(state.mail, failed, PLAN_FAILED, why, current.index, state.step))
    state = enter(state, ended, Stage.REASONING, places=place + 1)
    return state.replace(records=state.records.replace(seq=seq + 2 * ended.sum(dtype=jnp.int32)))


def _record(
    setup: Setup, before: State, after: State, on: Array, ops: Array, index: Array, attempts: Attempts
) -> State:
    """The row of the step, what its agents did and what they were after."""
    records = after.records
    steps = records.steps
    if not steps.rows.shape[0]:
        return after
    place = jnp.where(on, steps.count, steps.rows.shape[0])
    held = after.current
    doing = columns(before.current.number, index, held.status, held.index)
    targets = setup.domain.targets(before.world, channel.views_of(before))

    def put(kept: Array, new: Array) -> Array:
        return kept.at[place].set(new, mode="drop")

    return after.replace(
        records=records.replace(
            steps=append(steps, columns(before.records.seq[None], before.now, before.step), on[None]),
            step_plans=put(records.step_plans, doing),
            step_ops=put(records.step_ops, ops),
            step_targets=put(records.step_targets, targets),
            step_attempts=jax.tree.map(put, records.step_attempts, attempts),
            step_score=put(records.step_score, after.totals.score),
        )
    )
