"""The check between "all agents ready" and the primitive step: does it open a repair channel, and for whom.

Axes: A agents, L ops of a plan, N planned ops, C scored constraints, K cooldown keys.
Numbers are sections of docs/coop2_repair.md.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt

from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation, Guidance
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.cognition.types import PlanViews
from jaxcoop.cooperation.constraints import SCORED

UNSTAMPED = -(2**30)
"""Stamp of a key that has opened no repair: long ago."""

_UNSEEN = -1


@struct.dataclass
class RepairState:
    """What the check remembers within an episode."""

    signature: Int[Array, "A 4"]  # of the plans last evaluated: number, op, status, digest; -1: no view
    evaluation: Evaluation  # of them
    stamps: Int[Array, " K"]  # step at which each key last opened a repair; K = 0 without cooldown


@struct.dataclass
class Decision:
    """What a check says, and what of it is logged."""

    opened: Bool[Array, ""]  # repair now; no primitive step
    predicted: Bool[Array, ""]  # evaluated anew, with a result
    passed: Bool[Array, ""]  # evaluated anew, with results but no failure
    failed: Bool[Array, ""]  # evaluated anew, with a failure; each is logged
    cooling: Bool[Array, ""]  # failures, but every key is cooling: the step is made
    evaluation: Evaluation  # the new one, or that of the same plans; none before the first
    key: Int[Array, " N"]  # cooldown key of the failing task that each row represents, -1: none
    remaining: Int[Array, " N"]  # steps before the row's key is eligible again, 0: it is, or there is none


def num_keys(config: RepairConfig, num_tasks: int, num_kinds: int) -> int:
    """K: by scope one key for each type, each task slot, and for what is no task.

    `num_tasks` may be 0 with the scope `target_type` where every task has a type.
    """
    if config.cooldown == 0:
        return 0
    types = {"task": 0, "task_type": 1, "target_type": num_kinds}[config.scope]
    return types + (0 if config.scope == "task_type" else num_tasks) + 1


def reset(config: RepairConfig, agents: int, rows: int, num_tasks: int, num_kinds: int) -> RepairState:
    """2: nothing evaluated, nothing stamped; `rows` is the N of the estimator's evaluations."""
    return RepairState(
        signature=jnp.full((agents, 4), _UNSEEN, jnp.int32),
        evaluation=no_evaluation(rows),
        stamps=jnp.full((num_keys(config, num_tasks, num_kinds),), UNSTAMPED, jnp.int32),
    )


def no_evaluation(rows: int) -> Evaluation:
    """Results of no task."""
    none = jnp.zeros((rows, len(SCORED)), jnp.bool_)
    zero = jnp.zeros((rows,), jnp.int32)
    return Evaluation(
        task=zero - 1,
        first=none[:, 0],
        required=zero,
        kind=zero - 1,
        checked=none,
        score=jnp.zeros(none.shape, jnp.float32),
        failed=none,
        named=none,
    )


def check(
    config: RepairConfig,
    num_tasks: int,
    num_kinds: int,
    state: RepairState,
    views: PlanViews,
    step: Int[Array, ""],
    evaluate: Callable[[], Evaluation],
) -> tuple[RepairState, Decision]:
    """2: evaluate newly committed plans, or recall the evaluation of equal ones; repair unless every key is cooling."""
    if not config.enabled:
        return state, _decide(state.evaluation, jnp.bool_(False), jnp.bool_(False), *_no_keys(state.evaluation))
    # 2.1, 2.2: without views there is nothing pending either.
    is_due = (views.is_viewed & views.is_pending).any()
    # 2.3, 2.4
    signature = sign(views)
    is_known = (signature == state.signature).all()
    evaluation = jax.tree.map(lambda old, new: jnp.where(is_known, old, new), state.evaluation, evaluate())
    key, remaining = _keys(config, num_tasks, num_kinds, state, evaluation, step)
    decision = _decide(evaluation, is_due, is_due & ~is_known, key, remaining)
    # 7: a repair stamps the eligible keys only.
    is_stamped = decision.opened & (key >= 0) & (remaining == 0)
    stamps = state.stamps
    if config.cooldown:
        stamps = stamps.at[jnp.where(is_stamped, key, stamps.shape[0])].set(step, mode="drop")
    kept = RepairState(signature=state.signature, evaluation=state.evaluation, stamps=stamps)
    nxt = RepairState(signature=signature, evaluation=evaluation, stamps=stamps)
    return jax.tree.map(lambda new, old: jnp.where(is_due, new, old), nxt, kept), decision


def sign(views: PlanViews) -> Int[Array, "A 4"]:
    """2.3: plan number, current op, status, and a digest of what the plan is for and of its remaining ops.

    Equal plans have equal rows; different ones with the same number, op and status have equal ones once in 2^32.
    """
    remains = remaining(views)
    ops = jnp.where(remains[..., None], views.plan.ops, 0).reshape(remains.shape[0], -1)
    words = jnp.concatenate([views.plan.spec, remains.astype(jnp.int32), ops], axis=1)
    parts = [views.number, views.index, views.is_pending.astype(jnp.int32), _digest(words)]
    return jnp.where(views.is_viewed[:, None], jnp.stack(parts, axis=1), _UNSEEN)


def _digest(words: Int[Array, "A D"]) -> Int[Array, " A"]:
    """One word of many: their sum with random odd weights, modulo 2^32."""
    weights = np.random.default_rng(0).integers(2**31, size=words.shape[1], dtype=np.uint32) * np.uint32(2) + 1
    mixed: UInt[Array, "A D"] = words.astype(jnp.uint32) * jnp.asarray(weights, jnp.uint32)
    return mixed.sum(1, dtype=jnp.uint32).astype(jnp.int32)


def _failing(evaluation: Evaluation) -> Bool[Array, " N"]:
    """Rows that represent a task with a failing constraint."""
    return evaluation.first & (evaluation.failed & evaluation.checked).any(1)


def _no_keys(evaluation: Evaluation) -> tuple[Int[Array, " N"], Int[Array, " N"]]:
    zero = jnp.zeros_like(evaluation.task)
    return zero - 1, zero


def _keys(
    config: RepairConfig,
    num_tasks: int,
    num_kinds: int,
    state: RepairState,
    evaluation: Evaluation,
    step: Int[Array, ""],
) -> tuple[Int[Array, " N"], Int[Array, " N"]]:
    """7: the cooldown key of each failing row, and the steps that it goes on cooling."""
    if config.cooldown == 0:
        return _no_keys(evaluation)
    task, kind = evaluation.task, evaluation.kind
    last = num_keys(config, num_tasks, num_kinds) - 1
    if config.scope == "task_type":
        # All tasks of an environment are of one type.
        key = jnp.where(task >= 0, 0, last)
    else:
        types = num_kinds if config.scope == "target_type" else 0
        key = jnp.where((task >= 0) & (task < num_tasks), types + task, last)
        key = jnp.where((kind >= 0) & (kind < types), kind, key)
    is_failing = _failing(evaluation)
    since = step - state.stamps[jnp.where(is_failing, key, last)]
    remaining = jnp.where(is_failing, jnp.maximum(config.cooldown - since, 0), 0)
    return jnp.where(is_failing, key, -1), remaining


def _decide(evaluation: Evaluation, is_due: Array, is_new: Array, key: Array, remaining: Array) -> Decision:
    """2.4: what follows from an evaluation and its cooldown keys."""
    is_failing = _failing(evaluation)
    has_results = (evaluation.first[:, None] & evaluation.checked).any()
    has_failures, is_eligible = is_failing.any(), (is_failing & (remaining == 0)).any()
    return Decision(
        opened=is_due & is_eligible,
        predicted=is_new & has_results,
        passed=is_new & has_results & ~has_failures,
        failed=is_new & has_failures,
        cooling=is_due & has_failures & ~is_eligible,
        evaluation=evaluation,
        key=key,
        remaining=remaining,
    )


def channel(views: PlanViews, guidance: Guidance | None, evaluation: Evaluation) -> Bool[Array, " A"]:
    """8: who is in the channel: whom the guidance names, or else the failing results, or else everybody viewed."""
    available = views.is_viewed
    agents = available.shape[0]
    failing = evaluation.named & evaluation.failed & evaluation.checked
    listed = failing.any(1).reshape(agents, -1).any(1) & available
    members = jnp.where(listed.any(), listed, available)
    if guidance is None:
        return members
    advised = (guidance.participants | guidance.has_plan) & available
    return jnp.where(advised.any(), advised, members)
