"""`jaxcoop paper NAME`: play a published condition matrix, print and write its tables and figures."""

import dataclasses
import math
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from jaxcoop.benchmarks.papers import dpbench, dpbench_matrix, dpbench_results
from jaxcoop.benchmarks.papers.dpbench_estimate import estimate_table, total_line
from jaxcoop.benchmarks.papers.dpbench_matrix import DEFAULT_MODELS, GROUPS, Planned
from jaxcoop.benchmarks.papers.dpbench_tables import summary_notes
from jaxcoop.cli import paper_coop2
from jaxcoop.cli.arguments import UsageError, parse
from jaxcoop.cli.checks import check_language, refuse_language_options, say_notes
from jaxcoop.cli.matrix import make_folder, within
from jaxcoop.cli.progress import progress
from jaxcoop.core.registry import unknown
from jaxcoop.report.tables import WIDTH
from jaxcoop.runs.cell import Cell, Finished, run_cell
from jaxcoop.runs.model import LanguageModel


@dataclasses.dataclass(frozen=True)
class PaperOptions:
    """Which part of the matrix is played, and how."""

    models: tuple[str, ...] = ()  # policies (jaxcoop list dining) and litellm names; default: five policies
    conditions: tuple[str, ...] = ()  # codes and published, layer1, layer2, layer3, all (default)
    episodes: int | None = None  # default: 10000 with policies, the study's 30 or 20 with language models
    seed: int = 0  # every condition is another sample of it
    out: Path = Path("runs/dpbench")  # OUT/MODEL/CONDITION are run folders
    force: bool = False  # begin anew; earlier runs are kept as CONDITION.old-N
    dry_run: bool = False  # count calls, tokens and dollars; nothing is asked, nothing is written
    reply_tokens: float | None = None  # of a reply, for --dry-run; default: published means
    with_published: bool = False  # draw the published cells into the figures too


def main(arguments: list[str]) -> None:
    """Play the matrix of a paper.  The same command continues one that was stopped."""
    papers: dict[str, Callable[[list[str]], None]] = {"coop2": paper_coop2.main, "dpbench": _dpbench}
    if not arguments or arguments[0].startswith("-"):
        usage = f"usage: jaxcoop paper NAME [OPTIONS]\n\nNAME: {', '.join(papers)}\njaxcoop paper NAME --help"
        if arguments[:1] in (["-h"], ["--help"]):
            print(usage)
            return
        raise UsageError(f"no paper named; allowed: {', '.join(papers)} (jaxcoop paper --help)")
    if arguments[0] not in papers:
        raise unknown("paper", arguments[0], papers)
    papers[arguments[0]](arguments[1:])


def _dpbench(arguments: list[str]) -> None:
    command = shlex.join(["jaxcoop", "paper", "dpbench", *arguments])
    given = _parsed(arguments)
    options, model = given.paper, given.llm
    conditions = dpbench_matrix.chosen_conditions(options.conditions)
    named = [*options.models, *([model.model] if model.model else [])]
    models = dpbench_matrix.checked_models(named or DEFAULT_MODELS, model)
    plan = dpbench_matrix.make_plan(models, conditions, episodes=options.episodes, seed=options.seed, model=model)
    if not plan:
        raise UsageError("these policies cannot tell these conditions apart from others; name conditions themselves")
    if not any(planned.cell.is_language for planned in plan):
        refuse_language_options(given, "policies")
    if options.dry_run:
        _dry_run(plan, options.reply_tokens)
        return
    for planned in plan:  # a model that cannot be called is named before anything is played
        check_language(planned.cell, options.out / planned.folder, force=options.force)
    make_folder(options.out)
    checks = [
        str(dpbench.published_random_episodes()),
        *map(str, dpbench.published_scripted_episodes()),
    ]
    print("\n".join(checks), flush=True)
    played = _play(plan, options, command)
    rows = [row for _, _, row in played]
    for table in dpbench_results.terminal_tables(rows):
        print()
        table.print()
    print()
    for note in summary_notes(rows):
        print(textwrap.fill(note, WIDTH))
    config = {
        "command": command,
        "models": models,
        "conditions": [condition.code for condition, _ in conditions],
        "episodes": options.episodes,
        "seed": options.seed,
    }
    written = dpbench_results.write_results(
        options.out, played, config=config, notes=checks, with_published=options.with_published
    )
    print("\n" + "\n".join(str(path) for path in written.values()))
    print(f"run folder: {options.out}")


def _parsed(arguments: list[str]) -> Any:
    """The options: `paper` and `llm`."""
    import tyro

    fields = [
        (name, Annotated[type(default), tyro.conf.OmitArgPrefixes], dataclasses.field(default=default))
        for name, default in (("paper", PaperOptions()), ("llm", LanguageModel()))
    ]
    options: Any = parse(
        dataclasses.make_dataclass("Options", fields, frozen=True),
        arguments,
        prog="jaxcoop paper dpbench",
        description=f"The DPBench condition matrix. Groups of conditions: {', '.join(GROUPS)}.",
    )
    tokens = options.paper.reply_tokens
    if tokens is not None and not 0 <= tokens < math.inf:
        raise UsageError(f"--reply-tokens {tokens:g}: must be 0 or more, and finite")
    if tokens is not None and not options.paper.dry_run:
        raise UsageError(f"--reply-tokens {tokens:g} is for --dry-run only; leave it out, or add --dry-run")
    return options


def _play(plan: list[Planned], options: PaperOptions, command: str) -> dpbench_results.Played:
    """Run every cell; notes of run folders go to stderr, equal ones once."""
    played: list[Any] = []
    told: list[tuple[Cell, Finished]] = []
    try:
        with progress(len(plan), unit="cells") as shown:
            for number, planned in enumerate(plan):
                shown.note(f"{planned.player} {planned.condition.code}")
                finished = run_cell(
                    planned.cell,
                    command=command,
                    out=options.out / planned.folder,
                    force=options.force,
                    watch=lambda total, done, name=f"{planned.player} {planned.condition.code}": within(
                        shown, name, total, done
                    ),
                )
                shown.advance(number + 1 - shown.done)
                told.append((planned.cell, finished))
                played.append((planned, finished.path, dpbench_matrix.finished_row(planned, finished)))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted after {len(played)} of {len(plan)} cells; continue with: {command}"
        ) from None
    say_notes(told)
    return played


def _dry_run(plan: list[Planned], reply_tokens: float | None) -> None:
    """Print what the plan would ask, one table for each language model."""
    asking = [planned for planned in plan if planned.cell.is_language]
    print(f"Dry run: {len(plan)} cells; nothing is asked, nothing is written.")
    if len(asking) < len(plan):
        print(f"{len(plan) - len(asking)} cells are policies on the device: no calls, no cost.")
    if not asking:
        return
    for player in dict.fromkeys(planned.player for planned in asking):
        print()
        estimate_table([planned for planned in asking if planned.player == player], reply_tokens).print()
    print(f"\n{textwrap.fill(total_line(asking, reply_tokens), WIDTH)}\n")
    print("n: episodes; M in, M out: million tokens of the expected calls.")
    print("At most: every episode runs to its time limit.")
    print("Expected: episodes last as long as the published ones, where there are any.")
    print("At temperature 0 equal prompts share a call.")
