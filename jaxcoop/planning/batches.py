"""What the host-driven front ends share: the three jitted programs, and the exchange of rows with a planner.

Axes: B episodes, A agents, W answer words, R needy rows.  Each program is compiled once for each process and
batch size; processes compare by value, so the next chunk of a run reuses them.
"""

import concurrent.futures
import functools
import itertools
import math
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.planning.planner import Planner, PlannerUnusable
from jaxcoop.planning.process import UNANSWERED, Process, flat_fields, keep
from jaxcoop.planning.record import RecordError

T = TypeVar("T")

WAIT_TURN = 0.2  # seconds a wait for the planner lasts before it looks for signals
NOTE_EVERY = 2.0  # seconds without news after which a waiting rollout says what it waits for
_LEAST_ROWS = 64  # gathers are padded to powers of two from here on, so that few shapes compile


@dataclass(frozen=True)
class Progress:
    """State of a rollout after one round with the planner, or in the midst of a wait for it."""

    rounds: int  # times answers were applied
    answered: int  # rows answered so far
    done: int  # episodes that are known to have ended
    episodes: int
    note: str | None = None  # while it waits: what for, where the planner says so


OnRound = Callable[[Progress], None]


class Reporter:
    """Counts the rounds of a rollout and tells `on_round` about each, and about waits every two seconds."""

    def __init__(self, on_round: OnRound | None, planner: Planner, episodes: int) -> None:
        self._on_round, self._episodes = on_round, episodes
        self._note: Callable[[], str | None] = getattr(planner, "waiting_note", lambda: None)
        self._told = time.monotonic()
        self.rounds = self.answered = self.done = 0

    def tell(self, note: str | None = None) -> None:
        """Report the counters as they are."""
        self._told = time.monotonic()
        if self._on_round is not None:
            self._on_round(Progress(self.rounds, self.answered, self.done, self._episodes, note))

    def wait(self) -> None:
        """To be called in every turn of a wait."""
        if time.monotonic() - self._told >= NOTE_EVERY:
            self.tell(self._note())


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def advance_states(
    process: Process, states: Any, quota: Int[Array, ""], chunk: Int[Array, ""]
) -> tuple[Any, Bool[Array, "B A"], Bool[Array, " B"]]:
    """Advance every episode that can, until `quota` episodes wait, none can, or `chunk` steps were made.

    Returns the states, who needs an answer [B, A], and which episodes are done [B].  A waiting or finished
    episode keeps every bit of its state.
    """
    need_of, done_of = jax.vmap(process.need), jax.vmap(process.done)

    def status(s: Any) -> tuple[Array, Array]:
        done = done_of(s)
        return need_of(s) & ~done[:, None], done

    def go(carry: tuple[Any, Array, Array, Array]) -> Array:
        _, need, done, i = carry
        waiting = need.any(1)
        return (~waiting & ~done).any() & (waiting.sum() < quota) & (i < chunk)

    def body(carry: tuple[Any, Array, Array, Array]) -> tuple[Any, Array, Array, Array]:
        s, need, done, i = carry
        s = keep(~need.any(1) & ~done, jax.vmap(process.advance)(s), s)
        return (s, *status(s), i + 1)

    states, need, done, _ = jax.lax.while_loop(go, body, (states, *status(states), jnp.int32(0)))
    return states, need, done


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
def apply_answers(process: Process, states: Any, answers: Int[Array, "B A W"], answered: Bool[Array, "B A"]) -> Any:
    """Write the answers; episodes without an answered row keep every bit."""
    return keep(answered.any(1), jax.vmap(process.apply)(states, answers, answered), states)


@functools.partial(jax.jit, static_argnums=0)
def _gather_rows(process: Process, states: Any, index: Int[Array, " R"]) -> dict[str, Array]:
    fields = flat_fields(jax.vmap(process.view)(states), process.num_agents)
    return {name: x[index // process.num_agents, index % process.num_agents] for name, x in fields.items()}


@jax.jit
def _take(states: Any, index: Int[Array, " B"]) -> Any:
    return jax.tree.map(lambda x: x[index], states)


@jax.jit
def _concatenate(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *parts)


def pull_rows(process: Process, states: Any, index: np.ndarray) -> dict[str, np.ndarray]:
    """View fields of the flat (episode * A + agent) pairs `index`, [R, ...] each, gathered on the device."""
    size = max(_LEAST_ROWS, 1 << (len(index) - 1).bit_length())
    padded = np.zeros(size, np.int32)
    padded[: len(index)] = index
    rows = jax.device_get(_gather_rows(process, states, padded))
    return {name: np.asarray(x)[: len(index)] for name, x in rows.items()}


def devices_of(states: Any) -> list[Any]:
    """Devices that hold the batch, by id.  States spread over several processes: ValueError."""
    leaf = jax.tree.leaves(states)[0]
    if not isinstance(leaf, jax.Array):
        return [jax.devices()[0]]
    if not leaf.is_fully_addressable:
        raise ValueError(
            "states are spread over several processes; give each process its own devices and its own episodes"
        )
    return sorted(leaf.devices(), key=lambda d: d.id)


def _moved(states: Any, device: Any) -> Any:
    # Given a bare device, `device_put` would keep the mesh axes in the type of the array.
    return jax.device_put(states, jax.sharding.SingleDeviceSharding(device))


def split(states: Any, sizes: list[int], devices: list[Any]) -> list[Any]:
    """Consecutive parts of the batch as new arrays, dealt to `devices` in turn (the caller's arrays stay
    valid).
    """
    if len(devices) > 1:  # off the mesh: indexing there is refused for meshes with explicit axes
        states = _moved(states, devices[0])
    bounds = np.cumsum([0, *sizes])
    parts = [_take(states, np.arange(a, b, dtype=np.int32)) for a, b in itertools.pairwise(bounds)]
    if len(devices) == 1:
        return parts
    return [_moved(part, devices[i % len(devices)]) for i, part in enumerate(parts)]


def join(parts: list[Any], like: Any, devices: list[Any]) -> Any:
    """The batch again, laid out as `like`."""
    if len(devices) == 1:
        return parts[0] if len(parts) == 1 else _concatenate(parts)
    whole = _concatenate([_moved(part, devices[0]) for part in parts])
    return jax.tree.map(lambda x, y: jax.device_put(x, y.sharding), whole, like)


def next_landed(landed: "queue.SimpleQueue[T]", timeout: float | None, reporter: Reporter) -> T:
    """The next item; `PlannerUnusable` after `timeout` seconds of silence.

    Waits in short turns: a Ctrl-C that the system delivers to another thread does not end a wait by itself.
    """
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        left = math.inf if end is None else end - time.monotonic()
        try:
            return landed.get(timeout=max(0.0, min(WAIT_TURN, left)))
        except queue.Empty:
            if left <= 0:
                raise PlannerUnusable(
                    f"no answer from the planner within {timeout} s; check the server or raise timeout"
                ) from None
        reporter.wait()


def answers_of(future: "concurrent.futures.Future[np.ndarray]") -> np.ndarray:
    """Words of a finished future; `PlannerUnusable` if the planner was closed or its record broke."""
    try:
        return future.result(0)
    except concurrent.futures.CancelledError:
        raise PlannerUnusable("the planner was closed while episodes waited for it") from None
    except RecordError as err:
        raise PlannerUnusable(str(err)) from None


def check_usable(planner: Planner) -> None:
    """Raise `PlannerUnusable` once the planner has given up."""
    if planner.unusable:
        raise PlannerUnusable(planner.unusable)


def scatter(shape: tuple[int, int, int], index: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of words at flat pairs `index` -> answers [B, A, W] and the mask answered [B, A]."""
    answers = np.full(shape, UNANSWERED, np.int32)
    answers.reshape(-1, shape[2])[index] = words
    answered = np.zeros(shape[0] * shape[1], np.bool_)
    answered[index] = True
    return answers, answered.reshape(shape[:2])


def check_options(groups: int, quota: int | None, timeout: float | None) -> None:
    """Refuse schedules that cannot run; raises ValueError."""
    if groups < 1:
        raise ValueError(f"groups is {groups}; allowed: at least 1")
    if quota is not None and quota < 1:
        raise ValueError(f"quota is {quota}; allowed: at least 1, or None")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout is {timeout} s; allowed: above 0, or None")


def stuck(process: Process, count: int) -> RuntimeError:
    """The error for episodes that outlive `max_rounds`."""
    return RuntimeError(
        f"{count} episodes of {type(process).__name__} are not done after "
        f"max_rounds={process.max_rounds} rounds; "
        "raise max_rounds, or mend need(), which must be False once answers were applied"
    )
