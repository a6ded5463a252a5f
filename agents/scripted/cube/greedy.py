"""A centralised team that delivers block after block, several at a time.

Axes: A agents, B blocks, W width of an op row.

Members of a team walk to the face behind their block, wait for each other and push until the block is where it should
be; all others keep out of the way.  Every op lasts one step, so the team decides anew in each of them.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube import teams, walk
from jaxcoop.agents.scripted.cube.jobs import blocks_of, options
from jaxcoop.agents.scripted.cube.teams import Plan
from jaxcoop.core.skills import Report
from jaxcoop.envs.cube import fields
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.skills import Op
from jaxcoop.envs.cube.types import Action, State


@dataclasses.dataclass(frozen=True)
class GreedyPlanner:
    """Delivers what is nearest first, heavy blocks rather than light ones; sees the whole state."""

    env: Cube

    def init(self, key: Array) -> Plan:
        """Nobody has a job."""
        del key
        return teams.no_plan(self.env.num_blocks, self.env.num_agents)

    def plan(
        self, key: Array, memory: Plan, state: State, idle: Bool[Array, " A"], report: Report
    ) -> tuple[Int[Array, "A W"], Bool[Array, " A"], Plan]:
        """One step for everybody: `move` by one, `push` once or `wait`."""
        del idle, report
        side, num_agents = self.env.side, self.env.num_agents
        noise = (jax.random.bits(key, (num_agents + self.env.num_blocks,)) >> 8).astype(jnp.int32)
        for_agents, for_blocks = noise[:num_agents], noise[num_agents:]
        row, col = state.row.astype(jnp.int32), state.col.astype(jnp.int32)
        blocks = blocks_of(self.env.layout, state.block_row, state.block_col)

        plan = teams.review(side, memory, blocks, state.t, for_blocks)
        is_leaving = plan.has_job & (plan.direction == Action.RIGHT)
        best = options(side, blocks, is_leaving, state.t, for_blocks)
        found = teams.prospects(side, plan, blocks, best, row, col, state.t)
        maps = walk.draw_maps(side, plan, found, blocks, row, col)
        looks = jnp.arange(found.block.shape[0], dtype=jnp.int32)[:, None]
        reach = walk.look_up(maps, looks, row, col)
        plan = teams.fill(plan, found, reach, fields.far(side))
        plan = teams.hire(plan, found, reach, fields.far(side), row >= 0, state.t, for_blocks[: looks.size])
        found = found._replace(has_job=plan.has_job[found.block])
        moves = walk.decide(maps, plan, found, blocks, row, col, for_agents)

        op = jnp.where(moves.pushes, int(Op.PUSH), jnp.where(moves.walks, int(Op.MOVE), int(Op.WAIT)))
        first = jnp.where(moves.pushes, plan.job, jnp.where(moves.walks, moves.direction, 1))
        second = jnp.where(moves.pushes | moves.walks, 1, -1)
        ops = jnp.stack([op, first, second, jnp.full_like(op, -1)], 1).astype(jnp.int32)
        is_still = (row == plan.row) & (col == plan.col)
        stuck = jnp.where(is_still & moves.travels, plan.stuck + 1, 0)
        return ops, jnp.ones_like(row, jnp.bool_), dataclasses.replace(plan, row=row, col=col, stuck=stuck)
