"""An environment in which nothing happens: what it costs is what the machinery around a step costs.

Axes: A agents.  Measured beside another environment with the same A, it shows what the other's rules cost.
"""

import dataclasses

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.cooperation import TaskTable, no_tasks
from jaxcoop.core import Env, EnvSpec, NoDraws, Step

NUM_ACTIONS = 4


@struct.dataclass
class State:
    """A clock, and what keeps a compiler from leaving the actions out."""

    t: Int[Array, ""]  # steps taken in this episode
    total: Int[Array, ""]  # sum of all actions of this episode, modulo 2^32


@struct.dataclass
class Events:
    """Nothing happens."""


@struct.dataclass
class Outcome:
    """What remains of a finished episode."""

    steps: Int[Array, ""]
    total: Int[Array, ""]  # as in `State`


@dataclasses.dataclass(frozen=True)
class Null(Env):
    """A agents with four actions that do nothing; every episode is truncated after `max_steps` steps.

    Observation: the clock, the same for everybody.  Reward: 0.  Every action is legal, and any other
    number is added to the sum like an action.  Raises `ValueError` for a value out of range.
    """

    agents: int = 5  # A, 1 to 1,000,000
    max_steps: int = 30  # 1 to 10,000,000

    def __post_init__(self) -> None:
        """Check every option."""
        for name, high in (("agents", 1_000_000), ("max_steps", 10_000_000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
                raise ValueError(f"{name} {value!r}: must be a whole number from 1 to {high:,}")

    @property
    def name(self) -> str:
        """Registered name."""
        return "null"

    @property
    def version(self) -> str:
        """1: clock and sum."""
        return "1"

    @property
    def num_agents(self) -> int:
        """A."""
        return self.agents

    @property
    def num_actions(self) -> int:
        """Four, as many as the smallest real environment has."""
        return NUM_ACTIONS

    @property
    def horizon(self) -> int:
        """Episodes have a fixed length."""
        return self.max_steps

    def reset(self, key: Array) -> State:
        """The clock at 0; there is no randomness in it."""
        del key
        return State(t=jnp.zeros((), jnp.int32), total=jnp.zeros((), jnp.int32))

    def observe(self, state: State, agents: Int[Array, " K"] | None = None) -> Int[Array, " K"]:
        """The clock."""
        return jnp.broadcast_to(state.t, (self.agents if agents is None else agents.shape[0],))

    def step(self, state: State, actions: Int[Array, " A"], draws: NoDraws) -> Step:
        """Advance the clock."""
        del draws
        nxt = State(t=state.t + 1, total=state.total + actions.astype(jnp.int32).sum(dtype=jnp.int32))
        never: Bool[Array, ""] = jnp.zeros((), jnp.bool_)
        nothing: Float[Array, " A"] = jnp.zeros((self.agents,), jnp.float32)
        return Step(nxt, nothing, terminated=never, truncated=nxt.t >= self.max_steps, events=Events())

    def tasks(self, state: State) -> TaskTable:
        """None."""
        del state
        return no_tasks()

    def attempts(self, state: State, actions: Int[Array, " A"]) -> Int[Array, " A"]:
        """At nothing."""
        del state
        return jnp.full(actions.shape, -1, jnp.int32)

    def outcome(self, state: State) -> Outcome:
        """Clock and sum."""
        return Outcome(steps=state.t, total=state.total)


SPEC = EnvSpec(
    name="null",
    summary="nothing happens: the cost of the machinery around a step",
    factory=Null,
)
