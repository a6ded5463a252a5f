"""Which resource to collect together next, and how: the advice for a repair channel; on the device.

Axes: A agents, M tasks, K = 5 candidates, L ops of a plan, W words of an op row, G sets of tools, R requirements.
Numbers are sections of docs/coop2_repair.md.

For each task those agents take part that are ready for it soonest; the tasks are compared by how soon that is.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair.types import Guidance
from jaxcoop.cognition.repair.views import text_rank
from jaxcoop.cognition.types import Plan
from jaxcoop.envs.macrafter.goals import collecting, preparing, waiting
from jaxcoop.envs.macrafter.skills import GOT_FROM, Op
from jaxcoop.envs.macrafter.tools import (
    ANY,
    TOOL_CRAFTS,
    TOOL_ITEMS,
    WIDTH,
    Preparation,
    is_met,
    preparations,
    tools_held,
    tools_missing,
)

SHOWN = 5
"""K."""

LONGEST_WAIT = 4
PLAN_OPS = 2 + LONGEST_WAIT
"""Ops of the longest plan: a navigate, noops, a collect."""

HASTE = 5
"""Steps that a time-out leaves beyond the estimate."""

HAS, WILL_HAVE, LACKS = range(3)
"""Readiness: the tools are there, or their plan or what they can do now brings them, or neither."""

_STEP_BITS, _AGENT_BITS = 17, 10
_NOBODY = (LACKS + 1) << (_STEP_BITS + _AGENT_BITS)


@struct.dataclass
class Targets:
    """Tasks that may be recommended."""

    is_wanted: Bool[Array, " M"]  # there, known where, and of a type that is looked for
    kind: Int[Array, " M"]
    required: Int[Array, " M"]
    tools: Int[Array, " M"]  # requirement of `tools`
    place: Int[Array, "M 2"]
    reach: Int[Array, " M"]
    ident: Int[Array, " M"]
    order: Int[Array, " M"]  # place of the id among all ids as text


@struct.dataclass
class Members:
    """What is known of the agents."""

    is_available: Bool[Array, " A"]
    inventory: Int[Array, "A 16"]
    near: Bool[Array, "A 2"]  # stations in the order of `tools.STATIONS`
    planned: Int[Array, " A"]  # tools that their plans bring before they collect


@struct.dataclass
class Candidates:
    """The best tasks, the first one best."""

    found: Bool[Array, " K"]
    slot: Int[Array, " K"]
    facts: Targets  # [K]
    is_now: Bool[Array, " K"]  # every participant has the tools
    latest: Int[Array, " K"]  # steps until the last participant can collect
    spread: Int[Array, " K"]  # less those of the first
    participants: Bool[Array, "K A"]
    steps: Int[Array, "K A"]  # to where it is collected, -1: no way
    until: Int[Array, "K A"]  # steps until it can collect
    rank: Int[Array, "K A"]  # HAS, WILL_HAVE, LACKS
    missing: Int[Array, "K A"]  # set of tools to be made
    makes: Bool[Array, "K A"]  # what it can do now brings them all
    planned: Bool[Array, "K A"]  # its plan brings what is required
    ops: Int[Array, "K A P W"]  # what it can do now towards them


@struct.dataclass
class Advice:
    """Guidance, and what it comes from."""

    guidance: Guidance
    candidates: Candidates
    members: Members


@struct.dataclass
class _Readiness:
    """By agent and requirement."""

    rank: Int[Array, "A R"]
    missing: Int[Array, "A R"]
    planned: Bool[Array, "A R"]


def planned_tools(ops: Int[Array, "A L W"], remains: Bool[Array, "A L"]) -> Int[Array, " A"]:
    """10: the tools that each plan brings before its first collect: made, or shared with oneself or with nobody."""
    kind, first, second = (ops[..., k] for k in range(3))
    is_before = jnp.cumsum(remains & (kind == Op.COLLECT), axis=1) == 0
    own = jnp.arange(ops.shape[0], dtype=jnp.int32)[:, None]
    tools = jnp.zeros(ops.shape[:1], jnp.int32)
    for number, (item, craft) in enumerate(zip(TOOL_ITEMS, TOOL_CRAFTS, strict=True)):
        makes = (kind == Op.CRAFT) & (first == craft)
        gets = (kind == Op.SHARE) & (second == item) & ((first == own) | (first < 0))
        tools |= (remains & is_before & (makes | gets)).any(1).astype(jnp.int32) << number
    return tools


def advise(
    tolerance: int, most: int, targets: Targets, steps: Int[Array, "A M"], members: Members, length: int
) -> Advice:
    """10: the candidates among all tasks, and plans for the participants of the first.

    `tolerance`: temporal; `most`: no task takes more agents; `steps`: from each agent to where each task is collected,
    -1 without a way; `length`: ops of a plan, at least `PLAN_OPS`.
    """
    if length < PLAN_OPS:
        raise ValueError(f"ops of a plan {length}: must be {PLAN_OPS} or more, as recommended plans have up to so many")
    held = tools_held(members.inventory)
    ready, prepared = _readiness(held, members.planned), preparations(members.inventory, members.near)
    candidates = _candidates(most, targets, steps, members, ready, prepared)
    return Advice(guidance=_guidance(tolerance, candidates, length), candidates=candidates, members=members)


def _readiness(held: Int[Array, " A"], planned: Int[Array, " A"]) -> _Readiness:
    codes = np.arange(2 * ANY)
    missing = tools_missing(codes, held[:, None])
    return _Readiness(
        # whether one can make the missing tools now is added later
        rank=jnp.where(missing == 0, HAS, jnp.where(is_met(codes, (held | planned)[:, None]), WILL_HAVE, LACKS)),
        missing=missing,
        planned=is_met(codes, planned[:, None]),
    )


def _candidates(
    most: int,
    targets: Targets,
    steps: Int[Array, "A M"],
    members: Members,
    ready: _Readiness,
    prepared: Preparation,
) -> Candidates:
    agents = steps.shape[0]
    missing = ready.missing[:, targets.tools]  # [A, M]
    own = jnp.arange(agents, dtype=jnp.int32)[:, None]
    makes = prepared.makes[own, missing] & (missing > 0)
    rank = ready.rank[:, targets.tools]
    rank = jnp.where(makes & (rank == LACKS), WILL_HAVE, rank)
    until = jnp.minimum(steps, (1 << 16) - 1) + prepared.count[own, missing]

    # The agents of a task are taken in the order of (rank, steps, id as text): enough that are ready come first.
    can_come = members.is_available[:, None] & (steps >= 0)
    key = (rank << (_STEP_BITS + _AGENT_BITS)) | (until << _AGENT_BITS) | text_rank(agents)[:, None]
    key = jnp.where(can_come, key, _NOBODY)
    chosen = -jax.lax.top_k(-key.T, min(most, agents))[0]  # [M, most]
    is_taken = np.arange(chosen.shape[1]) < targets.required[:, None]
    last = jnp.take_along_axis(chosen, jnp.clip(targets.required - 1, 0, chosen.shape[1] - 1)[:, None], axis=1)[:, 0]
    times = (chosen >> _AGENT_BITS) & ((1 << _STEP_BITS) - 1)
    latest = jnp.where(is_taken, times, 0).max(1)
    earliest = jnp.where(is_taken, times, _NOBODY).min(1)
    # as nobody is taken twice, enough can come if the last one does
    found = targets.is_wanted & (targets.required <= chosen.shape[1]) & (last < _NOBODY)
    is_now = last < (HAS + 1) << (_STEP_BITS + _AGENT_BITS)

    slots = jnp.arange(targets.kind.shape[0], dtype=jnp.int32)
    sorting = (~found, ~is_now, latest, latest - earliest, targets.order, slots)
    slot = jax.lax.sort(sorting, num_keys=5)[-1][:SHOWN]
    cut = lambda values: values[:, slot].T  # noqa: E731  # [A, M] to [K, A]
    return Candidates(
        found=found[slot],
        slot=slot,
        facts=jax.tree.map(lambda values: values[slot], targets),
        is_now=is_now[slot],
        latest=latest[slot],
        spread=(latest - earliest)[slot],
        participants=cut(can_come & (key <= last)) & found[slot][:, None],
        steps=cut(steps),
        until=cut(until),
        rank=cut(rank),
        missing=cut(missing),
        makes=cut(makes),
        planned=ready.planned[:, targets.tools[slot]].T,
        ops=prepared.ops[own.T, cut(missing)],
    )


def _guidance(tolerance: int, candidates: Candidates, length: int) -> Guidance:
    """10: plans for the participants of the first candidate."""
    best = jax.tree.map(lambda values: values[0], candidates)
    facts, who = best.facts, best.participants
    agents, has_tools = who.shape[0], best.rank == HAS
    wait = jnp.clip(best.latest - best.until + 1, 1, LONGEST_WAIT)
    limit = jnp.maximum(jnp.maximum(best.latest, best.until) + HASTE, HASTE)
    collects = best.is_now & has_tools

    none = jnp.full((agents,), -1, jnp.int32)

    def rows(*words: Array | int) -> Array:
        return jnp.stack([jnp.broadcast_to(word, none.shape) for word in (*words, *[none] * (WIDTH - len(words)))], -1)

    go = rows(Op.NAVIGATE, facts.kind, facts.ident, limit, jnp.maximum(1, facts.reach))
    take = rows(Op.COLLECT, _given(facts.kind), facts.ident, max(3, tolerance + 1))
    op = np.arange(length)
    together = jnp.where((op == 0)[:, None], go[:, None], rows(Op.NOOP)[:, None])
    together = jnp.where((op == 1 + wait[:, None])[..., None] & collects[:, None, None], take[:, None], together)
    steps = 1 + wait + collects
    first, count = best.ops, (best.ops[..., 0] >= 0).sum(-1, dtype=jnp.int32)
    first = jnp.pad(first, ((0, 0), (0, length - first.shape[1]), (0, 0)), constant_values=-1)
    idles = count == 0
    first = jnp.where((idles[:, None] & (op == 0))[..., None], rows(Op.NOOP)[:, None], first)
    total = jnp.where(has_tools, steps, jnp.where(idles, 1, count))
    ops = jnp.where(has_tools[:, None, None], together, first)
    tool = jnp.zeros_like(best.missing)
    for number in reversed(range(len(TOOL_ITEMS))):
        tool = jnp.where(best.missing >> number & 1 > 0, number, tool)
    name = jnp.where(has_tools, waiting(facts.kind), preparing(facts.kind, tool))
    name = jnp.where(collects, collecting(facts.kind), name)
    spec = jnp.stack([jnp.broadcast_to(word, none.shape) for word in (name, facts.kind, facts.ident)], axis=-1)
    is_op = who[:, None] & (op < total[:, None])
    return Guidance(
        has_target=best.found,
        target=jnp.where(best.found, best.slot, -1),
        participants=who,
        has_plan=who,
        plan=Plan(
            spec=jnp.where(who[:, None], spec, -1),
            ops=jnp.where(is_op[..., None], ops, -1),
            length=jnp.where(who, total, 0),
        ),
    )


def _given(kind: Int[Array, ""]) -> Int[Array, ""]:
    """What a type gives, -1 if nothing."""
    item = jnp.full_like(kind, -1)
    for source, gives in GOT_FROM.items():
        item = jnp.where(kind == source, int(gives), item)
    return item
