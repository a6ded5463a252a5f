"""The texts of episodes: what calls wrote, the plans that agents made, the requests of repairs.

Arrays hold no text; everything here lies in the text table of a record, by numbers that the arrays do hold.  Texts
follow from recorded replies, so that a replay writes the same ones again.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any

from pydantic import TypeAdapter

from jaxcoop.agents.llm.coop2.facts import RepairRequest
from jaxcoop.agents.llm.coop2.plans import TextPlan
from jaxcoop.planning.record import Record


class Kind(IntEnum):
    """What a text is, and which number it goes by."""

    TEXT = 0  # a message; number of the call of its author
    STATEMENT = 1  # in a repair channel; number of the call
    SAID = 2  # the same; number of the message that the channel is going to send
    PLAN = 3  # JSON of a `TextPlan`; number of the plan
    REQUEST = 4  # JSON of a `RepairRequest`; number of the message


KINDS = 8
"""Room for kinds in a handle."""

Entry = tuple[int, int, str]
"""Episode, handle, text."""


class Texts:
    """The text table of teams of `agents`."""

    def __init__(self, record: Record, agents: int) -> None:
        self._record, self._agents = record, agents

    def handle(self, kind: Kind, agent: int, number: int) -> int:
        """Where a text lies; requests belong to agent 0."""
        return (number * self._agents + agent) * KINDS + kind

    def entry(self, episode: int, kind: Kind, agent: int, number: int, text: str) -> Entry:
        """A row for `put`."""
        return (episode, self.handle(kind, agent, number), text)

    def put(self, entries: Iterable[Entry]) -> None:
        """Store texts."""
        rows = list(entries)
        if rows:
            self._record.put_texts(rows)

    def get(self, episode: int, kind: Kind, agent: int, number: int) -> str | None:
        """A text, or None."""
        return self._record.text(episode, self.handle(kind, agent, number))

    def plan(self, episode: int, agent: int, number: int) -> TextPlan | None:
        """Plan `number` of an agent, or None."""
        text = self.get(episode, Kind.PLAN, agent, number)
        return None if text is None else _plan(text)

    def request(self, episode: int, message: int) -> RepairRequest | None:
        """The request that a message of a repair channel holds, or None."""
        text = self.get(episode, Kind.REQUEST, 0, message)
        return None if text is None else _request(text)

    def of_episode(self, episode: int) -> Callable[[int, int], str | None]:
        """For logs: (agent, number of a call) -> the text that the call gave, None where it gave a plan."""

        def text_of(agent: int, call: int) -> str | None:
            said = self.get(episode, Kind.TEXT, agent, call)
            return self.get(episode, Kind.STATEMENT, agent, call) if said is None else said

        return text_of


def as_json(facts: TextPlan | RepairRequest) -> str:
    """The text of a plan or a request in the table."""
    return _adapter(type(facts)).dump_json(facts).decode()


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@lru_cache(maxsize=4096)
def _plan(text: str) -> TextPlan:
    return _adapter(TextPlan).validate_json(text)


@lru_cache(maxsize=64)  # a request holds the plans of the whole team
def _request(text: str) -> RepairRequest:
    return _adapter(RepairRequest).validate_json(text)
