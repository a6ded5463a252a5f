"""`jaxcoop bench`: measure throughput, team sizes and planner calls; print tables, keep JSON."""

import contextlib
import dataclasses
import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxcoop.cli.arguments import UsageError, check_preset, parse
from jaxcoop.core.env import Env
from jaxcoop.core.registry import get_spec, make, unknown
from jaxcoop.report.tables import table
from jaxcoop.runs.files import atomic_write, reason

KINDS = ("throughput", "minds", "callback")
TEAMS = (5, 50, 500, 5000, 50_000)
"""Team sizes that are measured unless others are asked for, as far as the environment allows them."""


@dataclasses.dataclass(frozen=True)
class ThroughputOptions:
    """Random rollouts per second, by batch size and by team size."""

    env: str = "dining"  # environment
    preset: str | None = None  # of the environment
    agent: str | None = None  # who plays in the table of batches: see jaxcoop list ENV; default: random actions
    agents: int | None = None  # team size; default: the preset's
    batches: tuple[int, ...] = (1, 64, 1024, 8192, 65536)  # episodes at a time
    teams: tuple[int, ...] | None = None  # team sizes; none: 0; default: of 5 50 500 5000 50000 those allowed
    agents_in_play: int = 500_000  # team size times batch in the table of team sizes
    pool: int = 4  # prepared starts of each episode slot
    fresh: bool = True  # every episode has a start of its own, whose cost counts; --no-fresh: steps alone are timed
    observe: bool = False  # make every agent's observation in every step too
    repeats: int = 5  # runs of each program; medians are shown
    run_s: float = 0.5  # length of a run in seconds
    peers: bool = False  # also measure other implementations: pip install 'jaxcoop[peers]'
    json: Path | None = None  # write everything measured to this file


@dataclasses.dataclass(frozen=True)
class MindsOptions:
    """Whole episodes of agents that think, with scripted planners, by communication structure and team size."""

    env: str = "macrafter"  # cube or macrafter
    preset: str | None = None  # of the environment
    structures: tuple[str, ...] = ("individual", "centralized", "broadcast_chain")
    teams: tuple[int, ...] = (6, 10, 100, 256)  # team sizes
    agents_in_play: int = 3072  # team size times episodes at a time
    steps: int | None = None  # length of episodes; default: the preset's
    repair: bool = False  # plans are checked before each step, with the environment's default tolerances
    mistakes: str = "perfect"  # of the planners: perfect, strong, middling or weak
    repeats: int = 2  # runs of each program; the fastest is shown
    json: Path | None = None  # write everything measured to this file


@dataclasses.dataclass(frozen=True)
class CallbackOptions:
    """Cost of asking the host: front ends with an instant planner, and clients against a server on loopback."""

    episodes: tuple[int, ...] = (64, 1024)  # episodes at a time
    calls: int = 1000  # language-model calls per client
    limit: int = 128  # calls at a time
    latency_ms: float = 0.0  # what the server waits before it answers
    json: Path | None = None  # write everything measured to this file


def main(arguments: list[str]) -> None:
    """Measure and print; `--json FILE` keeps every number."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"usage: jaxcoop bench {{{','.join(KINDS)}}} [OPTIONS]\n\njaxcoop bench {KINDS[0]} --help explains one.")
        if not arguments:
            raise UsageError(f"no measurement named; allowed: {', '.join(KINDS)}")
        return
    kind, *rest = arguments
    if kind not in KINDS:
        raise unknown("measurement", kind, KINDS)
    if kind == "throughput":
        _throughput(parse(ThroughputOptions, rest, prog="jaxcoop bench throughput"))
    elif kind == "minds":
        _minds(parse(MindsOptions, rest, prog="jaxcoop bench minds"))
    else:
        _callback(parse(CallbackOptions, rest, prog="jaxcoop bench callback"))


def _check(**values: float | Sequence[float]) -> None:
    """Every value must be finite and above 0, every list must name one; raises `UsageError` otherwise."""
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        items = value if isinstance(value, Sequence) else (value,)
        if not items:
            raise UsageError(f"{flag}: names nothing; give at least one number, or leave it out")
        for item in items:
            if not 0 < item < math.inf:
                raise UsageError(f"{flag} {item:g}: must be above 0, and finite")


def _throughput(options: ThroughputOptions) -> None:
    from jaxcoop.benchmarks.harness import with_team
    from jaxcoop.benchmarks.peers import PEERS
    from jaxcoop.benchmarks.throughput import scaling, throughput

    _check(batches=options.batches, repeats=options.repeats, run_s=options.run_s, pool=options.pool)
    _check(agents_in_play=options.agents_in_play, **({} if options.agents is None else {"agents": options.agents}))
    check_preset(get_spec(options.env), options.preset)
    env = make(options.env, options.preset)
    teams = _allowed(env) if options.teams is None else [team for team in options.teams if team]
    for team in teams:
        with_team(env, team)
    _check_target(options.json)
    common: dict[str, Any] = {name: getattr(options, name) for name in ("repeats", "run_s", "pool", "fresh")}
    chosen = {name: getattr(options, name) for name in ("batches", "peers", "observe", "agent", "agents")}
    rates = throughput(options.env, options.preset, **chosen, **common)
    result = {"throughput": rates}
    _keep(options.json, result)
    _show_machine(rates["machine"])
    table(f"Rollouts of {rates['agent']}, {rates['env']}", *_columns(rates["rows"], _THROUGHPUT)).print()
    for name in rates["peers"]:
        peer = PEERS[env.name][name]
        print(f"{peer.label}: {rates[name]['steps_per_cpu_s']:,.0f} {peer.unit} per CPU-second")
    if "start_cpu_us" in rates:
        how = "counted above" if rates["fresh"] else "not counted above"
        print(f"a fresh start: {rates['start_cpu_us']:,.1f} µs of CPU, {how}")
    if recorded := rates.get("recorded"):
        print(f"elsewhere: {recorded['steps_per_cpu_s']:,.0f} steps per CPU-second, {recorded['source']}")
    if teams:
        common["agents_in_play"] = options.agents_in_play
        sizes = result["scaling"] = scaling(options.env, options.preset, teams=teams, **common)
        _keep(options.json, result)
        print()
        table("Cost by team size", *_columns(sizes["rows"], _SCALING)).print()
    _show_target(options.json)


def _allowed(env: Env) -> list[int]:
    """Those of `TEAMS` that the environment allows."""
    from jaxcoop.benchmarks.harness import with_team

    allowed = []
    for team in TEAMS:
        with contextlib.suppress(ValueError):
            allowed.append(with_team(env, team).num_agents)
    return allowed


def _minds(options: MindsOptions) -> None:
    from jaxcoop.benchmarks.minds import minds

    _check(teams=options.teams, agents_in_play=options.agents_in_play, repeats=options.repeats)
    _check(**({} if options.steps is None else {"steps": options.steps}))
    if not options.structures:
        raise UsageError("--structures: names nothing; give at least one, or leave it out")
    check_preset(get_spec(options.env), options.preset)
    _check_target(options.json)
    names = ("structures", "teams", "agents_in_play", "steps", "repair", "mistakes", "repeats")
    result = minds(options.env, options.preset, **{name: getattr(options, name) for name in names})
    _keep(options.json, {"minds": result})
    _show_machine(result["machine"])
    how = f"{options.mistakes} planners, repair {'on' if options.repair else 'off'}"
    table(f"Agents that think, {result['env']}, {how}", *_columns(result["rows"], _MINDS)).print()
    _show_target(options.json)


def _callback(options: CallbackOptions) -> None:
    from jaxcoop.benchmarks.callback import checked_latency, clients, front_ends

    _check(episodes=options.episodes, calls=options.calls, limit=options.limit)
    checked_latency(options.latency_ms)
    _check_target(options.json)
    result = {"front_ends": front_ends(episodes=options.episodes)}
    _keep(options.json, result)
    _show_machine(result["front_ends"]["machine"])
    table("Planner that answers at once", *_all(result["front_ends"]["rows"])).print()
    result["clients"] = clients(calls=options.calls, limit=options.limit, latency_ms=options.latency_ms)
    _keep(options.json, result)
    print()
    table("Calls through the hub", *_all(result["clients"]["rows"])).print()
    _show_target(options.json)


_THROUGHPUT = {
    "batch": "batch",
    "steps/s": "steps_per_s",
    "agent-steps/s": "agent_steps_per_s",
    "CPU µs/step": "cpu_us_per_step",
    "of null": "share_of_null",
    "x reference": "times_reference",
    "x plain": "times_plain",
    "x craftax": "times_craftax",
    "x recorded": "times_recorded",
    "compile s": "compile_s",
    "state B": "state_bytes",
    "program MB": "program_bytes",
    "peak MB": "peak_rss_bytes",
}
_SCALING = {
    "agents": "agents",
    "batch": "batch",
    "steps/s": "steps_per_s",
    "agent-steps/s": "agent_steps_per_s",
    "CPU ns/agent-step": "cpu_ns_per_agent_step",
    "relative": "relative_cost",
    "compile s": "compile_s",
    "state B": "state_bytes",
}
_MINDS = {
    "structure": "structure",
    "agents": "agents",
    "episodes": "episodes",
    "agent-steps/s": "agent_steps_per_s",
    "wall s": "wall_s",
    "calls/episode": "calls_per_episode",
    "minds": "minds_share",
    "planner": "planner_share",
    "world": "world_share",
    "compile s": "compile_s",
    "state B": "state_bytes",
    "peak MB": "peak_rss_bytes",
    "score": "score",
}
_MEGABYTES = {"program_bytes", "peak_rss_bytes"}


def _columns(rows: list[dict[str, Any]], chosen: dict[str, str]) -> tuple[list[str], list[list[Any]]]:
    """Headings and cells of the chosen entries; entries that no row has are left out."""
    present = {head: key for head, key in chosen.items() if any(row.get(key) is not None for row in rows)}
    return list(present), [[_cell(key, row.get(key)) for key in present.values()] for row in rows]


def _cell(key: str, value: Any) -> Any:
    if value is None:
        return None
    if key in _MEGABYTES:
        return round(value / 1e6, 1)
    return round(value) if isinstance(value, float) and value > 1000 else value


def _all(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    return _columns(rows, {key.replace("_", " "): key for key in rows[0]})


def _show_machine(machine: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, {', '.join(machine['devices'])}")
    print(f"{versions}, prng {machine['prng']}\n")


def _check_target(path: Path | None) -> None:
    """Find out before anything is measured whether `path` can be written; raises `UsageError` if not."""
    if path is None:
        return
    if path.exists() and not path.is_file():
        raise UsageError(f"--json {path}: is not a file; name another one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise UsageError(f"--json {path}: cannot be written ({reason(error)}); name another file") from None


def _keep(path: Path | None, result: dict[str, Any]) -> None:
    """Write what is measured so far: what comes next may fail."""
    if path is not None:
        atomic_write(path, json.dumps(result, indent=2) + "\n")


def _show_target(path: Path | None) -> None:
    if path is not None:
        print(f"\neverything measured: {path}")
