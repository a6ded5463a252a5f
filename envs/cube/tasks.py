"""8 and 10: face tasks, who works on them, attempt events; and quantities derived from positions (6).

Axes: A agents, B blocks, F = 4 B face tasks with the number `4 * block + face`.  The functions that a step uses let
further axes be (see `lookup`); the others are for one episode.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation import Attempts, TaskTable
from jaxcoop.core.batching import along, batch_last
from jaxcoop.envs.cube.lookup import block_at, count_same, first_same, take, tally
from jaxcoop.envs.cube.rules import Board, Layout, settle, step_of, to_board
from jaxcoop.envs.cube.types import ACTION_OF_FACE, DELTA_COL, DELTA_ROW, Action, State

NUM_FACES = 4
FACE_BITS = 2
"""A task's number without these bits is its block."""

_SUCCEEDED = 2**16  # added to the count of pushers for each that moved


def face_of(action: Array) -> Int[Array, "..."]:
    """8: the face on which somebody stands who pushes in this direction (any number for no direction).  int16."""
    return (action.astype(jnp.int16) - np.int16(1)) ^ np.int16(1)


def aims(layout: Layout, board: Board, action: Int[Array, " A"]) -> Int[Array, " A"]:
    """8: the face task whose face cell each agent stands on with the action that pushes it, -1 for none.  int16."""
    row_step, col_step = step_of(action, layout.dtype)
    row, col = settle((board.row + row_step, board.col + col_step))
    block = block_at(row, col, board.block_row, board.block_col, layout.weights)
    is_push = (action >= Action.UP) & (action <= Action.RIGHT) & (block >= 0)
    return jnp.where(is_push, block * np.int16(NUM_FACES) + face_of(action), np.int16(-1))


def intents(alive: Bool[Array, " B"], block: Int[Array, " A"], face: Int[Array, " A"]) -> Int[Array, " A"]:
    """8, 9.6: the active face task of each push intent, wherever the agent stands; -1 for none.  int16."""
    is_task = (face >= 0) & (face < NUM_FACES) & take(alive, block)
    return jnp.where(is_task, block * NUM_FACES + face, -1).astype(jnp.int16)


def beside(layout: Layout, board: Board) -> Int[Array, " 4A"]:
    """8: the face tasks on whose cells agents stand, -1 for none; row `face * A + i` is agent i.  int16."""
    narrow = layout.dtype.type
    row, col = (
        jnp.concatenate([x + narrow(step[action]) for action in ACTION_OF_FACE])
        for x, step in ((board.row, DELTA_ROW), (board.col, DELTA_COL))
    )
    block = block_at(row, col, board.block_row, board.block_col, layout.weights)
    faces = along(np.repeat(np.arange(NUM_FACES, dtype=np.int16), board.row.shape[0]), block)
    return jnp.where(block < 0, np.int16(-1), block * np.int16(NUM_FACES) + faces)


def adjacent_counts(layout: Layout, board: Board) -> Int[Array, " F"]:
    """8: how many agents stand on the cells of each face, everybody in a shared cell counts; 0 if delivered.  int16."""
    return batch_last(lambda b: tally(beside(layout, b), NUM_FACES * len(layout.weights)))(board)


def frozen(alive: Bool[Array, " B"], aim: Int[Array, " A"], phantom: Int[Array, " A"]) -> Int[Array, " A"]:
    """10.3: last completed task in whose frozen set each agent is.

    `aim`: before the step, when every task in it was active; `alive`: after the step.
    """
    completed = (aim >= 0) & ~take(alive, aim >> FACE_BITS)
    return jnp.where(completed, jnp.maximum(aim, phantom), phantom)


def attempt_events(
    layout: Layout,
    board: Board,
    action: Int[Array, " A"],
    pushed: Int[Array, " A"],
    succeeded: Bool[Array, " A"],
    aim: Int[Array, " A"],
    phantom: Int[Array, " A"],
) -> Attempts:
    """10.1, 10.2: the attempt events of a step from the board after it.

    `pushed`: block of each agent's push event or -1, `succeeded`: whether it moved.  An outcome names the task of the
    push event or else the last task, completed ones included, in whose `pushing` set the agent is.
    """
    num_tasks, num_agents = NUM_FACES * len(layout.weights), pushed.shape[0]
    has_event = pushed >= 0
    named = jnp.where(has_event, pushed * np.int16(NUM_FACES) + face_of(action), jnp.maximum(aim, phantom))
    named = settle(named.astype(jnp.int16))
    event = settle(first_same(named, num_tasks))
    ids = along(np.arange(num_agents, dtype=np.int16), event)
    task = settle(jnp.where(event == ids, named, np.int16(-1)))
    block = task >> FACE_BITS
    # One look at each block: a delivered one shows its weight as negative.
    weight = along(np.array(layout.weights, np.int16), board.block_row)
    required = settle(take(jnp.where(board.block_row >= 0, weight, -weight), block))
    is_active, required = required > 0, jnp.abs(required)
    # The task of a delivered block has no sets any more: who counts is the event of the first agent that names it.
    both = jnp.where(succeeded, np.int32(_SUCCEEDED + 1), np.int32(1))
    pushers = settle(count_same(jnp.where(has_event, named, np.int16(-1)), task, num_tasks, both))
    success, pushers = pushers >= _SUCCEEDED, (pushers % np.int32(_SUCCEEDED)).astype(jnp.int16)
    of_event = jnp.where(has_event, pushers, np.int16(1))
    near = jnp.where(is_active, count_same(beside(layout, board), task, num_tasks), of_event)
    acting = jnp.where(is_active, count_same(aim, task, num_tasks), of_event)
    attempting = jnp.where(is_active, np.int16(num_agents), of_event)
    near, acting, required, attempting = settle((near, acting, required, attempting))
    divisor = jnp.maximum(required, 1).astype(jnp.float32)
    share = [jnp.minimum(x.astype(jnp.float32) / divisor, jnp.float32(1)) for x in (near, acting)]
    return Attempts(
        task=task.astype(jnp.int32),
        required=required.astype(jnp.int32),
        attempting=jnp.where(task >= 0, attempting, 0).astype(jnp.int32),
        success=success,
        score=jnp.stack([*share, jnp.ones_like(share[0])], axis=1),
        event=event.astype(jnp.int32),
    )


def task_table(layout: Layout, deliver_reward: float, state: State) -> TaskTable:
    """8: the face tasks; `kind` is the face, `place` the block's top-left cell (-1 when delivered)."""
    weights = np.repeat(np.array(layout.weights, np.int32), NUM_FACES)
    place = jnp.stack([state.block_row, state.block_col], axis=-1).astype(jnp.int32)
    return TaskTable(
        active=jnp.repeat(state.block_row >= 0, NUM_FACES),
        kind=jnp.tile(jnp.arange(NUM_FACES, dtype=jnp.int32), len(layout.weights)),
        place=jnp.repeat(place, NUM_FACES, axis=0),
        required=jnp.asarray(weights),
        capability=jnp.full(weights.shape, -1, jnp.int32),
        value=jnp.asarray(weights * deliver_reward, jnp.float32),
    )


@struct.dataclass
class FaceSets:
    """8: who works on the tasks of the blocks that are left, and how far they are."""

    active: Bool[Array, " F"]
    adjacent: Int[Array, " F"]  # agents on the face's cells
    pushing: Int[Array, " F"]  # agents that pushed, or meant to, in the last step
    required: Int[Array, " F"]


def face_sets(layout: Layout, state: State) -> FaceSets:
    """Counts of the active tasks of a state; 0 for completed ones, whose sets are frozen in the past (10.3)."""
    board = to_board(layout, state.row, state.col, state.block_row, state.block_col)
    num_tasks = NUM_FACES * len(layout.weights)
    target = jnp.where(state.aim < 0, num_tasks, state.aim.astype(jnp.int32))
    pushing = jnp.zeros((num_tasks,), jnp.int32).at[target].add(1, mode="drop")
    return FaceSets(
        active=jnp.repeat(state.block_row >= 0, NUM_FACES),
        adjacent=adjacent_counts(layout, board).astype(jnp.int32),
        pushing=pushing,
        required=jnp.repeat(jnp.asarray(layout.weights, jnp.int32), NUM_FACES, total_repeat_length=num_tasks),
    )


STEP_METRICS = (
    "task_set_size",
    "tasks_added",
    "tasks_removed",
    "task_set_delta",
    "spatial_satisfied",
    "temporal_satisfied",
    "dependency_satisfied",
    "participation_satisfied",
    "total_satisfied",
    "spatial_improved",
    "spatial_worsened",
    "temporal_improved",
    "temporal_worsened",
    "participation_improved",
    "participation_worsened",
    "total_improved",
    "total_worsened",
    "task_state_changed",
    "task_state_progress",
    "task_state_regress",
)


def step_metrics(layout: Layout, before: State | None, after: State) -> tuple[Int[Array, " 20"], Float[Array, ""]]:
    """8: the metrics of one update in the order of `STEP_METRICS`, and the mean participation ratio.

    `before` None: the update at reset, which adds all tasks and changes nothing.
    """
    new = face_sets(layout, after)
    old = new if before is None else face_sets(layout, before)
    active = new.active

    def count(flags: Array) -> Array:
        return (flags & active).sum(dtype=jnp.int32)

    size, full = count(active), count(new.adjacent >= new.required)
    added = size if before is None else jnp.zeros_like(size)
    removed = (old.active & ~active).sum(dtype=jnp.int32)
    more, less = new.adjacent > old.adjacent, new.adjacent < old.adjacent
    more_push, less_push = new.pushing > old.pushing, new.pushing < old.pushing
    shift = (after if before is None else before, after)
    (old_row, row), (old_col, col) = ([jnp.repeat(getattr(s, k), NUM_FACES) for s in shift] for k in _CORNER)
    counts = [size, added, removed, added - removed, count(new.adjacent > 0), count(new.pushing > 0), size, full, full]
    counts += [count(more), count(less), count(more_push), count(less_push), count(more), count(less)]
    counts += [count(more | more_push), count(less | less_push)]
    counts += [count((row != old_row) | (col != old_col)), count(col > old_col), count(col < old_col)]
    ratio = jnp.where(active, new.adjacent.astype(jnp.float32) / new.required.astype(jnp.float32), 0.0).sum()
    return jnp.stack(counts), ratio / jnp.maximum(size, 1).astype(jnp.float32)


_CORNER = ("block_row", "block_col")


def distances_to_goal(layout: Layout, state: State) -> Int[Array, " B"]:
    """6: right pushes until delivery, -1 for a delivered block.  int32."""
    right = state.block_col.astype(jnp.int32) + np.array(layout.weights, np.int32) - 1
    return jnp.where(state.block_row < 0, -1, jnp.maximum(layout.side - 1 - right, 0))


def blockers(layout: Layout, state: State) -> Bool[Array, "B B"]:
    """6: `[b, o]`: block o has a cell in the rows of b, right of it."""
    weight = np.array(layout.weights, np.int16)
    row, end_row, end_col = state.block_row, state.block_row + weight, state.block_col + weight
    shares_rows = (row[None] < end_row[:, None]) & (row[:, None] < end_row[None])
    alive = row >= 0
    ahead = end_col[None] > end_col[:, None]  # o reaches a column that b does not
    return shares_rows & ahead & alive[None] & alive[:, None] & ~np.eye(len(weight), dtype=bool)
