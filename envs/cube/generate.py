"""3: where blocks and agents start.

Axes: A agents, B blocks, S side of the grid, R = number of candidate rows (and columns) of a top-left cell.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.envs.cube.rules import Layout

TRIES = 64
"""Layouts that are drawn, whole, until one has a place for every block."""


class Start(NamedTuple):
    """Initial positions, -1 for what has no place; int16."""

    row: Int[Array, " A"]
    col: Int[Array, " A"]
    block_row: Int[Array, " B"]
    block_col: Int[Array, " B"]


def place(layout: Layout, num_agents: int, key: Array) -> Start:
    """A random start.

    If no layout in `TRIES` has a place for every block, the last one is used as it is; what found no place in it
    counts as delivered from the start.
    """
    key_blocks, key_agents = jax.random.split(key)

    def dead_end(carry: tuple[Array, Array, Array]) -> Array:
        tries, row, _ = carry
        return (tries < TRIES) & (row < 0).any()

    def redraw(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        tries, _, _ = carry
        return tries + 1, *draw_blocks(layout, jax.random.fold_in(key_blocks, tries))

    none = jnp.full((len(layout.weights),), -1, jnp.int16)
    _, block_row, block_col = jax.lax.while_loop(dead_end, redraw, (jnp.zeros((), jnp.int32), none, none))
    rows = jax.random.permutation(key_agents, jnp.arange(layout.side, dtype=jnp.int16))
    row = jnp.pad(rows[:num_agents], (0, max(0, num_agents - layout.side)), constant_values=-1)
    return Start(row, jnp.where(row < 0, row, jnp.int16(0)), block_row, block_col)


def draw_blocks(layout: Layout, key: Array) -> tuple[Int[Array, " B"], Int[Array, " B"]]:
    """Top-left cells, each uniform over those that the earlier blocks leave; -1 where they leave none."""
    weights = np.array(layout.weights, np.int16)
    count = layout.side - 2 - int(weights.min())  # R: candidates are 1 .. S - w - 2
    cells = jnp.arange(1, count + 1, dtype=jnp.int16)

    def one(carry: tuple[Array, Array], block: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        row, col = carry
        b, weight, uniform = block
        # Rows (and columns) of a top-left cell at which this block would meet each of the earlier ones.
        meets_row, meets_col = (
            (cells[None] < x[:, None] + weights[:, None]) & (cells[None] > x[:, None] - weight) & (x[:, None] >= 0)
            for x in (row, col)
        )  # [B, R]
        is_in = cells <= layout.side - weight - 2
        free = ~(meets_row[:, :, None] & meets_col[:, None, :]).any(0) & is_in[:, None] & is_in
        found, r, c = choose(free, uniform)
        here = (jnp.arange(len(weights)) == b) & found
        return (jnp.where(here, cells[r], row), jnp.where(here, cells[c], col)), None

    none = jnp.full(weights.shape, -1, jnp.int16)
    ids = jnp.arange(len(weights), dtype=jnp.int32)
    draws = jax.random.bits(key, weights.shape, jnp.uint32)
    (row, col), _ = jax.lax.scan(one, (none, none), (ids, jnp.asarray(weights), draws))
    return row, col


def choose(free: Bool[Array, "R R"], bits: Array) -> tuple[Bool[Array, ""], Int[Array, ""], Int[Array, ""]]:
    """A uniformly random cell of a mask as `(found, row, column)`; no probability is off by more than R^2 / 2^32.

    `bits`: 32 random bits.  Row and column are 0 where nothing is free.
    """
    in_row = free.sum(1, dtype=jnp.uint32)
    up_to = jnp.cumsum(in_row, dtype=jnp.uint32)
    total = up_to[-1]
    rank = bits % jnp.maximum(total, jnp.uint32(1))
    row = jnp.argmax(up_to > rank)
    rank_in_row = rank - (up_to[row] - in_row[row])
    line = free[row]
    col = jnp.argmax(line & (jnp.cumsum(line, dtype=jnp.uint32) > rank_in_row))
    return total > 0, row.astype(jnp.int32), col.astype(jnp.int32)


def place_at(layout: Layout, key: Array, start: Start, wanted: Int[Array, "A 2"]) -> Start:
    """3: agents at the cells asked for, in index order; `wanted[i]` (-1, -1): anywhere.

    A cell counts when it is in the grid and holds no block and no earlier agent, be it in the goal column.  Otherwise a
    random row of column 0 is tried once, and if it is taken the agent has no place.
    """
    weights = jnp.asarray(layout.weights, jnp.int16)
    num_agents = wanted.shape[0]
    tried = jax.vmap(lambda i: jax.random.randint(jax.random.fold_in(key, i), (), 0, layout.side))
    rows = tried(jnp.arange(num_agents, dtype=jnp.int32)).astype(jnp.int16)

    def one(carry: tuple[Array, Array], agent: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        row, col = carry
        i, cell, other = agent

        def is_free(r: Array, c: Array) -> Array:
            in_rows = (r >= start.block_row) & (r < start.block_row + weights)
            in_cols = (c >= start.block_col) & (c < start.block_col + weights)
            block = (in_rows & in_cols & (start.block_row >= 0)).any()
            in_grid = (r >= 0) & (r < layout.side) & (c >= 0) & (c < layout.side)
            return in_grid & ~block & ~((row == r) & (col == c)).any()

        zero, none = jnp.zeros((), jnp.int16), jnp.full((), -1, jnp.int16)
        here, there = is_free(cell[0], cell[1]), is_free(other, zero)
        r = jnp.where(here, cell[0], jnp.where(there, other, none))
        c = jnp.where(here, cell[1], jnp.where(there, zero, none))
        is_it = jnp.arange(num_agents) == i
        return (jnp.where(is_it, r, row), jnp.where(is_it, c, col)), None

    none = jnp.full((num_agents,), -1, jnp.int16)
    agents = (jnp.arange(num_agents, dtype=jnp.int32), wanted.astype(jnp.int16), rows)
    (row, col), _ = jax.lax.scan(one, (none, none), agents)
    return Start(row, col, start.block_row, start.block_col)
