"""The in-graph front end: a planner called from inside a compiled rollout.

One host call serves all episodes and agents of a step; a step without a boundary makes none.  Meant for fast
local planners, replays and single-program rollouts; every step waits for its slowest answer, so use segments
for models. Design: sections 2 to 5 and 7.1 of docs/concepts/planning.md.

Rules behind the code: `io_callback(ordered=False)` only (a pure callback may be dropped, hoisted or repeated,
an ordered one poisons the process after an error); numpy inside; nothing may raise there, since the program
and its donated state would be lost; `need` carries liveness, because batched loops run finished lanes too.
"""

import functools
import itertools
import math
import os
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental import io_callback
from jax.sharding import AxisType, Mesh, NamedSharding
from jaxtyping import Array, Bool, Int

from jaxcoop.planning.batches import (
    WAIT_TURN,
    OnRound,
    Reporter,
    check_options,
    check_usable,
    devices_of,
    stuck,
)
from jaxcoop.planning.planner import Planner, checked_words
from jaxcoop.planning.process import UNANSWERED, Process, Status, check_process, flat_fields, keep

_TIMEOUT_FLAGS = (
    "xla_cpu_collective_call_warn_stuck_timeout_seconds",
    "xla_cpu_collective_call_terminate_timeout_seconds",
)


class Caller:
    """The host side of a callback: asks the planner about the needy rows, and never raises.

    `failure` keeps the first exception; rows get status FALLBACK from then on.  Counts host calls, and rows
    seen and answered.
    """

    def __init__(self, planner: Planner, words: int, timeout: float | None = None) -> None:
        self._planner, self._words, self._timeout = planner, words, timeout
        self._lock = threading.Lock()  # several devices call at the same time
        self.calls = self.rows = self.answered = 0
        self.failure: BaseException | None = None

    def __call__(self, need: Any, fields: Any) -> np.ndarray:
        """need bool[...], fields {name: [..., *]} -> int32[..., W]."""
        need = np.asarray(need)
        out = np.full((need.size, self._words), UNANSWERED, np.int32)
        index = np.flatnonzero(need)
        if len(index):
            with self._lock:
                self.calls, self.rows = self.calls + 1, self.rows + len(index)
            arrays = {name: np.asarray(x) for name, x in fields.items()}
            rows = {name: x.reshape(need.size, *x.shape[need.ndim :])[index] for name, x in arrays.items()}
            out[index] = self._words_of(rows, len(index))
            with self._lock:
                self.answered += len(index)
        return out.reshape(*need.shape, self._words)

    def _words_of(self, rows: dict[str, np.ndarray], count: int) -> np.ndarray:
        fallback = np.full((count, self._words), UNANSWERED, np.int32)
        fallback[:, -1] = Status.FALLBACK
        if self.failure is not None:
            return fallback
        try:
            words = self._result(self._planner.submit(rows))
            return checked_words(words, count, self._words, "the planner")
        except BaseException as err:  # raised again outside the program, where it does no harm
            self.failure = self.failure or err
            return fallback

    def _result(self, future: "Future[np.ndarray]") -> np.ndarray:
        end = math.inf if self._timeout is None else time.monotonic() + self._timeout
        while not future.done() and self.failure is None and (left := end - time.monotonic()) > 0:
            wait([future], min(WAIT_TURN, left))  # in turns: `failure` may be set from outside
        return future.result(0)

    def check(self) -> None:
        """Raise what went wrong inside, now that the program has ended."""
        if isinstance(self.failure, TimeoutError):
            raise TimeoutError(f"no answer from the planner within {self._timeout} s; check it or raise timeout")
        if self.failure is not None:
            raise self.failure
        check_usable(self._planner)


def make_decide(planner: Planner, words: int) -> tuple[Callable[[Any, Any], Array], Caller]:
    """`decide(need: bool[...], fields: {name: [..., *]}) -> int32[..., words]`, and its host side.

    Call `decide` unconditionally inside the step function, under any depth of `vmap`, with `need & ~done`;
    rows not needed get -1.  After the rollout call `caller.check()`.  Make it once: each new `decide`
    compiles anew. Not for a per-episode `cond` or `while_loop`.
    """
    caller = Caller(planner, words)

    @custom_vmap
    def decide(need: Array, fields: Any) -> Array:
        return _gated(caller, need, lambda: fields, words)

    @decide.def_vmap
    def _lift(size: int, batched: Any, need: Array, fields: Any) -> tuple[Array, bool]:
        def lift(x: Array, has_axis: bool) -> Array:
            return x if has_axis else jnp.broadcast_to(x, (size, *x.shape))

        return decide(lift(need, batched[0]), jax.tree.map(lift, fields, batched[1])), True

    return decide, caller


def _gated(host: Callable[..., np.ndarray], need: Array, fields: Callable[[], Any], words: int, *extra: Array) -> Array:
    """The host's answer if anybody needs one, else -1 everywhere without a host call."""
    shape = jax.ShapeDtypeStruct((*need.shape, words), jnp.int32)

    def ask() -> Array:
        return io_callback(host, shape, *extra, need, jax.lax.stop_gradient(fields()), ordered=False)

    return jax.lax.cond(need.any(), ask, lambda: jnp.full(shape.shape, UNANSWERED, jnp.int32))


# A compiled program must not hold a planner, or each planner would compile its own: it holds a ticket
# instead.
_TICKETS: dict[int, Callable[[Any, Any], np.ndarray]] = {}
_next_ticket = itertools.count()


def _host(ticket: Any, need: Any, fields: Any) -> np.ndarray:
    return _TICKETS[int(ticket)](need, fields)


@functools.partial(jax.jit, static_argnums=0)
def _rollout(process: Process, states: Any, ticket: Int[Array, ""]) -> tuple[Any, Bool[Array, " B"]]:
    def status(s: Any) -> tuple[Array, Array]:
        done = jax.vmap(process.done)(s)
        return jax.vmap(process.need)(s) & ~done[:, None], done

    def body(carry: tuple[Any, Array, Array, Array]) -> tuple[Any, Array, Array, Array]:
        s, need, _, i = carry
        view = functools.partial(jax.vmap(process.view), s)
        answers = _gated(_host, need, lambda: flat_fields(view(), process.num_agents), process.answer_words, ticket)
        s = keep(need.any(1), jax.vmap(process.apply)(s, answers, need), s)
        need, done = status(s)
        s = keep(~need.any(1) & ~done, jax.vmap(process.advance)(s), s)
        return (s, *status(s), i + 1)

    def go(carry: tuple[Any, Array, Array, Array]) -> Array:
        return (~carry[2]).any() & (carry[3] < process.max_rounds)

    # The loop test spans the batch, so no lane of it is ever run for another's sake.
    states, _, done, _ = jax.lax.while_loop(go, body, (states, *status(states), jnp.int32(0)))
    return states, done


def run_in_graph(
    process: Process,
    planner: Planner,
    states: Any,
    *,
    groups: int = 2,
    quota: int | None = None,
    timeout: float | None = None,
    on_round: OnRound | None = None,
) -> Any:
    """Run the episodes `states` [B, ...] to their end in one program; return the final states [B, ...].

    `timeout`: seconds for the answers of one step.  `groups` and `quota` are for the other front ends and
    have no effect; `on_round` is called every two seconds and at the end.  States on several CPU devices are
    refused unless XLA's collective time-outs are raised, because XLA ends the whole process when an answer
    takes longer.  Context managers of jax that hold for one thread, such as `jax.enable_x64`, do not reach the
    program.  Raises `PlannerUnusable`, or whatever the planner raised, after the program has ended; `states` stay
    valid.
    """
    check_options(groups, quota, timeout)
    episodes = check_process(process, states)
    devices = devices_of(states)
    _check_devices(devices)
    reporter = Reporter(on_round, planner, episodes)
    caller, ticket = Caller(planner, process.answer_words, timeout), next(_next_ticket) % 2**31
    _TICKETS[ticket] = caller
    try:
        final, done = _attended(caller, process, jax.tree.map(_with_auto_axes, states), np.int32(ticket), reporter)
    finally:
        del _TICKETS[ticket]
    caller.check()
    if not done.all():
        raise stuck(process, int((~done).sum()))
    reporter.rounds, reporter.answered, reporter.done = caller.calls, caller.rows, episodes
    reporter.tell()
    if len(devices) == 1:
        return final
    return jax.tree.map(lambda x, y: jax.device_put(x, y.sharding), final, states)


def _attended(
    caller: Caller, process: Process, states: Any, ticket: np.int32, reporter: Reporter
) -> tuple[Any, np.ndarray]:
    """Run the program on a thread of its own, so that Ctrl-C reaches this one, which can end it early.

    XLA may call the host from one of its own threads; the calling thread then sits in compiled code, deaf to
    signals, until the last answer of the last step.
    """

    def program() -> tuple[Any, np.ndarray]:
        final, done = _rollout(process, states, ticket)
        return final, np.asarray(done)

    with ThreadPoolExecutor(1, thread_name_prefix="planner-rollout") as pool:
        running = pool.submit(program)
        try:
            while not running.done():
                wait([running], WAIT_TURN)
                reporter.rounds, reporter.answered = caller.calls, caller.answered
                reporter.wait()
        except BaseException as err:
            caller.failure = err  # every further row falls back at once, and the program ends
            raise
        return running.result()


def _with_auto_axes(x: Any) -> Any:
    """Meshes with explicit axes would refuse the answer of a callback, which has none."""
    if not isinstance(getattr(x, "sharding", None), NamedSharding):
        return x
    mesh = x.sharding.mesh
    auto = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    return jax.device_put(x, NamedSharding(auto, x.sharding.spec))


def _check_devices(devices: list[Any]) -> None:
    if len(devices) == 1:
        return
    if devices[0].platform != "cpu":
        warnings.warn(
            "a planner called inside a program on several devices makes all of them wait; prefer segments",
            stacklevel=3,
        )
        return
    if missing := [flag for flag in _TIMEOUT_FLAGS if flag not in os.environ.get("XLA_FLAGS", "")]:
        flags = " ".join(f"--{flag}=3600" for flag in missing)
        raise ValueError(
            f"the states lie on {len(devices)} CPU devices, where XLA ends the process when an answer takes "
            f'about a minute; use the segments front end, or set XLA_FLAGS="{flags}" before jax starts'
        )
