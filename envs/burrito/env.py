"""The Burrito kitchen as an environment: cooks make and serve burritos together.

Axes: A players, C cells, K = A.  Section numbers refer to the behaviour notes, docs/envs/burrito.md.
"""

import dataclasses
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.cooperation import Attempts, TaskTable, add, no_totals
from jaxcoop.core import Env, Step
from jaxcoop.core.batching import batch_alone, write
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.envs.burrito import interact, movement, observe, rules, tasks
from jaxcoop.envs.burrito.layouts import LIBRARY, Kitchen
from jaxcoop.envs.burrito.rewards import SETS, Rewards
from jaxcoop.envs.burrito.types import (
    MAX_PLAYERS,
    ORDER_PLACES,
    ORDER_TIME,
    TERMS,
    Action,
    Counts,
    Dish,
    Draws,
    Events,
    Outcome,
    State,
)
from jaxcoop.envs.kitchen.grid import Direction

if TYPE_CHECKING:
    from jaxcoop.envs.burrito.skills import BurritoSkills

MAX_STEPS = 32_000


@dataclasses.dataclass(frozen=True)
class Burrito(Env):
    """Configuration of the kitchen.

    Raises `ValueError` for a value out of range, naming it and the allowed range, and `LayoutError` for a layout file
    that cannot be used.
    """

    layout: str = "open"  # a name (9), or the path of a text file, which has a dot or a slash in it
    agents: int = 0  # players; 0: as many as the layout has.  More than it has: on free floor in reading order
    max_steps: int = 2400
    start: Literal["fixed", "random"] = "fixed"  # where players begin; random: any floor, looking north (2.1)
    rewards: Literal["eval", "default"] = "eval"  # of the published experiments, or the code's own (5, 6)
    shaping: float = 0.0  # each player's shaped reward times this is added to its reward (6)
    observation: Literal["lossless", "onehot", "nopos"] = "lossless"  # encoding (7)
    controller: Literal["native", "pinned"] = "native"  # pinned: skills without randomness (8.8)
    timeout: int = 0  # steps after which a skill is dropped; 0: never; the paper says 30

    def __post_init__(self) -> None:
        """Check the options; a layout's file is read once and its text kept."""
        check_types(self)
        object.__setattr__(self, "layout", LIBRARY.settled(self.layout))
        most = min(MAX_PLAYERS, int(self.kitchen.grid.floor.sum()))
        check_ranges(
            self,
            [("agents", 0, most), ("max_steps", 1, MAX_STEPS), ("shaping", -1e6, 1e6), ("timeout", 0, MAX_STEPS)],
        )

    @cached_property
    def kitchen(self) -> Kitchen:
        """The layout."""
        return LIBRARY.load(self.layout)

    @property
    def name(self) -> str:
        """Registered name."""
        return "burrito"

    @property
    def version(self) -> str:
        """1: the rules of the published code."""
        return "1"

    @property
    def num_actions(self) -> int:
        """Four directions, stay, interact."""
        return len(Action)

    @property
    def num_agents(self) -> int:
        """A."""
        return self.agents or len(self.kitchen.starts)

    @property
    def horizon(self) -> int:
        """Steps of every episode."""
        return self.max_steps

    @property
    def skills(self) -> "BurritoSkills":
        """8: the 27 macro-skills."""
        from jaxcoop.envs.burrito.skills import BurritoSkills

        return BurritoSkills(self)

    @cached_property
    def starts(self) -> tuple[tuple[int, int], ...]:
        """(cell, Direction) at the start of each player."""
        given = self.kitchen.starts[: self.num_agents]
        taken = {cell for cell, _ in given}
        free = (int(cell) for cell in np.flatnonzero(self.kitchen.grid.floor) if cell not in taken)
        return given + tuple((next(free), int(Direction.SOUTH)) for _ in range(self.num_agents - len(given)))

    def reset(self, key: Array) -> State:
        """2.1: the start of an episode."""
        grid, cells = self.kitchen.grid, np.array([cell for cell, _ in self.starts], np.int16)
        facing = np.array([facing for _, facing in self.starts], np.int8)
        item = np.zeros((grid.cells,), np.int8)
        for cell, lying in self.kitchen.objects:
            item[cell] = lying
        zero = jnp.zeros((), jnp.int32)
        if self.start == "random":
            floor = jnp.asarray(np.flatnonzero(grid.floor).astype(np.int16))
            cells = jax.random.permutation(key, floor)[: self.num_agents]
            facing = np.full_like(facing, Direction.NORTH)
        return State(
            cell=jnp.asarray(cells),
            facing=jnp.asarray(facing),
            held=jnp.zeros((self.num_agents,), jnp.int8),
            item=jnp.asarray(item),
            clock=jnp.zeros((grid.cells,), jnp.uint8),
            plates=jnp.int8(self.kitchen.plates),
            dish=jnp.asarray(np.array([Dish.STEAK, Dish.MUSHROOM, 0, 0], np.int8)),
            left=jnp.asarray(np.array([ORDER_TIME, ORDER_TIME, 0, 0], np.int16)),
            next_recipe=jnp.int8(0),
            streak=jnp.int16(0),
            t=zero,
            score=jnp.zeros((), jnp.float32),
            counts=Counts(zero, zero, zero, zero, zero, zero),
            attempts=no_totals(),
        )

    def sample_draws(self, key: Array, state: State) -> Draws:
        """3.2: who wins a cell."""
        del state
        return Draws(jax.random.bits(key, (self.num_agents,), jnp.uint32))

    def step(self, state: State, actions: Int[Array, " A"], draws: Draws) -> Step:
        """3: interactions, movement, orders, cooking.  After the end nothing changes and the reward is 0."""
        live = state.t < self.max_steps
        actions = jnp.where(live, actions, int(Action.STAY))
        facing, want = rules.wishes(self.kitchen, state, actions)
        front = rules.fronts(self.kitchen, state)
        people = replace(state, item=None, clock=None, facing=facing)
        is_acting = actions == Action.INTERACT
        nxt, act, sparse, earned, found = batch_alone(self._people)(people, front, want, is_acting, draws.priority)
        cell = jnp.where(act.writes, front.cell, -1)
        item, clock = write(state.item, cell, act.item), write(state.clock, cell, act.clock)
        cooked, burning, caught = rules.cook(self.kitchen, item, clock)
        burning, caught = jnp.where(live, burning, 0), jnp.where(live, caught, 0)
        nxt = replace(
            nxt,
            item=item,
            clock=jnp.where(live, cooked, clock),
            counts=replace(nxt.counts, fires=nxt.counts.fires + caught),
        )
        shaped = earned + np.float32(self.parameters.burn) * burning.astype(jnp.float32)
        events = Events(
            sparse=sparse,
            shaped=shaped,
            terms=_terms(act.reports),
            logged=_logged(act),
            moved=nxt.cell != state.cell,
            burning=burning,
            attempts=found,
        )
        reward = sparse + np.float32(self.shaping) * shaped
        return Step(nxt, reward, jnp.zeros((), jnp.bool_), nxt.t >= self.max_steps, events)

    def _people(
        self, state: State, front: rules.Fronts, want: Array, is_acting: Array, priority: Array
    ) -> tuple[State, rules.Act, Array, Array, Attempts]:
        """What the players do and what becomes of the orders; further axes after the named ones are a batch.

        Returns the state but for the planes, what was done, sparse reward and terms of the shaped one, attempts.
        """
        parameters = self.parameters
        live = state.t < self.max_steps
        before = rules.Stock(state.plates, rules.Book(state.dish, state.left, state.next_recipe, state.streak))
        stock, act = rules.interactions(before, front, state.held, is_acting)
        is_served, is_ordered = act.dish > 0, act.place < ORDER_PLACES
        found = tasks.attempt_events(self.kitchen, front, state.held, before, is_acting, is_served & is_ordered)

        moved = movement.moving(state.cell, want, priority)
        t = state.t + live.astype(jnp.int32)
        book, expired = rules.pass_time(stock.book, t)
        worth = rules.delivery(act, parameters.multipliers, parameters.unordered)
        sparse = jnp.broadcast_to(worth.sum(0) / np.float32(2), worth.shape)
        put_out = (act.reports >> 16 & 31) == TERMS.index("extinguish_fire") + 1
        counts = state.counts
        nxt = replace(
            state,
            cell=jnp.where(moved, want, state.cell),
            held=act.hand,
            plates=stock.plates,
            dish=jnp.where(live, book.dish, state.dish),
            left=jnp.where(live, book.left, state.left),
            next_recipe=jnp.where(live, book.next_recipe, state.next_recipe),
            streak=jnp.where(live, book.streak, state.streak),
            t=t,
            score=state.score + sparse.sum(0),
            counts=replace(
                counts,
                in_order=counts.in_order + (is_served & (act.place == 0)).sum(0, dtype=jnp.int32),
                out_of_order=counts.out_of_order + (is_served & is_ordered & (act.place > 0)).sum(0, dtype=jnp.int32),
                unordered=counts.unordered + (is_served & ~is_ordered).sum(0, dtype=jnp.int32),
                extinguished=counts.extinguished + put_out.sum(0, dtype=jnp.int32),
                expired=counts.expired + jnp.where(live, expired, 0),
            ),
            attempts=add(state.attempts, found),
        )
        return nxt, act, sparse, rules.shaped(act, parameters.weights(self.num_agents)), found

    @property
    def parameters(self) -> Rewards:
        """5, 6: of the chosen set."""
        return SETS[self.rewards]

    def observe(self, state: State, agents: Int[Array, " K"] | None = None) -> observe.Obs:
        """7: the chosen encoding."""
        return observe.observe(self.kitchen, self.observation, state, agents)

    def legal(self, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 6"]:
        """Everything but interactions without any effect."""
        does = tasks.has_effect(self.kitchen, state)
        does = does if agents is None else does[agents]
        return jnp.concatenate([jnp.ones((*does.shape, 5), jnp.bool_), does[:, None]], -1)

    def tasks(self, state: State) -> TaskTable:
        """The orders, M = 4."""
        return tasks.task_table(self.kitchen, state)

    def attempts(self, state: State, actions: Int[Array, " A"]) -> Int[Array, " A"]:
        """The order that each player's interaction brings nearer, -1: none."""
        return tasks.aims(self.kitchen, state, actions == Action.INTERACT)

    def outcome(self, state: State) -> Outcome:
        """The episode's record."""
        return Outcome(steps=state.t, score=state.score, counts=state.counts, attempts=state.attempts)


def _terms(reports: Int[Array, " A"]) -> Array:
    """6: the terms of each player as bits; uint32[A]."""
    term = reports >> 16 & 31
    bits = jnp.where(term > 0, jnp.uint32(1) << jnp.maximum(term - 1, 0).astype(jnp.uint32), jnp.uint32(0))
    return bits | jnp.where(reports >> 21 & 1, np.uint32(1 << TERMS.index("food_assembly")), np.uint32(0))


def _logged(act: rules.Act) -> Int[Array, "A 3"]:
    """10: the events of each player; int8."""
    first, second = (act.reports & 255) - 1, (act.reports >> 8 & 255) - 1
    dish, in_order, correct = (interact.EVENTS.index(name) for name in interact.DELIVERY_EVENTS)
    is_served, is_ordered = act.dish > 0, act.place < ORDER_PLACES
    logged = [
        jnp.where(is_served, dish, first),
        jnp.where(is_served, jnp.where(act.place == 0, in_order, -1), second),
        jnp.where(is_served & is_ordered, correct, -1),
    ]
    return jnp.stack(logged, 1).astype(jnp.int8)
