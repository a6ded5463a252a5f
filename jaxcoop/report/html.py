"""`report.html`: tables, figures and manifest of a run on one page that loads nothing from elsewhere."""

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from jaxcoop.report import style
from jaxcoop.report.tables import Table
from jaxcoop.runs.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGE = Template("""<!DOCTYPE html>
<html lang="en"> <head> <meta charset="utf-8"> <meta name="viewport" content="width=device-width,
initial-scale=1"> <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
style-src 'unsafe-inline'"> <title>$title</title> <style> body { font: 15px/1.5 system-ui, sans-serif; color:
#222; background: #fff; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid #888; } .number { text-align: right; }
figure { margin: 1.5rem 0; } figure img, figure svg { max-width: 100%; height: auto; }
figcaption, .notes { color: #555; font-size: 0.85rem; }
pre { background: #f5f5f5; padding: 0.8rem; overflow-x: auto; font-size: 0.8rem; }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


def report_html(
    title: str,
    *,
    tables: Iterable[Table] = (),
    figures: "Mapping[str, Figure | bytes | str]" = {},  # noqa: B006 - never changed
    manifest: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """The page as text.  All texts are escaped.

    `figures` maps a caption to a matplotlib figure, the bytes of a PNG, or the text of an SVG document.
    Raises ValueError for bytes that are not a PNG and text that is not an SVG.
    """
    parts = []
    if notes:
        parts.append(f'<ul class="notes">{"".join(f"<li>{html.escape(note)}</li>" for note in notes)}</ul>')
    parts += [_table(table) for table in tables]
    parts += [_figure(caption, figure) for caption, figure in figures.items()]
    if manifest is not None:
        text = html.escape(json.dumps(manifest, indent=2, ensure_ascii=False))
        parts.append(f"<h2>Manifest</h2>\n<pre>{text}</pre>")
    return _PAGE.substitute(title=html.escape(title), body="\n".join(parts))


def write_report(path: Path | str, title: str, **content: Any) -> Path:
    """Write `report_html(title, **content)` to `path` atomically and return the path.

    Raises OSError when it cannot be written.
    """
    # A text from a model may hold half a surrogate pair, which no encoding can write.
    page = report_html(title, **content).encode("utf-8", "replace")
    atomic_write(path, page)
    return Path(path)


def _table(table: Table) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        marks = [' class="number"' if numeric else "" for numeric in table.numeric]
        inside = "".join(f"<{tag}{m}>{html.escape(c)}</{tag}>" for m, c in zip(marks, cells))
        return f"<tr>{inside}</tr>"

    heading = f"<h2>{html.escape(table.title)}</h2>\n" if table.title else ""
    rows = "\n".join(line("td", row) for row in table.rows)
    head = line("th", table.columns)
    body = f"<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>"
    return f'{heading}<div class="scroll"><table>\n{body}\n</table></div>'


def _figure(caption: str, figure: "Figure | bytes | str") -> str:
    if isinstance(figure, str):
        # The XML header and document type belong to a file of its own, not to a page.
        start = figure.find("<svg")
        if start < 0 or re.search(r"<script|\son\w+=", figure, re.IGNORECASE):
            raise ValueError(f"figure {caption!r} is not a plain SVG document; give an <svg> without scripts")
        picture = figure[start:]
    else:
        data = figure if isinstance(figure, bytes) else style.as_png(figure)
        if not data.startswith(b"\x89PNG"):
            raise ValueError(f"figure {caption!r} is not a PNG; give PNG bytes, SVG text or a matplotlib figure")
        source = base64.b64encode(data).decode()
        picture = f'<img alt="{html.escape(caption)}" src="data:image/png;base64,{source}">'
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"
