"""MA-Crafter as an environment: options, randomness, end of episode.

Axes: A agents (all act in every step), W x H cells, C cow slots.
"""

import dataclasses
from functools import cached_property
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.cooperation import Attempts, TaskTable, add, no_totals
from jaxcoop.core import Env, Step
from jaxcoop.core.batching import kept
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.core.skills import Skills
from jaxcoop.envs.macrafter import balance, generate, observe, rules, tasks, updates
from jaxcoop.envs.macrafter.config import MAX_AGENTS, MAX_CELLS, Settings, canonical, chunk_grid
from jaxcoop.envs.macrafter.objects import touch
from jaxcoop.envs.macrafter.outcomes import no_last
from jaxcoop.envs.macrafter.types import (
    DOWN,
    PLANTS,
    START_INVENTORY,
    STATIONS,
    Achievement,
    Action,
    Command,
    Draws,
    Events,
    Material,
    Outcome,
    State,
)

Mode = Literal["default", "grassland"]
View = Literal["local", "full"]

MIN_SIDE = 3
NEVER = 2**31 - 1
DRAW_BITS = 3
"""11: bits for a cow: whether it stays, and the direction."""


def hashed(words: UInt32[Array, " K"], size: int, first: int = 0) -> UInt32[Array, " size"]:
    """Random words number `first` to `first + size - 1` of a step whose key holds the random `words`.

    A round of an integer hash for each of `words`, at a fraction of the cost of as many words of the generator; a key
    that was folded or split off is as good as random itself.  The hash is triple32 of C. Wellons' hash prospector.
    """
    x = jnp.arange(first, first + size, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)
    for k in range(words.shape[0]):
        x = x ^ words[k]
        x = (x ^ (x >> 17)) * jnp.uint32(0xED5AD4BB)
        x = (x ^ (x >> 11)) * jnp.uint32(0xAC4C1B51)
        x = (x ^ (x >> 15)) * jnp.uint32(0x31848BAB)
        x = x ^ (x >> 14)
    return x


@dataclasses.dataclass(frozen=True)
class MACrafter(Env):
    """The cooperative crafting world of the COOP² paper; dynamics follow its code, the defaults its paper preset.

    Actions are primitives, int32[A], or a `Command`.  Rewards are those of the original (13); the paper's measure is
    the team score of the outcome.  The death of an agent ends the episode as `terminated` (the original's runner stops
    there too, but calls it truncated).  Raises `ValueError` for a value out of range, naming it and the range.
    """

    agents: int = 3  # 1 to 1,024
    width: int = 64  # 3 or more, width * height at most 32,767
    height: int = 64
    max_steps: int = 200  # the runner's limit
    mode: Mode = "default"  # 3.5: "grassland": no cows, no water, no ore
    vitals: bool = True  # False: hunger, thirst and fatigue never change (3.5)
    requirements: str = "paper"  # 2: name, task text or TOML file, see `config`; replaced by the task text
    distance: int = 1  # D, 1 or 2
    terminate_on_diamond: bool = False
    balance: bool = True  # 11: cows appear and vanish
    end_on_death: bool = True  # False: the environment itself, without its runner
    team_score: bool = True  # False: collectors are rewarded without regard to p and tools
    bag: int = 0  # units that an agent can carry; 0: no limit but 20 of each item (17)
    observation: View = "local"  # 9 x 7 cells around the agent, or the whole map

    def __post_init__(self) -> None:
        """Check every option and put the task text in its place."""
        check_types(self)
        check_ranges(
            self,
            (
                ("agents", 1, MAX_AGENTS),
                ("width", MIN_SIDE, MAX_CELLS // MIN_SIDE),
                ("height", MIN_SIDE, MAX_CELLS // MIN_SIDE),
                ("max_steps", 1, 10_000_000),
                ("distance", 1, 2),
                ("bag", 0, 1_000),
            ),
        )
        if self.width * self.height > MAX_CELLS:
            raise ValueError(
                f"width {self.width} x height {self.height}: {self.width * self.height:,} cells; "
                f"must be at most {MAX_CELLS:,}, for example 181 x 181"
            )
        object.__setattr__(self, "requirements", canonical(self.requirements))

    @property
    def name(self) -> str:
        """Registered name."""
        return "macrafter"

    @property
    def version(self) -> str:
        """1: the published dynamics."""
        return "1"

    @property
    def num_agents(self) -> int:
        """A."""
        return self.agents

    @property
    def num_actions(self) -> int:
        """18."""
        return len(Action)

    @property
    def horizon(self) -> int:
        """The step limit."""
        return self.max_steps

    @cached_property
    def settings(self) -> Settings:
        """What the rules need to know."""
        names = {field.name for field in dataclasses.fields(Settings)} - {"tasks"}
        return Settings(tasks=self.requirements, **{name: getattr(self, name) for name in names})

    def reset(self, key: Array) -> State:
        """3: a random world with its cows and the agents on random grass cells.

        Agents for which there is no grass cell left are removed from the start.
        """
        key_world, key_spawn = jax.random.split(key)
        material, cows = generate.world(key_world, self.width, self.height, self.mode)
        x, y = generate.spawn(key_spawn, material, cows, self.agents)
        cow_x, cow_y = generate.cow_slots(cows, self.settings.cow_slots[0])
        return self.start(material, cow_x, cow_y, x, y)

    def start(self, material: Array, cow_x: Array, cow_y: Array, x: Array, y: Array) -> State:
        """4: the state at the start of an episode in a given world, int16 coordinates, -1 for nowhere.

        `material`: codes [W, H]; cows beyond the slots C0 are left out, fewer are filled up.
        """
        first, late = self.settings.cow_slots
        n = self.agents

        def padded(cows: Array) -> Array:
            free = jnp.full((first + late,), -1, jnp.int16)
            kept = min(first, cows.shape[0])
            return free.at[:kept].set(cows[:kept].astype(jnp.int16))

        cow_x, cow_y = padded(cow_x), padded(cow_y)
        is_cow = cow_x >= 0
        rank = jnp.cumsum(is_cow, dtype=jnp.int32)
        cells = self.width * self.height
        columns, rows = chunk_grid(self.width, self.height)
        x, y = x.astype(jnp.int16), y.astype(jnp.int16)
        removed = x < 0
        nothing = jnp.zeros((-(-columns * rows // 32),), jnp.uint32)
        inventory = jnp.broadcast_to(jnp.asarray(START_INVENTORY), (n, len(START_INVENTORY)))
        return State(
            material=material.astype(jnp.uint8),
            cow_x=cow_x,
            cow_y=cow_y,
            cow_id=jnp.where(is_cow, cells + rank, -1),
            x=x,
            y=y,
            facing=jnp.full((n,), DOWN, jnp.int8),
            inventory=inventory,
            achievements=jnp.zeros((n, len(Achievement)), jnp.int16),
            counters=jnp.zeros((n, 4), jnp.int16),
            sleeping=jnp.zeros((n,), jnp.bool_),
            last_health=inventory[:, 0],
            removed=removed,
            paid=jnp.zeros((n, 5), jnp.int8),
            unlocked=jnp.zeros((), jnp.uint32),
            touched=touch(
                self.settings,
                nothing,
                jnp.concatenate([cow_x, x]),
                jnp.concatenate([cow_y, y]),
                jnp.concatenate([is_cow, ~removed]),
            ),
            t=jnp.zeros((), jnp.int32),
            score=jnp.zeros((), jnp.float32),
            agent_id=cells + rank[-1] + 1,
            next_id=cells + rank[-1] + n + 1,
            table=jnp.full((STATIONS,), -1, jnp.int16),
            furnace=jnp.full((STATIONS,), -1, jnp.int16),
            plant=jnp.full((PLANTS,), -1, jnp.int16),
            plant_id=jnp.full((PLANTS,), -1, jnp.int32),
            last=no_last(n),
            attempts=no_totals(),
        )

    def sample_draws(self, key: Array, state: State) -> Draws:
        """11: what every cow tries, and the numbers of the balancing."""
        slots, chunks = state.cow_x.shape[0], balance.num_chunks(self.width, self.height)

        def draw(words: Array) -> Draws:
            drawn = (hashed(words, slots) >> (32 - DRAW_BITS)).astype(jnp.int8)
            return Draws(
                cow=jnp.where(drawn < 4, drawn, jnp.int8(-1)),
                balance=balance.BalanceDraws(hashed(words, chunks, slots)) if self.balance else None,
            )

        return kept(draw)(jax.random.key_data(key).reshape(-1))

    def step(self, state: State, actions: Int[Array, " A"] | Command, draws: Draws) -> Step:
        """5: one step; after the end of the episode nothing changes."""
        return self.advance(state, actions, draws)[0]

    def advance(
        self, state: State, actions: Int[Array, " A"] | Command, draws: Draws
    ) -> tuple[Step, rules.Advanced, Attempts | None]:
        """`step`, what happened in detail, and the attempt events (14); primitives alone attempt nothing: None."""
        done = rules.step(self.settings, state, actions, draws)
        nxt, happened = done.state, None
        if isinstance(actions, Command):
            listed = ~state.removed & ~updates.is_over(self.settings, state)
            happened = tasks.attempts(self.settings, nxt, actions, done.collection, listed)
            nxt = dataclasses.replace(nxt, attempts=add(state.attempts, happened))
        ended = updates.is_over(dataclasses.replace(self.settings, max_steps=NEVER), nxt)
        code = jnp.where(done.collection.received, done.collection.code, jnp.uint8(0))
        step = Step(
            state=nxt,
            reward=done.reward,
            terminated=ended,
            truncated=(nxt.t >= self.max_steps) & ~ended,
            events=Events(
                collected=code.astype(jnp.int8),
                died=done.died,
                placed=nxt.last.placed,
                diamonds=(code == Material.DIAMOND).sum(dtype=jnp.int32),
            ),
        )
        return step, done, happened

    def observe(self, state: State, agents: Int[Array, " A"] | None = None) -> Any:
        """16: what each agent sees."""
        return observe.observe(self.settings, state, agents, full=self.observation == "full")

    def legal(self, state: State, agents: Int[Array, " A"] | None = None) -> Bool[Array, "A 18"]:
        """Primitives that can have an effect now; sharing needs a request, so it has none as a primitive."""
        return observe.legal(self.settings, state, agents)

    def tasks(self, state: State) -> TaskTable:
        """14: G_t, one slot for each cell."""
        return tasks.table(self.settings, state)

    def attempts(self, state: State, actions: Int[Array, " A"] | Command) -> Int[Array, " A"]:
        """14: declared collect target of each agent that collects, -1: none; primitives alone declare nothing."""
        if not isinstance(actions, Command):
            return jnp.full(actions.shape, -1, jnp.int32)
        collects = (actions.action == Action.DO) & ~state.removed
        is_cell = (actions.target >= 0) & (actions.target < self.settings.cells)
        return jnp.where(collects & is_cell, actions.target, -1)

    @property
    def skills(self) -> Skills:
        """12: the symbolic actions."""
        from jaxcoop.envs.macrafter.skills import MACrafterSkills  # it needs this module

        return MACrafterSkills(self)

    def outcome(self, state: State) -> Outcome:
        """The episode's record."""
        return Outcome(
            steps=state.t,
            score=state.score,
            achievements=state.achievements,
            deaths=(state.removed & (state.x >= 0)).sum(dtype=jnp.int32),
            attempts=state.attempts,
        )
