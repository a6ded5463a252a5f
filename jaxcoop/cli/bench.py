"""`jaxcoop bench`: measure throughput, team sizes and planner calls; print tables, keep JSON."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from jaxcoop.cli.arguments import UsageError, parse
from jaxcoop.core.registry import unknown
from jaxcoop.report.tables import table
from jaxcoop.runs.files import atomic_write

KINDS = ("throughput", "callback")


@dataclasses.dataclass(frozen=True)
class ThroughputOptions:
    """Random rollouts per second, by batch size and by team size."""

    env: str = "dining"  # environment
    preset: str | None = None  # of the environment
    batches: tuple[int, ...] = (1, 64, 1024, 8192, 65536)  # episodes at a time
    teams: tuple[int, ...] = (5, 50, 500, 5000, 50_000)  # team sizes, team times batch held constant; none: 0
    repeats: int = 5  # runs of each program; medians are shown
    run_s: float = 0.5  # length of a run in seconds
    peers: bool = False  # also measure the reference package: pip install 'jaxcoop[peers]'
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
        print("usage: jaxcoop bench {throughput,callback} [OPTIONS]\n\njaxcoop bench throughput --help explains one.")
        if not arguments:
            raise UsageError(f"no measurement named; allowed: {', '.join(KINDS)}")
        return
    kind, *rest = arguments
    if kind not in KINDS:
        raise unknown("measurement", kind, KINDS)
    if kind == "throughput":
        _throughput(parse(ThroughputOptions, rest, prog="jaxcoop bench throughput"))
    else:
        _callback(parse(CallbackOptions, rest, prog="jaxcoop bench callback"))


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise UsageError(f"{name} {value}: must be above 0")


def _throughput(options: ThroughputOptions) -> None:
    from jaxcoop.benchmarks.throughput import scaling, throughput

    _positive(repeats=options.repeats, run_s=options.run_s, **{f"batch {b}": b for b in options.batches})
    common: dict[str, Any] = {"repeats": options.repeats, "run_s": options.run_s}
    rates = throughput(options.env, options.preset, batches=options.batches, peers=options.peers, **common)
    _show_machine(rates["machine"])
    table(f"Random rollouts, {rates['env']}", *_columns(rates["rows"], _THROUGHPUT)).print()
    if "reference" in rates:
        print(f"reference package: {rates['reference']['steps_per_cpu_s']:,.0f} bare steps per CPU-second")
    result = {"throughput": rates}
    if teams := [team for team in options.teams if team]:
        sizes = result["scaling"] = scaling(options.env, options.preset, teams=teams, **common)
        print()
        table("Cost by team size", *_columns(sizes["rows"], _SCALING)).print()
    _keep(options.json, result)


def _callback(options: CallbackOptions) -> None:
    from jaxcoop.benchmarks.callback import clients, front_ends

    _positive(calls=options.calls, limit=options.limit, **{f"episodes {e}": e for e in options.episodes})
    result = {"front_ends": front_ends(episodes=options.episodes)}
    _show_machine(result["front_ends"]["machine"])
    table("Planner that answers at once", *_all(result["front_ends"]["rows"])).print()
    result["clients"] = clients(calls=options.calls, limit=options.limit, latency_ms=options.latency_ms)
    print()
    table("Calls through the hub", *_all(result["clients"]["rows"])).print()
    _keep(options.json, result)


_THROUGHPUT = {
    "batch": "batch",
    "steps/s": "steps_per_s",
    "agent-steps/s": "agent_steps_per_s",
    "CPU µs/step": "cpu_us_per_step",
    "of null": "share_of_null",
    "x reference": "times_reference",
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


def _keep(path: Path | None, result: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps(result, indent=2) + "\n")
        print(f"\neverything measured: {path}")
