"""`jaxcoop paper coop2`: play the grid of COOP², print and write its tables and figures."""

import dataclasses
import shlex
import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.benchmarks.papers import coop2_results
from jaxcoop.benchmarks.papers.coop2_estimate import Assumed, estimate_table
from jaxcoop.benchmarks.papers.coop2_matrix import SIMULATED, TEAMS, WORLDS, Grid, Planned, is_simulated, make_plan
from jaxcoop.cli.arguments import UsageError, parse
from jaxcoop.cli.checks import check_language, refuse_language_options, say_notes
from jaxcoop.cli.matrix import make_folder, within
from jaxcoop.cli.planners import with_recorded
from jaxcoop.cli.progress import progress
from jaxcoop.report.coop2_table import STRUCTURES, Spread
from jaxcoop.report.tables import WIDTH
from jaxcoop.runs.cell import Cell, Finished, run_cell
from jaxcoop.runs.model import LanguageModel

LOGGED = 5
"""Episodes of a cell whose records are kept for the figures unless told otherwise."""


@dataclasses.dataclass(frozen=True)
class GridOptions:
    """Which part of the grid is played, and how."""

    models: tuple[str, ...] = ()  # litellm names and simulated ones; default: three simulated models, nothing is asked
    worlds: tuple[str, ...] = WORLDS
    structures: tuple[str, ...] = STRUCTURES
    teams: tuple[int, ...] = TEAMS  # agents
    compare: Literal["off", "on", "both"] = "off"  # with COOP²-Repair or without it
    episodes: int = 5  # of each cell; the paper has 5 runs in MA-Crafter
    seed: int = 42
    steps: int | None = None  # primitive steps of an episode; default: 50 in cube, 200 in macrafter
    out: Path = Path("runs/coop2")  # OUT/WORLD/MODEL/CELL are run folders
    force: bool = False  # begin anew; earlier runs are kept as CELL.old-N
    spread: Literal["interval", "deviation"] = "interval"  # what ± means: 95 % half width, or standard deviation
    dry_run: bool = False  # count calls, tokens and dollars; nothing is asked, nothing is written
    plan_steps: float = 4.0  # for --dry-run: steps from plan to plan
    prompt_tokens: float = 2500.0  # for --dry-run: of a call
    reply_tokens: float = 250.0  # for --dry-run: of a call
    call_seconds: float = 2.0  # for --dry-run: of a call


def main(arguments: list[str]) -> None:
    """Play the grid.  The same command continues one that was stopped."""
    command = shlex.join(["jaxcoop", "paper", "coop2", *arguments])
    given = _parsed(arguments)
    options, model = given.grid, given.llm
    models = (*options.models, *([model.model] if model.model else [])) or tuple(SIMULATED)
    grid = Grid(
        models=models,
        worlds=options.worlds,
        structures=options.structures,
        teams=options.teams,
        repair=options.compare,
        episodes=options.episodes,
        seed=options.seed,
        steps=options.steps,
    )
    plan = make_plan(grid, with_recorded(given.talk), model)
    if all(is_simulated(name) for name in grid.models):
        refuse_language_options(given, "simulated models", groups=("llm",))
    if options.dry_run:
        _dry_run(plan, options)
        return
    for planned in plan:
        check_language(planned.cell, options.out / planned.folder, force=options.force)
    make_folder(options.out)
    played = _play(plan, options, command)
    spread = Spread[options.spread.upper()]
    rows = coop2_results.run_rows(played)
    for made in coop2_results.world_tables(rows, grid.models, spread).values():
        print()
        made.print()
    for note in coop2_results.notes_of(rows):
        print(f"\n{textwrap.fill(note, WIDTH)}")
    config = {"command": command, **dataclasses.asdict(grid)}
    written = coop2_results.write_results(options.out, played, models=grid.models, spread=spread, config=config)
    print("\n" + "\n".join(str(path) for path in written.values()))
    print(f"run folder: {options.out}")


def _parsed(arguments: list[str]) -> Any:
    """The options: `grid`, `talk` and `llm`."""
    import tyro

    groups = (("grid", GridOptions()), ("talk", MindOptions(log=LOGGED)), ("llm", LanguageModel()))
    fields = [
        (name, Annotated[type(default), tyro.conf.OmitArgPrefixes], dataclasses.field(default=default))
        for name, default in groups
    ]
    options: Any = parse(
        dataclasses.make_dataclass("Options", fields, frozen=True),
        arguments,
        prog="jaxcoop paper coop2",
        description="The grid of COOP²: worlds x models x structures x team sizes.",
    )
    if options.talk.structure != MindOptions().structure:
        raise UsageError(f"--structure {options.talk.structure}: the grid has several; name them with --structures")
    if options.talk.repair:
        raise UsageError("--repair: the grid has both; choose with --compare on or --compare both")
    for name in ("plan_steps", "prompt_tokens", "reply_tokens", "call_seconds"):
        value = getattr(options.grid, name)
        if not 0 < value < 1e9:
            raise UsageError(f"--{name.replace('_', '-')} {value:g}: must be above 0, and at most 1e9")
    return options


def _play(plan: list[Planned], options: GridOptions, command: str) -> list[tuple[Planned, Path]]:
    """Run every cell; notes of run folders go to stderr, equal ones once."""
    told: list[tuple[Cell, Finished]] = []
    played: list[tuple[Planned, Path]] = []
    try:
        with progress(len(plan), unit="cells") as shown:
            for number, planned in enumerate(plan):
                shown.note(planned.name)
                finished = run_cell(
                    planned.cell,
                    command=command,
                    out=options.out / planned.folder,
                    force=options.force,
                    watch=lambda total, done, name=planned.name: within(shown, name, total, done),
                )
                shown.advance(number + 1 - shown.done)
                told.append((planned.cell, finished))
                played.append((planned, finished.path))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(played)} of {len(plan)} cells; continue with: {command}"
        ) from None
    say_notes(told)
    return played


def _dry_run(plan: list[Planned], options: GridOptions) -> None:
    """Print what the plan would ask."""
    asking = [planned for planned in plan if planned.cell.is_language]
    print(f"Dry run: {len(plan)} cells; nothing is asked, nothing is written.")
    if len(asking) < len(plan):
        print(f"{len(plan) - len(asking)} cells are simulated by scripted planners on the device: no calls, no cost.")
    if not asking:
        return
    assumed = Assumed(options.plan_steps, options.prompt_tokens, options.reply_tokens, options.call_seconds)
    print()
    estimate_table(asking, assumed).print()
    print(
        f"\nAssumed: a plan lasts {assumed.plan_steps:g} steps, a call takes {assumed.call_seconds:g} s, its prompt has"
    )
    print(f"{assumed.prompt_tokens:g} tokens and its reply {assumed.reply_tokens:g}; --plan-steps, --call-seconds,")
    print("--prompt-tokens and --reply-tokens change that.  At most: everybody plans in every step.")
