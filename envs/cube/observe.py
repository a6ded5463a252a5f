"""5: the five-channel map, whole or around an agent; the occupancy grid; which directions can have an effect.

Axes: A agents, K of them that are asked for, B blocks, S side of the grid, V side of a view (S, or odd and centred).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.envs.cube.lookup import cell
from jaxcoop.envs.cube.rules import Layout
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Obs, State

EMPTY, AGENT, BLOCK, GOAL = range(4)
"""2: codes of the occupancy grid."""


def block_map(layout: Layout, state: State) -> Int[Array, "S S"]:
    """Id + 1 of the block in each cell, 0 for none.  int16."""
    cells = jnp.arange(layout.side, dtype=jnp.int16)
    weights = np.array(layout.weights, np.int16)[:, None]
    alive = (state.block_row >= 0)[:, None]
    in_rows, in_cols = (
        (cells >= x[:, None]) & (cells < x[:, None] + weights) & alive for x in (state.block_row, state.block_col)
    )  # [B, S]
    ids = np.arange(1, len(layout.weights) + 1, dtype=np.int16)[:, None, None]
    return jnp.where(in_rows[:, :, None] & in_cols[:, None, :], ids, np.int16(0)).max(0)


def agent_map(layout: Layout, state: State) -> Int[Array, "S S"]:
    """Index + 1 of the agent in each cell, the highest where several are; 0 for none.  int16."""
    side = layout.side
    ids = jnp.arange(1, state.row.shape[0] + 1, dtype=jnp.int16)
    cells = cell(side, state.row, state.col)
    return jnp.zeros((side * side,), jnp.int16).at[cells].max(ids, mode="drop").reshape(side, side)


def occupied(layout: Layout, state: State) -> Int[Array, "S S"]:
    """2: the occupancy grid; agents are painted over blocks, and blocks over the goal column.  int8."""
    goal = jnp.where(jnp.arange(layout.side) == layout.side - 1, jnp.int8(GOAL), jnp.int8(EMPTY))
    blocks = jnp.where(block_map(layout, state) > 0, jnp.int8(BLOCK), goal[None])
    return jnp.where(agent_map(layout, state) > 0, jnp.int8(AGENT), blocks)


def grid(layout: Layout, state: State) -> Float[Array, "S S 5"]:
    """5: agents, block weights, goal column, agent index + 1, block id + 1."""
    agents, blocks = agent_map(layout, state), block_map(layout, state)
    weights = jnp.asarray((0, *layout.weights), jnp.float32)
    goal = jnp.broadcast_to(jnp.arange(layout.side) == layout.side - 1, agents.shape)
    return jnp.stack([x.astype(jnp.float32) for x in (agents > 0, weights[blocks], goal, agents, blocks)], axis=-1)


def observe(layout: Layout, view: int, state: State, agents: Int[Array, " K"] | None) -> Obs:
    """The map for each agent: all of it (`view` 0), or the window of that odd side around the agent.

    A window is 0 outside the grid; an unplaced agent's is 0 everywhere.
    """
    everybody = agents is None or agents.shape[0] == state.row.shape[0]
    row, col = (x if everybody else x[agents] for x in (state.row, state.col))
    ids = jnp.arange(row.shape[0], dtype=jnp.int32) if agents is None else agents.astype(jnp.int32)
    whole = grid(layout, state)
    if view:
        # The margin lets windows at the edge, and that of an unplaced agent at (-1, -1), be cut like the others.
        margin = view // 2 + 1
        padded = jnp.pad(whole, ((margin, margin), (margin, margin), (0, 0)))

        def window(r: Array, c: Array) -> Array:
            corner = (r.astype(jnp.int32) + 1, c.astype(jnp.int32) + 1, jnp.zeros((), jnp.int32))
            cut = jax.lax.dynamic_slice(padded, corner, (view, view, whole.shape[-1]))
            return jnp.where(r < 0, jnp.float32(0), cut)

        seen = jax.vmap(window)(row, col)
    else:
        seen = jnp.broadcast_to(whole, (row.shape[0], *whole.shape))
    return Obs(grid=seen, row=row.astype(jnp.int32), col=col.astype(jnp.int32), agent=ids)


def legal(layout: Layout, enter_goal: bool, state: State, agents: Int[Array, " K"] | None) -> Bool[Array, "K 5"]:
    """Staying, and every direction in which the next cell is in the grid and may be entered by somebody.

    The goal column may only with `enter_goal`; no block stands in it (hand-made states aside), so nobody pushes there.
    Whether the cell is free, or a push has the force, is not looked at.
    """
    row, col = (x if agents is None else x[agents] for x in (state.row, state.col))
    limit = layout.side - (not enter_goal)
    to_row, to_col = (x[:, None] + step for x, step in ((row, DELTA_ROW), (col, DELTA_COL)))
    inside = (to_row >= 0) & (to_row < layout.side) & (to_col >= 0) & (to_col < limit) & (row >= 0)[:, None]
    return inside | (np.arange(len(DELTA_ROW)) == 0)
