"""The environment contract: a Dec-POMDP as pure functions of explicit state and draws.

Axes: A agents, K agents that act in one step (K = A, or fewer in turn-based environments).
Methods are written for one episode; batch axes come from `vmap`.
"""

from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.core.skills import NoDraws, Skills


@struct.dataclass
class Step:
    """What one step returns."""

    state: Any
    reward: Float[Array, " A"]
    terminated: Bool[Array, ""]  # the rules ended the episode
    truncated: Bool[Array, ""]  # the time limit ended it
    events: Any  # what happened, for statistics and traces; the environment's page lists the fields


@runtime_checkable
class Env(Protocol):
    """Static configuration of an environment with pure methods; a frozen, hashable dataclass.

    Inherit from it to get the defaults below (everybody acts in every step, nothing is random, every
    action is legal).  Inside jit an illegal action has a defined result, named on the environment's page;
    a bad configuration raises `ValueError` at construction, naming value and allowed range.
    """

    @property
    def name(self) -> str:
        """Registered name."""
        ...

    @property
    def version(self) -> str:
        """Moves when any trace changes, and only then."""
        ...

    @property
    def num_agents(self) -> int:
        """A."""
        ...

    @property
    def num_actions(self) -> int:
        """Size of the discrete action set, the same for every agent."""
        ...

    @property
    def horizon(self) -> int:
        """A number of steps after which every episode has ended."""
        ...

    @property
    def num_actors(self) -> int:
        """K: how many agents act in one step.  `num_agents` unless the environment is turn-based."""
        return self.num_agents

    @property
    def end_every(self) -> int:
        """Episodes end only after a multiple of this many steps; `horizon` is a multiple of it too.

        Rollouts freeze finished episodes at these points only, so a turn-based environment does not pay
        for a look at the whole team on every single turn.
        """
        return 1

    def reset(self, key: Array) -> Any:
        """Initial state."""
        ...

    def sample_draws(self, key: Array, state: Any) -> Any:
        """Every random number of the coming step, made explicit so that a recorded step replays exactly."""
        del key, state
        return NoDraws()

    def step(self, state: Any, actions: Int[Array, " K"] | Any, draws: Any) -> Step:
        """Advance by one step; `actions[k]` belongs to agent `actors(state)[k]`.

        An environment with skills also takes the `Command` that its skills make: primitives with arguments.
        """
        ...

    def actors(self, state: Any) -> Int[Array, " K"]:
        """Ids of the agents that act in the coming step, ascending."""
        del state
        return jnp.arange(self.num_agents, dtype=jnp.int32)

    def observe(self, state: Any, agents: Int[Array, " K"] | None = None) -> Any:
        """Observations of the given agents (distinct, ascending; default: all), leading axis K."""
        ...

    def legal(self, state: Any, agents: Int[Array, " K"] | None = None) -> Bool[Array, "K num_actions"]:
        """Which actions of the given agents (distinct, ascending; default: all) can have an effect now."""
        del state
        count = self.num_agents if agents is None else agents.shape[0]
        return jnp.ones((count, self.num_actions), jnp.bool_)

    def outcome(self, state: Any) -> Any:
        """The few numbers of a finished episode that statistics are made from."""
        ...

    def tasks(self, state: Any) -> Any:
        """The cooperative tasks of a state, a `jaxcoop.cooperation.TaskTable` of a fixed number of slots M."""
        ...

    def attempts(self, state: Any, actions: Int[Array, " K"]) -> Int[Array, " K"]:
        """The task that each acting agent's action is aimed at in this state, -1: none."""
        ...

    @property
    def skills(self) -> Skills | None:
        """The symbolic actions (options) of the environment's agents; None where there are only primitives."""
        return None


def state_bytes(env: Env) -> int:
    """Size of one episode's state in bytes (keys and policy memory not counted)."""
    shape = jax.eval_shape(env.reset, jax.eval_shape(lambda: jax.random.key(0)))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shape))
