"""Measuring: programs that are timed, the machine they ran on, and the order of the runs.

Machines are shared and noisy.  So everything that is compared runs in turns inside one measurement, medians
are taken over the turns, and CPU time (of all threads of the process) stands beside wall time.
"""

import dataclasses
import os
import platform
import resource
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxcoop.agents.random import RandomPolicy
from jaxcoop.core import Env, Policy, Turn
from jaxcoop.core.batch import Batch, advance, refill, start, starts_alike, totals
from jaxcoop.core.env import state_bytes
from jaxcoop.core.rollout import GROUP, in_groups, initial

VERSIONS_OF = ("jaxcoop", "jax", "jaxlib", "numpy", "dpbench", "craftax")

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Run:
    """One timed run."""

    steps: int  # environment steps
    wall_s: float
    cpu_s: float  # of all threads of this process


class Timed(Protocol):
    """Something that can be run and timed again and again."""

    def run(self) -> Run:
        """Run once."""
        ...


@dataclasses.dataclass(frozen=True)
class Rate:
    """Medians over the runs of one program."""

    steps_per_s: float
    slowest: float  # steps/s of the slowest run
    fastest: float
    steps_per_cpu_s: float
    run_s: float
    runs: int


def rate_of(runs: list[Run]) -> Rate:
    """Medians of steps per second."""
    rates = [r.steps / r.wall_s for r in runs]
    return Rate(
        steps_per_s=median(rates),
        slowest=min(rates),
        fastest=max(rates),
        steps_per_cpu_s=median(r.steps / max(r.cpu_s, 1e-9) for r in runs),
        run_s=median(r.wall_s for r in runs),
        runs=len(runs),
    )


def in_turns(programs: dict[str, Timed], repeats: int) -> dict[str, list[Run]]:
    """Run every program once, `repeats` times over, so that they share the machine's moods."""
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in programs.items():
            runs[name].append(program.run())
    return runs


def median_ratio(runs: list[Run], others: list[Run]) -> float:
    """Median over the turns of the ratio of steps per CPU-second."""
    return median(
        (a.steps / max(a.cpu_s, 1e-9)) / (b.steps / max(b.cpu_s, 1e-9)) for a, b in zip(runs, others, strict=True)
    )


@dataclasses.dataclass(frozen=True)
class Onlooker:
    """A random policy that looks at every observation, so that none is left out as unused."""

    def init(self, key: Array) -> Array:
        """The sum of all that was seen."""
        del key
        return jnp.zeros((), jnp.float32)

    def act(self, key: Array, memory: Array, turn: Turn) -> tuple[Int[Array, " K"], Array]:
        """Random actions; the memory takes part in nothing but is carried on."""
        seen = sum((x.astype(jnp.float32).sum() for x in jax.tree.leaves(turn.obs)), memory)
        return RandomPolicy().act(key, None, turn)[0], seen


class Rollouts:
    """Continuous play of `batch` slots as one compiled program.

    Lowering and compiling are timed apart.  The number of steps of a run is chosen so that it lasts about
    `run_s` seconds.  `chunk`: steps between two refills of the pool of `pool` initial states (made inside the
    program, their cost counts); rounded up to a multiple of `env.end_every`.  Without `fresh` the pool is never
    refilled: episodes start again from states that were made before, and steps alone are timed.
    """

    def __init__(
        self,
        env: Env,
        policy: Policy,
        batch: int,
        *,
        run_s: float = 0.5,
        chunk: int = 64,
        pool: int = 4,
        seed: int = 0,
        fresh: bool = True,
    ) -> None:
        if batch < 1:
            raise ValueError(f"batch {batch}: must be 1 or more")
        self.env = env
        self.chunk = -(-chunk // env.end_every) * env.end_every
        prepare = jax.jit(partial(start, env, policy, pool=pool))
        self.batch = prepare(jax.random.key(seed), jnp.arange(batch, dtype=jnp.int32))

        def play_chunks(batch: Batch, chunks: Int[Array, ""]) -> Batch:
            def one(_: Array, batch: Batch) -> Batch:
                return advance(env, policy, refill(env, policy, batch) if fresh else batch, self.chunk)[0]

            return jax.lax.fori_loop(0, chunks, one, batch)

        began = time.perf_counter()
        lowered = jax.jit(play_chunks, donate_argnums=0).lower(self.batch, jnp.int32(1))
        self.lower_s = time.perf_counter() - began
        began = time.perf_counter()
        self.program = lowered.compile()
        self.compile_s = time.perf_counter() - began
        self.chunks = self.fitting_chunks(run_s)

    def fitting_chunks(self, run_s: float) -> int:
        """How many chunks last about `run_s` seconds."""
        self.chunks = 1
        self.run()  # the first run also pays for memory
        while (took := self.run().wall_s) < run_s / 10:
            self.chunks *= 4
        return max(1, round(self.chunks * run_s / took))

    def run(self) -> Run:
        """Play on for the fixed number of steps."""
        chunks = jnp.int32(self.chunks)
        wall, cpu = time.perf_counter(), time.process_time()
        self.batch = jax.block_until_ready(self.program(self.batch, chunks))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Run(steps=self.batch.t.shape[0] * self.chunk * self.chunks, wall_s=wall, cpu_s=cpu)

    def describe(self) -> dict[str, Any]:
        """What was run: sizes in bytes, seconds of compilation, episodes played."""
        counts = totals(self.batch)
        return {
            "lower_s": self.lower_s,
            "compile_s": self.compile_s,
            "state_bytes": state_bytes(self.env),
            "program_bytes": program_bytes(self.program),
            "mean_length": counts["steps_finished"] / max(counts["episodes"], 1),
            "reused_share": counts["reused"] / max(counts["episodes"], 1),
        }


def start_cost(env: Env, policy: Policy, repeats: int = 3) -> float | None:
    """CPU-seconds of making one initial state, many at a time; None if all starts are alike."""
    if starts_alike(env, policy):
        return None
    keys = jax.random.split(jax.random.key(0), 2 * GROUP)
    make = jax.jit(lambda keys: in_groups(lambda key: initial(env, policy, key), keys))
    jax.block_until_ready(make(keys))
    costs = []
    for _ in range(repeats):
        cpu = time.process_time()
        jax.block_until_ready(make(keys))
        costs.append((time.process_time() - cpu) / len(keys))
    return median(costs)


def program_bytes(program: Any) -> int | None:
    """Memory of a program's arguments, results and temporaries; None where the backend does not say."""
    memory = program.memory_analysis()
    if memory is None:
        return None
    used = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return used - memory.alias_size_in_bytes


def with_team(env: Env, team: int) -> Env:
    """`env` with another number of agents.

    The option is found by trying: it is the whole number that `num_agents` follows, or 0 where the number is left
    to something else.  Raises `ValueError` when no option does, or when the environment does not allow that number.
    """
    if env.num_agents == team:
        return env
    refused: ValueError | None = None
    for field in dataclasses.fields(env):  # type: ignore[arg-type]
        value = getattr(env, field.name)
        if field.init and type(value) is int and value in (env.num_agents, 0):
            try:
                other = dataclasses.replace(env, **{field.name: team})  # type: ignore[type-var]
            except ValueError as error:
                refused = error
                continue
            if other.num_agents == team:
                return other
    raise ValueError(f"{env.name}: no team of {team} agents" + (f" ({refused})" if refused else ""))


def cpu_model() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """Where and with what a measurement was made."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {"python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": cpu_model(),
        "cores": cores,
        "load": round(os.getloadavg()[0], 2),
        "devices": [d.device_kind for d in jax.devices()],
        "prng": str(jax.random.key_impl(jax.random.key(0))),
        "versions": versions,
    }


def peak_rss_bytes() -> int:
    """Largest memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """Iterate with a progress bar on a terminal's stderr; without one elsewhere."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as with_bar

    yield from with_bar(list(items), description=label, console=Console(stderr=True), transient=True)
