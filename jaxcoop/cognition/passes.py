"""5: one instruction of one agent's pass.

Axes: A agents.  Numbers are sections of docs/coop2.md.  Everything is masked rather than branched on, since a batch of
episodes would compute all branches anyway.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import plans
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.mail import GOT_ANY, GOT_PEER, GOT_REPAIR, emptied, held, remember
from jaxcoop.cognition.programs import Do, When
from jaxcoop.cognition.records import append, columns, ordered
from jaxcoop.cognition.stages import COMMITTED, RESUMED
from jaxcoop.cognition.state import FREE, GATHERS, IN_CALL, MADE_PLAN, WAITS_PEER, State
from jaxcoop.cognition.types import NEVER, Call, Verdict, is_ready
from jaxcoop.core import bits

POLL_MS = 50
"""3.1: a wait with a limit looks this often at the clock; so does the main loop."""

LEADER_TIMEOUT = 0
"""Kind of a note: GATHER gave up; the agents noted are those that did not answer.  Repairs have kinds of their own."""


@struct.dataclass
class Deed:
    """What one event does beside moving a program counter; nothing where the masks are empty."""

    asks: Bool[Array, " A"]  # starts a call
    kind: Int[Array, ""]  # of it
    heard: Bool[Array, " A"]  # a call is over
    sends: Bool[Array, ""]
    sender: Int[Array, ""]  # A: the repair channel
    to: Bool[Array, " A"]
    mail: Int[Array, ""]
    flags: Int[Array, ""]
    ends: Bool[Array, " A"]  # a pass is over


def first_poll(since: Array, due: Array) -> Array:
    """The first look at the clock, every `POLL_MS` from `since`, at or after `due`."""
    return since + POLL_MS * ((jnp.maximum(due - since, 0) + POLL_MS - 1) // POLL_MS)


def peer_ready(setup: Setup, state: State) -> Bool[Array, " A"]:
    """Whether each agent's peer is ready; True without a peer."""
    peer = setup.tables.peer
    return is_ready(state.minds.stage[np.maximum(peer, 0)]) | (peer < 0)


def gives_up_at(state: State) -> Int[Array, " A"]:
    """3.1: when those that gather notice that their time is over."""
    minds = state.minds
    return first_poll(jnp.maximum(minds.blocked_at, state.changed_at), minds.wake)


def has_answers(setup: Setup, state: State) -> Bool[Array, " A"]:
    """Whether everybody that each agent gathers from has answered."""
    groups = setup.tables.groups
    packed = np.stack([np.stack([_packed(row) for row in group]) for group in groups])  # [G, A, A32]
    wanted = jnp.asarray(packed)
    if len(groups) == 1:
        mine = wanted[0]
    else:
        group = jnp.asarray(setup.tables.code[:, 2])[jnp.maximum(state.minds.pc, 0)]
        mine = wanted[jnp.clip(group, 0, len(groups) - 1), np.arange(setup.agents)]
    return ((state.mail.answers & mine) == mine).all(1)


def _packed(row: np.ndarray) -> np.ndarray:
    return bits.constant(len(row), np.flatnonzero(row).tolist())


def runnable(setup: Setup, state: State) -> Bool[Array, " A"]:
    """Agents whose pass can go on at this moment."""
    minds = state.minds
    call_over = (minds.block == IN_CALL) & ~minds.asks & (minds.wake <= state.now)
    spoken_to = (minds.block == WAITS_PEER) & (peer_ready(setup, state) | state.mail.heard)
    gathered = has_answers(setup, state) | (gives_up_at(state) <= state.now)
    gathered &= minds.block == GATHERS
    return (minds.pc >= 0) & ((minds.block == FREE) | call_over | spoken_to | gathered)


def next_wake(state: State) -> Int[Array, ""]:
    """When the next pass goes on by itself."""
    minds = state.minds
    in_call = jnp.where((minds.block == IN_CALL) & (minds.pc >= 0), minds.wake, NEVER)
    gathers = jnp.where((minds.block == GATHERS) & (minds.pc >= 0), gives_up_at(state), NEVER)
    return jnp.minimum(in_call, gathers).min()


def start_call(state: State, who: Bool[Array, " A"], kind: Int[Array, ""] | int) -> State:
    """Ask the planner; the answer comes from outside."""
    minds, records = state.minds, state.records
    place, following = ordered(records.seq, who)
    return state.replace(
        minds=minds.replace(
            asks=minds.asks | who,
            kind=jnp.where(who, kind, minds.kind),
            blocked_at=jnp.where(who, state.now, minds.blocked_at),
            calls=minds.calls + who,
            call_seq=jnp.where(who, place, minds.call_seq),
        ),
        records=records.replace(seq=following),
    )


def end_call(state: State, who: Bool[Array, " A"]) -> State:
    """Count and record calls that are over now."""
    minds, totals, records = state.minds, state.totals, state.records
    failed = who & (minds.verdict == Verdict.ERROR)
    ids = jnp.arange(who.shape[0], dtype=jnp.int32)
    rows = columns(
        minds.call_seq, ids, minds.kind, minds.blocked_at, state.now, minds.verdict, state.step, minds.calls - 1
    )
    succeeded = (who & ~failed)[:, None] & (minds.kind[:, None] == jnp.arange(len(Call)))
    return state.replace(
        totals=totals.replace(calls=totals.calls + succeeded, errors=totals.errors + failed),
        records=records.replace(calls=append(records.calls, rows, who)),
    )


def run_one(setup: Setup, state: State, agent: Int[Array, ""], on: Bool[Array, ""]) -> tuple[State, Deed]:
    """The next instruction of `agent`; nothing unless `on`.  A call or a wait that lasts ends its turn."""
    ids = jnp.arange(setup.agents, dtype=jnp.int32)
    me = (ids == agent) & on

    def mine(x: Array) -> Array:
        return jnp.where(me, x, jnp.zeros((), x.dtype)).sum(0, dtype=x.dtype)

    code = jnp.asarray(setup.tables.code)[jnp.maximum(mine(state.minds.pc), 0)]
    do, x, y, flags = (code[k] for k in range(4))
    block = mine(state.minds.block)

    # Calls: begun once, over when the answer's time has come.
    begins = on & (do == Do.CALL) & (block == FREE)
    ends = on & (do == Do.CALL) & (block == IN_CALL)

    # Waits: tested when reached, and again whenever the agent is runnable.
    reached = on & (block == FREE)
    waits = on & (do == Do.WAIT_PEER)
    met = (me & (peer_ready(setup, state) | state.mail.heard)).any()
    gathers = on & (do == Do.GATHER)
    minds = state.minds
    minds = minds.replace(
        blocked_at=jnp.where(me & gathers & reached, state.now, minds.blocked_at),
        wake=jnp.where(me & gathers & reached, state.now + x, minds.wake),
    )
    state = state.replace(minds=minds)
    complete = (me & has_answers(setup, state)).any()
    late = gathers & ~complete & (me & (gives_up_at(state) <= state.now)).any()
    state = _note_timeout(setup, state, agent, late)
    stays = begins | (waits & ~met) | (gathers & ~complete & ~late)

    # The mailbox is emptied after a wait for answers too.
    collects = (on & (do == Do.COLLECT)) | (gathers & ~stays)
    minds = state.minds
    state = state.replace(
        minds=minds.replace(got=jnp.where(me & collects, held(state.mail), minds.got)),
        mail=emptied(state.mail, me & collects, me & (x == 1) & (do == Do.COLLECT)),
    )
    group = jnp.asarray(setup.tables.groups)[jnp.clip(y, 0, len(setup.tables.groups) - 1), jnp.maximum(agent, 0)]
    deed = Deed(
        asks=me & begins,
        kind=x,
        heard=me & ends,
        sends=on & (do == Do.SEND),
        sender=agent,
        to=group,
        mail=x,
        flags=flags,
        ends=me & (do == Do.END),
    )

    jumps = on & (do == Do.JUMP) & _holds(setup, state, x, me)
    minds = state.minds
    nxt = jnp.where(jumps, y, mine(minds.pc) + 1)
    waiting = jnp.where(begins, IN_CALL, jnp.where(do == Do.WAIT_PEER, WAITS_PEER, GATHERS))
    minds = minds.replace(
        pc=jnp.where(me & ~stays, nxt, minds.pc), block=jnp.where(me, jnp.where(stays, waiting, FREE), minds.block)
    )
    over = stays | (do == Do.END)
    return state.replace(minds=minds, active=jnp.where(on, jnp.where(over, -1, agent), state.active)), deed


def _holds(setup: Setup, state: State, when: Int[Array, ""], me: Bool[Array, " A"]) -> Bool[Array, ""]:
    """Whether a condition holds for the one agent in `me`."""
    got, verdict = (jnp.where(me, x, 0).sum() for x in (state.minds.got, state.minds.verdict))
    has_audience = (me & setup.tables.groups[0].any(1)).any()
    has_repair = (me & state.mail.has_repair).any()
    ready = (me & peer_ready(setup, state)).any()
    replans = verdict == Verdict.REPLAN
    table = {
        When.ALWAYS: jnp.ones((), jnp.bool_),
        When.EMPTY: (got & GOT_ANY) == 0,
        When.GOT_REPAIR: (got & GOT_REPAIR) > 0,
        When.GOT_PEER: (got & GOT_PEER) > 0,
        When.NOT_GOT_PEER: (got & GOT_PEER) == 0,
        When.HAS_REPAIR: has_repair,
        When.PEER_READY: ready,
        When.NO_AUDIENCE: ~has_audience,
        When.KEEPS: ~replans & (verdict != Verdict.REPLAN_EMPTY),
        When.DECIDED: verdict != Verdict.REPLAN_EMPTY,
    }
    return jnp.stack([table[w] for w in When])[when]


def _note_timeout(setup: Setup, state: State, agent: Int[Array, ""], late: Bool[Array, ""]) -> State:
    """Record who has not answered in time."""
    totals, records = state.totals, state.records
    totals = totals.replace(timeouts=totals.timeouts + late)
    if not records.notes.rows.shape[0]:
        return state.replace(totals=totals)
    answered = jnp.where(late, 1, 0)  # one row at most
    group = jnp.asarray(setup.tables.groups)[0, jnp.maximum(agent, 0)]
    missing = bits.pack(group) & ~state.mail.answers[jnp.maximum(agent, 0)]
    place = jnp.where(late, records.notes.count, records.notes.rows.shape[0])
    row = columns(records.seq[None], state.now, state.step, LEADER_TIMEOUT, agent)
    records = records.replace(
        notes=append(records.notes, row, late[None]),
        noted=records.noted.at[place].set(missing, mode="drop"),
        seq=records.seq + answered,
    )
    return state.replace(totals=totals, records=records)


def end_passes(state: State, me: Bool[Array, " A"]) -> tuple[State, Int[Array, " A"]]:
    """1.1: passes that are over: a new plan is committed, or else the old one goes on; and which of it happened."""
    minds = state.minds
    commits = me & minds.has_plan
    state = plans.commit(state, commits)
    totals = state.totals
    state = state.replace(
        minds=minds.replace(
            pc=jnp.where(me, -1, minds.pc),
            block=jnp.where(me, FREE, minds.block),
            has_plan=minds.has_plan & ~me,
        ),
        totals=totals.replace(resumed=totals.resumed + (me & ~commits)),
        mail=remember(state.mail, commits, MADE_PLAN, state.current.number, -1, state.step),
    )
    return state, jnp.where(commits, COMMITTED, RESUMED)
