"""Speed of teams that think: whole episodes with scripted planners, and where their time goes.

One round of a batch settles the minds, lets the planner answer, or makes the primitive step
(`jaxcoop.cognition.play`); here the host runs the same rounds one by one to time each part of them.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxcoop.agents.scripted.plans import plan_maker
from jaxcoop.benchmarks import harness
from jaxcoop.cognition import channel, plans, play, process, schedule, world
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.domain import Domain
from jaxcoop.cognition.latency import Latency
from jaxcoop.cognition.repair.config import PRESETS, RepairConfig
from jaxcoop.cognition.state import State
from jaxcoop.cognition.structures import STRUCTURES, structure_of
from jaxcoop.core import Env, make
from jaxcoop.core.registry import unknown
from jaxcoop.core.rollout import MEMORY, episode_key, in_groups

TEAMS = (6, 10, 100, 256)
AGENTS_IN_PLAY = 3072
"""Team size times episodes at a time: 512 episodes of 6 agents."""


def domain_of(env: Env) -> Domain:
    """The environment as agents that think see it.  Raises `ValueError` for one that has no such side."""
    if env.name == "cube":
        from jaxcoop.envs.cube.minds import CubeMinds

        return CubeMinds(env)  # type: ignore[arg-type]  # a Cube by its name
    if env.name == "macrafter":
        from jaxcoop.envs.macrafter.minds import CrafterMinds

        return CrafterMinds(env)  # type: ignore[arg-type]  # a MACrafter by its name
    raise unknown("environment of agents that think", env.name, STRUCTURES)


def setup_of(env: Env, structure: str, *, repair: bool = False) -> Setup:
    """A team with constant latencies and no wall-clock limit, so that every episode makes all its steps."""
    chosen = PRESETS[env.name] if repair else RepairConfig(enabled=False)
    return Setup(domain_of(env), structure_of(env.name, structure), latency=Latency(), budget_ms=0, repair=chosen)


def minds(
    name: str,
    preset: str | None = None,
    *,
    structures: Sequence[str] = ("individual", "centralized", "broadcast_chain"),
    teams: Sequence[int] = TEAMS,
    agents_in_play: int = AGENTS_IN_PLAY,
    steps: int | None = None,
    repair: bool = False,
    mistakes: str = "perfect",
    repeats: int = 2,
) -> dict[str, Any]:
    """One row for each structure and team size; `steps`: another length of episodes than the preset's."""
    rows = []
    work = [(structure, team) for structure in structures for team in teams]
    env = make(name, preset, **({} if steps is None else {"max_steps": steps}))
    for structure, team in harness.track(work, f"teams that think, {name}"):
        sized = harness.with_team(env, team)
        setup = setup_of(sized, structure, repair=repair)
        maker = plan_maker(sized, structure, mistakes)
        rows.append(row_of(setup, maker, max(1, agents_in_play // team), repeats))
    return {"env": repr(env), "version": env.version, "machine": harness.machine(), "repair": repair, "rows": rows}


def row_of(setup: Setup, maker: play.PlanMaker, episodes: int, repeats: int) -> dict[str, Any]:
    """Rates of the fastest of `repeats` runs in one program, and the shares of its parts in rounds run one by one."""
    root, numbers = jax.random.key(0), jnp.arange(episodes, dtype=jnp.int32)
    began = time.perf_counter()
    program = jax.jit(partial(play.play, setup, maker)).lower(root, numbers).compile()
    compile_s = time.perf_counter() - began

    final, walls = program(root, numbers), []
    for _ in range(repeats):
        began = time.perf_counter()
        final = jax.block_until_ready(program(root, numbers))
        walls.append(time.perf_counter() - began)
    made = int(final.step.sum())
    one = jax.eval_shape(partial(process.begin, setup), root, numbers[0])
    return {
        "structure": setup.structure.name,
        "agents": setup.agents,
        "episodes": episodes,
        "steps_per_s": made / min(walls),
        "agent_steps_per_s": made * setup.agents / min(walls),
        "wall_s": min(walls),
        "calls_per_episode": float(final.totals.calls.sum() / episodes),
        **shares(setup, maker, root, numbers),
        "compile_s": compile_s,
        "state_bytes": sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(one)),
        "peak_rss_bytes": harness.peak_rss_bytes(),
        "score": float(final.totals.score.mean()),
    }


def shares(setup: Setup, maker: play.PlanMaker, root: jax.Array, episodes: jax.Array) -> dict[str, float]:
    """Parts of the time of a batch: minds (stages, mail, clocks), planner, and world (rules, skills, checks)."""
    states = jax.jit(lambda: in_groups(partial(process.begin, setup, root), episodes))()
    memory = jax.vmap(lambda e: maker.init(jax.random.fold_in(episode_key(root, e), MEMORY)))(episodes)

    def answer(states: State, memory: Any, asks: jax.Array) -> tuple[State, Any]:
        given, after = jax.vmap(maker.answer)(jax.vmap(play.answer_key)(states), memory, states, asks)
        return jax.vmap(partial(process.apply, setup))(states, given, asks), plans.where(asks.any(1), after, memory)

    def step(states: State) -> State:
        checked = jax.vmap(partial(channel.check, setup))(states, states.at_barrier & ~states.over)
        return jax.vmap(partial(world.make_step, setup))(checked, checked.at_barrier & ~checked.over)

    parts = {
        "minds": jax.jit(jax.vmap(partial(schedule.settle, setup))),
        "planner": jax.jit(answer),
        "world": jax.jit(step),
        "asks": jax.jit(jax.vmap(schedule.needs)),
    }
    spent = dict.fromkeys(parts, 0.0)

    def timed(part: str, *args: Any) -> Any:
        began = time.perf_counter()
        out = jax.block_until_ready(parts[part](*args))
        spent[part] += time.perf_counter() - began
        return out

    states = timed("minds", states)
    asks = timed("asks", states)
    timed("planner", states, memory, asks)
    timed("world", states)
    spent = dict.fromkeys(parts, 0.0)  # compilation is not counted
    while not bool(states.over.all()):
        asks = timed("asks", states)
        if bool(asks.any()):
            states, memory = timed("planner", states, memory, asks)
        else:
            states = timed("world", states)
        states = timed("minds", states)
    total = spent["minds"] + spent["planner"] + spent["world"]
    return {f"{part}_share": spent[part] / total for part in ("minds", "planner", "world")}
