"""The estimator of an environment without one of its own: enough agents collect for each task, or not (6).

Axes: A agents, L ops of a plan, N = A * L rows, C scored constraints.
Numbers are sections of docs/coop2_repair.md.
"""

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.cognition.types import PlanViews
from jaxcoop.cooperation.constraints import SCORED, Constraint
from jaxcoop.cooperation.counting import first_with, tally

NO_TASK = -1
"""Names no task.  Numbers from the number of tasks on name something that is no task."""


@struct.dataclass
class Named:
    """What views and their planned ops name, -1 for nothing."""

    view: Int[Array, " A"]  # task slot that comes with the view
    op: Int[Array, "A L"]  # task slot that the op's arguments name
    collects: Bool[Array, "A L"]  # the op is a collect


def groups(views: PlanViews, named: Named) -> Int[Array, " A"]:
    """6: the task of each view: its own, or else the first that a remaining op names; -1: unresolved, or no view."""
    remains = remaining(views)
    names = remains & (named.op >= 0)
    first = jnp.take_along_axis(named.op, jnp.argmax(names, axis=1)[:, None], axis=1)[:, 0]
    task = jnp.where(named.view >= 0, named.view, jnp.where(names.any(1), first, NO_TASK))
    return jnp.where(views.is_viewed, task, NO_TASK)


def evaluate(
    config: RepairConfig, required: Int[Array, " M"], kind: Int[Array, " M"], views: PlanViews, named: Named
) -> Evaluation:
    """6: one temporal result for each known task that views belong to; each view is one row, at its first op.

    `required` and `kind` are those of the M tasks.
    """
    num_tasks = required.shape[0]
    task = groups(views, named)
    task = jnp.where(task < num_tasks, task, NO_TASK)
    collects = (remaining(views) & named.collects).any(1) & (task >= 0)
    collectors = tally(jnp.where(collects, task, NO_TASK), task, num_tasks)
    needed = jnp.where(task >= 0, required[task], 0)
    score = collectors.astype(jnp.float32) / jnp.maximum(needed, 1).astype(jnp.float32)

    agents, length = views.plan.ops.shape[:2]
    first = (task >= 0) & (first_with(task, num_tasks) == jnp.arange(agents, dtype=jnp.int32))
    is_temporal = jnp.array([constraint == Constraint.TEMPORAL for constraint in SCORED])
    checked = (task >= 0)[:, None] & is_temporal
    scores = jnp.where(is_temporal, score[:, None], 1.0)
    small = Evaluation(
        task=task,
        first=first,
        required=needed,
        kind=jnp.where(task >= 0, kind[task], -1),
        checked=checked,
        score=scores,
        failed=config.fails(scores) & checked,
        named=checked & (collects | (collectors == 0))[:, None],
    )
    return _spread(small, length)


def _spread(small: Evaluation, length: int) -> Evaluation:
    """Rows of views as the first of `length` rows each; the others say nothing."""

    def rows(values: Array, empty: int) -> Array:
        shape = (values.shape[0], length, *values.shape[1:])
        return jnp.full(shape, empty, values.dtype).at[:, 0].set(values).reshape(-1, *shape[2:])

    return Evaluation(
        task=rows(small.task, NO_TASK),
        first=rows(small.first, False),
        required=rows(small.required, 0),
        kind=rows(small.kind, -1),
        checked=rows(small.checked, False),
        score=rows(small.score, 0),
        failed=rows(small.failed, False),
        named=rows(small.named, False),
    )
