"""Layouts by name, from text files, or as text (host side)."""

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jaxcoop.core.registry import brief, unknown

OWN = "own"
"""Name of a layout that has none."""


@dataclasses.dataclass(frozen=True)
class Library:
    """The layouts that come with an environment, in a folder of text files, and those of users.

    `parse(text, name=..., source=...)` makes a kitchen or raises `LayoutError`, which names the source.
    """

    folder: Path
    parse: Callable[..., Any]

    def names(self) -> tuple[str, ...]:
        """The layouts that come with the environment."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.txt")))

    def settled(self, layout: str) -> str:
        """A name as it is, and in place of a path the text of the file: a configuration that needs no file any more.

        A path has a dot or a slash in it, a text more than one line.  Raises `LayoutError` for a layout that cannot be
        used, naming file, line and column, and `ValueError` for one that does not exist.
        """
        if not isinstance(layout, str):
            raise ValueError(f"layout {brief(layout)}: must be a name or the path of a text file")
        if "\n" in layout:
            _parsed(self, layout, "layout")
            return layout
        if "/" not in layout and "." not in layout:
            if layout not in self.names():
                raise unknown("layout", layout, [*self.names(), "the path of a text file such as ./mine.txt"])
            return layout
        try:
            text = Path(layout).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"layout {brief(layout)}: cannot be read ({error})") from None
        text = text if text.endswith("\n") else text + "\n"
        _parsed(self, text, layout)
        return text

    def load(self, layout: str) -> Any:
        """The kitchen of a layout; raises as `settled` does."""
        settled = self.settled(layout)
        return _parsed(self, settled, "layout") if "\n" in settled else _built_in(self, settled)


@cache
def _built_in(library: Library, name: str) -> Any:
    path = library.folder / f"{name}.txt"
    return library.parse(path.read_text(encoding="utf-8"), name=name, source=path.name)


@cache
def _parsed(library: Library, text: str, source: str) -> Any:
    return library.parse(text, name=OWN, source=source)
