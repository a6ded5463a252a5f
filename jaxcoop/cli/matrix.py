"""What commands that play a matrix of cells share: the folder above the run folders, one progress for all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxcoop.cli.progress import Progress
from jaxcoop.runs.files import RunFolderError, reason


def make_folder(out: Path) -> None:
    """Make the folder of a matrix.  Raises `RunFolderError`, one line, where that is impossible."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise RunFolderError(f"{out} is a file; choose another --out") from None
    except OSError as error:
        raise RunFolderError(f"cannot make {out}: {reason(error)}; choose another --out") from error
    except ValueError as error:  # a null character
        raise RunFolderError(f"{str(out)!r} cannot be a folder: {error}; choose another --out") from error


class _Share:
    """One cell's part of the overall progress."""

    def __init__(self, shown: Progress, name: str, total: int, done: int) -> None:
        self.shown, self.name, self.total = shown, name, total
        self.advance(done)

    def advance(self, count: int) -> None:
        """`count` more of its episodes are finished."""
        self.shown.advance(count / self.total)

    def note(self, text: str) -> None:
        """What goes on within it."""
        self.shown.note(f"{self.name}: {text}")


@contextmanager
def within(shown: Progress, name: str, total: int, done: int) -> Iterator[_Share]:
    """The watcher of the cell `name`, `done` of whose `total` episodes are finished."""
    yield _Share(shown, name, total, done)
