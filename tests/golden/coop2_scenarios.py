"""The recorded scenarios of COOP²: a world in which ops only take time, scripted answers, and logs as recorded."""

import dataclasses
from collections import defaultdict
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxcoop.cognition import channel, passes, process
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.domain import CUBE, MACRAFTER, Domain
from jaxcoop.cognition.records import CALLS, MESSAGES, NOTES, PLANS, TIMELINE, Capacity
from jaxcoop.cognition.repair import generic
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.types import Guidance
from jaxcoop.cognition.state import MADE_PLAN, MESSAGE_IN, MESSAGE_OUT
from jaxcoop.cognition.structures import structure_of
from jaxcoop.cognition.types import STAGES, Call, Ended, Mail, PlanStatus, Verdict, no_plan
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.core import Env, Step
from jaxcoop.core.skills import OpSpec, Report, Skills, Status

TASKS = ("7", "9")  # coal and iron
REPAIR = RepairConfig(cooldown=4, scope="task")
OTHER, COLLECT = 0, 1
FALLBACK = 999  # as a specification
OPS = 3
CAPACITY = Capacity(timeline=256, plans=128, calls=128, notes=64, messages=128, steps=64)
KINDS_OF_CALL = {"text": Call.TEXT, "plan": Call.PLAN, "decide": Call.DECIDE, "intent": Call.STATEMENT}
STAGE_NAMES = ("reasoning", "waiting", "executing", "interrupted")
MAIL = ("leader_broadcast", "follower_response", "broadcast_chain", "coop2_repair_request")


@struct.dataclass
class Clock:
    t: Any
    end: Any
    repairs: Any  # whether failing plans are reported
    required: Any  # agents that each task takes


@struct.dataclass
class Running:
    op: Any
    elapsed: Any


@dataclasses.dataclass(frozen=True)
class Waiting(Env):
    """Nothing happens but time."""

    num_agents: int = 3
    name = "waiting"
    version = "1"
    num_actions = 1
    horizon = 100

    def reset(self, key):
        zero = jnp.zeros((), jnp.int32)
        return Clock(zero, zero + self.horizon, zero > 0, jnp.full((len(TASKS),), 2, jnp.int32))

    def step(self, state, actions, draws):
        state = state.replace(t=state.t + 1)
        return Step(state, jnp.zeros(self.num_agents), jnp.bool_(False), state.t >= state.end, ())

    def outcome(self, state):
        return state.t

    @property
    def skills(self):
        return Lasting(self.num_agents)


@dataclasses.dataclass(frozen=True)
class Lasting(Skills):
    """Ops (kind, steps, task): a negative number of steps fails after them."""

    agents: int
    ops = (OpSpec("other", ("steps", "task")), OpSpec("collect", ("steps", "task")))
    reasons = ("", "scripted")
    width = 3

    def idle(self):
        return Running(jnp.full((self.agents, 3), -1, jnp.int32), jnp.zeros((self.agents,), jnp.int32))

    def begin(self, state, memory, ops, fresh, draws=None):
        return Running(jnp.where(fresh[:, None], ops, memory.op), jnp.where(fresh, 0, memory.elapsed))

    def command(self, state, memory, draws=None):
        return jnp.zeros_like(memory.elapsed), memory.replace(elapsed=memory.elapsed + 1)

    def check(self, state, memory):
        steps = memory.op[:, 1]
        over = (memory.op[:, 0] >= 0) & (memory.elapsed >= jnp.abs(steps))
        ended = jnp.where(steps < 0, int(Status.FAILED), int(Status.SUCCESS))
        return Report(jnp.where(over, ended, int(Status.PENDING)), (over & (steps < 0)).astype(jnp.int8))


@dataclasses.dataclass(frozen=True)
class Timed(Domain):
    """The waiting world as the cognitive layer sees it."""

    env: Waiting
    profile: Any
    tasks = ()
    fallback = ((FALLBACK, -1, -1), ((OTHER, 2, -1), (OTHER, 1, -1)))
    num_tasks = len(TASKS)
    num_kinds = 2

    @property
    def skills(self):
        return self.env.skills

    def score(self, state):
        return jnp.zeros((), jnp.float32)

    def evaluate(self, config, state, views):
        views = views.replace(is_viewed=views.is_viewed & state.repairs)
        named = generic.Named(
            view=jnp.full((self.env.num_agents,), -1, jnp.int32),
            op=views.plan.ops[:, :, 2],
            collects=views.plan.ops[:, :, 0] == COLLECT,
        )
        return generic.evaluate(config, state.required, jnp.asarray([0, 1]), views, named)

    def guide(self, config, state, views, evaluation):
        nobody = jnp.zeros((self.env.num_agents,), jnp.bool_)
        plan = no_plan(self.env.num_agents, OPS, 3)
        return Guidance(nobody.any(), jnp.full((), -1, jnp.int32), nobody, nobody, plan)


@cache
def programs(profile, structure, agents, step_ms):
    """Compiled `begin`, `advance` and `apply` of a team."""
    domain = Timed(Waiting(agents), {"cube": CUBE, "macrafter": MACRAFTER}[profile])
    setup = Setup(
        domain,
        structure_of(profile, structure),
        plan_ops=OPS,
        step_ms=step_ms,
        repair=REPAIR,
        capacity=CAPACITY,
    )
    functions = (process.begin, process.advance, process.apply)
    return tuple(jax.jit(partial(function, setup)) for function in functions)


class Script:
    """Answers of a definition: plans in order, verdicts by kind of call, latencies."""

    def __init__(self, definition):
        self.definition = definition
        self.specs = {FALLBACK: "fallback"}
        self.taken = defaultdict(int)
        self.calls = defaultdict(int)
        self.committed = {}

    def answer(self, agent, kind):
        """Words of the next answer of an agent."""
        name = f"agent_{agent}"
        latency = self.definition["latency"][kind] + agent * self.definition["latency"]["per_agent"]
        scripts = self.definition.get("script", {}).get(name, {})
        default = "resume" if kind == "decide" else "ok"
        default = self.definition.get("default", {}).get(kind, default)
        says = scripts.get(kind) or [default]
        say = says[min(self.calls[agent, kind], len(says) - 1)]
        self.calls[agent, kind] += 1
        verdict = Verdict[{"ok": "OK", "error": "ERROR"}.get(say, say.upper())]
        needs_plan = (kind == "plan" and say != "error") or say == "replan"
        spec, rows = self.next_plan(agent) if needs_plan else (-1, [])
        ops = np.full((OPS, 3), -1, np.int32)
        ops[: len(rows)] = np.asarray(rows).reshape(-1, 3)
        return [int(verdict), latency, len(rows), spec, -1, -1, *ops.ravel()]

    def next_plan(self, agent):
        """(specification word, op rows) of the agent's next plan."""
        name = f"agent_{agent}"
        plans = self.definition["plans"].get(name, self.definition["plans"].get("default"))
        plan = plans[min(self.taken[agent], len(plans) - 1)]
        self.taken[agent] += 1
        if isinstance(plan, dict):
            text = plan["spec"]
            rows = [self.row(action) for action in plan["actions"]]
        else:
            text = f"{name}.p{self.taken[agent]}"
            rows = [(OTHER, steps, -1) for steps in plan]
        word = len(self.specs)
        self.specs[word] = text
        return word, rows

    def note(self, state):
        """What the plans that were committed by now are for; one that is replaced unregistered leaves no record."""
        held = jax.device_get((state.current.number, state.current.plan.spec[:, 0]))
        for agent, (number, word) in enumerate(zip(*held)):
            self.committed[agent, int(number)] = self.specs.get(int(word))

    @staticmethod
    def row(action):
        task = action.get("args", {}).get("task_id")
        kind = COLLECT if action.get("type") == "collect" else OTHER
        return kind, action["dur"], -1 if task is None else TASKS.index(task)


def play(definition):
    """The final state of a scenario, and its script."""
    agents = definition["n"]
    repair = definition.get("repair")
    if repair:
        assert [t["task_id"] for t in repair["tasks"]] == list(TASKS)
        assert RepairConfig.published(repair["config"]) == REPAIR
    begin, advance, apply = programs(
        definition["profile"], definition["topology"], agents, definition.get("step_ms", 0)
    )
    script = Script(definition)
    state = begin(jax.random.key(0), 0)
    required = [t["required_agents"] for t in repair["tasks"]] if repair else [2] * len(TASKS)
    world = Clock(*(jnp.asarray(x) for x in (np.int32(0), np.int32(definition["T"]), bool(repair), np.int32(required))))
    budget = jnp.asarray(definition.get("budget_ms", 0), jnp.int32)
    state = state.replace(world=world, budget_ms=budget)
    for _ in range(10_000):
        if bool(state.over):
            return state, script
        asks = np.asarray(state.minds.asks)
        if asks.any():
            words = np.full((agents, 6 + 3 * OPS), -1, np.int32)
            kinds = np.asarray(state.minds.kind)
            for agent in np.flatnonzero(asks):
                kind = {int(v): k for k, v in KINDS_OF_CALL.items()}[int(kinds[agent])]
                words[agent] = script.answer(int(agent), kind)
            state = apply(state, process.answer_of(jnp.asarray(words), OPS, 3), jnp.asarray(asks))
        state = advance(state)
        script.note(state)
    raise AssertionError("the scenario does not end")


def table(rows, names):
    """Rows that were kept, as dicts."""
    count, kept = int(rows.count), np.asarray(rows.rows)
    assert count <= len(kept), f"{count} rows where {len(kept)} are kept"
    return [dict(zip(names, map(int, row))) for row in kept[:count]]


def members(words, agents):
    """Ids of the agents in a bit set."""
    lanes = (np.asarray(words)[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    return [f"agent_{i}" for i in np.flatnonzero(lanes.ravel()[:agents])]


def logs(definition, state, script):
    """What a scenario leaves, as recorded."""
    agents, state = definition["n"], jax.device_get(state)
    ids = [f"agent_{i}" for i in range(agents)]
    records = state.records
    timeline, closed = table(records.timeline, TIMELINE), table(records.plans, PLANS)
    messages = table(state.mail.log, MESSAGES)
    calls = sorted(table(records.calls, CALLS), key=lambda row: row["seq"])
    specs = script.specs
    events = []
    for row in timeline[agents:]:
        agent, at = ids[row["agent"]], {"t": row["time_ms"], "step": row["env_step"]}
        if row["committed"] >= 0:
            kind = "commit" if row["committed"] else "resume"
            about = {"plan_id": row["plan"], "spec": script.committed[row["agent"], row["plan"]]}
            events.append((row["seq"], 0, {**at, "type": kind, "agent": agent, **about}))
        stage = {"stage": STAGES[row["stage"]], "env_step": row["env_step"]}
        events.append((row["seq"], 1, {**at, "type": "stage", "agent": agent, **stage}))
    reasons = {Ended.REPLANNED: "Replanned"}
    for row in closed:
        if row["reason"] == Ended.EPISODE_ENDED:
            continue
        status = PlanStatus(row["status"]).name.lower()
        about = {"plan_id": row["plan_id"], "status": status, "end_step": row["end_step"]}
        if row["reason"] in reasons:
            about["reason"] = reasons[row["reason"]]
        event = {"t": row["end_ms"], "step": row["end_step"], "type": "plan_end", "agent": ids[row["agent"]], **about}
        events.append((row["seq"], 0, event))
    kinds = {int(v): k for k, v in KINDS_OF_CALL.items()}
    for row in calls:
        at = {"t": row["start_ms"], "step": row["env_step"], "type": "llm", "agent": ids[row["agent"]]}
        events.append((row["seq"], 0, {**at, "kind": kinds[row["kind"]]}))
    for row, words in zip(messages, state.mail.recipients):
        sender = "coop2_repair" if row["sender"] == agents else ids[row["sender"]]
        about = {"recipients": members(words, agents), "mtype": MAIL[row["type"]], "env_step": row["env_step"]}
        at = {"t": row["time_ms"], "step": row["env_step"], "type": "message", "agent": sender}
        events.append((row["seq"], 0, {**at, **about}))
    failing = []
    for number, (row, words) in enumerate(zip(table(records.notes, NOTES), records.noted)):
        at = {"t": row["time_ms"], "step": row["env_step"]}
        if row["kind"] == passes.LEADER_TIMEOUT:
            at |= {"type": "leader_timeout", "agent": ids[row["agent"]], "missing": members(words, agents)}
        elif row["kind"] == channel.REPAIR:
            at |= {"type": "repair", "agent": None, "agents": members(words, agents), "failures": failing}
        elif row["kind"] == channel.STARTED:
            failing = failures(records.evaluations, number)
            continue
        else:
            continue
        events.append((row["seq"], 0, at))
    steps = table(records.steps, ("seq", "time_ms", "env_step"))
    for row, doing in zip(steps, records.step_plans):
        ops = [[int(number), int(index)] for number, index in doing[:, :2]]
        at = {"t": row["time_ms"], "step": row["env_step"], "type": "env_step", "agent": None}
        events.append((row["seq"], 0, {**at, "ops": ops}))
    events.sort(key=lambda event: event[:2])
    return {
        "steps": int(state.step),
        "timed_out": bool(state.noticed),
        "end_ms": int(state.now),
        "events": [event for *_, event in events],
        "plan_history": [history(row, ids, specs) for row in closed],
        "agent_states": {
            agent: [
                [row["time_ms"] / 1000, row["env_step"], STAGE_NAMES[row["stage"]]]
                for row in timeline
                if row["agent"] == i
            ]
            for i, agent in enumerate(ids)
        },
        "message_log": [
            {
                "timestamp": row["time_ms"] / 1000,
                "env_step": row["env_step"],
                "sender": "coop2_repair" if row["sender"] == agents else ids[row["sender"]],
                "recipients": members(words, agents),
                "type": MAIL[row["type"]],
            }
            for row, words in zip(messages, state.mail.recipients)
        ],
        "llm_calls": {
            agent: [kinds[row["kind"]] for row in sorted(calls, key=lambda row: row["number"]) if row["agent"] == i]
            for i, agent in enumerate(ids)
        },
        "api_calls": {agent: int(state.totals.calls[i].sum()) for i, agent in enumerate(ids)},
        "llm_errors": {agent: int(state.totals.errors[i]) for i, agent in enumerate(ids)},
        "plan_count": {agent: int(state.totals.committed[i]) for i, agent in enumerate(ids)},
        "memory": {agent: remembered(state, i, agents) for i, agent in enumerate(ids)},
        "unread": {agent: unread(state, i, agents) for i, agent in enumerate(ids)},
    }


def failures(evaluations, number):
    """[task, constraint] of the failing results of a check, in their order."""
    first, checked, failed, task = (
        np.asarray(getattr(evaluations, name))[number] for name in ("first", "checked", "failed", "task")
    )
    rows, constraints = np.nonzero(first[:, None] & checked & failed)
    return [[TASKS[task[row]], SCORED[c].name.lower()] for row, c in zip(rows, constraints)]


def history(row, ids, specs):
    """A closed plan as recorded."""
    start = None if row["start_step"] < 0 else row["start_step"]
    reason = {Ended.NONE: None, Ended.REPLANNED: "Replanned", Ended.EPISODE_ENDED: "Episode ended"}
    return {
        "plan_id": row["plan_id"],
        "agent_id": ids[row["agent"]],
        "specification": specs[row["spec_0"]],
        "created_at_step": row["created_step"],
        "start_step": start,
        "end_step": row["end_step"],
        "status": PlanStatus(row["status"]).name.lower(),
        "failure_reason": reason.get(row["reason"], "scripted"),
        "duration": None if start is None else row["end_step"] - start,
        "progress": f"{row['ops_done']}/{row['ops']}",
    }


def remembered(state, agent, agents):
    """The memory of an agent as recorded."""
    found = []
    for kind, what, message, _ in state.mail.memory[agent]:
        if kind == MESSAGE_IN:
            found.append(["message_in", "coop2_repair" if what == agents else f"agent_{what}"])
        elif kind == MESSAGE_OUT:
            found.append(["message_out", members(state.mail.recipients[message], agents)])
        elif kind == MADE_PLAN:
            found.append(["plan", int(what)])
        elif kind >= 0:
            found.append(["plan_failure", None])
    # A failure is that of the plan made last before it, which is the one before the plan made next.
    number = int(state.totals.committed[agent])
    for event in reversed(found):
        if event[0] == "plan":
            number = event[1] - 1
        elif event[0] == "plan_failure":
            event[1] = number
    return found


def unread(state, agent, agents):
    """Senders of unread mail."""
    lanes = (state.mail.inbox[agent][:, None] >> np.arange(32, dtype=np.uint32)) & 1
    rows = state.mail.log.rows[np.flatnonzero(lanes.ravel())]
    senders = [int(row[MESSAGES.index("sender")]) for row in rows]
    assert int(state.mail.unread[agent]) == len(senders)
    return ["coop2_repair" if s == agents else f"agent_{s}" for s in senders]


assert Mail.REPAIR_REQUEST == 3
