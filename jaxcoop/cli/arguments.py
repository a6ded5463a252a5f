"""Command lines from dataclasses, by tyro; its errors become one line."""

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from jaxcoop.core.registry import EnvSpec

Options = TypeVar("Options")

_SIDES = "╭╮╰╯│ "
_RULE = re.compile(r"[-─]{3,}")
_WIDE = "10000"  # columns: nothing is wrapped, so nothing has to be put together again
_KINDS = {"{None}": "None", "INT": "a whole number", "FLOAT": "a number", "PATH": "a path", "STR": "text"}
_WORDINGS: tuple[tuple[str, str], ...] = (
    (r"Error parsing (?!-)\w+: ", ""),  # a group of options: the message names the option itself
    (r"Error parsing (--[\w-]+): ", r"\1: "),
    (r"invalid literal for int\(\) with base \d+: ", "not a whole number: "),
    (r"could not convert string to float: ", "not a number: "),
    (r"no type matching (\S+) could be instantiated from \[(.*)\]\.?$", r"\2 is not \1"),
    (r"Could not find valid parse for arguments: \[(.*)\]$", r"cannot read \1"),
    (r"Missing value for argument '(--[\w-]+)'.*", r"\1 needs a value"),
    (r"invalid choice ('.*') for argument '(--[\w-]+)'\. Expected one of \((.*?),?\)\.", r"\2 \1: allowed: \3"),
)


class UsageError(ValueError):
    """The command line cannot be read; the message is one line."""


def parse(options: type[Options], arguments: list[str], *, prog: str, description: str = "") -> Options:
    """Fill the dataclass `options` from `arguments`.

    `--help` prints and exits.  Raises `UsageError` naming the option, the value and what is allowed.
    """
    import tyro

    written = io.StringIO()
    wants_help = not {"-h", "--help"}.isdisjoint(arguments)
    try:
        with contextlib.redirect_stderr(written), contextlib.nullcontext() if wants_help else _wide_terminal():
            return tyro.cli(options, prog=prog, description=description, args=arguments)
    except SystemExit as stop:
        if not stop.code:
            sys.stderr.write(written.getvalue())
            raise
        raise UsageError(f"{_sentence(written.getvalue())} (see {prog} --help)") from None


@contextlib.contextmanager
def _wide_terminal() -> Iterator[None]:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDE
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _sentence(boxed: str) -> str:
    """The first paragraph of a boxed message as one line in plain words; the box may be drawn in ASCII."""
    paragraphs: list[list[str]] = [[]]
    for line in (line.strip(_SIDES) for line in boxed.splitlines()[1:]):
        if not line or _RULE.fullmatch(line):
            paragraphs.append([])
        else:
            paragraphs[-1].append(line)
    filled = [lines for lines in paragraphs if lines]
    text = " ".join(filled[0]) if filled else "the command line cannot be read"
    for pattern, wording in _WORDINGS:
        text = re.sub(pattern, wording, text)
    text = re.sub(r"(?<=is not )\S+$", _in_words, text)
    for lines in filled[1:]:
        if lines[0].startswith("Perhaps you meant") and len(lines) > 1:
            text += f"; did you mean {lines[1].split()[0]}?"
    return text.rstrip(".")


def _in_words(types: re.Match[str]) -> str:
    """Types as tyro writes them, `{None}|INT`, in words."""
    names = sorted(types[0].split("|"), key="{None}".__eq__)
    return " or ".join(_KINDS.get(name, name) for name in names)


def check_preset(spec: EnvSpec, preset: str | None) -> None:
    """Raises `UsageError` when a preset is named of an environment that has none."""
    if preset is not None and not spec.presets:
        raise UsageError(f"--preset {preset}: {spec.name} has no presets; leave --preset out")


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
