"""10: episodes whose philosophers are asked: discussion rounds, message board, memory window.

Axes: N philosophers, w entries of the memory window.  Message texts stay at the host; the device carries handles:
`ask * N + philosopher`, unique in an episode, -1 for no message.  One *ask* is one moment at which requests go out:
a discussion round, a timestep, or a sequential turn.
"""

import dataclasses
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.core import bits
from jaxcoop.core.registry import unknown
from jaxcoop.core.rollout import episode_key, start_key, streams_of
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.types import Action, Outcome, State
from jaxcoop.planning.process import Process, Status, View

Protocol = Literal["package", "paper"]

HANDLES = 2**31
"""Handles of messages are int32."""

ACTION_WORD, SAID_WORD, STATUS_WORD = 0, 1, 2
"""Answer words: the action, 1 if the reply carries a message, the status."""


@struct.dataclass
class Memory:
    """The last w tables, oldest first; entries before the first timestep have timestep -1."""

    timestep: Int[Array, " w"]
    deadlock: Bool[Array, " w"]
    left: Bool[Array, "w N"]
    right: Bool[Array, "w N"]
    eating: Bool[Array, "w N"]
    meals: Int[Array, "w N"]


@struct.dataclass
class DialogueState:
    """An episode between two asks."""

    episode: Int[Array, ""]  # number of the episode in its run
    world: Array  # the environment's random stream
    state: State
    ask: Int[Array, ""]  # asks so far
    stage: Int[Array, ""]  # discussion rounds done in this timestep
    answered: Bool[Array, " N"]
    actions: Int[Array, " N"]  # answers to the current ask
    said: Int[Array, " N"]  # handles of the messages in them
    board: Int[Array, " N"]  # latest message of each philosopher
    shown: Int[Array, " N"]  # the board that the last discussion round saw
    memory: Memory
    statuses: Int[Array, " 4"]  # answers so far by `Status`


@struct.dataclass
class DialogueOutcome:
    """What remains of a finished episode."""

    game: Outcome
    asks: Int[Array, ""]
    statuses: Int[Array, " 4"]  # answers by `Status`


@dataclasses.dataclass(frozen=True)
class Dialogue(Process):
    """Dining episodes played by planners.

    `protocol` = "package": the message travels with the action and is seen by the two neighbours one ask later; k
    rounds are k-1 discussions, the last of which nobody sees before acting.  "paper": k exchanges before each
    commitment, each seen by everybody (14, points 10 and 11; in sequential mode before each round of turns).
    A planner without an answer (status other than OK) plays WAIT, as an unreadable reply does.
    """

    env: Dining
    communication: bool = False
    communication_rounds: int = 1  # k >= 1
    memory_window: int = 0  # w >= 0
    protocol: Protocol = "package"

    def __post_init__(self) -> None:
        """Check every option."""
        if self.communication_rounds < 1:
            raise ValueError(f"communication_rounds {self.communication_rounds}: must be 1 or more")
        if self.memory_window < 0:
            raise ValueError(f"memory_window {self.memory_window}: must be 0 or more")
        if self.protocol not in get_args(Protocol):
            raise unknown("protocol", self.protocol, get_args(Protocol))
        if self.max_rounds * self.num_agents >= HANDLES:
            raise ValueError(
                f"philosophers {self.num_agents:,} x {self.max_rounds:,} asks: must be below {HANDLES:,}, the number "
                "of message handles; take fewer philosophers or a shorter episode"
            )

    @property
    def num_agents(self) -> int:
        """N."""
        return self.env.philosophers

    @property
    def answer_words(self) -> int:
        """Action, message flag, status."""
        return 3

    @property
    def discussions(self) -> int:
        """Discussion rounds before each action (package) or timestep (paper)."""
        if not self.communication:
            return 0
        if self.protocol == "paper":
            return self.communication_rounds
        return 0 if self.env.is_sequential else self.communication_rounds - 1

    @property
    def max_rounds(self) -> int:
        """Asks of an episode that runs to its time limit."""
        timesteps = self.env.limit // (self.num_agents if self.env.is_sequential else 1)
        return self.env.horizon + self.discussions * timesteps

    def begin(self, root: Array, episode: Int[Array, ""]) -> DialogueState:
        """The start of episode number `episode`; its random numbers are those of a rollout under `root`."""
        n, w = self.num_agents, self.memory_window
        key = episode_key(root, episode)
        none = jnp.full((n,), -1, jnp.int32)
        off = jnp.zeros((w, n), jnp.bool_)
        zero = jnp.zeros((), jnp.int32)
        return DialogueState(
            episode=jnp.asarray(episode, jnp.int32),
            world=streams_of(key).world,
            state=self.env.reset(start_key(key)),
            ask=zero,
            stage=zero,
            answered=jnp.zeros((n,), jnp.bool_),
            actions=jnp.full((n,), int(Action.WAIT), jnp.int32),
            said=none,
            board=none,
            shown=none,
            memory=Memory(
                timestep=jnp.full((w,), -1, jnp.int32),
                deadlock=jnp.zeros((w,), jnp.bool_),
                left=off,
                right=off,
                eating=off,
                meals=jnp.zeros((w, n), jnp.int32),
            ),
            statuses=jnp.zeros((len(Status),), jnp.int32),
        )

    def done(self, state: DialogueState) -> Bool[Array, ""]:
        """Circular wait or time limit; in sequential mode after whole rounds (7.2)."""
        at_end = jnp.ones((), jnp.bool_)
        if self.env.end_every > 1:
            at_end = state.state.t % self.env.end_every == 0
        return at_end & (state.state.deadlock | (state.state.t >= self.env.limit))

    def is_discussion(self, state: DialogueState) -> Bool[Array, ""]:
        """The current ask is for messages only."""
        due = state.stage < self.discussions
        if self.env.is_sequential:
            due = due & (state.state.t % self.num_agents == 0)
        return due

    def need(self, state: DialogueState) -> Bool[Array, " N"]:
        """Everybody who has not answered yet; in sequential mode the philosopher whose turn it is."""
        asked = jnp.ones((self.num_agents,), jnp.bool_)
        if self.env.is_sequential:
            turn = jnp.arange(self.num_agents) == state.state.t % self.num_agents
            asked = turn | self.is_discussion(state)
        return asked & ~state.answered & ~self.done(state)

    def board_seen(self, state: DialogueState) -> Int[Array, " N"]:
        """10: with discussions, the package's action reply sees what the last discussion round saw."""
        if self.protocol == "package" and self.discussions:
            return jnp.where(self.is_discussion(state), state.board, state.shown)
        return state.board

    def view(self, state: DialogueState) -> View:
        """Integers a prompt is written from; handles stand for texts."""
        obs = self.env.observe(state.state)
        seen = self.board_seen(state)
        table, ids = state.state.table, jnp.arange(self.num_agents, dtype=jnp.int32)
        by_left, by_right = bits.unpack(table.by_left, len(ids)), bits.unpack(table.by_right, len(ids))
        holder = jnp.where(by_left, ids, jnp.where(by_right, jnp.roll(ids, 1), -1))
        discussion = self.is_discussion(state)
        episode = {
            "episode": state.episode,
            "ask": state.ask,
            "clock": state.state.t,
            "is_discussion": discussion,
            "round": jnp.where(discussion, state.stage + 1, 0),
            "memory_timestep": state.memory.timestep,
            "memory_deadlock": state.memory.deadlock,
            "memory_left": state.memory.left,
            "memory_right": state.memory.right,
            "memory_eating": state.memory.eating,
            "memory_meals": state.memory.meals,
        }
        if self.protocol == "paper":
            episode["board"] = seen
        agent = {
            "agent": ids,
            "eating": obs.eating,
            "meals": obs.meals,
            "left_available": obs.left_available,
            "right_available": obs.right_available,
            "holding_left": obs.holding_left,
            "holding_right": obs.holding_right,
            "left_holder": holder,
            "right_holder": jnp.roll(holder, -1),
            "left_handle": jnp.roll(seen, 1),
            "right_handle": jnp.roll(seen, -1),
        }
        return View(episode=episode, agent=agent)

    def apply(self, state: DialogueState, answers: Int[Array, "N W"], answered: Bool[Array, " N"]) -> DialogueState:
        """Note the answers of the rows `answered`."""
        status = jnp.where(answered, answers[:, STATUS_WORD], -1)
        usable = answered & ((status == Status.OK) | (status == Status.MALFORMED))
        action = jnp.where(usable, answers[:, ACTION_WORD], Action.WAIT)
        handle = state.ask * self.num_agents + jnp.arange(self.num_agents, dtype=jnp.int32)
        speaks = usable & (answers[:, SAID_WORD] == 1) & self.communication
        counts = (status[:, None] == jnp.arange(len(Status))).sum(0, dtype=jnp.int32)
        return state.replace(
            answered=state.answered | answered,
            actions=jnp.where(answered, action, state.actions),
            said=jnp.where(answered, jnp.where(speaks, handle, -1), state.said),
            statuses=state.statuses + counts,
        )

    def advance(self, state: DialogueState) -> DialogueState:
        """Close the current ask: publish the discussion round, or let the table take the actions."""
        discussion = self.is_discussion(state)
        draws = self.env.sample_draws(jax.random.fold_in(state.world, state.state.t), state.state)
        actor = self.env.actors(state.state)
        step = self.env.step(state.state, state.actions[actor], draws)
        acted = self.remember(state, step.state, step.events.circular_wait)
        acted = acted.replace(
            # 10: a philosopher that stays silent in an action reply leaves its old text on the board
            board=jnp.where(self.speakers(actor) & (state.said >= 0), state.said, state.board),
            stage=jnp.zeros((), jnp.int32) if not self.env.is_sequential else self.next_stage(step.state, state),
        )
        talked = state.replace(board=state.said, shown=state.board, stage=state.stage + 1)
        nxt = jax.tree.map(lambda a, b: jnp.where(discussion, a, b), talked, acted)
        return nxt.replace(
            ask=state.ask + 1,
            answered=jnp.zeros_like(state.answered),
            actions=jnp.full_like(state.actions, int(Action.WAIT)),
            said=jnp.full_like(state.said, -1),
        )

    def speakers(self, actor: Int[Array, " K"]) -> Bool[Array, " N"]:
        """Whose action replies reach the board: the paper's replies at commitment carry no message."""
        if self.protocol == "paper":
            return jnp.zeros((self.num_agents,), jnp.bool_)
        return jnp.zeros((self.num_agents,), jnp.bool_).at[actor].set(True)

    def next_stage(self, nxt: State, state: DialogueState) -> Int[Array, ""]:
        """In sequential mode discussions come back with the next round of turns."""
        return jnp.where(nxt.t % self.num_agents == 0, 0, state.stage)

    def remember(self, state: DialogueState, nxt: State, circular_wait: Array) -> DialogueState:
        """10: append the table to the memory window after each timestep or round."""
        state = state.replace(state=nxt)
        if not self.memory_window:
            return state
        due = jnp.ones((), jnp.bool_)
        if self.env.is_sequential:
            due = nxt.t % self.num_agents == 0
        obs = self.env.observe(nxt)
        entry = Memory(nxt.t, circular_wait, obs.holding_left, obs.holding_right, obs.eating, obs.meals)
        memory = jax.tree.map(
            lambda old, new: jnp.where(due, jnp.concatenate([old[1:], new[None]]), old), state.memory, entry
        )
        return state.replace(memory=memory)

    def outcome(self, state: DialogueState) -> DialogueOutcome:
        """The episode's record."""
        return DialogueOutcome(self.env.outcome(state.state), state.ask, state.statuses)
