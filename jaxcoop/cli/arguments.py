"""Command lines from dataclasses, by tyro; its errors become one line."""

import contextlib
import io
import sys
from typing import Any, TypeVar

Options = TypeVar("Options")

_BOX = "╭╮╰╯│─"


class UsageError(ValueError):
    """The command line cannot be read; the message is one line."""


def parse(options: type[Options], arguments: list[str], *, prog: str, description: str = "") -> Options:
    """Fill the dataclass `options` from `arguments`.

    `--help` prints and exits.  Raises `UsageError` naming the option, the value and what is allowed.
    """
    import tyro

    written = io.StringIO()
    try:
        with contextlib.redirect_stderr(written):
            return tyro.cli(options, prog=prog, description=description, args=arguments)
    except SystemExit as stop:
        if not stop.code:
            sys.stderr.write(written.getvalue())
            raise
        raise UsageError(f"{_sentence(written.getvalue())} (see {prog} --help)") from None


def _sentence(boxed: str) -> str:
    """The first paragraph of a boxed message as one line."""
    lines = [line.strip(_BOX + " ") for line in boxed.splitlines()[1:]]
    first: list[str] = []
    for line in lines:
        if not line and first:
            break
        first += [line] if line else []
    return " ".join(first) or "the command line cannot be read"


def take_option(arguments: list[str], name: str, default: Any = None) -> tuple[Any, list[str]]:
    """The value of `--name VALUE` or `--name=VALUE`, and the other arguments."""
    rest, value = [], default
    queue = list(arguments)
    while queue:
        item = queue.pop(0)
        if item == name:
            if not queue or queue[0].startswith("--"):
                raise UsageError(f"{name} needs a value")
            value = queue.pop(0)
        elif item.startswith(f"{name}="):
            value = item.split("=", 1)[1]
        else:
            rest.append(item)
    return value, rest
