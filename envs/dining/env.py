"""The dining table as an environment: clock, checks, end of episode, options.

Axes: N philosophers, K = N (simultaneous) or 1 (sequential) that act in one step.
"""

import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cooperation import TaskTable
from jaxcoop.core import Env, Step, bits
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.envs.dining import observe, rules, tasks
from jaxcoop.envs.dining.types import Action, Draws, Events, Obs, Outcome, State

Mode = Literal["simultaneous", "sequential"]
Meals = Literal["held", "instant", "round_end"]
Releases = Literal["first", "after", "index_order"]
Clock = Literal["turns", "rounds"]
Check = Literal["round", "turn"]

MAX_PHILOSOPHERS = 1_000_000
CLOCK_END = 2**31


@dataclasses.dataclass(frozen=True)
class Dining(Env):
    """DPBench's table; the defaults are the package's rules (0.2), the options are other readings of them.

    Reward (our own; the benchmark has none): 1 for each meal, to the philosopher that ate it.
    Raises `ValueError` for a value out of range, naming it and the allowed range.
    """

    philosophers: int = 5  # N, 2 to 1,000,000
    mode: Mode = "simultaneous"
    max_timesteps: int = 50  # T of the table clock; all published runs used 30
    deadlock_terminal: bool = True  # False: a circular wait is resolved and the episode goes on (7.3)
    meals: Meals = "held"  # 4.1: forks kept one more timestep; "instant": the paper's meal (14, point 2)
    releases: Releases = "first"  # 14, point 16
    clock: Clock = "turns"  # what T counts in sequential mode; "rounds": the paper's timestep (14, point 7)
    check: Check = "round"  # 7.2: when sequential mode looks for a circular wait
    target_meals: int = 0  # 14, point 3: with k > 0 an episode that leaves anyone below k meals is a timeout
    backoff: bool = False  # apply 7.4 before every check; the package never does
    backoff_threshold: int = 0
    backoff_probability: float = 0.5

    def __post_init__(self) -> None:
        """Check every option."""
        check_types(self)
        check_ranges(
            self,
            (
                ("philosophers", 2, MAX_PHILOSOPHERS),
                ("max_timesteps", 1, 10_000_000),
                ("target_meals", 0, 10_000_000),
                ("backoff_threshold", 0, 10_000_000),
                ("backoff_probability", 0.0, 1.0),
            ),
        )
        if self.limit >= CLOCK_END:
            raise ValueError(
                f"max_timesteps {self.max_timesteps:,}: {self.limit:,} turns of the clock; must be below {CLOCK_END:,}"
            )

    @property
    def name(self) -> str:
        """Registered name."""
        return "dining"

    @property
    def version(self) -> str:
        """1: the rules of dpbench 0.2."""
        return "1"

    @property
    def num_agents(self) -> int:
        """N."""
        return self.philosophers

    @property
    def num_actions(self) -> int:
        """Four: grab left, grab right, release, wait."""
        return len(Action)

    @property
    def is_sequential(self) -> bool:
        """One philosopher acts per step."""
        return self.mode == "sequential"

    @property
    def num_actors(self) -> int:
        """All, or one."""
        return 1 if self.is_sequential else self.philosophers

    @property
    def end_every(self) -> int:
        """7.2: sequential episodes last whole rounds."""
        return self.philosophers if self.is_sequential and self.check == "round" else 1

    @property
    def limit(self) -> int:
        """The clock value at which an episode ends: T, in sequential mode rounded up to whole rounds (7.2)."""
        if not self.is_sequential:
            return self.max_timesteps
        rounds = self.max_timesteps if self.clock == "rounds" else -(-self.max_timesteps // self.philosophers)
        return rounds * self.philosophers

    @property
    def horizon(self) -> int:
        """Every step advances the clock by one."""
        return self.limit

    def reset(self, key: Array) -> State:
        """2: the start table; there is no randomness in it."""
        del key
        return State(
            table=rules.empty_table(self.philosophers),
            t=jnp.zeros((), jnp.int32),
            waiting=jnp.zeros((), jnp.int32),
            deadlock=jnp.zeros((), jnp.bool_),
            deadlock_events=jnp.zeros((), jnp.int32),
            hold_counts=jnp.zeros((self.philosophers if self.backoff else 0,), jnp.int32),
        )

    def sample_draws(self, key: Array, state: State) -> Draws:
        """The uniforms of the back-off rule, if it is on."""
        return Draws(backoff=jax.random.uniform(key, state.hold_counts.shape, jnp.float32))

    def actors(self, state: State) -> Int[Array, " K"]:
        """Everybody, or the philosopher whose turn it is."""
        if self.is_sequential:
            return (state.t % self.philosophers)[None]
        return jnp.arange(self.philosophers, dtype=jnp.int32)

    def observe(self, state: State, agents: Int[Array, " K"] | None = None) -> Obs:
        """8: the local view."""
        return observe.observe(state.table, agents)

    def legal(self, state: State, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K 4"]:
        """Grabs of free forks, RELEASE when something is held, WAIT always."""
        return observe.legal(state.table, agents)

    def tasks(self, state: State) -> TaskTable:
        """The meals of the hungry, each a pair of forks to be held at once."""
        return tasks.tasks(state.table)

    def attempts(self, state: State, actions: Int[Array, " K"]) -> Int[Array, " K"]:
        """Grabs are aimed at one's own meal."""
        return tasks.attempts(self.actors(state), actions)

    def step(self, state: State, actions: Int[Array, " K"], draws: Draws) -> Step:
        """7.1 and 7.2: one timestep, or one turn; then the check for a circular wait where one is due."""
        before = state.table.meals
        if self.is_sequential:
            philosopher = state.t % self.philosophers
            table, change = rules.sequential_turn(state.table, philosopher, actions[0], meals=self.meals)
            waiting = state.waiting + change
            is_check = (philosopher == self.philosophers - 1) | (self.check == "turn")
        else:
            table = rules.simultaneous_step(state.table, actions, meals=self.meals, releases=self.releases)
            waiting = self.count_waiting(table)
            is_check = jnp.ones((), jnp.bool_)
        t = state.t + 1
        table, waiting, hold_counts = self.at_check(table, waiting, is_check, state.hold_counts, draws)

        circular_wait = waiting == self.philosophers
        found = circular_wait & is_check
        fed = table.meals - before
        if self.deadlock_terminal:
            deadlock, events = found, state.deadlock_events
        else:
            deadlock, events = jnp.zeros_like(found), state.deadlock_events + found.astype(jnp.int32)
            table = jax.tree.map(lambda a, b: jnp.where(found, a, b), rules.resolve(table), table)
            waiting = jnp.where(found, 0, waiting)
        nxt = State(table, t, waiting, deadlock, events, hold_counts)
        return Step(
            state=nxt,
            reward=fed.astype(jnp.float32),
            terminated=deadlock,
            truncated=(t >= self.limit) & ~deadlock,
            events=Events(meals=(fed > 0).sum(dtype=jnp.int32), circular_wait=circular_wait),
        )

    def count_waiting(self, table: rules.Table) -> Int[Array, ""]:
        """Hungry philosophers with exactly one fork in hand."""
        return bits.count(rules.holds_exactly_one(table))

    def at_check(
        self, table: rules.Table, waiting: Array, is_check: Array, hold_counts: Array, draws: Draws
    ) -> tuple[rules.Table, Array, Array]:
        """What the optional rules do to the table before the predicate is read."""
        new, counts = table, hold_counts
        if self.is_sequential and self.meals == "round_end":
            new = rules.settle(new)
        if self.backoff:
            new, counts = rules.apply_backoff(
                new, hold_counts, draws.backoff, self.backoff_threshold, self.backoff_probability
            )
        if new is table:
            return table, waiting, hold_counts
        new_state = (new, self.count_waiting(new), counts)
        return jax.tree.map(lambda a, b: jnp.where(is_check, a, b), new_state, (table, waiting, hold_counts))

    def outcome(self, state: State) -> Outcome:
        """The episode's record."""
        everyone_fed = jnp.all(state.table.meals >= self.target_meals)
        return Outcome(
            meals=state.table.meals,
            timesteps=state.t,
            deadlock=state.deadlock,
            deadlock_reported=state.deadlock & (not self.is_sequential),
            deadlock_timestep=jnp.where(state.deadlock, state.t, 0),
            deadlock_events=state.deadlock_events,
            timeout=~state.deadlock & (state.t >= self.limit) & ~everyone_fed,
        )
