"""From the buffers that an episode ends with on the device to its typed records on the host.

Axes: A agents, T primitive steps, C = 3 scored constraints.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxcoop.cognition import channel, records
from jaxcoop.cognition.logs.episode import (
    Calls,
    Check,
    EpisodeLog,
    Failures,
    Flags,
    Ints,
    Messages,
    Plans,
    Process,
    Repairs,
    Timeline,
    none_of,
)
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.state import State

_CHECKS = {channel.PASSED: Check.PASSED, channel.COOLING: Check.COOLING, channel.STARTED: Check.REPAIRED}


def collect(state: State) -> EpisodeLog:
    """The log of a finished episode; `state` is of one episode and on the host (`jax.device_get`).

    Raises ValueError if one of its buffers was too small for the episode.
    """
    kept, agents = state.records, len(state.minds.stage)
    repairs, failures = _repairs(kept, agents)
    shape = {"agents": agents, "ops": kept.plan_ops.shape[1], "width": kept.plan_ops.shape[2]}
    return EpisodeLog(
        agents=agents,
        end_ms=int(state.now),
        timed_out=bool(state.noticed),
        committed=np.asarray(state.totals.committed, np.int32),
        timeline=Timeline(**_named(kept.timeline, "timeline", records.TIMELINE, Timeline)),
        messages=_messages(state, agents),
        plans=_plans(kept),
        calls=_calls(kept),
        repairs=repairs,
        failures=failures,
        process=_process(kept),
        changes=none_of("changes", **shape),
        holdings=none_of("holdings", **shape),
    )


def _rows(buffer: Any, name: str) -> Ints:
    """The rows of a buffer, all of them."""
    count, capacity = int(buffer.count), len(buffer.rows)
    if count > capacity:
        raise ValueError(f"the episode has {count} rows of {name}, kept were {capacity}; give `Capacity.{name}` more")
    return np.asarray(buffer.rows[:count], np.int32)


def _columns(buffer: Any, name: str, columns: tuple[str, ...]) -> dict[str, Ints]:
    rows = _rows(buffer, name)
    return {column: rows[:, k] for k, column in enumerate(columns)}


def _named(buffer: Any, name: str, columns: tuple[str, ...], record: type) -> dict[str, Ints]:
    """The columns that a record has fields for."""
    return {key: value for key, value in _columns(buffer, name, columns).items() if key in record.__annotations__}


def _members(words: ArrayLike, agents: int) -> Flags:
    """Sets of agents, one in each row, as flags."""
    sets = np.asarray(words, np.uint32)
    lanes = (sets[..., None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return lanes.reshape(len(sets), 32 * sets.shape[1])[:, :agents].astype(np.bool_)


def _messages(state: State, agents: int) -> Messages:
    columns = _columns(state.mail.log, "messages", records.MESSAGES)
    columns["mail"] = columns.pop("type")
    return Messages(**columns, recipients=_members(state.mail.recipients[: len(columns["seq"])], agents))


def _plans(kept: Any) -> Plans:
    columns = _columns(kept.plans, "plans", records.PLANS)
    spec = np.stack([columns.pop(f"spec_{k}") for k in range(3)], axis=1)
    done, length, count = columns.pop("ops_done"), columns.pop("ops"), len(spec)
    return Plans(
        **columns,
        done=done,
        length=length,
        spec=spec,
        ops=np.asarray(kept.plan_ops[:count], np.int32),
        op_steps=np.asarray(kept.op_steps[:count], np.int32),
    )


def _calls(kept: Any) -> Calls:
    columns = _columns(kept.calls, "calls", records.CALLS)
    columns["turn"] = columns.pop("number")
    return Calls(**columns)


def _repairs(kept: Any, agents: int) -> tuple[Repairs, Failures]:
    """One row for each check, from the notes that it left, and the failures that it predicts."""
    notes = _columns(kept.notes, "notes", records.NOTES)
    noted = _members(kept.noted[: len(notes["seq"])], agents)
    chosen, is_new, predicted = [], [], False
    for row in np.argsort(notes["seq"], kind="stable").tolist():
        kind = int(notes["kind"][row])
        if kind == channel.PREDICTED:
            predicted = True
        elif kind in _CHECKS:
            chosen.append(row)
            is_new.append(predicted)
            predicted = False
    check = np.array([_CHECKS[int(notes["kind"][row])] for row in chosen], np.int32)
    repairs = Repairs(
        **{name: notes[name][chosen] for name in ("seq", "time_ms", "env_step")},
        check=check,
        is_new=np.array(is_new, np.bool_),
        members=noted[chosen] & (check == Check.REPAIRED)[:, None],
    )
    return repairs, _failures(kept.evaluations, chosen)


def _failures(evaluations: Evaluation, chosen: list[int]) -> Failures:
    """The failing results of the chosen evaluations, in the order of their tasks' first ops."""
    names = ("first", "checked", "failed", "task", "kind", "score")
    first, checked, failed, task, kind, score = (np.asarray(getattr(evaluations, name))[chosen] for name in names)
    repair, row, constraint = np.nonzero(first[..., None] & checked & failed)
    return Failures(
        repair=repair.astype(np.int32),
        task=task[repair, row].astype(np.int32),
        kind=kind[repair, row].astype(np.int32),
        constraint=constraint.astype(np.int32),
        score=score[repair, row, constraint].astype(np.float32),
    )


def _process(kept: Any) -> Process:
    steps = len(_rows(kept.steps, "steps"))
    plan, index, status, index_after = np.moveaxis(np.asarray(kept.step_plans[:steps], np.int32), -1, 0)
    target, target_kind = np.moveaxis(np.asarray(kept.step_targets[:steps], np.int32), -1, 0)
    found = kept.step_attempts
    return Process(
        plan=plan,
        index=index,
        index_after=index_after,
        status=status,
        op=np.asarray(kept.step_ops[:steps], np.int32),
        target=target,
        target_kind=target_kind,
        task=np.asarray(found.task[:steps], np.int32),
        required=np.asarray(found.required[:steps], np.int32),
        attempting=np.asarray(found.attempting[:steps], np.int32),
        success=np.asarray(found.success[:steps], np.bool_),
        scores=np.asarray(found.score[:steps], np.float32),
        event=np.asarray(found.event[:steps], np.int32),
        score=np.asarray(kept.step_score[:steps], np.float32),
    )
