"""Whole plans for CUBE: walk to the block, wait for the others, push it home together.

Axes: A agents, B blocks, L ops of a plan.  Numbers of ops are those that language models may write as well: 10 steps of
waiting or pushing at a time.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.cube.jobs import DELIVER, Blocks, blocks_of, options
from jaxcoop.agents.scripted.plans.base import Draft, Questions, answers, blank, questions_of
from jaxcoop.agents.scripted.plans.cube_crews import Crews, assign, far, shifts, surplus, walks
from jaxcoop.agents.scripted.plans.cube_room import REST, Room, make_room, stuck_on
from jaxcoop.agents.scripted.plans.mistakes import Mistakes, Slips, slips_of
from jaxcoop.cognition import plans
from jaxcoop.cognition.state import State
from jaxcoop.cognition.types import Answer, Plan
from jaxcoop.core.options import check_ranges
from jaxcoop.core.rarely import rarely
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.guidance import CHUNK, LONGEST_TIMEOUT, MOVE_STEPS, TASKS
from jaxcoop.envs.cube.skills import WIDTH, Entity, Op
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.types import Action

PUSH_BLOCK, COORDINATE, WAIT = (TASKS.index(name) for name in ("push_block", "coordinate", "wait"))

HASTE = 6
"""Steps that a time-out leaves beyond twice the estimate."""

_NO_BLOCK = -1


class Scene(NamedTuple):
    """The world as plans need it."""

    row: Int[Array, " A"]
    col: Int[Array, " A"]
    blocks: Blocks
    reach: Int[Array, "B A"]


@dataclasses.dataclass(frozen=True)
class CubePlans:
    """Makes plans for a team of CUBE; `jaxcoop.cognition.play.PlanMaker`.

    Everybody works out the teams by the same rule from the state of the world.  With `knows_plans` it also knows what
    the others have committed to, which they say in structures with messages.
    """

    env: Cube
    mistakes: Mistakes = dataclasses.field(default_factory=Mistakes)
    knows_plans: bool = False
    ops: int = 8  # L; as in `Setup.plan_ops`

    def __post_init__(self) -> None:
        """Check the length of plans."""
        check_ranges(self, [("ops", 2, 1000)])

    def init(self, key: Array) -> tuple[()]:
        """Nothing is remembered: the world says it all."""
        del key
        return ()

    def answer(self, key: Array, memory: tuple[()], state: State, asks: Bool[Array, " A"]) -> tuple[Answer, tuple[()]]:
        """Plans for all that ask."""
        world, side = state.world, self.env.side
        blocks = blocks_of(self.env.layout, world.block_row, world.block_col)
        row, col = world.row.astype(jnp.int32), world.col.astype(jnp.int32)
        scene = Scene(row, col, blocks, walks(side, blocks, row, col))
        asked = questions_of(state, asks)
        slips = slips_of(self.mistakes, key, asked.repairs)

        mine = self._committed(scene, state, asked)
        is_pointless = self._is_pointless(scene, state, mine)
        best = options(side, blocks, jnp.zeros_like(blocks.alive), world.t, _noise(blocks))
        # Who makes room is not bound: how that is done is worked out anew by all who are free.
        delivers = (mine >= 0) & (best.rank == DELIVER)[jnp.maximum(mine, 0)] & ~(asked.decides & is_pointless)
        bound, first = self._bound(state, asked, jnp.where(delivers, mine, _NO_BLOCK))
        crews = assign(side, blocks, best, scene.reach, bound, first)
        crews = self._slipped(scene, best.rank, crews, slips)
        plan = self._write(scene, world.t, crews, slips)
        is_free = crews.job < 0
        is_stuck, block = stuck_on(side, blocks, best, crews.job)
        room = rarely(partial(make_room, side, self.ops), is_stuck, blocks, best, block, row, col, is_free, slips.pause)
        plan = plans.where(is_stuck & is_free, _room_plan(room), plan)
        return answers(state, asked, plan, is_pointless, slips.follows), memory

    def _committed(self, scene: Scene, state: State, asked: Questions) -> Int[Array, " A"]:
        """The block that each agent's present plan delivers, -1: none."""
        spec = state.current.plan.spec
        pushes = asked.holds & (spec[:, 0] == PUSH_BLOCK) & (spec[:, 1] >= 0)
        block = jnp.where(pushes, spec[:, 1], 0)
        return jnp.where(pushes & scene.blocks.alive[block], block, _NO_BLOCK)

    def _is_pointless(self, scene: Scene, state: State, mine: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Plans whose block is gone or, as far as known, has enough others."""
        pushes = state.current.plan.spec[:, 0] == PUSH_BLOCK
        gone = pushes & (mine < 0)
        if not self.knows_plans:
            return gone
        return gone | surplus(self.env.side, scene.blocks, scene.reach, mine)

    def _bound(self, state: State, asked: Questions, mine: Int[Array, " A"]) -> tuple[Int[Array, " A"], Int[Array, ""]]:
        """Who is known to work on what, and the block that goes first; both after a repair as the channel says."""
        bound = mine if self.knows_plans else jnp.full_like(mine, _NO_BLOCK)
        channel = state.channel
        target = jnp.where(asked.repairs.any() & (channel.target >= 0), channel.target // NUM_FACES, _NO_BLOCK)
        return jnp.where(channel.advised & (target >= 0), target, bound), target

    def _slipped(self, scene: Scene, rank: Array, crews: Crews, slips: Slips) -> Crews:
        """Parts after mistakes: one who leaves its partners alone goes for the nearest other block."""
        ids = jnp.arange(len(scene.blocks.weight), dtype=jnp.int32)[:, None]
        others = jnp.where((rank[:, None] == DELIVER) & (ids != crews.job), scene.reach, far(self.env.side))
        other = jnp.argmin(others, 0).astype(jnp.int32)
        leaves = slips.too_few & (crews.job >= 0) & (others.min(0) < far(self.env.side))
        return crews._replace(job=jnp.where(leaves, other, crews.job))

    def _write(self, scene: Scene, t: Int[Array, ""], crews: Crews, slips: Slips) -> Plan:
        """Everybody's ops."""
        block = jnp.where(crews.job >= 0, crews.job, crews.ahead)
        has_job, has_block = crews.job >= 0, block >= 0
        at = jnp.maximum(block, 0)
        steps = jnp.where(has_block, jnp.take_along_axis(scene.reach, at[None], 0)[0], 0)
        timeout = jnp.minimum(2 * steps + HASTE, LONGEST_TIMEOUT)
        goes = has_block & (steps > 0)
        shift = shifts(scene.blocks, crews.job, steps, scene.row, t)
        shift = jnp.where(has_block, shift, self._aside(scene, crews.job))
        to = jnp.where(shift < 0, int(Action.UP), int(Action.DOWN))
        moves = jnp.minimum(jnp.abs(shift), MOVE_STEPS)

        draft = blank(scene.row.shape[0], self.ops, WIDTH)
        draft = draft.add(goes, int(Op.NAVIGATE), int(Entity.BLOCK), block, timeout)
        draft = draft.add((moves > 0) & ~goes, int(Op.MOVE), to, moves)
        # Those of a team that have to change places first are waited for as well.
        own = jnp.where(has_job, crews.job, len(scene.blocks.weight))
        latest = crews.latest.at[own].max(jnp.where(goes, 0, moves), mode="drop")[at]
        waits = jnp.maximum(latest - jnp.where(goes, steps, moves), 0) + slips.pause
        waits = jnp.where(has_job, waits, REST)
        for _ in range(2):
            draft = draft.add(waits > 0, int(Op.WAIT), jnp.minimum(waits, CHUNK))
            waits = jnp.maximum(waits - CHUNK, 0)
        return self._push(scene, crews.job, draft).plan(
            jnp.where(has_job, PUSH_BLOCK, jnp.where(has_block, COORDINATE, WAIT)), block
        )

    def _push(self, scene: Scene, job: Int[Array, " A"], draft: Draft) -> Draft:
        """The plans with the pushes that bring the block home, as far as there is room for them."""
        at, weight = jnp.maximum(job, 0), jnp.asarray(scene.blocks.weight)
        pushes = jnp.where(job >= 0, jnp.maximum(self.env.side - weight[at] - scene.blocks.col[at], 1), 0)
        for _ in range(min(self.ops, -(-self.env.side // CHUNK))):
            draft = draft.add(pushes > 0, int(Op.PUSH), job, jnp.minimum(pushes, CHUNK))
            pushes = jnp.maximum(pushes - CHUNK, 0)
        return draft

    def _aside(self, scene: Scene, job: Int[Array, " A"]) -> Int[Array, " A"]:
        """Rows to go down (below 0: up) out of the way of the first team whose way an agent is in; 0: of none."""
        blocks, side = scene.blocks, self.env.side
        count = len(blocks.weight)
        is_worked = jnp.zeros((count,), jnp.bool_).at[jnp.where(job >= 0, job, count)].set(True, mode="drop")
        top, bottom = blocks.row[:, None], (blocks.row + jnp.asarray(blocks.weight) - 1)[:, None]
        in_way = (scene.row >= top) & (scene.row <= bottom) & (scene.col >= blocks.col[:, None] - 1)
        in_way &= is_worked[:, None]
        up, down = top - 1 - scene.row, bottom + 1 - scene.row
        is_up = (top > 0) & ((-up <= down) | (bottom + 1 >= side))
        shift = jnp.where(is_up, up, down)
        which = jnp.argmax(in_way, 0)
        return jnp.where(in_way.any(0), jnp.take_along_axis(shift, which[None], 0)[0], 0)


def _room_plan(room: Room) -> Plan:
    """Plans that make room."""
    return room.draft.plan(jnp.where(room.block >= 0, PUSH_BLOCK, WAIT), room.block)


def _noise(blocks: Blocks) -> Int[Array, " B"]:
    """Numbers that look random, equal for all who see the same world and others after every push."""
    ids = jnp.arange(len(blocks.weight), dtype=jnp.int32)
    total = jnp.where(blocks.alive, 31 * blocks.row + 17 * blocks.col, 7).sum()
    return (total + 5 * ids) % 1021
