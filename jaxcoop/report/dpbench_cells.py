"""Which rows are the cells that the figures of the dining-philosophers study compare, and what to say of them.

Source: section 13 of the DPBench behaviour notes, docs/envs/dining.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxcoop.envs.dining.cells import canonical_condition, condition_code
from jaxcoop.envs.dining.presets import PAPER_HORIZON
from jaxcoop.report.cells import Row, find, models, standard_rows

# 13: the condition that all ablations start from.
BASE = {
    "mode": "simultaneous",
    "philosophers": 5,
    "communication_rounds": 0,
    "memory_window": 0,
    "prompt": "default",
}
WILSON = "Whiskers: 95 % Wilson intervals."


def study_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Standard rows of the cells of which mode, size, rounds, memory and prompt say everything.

    Left out are cells with another time limit, with resolved deadlocks, and those whose condition is not the one
    that these five name: other temperatures, back-off, other rules.  A row that does not tell its condition or
    its limit is taken by the five alone.
    """
    return [row for row in standard_rows(rows) if _is_plain(row)]


def _is_plain(row: Row) -> bool:
    limit, terminal, condition = (row.get(name) for name in ("max_timesteps", "deadlock_terminal", "condition"))
    if limit not in (None, PAPER_HORIZON) or terminal not in (None, True):
        return False
    return condition is None or canonical_condition(str(condition)) == _code(row)


def _code(row: Row) -> str:
    """13: what a cell is called in which nothing but the five is changed."""
    rounds, memory = row["communication_rounds"], row["memory_window"]
    if row["prompt"] != BASE["prompt"]:
        return f"prompt_{row['prompt']}"
    if memory:
        return f"memory_{memory}{'_with_comm' if rounds else ''}"
    if rounds > 1:
        return f"comm_rounds_{rounds}"
    return condition_code(str(row.get("mode")), row.get("philosophers") or 0, bool(rounds))


def ablated_model(rows: Sequence[Row]) -> str | None:
    """The model with the most cells that differ from the base condition in talk, memory or prompt, or not at all.

    The first met of equals; None without a row.
    """
    fixed = ("mode", "philosophers")
    cells = [str(row["model"]) for row in rows if all(row.get(name) == BASE[name] for name in fixed)]
    return max(models(rows), key=cells.count, default=None)


def select(
    rows: Sequence[Row], model: str | None, wanted: Sequence[tuple[str, dict[str, Any]]]
) -> tuple[list[tuple[str, Row]], list[str]]:
    """(label, row) of each wanted change of the base condition that has a rate; labels of the others."""
    found, missing = [], []
    for label, change in wanted:
        row = find(rows, **{**BASE, "model": model, **change})
        if row is not None and row.get("deadlock_rate") is not None:
            found.append((label, row))
        else:
            missing.append(label.replace("\n", " "))
    return found, missing


def sizes(rows: Iterable[Row]) -> str:
    """How many episodes the cells have, as a sentence; empty when no row tells."""
    counts = sorted({row["episodes"] for row in rows if row.get("episodes")})
    if not counts:
        return ""
    span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{span} episodes per cell."


def left_out(missing: Sequence[str]) -> str:
    """What was not drawn for want of data, as a sentence; empty for nothing."""
    return f"Left out, no data: {'; '.join(missing)}." if missing else ""
