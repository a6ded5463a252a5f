"""What a planning front end drives: one episode that stops wherever an agent must be asked.

Axes: A agents, W answer words.  Everything here is written for one episode; the front ends add the batch axis
by `vmap`.  Design: sections 2 and 6 of docs/concepts/planning.md.
"""

import functools
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int


class Status(IntEnum):
    """Last word of an answer row: how the answer came about."""

    OK = 0  # the planner answered
    FALLBACK = 1  # no answer could be had; the environment plays its documented fallback
    MISSING = 2  # replay: the record holds no answer to this request
    MALFORMED = 3  # the planner answered, and the answer could not be read


UNANSWERED = -1  # every word of a row that was not asked


@struct.dataclass
class View:
    """All that the requests of one episode may depend on: integers and booleans, no wall clock, no batch
    context.

    `episode`: pytree of arrays without an agent axis.  `agent`: pytree of arrays [A, ...].
    Floats are refused: their last digits change with the batch size, and with them the key of a request.
    """

    episode: Any
    agent: Any


class Process(Protocol):
    """One episode as planning sees it.  Implementations are frozen dataclasses: hashable, so jit-static."""

    @property
    def num_agents(self) -> int:
        """A."""
        ...

    @property
    def answer_words(self) -> int:
        """W; word W-1 is the `Status`."""
        ...

    @property
    def max_rounds(self) -> int:
        """Hard bound on the (ask, advance) rounds of one episode."""
        ...

    def need(self, state: Any) -> Bool[Array, " A"]:
        """Agents to ask before the episode can advance; False once answered, False when done."""
        ...

    def view(self, state: Any) -> View:
        """What requests may depend on."""
        ...

    def apply(self, state: Any, answers: Int[Array, "A W"], answered: Bool[Array, " A"]) -> Any:
        """Write the answers of the rows `answered`; other rows are ignored."""
        ...

    def advance(self, state: Any) -> Any:
        """One step; only meaningful while nobody needs and the episode is not done."""
        ...

    def done(self, state: Any) -> Bool[Array, ""]:
        """The episode is over; its state no longer changes."""
        ...


class ProcessError(ValueError):
    """A process breaks the contract above; the message says which part and how to mend it."""


def named_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    """(name, leaf) of a pytree; nested names are joined with a dot."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        parts = [str(getattr(p, "name", getattr(p, "key", getattr(p, "idx", p)))) for p in path]
        yield ".".join(parts), leaf


def check_process(process: Process, states: Any) -> int:
    """Check the contract on the types of `states` [B, ...]; return B.  Raises `ProcessError`."""
    try:
        hash(process)
    except TypeError as err:
        raise ProcessError(f"{type(process).__name__} is not hashable ({err}): make it a frozen dataclass") from None
    leaves, treedef = jax.tree.flatten(states)
    sizes = {int(leaf.shape[0]) if getattr(leaf, "ndim", 0) else 0 for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes:
        raise ProcessError(f"states need one leading batch axis of at least 1 episode, got axes {sizes}")
    _check_types(process, treedef, tuple(jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in leaves))
    return sizes.pop()


@functools.lru_cache(maxsize=256)
def _check_types(process: Process, treedef: Any, leaves: tuple[jax.ShapeDtypeStruct, ...]) -> None:
    state = jax.tree.unflatten(treedef, leaves)
    agents, words, rounds = process.num_agents, process.answer_words, process.max_rounds
    for name, value, least in (
        ("num_agents", agents, 1),
        ("answer_words", words, 2),
        ("max_rounds", rounds, 1),
    ):
        if not isinstance(value, int) or value < least:
            raise ProcessError(f"{name} is {value!r}; allowed: an integer of at least {least}")
    need, done = jax.eval_shape(process.need, state), jax.eval_shape(process.done, state)
    if need.shape != (agents,) or need.dtype != jnp.bool_:
        raise ProcessError(f"need() gives {need.dtype}{list(need.shape)}; it must be bool[{agents}]")
    if done.shape != () or done.dtype != jnp.bool_:
        raise ProcessError(f"done() gives {done.dtype}{list(done.shape)}; it must be one bool")
    _check_view(jax.eval_shape(process.view, state), agents)
    answers = jax.ShapeDtypeStruct((agents, words), jnp.int32)
    answered = jax.ShapeDtypeStruct((agents,), jnp.bool_)
    for name, after in (
        ("apply", jax.eval_shape(process.apply, state, answers, answered)),
        ("advance", jax.eval_shape(process.advance, state)),
    ):
        if jax.tree.structure(after) != treedef:
            raise ProcessError(f"{name}() changes the structure of the state")
        for (field, old), new in zip(named_leaves(state), jax.tree.leaves(after), strict=True):
            if (old.shape, old.dtype) != (new.shape, new.dtype):
                was, now = f"{old.dtype}{list(old.shape)}", f"{new.dtype}{list(new.shape)}"
                raise ProcessError(
                    f"{name}() turns {field or 'the state'} from {was} into {now}; types must not change"
                )


def _check_view(view: View, agents: int) -> None:
    episode, agent = dict(named_leaves(view.episode)), dict(named_leaves(view.agent))
    if clash := sorted(episode.keys() & agent.keys()):
        raise ProcessError(f"view() names {clash} both per episode and per agent; rename one of each pair")
    if not episode and not agent:
        raise ProcessError("view() is empty: a request needs at least one field")
    for name, leaf in (episode | agent).items():
        if not (jnp.issubdtype(leaf.dtype, jnp.integer) or leaf.dtype == jnp.bool_):
            raise ProcessError(f"view() field {name!r} is {leaf.dtype}; allowed: integers and bool (quantise floats)")
    for name, leaf in agent.items():
        if leaf.ndim < 1 or leaf.shape[0] != agents:
            raise ProcessError(
                f"view() agent field {name!r} has shape {list(leaf.shape)}; the first axis must be {agents}"
            )


def flat_fields(view: View, agents: int) -> dict[str, Array]:
    """Batched view -> {name: [B, A, ...]}, episode fields repeated for each agent."""
    fields = {
        name: jnp.broadcast_to(leaf[:, None], (leaf.shape[0], agents, *leaf.shape[1:]))
        for name, leaf in named_leaves(view.episode)
    }
    return fields | dict(named_leaves(view.agent))


def keep(run: Bool[Array, " B"], new: Any, old: Any) -> Any:
    """`new` where `run`, else `old`, leaf by leaf; a held episode keeps every bit, PRNG keys too."""
    return jax.tree.map(lambda n, o: jnp.where(run.reshape(run.shape + (1,) * (o.ndim - 1)), n, o), new, old)
