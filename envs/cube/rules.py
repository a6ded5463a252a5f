"""4: the primitive step — pushes in four passes, then free moves.

Axes: A agents, B blocks; further axes are those of a batch (see `lookup`).  A step is a function of positions and
actions alone.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.cube.lookup import along, inside, occupants
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Action, Push

settle = jax.lax.optimization_barrier
"""Computes a value once: the compiler would copy what it follows from into every place that uses it."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """What the rules need to know of a configuration."""

    side: int  # K
    weights: tuple[int, ...]  # of the blocks, in id order

    @property
    def dtype(self) -> np.dtype:
        """The type that coordinates are compared in; the narrower, the more at once."""
        return np.dtype(np.int8 if self.side <= 60 else np.int16)

    @property
    def no_agent(self) -> int:
        """Row of an unplaced agent while rules are computed: away from the grid and from `no_block`."""
        return 8 - 2 ** (8 * self.dtype.itemsize - 1)

    @property
    def no_block(self) -> int:
        """Row of a delivered block while rules are computed."""
        return -(2 ** (8 * self.dtype.itemsize - 2))


class Board(NamedTuple):
    """Positions while a step is computed, in the layout's type."""

    row: Int[Array, " A"]
    col: Int[Array, " A"]
    block_row: Int[Array, " B"]
    block_col: Int[Array, " B"]


class Pushes(NamedTuple):
    """The push events of a step, by direction (Action - 1)."""

    result: Int[Array, "4 B"]  # Push code, int8
    block: Int[Array, "4 A"]  # block of the agent's push event, -1: none; int16
    failed: Int[Array, "4 A"]  # Push code of the agent's failed push, NONE: none; int8
    advanced: Bool[Array, " A"]  # moved by a push


def to_board(layout: Layout, row: Array, col: Array, block_row: Array, block_col: Array) -> Board:
    """Positions with -1 for what is absent, made ready for the rules."""
    narrow = layout.dtype
    board = Board(
        jnp.where(row < 0, layout.no_agent, row).astype(narrow),
        col.astype(narrow),
        jnp.where(block_row < 0, layout.no_block, block_row).astype(narrow),
        block_col.astype(narrow),
    )
    return settle(board)


def from_board(board: Board) -> tuple[Array, Array, Array, Array]:
    """The inverse of `to_board`: int16 (row, col, block_row, block_col), -1 for what is absent."""
    no_agent, no_block = board.row < 0, board.block_row < 0
    fields = ((board.row, no_agent), (board.col, no_agent), (board.block_row, no_block), (board.block_col, no_block))
    row, col, block_row, block_col = (jnp.where(none, -1, x).astype(jnp.int16) for x, none in fields)
    return row, col, block_row, block_col


def step_of(action: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Row and column delta of each action; 0 for numbers that are no action."""
    row = (action == Action.DOWN).astype(dtype) - (action == Action.UP).astype(dtype)
    col = (action == Action.RIGHT).astype(dtype) - (action == Action.LEFT).astype(dtype)
    return row, col


def push_phase(layout: Layout, board: Board, action: Int[Array, " A"]) -> tuple[Board, Pushes]:
    """4.2: up, down, left, right; a block moves at most once in each pass.

    4.1, 4.3: of the agents in a cell at the start of the step only the one with the highest index pushes.
    """
    _, is_under = occupants(layout.side, board.row, board.col, board.row, board.col)
    action = settle(jnp.where(is_under, Action.STAY, action).astype(layout.dtype))

    def one_pass(carry: tuple[Board, Array], direction: Any) -> tuple[tuple[Board, Array], Any]:
        board, advanced = carry
        board, moved, events = _pass(layout, board, action, *direction)
        return (board, advanced | moved), events

    directions = tuple(jnp.asarray(x[1:], layout.dtype) for x in (np.arange(5), DELTA_ROW, DELTA_COL))
    nobody = jnp.zeros(board.row.shape, jnp.bool_)
    (board, advanced), events = jax.lax.scan(one_pass, (board, nobody), directions)
    result, block, failed = events
    return board, Pushes(result, block, failed, advanced)


def _pass(
    layout: Layout, board: Board, action: Array, direction: Array, row_step: Array, col_step: Array
) -> tuple[Board, Array, tuple[Array, Array, Array]]:
    """All pushes in one direction: `(board, advanced agents, events)`.

    Blocks are visited in id order, but only one thing hangs on it: a push empties the old cells of its pushers, for
    blocks of a higher id.  Everything else about a block is as at the start of the pass: blocks and agents that have
    moved stand in cells that were a block's before, in front of nobody else's block.
    """
    row, col, block_row, block_col = board
    narrow = layout.dtype
    weight = along(np.array(layout.weights, narrow), block_row)
    front_row, back_row = settle(
        (jnp.where(action == direction, row + row_step, layout.no_agent).astype(narrow), row - row_step)
    )
    # [B, A] the agent pushes the block; the agent is in the square that the block would move to.
    squares = (block_row[:, None], block_col[:, None], weight[:, None])
    pushes = settle(inside(front_row, col + col_step, *squares))
    in_way = inside(back_row, col - col_step, *squares)
    counts = narrow if row.shape[0] < 2**7 else np.dtype(np.int16)
    force = pushes.astype(counts).sum(1, dtype=counts)
    nxt_row, nxt_col = block_row + row_step, block_col + col_step
    in_grid = (nxt_row >= 0) & (nxt_col >= 0) & (nxt_row + weight <= layout.side) & (nxt_col + weight <= layout.side)
    is_free = in_grid & ~_meets_block(nxt_row, nxt_col, block_row, block_col, weight)
    full, ready, in_way_of = settle((force == weight, (force == weight) & is_free, in_way.any(1)))

    # A pusher walks into the cell that its block has left, but not into the goal column (hand-made states only).
    walks = col + col_step < layout.side - 1
    ids = along(np.arange(len(layout.weights), dtype=_id_type(layout)), pushes)
    pushed = jnp.where(pushes, ids, ids.dtype.type(-1)).max(0)  # [A]

    def grow(success: Array) -> Array:
        """Blocks that move when the pushers of the given ones have made way for those of a higher id."""
        gone = (success[:, None] & pushes).any(0) & walks
        return ready & ~(in_way & ~(gone[None] & (pushed[None] < ids))).any(1)

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        grown = grow(carry[0])
        return grown, (grown != carry[0]).any()

    clear = ready & ~in_way_of
    # Rare, so the loop seldom runs: a second block with full force, and in its way agents that push.
    waiting = (ready & in_way_of).any(0) & clear.any(0)
    success, _ = jax.lax.while_loop(lambda carry: carry[1], again, (clear, waiting.any()))

    moved = (success[:, None] & pushes).any(0)
    delivered = success & (nxt_col + weight >= layout.side)
    steps = moved & walks
    nxt = Board(
        jnp.where(steps, row + row_step, row),
        jnp.where(steps, col + col_step, col),
        jnp.where(delivered, layout.no_block, jnp.where(success, nxt_row, block_row)).astype(narrow),
        jnp.where(success, nxt_col, block_col),
    )
    failure = jnp.where(full, Push.BLOCKED_DESTINATION, Push.INSUFFICIENT_FORCE).astype(jnp.int8)
    result = jnp.where(force > 0, jnp.where(success, np.int8(Push.SUCCESS), failure), np.int8(Push.NONE))
    failed = jnp.where(pushes & ~success[:, None], failure[:, None], np.int8(Push.NONE)).max(0)
    return settle(nxt), moved, (result, pushed.astype(jnp.int16), failed)


def _id_type(layout: Layout) -> type:
    return np.int8 if len(layout.weights) < 2**7 else np.int16


def _meets_block(row: Array, col: Array, block_row: Array, block_col: Array, weight: np.ndarray) -> Bool[Array, " B"]:
    """Whether the square of each block, put at (row, col), has a cell in common with another block."""
    unsigned = {1: np.uint8, 2: np.uint16}[row.dtype.itemsize]
    reach = (weight[:, None] + weight[None] - 1).astype(row.dtype)  # [B, B]; at most 2 S
    row_gap = row[None] - block_row[:, None] + (weight[None] - 1).astype(row.dtype)  # [B other, B]
    col_gap = col[None] - block_col[:, None] + (weight[None] - 1).astype(row.dtype)
    meets = (row_gap.astype(unsigned) < reach.astype(unsigned)) & (col_gap.astype(unsigned) < reach.astype(unsigned))
    other = ~np.eye(len(weight), dtype=bool)
    return (meets & other.reshape(*other.shape, *(1,) * (row.ndim - 1))).any(0)


def free_moves(
    layout: Layout,
    start: Board,
    board: Board,
    advanced: Bool[Array, " A"],
    action: Int[Array, " A"],
    *,
    legacy: bool = False,
    one_each: bool = False,
    enter_goal: bool = False,
) -> Board:
    """4.4: everybody who was not moved by a push takes a step into a cell that is empty after the pushes.

    All at once, so several agents may enter one cell; with `one_each` (13: the paper) the one with the smallest index.
    `legacy`: also onto an agent of a higher index that was there at the start of the step (`start`).
    `enter_goal`: the goal column is like any other (A.2).
    """
    row_step, col_step = step_of(action, layout.dtype)
    row, col = settle((board.row + row_step, board.col + col_step))
    in_rows = (row >= 0) & (row < layout.side) & (col >= 0)
    weight = along(np.array(layout.weights, layout.dtype), board.block_row)
    in_block = inside(row, col, board.block_row[:, None], board.block_col[:, None], weight[:, None]).any(0)
    has_agent, _ = occupants(layout.side, board.row, board.col, row, col)
    moves = in_rows & (col < layout.side - (not enter_goal)) & ~in_block & ~has_agent & ~advanced
    if one_each:
        wanted = jnp.where(moves, row, layout.no_agent).astype(layout.dtype)
        back = (x[::-1] for x in (wanted, col, wanted, col))
        moves &= ~occupants(layout.side, *back)[1][::-1]
    if legacy:
        _, is_above = occupants(layout.side, start.row, start.col, row, col)
        moves |= in_rows & (col < layout.side) & has_agent & is_above & ~advanced
    nxt = (jnp.where(moves, row, board.row), jnp.where(moves, col, board.col))
    row, col = settle(nxt)
    return Board(row, col, board.block_row, board.block_col)
