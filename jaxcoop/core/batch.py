"""Continuous play: slots that start the next episode by themselves, for learners and for measurements.

Axes: B slots, P pool entries, A agents, S steps.  Episode j of slot i is driven by
`fold_in(fold_in(root, i), j)`: it is the episode of `play(env, policy, fold_in(root, i), j)`, whatever the
other slots, their number B and the calls that the steps are cut into.

A reset inside a batched step would be paid for by every slot at every step.  Initial states come from a pool
instead: `start` and `refill` make the next P of each slot, `advance` only picks.  A refill makes the entries that were
used up and no others.  Environments (and policies) whose start is the same for every key have no pool, `refill`
leaves them alone.

    step = jax.jit(advance, static_argnames=("env", "policy", "steps", "trace"))
    batch = jax.jit(start, static_argnames=("env", "policy", "pool"))(env, policy, root, jnp.arange(1024))
    batch, moves = step(env, policy, batch, 32, trace=("turn.obs", "actions", "reward", "final_obs"))
"""

import dataclasses
from functools import partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.core.env import Env
from jaxcoop.core.policy import Policy
from jaxcoop.core.rollout import (
    GROUP,
    Streams,
    Transition,
    episode_key,
    in_groups,
    initial,
    keep,
    streams_of,
    take_turn,
)


@struct.dataclass
class Batch:
    """B slots in play."""

    slot_key: Array  # [B] fold_in(root, slot)
    episode: Int[Array, " B"]  # number of the current episode = episodes finished
    t: Int[Array, " B"]  # steps taken in the current episode
    streams: Streams  # of the current episode [B]
    state: Any  # [B, ...]
    memory: Any  # [B, ...]
    fresh: Any  # (state, memory) of episode j in entry (j-1) mod P, [B, P, ...]; [1, ...] if all starts are alike
    coming: Streams | None  # those of the same episodes; None if all starts are alike
    made: Int[Array, " B"]  # the last episode that has an entry
    clock: Int[Array, ""]  # steps taken by each slot since the start
    restarts_reused: Int[Array, " B"]  # restarts from an entry that had been used already
    returns: Float[Array, "B A"]  # sum of all rewards; [B, 0] unless asked for
    returns_finished: Float[Array, "B A"]  # the part of it that belongs to finished episodes
    alike: bool = struct.field(pytree_node=False)  # every episode starts from the same state and memory


@struct.dataclass
class Move(Transition):
    """A `Transition` in continuous play: `nxt` is the last state of an episode that ends, not a fresh one."""

    env: Env = struct.field(pytree_node=False)
    memory: Any  # of the policy, before the step
    episode: Int[Array, ""]

    @property
    def final_obs(self) -> Any:
        """Observations of all agents after the step, before any restart: what a learner bootstraps from."""
        return self.env.observe(self.nxt)


def starts_alike(env: Env, policy: Policy) -> bool:
    """Whether initial state and memory ignore their keys, judged by the traced program."""
    key = jax.random.key(0)
    start = jax.make_jaxpr(lambda a, b: (env.reset(a), policy.init(b)))(key, key).jaxpr
    used = [v for eqn in start.eqns for v in eqn.invars] + list(start.outvars)
    return not any(v is key for v in used for key in start.invars)


def start(
    env: Env,
    policy: Policy,
    root: Array,
    slots: Int[Array, " B"],
    *,
    pool: int = 4,
    returns: bool = False,
) -> Batch:
    """Slots with the given numbers at the start of their episode 0.

    `pool`: entries per slot, enough for the episodes that a slot finishes between two refills; raises
    `ValueError` below 1.  Pure, as all functions here; the caller jits.
    """
    if pool < 1:
        raise ValueError(f"pool {pool}: must be 1 or more entries per slot")
    slot_key = jax.vmap(lambda i: jax.random.fold_in(root, i))(slots)
    state, memory = in_groups(lambda k: initial(env, policy, episode_key(k, 0)), slot_key)
    zero = jnp.zeros(slots.shape, jnp.int32)
    alike = starts_alike(env, policy)
    no_returns = jnp.zeros((*slots.shape, env.num_agents if returns else 0), jnp.float32)
    streams = jax.vmap(step_streams)(slot_key, zero)
    one = jax.eval_shape(partial(initial, env, policy), slot_key[0])
    empty = jax.tree.map(lambda x: jnp.zeros((*slots.shape, pool, *x.shape), x.dtype), one)
    batch = Batch(
        slot_key=slot_key,
        episode=zero,
        t=zero,
        streams=streams,
        state=state,
        memory=memory,
        fresh=jax.tree.map(lambda x: x[None], initial(env, policy, jax.random.key(0))) if alike else empty,
        coming=None if alike else jax.tree.map(lambda x: jnp.broadcast_to(x[:, None], (*x.shape, pool)), streams),
        made=zero,
        clock=jnp.zeros((), jnp.int32),
        restarts_reused=zero,
        returns=no_returns,
        returns_finished=no_returns,
        alike=alike,
    )
    return refill(env, policy, batch)


def refill(env: Env, policy: Policy, batch: Batch) -> Batch:
    """Make the initial states of each slot's next P episodes, as far as they are not there yet."""
    if batch.alike:
        return batch
    slots, pool = jax.tree.leaves(batch.fresh)[0].shape[:2]
    ahead = jnp.arange(1, pool + 1, dtype=jnp.int32)
    number = jnp.maximum(batch.made, batch.episode)[:, None] + ahead  # [B, P] episodes that may lack an entry
    lacking = (number <= batch.episode[:, None] + pool).ravel()
    group = min(GROUP, slots * pool)
    todo = jnp.nonzero(lacking, size=slots * pool, fill_value=slots * pool)[0].astype(jnp.int32)
    todo = jnp.pad(todo, (0, group), constant_values=slots * pool)
    total = lacking.sum(dtype=jnp.int32)

    def make_group(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        done, pools = carry
        which = jax.lax.dynamic_slice(todo, (done,), (group,))
        slot, episode = which // pool, number.ravel()[which]  # beyond the end: slot B, whose entries are dropped
        key = jax.vmap(lambda s, j: episode_key(batch.slot_key[s], j))(slot, episode)
        new = jax.vmap(lambda k: (initial(env, policy, k), streams_of(k)))(key)
        put = jax.tree.map(lambda x, n: x.at[slot, (episode - 1) % pool].set(n, mode="drop"), pools, new)
        return done + group, put

    pools = (batch.fresh, batch.coming)
    _, pools = jax.lax.while_loop(lambda carry: carry[0] < total, make_group, (jnp.zeros((), jnp.int32), pools))
    fresh, coming = pools
    return dataclasses.replace(batch, fresh=fresh, coming=coming, made=batch.episode + pool)


def step_streams(slot_key: Array, episode: Int[Array, ""]) -> Streams:
    """The streams of the steps of a slot's episode."""
    return streams_of(episode_key(slot_key, episode))


def either_key(done: Bool[Array, " B"], new: Array, old: Array) -> Array:
    """Keys of the slots, the new one where the episode has ended; each of them is used by one episode alone."""
    data = jnp.where(done[:, None], jax.random.key_data(new), jax.random.key_data(old))
    return jax.random.wrap_key_data(data, impl=jax.random.key_impl(old))


def restart(batch: Batch, done: Bool[Array, " B"]) -> Batch:
    """Put the slots whose episode has ended at the start of their next one."""
    episode = batch.episode + done

    def make_streams() -> Streams:
        return jax.vmap(step_streams)(batch.slot_key, episode)

    if batch.alike:
        state, memory = jax.tree.map(lambda x: x[0], batch.fresh)
        streams = jax.lax.cond(done.any(), make_streams, lambda: batch.streams)
        reused = batch.restarts_reused
        put = jax.vmap(keep, in_axes=(0, None, 0))
    else:
        pool = jax.tree.leaves(batch.fresh)[0].shape[1]
        entry = (jnp.minimum(episode, batch.made) - 1) % pool
        pick = jax.vmap(lambda row, e: row[e])
        (state, memory), streams = jax.tree.map(lambda x: pick(x, entry), (batch.fresh, batch.coming))
        reuses = done & (episode > batch.made)  # with numbers of its own
        streams = jax.lax.cond(reuses.any(), make_streams, lambda: streams)
        reused = batch.restarts_reused + reuses
        put = jax.vmap(keep)
    return dataclasses.replace(
        batch,
        episode=episode,
        t=jnp.where(done, 0, batch.t),
        streams=jax.tree.map(partial(either_key, done), streams, batch.streams),
        state=put(done, state, batch.state),
        memory=put(done, memory, batch.memory),
        restarts_reused=reused,
        returns_finished=jnp.where(done[:, None], batch.returns, batch.returns_finished),
    )


def advance(
    env: Env, policy: Policy, batch: Batch, steps: int, *, trace: tuple[str, ...] = ()
) -> tuple[Batch, dict[str, Any] | None]:
    """Play `steps` steps in every slot, starting new episodes where old ones end.

    `trace` names fields of `Move` (dotted: `"turn.obs"`, `"final_obs"`) to keep for every step, leading axes
    [S, B]; nothing is kept by default.  On the step that ends an episode, `nxt` and `final_obs` are its last
    ones, `terminated` and `truncated` say why, and `turn` of the following step is the fresh one.

    A slot that ends more than P episodes without a refill starts again from its last entry: a repeated
    initial state, with step keys of its own; `Batch.restarts_reused` counts these.  Raises `ValueError`
    unless `steps` is a positive multiple of `env.end_every`.
    """
    if steps < 1 or steps % env.end_every:
        raise ValueError(f"steps {steps}: must be a positive multiple of {env.end_every}, where episodes may end")
    fields = {name: attrgetter(name) for name in trace}

    def one_step(streams: Streams, carry: tuple[Batch, Array]) -> tuple[Any, Any]:
        batch, _ = carry
        turn, memory = jax.vmap(partial(take_turn, env, policy))(streams, batch.t, batch.state, batch.memory)
        returns = batch.returns + turn.reward if batch.returns.shape[1] else batch.returns
        nxt = dataclasses.replace(
            batch, t=batch.t + 1, clock=batch.clock + 1, state=turn.nxt, memory=memory, returns=returns
        )

        def fields_of(turn: Transition, memory: Any, episode: Array) -> dict[str, Any]:
            move = Move(**vars(turn), env=env, memory=memory, episode=episode)
            return {name: get(move) for name, get in fields.items()}

        kept = jax.vmap(fields_of)(turn, batch.memory, batch.episode)
        return (nxt, turn.terminated | turn.truncated), kept

    def one_block(batch: Batch, _: Any) -> tuple[Batch, Any]:
        none_done = jnp.zeros(batch.t.shape, jnp.bool_)
        (batch, done), kept = jax.lax.scan(
            lambda carry, _: one_step(batch.streams, carry),
            (batch, none_done),
            None,
            length=env.end_every,
            unroll=env.end_every == 1,
        )
        return restart(batch, done), kept

    batch, kept = jax.lax.scan(one_block, batch, None, length=steps // env.end_every)
    if not trace:
        return batch, None
    return batch, jax.tree.map(lambda x: jax.lax.collapse(x, 0, 2), kept)


def totals(batch: Batch) -> dict[str, Any]:
    """Counts over all slots since the start, as Python numbers.

    `steps`, `episodes` finished, `steps_finished` (their lengths added up), `reused` restarts, and, when
    asked for at the start, `returns_finished` per agent.  Added up at the host, where nothing overflows: a
    device counter holds 2^31 - 1 steps of one slot.
    """
    t, episode = np.asarray(batch.t, np.int64), np.asarray(batch.episode, np.int64)
    steps = int(batch.clock) * t.size
    counts: dict[str, Any] = {
        "steps": steps,
        "episodes": int(episode.sum()),
        "steps_finished": steps - int(t.sum()),
        "reused": int(np.asarray(batch.restarts_reused, np.int64).sum()),
    }
    if batch.returns.shape[1]:
        counts["returns_finished"] = np.asarray(batch.returns_finished, np.float64).sum(0).tolist()
    return counts
