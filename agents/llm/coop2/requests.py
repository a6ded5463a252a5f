"""The request of an open repair channel, from the evaluation and the advice that the engine holds.

Numbers are sections of docs/coop2_repair.md.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxcoop.agents.llm.coop2.facts import Candidate, Failure, PlanView, RepairRequest, ToolHint
from jaxcoop.agents.llm.coop2.mails import Mails
from jaxcoop.agents.llm.coop2.rows import AskRow
from jaxcoop.agents.llm.coop2.texts import Kind, Texts
from jaxcoop.agents.llm.coop2.tool_hints import tool_hints
from jaxcoop.cognition.domain import THOUSANDTHS
from jaxcoop.cognition.logs import TaskWords, Vocabulary
from jaxcoop.cognition.types import PlanStatus
from jaxcoop.cooperation.constraints import SCORED, Constraint

ORDERS = {
    "cube": SCORED,
    "macrafter": (Constraint.TEMPORAL, Constraint.SPATIAL, Constraint.DEPENDENCY),
}
"""4, 5: the order of a task's results."""

_DEPENDENCY = SCORED.index(Constraint.DEPENDENCY)


class Requests:
    """Writes the requests of a team in its world; `env` is that of the vocabulary."""

    def __init__(self, vocabulary: Vocabulary, mails: Mails, texts: Texts) -> None:
        self._vocabulary, self._mails, self._texts = vocabulary, mails, texts

    def request(self, row: AskRow, state: Any) -> RepairRequest:
        """8: what is known when the agent of `row` is asked for its statement; `state` is that of the environment."""
        failing = list(self._failing(row))
        advised = np.flatnonzero(row.field("channel.advised"))
        target = self._target(row)
        lacks = [task for task, line, column in failing if column == _DEPENDENCY]
        is_cube = self._vocabulary.profile == "cube"
        strategy = "align_push" if is_cube else "dependency_first" if lacks else "soft_sync"
        known = () if target is None or is_cube else (target,)
        return RepairRequest(
            step=row.step,
            failures=tuple(self._failure(row, *result) for result in failing),
            views=self._views(row),
            recommended={int(agent): self._mails.recommended(row, int(agent)) for agent in advised},
            strategy=strategy,
            target=target,
            candidates=() if lacks else known,
            tools=self._tools(row, state, lacks),
            blocked=known if lacks else (),
            statements=tuple(self._statements(row)),
        )

    def _failing(self, row: AskRow) -> Iterator[tuple[TaskWords, int, int]]:
        """Failing results: the task, the row that represents it, the constraint's column."""
        fails = row.field("channel.failed") & row.field("channel.checked") & row.field("channel.first")[:, None]
        slots, kinds = row.field("channel.task"), row.field("channel.kind")
        tasks = [(self._vocabulary.task(int(slots[k]), int(kinds[k])), int(k)) for k in np.flatnonzero(fails.any(1))]
        is_cube = self._vocabulary.profile == "cube"
        tasks.sort(key=lambda found: found[0].id if is_cube else int(slots[found[1]]))
        for task, line in tasks:
            for constraint in ORDERS[self._vocabulary.profile]:
                column = SCORED.index(constraint)
                if fails[line, column]:
                    yield task, line, column

    def _failure(self, row: AskRow, task: TaskWords, line: int, column: int) -> Failure:
        slots, named = row.field("channel.task"), row.field("channel.named")[:, column]
        rows = ((slots == slots[line]) & named).reshape(row.agents, -1)
        place = "" if task.place is None else f" at x={task.place[0]}, y={task.place[1]}"
        is_tool = column == _DEPENDENCY and task.tool is not None
        return Failure(
            task=task.id,
            constraint=SCORED[column].name.lower(),
            score=float(row.field("channel.score")[line, column]) / THOUSANDTHS,
            required=int(row.field("channel.required")[line]),
            agents=_by_name(np.flatnonzero(rows.any(1))),
            about=task.type + place,
            tool=str(task.tool) if is_tool else "",
        )

    def _views(self, row: AskRow) -> dict[int, PlanView]:
        """2.1: the plans that were checked: all agents are ready, so those that are not at their end."""
        is_viewed = (row.field("plans.number") > 0) & (row.field("plans.status") <= PlanStatus.EXECUTING)
        views = ((int(agent), self._mails.plan(row, int(agent))) for agent in np.flatnonzero(is_viewed))
        return {agent: view for agent, view in views if view is not None}

    def _target(self, row: AskRow) -> Candidate | None:
        """9, 10: the recommended target, and who is to take part."""
        slot = row.number("channel.target")
        if slot < 0:
            return None
        same = np.flatnonzero(row.field("channel.task") == slot)
        kind = int(row.field("channel.kind")[same[0]]) if same.size else int(self._kind_of_advice(row))
        task = self._vocabulary.task(slot, kind)
        block = task.details.get("block_id")
        return Candidate(
            target=f"{task.type}#{task.id}" if block is None else f"block#{block}",
            participants=_by_name(np.flatnonzero(row.field("channel.advised"))),
            position=task.place,
        )

    def _kind_of_advice(self, row: AskRow) -> int:
        """The type that the recommended plans name: no plan that was checked need be about the recommended target."""
        advised = np.flatnonzero(row.field("channel.advised"))
        return int(row.field("channel.spec")[advised[0], 1]) if advised.size else -1

    def _tools(self, row: AskRow, state: Any, lacks: Sequence[TaskWords]) -> tuple[ToolHint, ...]:
        if not lacks:
            return ()
        plans = row.field("plans.ops"), row.field("plans.index"), row.field("plans.length")
        return tool_hints(state, lacks, sorted(self._views(row)), *plans)

    def _statements(self, row: AskRow) -> Iterator[tuple[int, str]]:
        """8: those made before the turn of this agent, in turn."""
        for agent in np.flatnonzero(row.field("channel.members")):
            said = self._texts.get(row.episode, Kind.SAID, int(agent), row.message_count)
            if agent < row.agent and said is not None:
                yield int(agent), said


def _by_name(agents: np.ndarray) -> tuple[int, ...]:
    """8: agents in the order of their ids as text."""
    return tuple(sorted(map(int, agents), key=str))
