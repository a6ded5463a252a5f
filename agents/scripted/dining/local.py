"""Philosophers that decide by themselves: greedy ones and the ways they break the symmetry.

Axes: N philosophers, K that decide now (N, or the one whose turn it is).  Each reads its own observation, id,
memory and random numbers; a decision costs O(1).  "Available" is the observation's word: free, or in hand.
Definitions: section 16 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import dataclasses
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.random import uniform_actions
from jaxcoop.core import Turn, put_rows, take_rows
from jaxcoop.core.registry import unknown
from jaxcoop.envs.dining.types import Action, Obs

FirstSide = Literal["left", "right", "parity", "lower_fork", "one_right"]


def greedy(obs: Obs, left_first: Bool[Array, " K"], *, gated: bool = True) -> Int[Array, " K"]:
    """Take the fork of the first side, then the other; WAIT while eating and, if gated, for a taken fork."""
    has_first = jnp.where(left_first, obs.holding_left, obs.holding_right)
    has_both = obs.holding_left & obs.holding_right
    to_left = left_first ^ has_first  # side of the fork that comes next
    can_grab = ~obs.eating & ~has_both
    if gated:
        can_grab = can_grab & jnp.where(to_left, obs.left_available, obs.right_available)
    return choose(can_grab, choose(to_left, Action.GRAB_LEFT, Action.GRAB_RIGHT), Action.WAIT)


def choose(
    condition: Bool[Array, " K"], yes: Int[Array, " K"] | Action, no: Int[Array, " K"] | Action
) -> Int[Array, " K"]:
    """`where` on action codes, always int32."""
    return jnp.where(condition, jnp.asarray(yes, jnp.int32), jnp.asarray(no, jnp.int32))


def is_stuck(obs: Obs) -> Bool[Array, " K"]:
    """Hungry, exactly one fork in hand, the other one not available."""
    other_available = jnp.where(obs.holding_left, obs.right_available, obs.left_available)
    return ~obs.eating & (obs.holding_left ^ obs.holding_right) & ~other_available


def has_no_fork(obs: Obs) -> Bool[Array, " K"]:
    """Hungry with empty hands."""
    return ~obs.eating & ~obs.holding_left & ~obs.holding_right


@dataclasses.dataclass(frozen=True)
class Constant:
    """The same action at every decision."""

    action: Action

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Repeat the action."""
        del key
        return jnp.full(turn.agents.shape, int(self.action), jnp.int32), memory


@dataclasses.dataclass(frozen=True)
class Greedy:
    """Greedy philosophers that differ in the side they begin with.

    Raises `ValueError` for an unknown side.
    """

    num_agents: int  # N
    first: FirstSide = "left"  # "parity": even ids right; "lower_fork": id N-1 right; "one_right": id 0 right
    gated: bool = True  # False: grab even a fork that is not available
    polite: bool = False  # put the fork down when the other one is not available

    def __post_init__(self) -> None:
        """Check the side."""
        if self.first not in get_args(FirstSide):
            raise unknown("first", self.first, get_args(FirstSide))

    def left_first(self, agents: Int[Array, " K"]) -> Bool[Array, " K"]:
        """Who begins with the left fork."""
        match self.first:
            case "left":
                return jnp.ones(agents.shape, jnp.bool_)
            case "right":
                return jnp.zeros(agents.shape, jnp.bool_)
            case "parity":
                return agents % 2 == 1
            case "lower_fork":
                return agents != self.num_agents - 1
            case "one_right":
                return agents != 0

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Decide from the own observation and id."""
        del key
        actions = greedy(turn.obs, self.left_first(turn.agents), gated=self.gated)
        if self.polite:
            actions = choose(is_stuck(turn.obs), Action.RELEASE, actions)
        return actions, memory


@dataclasses.dataclass(frozen=True)
class RandomWait:
    """Left-first philosophers that let a random number of decisions pass before they take a first fork.

    The number is uniform on `low` … `high`, drawn at the start and again at every decision while eating.
    Raises `ValueError` unless 0 <= low <= high.
    """

    num_agents: int  # N
    low: int
    high: int

    def __post_init__(self) -> None:
        """Check the range."""
        if not 0 <= self.low <= self.high:
            raise ValueError(f"low {self.low!r}, high {self.high!r}: must satisfy 0 <= low <= high")

    def draw(self, key: Array, count: int) -> Int[Array, " K"]:
        """Fresh numbers of decisions to wait."""
        return self.low + uniform_actions(key, (count,), self.high - self.low + 1)

    def init(self, key: Array) -> Int[Array, " N"]:
        """Decisions still to wait, per philosopher."""
        return self.draw(key, self.num_agents)

    def act(self, key: Array, memory: Int[Array, " N"], turn: Turn) -> tuple[Int[Array, " K"], Array]:
        """Count down with empty hands, then take both forks."""
        wait = take_rows(memory, turn.agents)
        is_waiting = has_no_fork(turn.obs) & (wait > 0)
        actions = choose(is_waiting, Action.WAIT, greedy(turn.obs, jnp.ones_like(is_waiting)))
        wait = jnp.where(turn.obs.eating, self.draw(key, turn.agents.shape[0]), wait - is_waiting)
        return actions, put_rows(memory, turn.agents, wait)


@dataclasses.dataclass(frozen=True)
class CoinWait:
    """Left-first philosophers that toss a coin at every decision with empty hands and WAIT on heads."""

    probability: float = 0.5  # of WAIT

    def __post_init__(self) -> None:
        """Check the probability."""
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability {self.probability!r}: must be from 0 to 1")

    def init(self, key: Array) -> None:
        """No memory."""
        del key

    def act(self, key: Array, memory: None, turn: Turn) -> tuple[Int[Array, " K"], None]:
        """Toss and decide."""
        heads = jax.random.bernoulli(key, self.probability, turn.agents.shape)
        actions = greedy(turn.obs, jnp.ones_like(heads))
        return choose(has_no_fork(turn.obs) & heads, Action.WAIT, actions), memory


@dataclasses.dataclass(frozen=True)
class LehmannRabin:
    """Lehmann and Rabin's free choice: a random first side; a fork whose partner is taken goes back down.

    The side is drawn at the start and again with every such RELEASE and at every decision while eating.
    """

    num_agents: int  # N

    def init(self, key: Array) -> Bool[Array, " N"]:
        """Whose first side is left."""
        return uniform_actions(key, (self.num_agents,), 2) == 0

    def act(self, key: Array, memory: Bool[Array, " N"], turn: Turn) -> tuple[Int[Array, " K"], Array]:
        """Release when stuck, otherwise be greedy."""
        left_first = take_rows(memory, turn.agents)
        stuck = is_stuck(turn.obs)
        actions = choose(stuck, Action.RELEASE, greedy(turn.obs, left_first))
        fresh = uniform_actions(key, (turn.agents.shape[0],), 2) == 0
        left_first = jnp.where(stuck | turn.obs.eating, fresh, left_first)
        return actions, put_rows(memory, turn.agents, left_first)
