"""Teams of language models that think: rows of the engine -> prompts -> replies -> answer words.

Axes: R rows, one for each agent that is asked, X answer words.  Numbers are sections of docs/coop2.md.
"""

import threading
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.agents.llm.coop2.adapter import Adapter
from jaxcoop.agents.llm.coop2.answers import Read, answer_words, read_answer, with_statement
from jaxcoop.agents.llm.coop2.events import Thought, thought, thought_columns
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.rows import AskRow, split
from jaxcoop.agents.llm.coop2.texts import Entry, Kind, Texts, as_json
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.logs import Vocabulary
from jaxcoop.cognition.process import Outcome
from jaxcoop.cognition.state import State
from jaxcoop.cognition.thinking import Thinking, begin_all
from jaxcoop.cognition.types import Call
from jaxcoop.core.results import Columns, plain_columns
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import Rows, TextPlanner
from jaxcoop.planning.request import Answer, Request

PARSER = "coop2-1"
"""Version of the reply forms and of the reply parser; part of the key of every recorded answer."""

MESSAGES = 256
"""`Capacity.messages` that is enough for most episodes: of more messages the oldest are not shown any more."""


def vocabulary_of(setup: Setup) -> Vocabulary:
    """Names of the world that the team is in.  Raises `ValueError` for one that has no prompts."""
    domain = setup.domain
    if domain.profile.name == "cube":
        from jaxcoop.envs.cube.vocabulary import CubeVocabulary

        return CubeVocabulary(domain.env, domain.tasks)
    if domain.profile.name == "macrafter":
        from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary

        return MACrafterVocabulary(domain.env, domain.tasks)
    raise ValueError(f"environment {domain.env.name!r}: prompts of teams that think exist for cube and macrafter")


class MindTeam:
    """All agents of all episodes of one setup, played by one language model through one hub.

    `seed` names the sample when the model is sampled: the draw of a request is (seed, episode, agent, call).  `goal`
    is told to agents that work alone (6.4); `require_action_type` and `enforce_schema` are stricter than the reference
    (6.3, `Prompt.request`).  `count` makes result columns of outcomes [E, ...].
    """

    def __init__(
        self,
        setup: Setup,
        hub: Hub,
        seed: int,
        *,
        goal: str = "",
        require_action_type: bool = False,
        enforce_schema: bool = False,
        count: Callable[[Outcome], Columns] = plain_columns,
    ) -> None:
        if setup.capacity.messages < 1:
            raise ValueError(
                f"capacity.messages is {setup.capacity.messages}; a language model reads messages, so give 1 or more, "
                f"for example Capacity(messages={MESSAGES})"
            )
        vocabulary = vocabulary_of(setup)
        self.setup, self.seed, self.record = setup, seed, hub.record
        self.process = Thinking(setup)
        self.texts = Texts(hub.record, setup.agents)
        self.planner = TextPlanner(hub, self.write, self.read, self.process.answer_words)
        self._profile: Profile = vocabulary.profile
        self._adapter = Adapter(setup, vocabulary, self.texts, goal)
        self._strict, self._schema = require_action_type, enforce_schema
        self._count = count
        self._thoughts: list[Thought] = []
        self._lock = threading.Lock()

    def begin(self, root: Array, episodes: Int[Array, " B"]) -> State:
        """The starts of the numbered episodes."""
        return begin_all(self.process, root, episodes)

    def write(self, rows: Rows) -> list[Request]:
        """One request for each row."""
        asked = split(rows)
        return [
            prompt.request(
                (self.seed, row.episode, row.agent, row.call),
                check=True,
                enforce_schema=self._schema,
                require_action_type=self._strict,
            )
            for row, prompt in zip(asked, self._adapter.prompts(asked), strict=True)
        ]

    def read(self, rows: Rows, answers: list[Answer]) -> Int[np.ndarray, "R X"]:
        """Answer words of the rows; texts go to the text table, what was thought to the events."""
        words = np.empty((len(answers), self.process.answer_words), np.int32)
        thoughts: list[Thought] = []
        entries: list[Entry] = []
        for k, (row, answer) in enumerate(zip(split(rows), answers, strict=True)):
            role = self._adapter.roles[row.agent]
            found = read_answer(self._profile, row, role, answer, require_action_type=self._strict)
            words[k] = answer_words(self._profile, self.setup.plan_ops, found)
            thoughts.append(thought(row, found, self.setup.plan_ops))
            entries += self._texts_of(row, found)
        self.texts.put(entries)
        with self._lock:
            self._thoughts += thoughts
        return words

    def _texts_of(self, row: AskRow, found: Read) -> list[Entry]:
        """What an answer adds to the text table."""
        entry, agent = partial(self.texts.entry, row.episode), row.agent
        if found.plan is not None:
            number = int(row.field("plans.number")[agent]) + 1  # the pass commits it as the agent's next plan
            return [entry(Kind.PLAN, agent, number, as_json(found.plan))]
        if found.text is None:
            return []
        if row.kind != Call.STATEMENT:
            return [entry(Kind.TEXT, agent, row.call, found.text)]
        # The channel sends its request after the last statement, so each makes the request that would be sent then.
        request = with_statement(self._adapter.request(row), agent, found.text)
        return [
            entry(Kind.STATEMENT, agent, row.call, found.text),
            entry(Kind.SAID, agent, row.message_count, found.text),
            entry(Kind.REQUEST, 0, row.message_count, as_json(request)),
        ]

    def columns(self, states: State) -> Columns:
        """Result columns of finished episodes."""
        return self._count(jax.device_get(_outcome(self.process, states)))

    def take_events(self) -> Columns:
        """What was thought since the last call; equal for all front ends."""
        with self._lock:
            taken, self._thoughts = self._thoughts, []
        return thought_columns(sorted(set(taken)))


@partial(jax.jit, static_argnums=0)
def _outcome(thinking: Thinking, states: State) -> Outcome:
    return jax.vmap(thinking.outcome)(states)
