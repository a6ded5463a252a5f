"""Agents that think as a process for the front ends of `jaxcoop.planning`: planners at the host answer their calls.

Axes: A agents, L ops of a plan, W words of an op row, X answer words.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import process, schedule
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.domain import THOUSANDTHS
from jaxcoop.cognition.process import Outcome
from jaxcoop.cognition.state import State
from jaxcoop.cognition.types import SPEC, Answer, Verdict
from jaxcoop.planning.process import Process, Status, View

HEAD = 3 + SPEC
"""Answer words before the ops: verdict, latency in ms, number of ops, specification."""

ROUNDS = 1_000_000
"""An episode that asks or steps more often than this is stuck."""


@dataclasses.dataclass(frozen=True)
class Thinking(Process):
    """Episodes under one setup.

    Words of an answer: `HEAD`, L rows of W words, the `Status`.  A call without a usable reply (status FALLBACK or
    MISSING, or MALFORMED for a call that wants a plan or a decision) has failed (6.2 of docs/coop2.md).
    """

    setup: Setup

    @property
    def num_agents(self) -> int:
        """A."""
        return self.setup.agents

    @property
    def answer_words(self) -> int:
        """X."""
        return HEAD + self.setup.plan_ops * self.setup.domain.skills.width + 1

    @property
    def max_rounds(self) -> int:
        """A bound that only an endless episode reaches."""
        return ROUNDS

    def begin(self, root: Array, episode: Int[Array, ""]) -> State:
        """The start of episode number `episode`."""
        return process.begin(self.setup, root, episode)

    def need(self, state: State) -> Bool[Array, " A"]:
        """Agents whose call has no answer yet; empty until everything else at this moment has happened."""
        return schedule.needs(state)

    def view(self, state: State) -> View:
        """What requests may depend on: the calls, minds, plans and mail of the episode, and its world."""
        minds, mail, channel, records = state.minds, state.mail, state.channel, channel_view(state)
        agents = self.num_agents
        episode = {
            "episode": state.episode,
            "step": state.step,
            "world": self.setup.domain.shown(state.world),
            "messages": mail.log.rows,
            "message_count": mail.log.count,
            "recipients": mail.recipients,
            "channel": records,
            "plans": {
                "number": state.current.number,
                "status": state.current.status,
                "index": state.current.index,
                "spec": state.current.plan.spec,
                "ops": state.current.plan.ops,
                "length": state.current.plan.length,
            },
        }
        agent = {
            "agent": jnp.arange(agents, dtype=jnp.int32),
            "kind": minds.kind,
            "call": minds.calls - 1,
            "stage": minds.stage,
            "got": minds.got,
            "verdict": minds.verdict,
            "has_plan": minds.has_plan,
            "made_spec": minds.made.spec,
            "made_ops": minds.made.ops,
            "made_length": minds.made.length,
            "inbox": mail.inbox,
            "shown": mail.shown,
            "history": mail.history,
            "directive": mail.directive,
            "memory": mail.memory,
            "is_member": channel.members,
            "is_advised": channel.advised,
        }
        return View(episode=episode, agent=agent)

    def apply(self, state: State, answers: Int[Array, "A X"], answered: Bool[Array, " A"]) -> State:
        """Take the answers."""
        width = self.setup.domain.skills.width
        answer = process.answer_of(answers, self.setup.plan_ops, width)
        verdict = jnp.where(answers[:, -1] == Status.OK, answer.verdict, int(Verdict.ERROR))
        return process.apply(self.setup, state, answer.replace(verdict=verdict), answered)

    def advance(self, state: State) -> State:
        """On to the next calls or the next primitive step."""
        return process.advance(self.setup, state)

    def done(self, state: State) -> Bool[Array, ""]:
        """The episode is over."""
        return state.over

    def outcome(self, state: State) -> Outcome:
        """The numbers of a finished episode."""
        return process.outcome(self.setup, state)


def channel_view(state: State) -> dict[str, Any]:
    """The repair channel and the evaluation that opened it, in whole numbers."""
    channel, found = state.channel, state.channel.check.evaluation
    return {
        "members": channel.members,
        "turn": channel.turn,
        "target": channel.target,
        "advised": channel.advised,
        "spec": channel.plan.spec,
        "ops": channel.plan.ops,
        "length": channel.plan.length,
        "task": found.task,
        "first": found.first,
        "required": found.required,
        "kind": found.kind,
        "checked": found.checked,
        "score": jnp.round(found.score * THOUSANDTHS).astype(jnp.int32),
        "failed": found.failed,
        "named": found.named,
    }


def words_of(answer: Answer, status: Int[Array, " A"]) -> Int[Array, "A X"]:
    """Answers as rows for `Thinking.apply`."""
    return jnp.concatenate([process.words_of(answer), status[:, None].astype(jnp.int32)], 1)


def begin_all(process_: Thinking, root: Array, episodes: Int[Array, " E"]) -> State:
    """The starts of the numbered episodes."""
    return _begin(process_, root, jnp.asarray(episodes, jnp.int32))


def _begin_one(thinking: Thinking, root: Array, episodes: Array) -> State:
    return jax.vmap(lambda e: thinking.begin(root, e))(episodes)


_begin = jax.jit(_begin_one, static_argnums=0)
