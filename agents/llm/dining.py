"""Language models at the dining table: rows of the dialogue -> prompts -> replies -> answer words.

Axes: R rows, one for each philosopher that is asked.  Host side; source: 8 to 11 of docs/envs/dining.md.
"""

import dataclasses
import threading
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import jax
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.agents.llm.dining_events import Decision, decision_columns, recorded_decisions
from jaxcoop.agents.llm.registry import LanguageAgents
from jaxcoop.core.registry import unknown
from jaxcoop.core.results import Columns
from jaxcoop.envs.dining import results
from jaxcoop.envs.dining.dialogue import Dialogue, DialogueOutcome, DialogueState, Protocol
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.metrics import consistency
from jaxcoop.envs.dining.presets import CONDITIONS
from jaxcoop.envs.dining.prompts import Prompts, build_prompts
from jaxcoop.envs.dining.replies import MAX_REPLY, JsonReply, Parsed, ReplyFormat, parse_action, parse_reply
from jaxcoop.envs.dining.text import PromptRenderer
from jaxcoop.envs.dining.types import Action
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import Rows, TextPlanner
from jaxcoop.planning.process import Status
from jaxcoop.planning.request import Answer, Message, Reply, Request

PARSER = "dining-1"
"""Version of the prompts' reply forms and of the reply parser; part of the key of every recorded answer."""

ForkView = Literal["availability", "holder"]


@dataclasses.dataclass(frozen=True)
class DiningTalk:
    """How philosophers talk and what they are told.  Raises `ValueError` for a value out of range."""

    communication: bool = False  # messages between neighbours
    communication_rounds: int = 1  # k, 1 or more; k rounds are k-1 discussions before each action
    memory_window: int = 0  # tables of the past that are shown; 0: none
    protocol: Protocol = "package"  # "paper": messages go to everybody, k full exchanges before each commitment
    prompt: str = "default"  # default, minimal, theory_of_mind, symmetry_breaking or resource_ordering
    keep_prompt: bool = False  # keep the prompt strategy when messages are on; the reference drops it
    reply_format: ReplyFormat = "text"  # "json": the paper's reply form
    fork_view: ForkView = "availability"  # "holder": who holds each fork is shown, as in the paper
    system: str | None = None  # own system prompt, a Python format template; @FILE reads it from a file
    decision: str | None = None  # own decision prompt, likewise
    discussion: str | None = None  # own discussion prompt, likewise

    def __post_init__(self) -> None:
        """Check the options that neither the dialogue nor the templates check; read templates from files."""
        if self.fork_view not in get_args(ForkView):
            raise unknown("fork_view", self.fork_view, get_args(ForkView))
        for name in ("system", "decision", "discussion"):
            object.__setattr__(self, name, _template(name, getattr(self, name)))

    def dialogue(self, env: Dining) -> Dialogue:
        """Episodes of `env` under these options."""
        return Dialogue(env, self.communication, self.communication_rounds, self.memory_window, self.protocol)

    def prompts(self) -> Prompts:
        """The templates.  Raises `ValueError` for an unknown strategy or a template that cannot be filled."""
        return build_prompts(
            self.prompt,
            communication=self.communication,
            reply_format=self.reply_format,
            broadcast=self.protocol == "paper",
            keep_strategy_with_communication=self.keep_prompt,
            system=self.system,
            decision=self.decision,
            discussion=self.discussion,
        )


def _template(name: str, text: str | None) -> str | None:
    """The text of a template option; `@FILE` names a file."""
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise ValueError(f"{name} {text!r}: cannot read the template file: {err}") from None


class DiningTeam:
    """All philosophers of all episodes of one configuration, played by one language model through one hub.

    `seed` names the sample when the model is sampled: the draw of a request is (seed, episode, philosopher, ask).
    """

    def __init__(self, env: Dining, talk: DiningTalk, hub: Hub, seed: int) -> None:
        self.process = self.dialogue = dialogue = talk.dialogue(env)
        self.talk, self.seed = talk, seed
        self.renderer = PromptRenderer(talk.prompts(), dialogue.num_agents, communication=dialogue.communication)
        self.record = hub.record
        self.planner = TextPlanner(hub, self.write, self.read, dialogue.answer_words)
        self._decisions: list[Decision] = []
        self._lock = threading.Lock()
        self._schema = JsonReply.model_json_schema() if talk.reply_format == "json" else None

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
        return Request(
            messages=(Message("system", rendered.system), Message("user", rendered.user)),
            draw=(self.seed, row["episode"], row["agent"], row["ask"]),
            schema=self._schema,
            malformed=None if is_discussion else self._malformed,
        )

    def _malformed(self, reply: Reply) -> str | None:
        # On the hub's thread, so no more than needed is read here.
        if self.talk.reply_format == "text":
            found = parse_action(reply.text[:MAX_REPLY]).source != "none"
        else:
            found = self._parse(reply.text, is_discussion=False).found
        return None if found else "names no action"

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
        if self.talk.fork_view == "availability":
            del described["left_holder"], described["right_holder"]
        return described

    def _text(self, episode: int, handle: int) -> str | None:
        return None if handle < 0 else self.record.text(episode, handle)

    def _parse(self, text: str, is_discussion: bool) -> Parsed:
        return parse_reply(text, self.dialogue.communication, self.talk.reply_format, discussion=is_discussion)

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
                    episode,
                    ask,
                    clock,
                    discussion_round,
                    agent,
                    action,
                    message,
                    reasoning or None,
                    int(status),
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


def answers_row(env: Dining, talk: DiningTalk, columns: Columns, events: Columns) -> dict[str, Any]:
    """12: what the answers add to the row of a cell: how many, of what kind, and message-action consistency."""
    row = {name: int(columns[f"answers_{name}"].sum()) for name in ("fallback", "malformed")}
    row["answers"] = int(sum(columns[f"answers_{s.name.lower()}"].sum() for s in Status))
    if talk.communication:
        actions, messages = recorded_decisions(env, events)
        row["message_action_consistency"] = consistency(messages, actions)
    return row


def preset_talk(preset: str | None) -> DiningTalk:
    """The talk of a condition; presets of rules say nothing about it."""
    condition = CONDITIONS.get(preset or "")
    return DiningTalk() if condition is None else DiningTalk(prompt=condition.prompt, **condition.dialogue)


def preset_sampling(preset: str | None) -> dict[str, Any]:
    """The temperature of a condition that names one."""
    condition = CONDITIONS.get(preset or "")
    return {} if condition is None or condition.temperature is None else {"temperature": condition.temperature}


def talk_labels(env: Dining, talk: DiningTalk) -> dict[str, Any]:
    """What tables and figures sort cells by."""
    return {
        "mode": env.mode,
        "philosophers": env.philosophers,
        "target_meals": env.target_meals,
        "communication": talk.communication,
        "communication_rounds": talk.communication_rounds if talk.communication else 0,
        "memory_window": talk.memory_window,
        "prompt": talk.prompt,
    }


LANGUAGE_AGENTS = LanguageAgents(
    options=preset_talk,
    sampling=preset_sampling,
    labels=talk_labels,
    team=DiningTeam,
    row=answers_row,
    parser=PARSER,
)
