"""Appendix A.2: the pushes of the original CUBE — lines of agents push rows of blocks.

Axes: A agents, B blocks.  For one episode; batched by `vmap`.  A chain is closed over everything in its way; the
original code overlooks a second block beside the first one that it finds, and what stands behind it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.cube.lookup import cell, inside
from jaxcoop.envs.cube.rules import Board, Layout, Pushes
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Action, Push


def push_phase(layout: Layout, board: Board, action: Int[Array, " A"]) -> tuple[Board, Pushes]:
    """A.2, points 1 to 4: in pass and id order, each block with everything ahead of it and the lines behind it.

    In the events every block of a chain that moves has SUCCESS, and its agents name the block that their line touches.
    Failed pushes leave no event.
    """

    def one_pass(carry: tuple[Board, Array], direction: Any) -> tuple[tuple[Board, Array], Any]:
        board, advanced = carry
        board, moved, events = _pass(layout, board, action, *direction)
        return (board, advanced | moved), events

    nobody = jnp.zeros(board.row.shape, jnp.bool_)
    directions = tuple(jnp.asarray(x[1:], layout.dtype) for x in (np.arange(5), DELTA_ROW, DELTA_COL))
    (board, advanced), (result, block) = jax.lax.scan(one_pass, (board, nobody), directions)
    return board, Pushes(result, block, jnp.full(block.shape, Push.NONE, jnp.int8), advanced)


def lines(
    layout: Layout, board: Board, pushes: Bool[Array, " A"], row_step: Array, col_step: Array
) -> Int[Array, " A"]:
    """A.2, point 2: the block that the line of each agent in `pushes` touches, -1 for none.  int16.

    A line goes on from a face cell against the direction as long as cells hold an agent that pushes that way, the one
    with the highest index where several share a cell.  It is the same all pass long: what moves takes its whole line
    along, and nothing comes up to the agents that stay.
    """
    n, side = board.row.shape[0], layout.side
    ids = jnp.arange(n, dtype=jnp.int32)
    here = cell(side, board.row, board.col)
    top = jnp.full((side * side,), -1, jnp.int32).at[here].max(ids, mode="drop")
    pushes = pushes & (top.at[here].get(mode="fill", fill_value=-1) == ids)
    row, col = board.row + row_step, board.col + col_step
    touches = pushes & inside(row, col, *_squares(layout, board))  # [B, A]
    block = jnp.where(touches, jnp.arange(len(layout.weights), dtype=jnp.int16)[:, None], jnp.int16(-1)).max(0)
    next_one = top.at[cell(side, row, col)].get(mode="fill", fill_value=-1)
    is_pusher = (next_one >= 0) & pushes[next_one]
    ahead = jnp.where(pushes & is_pusher & (block < 0), next_one, ids)
    for _ in range((n - 1).bit_length()):  # twice as far ahead each time
        ahead = ahead[ahead]
    return jnp.where(pushes, block[ahead], jnp.int16(-1))


def _squares(layout: Layout, board: Board) -> tuple[Array, Array, np.ndarray]:
    weight = np.array(layout.weights, layout.dtype)[:, None]
    return board.block_row[:, None], board.block_col[:, None], weight


def closure(layout: Layout, board: Board, first: Array, row_step: Array, col_step: Array) -> Bool[Array, " B"]:
    """A.2, point 3: the block `first` and everything that has to move with it."""
    weight = np.array(layout.weights, np.int32)
    row, col = board.block_row.astype(jnp.int32), board.block_col.astype(jnp.int32)
    row_gap, col_gap = (
        x[:, None] + step.astype(jnp.int32) - x[None] for x, step in ((row, row_step), (col, col_step))
    )  # [B moves, B in its way]
    meets = (row_gap < weight) & (-row_gap < weight[:, None]) & (col_gap < weight) & (-col_gap < weight[:, None])
    meets &= (row >= 0)[None] & (row >= 0)[:, None]

    def grow(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        members, _ = carry
        grown = members | (members[:, None] & meets).any(0)
        return grown, (grown != members).any()

    start = (jnp.arange(len(weight)) == first) & (row >= 0)
    return jax.lax.while_loop(lambda carry: carry[1], grow, (start, start.any()))[0]


def _pass(
    layout: Layout, board: Board, action: Array, direction: Array, row_step: Array, col_step: Array
) -> tuple[Board, Array, tuple[Array, Array]]:
    """All pushes in one direction: `(board, moved agents, (result [B], block [A]))`."""
    side, weight = layout.side, np.array(layout.weights, layout.dtype)
    line = lines(layout, board, (action == direction) & (action != Action.STAY), row_step, col_step)

    def one(carry: tuple[Board, Array, Array], block: Array) -> tuple[tuple[Board, Array, Array], None]:
        board, moved_blocks, moved = carry
        members = closure(layout, board, block, row_step, col_step)
        pushers = line == block.astype(jnp.int16)
        row, col = board.block_row + row_step, board.block_col + col_step
        in_grid = (row >= 0) & (col >= 0) & (row + weight <= side) & (col + weight <= side)
        in_way = inside(board.row, board.col, row[:, None], col[:, None], weight[:, None]).any(1)
        enough = pushers.sum(dtype=jnp.int32) >= jnp.where(members, weight.astype(np.int32), 0).sum(dtype=jnp.int32)
        is_turn = members.any() & ~moved_blocks[block]
        success = is_turn & enough & pushers.any() & jnp.where(members, in_grid & ~in_way, True).all()
        shifts, walks = members & success, pushers & success
        delivered = shifts & (col + weight >= side)
        nxt = Board(
            jnp.where(walks, board.row + row_step, board.row),
            jnp.where(walks, board.col + col_step, board.col),
            jnp.where(delivered, layout.no_block, jnp.where(shifts, row, board.block_row)).astype(layout.dtype),
            jnp.where(shifts, col, board.block_col),
        )
        return (nxt, moved_blocks | shifts, moved | walks), None

    start = (board, jnp.zeros(weight.shape, jnp.bool_), jnp.zeros(line.shape, jnp.bool_))
    (board, moved_blocks, moved), _ = jax.lax.scan(one, start, jnp.arange(len(weight), dtype=jnp.int32))
    result = jnp.where(moved_blocks, Push.SUCCESS, Push.NONE).astype(jnp.int8)
    return board, moved, (result, jnp.where(moved, line, jnp.int16(-1)))
