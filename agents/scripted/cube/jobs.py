"""Which pushes are worth a team: blocks that can be delivered now, and those that must make room first.

Axes: B blocks, O = 2 B rows beside other blocks, L <= B blocks looked at in one step, A agents.  A job moves one block
in one direction to a target.  Everything here is about blocks alone; agents can step aside.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.cube.rules import Layout
from jaxcoop.envs.cube.types import Action

CHECKS = 2**20
"""About how many pairs of blocks are compared in one step to find room; of many blocks a part has its turn."""

DELIVER, MAKE_ROOM, SHIFT, NO_JOB = range(4)
"""Ranks of jobs, the lower the better: to the goal; up or down, after which the goal is free; anywhere by one cell."""


class Blocks(NamedTuple):
    """The alive blocks of a state."""

    row: Int[Array, " B"]  # int32; anything where not alive
    col: Int[Array, " B"]
    weight: np.ndarray  # int32
    alive: Bool[Array, " B"]


class Rect(NamedTuple):
    """Cells of rows `top` to `bottom` and columns `left` to `right`, both included."""

    top: Array
    bottom: Array
    left: Array
    right: Array


class Options(NamedTuple):
    """The best job of each block."""

    rank: Int[Array, " B"]  # DELIVER to NO_JOB
    direction: Int[Array, " B"]  # Action
    target: Int[Array, " B"]  # row or column of the top-left cell in the end
    steps: Int[Array, " B"]  # pushes it takes


def blocks_of(layout: Layout, block_row: Array, block_col: Array) -> Blocks:
    """Blocks as int32."""
    weight = np.asarray(layout.weights, np.int32)
    return Blocks(block_row.astype(jnp.int32), block_col.astype(jnp.int32), weight, block_row >= 0)


def meets(row: Array, col: Array, weight: Array | np.ndarray | int, rect: Rect) -> Bool[Array, "..."]:
    """Whether squares have a cell in a rectangle."""
    in_rows = (row <= rect.bottom) & (row + weight > rect.top)
    return in_rows & (col <= rect.right) & (col + weight > rect.left)


def beside(row: Array, col: Array, weight: Array | np.ndarray, direction: Array) -> Rect:
    """The line of cells along the side of squares that looks in a direction (Action)."""
    last_row, last_col = row + weight - 1, col + weight - 1
    up, down = direction == Action.UP, direction == Action.DOWN
    left, right = direction == Action.LEFT, direction == Action.RIGHT
    return Rect(
        jnp.where(up, row - 1, jnp.where(down, last_row + 1, row)),
        jnp.where(up, row - 1, jnp.where(down, last_row + 1, last_row)),
        jnp.where(left, col - 1, jnp.where(right, last_col + 1, col)),
        jnp.where(left, col - 1, jnp.where(right, last_col + 1, last_col)),
    )


def opposite(direction: Array) -> Array:
    """The other way; codes less one change places in pairs."""
    return ((direction - 1) ^ 1) + 1


def overlap(a: Rect, b: Rect) -> Bool[Array, "..."]:
    """Whether rectangles have a cell in common."""
    return (a.top <= b.bottom) & (a.bottom >= b.top) & (a.left <= b.right) & (a.right >= b.left)


def per_row(rect: Rect) -> Rect:
    """Rectangles with an axis behind, to be compared with a row of others."""
    return Rect(*(x[..., None] for x in rect))


def options(
    side: int, blocks: Blocks, is_leaving: Bool[Array, " B"], t: Int[Array, ""], noise: Int[Array, " B"]
) -> Options:
    """The best job of each block, agents not considered.

    `is_leaving`: blocks on their way to the goal, which are not in the way of those behind them.  `noise`: random
    numbers from 0 up, for the direction in which a block shifts when nothing else helps.
    """
    row, col, weight, alive = blocks
    ids = jnp.arange(len(weight), dtype=jnp.int32)
    can_go = alive & (col >= 1)  # a block in column 0 can never be pushed right again
    delivers = can_go & _goal_is_free(side, blocks, is_leaving, row[:, None], ids[:, None])[:, 0]
    can_push = _can_push(side, blocks)
    found, room_row = _room(side, blocks, is_leaving, can_push, t)
    found &= can_go

    # Along an edge of the grid a block is pushed off it by nobody.
    shifts = jnp.stack([can_push[0] & (row >= 2), can_push[1] & (row + weight <= side - 2), can_push[2] & (col >= 2)])
    turn = (jnp.arange(3, dtype=jnp.int32)[:, None] + noise) % 3
    shift = jnp.argmax(jnp.where(shifts, turn + 1, 0), 0).astype(jnp.int32)
    shifted = jnp.where(shift == 0, row - 1, jnp.where(shift == 1, row + 1, col - 1))
    vertical = jnp.where(room_row < row, int(Action.UP), int(Action.DOWN))
    rank = jnp.where(delivers, DELIVER, jnp.where(found, MAKE_ROOM, jnp.where(shifts.any(0), SHIFT, NO_JOB)))
    return Options(
        rank=rank.astype(jnp.int32),
        direction=jnp.where(delivers, int(Action.RIGHT), jnp.where(found, vertical, shift + 1)).astype(jnp.int32),
        target=jnp.where(delivers, side - weight, jnp.where(found, room_row, shifted)),
        steps=jnp.where(delivers, side - weight - col, jnp.where(found, jnp.abs(room_row - row), 1)),
    )


def _others(blocks: Blocks) -> Bool[Array, "B B"]:
    """Alive blocks, seen from each block, without itself."""
    return blocks.alive & ~np.eye(len(blocks.weight), dtype=bool)


def _can_push(side: int, blocks: Blocks) -> Bool[Array, "4 B"]:
    """Whether each block can be pushed one cell in each direction (Action - 1): no block where its team would stand,
    nor where it would go.  Right is for blocks that do not reach the goal by it.
    """
    row, col, weight, alive = blocks
    line = beside(row, col, weight, jnp.arange(1, 5, dtype=jnp.int32)[:, None])  # [4, B]
    is_block = (meets(row, col, weight, per_row(line)) & _others(blocks)).any(-1)
    in_grid = (line.top >= 0) & (line.bottom < side) & (line.left >= 0) & (line.right < side - 1)
    is_free = in_grid & ~is_block & alive
    return is_free & is_free[np.array([1, 0, 3, 2])]


def _goal_is_free(
    side: int, blocks: Blocks, is_leaving: Bool[Array, " B"], top: Int[Array, "L O"], block: Int[Array, "L 1"]
) -> Bool[Array, "L O"]:
    """Whether the left face and everything to the right of a block, put at row `top`, is free of other blocks."""
    row, col, weight, _ = blocks
    own_col = col[block]
    way = Rect(top, top + jnp.asarray(weight)[block] - 1, own_col - 1, jnp.full_like(top, side - 1))
    stays = (col + weight <= own_col[..., None]) | ~is_leaving
    return ~(meets(row, col, weight, per_row(way)) & _others(blocks)[block] & stays).any(-1)


def _room(
    side: int, blocks: Blocks, is_leaving: Bool[Array, " B"], can_push: Bool[Array, "4 B"], t: Int[Array, ""]
) -> tuple[Bool[Array, " B"], Int[Array, " B"]]:
    """The nearest row to which each block can be pushed up or down and from which it can be delivered: (found, row).

    Rows are tried at which the block just passes above or below another one.
    """
    row, col, weight, alive = blocks
    count = len(weight)
    looks = max(1, min(count, CHECKS // (2 * count**2)))
    block = (t * looks + jnp.arange(looks, dtype=jnp.int32)) % count
    own_weight, here, own_col = (jnp.asarray(x)[block][:, None] for x in (weight, row, col))
    rows = jnp.concatenate([row - own_weight, jnp.broadcast_to(row + weight, (looks, count))], 1)  # [L, O]
    swept = Rect(
        jnp.minimum(rows, here),
        jnp.maximum(rows, here) + own_weight - 1,
        jnp.broadcast_to(own_col, rows.shape),
        jnp.broadcast_to(own_col + own_weight - 1, rows.shape),
    )
    in_way = meets(row, col, weight, per_row(swept)) & _others(blocks)[block][:, None]
    up, down = (can_push[action - 1][block][:, None] for action in (Action.UP, Action.DOWN))
    passes = (rows >= 0) & (rows + own_weight <= side) & (rows != here) & jnp.concatenate([alive, alive])
    passes &= ~in_way.any(-1) & jnp.where(rows < here, up, down)
    passes &= _goal_is_free(side, blocks, is_leaving, rows, block[:, None])
    away = jnp.where(passes, jnp.abs(rows - here), 2 * side)
    best = jnp.argmin(away, 1)[:, None]
    found = jnp.zeros(alive.shape, jnp.bool_).at[block].set(passes.any(1))
    return found, jnp.zeros(row.shape, jnp.int32).at[block].set(jnp.take_along_axis(rows, best, 1)[:, 0])
