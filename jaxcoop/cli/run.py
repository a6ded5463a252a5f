"""`jaxcoop run ENV`: play one configuration, write its run folder, print its table."""

import dataclasses
import shlex
import sys
from typing import Annotated, Any

from jaxcoop.agents.llm.registry import can_talk, language_agents
from jaxcoop.agents.minds.makers import is_mind, list_minds
from jaxcoop.agents.minds.options import MindOptions, can_think
from jaxcoop.agents.registry import default_policy, list_policies
from jaxcoop.cli.arguments import UsageError, check_preset, parse, take_option
from jaxcoop.cli.checks import LANGUAGE_GROUPS, check_language, refuse_language_options, say_notes
from jaxcoop.cli.options import RunOptions, TeamRunOptions
from jaxcoop.cli.planners import resolved
from jaxcoop.cli.progress import progress
from jaxcoop.core.registry import EnvSpec, get_spec, list_envs, make, unknown
from jaxcoop.report.films import FIGURES, check_films, film_episodes
from jaxcoop.report.html import write_report
from jaxcoop.report.tables import cell_table, shown_table
from jaxcoop.runs.cell import LANGUAGE, Cell, Finished, run_cell
from jaxcoop.runs.model import LanguageModel

POLICY_EPISODES, MIND_EPISODES, LANGUAGE_EPISODES = 1000, 100, 30


def main(arguments: list[str]) -> None:
    """Run one configuration.  The same command continues a run that was stopped."""
    command = shlex.join(["jaxcoop", "run", *arguments])
    if not arguments or arguments[0].startswith("-"):
        names = ", ".join(list_envs())
        if arguments[:1] in (["-h"], ["--help"]):
            print(f"usage: jaxcoop run ENV [--preset PRESET] [OPTIONS]\n\nENV: {names}\njaxcoop run ENV --help")
            return
        raise UsageError(f"no environment named; allowed: {names} (jaxcoop run ENV --help)")
    spec = get_spec(arguments[0])
    preset, rest = take_option(arguments[1:], "--preset")
    check_preset(spec, preset)
    options = parse(
        options_type(spec, preset),
        rest,
        prog=f"jaxcoop run {spec.name}",
        description=f"{spec.summary}. --preset PRESET starts from named options (jaxcoop list {spec.name}).",
    )
    cell = make_cell(spec, preset, options)
    check_films(cell, options.run.gif)
    check_language(cell, options.run.out or cell.folder(), force=options.run.force)
    finished = run_cell(
        cell,
        command=command,
        out=options.run.out,
        force=options.run.force,
        chunk=options.run.chunk,
        watch=lambda total, done: progress(total, done),
    )
    show(cell, finished)
    if options.run.gif:
        sys.stdout.flush()  # results first: drawing takes a while
        with progress(options.run.gif, 0) as watcher:
            watcher.note("drawing; the first one takes longest")
            for _ in film_episodes(cell, finished.path, options.run.gif):
                watcher.advance(1)
        print(f"pictures: {finished.path / FIGURES}")


def options_type(spec: EnvSpec, preset: str | None) -> type:
    """A dataclass of all options, their defaults taken from the preset."""
    import tyro

    env = make(spec.name, preset)
    run = TeamRunOptions() if can_think(spec.name) else RunOptions()
    groups: list[tuple[str, Any]] = [("run", run), ("env", env)]
    if can_talk(spec.name):
        agents = language_agents(spec.name)
        groups += [("talk", agents.options(preset)), ("llm", LanguageModel(**agents.sampling(preset)))]
    fields = [
        (name, Annotated[type(default), tyro.conf.OmitArgPrefixes], dataclasses.field(default=default))
        for name, default in groups
    ]
    return dataclasses.make_dataclass("Options", fields, frozen=True)


def make_cell(spec: EnvSpec, preset: str | None, options: Any) -> Cell:
    """The cell that the options describe."""
    options = resolved(options)
    run, model = options.run, getattr(options, "llm", None)
    named = model is not None and model.model is not None
    agent = (LANGUAGE if named else default_policy(spec.name)) if run.agent is None else run.agent
    if named and agent != LANGUAGE:
        raise UsageError(f"--model is for --agent {LANGUAGE}, not for --agent {agent}; leave one of them out")
    if agent == LANGUAGE and not can_talk(spec.name):
        raise UsageError(f"language models cannot play {spec.name}; agents: {', '.join(list_policies(spec.name))}")
    thinks = is_mind(agent, spec.name)
    if agent != LANGUAGE:
        refuse_language_options(options, agent, groups=("llm",) if thinks else LANGUAGE_GROUPS)
        if not thinks and agent not in list_policies(spec.name):
            raise unknown(f"agent of {spec.name}", agent, (*list_policies(spec.name), *list_minds(spec.name)))
    default = LANGUAGE_EPISODES if agent == LANGUAGE else MIND_EPISODES if thinks else POLICY_EPISODES
    labels = {"condition": preset or spec.name}
    labels |= {name: getattr(options.env, name) for name in ("mode", "philosophers") if hasattr(options.env, name)}
    if isinstance(talk := getattr(options, "talk", None), MindOptions) and (thinks or agent == LANGUAGE):
        labels |= language_agents(spec.name).labels(options.env, talk)
    return Cell(
        env=options.env,
        agent=agent,
        episodes=default if run.episodes is None else run.episodes,
        seed=run.seed,
        preset=preset,
        talk=talk,
        model=model if agent == LANGUAGE else None,
        trace=run.trace,
        labels=labels,
    )


def show(cell: Cell, finished: Finished) -> None:
    """Notes on stderr; the table and the folder on stdout; the report into the folder."""
    say_notes([(cell, finished)])
    title = f"{cell.env.name}, {cell.player}, {cell.episodes:,} episodes, seed {cell.seed}"
    shown = cell.results.shown
    table = cell_table([finished.row], title) if shown is None else shown_table([finished.row], shown, title)
    table.print()
    report = finished.path / "report.html"
    write_report(report, title, tables=[table], manifest=cell.config())
    print(f"\nrun folder: {finished.path}")
