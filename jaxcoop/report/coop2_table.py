"""The results table of COOP² for one world: which runs are shown, repeats as one line, Markdown, LaTeX, CSV.

A row is one run: `agents`, `model`, `structure`, `repair`, `seed`, and `stamp` (any text that sorts by time), with the
quantities of `jaxcoop.cognition.metrics`.  The reference aggregates to a mean and a 95 % half width, the published
table prints a mean and a standard deviation; `Spread` says which of them a table shows, and the table says it too.
Numbers are sections of docs/coop2.md.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from jaxcoop.cognition.metrics import QUANTITIES
from jaxcoop.report.cells import Row
from jaxcoop.report.tables import Table, to_csv
from jaxcoop.runs.statistics import z_half_width

CELL = ("agents", "model", "structure", "repair")
"""What repeats have in common."""

STRUCTURES = ("individual", "centralized", "broadcast_chain")

TWO_DECIMALS = ("score_per_step", *(name for name in QUANTITIES if name.endswith("_violation_rate")))

HEADS = {
    "score": "Score",
    "steps": "Steps",
    "score_per_step": "Score/Step",
    "plans_per_agent": "Plans/Agent",
    "messages": "Msg.",
    "interruptions": "Intr.",
    "total_decision_time": "Total Dec.",
    "spatial_violation_rate": "Spat. Viol.",
    "temporal_violation_rate": "Temp. Viol.",
    "dependency_violation_rate": "Dep. Viol.",
}

_LATEX_SIGNS = str.maketrans(
    {"±": r"$\pm$", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
     "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)  # fmt: skip


class Spread(Enum):
    """What stands behind ±; the value is the suffix of its entries in an aggregate."""

    INTERVAL = "half"
    DEVIATION = "std"

    @property
    def words(self) -> str:
        """As a table says it."""
        return "mean ± 95 % half width" if self is Spread.INTERVAL else "mean ± standard deviation"


class Mean(NamedTuple):
    """A mean over repeats with its 95 % half width."""

    mean: float
    half: float
    runs: int


def mean_interval(values: Sequence[float]) -> Mean:
    """8.4: the mean and 1.96 standard errors, from the sample deviation; no width for a single run.

    Raises ValueError without values.
    """
    runs = len(values)
    if not runs:
        raise ValueError("there are no values to average; give at least one run")
    return Mean(float(np.mean(values)), z_half_width(deviation(values), runs), runs)


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (ddof 1), 0 for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def latest(rows: Iterable[Row]) -> list[Row]:
    """The newest run of each cell and seed."""
    newest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in (*CELL, "seed"))
        if key not in newest or row["stamp"] >= newest[key]["stamp"]:
            newest[key] = row
    return list(newest.values())


def shown(
    rows: Iterable[Row], *, seed: int | None = 42, agents: int | None = 3, repair: bool | None = False
) -> list[Row]:
    """The runs that the reference shows unless told otherwise; None lifts a restriction."""
    wanted = {"seed": seed, "agents": agents, "repair": repair}
    return [row for row in rows if all(value is None or row[name] == value for name, value in wanted.items())]


def aggregate(rows: Iterable[Row], *, by_seed: bool = False, models: Sequence[str] = ()) -> list[Row]:
    """One line for each cell: `runs`, and for each quantity its mean, `_half` (95 %) and `_std`.

    With `by_seed` every seed has a line of its own and widths are 0.  Lines are sorted by agents, model (those of
    `models` first, in this order), structure, repair and seed.
    """
    names = (*CELL, "seed") if by_seed else CELL
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    lines = []
    for key, members in groups.items():
        line: Row = dict(zip(names, key)) | {"runs": len(members)}
        for name in QUANTITIES:
            values = [float(member[name]) for member in members]
            mean = mean_interval(values)
            line[name] = mean.mean
            line[f"{name}_half"] = 0.0 if by_seed else mean.half
            line[f"{name}_std"] = 0.0 if by_seed else deviation(values)
        lines.append(line)
    return sorted(lines, key=lambda line: _rank(line, models))


def _rank(line: Row, models: Sequence[str]) -> tuple[Any, ...]:
    place = [_place(line["model"], models), _place(line["structure"], STRUCTURES)]
    return line["agents"], *place, line["repair"], line.get("seed", 0)


def _place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order)), name


def cell_text(mean: float, width: float, digits: int) -> str:
    """`2.0 ± 1.1`; the mean alone where there is no width."""
    text = f"{mean:.{digits}f}"
    return f"{text} ± {width:.{digits}f}" if width > 0 and math.isfinite(width) else text


def results_table(lines: Sequence[Row], spread: Spread = Spread.INTERVAL, title: str = "COOP² results") -> Table:
    """The lines of `aggregate` as a table for terminals and Markdown; its title says what ± means."""
    with_seed = any("seed" in line for line in lines)
    keys = ("agents", "model", "structure", "repair", *(("seed",) if with_seed else ()))
    columns = (*keys, "runs", *(HEADS[name] for name in QUANTITIES))
    cells = tuple(
        (*(_key_text(line.get(name)) for name in keys), str(line["runs"]), *_quantity_cells(line, spread))
        for line in lines
    )
    numeric = tuple(name not in ("model", "structure", "repair") for name in columns)
    return Table(f"{title} ({spread.words})", columns, cells, numeric, keys=len(keys))


def _key_text(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _quantity_cells(line: Row, spread: Spread) -> list[str]:
    return [
        cell_text(line[name], line[f"{name}_{spread.value}"], 2 if name in TWO_DECIMALS else 1) for name in QUANTITIES
    ]


def latex(lines: Sequence[Row], spread: Spread = Spread.INTERVAL, title: str = "COOP² results") -> str:
    """The same table as a LaTeX table (package booktabs), with a rule between teams and between models."""
    made = results_table(lines, spread, title)
    body: list[str] = []
    for number, (line, cells) in enumerate(zip(lines, made.rows)):
        if number and any(line[name] != lines[number - 1][name] for name in ("agents", "model")):
            body.append(r"\midrule")
        body.append(_latex_line(cells))
    columns = "".join("r" if numeric else "l" for numeric in made.numeric)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(made.title.replace('²', '2'))}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_line(made.columns),
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_line(cells: Iterable[str]) -> str:
    return " & ".join(map(_latex_text, cells)) + r" \\"


def _latex_text(text: str) -> str:
    return text.translate(_LATEX_SIGNS)


def outputs(
    rows: Iterable[Row], *, spread: Spread = Spread.INTERVAL, models: Sequence[str] = (), title: str = "COOP² results"
) -> dict[str, str]:
    """Contents of the table's files by name: every run, the aggregate with both spreads, Markdown and LaTeX."""
    rows = list(rows)
    lines = aggregate(rows, models=models)
    made = results_table(lines, spread, title)
    return {
        "runs.csv": to_csv(rows),
        "aggregate.csv": to_csv(lines),
        "table.md": f"**{made.title}**\n\n{made.markdown()}",
        "table.tex": latex(lines, spread, title),
    }
