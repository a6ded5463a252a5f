"""The state of the cognitive layer of one episode.

Axes: A agents, L ops of a plan, W words of an op, M messages that are kept, A32 and M32 words of bit sets (a bit for an
agent, a message), T primitive steps that are recorded.  Times are milliseconds since reset; int32.
"""

from typing import Any

from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.cognition.records import Rows
from jaxcoop.cognition.repair.controller import RepairState
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.types import Plan
from jaxcoop.cooperation import Attempts

FREE, IN_CALL, WAITS_PEER, GATHERS = range(4)
"""What keeps a pass from going on."""

MESSAGE_IN, MESSAGE_OUT, MADE_PLAN, PLAN_FAILED = range(4)
"""Kinds of memory events."""

MEMORY = 10
"""6.5: events that an agent remembers."""


class Minds(struct.PyTreeNode):
    """Where each agent's thinking stands."""

    stage: Int[Array, " A"]  # Stage
    since: Int[Array, " A"]  # when it entered the stage
    pc: Int[Array, " A"]  # next instruction of the pass, -1: no pass runs
    block: Int[Array, " A"]  # FREE …
    wake: Int[Array, " A"]  # IN_CALL, once answered: when the call ends; GATHERS: when it gives up
    blocked_at: Int[Array, " A"]  # when the call or the wait began
    asks: Bool[Array, " A"]  # a call has no answer yet
    kind: Int[Array, " A"]  # of the call (Call)
    verdict: Int[Array, " A"]  # of the last answer (Verdict)
    has_plan: Bool[Array, " A"]  # this pass has made a plan: `made`
    made: Plan
    got: Int[Array, " A"]  # what the mailbox held when it was last emptied: bits of `mail.GOT_*`
    calls: Int[Array, " A"]  # calls made so far
    call_seq: Int[Array, " A"]  # place of the call in the order of records


class Held(struct.PyTreeNode):
    """A plan of each agent and how far it is."""

    plan: Plan
    number: Int[Array, " A"]  # plan_id, 0: none
    status: Int[Array, " A"]  # PlanStatus
    index: Int[Array, " A"]  # current op
    begun: Bool[Array, " A"]  # the current op was issued
    created: Int[Array, " A"]  # env_step of the commit
    created_ms: Int[Array, " A"]
    start: Int[Array, " A"]  # env_step of the first step, -1: none
    registered: Int[Array, " A"]  # place in the order of registrations, -1: not registered
    op_steps: Int[Array, "A L 2"]  # start and end of each op, -1; [A, 0, 2] unless plans are recorded


class Mail(struct.PyTreeNode):
    """Messages and who has read them."""

    unread: Int[Array, " A"]  # messages in the mailbox
    heard: Bool[Array, " A"]  # one of them is from the peer
    has_repair: Bool[Array, " A"]  # one of them is a repair request
    latest: Int[Array, " A"]  # the last message of the peer, -1: none
    directive: Int[Array, " A"]  # the last one of the peer that was read, -1: none
    answers: UInt32[Array, "A A32"]  # senders of unread answers
    log: Rows  # `records.MESSAGES`; message m lies in row m mod M
    recipients: UInt32[Array, "M A32"]
    inbox: UInt32[Array, "A M32"]  # unread messages
    shown: UInt32[Array, "A M32"]  # what the mailbox held when it was last emptied
    history: UInt32[Array, "A M32"]  # proposals collected in this episode
    memory: Int[Array, "A 10 4"]  # kind, sender or plan, message, env_step; oldest first, -1: none; [A, 0, 4]: M = 0


class Channel(struct.PyTreeNode):
    """COOP²-Repair: the check before a step, and the channel that it may open."""

    check: RepairState
    members: Bool[Array, " A"]
    turn: Int[Array, ""]  # place of the member that makes its statement, -1: no channel is open
    target: Int[Array, ""]  # task that the guidance recommends, -1
    plan: Plan  # that it recommends
    advised: Bool[Array, " A"]  # who has one
    repeats: Int[Array, ""]  # repairs since the last primitive step


class Totals(struct.PyTreeNode):
    """Sums over the episode."""

    time_ms: Int[Array, "A 4"]  # spent in each stage; the last entry is still open
    entries: Int[Array, "A 4"]  # into each stage
    messages: Int[Array, " A"]  # sent
    repair_messages: Int[Array, ""]
    calls: Int[Array, "A 4"]  # that succeeded, by kind
    errors: Int[Array, " A"]  # calls that failed
    closed: Int[Array, " 5"]  # plans closed, by PlanStatus
    replanned: Int[Array, ""]  # closed plans that were replaced
    committed: Int[Array, " A"]  # plans
    resumed: Int[Array, " A"]
    timeouts: Int[Array, ""]  # GATHER gave up
    repairs: Int[Array, ""]
    predicted: Int[Array, " 3"]  # failing results of repairs, by constraint
    members: Int[Array, ""]  # of all channels
    cooled: Int[Array, ""]  # checks with failures that were all cooling down
    score: Float[Array, ""]  # of the environment, last seen


class Records(struct.PyTreeNode):
    """Rows for traces."""

    seq: Int[Array, ""]
    timeline: Rows
    plans: Rows
    plan_ops: Int[Array, "C L W"]
    op_steps: Int[Array, "C L 2"]
    calls: Rows
    notes: Rows
    noted: UInt32[Array, "C A32"]
    evaluations: Evaluation  # that checks were made by, leading axis C
    steps: Rows  # seq, time_ms, env_step of each primitive step
    step_plans: Int[Array, "T A 4"]  # plan number, op index, status and index after the step
    step_ops: Int[Array, "T A W"]
    step_targets: Int[Array, "T A 2"]  # slot and kind of the task that each plan aims at
    step_attempts: Attempts  # events of each step, leading axis T
    step_score: Float[Array, " T"]  # of the team, after the step


class State(struct.PyTreeNode):
    """One episode."""

    episode: Int[Array, ""]
    world_key: Array  # stream of the environment's draws
    mind_key: Array  # stream of skills, latencies and planners
    world: Any  # state of the environment
    skill: Any  # memory of its skills
    goal: Any  # what the check of a plan's goal has seen
    budget_ms: Int[Array, ""]  # 3: wall-clock limit, 0: none
    now: Int[Array, ""]
    step: Int[Array, ""]  # primitive steps done
    active: Int[Array, ""]  # the agent whose pass is being run, -1
    changed_at: Int[Array, ""]  # last time that something changed
    main_due: Bool[Array, ""]  # the main loop has to look
    at_barrier: Bool[Array, ""]  # all are ready and the limit has not passed
    noticed: Bool[Array, ""]  # the wall-clock limit was noticed
    over: Bool[Array, ""]
    failed: Bool[Array, ""]  # a statement of a repair failed where that ends the run
    stuck: Bool[Array, ""]  # nobody can go on: a structure whose agents wait for each other
    minds: Minds
    current: Held
    old: Held  # registered plans that were replaced and are not filed yet; number 0: none
    registrations: Int[Array, ""]
    mail: Mail
    channel: Channel
    totals: Totals
    records: Records
