"""Small environments and a policy whose every number can be worked out by hand."""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import struct

from jaxcoop.core import Env, Step


def random_int(key, shape, stop):
    """Below `stop`; cheaper to compile than `jax.random.randint`."""
    return (jax.random.bits(key, shape, jnp.uint32) % stop).astype(jnp.int32)


@struct.dataclass
class WalkState:
    place: jax.Array  # random at the start; moved by actions and by draws
    t: jax.Array


@struct.dataclass
class WalkDraws:
    jump: jax.Array  # [A]


@dataclasses.dataclass(frozen=True)
class Walk(Env):
    """Starts at a random place; each step adds the actions and a random jump.

    Ends after `limit` steps, or with `early` when the place is a multiple of four.  `how` says by which flag.
    """

    agents: int = 2
    limit: int = 5
    early: bool = True
    how: Literal["terminated", "truncated", "both"] = "terminated"

    name = "walk"
    version = "1"
    num_actions = 3
    end_every = 1

    @property
    def num_agents(self) -> int:
        return self.agents

    @property
    def horizon(self) -> int:
        return self.limit

    def reset(self, key):
        return WalkState(random_int(key, (), 1_000_000), jnp.zeros((), jnp.int32))

    def sample_draws(self, key, state):
        return WalkDraws(random_int(key, (self.agents,), 100))

    def observe(self, state, agents=None):
        rows = jnp.arange(self.agents, dtype=jnp.int32) if agents is None else agents
        return state.place + rows

    def step(self, state, actions, draws):
        place = state.place + actions.sum(dtype=jnp.int32) + draws.jump.sum(dtype=jnp.int32)
        nxt = WalkState(place, state.t + 1)
        late = nxt.t >= self.limit
        ended = late | ((place % 4 == 0) & self.early)
        return Step(
            state=nxt,
            reward=jnp.arange(self.agents, dtype=jnp.float32) + nxt.t.astype(jnp.float32),
            terminated=ended & (self.how != "truncated"),
            truncated=ended & (self.how != "terminated"),
            events=place,
        )

    def outcome(self, state):
        return state


@dataclasses.dataclass(frozen=True)
class Turns(Walk):
    """`Walk`, one agent acting per step and episodes ending after whole rounds."""

    name = "turns"

    @property
    def num_actors(self) -> int:
        return 1

    @property
    def end_every(self) -> int:
        return self.agents

    @property
    def horizon(self) -> int:
        return self.limit * self.agents

    def actors(self, state):
        return (state.t % self.agents)[None]

    def step(self, state, actions, draws):
        step = super().step(state, actions, draws)
        ended = (step.state.t % self.agents == 0) & (
            (step.state.t >= self.horizon) | ((step.state.place % 4 == 0) & self.early)
        )
        return step.replace(terminated=ended, truncated=jnp.zeros_like(ended))


@dataclasses.dataclass(frozen=True)
class Fixed(Walk):
    """`Walk` from place 0 without jumps: nothing is random but what the policy does."""

    name = "fixed"

    def sample_draws(self, key, state):
        return WalkDraws(jnp.zeros((self.agents,), jnp.int32))

    def reset(self, key):
        return WalkState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


@dataclasses.dataclass(frozen=True)
class Counting:
    """Acts at random; remembers how often it has acted in this episode and a random mark of it."""

    mark: bool = True

    def init(self, key) -> Any:
        mark = jax.random.bits(key, (), jnp.uint32) if self.mark else jnp.zeros((), jnp.uint32)
        return jnp.zeros((), jnp.int32), mark

    def act(self, key, memory, turn):
        count, mark = memory
        actions = random_int(key, turn.agents.shape, turn.legal.shape[-1])
        return actions, (count + 1, mark)


@dataclasses.dataclass(frozen=True)
class Steady:
    """Always takes action 1; cheap to compile."""

    def init(self, key):
        return None

    def act(self, key, memory, turn):
        return jnp.ones(turn.agents.shape, jnp.int32), memory
