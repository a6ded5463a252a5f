"""What must hold before a run folder is made or an earlier run is set aside, and what is said afterwards."""

import dataclasses
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxcoop.agents.llm.registry import language_agents
from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.cli.arguments import UsageError
from jaxcoop.planning.record import Record
from jaxcoop.runs.cell import LANGUAGE, Cell, Finished
from jaxcoop.runs.model import RECORD_NAME

LANGUAGE_GROUPS = ("talk", "llm")
"""Groups of options that policies do not follow."""


def refuse_language_options(options: Any, player: str, groups: Sequence[str] = LANGUAGE_GROUPS) -> None:
    """Raises `UsageError`, naming the first option in `groups` that is not at its default.

    `options` is a dataclass of groups, the default of each group being what the preset says.  A policy would
    play as if the option were not there.
    """
    for group in dataclasses.fields(options):
        if group.name not in groups:
            continue
        given = getattr(options, group.name)
        whose = _THINKING if isinstance(given, MindOptions) else _LANGUAGE
        for field in dataclasses.fields(given):
            value = getattr(given, field.name)
            if value != getattr(group.default, field.name):
                raise UsageError(
                    f"{_as_given(field.name, value)} is for {whose[0]}, not for {player}; "
                    f"name a {whose[1]}, or leave the option out"
                )


_LANGUAGE = "language models", "model with --model NAME"
_THINKING = "teams that think", "planner with --planner NAME"


def _as_given(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {value}"


def check_language(cell: Cell, out: Path, *, force: bool) -> None:
    """Set a language model's cell up and take it down again: settings, templates, answers to replay.

    Does nothing for policies.  Raises what `run_cell` would raise once it had opened the folder `out`.
    """
    if not cell.is_language or cell.model is None:
        return
    replay, agents = cell.model.replay, language_agents(cell.env.name)
    if force and replay is not None and replay.resolve() in (out.resolve(), (out / RECORD_NAME).resolve()):
        raise UsageError(
            f"--replay {replay}: --force sets that run aside and begins anew; name another --out, or leave one out"
        )
    with Record() as record, cell.model.make_hub(record, agents.parser) as hub:
        agents.team(cell.env, cell.talk, hub, cell.seed)


def say_notes(runs: Sequence[tuple[Cell, Finished]]) -> None:
    """Notes of finished runs on stderr, equal ones once."""
    notes = Counter(note for cell, finished in runs for note in notes_of(cell, finished))
    for note, count in notes.items():
        print(f"jaxcoop: {note}" + (f" ({count} cells)" if count > 1 else ""), file=sys.stderr)


def notes_of(cell: Cell, finished: Finished) -> list[str]:
    """The notes of a run, and one more when its recorded answers are gone."""
    if cell.agent == LANGUAGE and not (finished.path / RECORD_NAME).is_file():
        return [*finished.notes, f"{RECORD_NAME} is gone: the results stand, but cannot be replayed"]
    return finished.notes
