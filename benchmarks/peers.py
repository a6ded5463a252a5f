"""Reference implementations, measured in the same run as ours.

They are optional packages (`pip install 'jaxcoop[peers]'`), imported here and only when asked for.
"""

import random
import time
from collections.abc import Callable
from typing import Any

from jaxcoop.benchmarks.harness import Run, Timed
from jaxcoop.core import Env

PREPARED = 1000
"""Random team decisions made beforehand and used over and over."""


class DiningReference:
    """The bare step of dpbench: decisions prepared beforehand, no prompts, no graph.

    A new table after a circular wait or at the time limit, as in the package's runner.  Steps are counted in
    our unit: a whole round of the sequential mode is as many steps as it has turns.
    """

    def __init__(self, env: Any, run_s: float) -> None:
        try:
            from dpbench.core import environment, types  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise ImportError(
                f"the reference package dpbench cannot be imported ({error}); pip install 'jaxcoop[peers]'"
            ) from error
        self.rules = environment
        self.mode, self.team, self.limit = env.mode, env.philosophers, env.limit // env.end_every
        self.unit_steps = env.end_every
        self.run_s = run_s
        pick = random.Random(0)
        self.decisions = [
            [types.AgentDecision(i, pick.choice(list(types.Action))) for i in range(self.team)] for _ in range(PREPARED)
        ]

    def run(self) -> Run:
        """Step for about `run_s` seconds."""
        step, fresh, mode = self.rules.step, self.rules.create_initial_state, self.mode
        steps, t, table = 0, 0, fresh(self.team)
        wall, cpu = time.perf_counter(), time.process_time()
        deadline = wall + self.run_s
        while time.perf_counter() < deadline:
            for decisions in self.decisions[: max(1, PREPARED // self.team)]:
                result = step(table, decisions, mode)
                table, t, steps = result.new_state, t + 1, steps + 1
                if result.deadlock or t >= self.limit:
                    table, t = fresh(self.team), 0
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Run(steps=steps * self.unit_steps, wall_s=wall, cpu_s=cpu)


PEERS: dict[str, Callable[[Any, float], Timed]] = {"dining": DiningReference}
"""Environment name -> its reference implementation, as (environment, seconds of a run) -> what is timed."""


def reference_of(env: Env, run_s: float) -> Timed:
    """The reference implementation of an environment, ready to be timed.

    Raises `ValueError` if there is none to measure and `ImportError`, in one line, if its package is missing.
    """
    if env.name not in PEERS:
        raise ValueError(f"{env.name} has no reference package to measure; those of {', '.join(PEERS)} have")
    return PEERS[env.name](env, run_s)
