"""Finished cells of COOP²'s grid as files: tables, figures, one page with all of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxcoop.agents.minds.options import MindOptions, setup_of
from jaxcoop.agents.minds.results import QUANTITIES
from jaxcoop.benchmarks.papers.coop2_matrix import Planned, is_simulated
from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.report import style
from jaxcoop.report.cells import Row
from jaxcoop.report.coop2_table import Spread, aggregate, outputs, results_table
from jaxcoop.report.html import write_report
from jaxcoop.report.tables import Table
from jaxcoop.runs.files import atomic_write
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.minds import read_logs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxcoop.report.coop2_series import Series

TITLE = "COOP²: cooperation as a process"
SIMULATED_NOTE = (
    "Players named simulated-... are scripted planners that make mistakes at invented rates, with invented call times "
    "around published means; no language model was asked, and the paper's results are not to be expected."
)

Played = Sequence[tuple[Planned, Path]]
"""Finished cells: the plan, the run folder."""

_NAMES = {f"viol_{c.name.lower()}": f"{c.name.lower()}_violation_rate" for c in SCORED}


def run_rows(played: Played) -> list[Row]:
    """A row for each episode, which is a run of the table; `seed` is its number."""
    rows = []
    for planned, path in played:
        columns = RunFolder.read(path).episodes(list(QUANTITIES))
        for number in range(len(columns["score"])):
            row: Row = {
                "world": planned.world,
                "agents": planned.agents,
                "model": planned.model,
                "structure": planned.structure,
                "repair": planned.repair,
                "seed": number,
                "stamp": "",
            }
            rows.append(row | {_NAMES.get(name, name): column[number].item() for name, column in columns.items()})
    return rows


def world_tables(rows: Sequence[Row], models: Sequence[str], spread: Spread) -> dict[str, Table]:
    """The results table of each world."""
    return {
        world: results_table(aggregate(_of(rows, world), models=models), spread, _title(world, rows))
        for world in dict.fromkeys(row["world"] for row in rows)
    }


def _of(rows: Sequence[Row], world: str) -> list[Row]:
    return [row for row in rows if row["world"] == world]


def _title(world: str, rows: Sequence[Row]) -> str:
    simulated = any(is_simulated(row["model"]) for row in rows)
    return f"COOP² in {world}" + (", simulated models" if simulated else "")


def notes_of(rows: Sequence[Row]) -> list[str]:
    """What the reader has to know."""
    return [SIMULATED_NOTE] if any(is_simulated(row["model"]) for row in rows) else []


def write_results(
    out: Path, played: Played, *, models: Sequence[str], spread: Spread, config: Mapping[str, Any]
) -> dict[str, Path]:
    """Write WORLD/{runs.csv,aggregate.csv,table.md,table.tex}, figures/ and report.html into `out`; returns the paths.

    Raises OSError when the folder cannot be written.
    """
    rows = run_rows(played)
    written: dict[str, Path] = {}
    figures: dict[str, Figure] = {}
    for world in dict.fromkeys(row["world"] for row in rows):
        mine = _of(rows, world)
        for name, text in outputs(mine, spread=spread, models=models, title=_title(world, rows)).items():
            written[f"{world}/{name}"] = out / world / name
            atomic_write(out / world / name, text)
        figures |= _figures(
            world, mine, [(planned, path) for planned, path in played if planned.world == world], models
        )
    for name, figure in figures.items():
        style.save(figure, out / "figures", name)
    tables = [*world_tables(rows, models, spread).values()]
    write_report(out / "report.html", TITLE, tables=tables, figures=figures, manifest=config, notes=notes_of(rows))
    written["report.html"] = out / "report.html"
    return written | ({"figures": out / "figures"} if figures else {})


def _figures(world: str, rows: Sequence[Row], played: Played, models: Sequence[str]) -> "dict[str, Figure]":
    """The trade-off, and of logged episodes process traces, a repair and a timeline."""
    from jaxcoop.report.coop2_tradeoff import tradeoff_figure

    figures = {f"{world}_tradeoff": tradeoff_figure(aggregate(rows, models=models), _title(world, rows))}
    series = {(p.agents, p.repair, p.model, p.structure): _series(p, path) for p, path in played}
    for agents, repair in dict.fromkeys(key[:2] for key in series):
        cells = {key[2:]: runs for key, runs in series.items() if key[:2] == (agents, repair) and runs}
        if cells:
            figures |= _traces(f"{world}_{agents}_agents" + ("_repair" if repair else ""), cells, _title(world, rows))
    return figures | _examples(world, played, series)


def _series(planned: Planned, path: Path) -> "list[Series]":
    from jaxcoop.agents.llm.coop2.team import vocabulary_of
    from jaxcoop.report.coop2_series import series_of

    logs = read_logs(path)
    if not logs:
        return []
    options: MindOptions = planned.cell.mind_options
    vocabulary = vocabulary_of(setup_of(planned.cell.env, options, language=planned.cell.is_language))
    return [series_of(logs[number], vocabulary) for number in sorted(logs)]


def _traces(name: str, cells: "Mapping[tuple[str, str], Sequence[Series]]", title: str) -> "dict[str, Figure]":
    from jaxcoop.report.coop2_trace import trace_figure

    return {
        f"{name}_trace": trace_figure(cells, title=title),
        f"{name}_trace_single": trace_figure(cells, mean=False, title=title),
    }


def _examples(world: str, played: Played, series: "Mapping[Any, Sequence[Series]]") -> "dict[str, Figure]":
    """The logged episode with the most repairs, and the timeline of the first logged episode."""
    from jaxcoop.report.coop2_timeline import timeline_figure
    from jaxcoop.report.coop2_trace import repair_figure

    found: dict[str, Figure] = {}
    repaired = [(len(run.repairs), key, run) for key, runs in series.items() for run in runs if key[1]]
    if repaired:
        _, key, run = max(repaired, key=lambda item: item[0])
        found[f"{world}_repair"] = repair_figure(run, f"{key[2]}, {key[3].replace('_', ' ')}, {key[0]} agents")
    for planned, path in played:
        logs = read_logs(path)
        if logs:
            found[f"{world}_timeline"] = timeline_figure(logs[min(logs)], title=planned.name)
            break
    return found
