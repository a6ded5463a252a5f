"""Buffers of the device become typed records, and one that was too small is named."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from coop2_logs import CUBE, made

from jaxcoop.cognition import channel, records
from jaxcoop.cognition.logs import RECORDS, Check
from jaxcoop.cognition.logs.collect import collect
from jaxcoop.cognition.repair.controller import no_evaluation
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.core import bits

FIELDS = dataclasses.fields(Evaluation)
ROOM = 3  # rows that stay empty in every buffer


def buffer(columns):
    rows = np.stack(columns, 1).astype(np.int32)
    return SimpleNamespace(rows=np.concatenate([rows, np.full((ROOM, rows.shape[1]), 77, np.int32)]), count=len(rows))


def packed(flags):
    words = [np.asarray(bits.pack(row)) for row in flags]
    return np.stack([*words, *[np.zeros_like(words[0])] * ROOM])


def padded(array):
    return np.concatenate([array, np.zeros((ROOM, *array.shape[1:]), array.dtype)])


def as_state(log, notes, noted):
    """What the device holds at the end of an episode with this log."""
    line, mail, plans, calls, process = log.timeline, log.messages, log.plans, log.calls, log.process
    parts = {
        "timeline": {"plan": line.agent, "committed": line.agent, **vars(line)},
        "messages": {"type": mail.mail, **vars(mail)},
        "calls": {"number": calls.turn, **vars(calls)},
        "plans": {"ops_done": plans.done, **vars(plans), "ops": plans.length}
        | {f"spec_{k}": plans.spec[:, k] for k in range(3)},
    }
    names = {"timeline": records.TIMELINE, "messages": records.MESSAGES, "calls": records.CALLS, "plans": records.PLANS}
    made_of = {key: buffer([parts[key][name] for name in columns]) for key, columns in names.items()}
    doing = np.stack([process.plan, process.index, process.status, process.index_after], -1)
    kept = SimpleNamespace(
        timeline=made_of["timeline"],
        plans=made_of["plans"],
        calls=made_of["calls"],
        plan_ops=padded(plans.ops),
        op_steps=padded(plans.op_steps),
        notes=buffer(np.array(notes).T),
        noted=packed(noted),
        steps=buffer([np.arange(log.env_steps)] * 3),
        step_plans=padded(doing),
        step_ops=padded(process.op),
        step_targets=padded(np.stack([process.target, process.target_kind], -1)),
        step_attempts=SimpleNamespace(
            **{name: padded(getattr(process, name)) for name in ("task", "required", "attempting", "success", "event")},
            score=padded(process.scores),
        ),
        step_score=padded(process.score),
        evaluations=evaluations(log),
    )
    return SimpleNamespace(
        records=kept,
        mail=SimpleNamespace(log=made_of["messages"], recipients=packed(mail.recipients)),
        minds=SimpleNamespace(stage=np.zeros(log.agents)),
        totals=SimpleNamespace(committed=log.committed),
        now=log.end_ms,
        noticed=log.timed_out,
    )


def evaluations(log):
    """What checks were made by, as rows that give the failures of the log: one planned op for each of them."""
    failures, most = log.failures, max(np.bincount(log.failures.repair, minlength=1))
    made_of = no_evaluation(int(most))
    rows = {f.name: np.stack([np.asarray(getattr(made_of, f.name))] * (len(NOTES) + ROOM)) for f in FIELDS}
    for check, note in enumerate((1, 4, 7)):  # the last note of each check
        for place, row in enumerate(np.flatnonzero(failures.repair == check)):
            rows["task"][note, place], rows["kind"][note, place] = failures.task[row], failures.kind[row]
            rows["first"][note, place] = True
            constraint = failures.constraint[row]
            rows["checked"][note, place, constraint] = rows["failed"][note, place, constraint] = True
            rows["score"][note, place, constraint] = failures.score[row]
    return Evaluation(**rows)


NOTES = [
    # seq, time, step, kind, agent
    (5, 40, 1, channel.PREDICTED, -1),
    (6, 40, 1, channel.PASSED, -1),
    (7, 50, 2, channel.PREDICTED, -1),
    (8, 50, 2, channel.FAILED, -1),
    (9, 50, 2, channel.STARTED, -1),
    (12, 70, 2, channel.REPAIR, -1),
    (14, 90, 2, channel.FAILED, -1),
    (15, 90, 2, channel.COOLING, -1),
]


def test_records_come_back_as_they_were():
    log = made(CUBE, agents=35, steps=12, repairs=False)
    noted = np.zeros((len(NOTES), 35), bool)
    noted[4, [0, 33]] = True
    noted[7, 1] = True  # not about a channel
    found = collect(as_state(log, NOTES, noted))
    assert found.repairs.check.tolist() == [Check.PASSED, Check.REPAIRED, Check.COOLING]
    assert found.repairs.is_new.tolist() == [True, True, False]
    assert found.repairs.seq.tolist() == [6, 9, 15] and found.repairs.env_step.tolist() == [1, 2, 2]
    assert [np.flatnonzero(row).tolist() for row in found.repairs.members] == [[], [0, 33], []]
    assert (found.agents, found.end_ms) == (35, log.end_ms) and np.array_equal(found.committed, log.committed)
    for name, record in RECORDS.items():
        for field in dataclasses.fields(record) if name != "repairs" else ():
            want, got = (getattr(getattr(one, name), field.name) for one in (log, found))
            assert got.dtype == want.dtype and np.array_equal(got, want), (name, field.name)


@pytest.mark.parametrize("name", ["timeline", "plans", "calls", "notes", "messages", "steps"])
def test_a_buffer_that_was_too_small_is_named(name):
    log = made(CUBE, steps=12, repairs=False)
    state = as_state(log, NOTES, np.zeros((len(NOTES), 3), bool))
    full = state.mail.log if name == "messages" else getattr(state.records, name)
    full.count = len(full.rows) + 1
    with pytest.raises(ValueError, match=f"rows of {name}, kept were .*Capacity.{name}"):
        collect(state)


def test_an_episode_without_messages_and_checks_has_a_log():
    log = made(CUBE, agents=35, steps=4, repairs=False)
    state = as_state(log, NOTES, np.zeros((len(NOTES), 35), bool))
    state.mail.log.count = state.records.notes.count = 0
    found = collect(state)
    assert found.messages.recipients.shape == found.repairs.members.shape == (0, 35)
