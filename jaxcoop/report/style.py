"""The look of all figures, and how they reach files: vector PDF and PNG, written whole or not at all.

Figures are made without pyplot: no global state, no display, no window system. matplotlib is imported inside
functions.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxcoop.runs.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Shades that stay apart for colour-blind readers and in grey print (Okabe and Ito).
RED, GREEN, BLUE = "#C8500A", "#00875F", "#0067A5"
ORANGE, SKY, PURPLE = "#E0A030", "#6FB1DC", "#C9B6E4"
INK, GREY, PALE = "#222222", "#6A6A6A", "#D9D9D9"
HIGH, LOW = 0.5, 0.1  # deadlock rates from which a bar is red, up to which it is green

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "pdf.fonttype": 42,  # text stays text: searchable, and editable by journals
    "svg.fonttype": "path",
    "svg.hashsalt": "jaxcoop",  # equal figures give equal files
}
_NOTE_LETTERS_PER_INCH = 20


@contextmanager
def styled() -> Iterator[None]:
    """Figures made or saved inside have the house look, whatever the user's matplotlib settings are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, inches, whose parts are arranged so that they do not overlap."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def rate_color(rate: float) -> str:
    """Colour of a deadlock rate: red from 0.5, green up to 0.1, blue between."""
    return RED if rate >= HIGH else GREEN if rate <= LOW else BLUE


def note(figure: "Figure", sentences: Sequence[str]) -> None:
    """Small print below the panels: what the marks mean and what was left out for want of data."""
    text = " ".join(sentence for sentence in sentences if sentence)
    # Numbers stay with their signs: such spaces are no places to break a line.
    text = text.replace(" = ", "\xa0=\xa0").replace(" %", "\xa0%")
    width = int(figure.get_figwidth() * _NOTE_LETTERS_PER_INCH)
    figure.supxlabel(textwrap.fill(text, width), x=0.01, ha="left", fontsize=6.5, color=GREY)


def rate_axis(axes: "Axes", label: str = "deadlock rate") -> None:
    """The vertical axis from 0 to 1, with room above for the labels of bars at 1."""
    axes.set_ylim(0, 1.16)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.50", "0.75", "1"])
    axes.spines["left"].set_bounds(0, 1)
    axes.grid(axis="y", color=PALE, linewidth=0.5)
    axes.set_ylabel(label)


def wrapped(name: str, letters: int = 11) -> str:
    """A model name on lines of at most `letters`, broken behind spaces, hyphens, slashes and underscores."""
    lines = [""]
    for piece in re.findall(rf"[^\s/_-]{{1,{letters}}}[\s/_-]?|[\s/_-]", name):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > letters:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def as_png(figure: "Figure", dpi: int = 200) -> bytes:
    """The figure as PNG."""
    return _saved(figure, "png", dpi)


def as_svg(figure: "Figure") -> str:
    """The figure as an SVG document."""
    return _saved(figure, "svg", 100).decode()


def save(figure: "Figure", folder: Path, name: str, formats: Sequence[str] = ("pdf", "png")) -> list[Path]:
    """Write `<folder>/<name>.<format>` for each format and return the paths.

    The folder is made when missing.  Raises OSError when it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix in formats:
        path = folder / f"{name}.{suffix}"
        atomic_write(path, _saved(figure, suffix, 300))
        paths.append(path)
    return paths


def _saved(figure: "Figure", suffix: str, dpi: int) -> bytes:
    buffer = io.BytesIO()
    # Without a date equal figures give equal files.
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(suffix)
    with styled():
        figure.savefig(buffer, format=suffix, dpi=dpi, metadata=metadata)
    return buffer.getvalue()
