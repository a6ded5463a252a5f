"""7, coop2_process_log.json and task_states.json: one record for each primitive step.

A process record holds all that 8.3 reads: read back, it gives the attempt events that the environment counted.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxcoop.cognition.logs.episode import EpisodeLog, exact_scores
from jaxcoop.cognition.logs.export_plans import plan_rows, reason_text
from jaxcoop.cognition.logs.vocabulary import TaskWords, Vocabulary, agent_name
from jaxcoop.cognition.metrics.attempts import CONSTRAINTS
from jaxcoop.cognition.types import SPEC, PlanStatus
from jaxcoop.cooperation.constraints import Constraint

Record = dict[str, Any]


def process_log(log: EpisodeLog, vocabulary: Vocabulary) -> list[Record]:
    """The records of all steps; the first one has the number 1."""
    scores, plans = exact_scores(log.process), plan_rows(log)
    gains = score_events(log)
    records = []
    for t in range(log.env_steps):
        step = _Step(log, vocabulary, plans, t, scores[t])
        record = {
            "env_step": t + 1,
            "agents": [step.agent(agent) for agent in range(log.agents)],
            "active_tasks": step.active_tasks(),
            "observed_constraints": step.observed(),
            "constraint_attempts": step.attempts(),
            "score": float(log.process.score[t]),
            "score_events": [gain for gain in gains if gain["env_step"] == t + 1],
        }
        if vocabulary.profile == "cube":
            record["action_outcomes"] = {agent_name(agent): step.push(agent) for agent in range(log.agents)}
        records.append(record)
    return records


def score_events(log: EpisodeLog) -> list[Record]:
    """Steps in which the score of the team changed."""
    before = np.concatenate([np.zeros(1, np.float32), log.process.score[:-1]])
    gained = log.process.score - before[: log.env_steps]
    return [{"env_step": t + 1, "gain": float(gained[t])} for t in np.flatnonzero(gained).tolist()]


@dataclass(frozen=True)
class _Attempt:
    """An attempt event in words."""

    task: TaskWords
    members: list[int]
    everybody: bool  # the event counts the whole team
    required: int
    success: bool
    scores: dict[str, float]


class _Step:
    """One step in words."""

    def __init__(
        self,
        log: EpisodeLog,
        vocabulary: Vocabulary,
        plans: dict[tuple[int, int], int],
        t: int,
        scores: NDArray[np.float64],
    ) -> None:
        self.log, self.words, self.t, self.plans = log, vocabulary, t, plans
        process = log.process
        kinds = dict(zip(process.target[t].tolist(), process.target_kind[t].tolist()))
        kinds.pop(-1, None)
        slots = [slot for slot in process.task[t].tolist() if slot >= 0]
        self.tasks = {slot: vocabulary.task(slot, kinds.get(slot, -1)) for slot in dict.fromkeys([*kinds, *slots])}
        self.targets = sorted(kinds)
        self.events = self._events(scores)
        self.of: dict[int, list[_Attempt]] = defaultdict(list)  # the events that each agent takes part in
        for event in self.events:
            for agent in event.members:
                self.of[agent].append(event)

    def _events(self, scores: NDArray[np.float64]) -> list[_Attempt]:
        process, t = self.log.process, self.t
        rows = np.flatnonzero(process.task[t] >= 0).tolist()
        members: dict[int, list[int]] = defaultdict(list)
        for agent, row in enumerate(process.event[t].tolist()):
            if row >= 0:
                members[row].append(agent)
        # An agent is listed under one event; one that nobody is listed under was the work of those without a target.
        roaming = [agent for row in rows for agent in members[row] if process.target[t, agent] < 0]
        return [
            _Attempt(
                task=self.tasks[int(process.task[t, row])],
                members=members[row] or roaming,
                everybody=bool(process.attempting[t, row] >= self.log.agents),
                required=int(process.required[t, row]),
                success=bool(process.success[t, row]),
                scores=dict(zip(CONSTRAINTS, scores[row].tolist())),
            )
            for row in rows
        ]

    def agent(self, agent: int) -> Record:
        """What an agent does in the step."""
        process, t = self.log.process, self.t
        number, index = int(process.plan[t, agent]), int(process.index[t, agent])
        row = self.plans.get((agent, number))
        spec = [-1] * SPEC if row is None else self.log.plans.spec[row].tolist()
        op, target = process.op[t, agent].tolist(), int(process.target[t, agent])
        is_begun = row is not None and 0 <= self.log.plans.start_step[row] < t
        action = self.words.op(op)
        return {
            "agent_id": agent_name(agent),
            "plan_id": number if number > 0 else None,
            "plan_specification": "" if row is None else self.words.spec(spec),
            "plan_status": (PlanStatus.EXECUTING if is_begun else PlanStatus.PENDING).name.lower(),
            "action_index": index,
            "action": self._issued(agent, action),
            "symbolic_action": {"action_type": action.pop("action_type"), "args": action},
            "focus": self.words.focus(spec, op, int(process.target_kind[t, agent])),
            "active_target_ids": [self.tasks[target].id] if target >= 0 else [],
            "action_outcome": self._outcome(agent),
            "plan_status_after": PlanStatus(int(process.status[t, agent])).name.lower(),
            "action_index_after": int(process.index_after[t, agent]),
        }

    def _issued(self, agent: int, action: Record) -> Record:
        """The op as it counted: with the task that it attempted; a collect that attempted nothing is a noop."""
        events = self.of[agent]
        if not events and action["action_type"] == "collect":
            return {"action_type": "noop"}
        return {**action, "task_id": events[0].task.id} if len(events) == 1 else dict(action)

    def _outcome(self, agent: int) -> Record:
        """How the op went; of a collect also what was collected."""
        process, t = self.log.process, self.t
        events = self.of[agent]
        is_done = bool(process.index_after[t, agent] > process.index[t, agent])
        has_failed = bool(process.status[t, agent] == PlanStatus.FAILED)
        status = "success" if is_done else "failed" if has_failed else "running"
        if events:
            status = "success" if any(event.success for event in events) else "blocked"
        row = self.plans.get((agent, int(process.plan[t, agent])))
        why = reason_text(int(self.log.plans.reason[row]), self.words) if has_failed and row is not None else None
        outcome: Record = {"status": status, "reason": why}
        if self.words.profile == "macrafter":
            outcome["effects"] = {"collections": [_collection(event) for event in events if event.success]}
        return outcome

    def active_tasks(self) -> list[Record]:
        """Tasks that plans aim at, sorted by id."""
        process, t = self.log.process, self.t
        records = []
        for slot in self.targets:
            aiming = np.flatnonzero(process.target[t] == slot).tolist()
            records.append(
                _task_record(self.tasks[slot])
                | {
                    "agents": [agent_name(agent) for agent in aiming],
                    "plan_ids": [int(process.plan[t, agent]) for agent in aiming],
                }
            )
        return sorted(records, key=lambda record: record["task_id"])

    def observed(self) -> list[Record]:
        """The constraints of the attempted tasks."""
        return [
            {
                "task_id": event.task.id,
                "constraint_type": name,
                "satisfied": score >= 1,
                "score": score,
                "agents": self._names(event),
            }
            for event in self.events
            for name, score in event.scores.items()
        ]

    def attempts(self) -> list[Record]:
        """The attempt events."""
        return [
            {
                **event.task.details,
                "task_id": event.task.id,
                "resource_type": event.task.type,
                "required_agents": event.required,
                "scores": event.scores,
                "agents": self._names(event),
            }
            for event in self.events
        ]

    def _names(self, event: _Attempt) -> list[str]:
        return [agent_name(agent) for agent in (range(self.log.agents) if event.everybody else event.members)]

    def push(self, agent: int) -> Record:
        """Outcome of an agent in cube; a push names the task that it counted for."""
        events = self.of[agent]
        outcome = self._outcome(agent)
        if not events:
            action = self.words.op(self.log.process.op[self.t, agent].tolist())
            return {"agent_id": agent_name(agent), "action_type": action["action_type"], "task_id": None, **outcome}
        task = events[0].task
        metadata = {**task.details, "required_agents": events[0].required, "resource_type": task.type}
        return {
            "agent_id": agent_name(agent),
            "action_type": "push",
            "task_id": task.id,
            "metadata": metadata,
            **outcome,
        }


def _collection(event: _Attempt) -> Record:
    return {
        "resource_type": event.task.type,
        "position": None if event.task.place is None else list(event.task.place),
        "participating_agents": [agent_name(agent) for agent in event.members],
    }


def _task_record(task: TaskWords) -> Record:
    return {
        **task.details,
        "task_id": task.id,
        "target_type": task.type,
        "required_agents": task.required,
        "required_tool": task.tool,
        "position": None if task.place is None else list(task.place),
    }


def task_states(log: EpisodeLog, vocabulary: Vocabulary) -> list[Record]:
    """What moved in each step: constraints of tasks, holdings, and which tasks were attempted with what result."""
    moved = _moved(log, vocabulary)
    held = log.holdings
    rises = Counter(held.env_step[held.new > held.old].tolist())
    falls = Counter(held.env_step[held.new < held.old].tolist())
    scores, plans = exact_scores(log.process), plan_rows(log)
    records = []
    for t in range(log.env_steps):
        events = _Step(log, vocabulary, plans, t, scores[t]).events
        changes = moved[t + 1]
        tasks = {name for ways in changes.values() for names in ways.values() for name in names}
        records.append(
            {
                "step": t + 1,
                "metrics": {
                    "constraint_changes": changes,
                    "capability_changes": {"increased": rises[t + 1], "decreased": falls[t + 1]},
                },
                "changed_tasks": sorted(tasks),
                "collected": sorted(event.task.id for event in events if event.success),
                "failed_attempts": sorted(event.task.id for event in events if not event.success),
            }
        )
    return records


def _moved(log: EpisodeLog, vocabulary: Vocabulary) -> dict[int, dict[str, dict[str, list[str]]]]:
    """By step, constraint and way the ids of the tasks that moved."""
    moved: dict[int, dict[str, dict[str, list[str]]]] = defaultdict(dict)
    changes = log.changes
    for row in range(len(changes.env_step)):
        name = Constraint(int(changes.constraint[row])).name.lower()
        ways = moved[int(changes.env_step[row])].setdefault(name, {"improved_tasks": [], "worsened_tasks": []})
        task = vocabulary.task(int(changes.task[row]), int(changes.kind[row])).id
        ways["improved_tasks" if changes.improved[row] else "worsened_tasks"].append(task)
    return moved
