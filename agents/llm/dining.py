"""Language models at the dining table: rows of the dialogue -> prompts -> replies -> answer words.

Axes: R rows, one for each philosopher that is asked.  Host side; source: 8 to 11 of docs/environments/dining.md.
"""

import dataclasses
import threading
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.core.registry import unknown
from jaxcoop.core.results import Columns
from jaxcoop.envs.dining import results
from jaxcoop.envs.dining.dialogue import Dialogue, DialogueOutcome, DialogueState
from jaxcoop.envs.dining.prompts import Prompts, build_prompts
from jaxcoop.envs.dining.replies import JsonReply, Parsed, ReplyFormat, parse_reply
from jaxcoop.envs.dining.text import PromptRenderer
from jaxcoop.envs.dining.types import Action
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import Rows, TextPlanner
from jaxcoop.planning.process import Status
from jaxcoop.planning.request import Answer, Message, Reply, Request

PARSER = "dining-1"
"""Version of the prompts' reply forms and of the reply parser; part of the key of every recorded answer."""

ForkView = Literal["availability", "holder"]


class Decision(NamedTuple):
    """One answer, as written to the run's events."""

    episode: int
    ask: int  # number of the ask in its episode
    clock: int  # table clock when asked
    discussion_round: int  # 1, 2, … ; 0: an action
    agent: int
    action: int  # what the table took; WAIT for an answer that could not be had or read
    message: str | None
    reasoning: str | None
    status: int


@dataclasses.dataclass(frozen=True)
class DiningPrompts:
    """Which prompts are used; `system`, `decision`, `discussion` are the caller's own templates or None."""

    prompt: str = "default"  # strategy: default, minimal, theory_of_mind, symmetry_breaking, resource_ordering
    keep_prompt_with_communication: bool = False  # the package drops the strategy when messages are on (11)
    reply_format: ReplyFormat = "text"  # "json": the paper's form (14, point 12)
    fork_view: ForkView = "availability"  # "holder": the paper's observation (14, point 13)
    system: str | None = None
    decision: str | None = None
    discussion: str | None = None

    def __post_init__(self) -> None:
        """Check the option that the templates do not check."""
        if self.fork_view not in get_args(ForkView):
            raise unknown("fork_view", self.fork_view, get_args(ForkView))

    def build(self, dialogue: Dialogue) -> Prompts:
        """The templates for a dialogue.  Raises `ValueError` for an unknown strategy or a wrong template."""
        return build_prompts(
            self.prompt,
            communication=dialogue.communication,
            reply_format=self.reply_format,
            broadcast=dialogue.protocol == "paper",
            keep_strategy_with_communication=self.keep_prompt_with_communication,
            system=self.system,
            decision=self.decision,
            discussion=self.discussion,
        )


class DiningTeam:
    """All philosophers of all episodes of one dialogue, played by one language model through one hub.

    `seed` names the sample when the model is sampled: the draw of a request is (seed, episode, philosopher, ask).
    """

    def __init__(self, dialogue: Dialogue, prompts: DiningPrompts, hub: Hub, seed: int) -> None:
        self.process = self.dialogue = dialogue
        self.prompts, self.seed = prompts, seed
        self.renderer = PromptRenderer(
            prompts.build(dialogue), dialogue.num_agents, communication=dialogue.communication
        )
        self.record = hub.record
        self.planner = TextPlanner(hub, self.write, self.read, dialogue.answer_words)
        self._decisions: list[Decision] = []
        self._lock = threading.Lock()
        self._schema = JsonReply.model_json_schema() if prompts.reply_format == "json" else None

    def begin(self, root: Array, episodes: Int[Array, " B"]) -> DialogueState:
        """The starts of the numbered episodes."""
        return _begin(self.dialogue, root, episodes)

    def write(self, rows: Rows) -> list[Request]:
        """One request for each row."""
        fields = {name: column.tolist() for name, column in rows.items()}
        count = len(fields["agent"])
        return [self._request({name: column[k] for name, column in fields.items()}) for k in range(count)]

    def _request(self, row: dict[str, Any]) -> Request:
        rendered = self.renderer.render(self._described(row))
        is_discussion = row["is_discussion"]

        def malformed(reply: Reply) -> str | None:
            return None if self._parse(reply.text, is_discussion).found or is_discussion else "names no action"

        return Request(
            messages=(Message("system", rendered.system), Message("user", rendered.user)),
            draw=(self.seed, row["episode"], row["agent"], row["ask"]),
            schema=self._schema,
        )

    def _described(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with texts for handles, as the renderer wants it."""
        described = {
            **row,
            "kind": "discussion" if row["is_discussion"] else "action",
            "rounds": self.dialogue.communication_rounds,
            "left_message": self._text(row["episode"], row["left_handle"]),
            "right_message": self._text(row["episode"], row["right_handle"]),
            "memory": [
                {"timestep": t, "deadlock": dead, "hl": left, "hr": right, "eating": eating, "meals": meals}
                for t, dead, left, right, eating, meals in zip(
                    *(row[f"memory_{name}"] for name in _MEMORY), strict=True
                )
                if t >= 0
            ],
        }
        if "board" in row:
            described["all_messages"] = [self._text(row["episode"], handle) for handle in row["board"]]
        if self.prompts.fork_view == "availability":
            del described["left_holder"], described["right_holder"]
        return described

    def _text(self, episode: int, handle: int) -> str | None:
        return None if handle < 0 else self.record.text(episode, handle)

    def _parse(self, text: str, is_discussion: bool) -> Parsed:
        return parse_reply(text, self.dialogue.communication, self.prompts.reply_format, discussion=is_discussion)

    def read(self, rows: Rows, answers: list[Answer]) -> np.ndarray:
        """Answer words of the rows; messages go to the text table, decisions to the log."""
        words = np.empty((len(answers), self.dialogue.answer_words), np.int32)
        decisions, texts = [], []
        names = ("episode", "ask", "clock", "round", "agent", "is_discussion")
        for k, (answer, row) in enumerate(
            zip(answers, zip(*(rows[name].tolist() for name in names), strict=True), strict=True)
        ):
            episode, ask, clock, discussion_round, agent, is_discussion = row
            action, message, reasoning, status = int(Action.WAIT), None, None, answer.status
            if answer.reply is not None:
                parsed = self._parse(answer.reply.text, is_discussion)
                action, message, reasoning = int(parsed.action), parsed.message, parsed.reasoning
                if status == Status.OK and not parsed.found and not is_discussion:
                    status = Status.MALFORMED
            if message is not None:
                texts.append((episode, ask * self.dialogue.num_agents + agent, message))
            words[k] = action, message is not None, status
            decisions.append(
                Decision(
                    episode, ask, clock, discussion_round, agent, action, message, reasoning or None, int(status)
                )
            )
        if texts:
            self.record.put_texts(texts)
        with self._lock:
            self._decisions += decisions
        return words

    def columns(self, states: DialogueState) -> Columns:
        """Result columns of finished episodes, with the number of asks and of answers by status."""
        outcome = jax.device_get(_outcome(self.dialogue, states))
        answers = {f"answers_{s.name.lower()}": outcome.statuses[:, s] for s in Status}
        return {**results.columns(outcome.game), "asks": outcome.asks, **answers}

    def take_events(self) -> Columns:
        """Decisions since the last call, in the order asked; equal for all front ends."""
        with self._lock:
            taken, self._decisions = self._decisions, []
        return decision_columns(sorted(set(taken), key=lambda d: (d.episode, d.ask, d.agent)))


@partial(jax.jit, static_argnums=0)
def _begin(dialogue: Dialogue, root: Array, episodes: Int[Array, " B"]) -> DialogueState:
    return jax.vmap(dialogue.begin, in_axes=(None, 0))(root, episodes)


@partial(jax.jit, static_argnums=0)
def _outcome(dialogue: Dialogue, states: DialogueState) -> DialogueOutcome:
    return jax.vmap(dialogue.outcome)(states)


_MEMORY = ("timestep", "deadlock", "left", "right", "eating", "meals")


def decision_columns(decisions: list[Decision]) -> Columns:
    """Event columns of decisions; None becomes the empty text."""
    columns: Columns = {}
    for name in Decision._fields:
        values = [getattr(d, name) for d in decisions]
        if name in ("message", "reasoning"):
            columns[name] = np.array([v or "" for v in values], dtype=np.str_)
        else:
            columns[name] = np.array(values, np.int32)
    return columns
