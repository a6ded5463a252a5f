"""Cost of asking the host: the front ends with a planner that answers at once, and the clients behind a hub.

Axes: B episodes, A agents, R rows asked for.  `front_ends` shows what a decision costs when thinking is free,
beside the same episodes with the answers computed on the device; `clients` what a call costs, against a
scripted server in a process of its own.
"""

import contextlib
import dataclasses
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.benchmarks.harness import Run, in_turns, machine, rate_of, track
from jaxcoop.planning import FRONT_ENDS, FunctionPlanner, Hub, Message, Process, Request, Status, View
from jaxcoop.planning.clients import Client, DirectClient, FunctionClient, LitellmClient

WORDS = 2  # steps until the next question, status
LONGEST = 6
EPISODES = (64, 1024)
CALLS = 1000
LIMIT = 128  # calls at a time, the hub's default
MAX_LATENCY_MS = 60_000


@struct.dataclass
class ErrandState:
    """One episode of errands."""

    seed: Int[Array, ""]  # episode number
    t: Int[Array, ""]
    left: Int[Array, " A"]  # steps left of each agent's errand; 0 asks for the next


@dataclasses.dataclass(frozen=True)
class Errands(Process):
    """A agents run errands of 1 to 6 steps; the planner says how long the next one takes."""

    agents: int = 5
    horizon: int = 60

    @property
    def num_agents(self) -> int:
        """A."""
        return self.agents

    @property
    def answer_words(self) -> int:
        """Length of the errand, status."""
        return WORDS

    @property
    def max_rounds(self) -> int:
        """Somebody may ask at every step."""
        return self.horizon + 1

    def start(self, seed: Int[Array, ""]) -> ErrandState:
        """Everybody asks at once."""
        return ErrandState(seed, jnp.zeros((), jnp.int32), jnp.zeros((self.agents,), jnp.int32))

    def need(self, state: ErrandState) -> Bool[Array, " A"]:
        """Who has no errand."""
        return (state.left == 0) & ~self.done(state)

    def view(self, state: ErrandState) -> View:
        """Episode, clock and agent."""
        return View(
            episode={"seed": state.seed, "t": state.t},
            agent={"agent": jnp.arange(self.agents, dtype=jnp.int32)},
        )

    def apply(self, state: ErrandState, answers: Int[Array, "A W"], answered: Bool[Array, " A"]) -> ErrandState:
        """Begin the errands."""
        return dataclasses.replace(state, left=jnp.where(answered, answers[:, 0], state.left))

    def advance(self, state: ErrandState) -> ErrandState:
        """One step of everybody's errand."""
        return dataclasses.replace(state, t=state.t + 1, left=jnp.maximum(state.left - 1, 0))

    def done(self, state: ErrandState) -> Bool[Array, ""]:
        """The clock has run out."""
        return state.t >= self.horizon


def errand_length(rows: Any) -> Any:
    """1 to 6 steps from (seed, t, agent); the same integers in numpy and on the device."""
    return (rows["seed"] * 7919 + rows["t"] * 31 + rows["agent"] * 17) % LONGEST + 1


def answer_at_once(rows: dict[str, np.ndarray]) -> np.ndarray:
    """Answer words [R, 2] of the instant planner."""
    length = errand_length(rows)
    return np.stack([length, np.full_like(length, Status.OK)], -1).astype(np.int32)


def on_device(process: Errands, states: ErrandState) -> ErrandState:
    """The same episodes without a host: answers are computed in the program."""

    def one(state: ErrandState, _: Any) -> tuple[ErrandState, None]:
        view = process.view(state)
        length = errand_length({**view.episode, **view.agent})
        answers = jnp.stack([length, jnp.zeros_like(length)], -1)
        return process.advance(process.apply(state, answers, process.need(state))), None

    return jax.lax.scan(one, states, None, length=process.horizon)[0]


@dataclasses.dataclass
class Decisions:
    """Runs of whole batches; what is counted is decisions, not steps."""

    play: Callable[[], Any]
    decisions: int

    def run(self) -> Run:
        """Play the batch once."""
        wall, cpu = time.perf_counter(), time.process_time()
        jax.block_until_ready(self.play())
        return Run(self.decisions, time.perf_counter() - wall, time.process_time() - cpu)


def front_ends(
    *, episodes: Sequence[int] = EPISODES, agents: int = 5, horizon: int = 60, repeats: int = 5
) -> dict[str, Any]:
    """Cost of a decision by front end and batch size, with a planner that takes no time.

    `times_device`: CPU per decision as a multiple of the program without a host.  Raises `RuntimeError` if a
    front end ends in other states than that program.
    """
    process = Errands(agents, horizon)
    device = jax.jit(jax.vmap(lambda s: on_device(process, s)))
    rows = []
    for batch in track(episodes, "front ends"):
        states = jax.vmap(process.start)(jnp.arange(batch, dtype=jnp.int32))
        asked = 0

        def counted(rows: dict[str, np.ndarray]) -> np.ndarray:
            nonlocal asked
            asked += len(rows["seed"])
            return answer_at_once(rows)

        expected = device(states)
        counting, plain = FunctionPlanner(counted, WORDS), FunctionPlanner(answer_at_once, WORDS)
        for name, run in FRONT_ENDS.items():  # compiles, checks, counts
            asked = 0
            final = run(process, counting, states)
            if not all(jax.tree.leaves(jax.tree.map(np.array_equal, final, expected))):
                raise RuntimeError(f"front end {name!r} ends in other states than the program without a host")
        programs = {"device": Decisions(lambda s=states: device(s), asked)}
        for name, run in FRONT_ENDS.items():
            programs[name] = Decisions(lambda run=run, s=states, p=plain: run(process, p, s), asked)
        runs = in_turns(dict(programs), repeats)
        bare = rate_of(runs["device"])
        for name in programs:
            rate = rate_of(runs[name])
            rows.append(
                {
                    "front_end": name,
                    "episodes": batch,
                    "decisions": asked,
                    "decisions_per_s": rate.steps_per_s,
                    "cpu_us_per_decision": 1e6 / rate.steps_per_cpu_s,
                    "times_device": bare.steps_per_cpu_s / rate.steps_per_cpu_s,
                    "run_s": rate.run_s,
                }
            )
    return {"process": repr(process), "machine": machine(), "rows": rows}


def checked_latency(latency_ms: float) -> float:
    """`latency_ms` itself; raises `ValueError` unless it is from 0 to a minute."""
    if not 0 <= latency_ms <= MAX_LATENCY_MS:
        raise ValueError(f"latency_ms {latency_ms:g}: must be from 0 to {MAX_LATENCY_MS:,}")
    return latency_ms


@contextlib.contextmanager
def server(latency_ms: float = 0.0) -> Iterator[str]:
    """Address of a scripted chat server in a process of its own, so that its CPU time is not ours."""
    command = [
        sys.executable,
        "-m",
        "jaxcoop.benchmarks.loopback",
        "--port",
        "0",
        "--latency",
        str(checked_latency(latency_ms)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line.startswith("listening on "):
            raise RuntimeError(f"the scripted server did not start; it said {line!r}")
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(10)
        if process.stdout:
            process.stdout.close()


def client_of(name: str, url: str) -> Client:
    """A client by name, pointed at the server; `function` answers by itself."""
    if name == "function":
        return FunctionClient(lambda request: "ok")
    if name == "direct":
        return DirectClient("scripted", url)
    return LitellmClient("openai/scripted", api_base=url, api_key="none")


def clients(
    *,
    names: Sequence[str] = ("function", "direct", "litellm"),
    calls: int = CALLS,
    limit: int = LIMIT,
    latency_ms: float = 0.0,
) -> dict[str, Any]:
    """Cost of a call through the hub by client: calls per second and our CPU time per call.

    All requests differ, none is recorded before, the record is in memory.  A few calls come first and are not
    counted (imports, connections).  Raises `RuntimeError` if a call is not answered.
    """
    rows = []
    with server(latency_ms) as url:
        for name in track(names, "clients"):
            with Hub(client_of(name, url), limit=limit) as hub:
                ask(hub, name, range(-min(calls, 2 * limit), 0))
                wall, cpu = time.perf_counter(), time.process_time()
                ask(hub, name, range(calls))
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rows.append(
                {
                    "client": name,
                    "calls": calls,
                    "limit": limit,
                    "latency_ms": latency_ms,
                    "calls_per_s": calls / wall,
                    "cpu_ms_per_call": 1e3 * cpu / calls,
                }
            )
    return {"machine": machine(), "rows": rows}


def ask(hub: Hub, name: str, numbers: range) -> None:
    """Send one request for each number and wait for all answers."""
    requests = [Request((Message("user", f"errand {number}"),)) for number in numbers]
    failed = sum(answer.reply is None for answer in hub.submit(requests).result())
    if failed:
        raise RuntimeError(f"client {name!r}: {failed} of {len(requests)} calls failed ({hub.unusable or 'no reason'})")
