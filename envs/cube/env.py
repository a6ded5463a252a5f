"""CUBE as an environment: options, the step put together, rewards, end of episode.

Axes: A agents, B blocks, K = A agents that act in one step.
"""

import dataclasses
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.cooperation import TaskTable, add, no_totals
from jaxcoop.core import Env, Step
from jaxcoop.core.batching import along, batch_last
from jaxcoop.core.env import NoDraws
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.core.skills import Skills
from jaxcoop.envs.cube import chain, generate, observe, rules, tasks
from jaxcoop.envs.cube.presets import parse_blocks
from jaxcoop.envs.cube.types import ACTION_NAMES, Action, Command, Events, Last, Obs, Outcome, Push, State

Revision = Literal["current", "legacy"]
Conflict = Literal["reference", "paper"]
Physics = Literal["coop2", "chain"]

MAX_SIDE = 4096
MAX_AGENTS = 1024


@dataclasses.dataclass(frozen=True)
class Cube(Env):
    """Cooperative block pushing; the defaults are the reference's class defaults.

    Raises `ValueError` for a value out of range, naming it and the allowed range.
    """

    side: int = 15  # K: rows and columns
    agents: int = 3  # N
    blocks: str = "2:1,3:1"  # weight:count in placement order; a weight is also the block's side and its value
    max_steps: int = 500
    step_cost: float = 0.01
    deliver_reward: float = 1.0  # for each unit of weight, shared by the team
    revision: Revision = "current"  # "legacy": an agent may walk onto one of a higher index (4.4)
    conflict: Conflict = "reference"  # "paper": of several agents heading for one empty cell the first moves (13)
    physics: Physics = "coop2"  # "chain": lines of agents push rows of blocks (A.2); `revision`, `conflict` unused
    phantom_attempts: bool = True  # 10.3: frozen pushers of delivered blocks go on making attempts
    view: int = 0  # 0: everybody sees the whole grid; an odd number: the window of that side around the agent

    def __post_init__(self) -> None:
        """Check every option."""
        check_types(self)
        pairs = parse_blocks(self.blocks)
        object.__setattr__(self, "blocks", ",".join(f"{weight}:{count}" for weight, count in pairs))
        check_ranges(
            self,
            (
                ("side", 4, MAX_SIDE),
                ("agents", 1, MAX_AGENTS),
                ("max_steps", 1, 10_000_000),
                ("step_cost", -1e6, 1e6),
                ("deliver_reward", -1e6, 1e6),
                ("view", 0, 2 * MAX_SIDE + 1),
            ),
        )
        if self.view and self.view % 2 == 0:
            raise ValueError(f"view {self.view}: must be 0 (the whole grid) or odd (centred on the agent)")
        if self.agents > self.side**2:
            raise ValueError(f"agents {self.agents}: must be at most the {self.side**2} cells of a side of {self.side}")
        # 3: blocks keep one row and column free at the top and left, two at the bottom and right.
        room = self.side - 3
        heaviest, area = max(w for w, _ in pairs), sum(w * w * count for w, count in pairs)
        if heaviest > room:
            raise ValueError(f"blocks {self.blocks}: weights must be from 1 to {room} on a side of {self.side}")
        if area > room * room:
            raise ValueError(
                f"blocks {self.blocks}: they cover {area} cells, a side of {self.side} has room for {room * room}; "
                "take fewer or a larger side"
            )

    @cached_property
    def layout(self) -> rules.Layout:
        """Side and weights, as the rules take them."""
        weights = tuple(weight for weight, count in parse_blocks(self.blocks) for _ in range(count))
        return rules.Layout(self.side, weights)

    @property
    def name(self) -> str:
        """Registered name."""
        return "cube"

    @property
    def version(self) -> str:
        """1: the rules of the later public revision."""
        return "1"

    @property
    def num_agents(self) -> int:
        """N."""
        return self.agents

    @property
    def weights(self) -> tuple[int, ...]:
        """Of the blocks, in id order."""
        return self.layout.weights

    @property
    def skills(self) -> Skills:
        """9: move, wait, push, navigate, noop."""
        from jaxcoop.envs.cube.skills import CubeSkills  # which is made from environments

        return CubeSkills(self)

    @property
    def num_blocks(self) -> int:
        """B."""
        return len(self.layout.weights)

    @property
    def num_actions(self) -> int:
        """Five: stay, up, down, left, right."""
        return len(ACTION_NAMES)

    @property
    def horizon(self) -> int:
        """The time limit."""
        return self.max_steps

    def reset(self, key: Array) -> State:
        """3: a random start."""
        return self.start_from(generate.place(self.layout, self.agents, key))

    def start_from(self, start: generate.Start) -> State:
        """The state at the start of an episode with the given positions; -1 for what is absent."""
        nobody = jnp.full((self.agents,), -1, jnp.int16)
        return State(
            *(jnp.asarray(x, jnp.int16) for x in start),
            t=jnp.zeros((), jnp.int32),
            score=jnp.zeros((), jnp.float32),
            aim=nobody,
            phantom=nobody,
            last=Last(jnp.full((self.agents,), Push.NONE, jnp.int8), nobody),
            attempts=no_totals(),
        )

    def step(self, state: State, actions: Int[Array, " K"] | Command, draws: NoDraws) -> Step:
        """4: one step; `actions` are primitives, or commands of the symbolic layer.

        Numbers that are no action stay.  After the end nothing changes and the reward is 0.
        """
        del draws
        advance = self._advance if self.physics == "chain" else batch_last(self._advance)
        nxt, reward, terminated, truncated, events = advance(state, actions)
        return Step(nxt, jnp.broadcast_to(reward, (self.agents,)), terminated, truncated, events)

    def _advance(self, state: State, actions: Any) -> tuple[State, Array, Array, Array, Events]:
        """The step with the reward of the whole team; further axes after the named ones are a batch (`lookup`)."""
        layout, narrow = self.layout, self.layout.dtype
        primitive = actions.action if isinstance(actions, Command) else actions
        alive = state.block_row >= 0
        live = alive.any(0) & (state.t < self.max_steps)
        is_action = (primitive >= Action.STAY) & (primitive <= Action.RIGHT) & live
        action = rules.settle(jnp.where(is_action, primitive, Action.STAY).astype(narrow))

        start = rules.to_board(layout, state.row, state.col, state.block_row, state.block_col)
        pushed, pushes = (chain if self.physics == "chain" else rules).push_phase(layout, start, action)
        board = self._free_moves(start, pushed, pushes.advanced, action)
        row, col, block_row, block_col = rules.from_board(board)
        delivered = alive & (block_row < 0)

        pusher = rules.settle(pushes.block.max(0))
        if isinstance(actions, Command):
            aim = tasks.intents(block_row >= 0, actions.block, actions.face)
            last = self._grounded(actions, pusher, pushes)
        else:
            aim, last = tasks.aims(layout, board, action), Last(*self._no_intents(pusher))
        phantom = state.phantom
        if self.phantom_attempts:
            phantom = tasks.frozen(block_row >= 0, state.aim, phantom)
        aim, phantom = rules.settle((aim, phantom))
        found = tasks.attempt_events(layout, board, action, pusher, pushes.advanced, aim, phantom)

        weight = along(np.array(layout.weights, np.int32), delivered)
        gained = jnp.where(delivered, weight, 0).sum(0, dtype=jnp.int32)
        value = jnp.float32(self.deliver_reward) * gained.astype(jnp.float32)
        t = state.t + live.astype(jnp.int32)
        nxt = State(
            row=row,
            col=col,
            block_row=block_row,
            block_col=block_col,
            t=t,
            score=state.score + value,
            aim=jnp.where(live, aim, state.aim),
            phantom=jnp.where(live, phantom, state.phantom),
            last=jax.tree.map(lambda new, old: jnp.where(live, new, old), last, state.last),
            attempts=add(state.attempts, found, live),
        )
        reward = jnp.where(live, value / jnp.float32(self.agents) - jnp.float32(self.step_cost), jnp.float32(0))
        found = dataclasses.replace(found, task=jnp.where(live, found.task, -1))
        events = Events(push=pushes.result, pusher=pusher, delivered=delivered, attempts=found)
        return nxt, reward, ~(block_row >= 0).any(0), t >= self.max_steps, events

    def _free_moves(self, start: rules.Board, pushed: rules.Board, advanced: Array, action: Array) -> rules.Board:
        """4.4 in the chosen reading."""
        is_chain = self.physics == "chain"
        return rules.free_moves(
            self.layout,
            start,
            pushed,
            advanced,
            action,
            legacy=self.revision == "legacy" and not is_chain,
            one_each=self.conflict == "paper" or is_chain,
            enter_goal=is_chain,
        )

    def _no_intents(self, like: Array) -> tuple[Array, Array]:
        return jnp.full(like.shape, Push.NONE, jnp.int8), jnp.full(like.shape, -1, jnp.int16)

    def _grounded(self, command: Command, pusher: Array, pushes: rules.Pushes) -> Last:
        """9.4: what became of each push intent."""
        is_intent = command.block >= 0
        failed = pushes.failed.max(0)
        hit = is_intent & (pusher == command.block)
        result = jnp.where(hit & ~pushes.advanced, failed, np.int8(Push.NO_CONTACT))
        result = jnp.where(pushes.advanced, np.int8(Push.MISMATCH), result)
        result = jnp.where(hit & pushes.advanced, np.int8(Push.SUCCESS), result)
        result = jnp.where(is_intent, result, np.int8(Push.NONE))
        return Last(result, jnp.where(result == Push.MISMATCH, pusher, np.int16(-1)))

    def observe(self, state: State, agents: Int[Array, " K"] | None = None) -> Obs:
        """5: the map, whole or around the agent."""
        return observe.observe(self.layout, self.view, state, agents)

    def legal(self, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 5"]:
        """Staying, and directions that do not lead off the grid or into the goal column."""
        return observe.legal(self.layout, self.physics == "chain", state, agents)

    def tasks(self, state: State) -> TaskTable:
        """8: the face tasks, M = 4 B."""
        return tasks.task_table(self.layout, self.deliver_reward, state)

    def attempts(self, state: State, actions: Int[Array, " A"] | Command) -> Int[Array, " A"]:
        """The active face task that each agent's action is aimed at from where it stands, or its push intent; or -1."""
        if isinstance(actions, Command):
            return tasks.intents(state.block_row >= 0, actions.block, actions.face).astype(jnp.int32)
        board = rules.to_board(self.layout, state.row, state.col, state.block_row, state.block_col)
        return tasks.aims(self.layout, board, actions).astype(jnp.int32)

    def outcome(self, state: State) -> Outcome:
        """The episode's record."""
        delivered = (state.block_row < 0).sum(dtype=jnp.int32)
        return Outcome(
            steps=state.t,
            delivered=delivered,
            score=state.score,
            all_delivered=delivered == self.num_blocks,
            attempts=state.attempts,
        )
