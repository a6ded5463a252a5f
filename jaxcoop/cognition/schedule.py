"""3.1: the order of events: passes at one moment by ascending agent, then the main loop, then time goes on.

Axes: A agents.  Numbers are sections of docs/coop2.md.  `settle` runs one episode until it needs answers, is ready for
a primitive step or is over; time stands still while anything can happen.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition import channel, passes, plans, stages
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.passes import Deed
from jaxcoop.cognition.state import FREE, State
from jaxcoop.cognition.types import NEVER, Stage, is_ready


def limit_noticed_at(state: State) -> Int[Array, ""]:
    """When the main loop, which looks at the clock every 50 ms since something changed, sees that time is up."""
    never = state.noticed | (state.channel.turn >= 0) | (state.budget_ms == 0)
    return jnp.where(never, NEVER, passes.first_poll(state.changed_at, state.budget_ms))


def needs(state: State) -> Bool[Array, " A"]:
    """Agents whose call has no answer yet."""
    return state.minds.asks & ~state.over


def settled(setup: Setup, state: State) -> Bool[Array, ""]:
    """Nothing more happens before answers come or a primitive step is made."""
    busy = passes.runnable(setup, state).any() | (state.active >= 0) | _main_due(setup, state)
    return state.over | state.at_barrier | (~busy & state.minds.asks.any())


def _main_due(setup: Setup, state: State) -> Bool[Array, ""]:
    spoke = channel.statement_over(state)
    in_channel = state.channel.turn >= 0
    looks = state.main_due | (limit_noticed_at(state) <= state.now)
    return jnp.where(in_channel, spoke, looks)


def settle(setup: Setup, state: State) -> State:
    """Run on until `settled`."""
    return jax.lax.while_loop(lambda s: ~settled(setup, s), lambda s: _one(setup, s), state)


def _one(setup: Setup, state: State) -> State:
    """The next thing that happens."""
    can = passes.runnable(setup, state)
    agent = jnp.where(state.active >= 0, state.active, jnp.where(can.any(), jnp.argmax(can), -1)).astype(jnp.int32)
    thinks = agent >= 0
    looks = ~thinks & _main_due(setup, state)
    waits = ~thinks & ~looks & ~state.minds.asks.any()
    talks = looks & (state.channel.turn >= 0)
    looks = looks & ~talks
    state, deed = passes.run_one(setup, state, agent, thinks)
    state, speech = channel.next_statement(setup, state, talks)
    state = _do(setup, state, jax.tree.map(lambda a, b: jnp.where(talks, b, a), deed, speech), looks)
    state = _main(setup, state, looks)
    return _later(state, waits)


def _do(setup: Setup, state: State, deed: Deed, looks: Bool[Array, ""]) -> State:
    """Calls, ends of passes, messages and the stages that follow from them; new plans become known (2)."""
    state = passes.end_call(state, deed.heard)
    state = passes.start_call(state, deed.asks, deed.kind)
    state, came = passes.end_passes(state, deed.ends)
    state, turned = stages.deliver(setup, state, deed.sends, deed.sender, deed.to, deed.mail, deed.flags)
    at_once, later = turned, jnp.zeros_like(turned)
    if setup.domain.profile.at_commit:
        # The first one that a message turns makes the others' plans known, before the next one gets the message.
        at_once = turned & (jnp.cumsum(turned) == 1)
        later = turned & ~at_once
    stage = jnp.where(deed.ends, int(Stage.WAITING), int(Stage.INTERRUPTED))
    state = stages.enter(state, deed.ends | at_once, stage, jnp.where(deed.ends, came, stages.NO_END))
    if setup.domain.profile.at_commit:
        knows = turned.any() | (looks & ~state.noticed)
        state = plans.register(state, is_ready(state.minds.stage) & knows)
        state = stages.enter(state, later, int(Stage.INTERRUPTED))
    if setup.fixes.reinterrupt_on_unread:
        state = stages.enter(state, deed.ends & (state.mail.unread > 0), int(Stage.INTERRUPTED))
    return state


def _later(state: State, on: Bool[Array, ""]) -> State:
    """Time goes on to the next event; without one the episode is over."""
    ends_call = channel.statement_ends(state)
    nxt = jnp.minimum(passes.next_wake(state), jnp.minimum(ends_call, limit_noticed_at(state)))
    nothing = on & (nxt == NEVER)
    return state.replace(
        now=jnp.where(on & ~nothing, nxt, state.now), over=state.over | nothing, stuck=state.stuck | nothing
    )


def _main(setup: Setup, state: State, looks: Bool[Array, ""]) -> State:
    """The main loop: passes for those that need one, or the barrier.  Nothing unless `looks`."""
    ready = is_ready(state.minds.stage)
    late = (state.budget_ms > 0) & (state.now >= state.budget_ms)
    state = state.replace(noticed=state.noticed | (looks & late))
    minds = state.minds
    idle = minds.pc < 0
    starts = looks & ~ready & idle & ~state.noticed
    entry = jnp.where(minds.stage == Stage.REASONING, *(jnp.asarray(setup.tables.entry[:, k]) for k in (0, 1)))
    minds = minds.replace(
        pc=jnp.where(starts, entry, minds.pc),
        block=jnp.where(starts, FREE, minds.block),
        got=jnp.where(starts, 0, minds.got),
        has_plan=minds.has_plan & ~starts,
    )
    no_pass = (minds.pc < 0).all()
    return state.replace(
        minds=minds,
        main_due=state.main_due & ~looks,
        over=state.over | (looks & state.noticed & no_pass),
        at_barrier=state.at_barrier | (looks & ~state.noticed & no_pass & ready.all()),
    )
