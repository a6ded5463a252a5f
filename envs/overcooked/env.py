"""Classic Overcooked as an environment: options, the step put together, rewards, end of episode.

Axes: A players, C cells, K = A players that act in one step.
"""

import dataclasses
from functools import cached_property
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation import TaskTable, add, no_totals
from jaxcoop.core import Env, Step
from jaxcoop.core.batching import batch_last
from jaxcoop.core.env import NoDraws
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.envs.kitchen.grid import Direction
from jaxcoop.envs.overcooked import interact, observe, rules, tasks
from jaxcoop.envs.overcooked.layouts import LIBRARY, Kitchen
from jaxcoop.envs.overcooked.types import ACTION_NAMES, Action, Counts, Events, Outcome, State

Observation = Literal["lossless"]

MAX_AGENTS = 64


@dataclasses.dataclass(frozen=True)
class Overcooked(Env):
    """Soups for as many orders as time allows; the defaults are the reference's.

    Raises `ValueError` for a value out of range, naming it and the allowed range, and `LayoutError` for a layout file
    that cannot be used.
    """

    layout: str = "cramped_room"  # a name (1), or the path of a text file, which has a dot or a slash in it
    agents: int = 0  # players; 0: as many as the layout has.  More than it has: on free floor in reading order
    max_steps: int = 400
    shaping: float = 0.0  # each player's shaped reward times this is added to its reward (6)
    old_dynamics: bool = False  # pots begin to cook by themselves when they are full, and only then (4.3)
    observation: Observation = "lossless"

    def __post_init__(self) -> None:
        """Check every option; a layout's file is read once and its text kept."""
        check_types(self)
        object.__setattr__(self, "layout", LIBRARY.settled(self.layout))
        room = min(MAX_AGENTS, int(self.kitchen.grid.floor.sum()))
        check_ranges(self, (("agents", 0, room), ("max_steps", 1, 10_000_000), ("shaping", -1e6, 1e6)))

    @cached_property
    def kitchen(self) -> Kitchen:
        """The layout."""
        return LIBRARY.load(self.layout)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Cells where the players begin."""
        drawn = self.kitchen.starts[: self.num_agents]
        free = [int(cell) for cell in np.flatnonzero(self.kitchen.grid.floor) if cell not in drawn]
        return (*drawn, *free[: self.num_agents - len(drawn)])

    @property
    def name(self) -> str:
        """Registered name."""
        return "overcooked"

    @property
    def version(self) -> str:
        """1: the rules of `overcooked-ai` 1.1."""
        return "1"

    @property
    def num_agents(self) -> int:
        """A."""
        return self.agents or len(self.kitchen.starts)

    @property
    def num_actions(self) -> int:
        """Six: four directions, stay, interact."""
        return len(ACTION_NAMES)

    @property
    def horizon(self) -> int:
        """The time limit."""
        return self.max_steps

    def reset(self, key: Array) -> State:
        """1: the same start in every episode: everybody looks north, nothing is held or lies about."""
        del key
        cells, zero = self.kitchen.grid.cells, jnp.zeros((), jnp.int32)
        return State(
            cell=jnp.asarray(self.starts, jnp.int16),
            facing=jnp.full((self.num_agents,), Direction.NORTH, jnp.int8),
            held=jnp.zeros((self.num_agents,), jnp.int8),
            item=jnp.zeros((cells,), jnp.int8),
            clock=jnp.zeros((cells,), jnp.uint8),
            t=zero,
            score=jnp.zeros((), jnp.float32),
            shaped=jnp.zeros((), jnp.float32),
            counts=Counts(zero, zero, zero, zero, zero, zero),
            attempts=no_totals(),
        )

    def step(self, state: State, actions: Int[Array, " K"], draws: NoDraws) -> Step:
        """4: one step.  Numbers that are no action stay.  After the end nothing changes and the reward is 0."""
        del draws
        nxt, reward, truncated, events = batch_last(self._advance)(state, actions)
        return Step(nxt, reward, jnp.zeros_like(truncated), truncated, events)

    def _advance(self, state: State, actions: Int[Array, " A"]) -> tuple[State, Float[Array, " A"], Array, Events]:
        """The step; further axes after the named ones are a batch."""
        kitchen = self.kitchen
        live = state.t < self.max_steps
        is_action = (actions >= Action.NORTH) & (actions <= Action.INTERACT) & live
        action = jnp.where(is_action, actions, Action.STAY).astype(jnp.int8)

        front = rules.front_of(kitchen, state.cell, state.facing)
        room, held, act = rules.interactions(
            kitchen,
            self.old_dynamics,
            rules.Room(state.item, state.clock),
            front,
            state.held,
            action == Action.INTERACT,
        )
        cell, facing, meets = rules.walk(kitchen, state.cell, state.facing, action)
        clock = jnp.where(live, rules.cook(room.clock), room.clock)

        sparse = rules.look_up(kitchen.values, act.delivered.astype(jnp.int32))
        shaped, team = rules.shaped_rewards(act), sparse.sum(0)
        aim = tasks.aims(kitchen, state.cell, state.facing, action)
        found = tasks.attempt_events(kitchen, aim, rules.field(act.changes, interact.CHANGES), state.cell)
        t = state.t + live.astype(jnp.int32)
        nxt = State(
            cell=cell,
            facing=facing,
            held=held,
            item=room.item,
            clock=clock,
            t=t,
            score=state.score + team,
            shaped=state.shaped + shaped.sum(0),
            counts=self._counted(state.counts, act, sparse, meets),
            attempts=add(state.attempts, found),
        )
        reward = team + jnp.float32(self.shaping) * shaped
        events = Events(
            sparse=sparse, shaped=shaped, logged=act.logged, moved=cell != state.cell, collided=meets, attempts=found
        )
        return nxt, reward, t >= self.max_steps, events

    def _counted(self, counts: Counts, act: rules.Act, sparse: Array, meets: Array) -> Counts:
        def count(flags: Array) -> Array:
            return flags.sum(0, dtype=jnp.int32)

        delivers = rules.field(act.changes, interact.DELIVERS)
        return Counts(
            deliveries=counts.deliveries + count(delivers),
            unordered=counts.unordered + count(delivers & (sparse == 0)),
            placements=counts.placements + count(rules.field(act.changes, interact.PLACES)),
            cooked=counts.cooked + count(rules.field(act.changes, interact.STARTS)),
            pickups=counts.pickups + count(rules.field(act.changes, interact.TAKES)),
            collisions=counts.collisions + meets.astype(jnp.int32),
        )

    def observe(self, state: State, agents: Int[Array, " K"] | None = None) -> Int[Array, "K H W L"]:
        """3: the layers of the lossless encoding, int8."""
        return observe.observe(self.kitchen, self.max_steps, state, agents)

    def legal(self, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 6"]:
        """Staying, directions that turn the player or lead to floor, and interactions that do something."""
        return observe.legal(self.kitchen, interact.tables(self.kitchen, self.old_dynamics), state, agents)

    def tasks(self, state: State) -> TaskTable:
        """8: one task for each pot."""
        return tasks.task_table(self.kitchen, state)

    def attempts(self, state: State, actions: Int[Array, " A"]) -> Int[Array, " A"]:
        """The pot that each player interacts with, or -1."""
        return tasks.aims(self.kitchen, state.cell, state.facing, actions).astype(jnp.int32)

    def outcome(self, state: State) -> Outcome:
        """The episode's record."""
        return Outcome(
            steps=state.t, score=state.score, shaped=state.shaped, counts=state.counts, attempts=state.attempts
        )
