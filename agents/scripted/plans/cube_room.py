"""When no block can be delivered: one that is pushed aside first, and who does it from where.

Axes: A agents, B blocks, S side of the grid, L ops of a plan.  `navigate` leads to the left face of a block only, so
the ways to the other faces are written as moves.  The rule is the same for everybody, as in `cube_crews`.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube.jobs import (
    DELIVER,
    NO_JOB,
    Blocks,
    Options,
    Rect,
    beside,
    meets,
    opposite,
    overlap,
    per_row,
)
from jaxcoop.agents.scripted.cube.teams import kth_smallest
from jaxcoop.agents.scripted.plans.base import Draft, blank
from jaxcoop.agents.scripted.plans.cube_crews import sizes
from jaxcoop.core.batching import batch_last
from jaxcoop.envs.cube import fields
from jaxcoop.envs.cube.guidance import CHUNK, MOVE_STEPS
from jaxcoop.envs.cube.navigate import ORDER
from jaxcoop.envs.cube.skills import WIDTH, Op
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Action

TURNS = 5
"""Moves that a plan has at most; from farther away it ends on the way."""

REST = 3
"""Steps that an agent without a part waits before it looks again."""

_RANK = 2**16
"""More than the costs of two jobs of one rank differ."""


@struct.dataclass
class Room:
    """Plans for making room; nothing where there is no need."""

    draft: Draft
    block: Int[Array, " A"]  # that the agent pushes, -1: none


def stuck_on(
    side: int, blocks: Blocks, options: Options, job: Int[Array, " A"]
) -> tuple[Bool[Array, ""], Int[Array, ""]]:
    """Whether those without a job have none to hope for while they can push a block aside, and the easiest such block.

    One that would get in the way of a block on its way to the goal stays where it is.
    """
    agents, weight = job.shape[0], jnp.asarray(blocks.weight)
    has_job = sizes(job, len(blocks.weight)) > 0
    delivers = blocks.alive & (options.rank == DELIVER)
    has_hope = (delivers & ~has_job & (weight <= agents)).any()
    lane = Rect(blocks.row, blocks.row + weight - 1, blocks.col, jnp.full_like(blocks.row, side))
    clashes = (overlap(per_row(_swept(blocks, options)), lane) & has_job).any(1)
    can_push = blocks.alive & ~delivers & ~clashes & (options.rank < NO_JOB) & (weight <= (job < 0).sum())
    cost = jnp.where(can_push, _RANK * options.rank + weight * options.steps, 4 * _RANK)
    return can_push.any() & ~has_hope, jnp.argmin(cost).astype(jnp.int32)


def _swept(blocks: Blocks, options: Options) -> Rect:
    """The cells that each block covers on its way aside."""
    last, row, col = blocks.weight - 1, blocks.row, blocks.col
    is_vertical = (options.direction == Action.UP) | (options.direction == Action.DOWN)
    to_row, to_col = jnp.where(is_vertical, options.target, row), jnp.where(is_vertical, col, options.target)
    return Rect(
        jnp.minimum(row, to_row),
        jnp.maximum(row, to_row) + last,
        jnp.minimum(col, to_col),
        jnp.maximum(col, to_col) + last,
    )


def make_room(
    side: int,
    ops: int,
    blocks: Blocks,
    options: Options,
    block: Int[Array, ""],
    row: Int[Array, " A"],
    col: Int[Array, " A"],
    is_free: Bool[Array, " A"],
    pause: Int[Array, " A"],
) -> Room:
    """Ops of those who are free for pushing a block as `options` says; `pause`: steps that each waits too long."""
    agents = row.shape[0]
    weight, direction = jnp.asarray(blocks.weight)[block], options.direction[block]
    face = beside(blocks.row[block], blocks.col[block], weight, opposite(direction))
    is_there = meets(row, col, 1, face) & (row >= 0)
    field = batch_last(fields.distances)(*_maps(side, blocks, face, row, col, is_there))[0]
    far = fields.far(side)
    steps = jnp.where(is_there, 0, jnp.where(row >= 0, _at(field, row, col), far))

    comes, bits = is_free & (steps < far), ((far + 1) * agents).bit_length()
    keys = jnp.where(comes, steps * agents + jnp.arange(agents - 1, -1, -1, dtype=jnp.int32), 2**bits)
    last = kth_smallest(keys[None], jnp.minimum(weight, comes.sum(dtype=jnp.int32))[None], bits)[0]
    member = (keys <= last) & (comes.sum() >= weight)

    draft, left = _walk(field, blank(agents, ops, WIDTH), row, col, jnp.where(member, steps, 0))
    draft, parts = _part(draft, face, direction, member & is_there, row, col, weight)
    arrives = member & (left == 0)
    latest = jnp.maximum(jnp.where(member, steps, 0).max(), parts.max())
    waits = latest - jnp.maximum(steps, parts) + pause
    draft = draft.add(arrives & (waits > 0), int(Op.WAIT), jnp.clip(waits, 1, CHUNK))
    draft = draft.add(arrives, int(Op.PUSH), block, jnp.clip(options.steps[block], 1, CHUNK))
    draft = _step_aside(draft, face, direction, ~member & (row >= 0), row, col)
    return Room(draft, jnp.where(member, block, -1))


def _maps(
    side: int, blocks: Blocks, face: Rect, row: Array, col: Array, is_there: Bool[Array, " A"]
) -> tuple[Bool[Array, "1 S S"], Bool[Array, "1 S S"]]:
    """Where the walk leads, cells of the face that nobody has taken, and where it may pass."""
    lines = jnp.arange(side, dtype=jnp.int32)

    def squares(top: Array, left: Array, bottom: Array, right: Array) -> Bool[Array, "N S S"]:
        in_rows = (lines >= top[:, None]) & (lines <= bottom[:, None])
        in_cols = (lines >= left[:, None]) & (lines <= right[:, None])
        return in_rows[:, :, None] & in_cols[:, None, :]

    top = jnp.where(blocks.alive, blocks.row, -side)
    is_block = squares(top, blocks.col, top + blocks.weight - 1, blocks.col + blocks.weight - 1).any(0)
    cell = jnp.where(is_there, row * side + col, side * side)
    is_taken = jnp.zeros((side * side,), jnp.bool_).at[cell].set(True, mode="drop").reshape(side, side)
    is_open = ~is_block & ~is_taken & (lines < side - 1)
    goals = squares(*(x[None] for x in (face.top, face.left, face.bottom, face.right)))[0] & is_open
    return goals[None], is_open[None]


def _at(field: Int[Array, "S S"], row: Array, col: Array) -> Int[Array, "..."]:
    """Distances of cells; far away outside the grid."""
    side = field.shape[0]
    is_in = (row >= 0) & (row < side) & (col >= 0) & (col < side)
    value = field[jnp.where(is_in, row, 0), jnp.where(is_in, col, 0)].astype(jnp.int32)
    return jnp.where(is_in, value, fields.far(side))


def _walk(
    field: Int[Array, "S S"], draft: Draft, row: Array, col: Array, steps: Int[Array, " A"]
) -> tuple[Draft, Int[Array, " A"]]:
    """The plans with moves down the field, and how many steps are left after them."""
    codes = jnp.asarray([int(action) for action in ORDER], jnp.int32)
    delta = np.stack([DELTA_ROW, DELTA_COL]).astype(np.int32)

    def ahead(row: Array, col: Array, code: Array) -> Int[Array, " A"]:
        return _at(field, row + jnp.asarray(delta[0])[code], col + jnp.asarray(delta[1])[code])

    for _ in range(TURNS):
        nearer = jnp.stack([ahead(row, col, jnp.full_like(row, int(code))) < steps for code in ORDER])
        code = codes[jnp.argmax(nearer, 0)]
        count = jnp.zeros_like(row)
        for _ in range(MOVE_STEPS):
            goes = (steps > 0) & (ahead(row, col, code) < steps)
            row = row + jnp.where(goes, jnp.asarray(delta[0])[code], 0)
            col = col + jnp.where(goes, jnp.asarray(delta[1])[code], 0)
            steps, count = steps - goes, count + goes
        draft = draft.add(count > 0, int(Op.MOVE), code, count)
    return draft, steps


def _part(
    draft: Draft, face: Rect, direction: Array, is_there: Bool[Array, " A"], row: Array, col: Array, weight: Array
) -> tuple[Draft, Int[Array, " A"]]:
    """Members who are all at the face, some in one cell, part; also the steps that each takes for it."""
    is_vertical = (direction == Action.UP) | (direction == Action.DOWN)
    along, start = jnp.where(is_vertical, col, row), jnp.where(is_vertical, face.left, face.top)
    order = jnp.lexsort((along, ~is_there))
    place = jnp.zeros_like(row).at[order].set(jnp.arange(row.shape[0], dtype=jnp.int32))
    shift = jnp.where(is_there & (is_there.sum() == weight), start + place - along, 0)
    back, forth = (
        jnp.where(is_vertical, *pair)
        for pair in ((int(Action.LEFT), int(Action.UP)), (int(Action.RIGHT), int(Action.DOWN)))
    )
    steps = jnp.minimum(jnp.abs(shift), MOVE_STEPS)
    return draft.add(steps > 0, int(Op.MOVE), jnp.where(shift < 0, back, forth), steps), steps


def _step_aside(draft: Draft, face: Rect, direction: Array, others: Bool[Array, " A"], row: Array, col: Array) -> Draft:
    """Those without a part leave the rows or columns in which the block moves, or wait."""
    is_vertical = (direction == Action.UP) | (direction == Action.DOWN)
    along = jnp.where(is_vertical, col, row)
    start, end = (jnp.where(is_vertical, *pair) for pair in ((face.left, face.top), (face.right, face.bottom)))
    in_way = others & (along >= start) & (along <= end)
    goes_back = (start > 0) & (along - start <= end - along)
    steps = jnp.clip(jnp.where(goes_back, along - start + 1, end - along + 1), 1, MOVE_STEPS)
    sideways = jnp.where(goes_back, int(Action.LEFT), int(Action.RIGHT))
    vertical = jnp.where(goes_back, int(Action.UP), int(Action.DOWN))
    code = jnp.where(is_vertical, sideways, vertical)
    return draft.add(in_way, int(Op.MOVE), code, steps).add(others, int(Op.WAIT), REST)
