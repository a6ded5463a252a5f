"""Who pushes which block: one rule that every agent works out alike from what it sees of the world.

Axes: A agents, B blocks.  Teams are as large as their block is heavy, and only blocks with a free way to the goal get
one.  Nothing has the size of the map: walks are measured in rows and columns.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube.jobs import DELIVER, Blocks, Options
from jaxcoop.agents.scripted.cube.teams import kth_smallest

ROUNDS = 8
"""Teams that are put together at one moment, at most."""

HEAVY = 2
"""Steps of a detour that a unit of weight is worth."""

TURN = 20
"""Steps after which the places at a face are given out by another rule."""

_RANK = 2**20
"""More than the costs of two teams differ."""


class Crews(NamedTuple):
    """Everybody's part."""

    job: Int[Array, " A"]  # block that the agent delivers with others, -1: none
    ahead: Int[Array, " A"]  # block to which it goes ahead, as there are too few for it now, -1
    latest: Int[Array, " B"]  # steps until the last of a team is there


def far(side: int) -> int:
    """More steps than any walk is counted."""
    return 4 * side


def walks(side: int, blocks: Blocks, row: Int[Array, " A"], col: Int[Array, " A"]) -> Int[Array, "B A"]:
    """About how many steps it is to the left face of each block; `far` for agents that are not on the map.

    The way around the block itself is counted, others are not.
    """
    top, face, weight = blocks.row[:, None], blocks.col[:, None] - 1, jnp.asarray(blocks.weight)[:, None]
    bottom = top + weight - 1
    aside = jnp.maximum(jnp.maximum(top - row, row - bottom), 0)
    is_behind = (aside == 0) & (col > face)
    around = 1 + jnp.minimum(row - top, bottom - row) + 1
    steps = jnp.abs(col - face) + jnp.where(is_behind, around, aside)
    return jnp.where(blocks.alive[:, None] & (row >= 0), jnp.minimum(steps, far(side)), far(side))


def assign(
    side: int,
    blocks: Blocks,
    options: Options,
    reach: Int[Array, "B A"],
    bound: Int[Array, " A"],
    first: Int[Array, ""],
) -> Crews:
    """Teams by cost: those that stand ready, those that lack somebody, then the nearest and heaviest.

    `bound`: block on which each agent is known to work, -1: none; `first`: block that goes before all others, -1.
    """
    count, agents = reach.shape
    ids, weight = jnp.arange(count, dtype=jnp.int32), jnp.asarray(blocks.weight)
    bits = ((far(side) + 1) * agents).bit_length()
    # Of several in one cell it is the last who pushes, so it comes first here.
    keys = reach * agents + jnp.arange(agents - 1, -1, -1, dtype=jnp.int32)
    can_go = blocks.alive & (options.rank == DELIVER)

    def costs(job: Int[Array, " A"]) -> tuple[Array, Array, Array, Array]:
        """Cost of each block, whether enough can come, the keys of those that can, and the largest that does."""
        size = sizes(job, count)
        lacks = jnp.where(can_go, jnp.maximum(weight - size, 0), 0)
        comes = (job < 0) & (reach < far(side))
        free = jnp.where(comes, keys, 2**bits)
        last = kth_smallest(free, jnp.minimum(lacks, comes.sum(1, dtype=jnp.int32)), bits)
        gap = last // agents
        cost = gap + options.steps - HEAVY * weight
        cost -= _RANK * ((gap == 0).astype(jnp.int32) + (size > 0)) + 4 * _RANK * (ids == first)
        return jnp.where(lacks > 0, cost, 2**30), comes.sum(1) >= lacks, free, last

    def begin(job: Array, _: None) -> tuple[Array, None]:
        cost, is_full, free, last = costs(job)
        best = jnp.argmin(jnp.where(is_full, cost, 2**30))
        joins = (free[best] <= last[best]) & is_full[best] & (cost[best] < 2**30)
        return jnp.where(joins, best, job).astype(jnp.int32), None

    job, _ = jax.lax.scan(begin, bound, None, length=min(ROUNDS, agents, count))
    cost, _, free, last = costs(job)
    cost = jnp.where(weight <= agents, cost, 2**30)
    best = jnp.argmin(cost)
    waits = (free[best] <= last[best]) & (cost[best] < 2**30)
    own = jnp.where(job >= 0, job, count)
    steps = jnp.take_along_axis(reach, jnp.maximum(job, 0)[None], 0)[0]
    latest = jnp.zeros((count,), jnp.int32).at[own].max(steps, mode="drop")
    return Crews(job=job, ahead=jnp.where(waits & (job < 0), best, -1).astype(jnp.int32), latest=latest)


def sizes(job: Int[Array, " A"], blocks: int) -> Int[Array, " B"]:
    """How many work on each block."""
    return jnp.zeros((blocks,), jnp.int32).at[jnp.where(job >= 0, job, blocks)].add(1, mode="drop")


def surplus(side: int, blocks: Blocks, reach: Int[Array, "B A"], job: Int[Array, " A"]) -> Bool[Array, " A"]:
    """Agents that their block has no use for, since enough others are nearer to it."""
    count, agents = reach.shape
    is_mine = job == jnp.arange(count, dtype=jnp.int32)[:, None]
    bits = ((far(side) + 1) * agents).bit_length()
    keys = jnp.where(is_mine, reach * agents + jnp.arange(agents - 1, -1, -1, dtype=jnp.int32), 2**bits)
    last = kth_smallest(keys, jnp.minimum(jnp.asarray(blocks.weight), is_mine.sum(1, dtype=jnp.int32)), bits)
    return (is_mine & (keys > last[:, None])).any(0)


def shifts(
    blocks: Blocks, job: Int[Array, " A"], steps: Int[Array, " A"], row: Int[Array, " A"], t: Int[Array, ""]
) -> Int[Array, " A"]:
    """Rows to go down (below 0: up) for members of complete teams that stand at the face, but not in their place.

    `steps`: of each agent to its face.  Places are taken in the order of the rows, wherever the members are: so two
    that stand in one cell part, and those that are there make room on the side from which others come.  As a detour may
    lead to the other side, those that are there close up for a while, first at the top and then at the bottom.
    """
    count, agents = len(blocks.weight), job.shape[0]
    ids = jnp.arange(agents, dtype=jnp.int32)
    own = jnp.where(job >= 0, job, count)
    is_away, turn = (steps > 0).astype(jnp.int32), t // TURN % 3
    side = jnp.where(turn == 0, 0, jnp.where(turn == 1, is_away, -is_away))
    order = jnp.lexsort((ids, row, side, own))
    size = jnp.zeros((count + 1,), jnp.int32).at[own].add(1)
    place = jnp.zeros((agents,), jnp.int32).at[order].set(ids) - (jnp.cumsum(size) - size)[own]
    moves = (size[own] == jnp.append(jnp.asarray(blocks.weight), -1)[own]) & (steps == 0)
    return jnp.where(moves, jnp.append(blocks.row, 0)[own] + place - row, 0)
