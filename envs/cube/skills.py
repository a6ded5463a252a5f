"""Symbolic actions of CUBE: move, wait, push, navigate and noop, compiled into primitives step by step (9).

Axes: A agents, B blocks, W = 4 width of an op row.

Every agent runs one op at a time.  Starting one, equal to the running one or not, cancels what ran before: this is the
reading of 9.2 in which an agent never waits for the end of an op that nobody asks for any more.  An op that has ended
leaves its agent standing until the next one starts.
"""

import dataclasses
from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.core.skills import OpSpec, Report, Skills, Status
from jaxcoop.envs.cube import navigate
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.navigate import Strip
from jaxcoop.envs.cube.types import Action, Command, Face, Push, State

OPS = (
    OpSpec("move", ("direction", "steps")),  # an `Action`; any other number than 1 to 4 stays
    OpSpec("wait", ("steps",)),
    OpSpec("push", ("block", "steps", "face")),  # face: a `Face` that the intent names, -1: that of the primitive
    OpSpec("navigate", ("entity", "id", "timeout")),  # an `Entity`; any other number has no target
    OpSpec("noop"),
)

WIDTH = 4


class Op(IntEnum):
    """9: number of each kind of op; a negative kind is no op, any other one stays and never ends."""

    MOVE = 0
    WAIT = 1
    PUSH = 2
    NAVIGATE = 3
    NOOP = 4


class Entity(IntEnum):
    """9.5: what an agent can navigate to."""

    BLOCK = 0
    AGENT = 1
    GOAL = 2


ENTITIES = ("block", "agent", "goal")


class Reason(IntEnum):
    """Why an op failed; the first four after NONE are `Push` codes less one."""

    NONE = 0
    INSUFFICIENT_FORCE = 1
    BLOCKED_DESTINATION = 2
    NO_CONTACT = 3
    MISMATCH = 4
    TARGET_NOT_REACHED = 5


REASONS = (
    "",
    "insufficient_force",
    "blocked_destination",
    "no_contact_with_target_block",
    "pushed another block",  # `text.reason_text` names the blocks
    "navigation_target_not_reached",
)

DEFAULT_TIMEOUT = 30
"""9: steps of a `navigate` whose timeout is 0 or not given (-1)."""

PAIRS = 1024
"""Up to this many pairs of ids and table entries are compared, which vectorises over a batch; above, gathered."""


@struct.dataclass
class Memory:
    """What each agent runs."""

    op: Int[Array, " A"]  # kind, -1: nothing; int32
    args: Int[Array, "A 3"]  # int32
    left: Int[Array, " A"]  # steps to go, 0: none; int32
    is_begun: Bool[Array, " A"]  # a step of the op has been played
    has_pushed: Bool[Array, " A"]  # a `push` succeeded in one of the steps before the last


@dataclasses.dataclass(frozen=True)
class CubeSkills(Skills):
    """The skills of one CUBE environment."""

    env: Cube

    @property
    def ops(self) -> tuple[OpSpec, ...]:
        """Five kinds, numbered by `Op`."""
        return OPS

    @property
    def reasons(self) -> tuple[str, ...]:
        """Texts of `Reason`."""
        return REASONS

    @property
    def width(self) -> int:
        """Kind and three arguments."""
        return WIDTH

    def idle(self) -> Memory:
        """Nobody runs anything."""
        none = jnp.zeros((self.env.num_agents,), jnp.bool_)
        zero = jnp.zeros(none.shape, jnp.int32)
        return Memory(
            op=zero - 1,
            args=jnp.full((*zero.shape, WIDTH - 1), -1, jnp.int32),
            left=zero,
            is_begun=none,
            has_pushed=none,
        )

    def begin(
        self, state: State, memory: Memory, ops: Int[Array, "A W"], fresh: Bool[Array, " A"], draws: Any = None
    ) -> Memory:
        """Start the op of each agent in `fresh`; its counters start anew (9.1).

        Steps below 1 count as one; a timeout of 0 or -1 as 30, any other one below 1 as one.
        """
        del state, draws
        op, args = ops[:, 0], ops[:, 1:]
        timeout = jnp.where((args[:, 2] == 0) | (args[:, 2] == -1), DEFAULT_TIMEOUT, args[:, 2])
        steps = jnp.where(op == Op.WAIT, args[:, 0], args[:, 1])
        steps = jnp.where(op == Op.NAVIGATE, timeout, jnp.where(op == Op.NOOP, 1, steps))
        return Memory(
            op=jnp.where(fresh, jnp.maximum(op, -1), memory.op),
            args=jnp.where(fresh[:, None], args, memory.args),
            left=jnp.where(fresh, jnp.where(op < 0, 0, jnp.maximum(steps, 1)), memory.left),
            is_begun=memory.is_begun & ~fresh,
            has_pushed=memory.has_pushed & ~fresh,
        )

    def command(self, state: State, memory: Memory, draws: Any = None) -> tuple[Command, Memory]:
        """One primitive for each agent from the state before the step, and the push intents (9.1a, 9.6)."""
        del draws
        is_running = memory.left > 0
        is_move = (memory.op == Op.MOVE) & is_running
        is_push = (memory.op == Op.PUSH) & is_running
        direction = memory.args[:, 0]
        is_direction = (direction >= Action.UP) & (direction <= Action.RIGHT)
        push_step = self._push_steps(state, memory.args[:, 0])
        action = jnp.where(is_move & is_direction, direction, int(Action.STAY))
        action = jnp.where(is_push, push_step, action)
        action = jnp.where((memory.op == Op.NAVIGATE) & is_running, self._navigate_steps(state, memory), action)

        block, face = memory.args[:, 0], memory.args[:, 2]
        num_blocks = len(self.env.layout.weights)
        is_block = (block >= 0) & (block < num_blocks)
        is_face = (face >= 0) & (face < len(Face))
        # 9.6: pushing up happens on the lower face, and so on: codes less one change places in pairs.
        intent_face = jnp.where(is_face, face, (jnp.maximum(action, 1) - 1) ^ 1)
        command = Command(
            action=action,
            # An id that is no block's is still a push intent (9.4): B, a block that is never there.
            block=jnp.where(is_push, jnp.where(is_block, block, num_blocks), -1),
            face=jnp.where(is_push, intent_face, -1),
        )
        return command, Memory(
            op=memory.op,
            args=memory.args,
            left=jnp.maximum(memory.left - 1, 0),
            is_begun=jnp.ones_like(memory.is_begun),
            has_pushed=self._has_pushed(state, memory),
        )

    def check(self, state: State, memory: Memory) -> Report:
        """9.1f: whether each agent's op has ended, and how, from the state after the step.

        A `push` fails for the reason of its last step, the last that did not succeed.
        """
        is_over = memory.left <= 0
        is_push, is_navigate = memory.op == Op.PUSH, memory.op == Op.NAVIGATE
        is_there = is_navigate & navigate.is_on(self._targets(state, memory), *_cells(state))
        is_known = (memory.op >= 0) & (memory.op < len(OPS))
        success = jnp.where(is_push, self._has_pushed(state, memory), ~is_navigate)
        succeeds = is_known & (is_there | (is_over & success))
        fails = is_known & is_over & ~succeeds
        status = jnp.where(succeeds, int(Status.SUCCESS), jnp.where(fails, int(Status.FAILED), int(Status.PENDING)))
        push_reason = jnp.maximum(state.last.result.astype(jnp.int32) - 1, int(Reason.NONE))
        reason = jnp.where(is_navigate, int(Reason.TARGET_NOT_REACHED), push_reason)
        return Report(
            status=status.astype(jnp.int8), reason=jnp.where(fails, reason, int(Reason.NONE)).astype(jnp.int8)
        )

    def _has_pushed(self, state: State, memory: Memory) -> Bool[Array, " A"]:
        """Whether a step of the running `push`, the last one included, moved its block."""
        last = (memory.op == Op.PUSH) & memory.is_begun & (state.last.result == Push.SUCCESS)
        return memory.has_pushed | last

    def _push_steps(self, state: State, block: Int[Array, " A"]) -> Int[Array, " A"]:
        """9.3: toward the centre of the block, along the longer axis; right where there is no block or no agent."""
        row, col = _cells(state)
        exists, block_row, block_col, weight = self._blocks(state, block)
        # Twice the distance, because the centre of an even block lies between cells.
        down = 2 * (block_row - row) + weight - 1
        right = 2 * (block_col - col) + weight - 1
        sideways = jnp.where(right > 0, int(Action.RIGHT), int(Action.LEFT))
        vertical = jnp.where(down > 0, int(Action.DOWN), int(Action.UP))
        step = jnp.where(jnp.abs(right) >= jnp.abs(down), sideways, vertical)
        return jnp.where(exists & (row >= 0), step, int(Action.RIGHT))

    def _navigate_steps(self, state: State, memory: Memory) -> Int[Array, " A"]:
        """9.5: along a shortest path; straight at the target if there is no path, STAY if there is no target."""
        row, col = _cells(state)
        targets = self._targets(state, memory)
        is_away = (targets.height > 0) & (row >= 0) & ~navigate.is_on(targets, row, col)
        step = navigate.first_steps(
            self.env.side,
            np.asarray(self.env.layout.weights),
            targets,
            state.row,
            state.col,
            state.block_row,
            state.block_col,
            is_away & (memory.op == Op.NAVIGATE) & (memory.left > 0),
            open_targets=self.env.revision == "legacy",
        )
        step = jnp.where(step == Action.STAY, navigate.greedy_steps(targets, row, col), step)
        return jnp.where(is_away, step, int(Action.STAY))

    def _targets(self, state: State, memory: Memory) -> Strip:
        """9.5: target cells of each agent's `navigate`; for a block the cells from which it is pushed right."""
        entity, number = memory.args[:, 0], memory.args[:, 1]
        row, col = _cells(state)
        exists, block_row, block_col, weight = self._blocks(state, number)
        is_block = (entity == Entity.BLOCK) & exists & (block_col > 0)
        other_row, other_col = _looked_up(number, row, col)
        is_agent = (entity == Entity.AGENT) & (other_row >= 0)
        is_goal = (entity == Entity.GOAL) & (row >= 0)
        return Strip(
            row=jnp.where(is_block, block_row, jnp.where(is_agent, other_row, row)),
            col=jnp.where(is_block, block_col - 1, jnp.where(is_agent, other_col, self.env.side - 1)),
            height=jnp.where(is_block, weight, (is_agent | is_goal).astype(jnp.int32)),
        )

    def _blocks(self, state: State, block: Int[Array, " A"]) -> tuple[Array, Array, Array, Array]:
        """(exists, row, column, weight) of one block per agent; a delivered block and a wrong id do not exist."""
        weights = jnp.asarray(np.asarray(self.env.layout.weights), jnp.int32)
        row, col, weight = _looked_up(
            block, state.block_row.astype(jnp.int32), state.block_col.astype(jnp.int32), weights
        )
        return row >= 0, row, col, weight


def _cells(state: State) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
    """Cells of the agents as int32."""
    return state.row.astype(jnp.int32), state.col.astype(jnp.int32)


def _looked_up(ids: Int[Array, " A"], *tables: Int[Array, " N"]) -> tuple[Int[Array, " A"], ...]:
    """Entry `ids[i]` of each table, -1 where there is none."""
    size = tables[0].shape[0]
    found = (ids >= 0) & (ids < size)
    if ids.shape[0] * size <= PAIRS:
        is_entry = ids[:, None] == jnp.arange(size, dtype=jnp.int32)
        entries = [jnp.where(is_entry, table, 0).sum(-1, dtype=jnp.int32) for table in tables]
    else:
        entries = [table[jnp.where(found, ids, 0)] for table in tables]
    return tuple(jnp.where(found, entry, -1) for entry in entries)
