"""Who works on which block: jobs end, teams fill up, new jobs begin.

Axes: A agents, B blocks, C <= B blocks that are looked at closely.  A block with a job has a direction, a target and a
team of as many agents as it weighs.  At most one job has begun with an incomplete team.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube.jobs import (
    DELIVER,
    MAKE_ROOM,
    NO_JOB,
    SHIFT,
    Blocks,
    Options,
    Rect,
    beside,
    opposite,
    overlap,
    per_row,
)
from jaxcoop.envs.cube.types import Action

CELLS = 2**15
"""About how many cells of distance fields are computed in one step."""

MIN_LOOKS = 8
"""C on a large grid."""

RANK = 2**20
"""More than the prices of two jobs of one rank differ."""

PATIENCE = 4
"""A complete team may take this many times the side of the grid from push to push."""

ROUNDS = 4
"""New jobs in one step, at most."""


@struct.dataclass
class Plan:
    """What the team has agreed on."""

    has_job: Bool[Array, " B"]
    direction: Int[Array, " B"]  # Action; int32, as all of the following; anything without a job
    target: Int[Array, " B"]  # see `jobs.Options`
    left: Int[Array, " B"]  # pushes to go
    stall: Int[Array, " B"]  # steps of the complete team since its last push
    avoid: Int[Array, " B"]  # no job before this time
    job: Int[Array, " A"]  # block that the agent works on, -1: none
    row: Int[Array, " A"]  # where the agent was before the last step
    col: Int[Array, " A"]
    stuck: Int[Array, " A"]  # steps since the agent, who wanted to walk, last moved


class Prospects(NamedTuple):
    """The C blocks that are looked at, all those with a job among them, with the job that they have or could have."""

    block: Int[Array, " C"]
    row: Int[Array, " C"]
    col: Int[Array, " C"]
    weight: Int[Array, " C"]
    has_job: Bool[Array, " C"]
    rank: Int[Array, " C"]  # of the job it could have
    direction: Int[Array, " C"]
    target: Int[Array, " C"]
    steps: Int[Array, " C"]
    avoid: Int[Array, " C"]

    @property
    def face(self) -> Rect:
        """The cells of the team."""
        return beside(self.row, self.col, self.weight, opposite(self.direction))

    @property
    def front(self) -> Rect:
        """The cells that the next push needs."""
        return beside(self.row, self.col, self.weight, self.direction)

    @property
    def way(self) -> Rect:
        """Every cell that block and team touch from the first push to the last."""
        face, last = self.face, self.target + self.weight - 1
        up, down = self.direction == Action.UP, self.direction == Action.DOWN
        left, right = self.direction == Action.LEFT, self.direction == Action.RIGHT
        return Rect(
            jnp.where(up, self.target, face.top),
            jnp.where(down, last, face.bottom),
            jnp.where(left, self.target, face.left),
            jnp.where(right, last, face.right),
        )


def num_looks(side: int, num_blocks: int) -> int:
    """C."""
    return min(num_blocks, max(MIN_LOOKS, CELLS // side**2))


def no_plan(num_blocks: int, num_agents: int) -> Plan:
    """Nobody has anything to do."""
    block, agent = jnp.zeros((num_blocks,), jnp.int32), jnp.full((num_agents,), -1, jnp.int32)
    return Plan(block < 0, block, block, block, block, block, agent, agent, agent, agent + 1)


def review(side: int, plan: Plan, blocks: Blocks, t: Int[Array, ""], noise: Int[Array, " B"]) -> Plan:
    """End the jobs that are done, and those that make no headway; these blocks are left alone for a while."""
    weight = jnp.asarray(blocks.weight)
    is_vertical = (plan.direction == Action.UP) | (plan.direction == Action.DOWN)
    left = jnp.abs(plan.target - jnp.where(is_vertical, blocks.row, blocks.col))
    is_complete = team_sizes(plan) == weight
    stall = jnp.where((left < plan.left) | ~is_complete, 0, plan.stall + 1)
    goes_on = plan.has_job & blocks.alive & (left > 0)
    gives_up = goes_on & (stall > PATIENCE * side)
    goes_on &= ~gives_up
    return dataclasses.replace(
        plan,
        has_job=goes_on,
        left=left,
        stall=stall,
        avoid=jnp.where(gives_up, t + side + noise % side, plan.avoid),
        job=jnp.where((plan.job >= 0) & goes_on[jnp.maximum(plan.job, 0)], plan.job, -1),
    )


def team_sizes(plan: Plan) -> Int[Array, " B"]:
    """How many agents work on each block."""
    num_blocks = plan.left.shape[0]
    index = jnp.where(plan.job >= 0, plan.job, num_blocks)
    return jnp.zeros((num_blocks,), jnp.int32).at[index].add(1, mode="drop")


def prospects(
    side: int,
    plan: Plan,
    blocks: Blocks,
    best: Options,
    row: Int[Array, " A"],
    col: Int[Array, " A"],
    t: Int[Array, ""],
) -> Prospects:
    """The blocks worth a closer look: those with a job, then by rank and distance from the middle of the team."""
    count = len(blocks.weight)
    every = Prospects(
        jnp.arange(count, dtype=jnp.int32),
        blocks.row,
        blocks.col,
        jnp.asarray(blocks.weight),
        plan.has_job,
        best.rank,
        jnp.where(plan.has_job, plan.direction, best.direction),
        jnp.where(plan.has_job, plan.target, best.target),
        jnp.where(plan.has_job, plan.left, best.steps),
        plan.avoid,
    )
    looks = num_looks(side, count)
    if looks == count:
        return every
    away = jnp.abs(blocks.row - row.sum() // row.size) + jnp.abs(blocks.col - col.sum() // col.size)
    is_barred = (plan.avoid > t) | (every.weight > row.size)
    order = jnp.where(plan.has_job, 0, 1 + jnp.where(is_barred, NO_JOB, best.rank) * 4 * side + away)
    _, chosen = jax.lax.top_k(-order, looks)
    return Prospects(*(x[chosen] for x in every))


def fill(plan: Plan, found: Prospects, reach: Int[Array, "C A"], far: int) -> Plan:
    """Complete the team that lacks somebody, with the nearest who have no job.

    `reach`: steps from each agent to the face of each block, `far` where there is no way.
    """
    lacks = jnp.where(found.has_job, found.weight - team_sizes(plan)[found.block], 0)
    c = jnp.argmax(lacks)
    keys, comers, bits = _offers(plan.job, reach, far)
    joins = _nearest(keys, jnp.minimum(lacks, comers), bits)[0]
    return dataclasses.replace(plan, job=jnp.where(joins[c], found.block[c], plan.job))


def hire(
    plan: Plan,
    found: Prospects,
    reach: Int[Array, "C A"],
    far: int,
    is_placed: Bool[Array, " A"],
    t: Int[Array, ""],
    noise: Int[Array, " C"],
) -> Plan:
    """Begin jobs with agents who have none; `reach` as for `fill`.

    Those who are too few for anything go ahead to the block that a larger team will deliver next.
    """
    num_agents, num_blocks = plan.job.shape[0], plan.left.shape[0]
    lacks_some = (found.has_job & (team_sizes(plan)[found.block] < found.weight)).any()
    meets_job = overlap(per_row(found.way), found.way)  # [C, C]
    is_vertical = found.direction != Action.RIGHT

    def begin(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        job, has_job, lacks_some = carry
        keys, comers, bits = _offers(job, reach, far)
        is_full = comers >= found.weight
        # What makes room must not get into the way of another job, nor may two of them fill the same room.
        clashes = (has_job & (meets_job | is_vertical)).any(1)
        is_useful = (found.rank == DELIVER) | ((found.rank == MAKE_ROOM) & ~clashes)
        is_useful |= (found.rank == SHIFT) & ~has_job.any()
        goes_ahead = ~lacks_some & (comers > 0) & (found.weight <= is_placed.sum()) & (found.rank == DELIVER)
        is_open = is_useful & (is_full | goes_ahead) & ~has_job & (found.avoid <= t)

        joins, last = _nearest(keys, jnp.minimum(found.weight, comers), bits)
        cost = price(found, jnp.minimum(last // num_agents, far)) + noise % 4
        cost += 2 * RANK * found.rank + jnp.where(is_full, 0, RANK)
        c = jnp.argmin(jnp.where(is_open, cost, 2**30))
        begins = is_open[c]
        return (
            jnp.where(joins[c] & begins, found.block[c], job),
            has_job | ((jnp.arange(has_job.shape[0]) == c) & begins),
            lacks_some | (begins & ~is_full[c]),
        ), None

    start = (plan.job, found.has_job, lacks_some)
    (job, has_job, _), _ = jax.lax.scan(begin, start, None, length=min(ROUNDS, num_agents, found.block.shape[0]))
    new = jnp.where(has_job & ~found.has_job, found.block, num_blocks)

    def begun(old: Array, values: Array | int) -> Array:
        return old.at[new].set(values, mode="drop")

    return dataclasses.replace(
        plan,
        has_job=begun(plan.has_job, True),
        direction=begun(plan.direction, found.direction),
        target=begun(plan.target, found.target),
        left=begun(plan.left, found.steps),
        stall=begun(plan.stall, 0),
        job=job,
    )


def _offers(job: Int[Array, " A"], reach: Int[Array, "C A"], far: int) -> tuple[Array, Array, int]:
    """The agents without a job who can come to each block: (keys in order of distance, how many, bits of a key)."""
    num_agents = job.shape[0]
    bits = ((far + 1) * num_agents).bit_length()
    comes = (job < 0) & (reach < far)
    keys = jnp.where(comes, reach * num_agents + jnp.arange(num_agents, dtype=jnp.int32), 2**bits)
    return keys, comes.sum(1, dtype=jnp.int32), bits


def _nearest(
    keys: Int[Array, "C A"], count: Int[Array, " C"], bits: int
) -> tuple[Bool[Array, "C A"], Int[Array, " C"]]:
    """The agents with the `count` smallest keys of each row, and the largest of these; 0 for none."""
    last = kth_smallest(keys, count, bits)
    return (keys <= last[:, None]) & (count > 0)[:, None], last


def price(found: Prospects, gap: Int[Array, " C"]) -> Int[Array, " C"]:
    """What the choice of the next block goes by, the less the better; `gap`: the longest walk of the team.

    Heavy blocks come first, because they need many agents at a time and light ones fill the gaps; then those with a
    long way to the goal.
    """
    deliver = gap - 2 * found.steps - 20 * found.weight
    return 4 * jnp.where(found.rank == DELIVER, deliver, gap + found.steps)


def kth_smallest(keys: Int[Array, "C A"], k: Int[Array, " C"], bits: int) -> Int[Array, " C"]:
    """The k-th smallest (from 1) of each row of distinct keys from 0 to 2 ** bits - 1; 0 for k = 0."""
    value = jnp.zeros(k.shape, jnp.int32)
    for bit in range(bits - 1, -1, -1):
        trial = value + 2**bit
        value = jnp.where((keys < trial[:, None]).sum(1, dtype=jnp.int32) < k, trial, value)
    return value
