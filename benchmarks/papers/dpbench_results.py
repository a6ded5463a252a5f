"""Finished DPBench cells as files: rows, tables, figures, one page with all of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxcoop.benchmarks.papers import dpbench_tables as tables
from jaxcoop.benchmarks.papers.dpbench import published, published_rows
from jaxcoop.benchmarks.papers.dpbench_matrix import Planned, action_share_rows, episode_lists
from jaxcoop.report.cells import Row
from jaxcoop.report.dpbench_figures import write_figures
from jaxcoop.report.html import write_report
from jaxcoop.report.tables import Table, to_csv, to_json
from jaxcoop.runs.files import atomic_write

TITLE = "DPBench: dining philosophers"
_CAPTIONS = {
    "figure1_rounds": "Circular wait, and deadlock rate by discussion rounds",
    "figure2_models": "Deadlock rate of each player, simultaneous and sequential",
    "figure3_ablations": "Deadlock rate by prompt, by discussion rounds, by group size",
    "figureA1_memory": "Deadlock rate by memory window",
    "figureA3_sequential": "Sequential play: actions, and how episodes ended",
}

Played = Sequence[tuple[Planned, Path, Row]]
"""Finished cells: the plan, the run folder, the row."""


def terminal_tables(rows: Sequence[Row]) -> list[Table]:
    """The tables that a command prints; those without a line are left out."""
    made = [
        tables.n5_table(rows),
        *tables.comparison_tables(rows),
        tables.sequential_table(rows),
        tables.mann_whitney_table(rows),
        tables.consistency_table(rows),
    ]
    return [made_table for made_table in made if made_table is not None]


def write_results(
    out: Path,
    played: Played,
    *,
    config: Mapping[str, Any],
    notes: Sequence[str],
    with_published: bool = False,
) -> dict[str, Path]:
    """Write results.csv, results.json, results.md, figures/ and report.html into `out`; returns the paths.

    `with_published` adds the published cells to the figures, under names that say so, and draws the published
    study's own figures into figures/published.  Raises OSError when the folder cannot be written.
    """
    rows = [row for _, _, row in played]
    all_tables = [*terminal_tables(rows), tables.matrix_table(rows), tables.z_table(rows)]
    notes = [*notes, *tables.summary_notes(rows)]
    texts: dict[str, Callable[[], str]] = {
        "results.csv": lambda: to_csv(rows),
        "results.json": lambda: to_json(rows),
        "results.md": lambda: _markdown(all_tables, notes),
    }
    for name, text in texts.items():
        atomic_write(out / name, text())
    pictures = _captioned(
        write_figures(
            figure_rows(played, with_published=with_published),
            out / "figures",
            model=_own_model(played),
            action_shares=action_share_rows((planned, path) for planned, path, _ in played),
        ),
        "",
    )
    drawn = write_figures(  # without rows it only takes away what an earlier command drew
        published_rows() if with_published else (),
        out / "figures" / "published",
        action_shares=published()["sequential_action_shares"] if with_published else (),
    )
    pictures |= _captioned(drawn, "Published: ")
    write_report(out / "report.html", TITLE, tables=all_tables, figures=pictures, manifest=config, notes=notes)
    names = [*texts, "report.html", *(["figures"] if pictures else [])]
    return {name: out / name for name in names}


def _captioned(figures: Mapping[str, Sequence[Path]], prefix: str) -> dict[str, bytes]:
    """The PNG of each figure by its caption."""
    png = {name: next(path for path in paths if path.suffix == ".png") for name, paths in figures.items()}
    return {prefix + _CAPTIONS[name]: path.read_bytes() for name, path in png.items()}


def _own_model(played: Played) -> str | None:
    """Whose ablations are shown: the language model with the most cells; None without one."""
    cells = Counter(planned.player for planned, _, _ in played if planned.cell.is_language)
    return max(cells, key=cells.__getitem__, default=None)


def _markdown(all_tables: Sequence[Table], notes: Sequence[str]) -> str:
    parts = [f"# {TITLE}", "\n".join(f"- {note}" for note in notes)]
    parts += [f"## {made.title}\n\n{made.markdown()}" for made in all_tables]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def figure_rows(played: Played, *, with_published: bool) -> list[Row]:
    """Rows for the figures, with the episodes that the sequential one shows."""
    own = [{**row, **(episode_lists(path) if row["mode"] == "sequential" else {})} for _, path, row in played]
    rows = tables.shown_rows(own)
    if with_published:
        rows += [{**row, "model": f"{row['model']} (published)"} for row in published_rows()]
    return rows
