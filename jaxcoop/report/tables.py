"""Tables for terminals, Markdown, CSV and JSON.

A table wider than the terminal is not squeezed: its columns are dealt to several blocks one below the other,
each beginning with the key columns.  rich is imported inside functions.
"""

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from jaxcoop.report.cells import Row, standard_rows
from jaxcoop.runs.manifest import plain

NONE = "-"  # shown where there is no value
WIDTH = 80  # columns of the output when it is not a terminal
_GAP = 2  # spaces between columns
_ASCII = str.maketrans({"±": "~", "─": "-"})  # for outputs that know no other letters


@dataclass(frozen=True)
class Table:
    """Headings and formatted cells; the first `keys` columns name a row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]  # columns aligned to the right
    keys: int = 1

    def text(self, width: int = WIDTH) -> str:
        """Plain text without colours, at most `width` columns wide."""
        buffer = io.StringIO()
        self._render(buffer, width=width, terminal=False)
        return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"

    def print(self, file: IO[str] | None = None) -> None:
        """Write to `file` (default: standard output): as wide as the terminal, plain text elsewhere."""
        stream = sys.stdout if file is None else file
        if stream.isatty():
            self._render(stream, width=None, terminal=True)
            return
        text = self.text()
        try:
            text.encode(getattr(stream, "encoding", None) or "utf-8")
        except UnicodeEncodeError:
            text = text.translate(_ASCII).encode("ascii", "replace").decode()
        stream.write(text)

    def markdown(self) -> str:
        """A Markdown table; the title is left to the caller."""

        def line(cells: Iterable[str]) -> str:
            return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"

        rule = "|" + "|".join("---:" if numeric else "---" for numeric in self.numeric) + "|"
        return "\n".join([line(self.columns), rule, *map(line, self.rows)]) + "\n"

    def blocks(self, width: int) -> list[list[int]]:
        """Column numbers of each block, so that a block is at most `width` wide where that is possible."""
        sizes = [max(map(_cells, (head, *(row[i] for row in self.rows)))) for i, head in enumerate(self.columns)]
        keys = list(range(self.keys))
        start = sum(sizes[i] + _GAP for i in keys)
        blocks, used = [list(keys)], start
        for i in range(self.keys, len(self.columns)):
            if used + sizes[i] > width and len(blocks[-1]) > self.keys:
                blocks.append(list(keys))
                used = start
            blocks[-1].append(i)
            used += sizes[i] + _GAP
        return blocks

    def transposed(self) -> "Table":
        """The same cells with a line per column; for tables of one row."""
        columns = (self.columns[0], *(row[0] for row in self.rows))
        rows = tuple((head, *(row[i] for row in self.rows)) for i, head in enumerate(self.columns) if i > 0)
        return Table(self.title, columns, rows, (False, *(True for _ in self.rows)))

    def _render(self, file: IO[str], *, width: int | None, terminal: bool) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        console = Console(
            file=file, width=width, force_terminal=terminal or None, no_color=not terminal, highlight=False
        )
        blocks = self.blocks(console.width)
        if len(blocks) > 1 and len(self.rows) == 1:
            self.transposed()._render(file, width=width, terminal=terminal)
            return
        if self.title:
            console.print(Text(self.title, style="bold"))
        for number, block in enumerate(blocks):
            if number:
                console.print()
            made = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
            for i in block:
                justify = "right" if self.numeric[i] else "left"
                made.add_column(Text(self.columns[i]), justify=justify, overflow="fold")
            for row in self.rows:
                made.add_row(*(Text(row[i]) for i in block))
            console.print(made)


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def show(value: Any) -> str:
    """One value as a cell: `-` for none and NaN, four significant digits, thousands separated, one line."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    # Names may come from a model or a file: no control character may reach the terminal.
    return "".join(c if c.isprintable() else " " for c in str(value))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, keys: int = 1) -> Table:
    """A table of any values; a column without text values is aligned to the right.

    Raises ValueError when a row has another number of entries than there are columns.
    """
    rows = [list(row) for row in rows]
    for number, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"row {number} of {title!r} has {len(row)} entries for {len(columns)} columns")
    numeric = [bool(rows) and not any(isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    cells = tuple(tuple(show(value) for value in row) for row in rows)
    return Table(title, tuple(columns), cells, tuple(numeric), min(keys, len(columns)))


def with_half(value: float | None, half: float | None, digits: int = 3) -> str:
    """`0.303 ± 0.030`: as many digits, at least `digits`, as show two of the half-width."""
    if value is None or half is None:
        return NONE if value is None else f"{value:.{digits}f}"
    digits = max(digits, _digits(half))
    return f"{value:.{digits}f} ± {half:.{digits}f}"


def with_interval(rate: float | None, low: float | None, high: float | None) -> str:
    """`13.3 [5.3, 29.7]`: a rate and its interval in percent, with digits that fit the interval."""
    if rate is None or low is None or high is None:
        return NONE if rate is None else f"{100 * rate:.1f}"
    digits = max(1, _digits(50 * (high - low)))
    return f"{100 * rate:.{digits}f} [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def _digits(half: float) -> int:
    # Below 1e-9 the half-width is rounding noise of equal values.
    return min(6, 1 - math.floor(math.log10(half))) if half > 1e-9 and math.isfinite(half) else 0


def _true_deadlock(row: Row) -> str:
    name = "deadlock" if row.get("true_deadlock_rate") is None else "true_deadlock"
    return with_interval(row.get(f"{name}_rate"), row.get(f"{name}_low"), row.get(f"{name}_high"))


def _reported_deadlock(row: Row) -> str:
    # 7.2: only in sequential mode does the reference report another number.
    if row.get("mode") != "sequential" or row.get("true_deadlock_rate") is None:
        return NONE
    return with_interval(row.get("deadlock_rate"), row.get("deadlock_low"), row.get("deadlock_high"))


def _time_to_deadlock(row: Row) -> str:
    true = row.get("time_to_true_deadlock")
    return _fixed(row.get("time_to_deadlock") if true is None else true)


def _fixed(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"


def _tokens(row: Row) -> Any:
    parts = [row.get("tokens_in"), row.get("tokens_out")]
    return row.get("total_tokens", row.get("tokens")) if None in parts else sum(part or 0 for part in parts)


def _timeouts(row: Row) -> str:
    return with_interval(row.get("timeout_rate"), row.get("timeout_low"), row.get("timeout_high"))


def _consistency(row: Row) -> str:
    value = row.get("message_action_consistency")
    return NONE if value is None else f"{value:.1f}"


_CELL_COLUMNS = (
    ("model", lambda row: row.get("model")),
    ("condition", lambda row: row.get("condition")),
    ("N", lambda row: row.get("philosophers")),
    ("episodes", lambda row: row.get("episodes")),
    ("deadlock %", _true_deadlock),
    ("reported %", _reported_deadlock),
    ("resolved", lambda row: _fixed(row.get("deadlock_events"))),
    ("timeout %", _timeouts),
    ("throughput", lambda row: with_half(row.get("throughput"), row.get("throughput_half"))),
    ("fairness", lambda row: with_half(row.get("fairness"), row.get("fairness_half"))),
    ("starved", lambda row: _fixed(row.get("starvation"))),
    ("t deadlock", _time_to_deadlock),
    ("timesteps", lambda row: _fixed(row.get("timesteps"))),
    ("consistent %", _consistency),
    ("calls", lambda row: row.get("calls")),
    ("retried", lambda row: row.get("retried")),
    ("fallback", lambda row: row.get("fallback")),
    ("malformed", lambda row: row.get("malformed")),
    ("tokens", _tokens),
    ("cost $", lambda row: row.get("cost")),
)
# Always 0 unless the rules were changed (7.3; 14, point 3), so shown only with rows of such rules.
_ONLY_WITH = {"resolved": ("deadlock_events",), "timeout %": ("timeout_count", "target_meals")}


def cell_table(rows: Iterable[Mapping[str, Any]], title: str = "") -> Table:
    """The results table: deadlock % with Wilson interval, means ± t half-widths, price of LLM cells.

    `deadlock` counts every circular wait that ended an episode; `reported` is the reference's number where that
    differs (sequential mode); `resolved` are circular waits per episode after which play went on; `timeout` counts
    time limits with somebody below the target of meals; `consistent` are messages that announce the action they come
    with.  Columns that say nothing of any row are left out.  Rows may carry the names of `jaxcoop.report.cells`.
    """
    rows = standard_rows(rows)
    columns = [(head, [get(row) for row in rows]) for head, get in _CELL_COLUMNS if _applies(head, rows)]
    columns = [(head, cells) for head, cells in columns if head == "model" or any(c not in (None, NONE) for c in cells)]
    heads = [head for head, _ in columns]
    made = table(title, heads, zip(*(cells for _, cells in columns)), keys=2 if "condition" in heads else 1)
    numeric = tuple(head not in ("model", "condition") for head in heads)
    return Table(made.title, made.columns, made.rows, numeric, made.keys)


def shown_table(rows: Iterable[Mapping[str, Any]], shown: Sequence[str], title: str = "") -> Table:
    """A results table of any environment: rates in % with their intervals, means ± t half-widths.

    `shown`: names as in `Results.shown`; a rate `x` is read from `x_rate`, `x_low`, `x_high`, a mean `y` from `y` and
    `y_half`.
    """
    rows = list(rows)
    heads = ["model", *(["condition"] if any(row.get("condition") for row in rows) else []), "episodes"]
    keys = len(heads) - 1
    heads += [f"{_words(name)} %" if f"{name}_rate" in rows[0] else _words(name) for name in shown]
    cells = [[*(row.get(head) for head in heads[: keys + 1]), *(_shown(row, name) for name in shown)] for row in rows]
    made = table(title, heads, cells, keys=keys)
    numeric = tuple(number >= keys for number in range(len(heads)))
    return Table(made.title, made.columns, made.rows, numeric, made.keys)


def _shown(row: Mapping[str, Any], name: str) -> str:
    if f"{name}_rate" in row:
        return with_interval(row[f"{name}_rate"], row.get(f"{name}_low"), row.get(f"{name}_high"))
    value = row.get(name)
    return with_half(value, row.get(f"{name}_half"), 1 if value is not None and abs(value) >= 100 else 2)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _applies(head: str, rows: Iterable[Row]) -> bool:
    names = _ONLY_WITH.get(head)
    return names is None or any(row.get(name) for row in rows for name in names)


def to_markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """`cell_table` as Markdown."""
    return cell_table(rows).markdown()


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """All entries of all rows at full precision; None and NaN are empty, lists are JSON."""
    data = plain([dict(row) for row in rows], "rows", nan_as_none=True)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(dict.fromkeys(key for row in data for key in row)), lineterminator="\n")
    writer.writeheader()
    for row in data:
        writer.writerow({k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()})
    return buffer.getvalue()


def to_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """All entries of all rows at full precision as a JSON list, one row a line; NaN is null."""
    data = plain([dict(row) for row in rows], "rows", nan_as_none=True)
    return "[\n" + ",\n".join(json.dumps(row) for row in data) + "\n]\n"
