"""Random rollouts per second: by batch size, by team size, beside `null` and beside other implementations.

Every program is continuous play with uniform random actions (`core.batch`), compiled whole.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxcoop.agents.random import RandomPolicy
from jaxcoop.agents.registry import make_policy
from jaxcoop.benchmarks import harness
from jaxcoop.benchmarks.peers import peers_of, recorded_of
from jaxcoop.core import Env, make

BATCHES = (1, 64, 1024, 8192, 65536)
TEAMS = (5, 50, 500, 5000, 50_000, 100_000)
AGENTS_IN_PLAY = 500_000
"""Team size times batch in the table of team sizes: enough to fill the caches, small enough for a laptop."""


def twin(env: Env) -> Env:
    """`null` with as many agents and, up to a million steps, as long episodes."""
    return make("null", agents=env.num_agents, max_steps=min(env.horizon, 1_000_000))


def row_of(env: Env, program: harness.Rollouts, runs: list[harness.Run]) -> dict[str, Any]:
    """One line of a table: rates in environment steps, agent steps and CPU time per step."""
    rate = harness.rate_of(runs)
    return {
        "batch": program.batch.t.shape[0],
        "agents": env.num_agents,
        **dataclasses.asdict(rate),
        "agent_steps_per_s": rate.steps_per_s * env.num_actors,
        "cpu_us_per_step": 1e6 / rate.steps_per_cpu_s,
        "cpu_ns_per_agent_step": 1e9 / rate.steps_per_cpu_s / env.num_actors,
        **program.describe(),
        "peak_rss_bytes": harness.peak_rss_bytes(),
    }


def throughput(
    name: str,
    preset: str | None = None,
    *,
    batches: Sequence[int] = BATCHES,
    repeats: int = 5,
    run_s: float = 0.5,
    chunk: int = 64,
    pool: int = 4,
    fresh: bool = True,
    observe: bool = False,
    agent: str | None = None,
    agents: int | None = None,
    peers: bool = False,
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Speed of an environment at each batch size.

    Each row also has `share_of_null`: steps per CPU-second as a part of those of `null` with the same team at
    the same batch; with `peers`, for each of those listed there, `times_<peer>`: as a multiple of that peer,
    whose own rate is `<peer>`.  `recorded`: a landmark from another machine, where there is one, and
    `times_recorded` the rate as a multiple of it.  `start_cpu_us`: cost of one initial state; with `fresh` the
    rates include it, without they are of steps alone.  With `observe` every agent's observation is made in every
    step, and those of peers that are JAX programs.  `agents`: another team size than the preset's.  Programs of a
    row run in turns, `repeats` times.  `agent`: a policy by name that plays instead of random actions.  Raises
    `ValueError` for an unknown one, and for one that would have to look at observations it does not use.
    """
    env = make(name, preset, **(options or {}))
    env = env if agents is None else harness.with_team(env, agents)
    if agent is not None and observe:
        raise ValueError("observe: is for random actions; leave the agent out")
    policy = harness.Onlooker() if observe else RandomPolicy() if agent is None else make_policy(agent, env)
    others = peers_of(env, run_s, observe) if peers else {}
    result: dict[str, Any] = {
        "env": repr(env),
        "agent": agent or "random actions",
        "version": env.version,
        "machine": harness.machine(),
        "peers": list(others),
        "fresh": fresh,
        "observe": observe,
        "rows": [],
    }
    if (seconds := harness.start_cost(env, RandomPolicy())) is not None:
        result["start_cpu_us"] = 1e6 * seconds
    recorded = recorded_of(env) if agent is None else None
    if recorded is not None:
        result["recorded"] = dataclasses.asdict(recorded)
    for batch in harness.track(batches, f"throughput of {name}"):
        ours = harness.Rollouts(env, policy, batch, run_s=run_s, chunk=chunk, pool=pool, fresh=fresh)
        null = harness.Rollouts(twin(env), RandomPolicy(), batch, run_s=run_s, chunk=chunk, pool=pool)
        runs = harness.in_turns({"ours": ours, "null": null, **others}, repeats)
        row = row_of(env, ours, runs["ours"])
        row["share_of_null"] = harness.median_ratio(runs["ours"], runs["null"])
        if recorded is not None:
            row["times_recorded"] = row["steps_per_cpu_s"] / recorded.steps_per_cpu_s
        for peer in others:
            row[f"times_{peer}"] = harness.median_ratio(runs["ours"], runs[peer])
            result[peer] = dataclasses.asdict(harness.rate_of(runs[peer]))
        result["rows"].append(row)
    result["load_after"] = harness.machine()["load"]
    return result


def scaling(
    name: str,
    preset: str | None = None,
    *,
    teams: Sequence[int] = TEAMS,
    agents_in_play: int = AGENTS_IN_PLAY,
    repeats: int = 5,
    run_s: float = 0.5,
    chunk: int = 64,
    pool: int = 4,
    fresh: bool = True,
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Cost per agent step by team size, with team size times batch held constant.

    `relative_cost` compares each row's CPU time per agent step with the first row's.  Every team is measured
    in turns with the others, so all programs are in memory at the same time.
    """
    envs = [harness.with_team(make(name, preset, **(options or {})), team) for team in teams]
    programs = {
        str(env.num_agents): harness.Rollouts(
            env,
            RandomPolicy(),
            max(1, agents_in_play // env.num_agents),
            run_s=run_s,
            chunk=chunk,
            pool=pool,
            fresh=fresh,
        )
        for env in harness.track(envs, f"team sizes of {name}")
    }
    runs = harness.in_turns(dict(programs), repeats)
    rows = [row_of(env, programs[str(env.num_agents)], runs[str(env.num_agents)]) for env in envs]
    for row in rows:
        row["relative_cost"] = row["cpu_ns_per_agent_step"] / rows[0]["cpu_ns_per_agent_step"]
    return {"env": repr(envs[0]), "version": envs[0].version, "machine": harness.machine(), "rows": rows}
