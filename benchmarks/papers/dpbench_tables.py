"""The tables of the DPBench study: own cells, and the published ones beside them.

Rows are those of `dpbench_matrix.finished_row`.  Source: sections 12, 13 and 17 of the DPBench behaviour
notes, docs/envs/dining.md.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxcoop.agents.registry import RANDOM as UNIFORM
from jaxcoop.benchmarks.papers.dpbench import published, published_name, published_row
from jaxcoop.envs.dining.cells import Z_TABLE_COLUMNS, Z_TABLE_MISSING
from jaxcoop.report.cells import Row, models, standard_rows
from jaxcoop.report.tables import Table, cell_table, table, with_half, with_interval
from jaxcoop.runs.statistics import MannWhitney, mann_whitney, z_interval_table

DEFAULTS_N5 = ("sim_n5_nocomm", "sim_n5_comm", "seq_n5_nocomm", "seq_n5_comm")
WITHIN = 2.0  # standard errors
MEANS = ("throughput", "fairness")
COMPARED = (
    ("simultaneous_vs_sequential_n5", "simultaneous, sequential (N=5)", "sim_n5_nocomm", "seq_n5_nocomm"),
    ("communication_vs_no_communication_n5", "messages, none (N=5)", "sim_n5_comm", "sim_n5_nocomm"),
    ("n5_vs_n10_simultaneous", "N=5, N=10 (simultaneous)", "sim_n5_nocomm", "sim_n10_nocomm"),
)
# From these names intervals would be filled in again.
_SAMPLE = ("deadlock_count", "true_deadlock_count", "std_throughput", "std_fairness")


def shown_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows for tables and figures: deterministic cells without what only a sample has."""
    return standard_rows(
        {k: v for k, v in row.items() if not (row.get("deterministic") and k in _SAMPLE)} for row in rows
    )


def n5_table(rows: Sequence[Row]) -> Table | None:
    """13: per model, the default conditions at five philosophers, as the package reports them."""
    lines = [
        (
            row["model"],
            row["condition"],
            row["episodes"],
            _rate(row, "deadlock"),
            with_half(row["throughput"], row["throughput_half"]),
        )
        for row in shown_rows(rows)
        if row["condition"] in DEFAULTS_N5
    ]
    heads = ("model", "condition", "n", "deadlock %", "throughput")
    return table("Five philosophers, default conditions, as reported", heads, lines, keys=2) if lines else None


def matrix_table(rows: Sequence[Row]) -> Table:
    """Every cell with all its measures."""
    return cell_table(shown_rows(rows), "All cells")


def _rate(row: Mapping[str, Any], name: str) -> str:
    return with_interval(row.get(f"{name}_rate"), row.get(f"{name}_low"), row.get(f"{name}_high"))


def comparison_tables(rows: Sequence[Row]) -> list[Table]:
    """For every player that DPBench published: own and published values of the cells that both have.

    Deadlock counts every circular wait, reported or not (7.2).  `se apart` is the difference in its standard
    errors (rates: pooled).
    """
    lines: dict[str, list[tuple[str, ...]]] = {}
    for row, reference in _pairs(rows):
        shown = [("deadlock %", _rate(row, "true_deadlock"), _rate(reference, "true_deadlock"))]
        shown += [
            (
                name,
                with_half(row[name], row[f"{name}_half"]),
                with_half(reference[name], reference[f"{name}_half"]),
            )
            for name in MEANS
        ]
        lines.setdefault(row["model"], []).extend(
            (row["condition"], *cells, _apart(errors))
            for cells, errors in zip(shown, distances(row, reference), strict=True)
        )
    heads = ("condition", "measure", "own", "published", "se apart")
    return [
        table(f"{name} beside the published {published_name(name)}", heads, found, keys=2)
        for name, found in lines.items()
    ]


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    for row in shown_rows(rows):
        reference = published_row(row["model"], row["condition"])
        if reference is not None:
            yield row, reference


def distances(own: Row, reference: Row) -> list[float]:
    """Differences in standard errors: rate of circular waits, throughput, fairness.

    0 for equal values; infinite for unequal ones that do not vary.
    """
    p, q = own["true_deadlock_rate"], reference["true_deadlock_rate"]
    n, m = own["episodes"], reference["episodes"]
    pooled = (p * n + q * m) / (n + m)
    found = [_in_errors(p - q, math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m)))]
    for name in MEANS:
        variance = sum((row.get(f"std_{name}") or 0.0) ** 2 / row["episodes"] for row in (own, reference))
        found.append(_in_errors(own[name] - reference[name], math.sqrt(variance)))
    return found


def _in_errors(difference: float, error: float) -> float:
    # Below 1e-12 both are rounding noise of equal values.
    if abs(difference) < 1e-12:
        return 0.0
    return difference / error if error > 1e-12 else math.copysign(math.inf, difference)


def _apart(errors: float) -> str:
    return "not equal" if math.isinf(errors) else f"{errors:+.1f}"


def sequential_table(rows: Sequence[Row]) -> Table | None:
    """7.2: sequential deadlocks as the package reports them, and as they happened; own and published."""
    lines = []
    for row in shown_rows(rows):
        if row["mode"] != "sequential":
            continue
        reference = published_row(row["model"], row["condition"])
        both = [(row["model"], row)]
        both += [] if reference is None else [(f"{reference['model']} (published)", reference)]
        lines += [
            (name, row["condition"], _rate(found, "deadlock"), _rate(found, "true_deadlock")) for name, found in both
        ]
    heads = ("model", "condition", "reported %", "happened %")
    return table("Sequential deadlocks, reported and true", heads, lines, keys=2) if lines else None


def mann_whitney_table(rows: Sequence[Row]) -> Table:
    """12: tests over lists of model-level deadlock rates, uniformly random players left out.

    The sequential comparison is repeated with every circular wait counted, which the package does not do.
    """
    left_out = {spec.name for spec in UNIFORM}
    players = [row for row in standard_rows(rows) if row["model"] not in left_out]
    stored = published()["mann_whitney_over_model_level_deadlock_rates"]
    lines = []
    for name, label, first, second in COMPARED:
        reference = MannWhitney(**stored[name])
        lines.append((label, *_test(players, first, second, "deadlock_rate"), _result(reference)))
        if (first[:3], second[:3]) == ("sim", "seq"):
            every = _test(players, first, second, "true_deadlock_rate")
            lines.append(("the same, all circular waits", *every, "-"))
    heads = ("comparison", "models", "own", "published")
    return table("Mann-Whitney U over model-level deadlock rates", heads, lines)


def _test(players: Sequence[Row], first: str, second: str, rate: str) -> tuple[str, str]:
    a, b = ([row[rate] for row in players if row["condition"] == code] for code in (first, second))
    return f"{len(a)}, {len(b)}", _result(mann_whitney(a, b))


def _result(test: MannWhitney) -> str:
    if test.p_value is None:
        return "needs 2 models"
    return f"U={test.u_statistic:g}, p={test.p_value:.4f}"


def consistency_table(rows: Sequence[Row]) -> Table | None:
    """12: percent of messages that announce the action they come with, where players talk."""
    lines = []
    for row in rows:
        if "message_action_consistency" not in row:
            continue
        reference = published_row(row["model"], row["condition"]) or {}
        lines.append(
            (
                row["model"],
                row["condition"],
                row["communication_rounds"],
                _percent(row["message_action_consistency"]),
                _percent(reference.get("message_action_consistency")),
            )
        )
    heads = ("model", "condition", "rounds", "consistent %", "published %")
    return table("Message-action consistency", heads, lines, keys=2) if lines else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def z_table(rows: Sequence[Row]) -> Table:
    """17: the supplementary table, Wald and z half-widths at 95 %, rounded as published."""
    lines = z_interval_table(rows, Z_TABLE_COLUMNS, missing=Z_TABLE_MISSING)
    fixed = {(row["model"], row["condition"]) for row in rows if row.get("deterministic")}
    widths = [name for *_, name in Z_TABLE_COLUMNS if name is not None]
    for line in lines:
        if (line["model"], line["condition"]) in fixed:
            line.update(dict.fromkeys(widths))
    # Calls and tokens stand in the table of all cells, for the players that make calls.
    heads = [name for name in lines[0] if not name.startswith("total_")]
    title = "Supplementary: normal intervals (half-widths)"
    return table(title, heads, ([line[head] for head in heads] for line in lines), keys=2)


def summary_notes(rows: Sequence[Row]) -> list[str]:
    """What a reader of the tables must know, one sentence each."""
    notes = []
    fixed = [row for row in rows if row.get("deterministic")]
    if fixed:
        names = ", ".join(models(fixed))
        notes.append(f"Without intervals, because every episode is the same: {len(fixed)} cells of {names}.")
    stand_ins = [f"{m} for {published_name(m)}" for m in models(rows) if published_name(m) not in (None, m)]
    if stand_ins:
        notes.append(f"Compared with the published model: {', '.join(stand_ins)}.")
    errors = [error for pair in _pairs(rows) for error in distances(*pair)]
    if errors:
        beyond = sum(abs(error) > WITHIN for error in errors)
        notes.append(f"More than {WITHIN:g} standard errors apart: {beyond} of {len(errors)} comparisons.")
    return notes
