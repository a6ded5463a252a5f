"""Other implementations, measured in the same run as ours, and rates that the literature's code had elsewhere.

Some are optional packages (`pip install 'jaxcoop[peers]'`), imported here and only when asked for; the plain
simulators of `benchmarks.plain` stand in for published code that is no package.
"""

import dataclasses
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from jaxcoop.benchmarks.harness import Run, Timed
from jaxcoop.benchmarks.peers_jax import Craftax, JaxMARL, missing
from jaxcoop.core import Env

PREPARED = 1000
"""Random team decisions made beforehand and used over and over."""

WORLDS = 8
"""Generated worlds in which the plain MA-Crafter starts its episodes, in turns."""


class DiningReference:
    """The bare step of dpbench: decisions prepared beforehand, no prompts, no graph.

    A new table after a circular wait or at the time limit, as in the package's runner.  Steps are counted in
    our unit: a whole round of the sequential mode is as many steps as it has turns.
    """

    def __init__(self, env: Any, run_s: float) -> None:
        try:
            from dpbench.core import environment, types  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise missing("dpbench", error) from error
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
        while steps == 0 or time.perf_counter() < wall + self.run_s:
            for decisions in self.decisions[: max(1, PREPARED // self.team)]:
                result = step(table, decisions, mode)
                table, t, steps = result.new_state, t + 1, steps + 1
                if result.deadlock or t >= self.limit:
                    table, t = fresh(self.team), 0
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Run(steps=steps * self.unit_steps, wall_s=wall, cpu_s=cpu)


class Plain:
    """One episode after the other in plain Python, with random actions prepared beforehand; resets count.

    `begin` starts an episode; `step` takes a joint action and says whether the episode has ended.
    """

    def __init__(
        self, env: Env, run_s: float, begin: Callable[[], None], step: Callable[[Sequence[int]], bool]
    ) -> None:
        self.begin, self.step, self.run_s = begin, step, run_s
        pick = random.Random(0)
        joint = [[pick.randrange(env.num_actions) for _ in range(env.num_agents)] for _ in range(PREPARED)]
        self.joint, self.between_looks = cycle(joint), max(1, PREPARED // (10 * env.num_agents))
        begin()

    def run(self) -> Run:
        """Play on for about `run_s` seconds."""
        begin, step, joint, count, steps = self.begin, self.step, self.joint, self.between_looks, 0
        wall, cpu = time.perf_counter(), time.process_time()
        while steps == 0 or time.perf_counter() < wall + self.run_s:
            for actions in islice(joint, count):
                if step(actions):
                    begin()
            steps += count
        return Run(steps=steps, wall_s=time.perf_counter() - wall, cpu_s=time.process_time() - cpu)


def plain_cube(env: Any, run_s: float) -> Plain:
    """The plain CUBE with the same options; raises `ValueError` where it lacks one of them."""
    from jaxcoop.benchmarks.plain.cube import PlainCube

    if env.physics != "coop2":
        raise ValueError(f"physics {env.physics!r}: the plain CUBE knows only 'coop2'")
    specs = [tuple(map(int, entry.split(":"))) for entry in env.blocks.split(",")]
    cube = PlainCube(
        env.side,
        [weight for weight, count in specs for _ in range(count)],
        env.num_agents,
        max_steps=env.max_steps,
        step_cost=env.step_cost,
        deliver_reward=env.deliver_reward,
        revision=env.revision,
        conflict=env.conflict,
    )

    def step(actions: Sequence[int]) -> bool:
        result = cube.step(actions)
        return result.terminated or result.truncated

    return Plain(env, run_s, partial(cube.reset, random.Random(0)), step)


class CrafterEpisodes:
    """Episodes of the plain MA-Crafter in worlds that the environment has generated, with its options."""

    def __init__(self, env: Any) -> None:
        from jaxcoop.benchmarks.plain import macrafter, macrafter_codes

        if env.bag:
            raise ValueError(f"bag {env.bag}: the plain MA-Crafter knows only 0, no bag")
        self.env = env
        keys = jax.vmap(jax.random.key)(np.arange(WORLDS))
        starts = jax.device_get(jax.jit(jax.vmap(env.reset))(keys))
        if (starts.x < 0).any():
            raise ValueError(
                f"{env.num_agents} agents: some find no grass to start on in {env.width} x {env.height} cells"
            )
        self.starts = cycle([jax.tree.map(lambda leaf, k=k: leaf[k], starts) for k in range(WORLDS)])
        self.begin_at = partial(
            macrafter.PlainCrafter,
            tasks=macrafter_codes.tasks_of(env.requirements),
            distance=env.distance,
            vitals=env.vitals,
            balance=env.balance,
            team_score=env.team_score,
            terminate_on_diamond=env.terminate_on_diamond,
            rng=random.Random(0),
        )

    def begin(self) -> None:
        """Start in the next world."""
        start = next(self.starts)
        cows = [(x, y) if x >= 0 else None for x, y in zip(start.cow_x.tolist(), start.cow_y.tolist())]
        players = list(zip(start.x.tolist(), start.y.tolist()))
        self.game = self.begin_at(start.material & 15, cows, players)  # the other bits tell no material

    def step(self, actions: Sequence[int]) -> bool:
        """One step; whether the episode has ended."""
        result = self.game.step(actions)
        died = self.env.end_on_death and any(result.truncated)
        return died or any(result.terminated) or self.game.steps >= self.env.max_steps


def plain_crafter(env: Any, run_s: float) -> Plain:
    """The plain MA-Crafter with the same options; raises `ValueError` where it lacks one of them."""
    episodes = CrafterEpisodes(env)
    return Plain(env, run_s, episodes.begin, episodes.step)


@dataclasses.dataclass(frozen=True)
class Peer:
    """Something that an environment is measured beside."""

    label: str
    unit: str  # what it counts
    make: Callable[..., Timed]  # of the environment and the seconds of a run; JAX programs take `observe` too
    observes: bool = False  # whether it can make observations


PEERS: Mapping[str, Mapping[str, Peer]] = MappingProxyType(
    {
        "dining": {"reference": Peer("reference package", "bare steps", DiningReference)},
        "cube": {"plain": Peer("plain Python", "steps", plain_cube)},
        "macrafter": {
            "plain": Peer("plain Python", "steps", plain_crafter),
            "craftax": Peer("Craftax-Classic-Symbolic, one agent", "steps", Craftax, observes=True),
        },
        "burrito": {"jaxmarl": Peer("JaxMARL's Overcooked, counter_circuit", "steps", JaxMARL, observes=True)},
        "overcooked": {"jaxmarl": Peer("JaxMARL's Overcooked", "steps", JaxMARL, observes=True)},
    }
)
"""Environment name -> what it is measured beside, by a short name."""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A rate that published code had on another machine: a landmark, no comparison."""

    steps_per_cpu_s: float
    source: str


CUBE_SOURCE = (
    "dynamics of the published CUBE code, 15x15, paper blocks, uniform random actions, one Python process; "
    "recorded on another machine (2 virtual cores, AMD EPYC, busy): {low:,} to {high:,} steps per CPU-second"
)
CRAFTER_SOURCE = (
    "dynamics of the published MA-Crafter code (no symbolic snapshot, no task states), 64x64, uniform random actions, "
    "one Python process; recorded on another machine (2 cores, x86-64, busy)"
)
BURRITO_SOURCE = (
    "dynamics of the published Burrito code, uniform random actions, episodes of 400 steps, one Python process; "
    "recorded on another machine (2 cores, AMD EPYC, busy)"
)
BURRITO_RECORDED = {"open": 739, "ring": 695, "fc": 668, "hallway": 745}
CUBE_RECORDED = {3: (11_458, 11_558), 6: (10_101, 10_598)}  # agents -> range
CRAFTER_RECORDED = {3: 3553, 6: 2370, 100: 310}


def peers_of(env: Env, run_s: float, observe: bool = False) -> dict[str, Timed]:
    """Everything that an environment is measured beside, ready to be timed; with observations where it can.

    Raises `ValueError` if there is nothing and `ImportError`, in one line, if a package is missing.
    """
    if env.name not in PEERS:
        raise ValueError(f"{env.name} has no reference package to measure; those of {', '.join(PEERS)} have")
    return {
        name: peer.make(env, run_s, **({"observe": observe} if peer.observes else {}))
        for name, peer in PEERS[env.name].items()
    }


def recorded_of(env: Any) -> Recorded | None:
    """What the published code did elsewhere with this configuration; None where nothing is known."""
    if env.name == "cube" and (env.side, env.blocks) == (15, "1:3,2:3,3:3") and env.num_agents in CUBE_RECORDED:
        low, high = CUBE_RECORDED[env.num_agents]
        return Recorded((low + high) / 2, CUBE_SOURCE.format(low=low, high=high))
    if env.name == "macrafter" and (env.width, env.height) == (64, 64) and env.num_agents in CRAFTER_RECORDED:
        return Recorded(CRAFTER_RECORDED[env.num_agents], CRAFTER_SOURCE)
    if env.name == "burrito" and env.layout in BURRITO_RECORDED and env.num_agents == 2:
        return Recorded(BURRITO_RECORDED[env.layout], BURRITO_SOURCE)
    return None
