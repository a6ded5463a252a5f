"""Rollouts: whole episodes of one policy in one environment.

Axes: B episodes, T steps.  Determinism: the stream of episode e is `fold_in(root, e)` and the numbers of its
step t are `fold_in(stream, t)`, so a trajectory does not depend on batch size, chunking, the number of devices
or which other episodes run.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int

from jaxcoop.core.env import Env
from jaxcoop.core.policy import Policy, Turn
from jaxcoop.core.registry import unknown

GROUP = 64
"""How many initial states are made at once."""


START, MEMORY, WORLD, AGENTS = range(4)
"""Streams of an episode: initial state, the policy's initial memory, draws of the steps, the policy's numbers."""


@struct.dataclass
class Streams:
    """The random streams of the steps of one episode."""

    world: Array  # fold_in(world, t): draws of step t
    agents: Array  # fold_in(agents, t): the policy's numbers at step t


@struct.dataclass
class Transition:
    """One step of one episode, as traces see it."""

    t: Int[Array, ""]
    turn: Turn  # what the policy saw: turn.agents, turn.obs, turn.legal, turn.state
    actions: Int[Array, " K"]
    reward: Float[Array, " A"]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    events: Any
    nxt: Any  # the state after the step
    live: Bool[Array, ""]  # False: the episode had ended before this step, the other fields mean nothing


@struct.dataclass
class Episode:
    """A finished episode, reduced."""

    outcome: Any  # env.outcome of the last state
    length: Int[Array, ""]  # steps taken
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    returns: Float[Array, " A"] | None  # undiscounted sum of rewards, if asked for
    trace: dict[str, Any] | None  # chosen fields of every step, leading axis T = env.horizon


def episode_key(root: Array, episode: Int[Array, ""] | int) -> Array:
    """The key from which everything random in one episode follows."""
    return jax.random.fold_in(root, episode)


def streams_of(key: Array) -> Streams:
    """The streams of the steps of the episode with this key."""
    return Streams(world=jax.random.fold_in(key, WORLD), agents=jax.random.fold_in(key, AGENTS))


def start_key(key: Array) -> Array:
    """The key of the initial state of the episode with this key."""
    return jax.random.fold_in(key, START)


def initial(env: Env, policy: Policy, key: Array) -> tuple[Any, Any]:
    """State and memory at the start of the episode with this key."""
    return env.reset(start_key(key)), policy.init(jax.random.fold_in(key, MEMORY))


def in_groups(function: Callable[..., Any], *args: Any) -> Any:
    """`function` mapped over the leading axis, at most `GROUP` entries at a time.

    For initial states: generating a world takes far more memory than the world itself.
    """
    size = args[0].shape[0]
    if size <= GROUP:
        return jax.vmap(function)(*args)
    groups = -(-size // GROUP)
    rows = jnp.minimum(jnp.arange(groups * GROUP), size - 1).reshape(groups, GROUP)  # the last one is repeated
    made = jax.lax.map(lambda which: jax.vmap(function)(*(x[which] for x in args)), rows)
    return jax.tree.map(lambda x: x.reshape(rows.size, *x.shape[2:])[:size], made)


def take_turn(
    env: Env, policy: Policy, streams: Streams, t: Int[Array, ""], state: Any, memory: Any
) -> tuple[Transition, Any]:
    """Let the policy act and the environment advance by one step, finished or not."""
    agents = env.actors(state)
    turn = Turn(agents, env.observe(state, agents), env.legal(state, agents), state)
    actions, memory = policy.act(jax.random.fold_in(streams.agents, t), memory, turn)
    draws = env.sample_draws(jax.random.fold_in(streams.world, t), state)
    step = env.step(state, actions, draws)
    live = jnp.ones((), jnp.bool_)
    return (
        Transition(t, turn, actions, step.reward, step.terminated, step.truncated, step.events, step.state, live),
        memory,
    )


def keep(live: Bool[Array, ""], new: Any, old: Any) -> Any:
    """`new` where the episode lives, every bit of `old` where it has ended."""
    return jax.tree.map(lambda n, o: jnp.where(live, n, o), new, old)


def play(
    env: Env,
    policy: Policy,
    root: Array,
    episode: Int[Array, ""] | int,
    *,
    returns: bool = False,
    trace: tuple[str, ...] = (),
) -> Episode:
    """Play episode number `episode` to its end.

    `trace` names fields of `Transition` (dotted: `"turn.obs"`, `"nxt.table"`) to keep for every step; nothing
    is kept by default, so memory does not grow with the horizon.  Pure: use it under `jit` and `vmap`.
    """
    key = episode_key(root, episode)
    return play_from(env, policy, key, *initial(env, policy, key), returns=returns, trace=trace)


def play_from(
    env: Env,
    policy: Policy,
    key: Array,
    state: Any,
    memory: Any,
    *,
    returns: bool = False,
    trace: tuple[str, ...] = (),
) -> Episode:
    """`play` from a state and memory that `initial` gave for the episode's key."""
    streams = streams_of(key)
    total = jnp.zeros((env.num_agents if returns else 0,), jnp.float32)
    false = jnp.zeros((), jnp.bool_)
    fields = {name: attrgetter(name) for name in trace}

    def one_step(carry: Any, j: Int[Array, ""]) -> tuple[Any, Any]:
        t0, live, state, memory, total, _, _ = carry
        move, memory = take_turn(env, policy, streams, t0 + j, state, memory)
        if returns:
            total = total + move.reward
        kept = {name: get(dataclasses.replace(move, live=live)) for name, get in fields.items()}
        return (t0, live, move.nxt, memory, total, move.terminated, move.truncated), kept

    def one_block(carry: Any, _: None) -> tuple[Any, Any]:
        t, state, memory, total, terminated, truncated = carry
        live = ~(terminated | truncated)
        steps = jnp.arange(env.end_every, dtype=jnp.int32)
        start = (t, live, state, memory, total, terminated, truncated)
        end, kept = jax.lax.scan(one_step, start, steps, unroll=env.end_every == 1)
        _, _, *new = end
        frozen = keep(live, (t + env.end_every, *new), carry)
        return frozen, kept

    blocks = -(-env.horizon // env.end_every)
    start = (jnp.zeros((), jnp.int32), state, memory, total, false, false)
    end, kept = jax.lax.scan(one_block, start, None, length=blocks)
    t, state, _, total, terminated, truncated = end
    return Episode(
        outcome=env.outcome(state),
        length=t,
        terminated=terminated,
        truncated=truncated,
        returns=total if returns else None,
        trace=jax.tree.map(lambda x: jax.lax.collapse(x, 0, 2), kept) if trace else None,
    )


def rollout(
    env: Env,
    policy: Policy,
    root: Array,
    episodes: Int[Array, " B"],
    *,
    returns: bool = False,
    trace: Sequence[str] = (),
) -> Episode:
    """Play the numbered episodes at once; every field of the result has the leading axis B.

    Compiled once for each (environment, policy, B, trace).  The same episode number under the same root key
    always gives the same episode.  Raises `ValueError` for arguments of the wrong kind and for trace fields that
    do not exist, naming the allowed ones.
    """
    for name, value, need in (("env", env, ("reset", "step")), ("policy", policy, ("init", "act"))):
        if not all(callable(getattr(value, method, None)) for method in need):
            raise ValueError(f"{name} {value!r}: must have {' and '.join(need)}; make one by name first")
    if not (isinstance(root, jax.Array) and jnp.issubdtype(root.dtype, jax.dtypes.prng_key) and root.shape == ()):
        raise ValueError(f"root {root!r}: must be one key, as jax.random.key(seed) makes it")
    return _rollout(env, policy, root, _numbers(episodes), returns, checked_trace(env, policy, trace))


@partial(jax.jit, static_argnums=(0, 1, 4, 5))
def _rollout(
    env: Env, policy: Policy, root: Array, episodes: Int[Array, " B"], returns: bool, trace: tuple[str, ...]
) -> Episode:
    keys = jax.vmap(lambda e: episode_key(root, e))(episodes)
    state, memory = in_groups(lambda k: initial(env, policy, k), keys)
    return jax.vmap(lambda k, s, m: play_from(env, policy, k, s, m, returns=returns, trace=trace))(keys, state, memory)


def _numbers(episodes: Any) -> Int[Array, " B"]:
    """Episode numbers as an array."""
    try:
        numbers = jnp.asarray(episodes)
    except (TypeError, OverflowError) as err:
        raise ValueError(f"episodes {episodes!r}: must be whole numbers below 2^31 ({err})") from None
    if numbers.ndim != 1 or not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ValueError(
            f"episodes {numbers.dtype}{list(numbers.shape)}: must be a list of whole numbers, e.g. jnp.arange(1000)"
        )
    return numbers


def checked_trace(env: Env, policy: Policy, trace: Sequence[str]) -> tuple[str, ...]:
    """The trace fields as a tuple; raises `ValueError` naming the allowed ones if one does not exist."""
    names = (trace,) if isinstance(trace, str) else tuple(trace)
    if names:
        allowed = _trace_fields(env, policy)
        for name in names:
            if name not in allowed:
                raise unknown("trace field", name, allowed)
    return names


@lru_cache(maxsize=64)
def _trace_fields(env: Env, policy: Policy) -> tuple[str, ...]:
    """Dotted names of everything in a `Transition` of this environment and policy."""

    def one(key: Array) -> Transition:
        streams = streams_of(key)
        return take_turn(env, policy, streams, jnp.zeros((), jnp.int32), *initial(env, policy, key))[0]

    def names(node: Any, prefix: str) -> list[str]:
        found = []
        for field in dataclasses.fields(node):
            value = getattr(node, field.name)
            if jax.tree.leaves(value):
                found.append(prefix + field.name)
            if dataclasses.is_dataclass(value):
                found += names(value, f"{prefix}{field.name}.")
        return found

    return tuple(names(jax.eval_shape(one, jax.eval_shape(lambda: jax.random.key(0))), ""))
