"""Where everybody goes: distance fields of a step, and one move for each agent.

Axes: A agents, B blocks, C blocks that are looked at, F = C + 1 fields, S side of the grid.  Field c leads to the free
cells of the face of block c, the last one out of the way of all jobs.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube.jobs import Blocks, Rect, meets, per_row
from jaxcoop.agents.scripted.cube.teams import Plan, Prospects
from jaxcoop.envs.cube import fields
from jaxcoop.envs.cube.lookup import batch_last, occupants
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW

PATIENCE = 2
"""Steps that an agent waits for others before it tries another way."""


class Maps(NamedTuple):
    """What is where in one step."""

    agents: Bool[Array, "S S"]
    field: Int[Array, "F S S"]


class Moves(NamedTuple):
    """What the agents do."""

    pushes: Bool[Array, " A"]
    walks: Bool[Array, " A"]
    direction: Int[Array, " A"]  # Action, where the agent walks
    travels: Bool[Array, " A"]  # wants to be somewhere else


def within(row: Array, col: Array, rect: Rect) -> Bool[Array, "..."]:
    """Whether cells lie in rectangles."""
    return meets(row, col, 1, rect)


def on_face(found: Prospects, job: Int[Array, " A"], row: Array, col: Array) -> Bool[Array, "C A"]:
    """The agents of each team that stand where they push."""
    is_member = (job == found.block[:, None]) & found.has_job[:, None]
    return is_member & within(row, col, per_row(found.face))


def draw_maps(side: int, plan: Plan, found: Prospects, blocks: Blocks, row: Array, col: Array) -> Maps:
    """Agents and fields.  Agents who wait at the face of another block are obstacles, the others will move."""
    looks = found.block.shape[0]
    lines = jnp.arange(side, dtype=jnp.int32)

    def squares(rect: Rect) -> Bool[Array, "N S S"]:
        in_rows = (lines >= rect.top[:, None]) & (lines <= rect.bottom[:, None])
        in_cols = (lines >= rect.left[:, None]) & (lines <= rect.right[:, None])
        return in_rows[:, :, None] & in_cols[:, None, :]

    # 0: nobody; 1: somebody; 2 + c: somebody at the face of block c.
    waits = on_face(found, plan.job, row, col)
    mark = jnp.where(waits, 2 + jnp.arange(looks, dtype=jnp.int32)[:, None], 1).max(0)
    cell = jnp.where(row >= 0, row * side + col, side * side)
    marks = jnp.zeros((side * side,), jnp.int32).at[cell].max(mark, mode="drop").reshape(side, side).astype(jnp.int16)

    last = blocks.weight - 1
    there = jnp.where(blocks.alive, blocks.row, -side)
    is_block = squares(Rect(there, there + last, blocks.col, blocks.col + last)).any(0)
    floor = ~is_block & (lines < side - 1)
    own = jnp.arange(2, 2 + looks, dtype=jnp.int16)[:, None, None]
    goals = squares(found.face) & (marks != own)
    parking = ~(squares(found.way) & found.has_job[:, None, None]).any(0)
    is_open = floor & ((marks < 2) | (marks == own))
    field = batch_last(fields.distances)(
        jnp.concatenate([goals, parking[None]]), jnp.concatenate([is_open, floor[None]])
    )
    return Maps(marks > 0, field)


def look_up(maps: Maps, which: Array, row: Array, col: Array) -> Int[Array, "..."]:
    """Distances of cells in fields, int32; far outside the grid."""
    side = maps.field.shape[1]
    is_in = (row >= 0) & (row < side) & (col >= 0) & (col < side)
    index = jnp.where(is_in, (which * side + row) * side + col, 0)
    return jnp.where(is_in, maps.field.reshape(-1)[index].astype(jnp.int32), fields.far(side))


def decide(
    maps: Maps, plan: Plan, found: Prospects, blocks: Blocks, row: Array, col: Array, noise: Int[Array, " A"]
) -> Moves:
    """One step for everybody.

    Complete teams push when the way is clear.  Others walk down their field into empty cells, no two into the same; who
    stands where somebody wants to go makes way.
    """
    side, none = maps.field.shape[1], fields.far(maps.field.shape[1])
    looks = found.block.shape[0]
    is_placed, has_team = row >= 0, plan.job >= 0
    is_member = plan.job == found.block[:, None]  # [C, A]
    at_face = on_face(found, plan.job, row, col)
    is_complete = at_face.sum(1, dtype=jnp.int32) == found.weight
    front = per_row(found.front)
    is_blocked = (within(row, col, front) & is_placed).any(1)
    is_blocked |= (meets(blocks.row, blocks.col, blocks.weight, front) & blocks.alive).any(1)
    is_ready = (at_face & is_complete[:, None]).any(0)
    pushes = (at_face & (is_complete & ~is_blocked)[:, None]).any(0)
    is_there = at_face.any(0)

    which = jnp.where(has_team, jnp.argmax(is_member, 0).astype(jnp.int32), looks)
    to_row = row[:, None] + jnp.asarray(DELTA_ROW[1:], jnp.int32)
    to_col = col[:, None] + jnp.asarray(DELTA_COL[1:], jnp.int32)  # [A, 4]
    here = look_up(maps, which, row, col)
    there = look_up(maps, which[:, None], to_row, to_col)
    is_walkable = (there < none) & is_placed[:, None]
    is_empty = is_walkable & ~maps.agents.reshape(-1)[jnp.where(is_walkable, to_row * side + to_col, 0)]
    is_nearer = is_walkable & (there < here[:, None])
    turn = (jnp.arange(4, dtype=jnp.int32) + noise[:, None]) % 4
    order = there * 4 + turn

    travels = is_placed & ~is_there & (here > 0)
    # The cell an agent would go to if nobody stood there.
    wish = jnp.argmin(jnp.where(is_nearer, order, 2**20), 1)
    wished = _chosen(wish, travels & is_nearer.any(1), to_row, to_col)
    is_wanted, _ = occupants(side, *wished, row, col)
    is_held = (is_member & travels & (plan.stuck > 0)).any(1)
    makes_way = is_wanted | (at_face & is_held[:, None]).any(0)

    is_fed_up = (plan.stuck >= PATIENCE) & ((noise >> 4) % 2 == 0)
    can = is_empty & (is_nearer | (~is_there & (~travels | is_fed_up))[:, None])
    step = jnp.argmin(jnp.where(can, jnp.where(is_fed_up[:, None], turn, order), 2**20), 1)
    tries = ~is_ready & (travels | makes_way) & can.any(1)
    goes = _chosen(step, tries, to_row, to_col)
    _, yields = occupants(side, *goes, *goes)
    return Moves(pushes, tries & ~yields, (step + 1).astype(jnp.int32), travels)


def _chosen(step: Int[Array, " A"], is_valid: Bool[Array, " A"], row: Array, col: Array) -> tuple[Array, Array]:
    """Each agent's neighbour cell of number `step`; a cell outside the grid where there is none."""
    is_it = (np.arange(4) == step[:, None]) & is_valid[:, None]
    row, col = (jnp.where(is_it, x, 0).sum(1, dtype=jnp.int32) for x in (row, col))
    return jnp.where(is_valid, row, -2), jnp.where(is_valid, col, -2)
