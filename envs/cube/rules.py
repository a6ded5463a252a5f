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

from jaxcoop.core.batching import along
from jaxcoop.envs.cube.lookup import block_at, inside, occupants, take, tally
from jaxcoop.envs.cube.types import Action, Push

settle = jax.lax.optimization_barrier
"""Asks the compiler to compute a value once; some of its passes still copy it, only loops never are (`lookup`)."""


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
    block: Int[Array, "D A"]  # block of the agent's push event, -1: none; int16; D is 4, or 1 for all directions
    failed: Int[Array, "D A"]  # Push code of the agent's failed push, NONE: none; int8
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


class _Moving(NamedTuple):
    """The push phase on its way; events are numbered by pass and block, `direction * B + block`."""

    nxt: Int[Array, ""]  # the coming event with full force, 4 B: there is none
    board: Board
    block: Int[Array, " A"]  # that the agent's push is aimed at, -1: none
    force: Int[Array, " 4B"]
    success: Bool[Array, " 4B"]
    advanced: Bool[Array, " A"]


def push_phase(layout: Layout, board: Board, action: Int[Array, " A"]) -> tuple[Board, Pushes]:
    """4.2: up, down, left, right, and in each pass the blocks in id order.

    4.1, 4.3: of the agents in a cell at the start of the step only the one with the highest index pushes.

    Full force is rare, so events that have it are played one after the other.  What a push event is made of depends
    on earlier passes only: within a pass, blocks and agents that have moved stand in cells that were a block's before,
    in front of nobody else's block.
    """
    num_blocks, narrow = len(layout.weights), layout.dtype
    num_events = 4 * num_blocks
    _, is_under = occupants(layout.side, board.row, board.col, board.row, board.col)
    pushes = (action >= Action.UP) & (action <= Action.RIGHT) & ~is_under
    direction = settle(jnp.where(pushes, action - 1, -1).astype(np.int16))
    row_step, col_step = step_of(action, narrow)
    front_row = jnp.where(pushes, board.row + row_step, layout.no_agent).astype(narrow)
    front_row, front_col = settle((front_row, board.col + col_step))
    block = settle(block_at(front_row, front_col, board.block_row, board.block_col, layout.weights))
    events = along(np.arange(num_events, dtype=np.int16), board.row)
    weight = along(np.tile(np.array(layout.weights, narrow), 4), board.row)
    of_block, of_direction, weights = events % num_blocks, events // num_blocks, weight[:num_blocks]

    def next_after(event: Any, force: Array) -> Array:
        waits = (force == weight) & (events > event)
        return jnp.where(waits, events, np.int16(num_events)).min(0)

    def play(now: _Moving) -> _Moving:
        board, event = now.board, now.nxt
        d, b = event // np.int16(num_blocks), event % np.int16(num_blocks)
        is_event, is_block = events == event, of_block[:num_blocks] == b
        w, block_row, block_col = (
            jnp.where(is_block, x, 0).sum(0, dtype=narrow) for x in (weights, board.block_row, board.block_col)
        )
        down, right = step_of(d + 1, narrow)
        to_row, to_col = block_row + down, block_col + right
        in_grid = (to_row >= 0) & (to_col >= 0) & (to_row + w <= layout.side) & (to_col + w <= layout.side)
        meets = _overlap(to_row, to_col, w, board.block_row, board.block_col, weights) & ~is_block
        in_way = inside(board.row, board.col, to_row, to_col, w)
        moves = (event < num_events) & in_grid & ~meets.any(0) & ~in_way.any(0)
        home = to_col + w >= layout.side

        moved = moves & (now.block == b) & (direction == d)
        # A pusher walks into the cell that its block has left, but not into the goal column (hand-made states only).
        walks = moved & (board.col + right < layout.side - 1)
        # For later passes the block stands elsewhere.
        later = moves & (direction > d)
        touches = inside(front_row, front_col, to_row, to_col, w) & ~home
        block = jnp.where(later & (now.block == b), np.int16(-1), now.block)
        block = jnp.where(later & touches, b, block)
        there = (block == b)[None] & (direction[None] == along(np.arange(4, dtype=np.int16), direction[None]))
        count = jnp.repeat(there.sum(1, dtype=narrow), num_blocks, axis=0)  # of each direction
        force = jnp.where(moves & (of_block == b) & (of_direction > d), count, now.force)
        row_of = jnp.where(home, layout.no_block, to_row).astype(narrow)
        board = Board(
            jnp.where(walks, board.row + down, board.row),
            jnp.where(walks, board.col + right, board.col),
            jnp.where(is_block & moves, row_of, board.block_row),
            jnp.where(is_block & moves, to_col, board.block_col),
        )
        success = now.success | (is_event & moves)
        return _Moving(next_after(event, force), board, block, force, success, now.advanced | moved)

    event = jnp.where(block < 0, np.int16(-1), direction * np.int16(num_blocks) + block)
    force = tally(settle(event), num_events).astype(narrow)
    none = jnp.zeros(force.shape, jnp.bool_)
    nobody = jnp.zeros(board.row.shape, jnp.bool_)
    first = _Moving(next_after(np.int16(-1), force), board, block, force, none, nobody)
    end = jax.lax.while_loop(lambda now: (now.nxt < num_events).any(), play, first)

    failure = jnp.where(end.force == weight, Push.BLOCKED_DESTINATION, Push.INSUFFICIENT_FORCE).astype(jnp.int8)
    result = jnp.where(end.force > 0, jnp.where(end.success, np.int8(Push.SUCCESS), failure), np.int8(Push.NONE))
    own = take(result, direction * np.int16(num_blocks) + end.block)
    failed = jnp.where((end.block < 0) | end.advanced, np.int8(Push.NONE), own)
    result = result.reshape(4, num_blocks, *result.shape[1:])
    return end.board, Pushes(result, end.block[None], failed[None], end.advanced)


def _overlap(row: Array, col: Array, size: Array, rows: Array, cols: Array, sizes: Any) -> Bool[Array, " B"]:
    """Whether a square has a cell in common with each of the others."""
    # Unsigned, as in `inside`.  At most 2 S, which fits.
    reach = size + sizes - 1
    unsigned = {1: np.uint8, 2: np.uint16}[row.dtype.itemsize]
    gaps = (row - rows + (size - 1), col - cols + (size - 1))
    meets_rows, meets_cols = (x.astype(unsigned) < reach.astype(unsigned) for x in gaps)
    return meets_rows & meets_cols


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
    in_block = block_at(row, col, board.block_row, board.block_col, layout.weights) >= 0
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
