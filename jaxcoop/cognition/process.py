"""An episode of agents that think: asked from outside when a planner has to answer, run on otherwise.

Axes: A agents, L ops of a plan, W words of an op row, S words of a specification.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import channel, plans, records, schedule, world
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.mail import no_mail
from jaxcoop.cognition.repair import controller
from jaxcoop.cognition.state import FREE, IN_CALL, Minds, Records, State, Totals
from jaxcoop.cognition.types import SPEC, Answer, Call, Plan, PlanStatus, Stage, Verdict, no_plan
from jaxcoop.cooperation import no_attempts
from jaxcoop.core import bits
from jaxcoop.core.rollout import episode_key, start_key, streams_of


class Outcome(struct.PyTreeNode):
    """What remains of an episode."""

    game: Any  # outcome of the environment
    steps: Int[Array, ""]
    end_ms: Int[Array, ""]
    timed_out: Bool[Array, ""]
    failed: Bool[Array, ""]
    stuck: Bool[Array, ""]
    totals: Totals


def begin(setup: Setup, root: Array, episode: Int[Array, ""]) -> State:
    """The start of episode number `episode`, nobody has begun to think; its world is that of a rollout under `root`."""
    key = episode_key(root, episode)
    streams = streams_of(key)
    env, domain = setup.domain.env, setup.domain
    state = env.reset(start_key(key))
    agents, width, kept = setup.agents, domain.skills.width, setup.capacity
    zero, false = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.bool_)
    nothing = plans.nothing_held(agents, setup.plan_ops, width, recorded=kept.plans > 0)
    start = State(
        episode=jnp.asarray(episode, jnp.int32),
        world_key=streams.world,
        mind_key=streams.agents,
        world=state,
        skill=domain.skills.idle(),
        goal=domain.no_goal(),
        budget_ms=jnp.full((), setup.budget_ms, jnp.int32),
        now=zero,
        step=zero,
        active=zero - 1,
        changed_at=zero,
        main_due=~false,
        at_barrier=false,
        noticed=false,
        over=false,
        failed=false,
        stuck=false,
        minds=_no_minds(setup),
        current=nothing,
        old=nothing,
        registrations=zero,
        mail=no_mail(agents, kept.messages),
        channel=channel.no_channel(setup, agents * setup.plan_ops),
        totals=_no_totals(agents),
        records=_no_records(setup),
    )
    return _first_entries(start)


def _first_entries(state: State) -> State:
    """1: every agent starts in R at time 0; the timeline says so."""
    minds, log = state.minds, state.records
    everybody = jnp.ones(minds.stage.shape, jnp.bool_)
    place, following = records.ordered(log.seq, everybody)
    ids = jnp.arange(everybody.shape[0], dtype=jnp.int32)
    rows = records.columns(place, 0, 0, ids, int(Stage.REASONING), 0, -1)
    entries = state.totals.entries.at[:, Stage.REASONING].add(1)
    return state.replace(
        records=log.replace(timeline=records.append(log.timeline, rows, everybody), seq=following),
        totals=state.totals.replace(entries=entries),
    )


def _no_minds(setup: Setup) -> Minds:
    zero = jnp.zeros((setup.agents,), jnp.int32)
    none = jnp.zeros((setup.agents,), jnp.bool_)
    return Minds(
        stage=zero + int(Stage.REASONING),
        since=zero,
        pc=zero - 1,
        block=zero + FREE,
        wake=zero,
        blocked_at=zero,
        asks=none,
        kind=zero,
        verdict=zero,
        has_plan=none,
        made=no_plan(setup.agents, setup.plan_ops, setup.domain.skills.width),
        got=zero,
        calls=zero,
        call_seq=zero,
    )


def _no_totals(agents: int) -> Totals:
    zero, each = jnp.zeros((), jnp.int32), jnp.zeros((agents,), jnp.int32)
    by_kind = jnp.zeros((agents, 4), jnp.int32)
    return Totals(
        time_ms=by_kind,
        entries=by_kind,
        messages=each,
        repair_messages=zero,
        calls=by_kind,
        errors=each,
        closed=jnp.zeros((len(PlanStatus),), jnp.int32),
        replanned=zero,
        committed=each,
        resumed=each,
        timeouts=zero,
        repairs=zero,
        predicted=jnp.zeros((3,), jnp.int32),
        members=zero,
        cooled=zero,
        score=jnp.zeros((), jnp.float32),
    )


def _no_records(setup: Setup) -> Records:
    kept, agents = setup.capacity, setup.agents
    width, length = setup.domain.skills.width, setup.plan_ops
    words = bits.num_words(agents)

    def each(count: int, one: Any) -> Any:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), one)

    return Records(
        seq=jnp.zeros((), jnp.int32),
        timeline=records.no_rows(kept.timeline, len(records.TIMELINE)),
        plans=records.no_rows(kept.plans, len(records.PLANS)),
        plan_ops=jnp.full((kept.plans, length, width), -1, jnp.int32),
        op_steps=jnp.full((kept.plans, length, 2), -1, jnp.int32),
        calls=records.no_rows(kept.calls, len(records.CALLS)),
        notes=records.no_rows(kept.notes, len(records.NOTES)),
        noted=jnp.zeros((kept.notes, words), jnp.uint32),
        evaluations=each(kept.notes, controller.no_evaluation(agents * length)),
        steps=records.no_rows(kept.steps, 3),
        step_plans=jnp.zeros((kept.steps, agents, 4), jnp.int32),
        step_ops=jnp.full((kept.steps, agents, width), -1, jnp.int32),
        step_targets=jnp.full((kept.steps, agents, 2), -1, jnp.int32),
        step_attempts=each(kept.steps, no_attempts(agents)),
        step_score=jnp.zeros((kept.steps,), jnp.float32),
    )


def apply(setup: Setup, state: State, answer: Answer, answered: Bool[Array, " A"]) -> State:
    """Take the answers of the agents in `answered`; each call ends when its latency is over."""
    minds, domain = state.minds, setup.domain
    who = answered & minds.asks
    kind, verdict = minds.kind, answer.verdict
    latency = answer.latency
    if setup.latency is not None:
        latency = setup.latency.sample(jax.random.fold_in(state.mind_key, _LATENCIES), kind, minds.calls)
    failed = verdict == Verdict.ERROR
    gives = (kind == Call.PLAN) | ((kind == Call.DECIDE) & (verdict == Verdict.REPLAN))
    spec, ops = domain.fallback
    fallback = _fallback(setup, spec, ops)
    new = plans.where(failed, fallback, domain.complete(answer.plan))
    decides = (kind == Call.DECIDE) & ~failed
    word = jnp.where(decides, verdict, jnp.where(failed, Verdict.ERROR, Verdict.OK)).astype(jnp.int32)
    return state.replace(
        minds=minds.replace(
            asks=minds.asks & ~who,
            block=jnp.where(who & (minds.pc >= 0), IN_CALL, minds.block),
            wake=jnp.where(who, state.now + jnp.clip(latency, 0), minds.wake),
            verdict=jnp.where(who, word, minds.verdict),
            made=plans.where(who & gives, new, minds.made),
            has_plan=minds.has_plan | (who & gives),
        )
    )


_LATENCIES = 2**31
"""Stream of the latencies beside those of the steps."""


def _fallback(setup: Setup, spec: tuple[int, ...], ops: tuple[tuple[int, ...], ...]) -> Plan:
    """The same plan for everybody."""
    rows = np.full((setup.plan_ops, setup.domain.skills.width), -1, np.int32)
    for place, op in enumerate(ops[: setup.plan_ops]):
        rows[place, : len(op)] = op
    agents = setup.agents
    return Plan(
        spec=jnp.broadcast_to(jnp.asarray(spec, jnp.int32), (agents, SPEC)),
        ops=jnp.broadcast_to(jnp.asarray(rows), (agents, *rows.shape)),
        length=jnp.full((agents,), min(len(ops), setup.plan_ops), jnp.int32),
    )


def advance(setup: Setup, state: State) -> State:
    """The check and the primitive step of an episode at the barrier; then on to the next calls or the next barrier."""
    state = channel.check(setup, state, state.at_barrier & ~state.over)
    state = world.make_step(setup, state, state.at_barrier & ~state.over)
    state = schedule.settle(setup, state)
    return plans.close_all(state, state.over)


def outcome(setup: Setup, state: State) -> Outcome:
    """The numbers of a finished episode; the time since the last entries is not in `Totals.time_ms` (8.1)."""
    return Outcome(
        game=setup.domain.env.outcome(state.world),
        steps=state.step,
        end_ms=state.now,
        timed_out=state.noticed,
        failed=state.failed,
        stuck=state.stuck,
        totals=state.totals,
    )


def words_of(answer: Answer) -> Int[Array, "A X"]:
    """Answers as rows of int32: verdict, latency, number of ops, specification, ops."""
    agents = answer.verdict.shape[0]
    head = jnp.stack([answer.verdict, answer.latency, answer.plan.length], -1)
    return jnp.concatenate([head, answer.plan.spec, answer.plan.ops.reshape(agents, -1)], 1).astype(jnp.int32)


def answer_of(words: Int[Array, "A X"], ops: int, width: int) -> Answer:
    """The inverse of `words_of`; further words are ignored.  Numbers out of range are cut to it."""
    spec, rows = words[:, 3 : 3 + SPEC], words[:, 3 + SPEC : 3 + SPEC + ops * width]
    return Answer(
        verdict=words[:, 0],
        latency=words[:, 1],
        plan=Plan(spec=spec, ops=rows.reshape(-1, ops, width), length=jnp.clip(words[:, 2], 0, ops)),
    )
