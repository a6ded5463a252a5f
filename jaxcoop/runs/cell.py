"""One cell: one player in one configuration of one environment, from its options to its row and its folder."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from jaxcoop.agents.llm.registry import language_agents
from jaxcoop.agents.minds.makers import is_mind, make_planner
from jaxcoop.agents.minds.options import LANGUAGE_ONLY, MindOptions, setup_of
from jaxcoop.agents.minds.results import mind_results
from jaxcoop.agents.registry import make_policy
from jaxcoop.core import Env
from jaxcoop.core.registry import get_spec
from jaxcoop.core.results import Results
from jaxcoop.core.rollout import checked_trace
from jaxcoop.planning.batches import Progress
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.planner import PlannerUnusable
from jaxcoop.planning.record import Record
from jaxcoop.planning.usage import Usage
from jaxcoop.runs.evaluate import (
    MAX_TEAM_CHUNK,
    Team,
    cell_row,
    default_chunk,
    play_policy,
    play_team,
    results_of,
)
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.manifest import default_folder
from jaxcoop.runs.minds import play_minds, write_logs
from jaxcoop.runs.model import RECORD_NAME, LanguageModel

LANGUAGE = "llm"
"""Name of the agent that a language model plays."""

SEEDS = 2**32
MAX_PARTS = 100_000  # files that a run may be written in


class Watcher(Protocol):
    """Who is told how far a run has come."""

    def advance(self, count: int) -> None:
        """`count` more episodes are finished."""
        ...

    def note(self, text: str) -> None:
        """What goes on within the current chunk."""
        ...


Watch = Callable[[int, int], AbstractContextManager[Watcher]]
"""`watch(total, done)`: a context in which the run is watched."""


class _Nobody:
    def advance(self, count: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What decides the results of a run.  Raises `ValueError` for a value out of range.

    `model` is for a language model (`agent` "llm"), `talk` for one and for teams that think (`MindOptions`); both are
    None for policies.  `preset` and `labels` name the cell in tables and default folder names.
    """

    env: Env
    agent: str
    episodes: int
    seed: int = 0
    preset: str | None = None
    talk: Any = None
    model: LanguageModel | None = None
    trace: tuple[str, ...] = ()
    labels: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the numbers, and that the player exists."""
        if not 1 <= self.episodes < 2**31:
            raise ValueError(f"episodes {self.episodes}: must be from 1 to {2**31 - 1:,}")
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"seed {self.seed}: must be from 0 to {SEEDS - 1:,}")
        if self.is_language:
            language_agents(self.env.name)
            if self.model is None or self.model.model is None:
                raise ValueError("agent 'llm' needs a model; give --model, e.g. --model openai/gpt-4o-mini")
            if self.trace:
                raise ValueError("traces are for policies; a language model's decisions are in events.parquet")
            if isinstance(self.talk, MindOptions):
                setup_of(self.env, self.talk, language=True)
        elif self.is_mind:
            self._check_mind()
        else:
            checked_trace(self.env, make_policy(self.agent, self.env), self.trace)

    def _check_mind(self) -> None:
        if self.trace:
            raise ValueError("traces are for policies; keep the records of a team that thinks with --log N")
        for name in LANGUAGE_ONLY:
            if getattr(self.mind_options, name):
                raise ValueError(f"{name} is for language models, not for scripted planners; leave it out")
        setup_of(self.env, self.mind_options)
        make_planner(self.agent, self.env, self.mind_options)

    @property
    def is_mind(self) -> bool:
        """A team that thinks by script plays."""
        return is_mind(self.agent, self.env.name)

    @property
    def mind_options(self) -> MindOptions:
        """How the team thinks."""
        return MindOptions() if self.talk is None else self.talk

    @property
    def results(self) -> Results:
        """How outcomes are counted."""
        if self.is_mind or isinstance(self.talk, MindOptions):
            return mind_results(self.env)
        return results_of(get_spec(self.env.name), self.env)

    @property
    def is_language(self) -> bool:
        """A language model plays."""
        return self.agent == LANGUAGE

    @property
    def player(self) -> str:
        """Name of the player in tables."""
        return str(self.model.model) if self.is_language and self.model else self.agent

    def config(self) -> dict[str, Any]:
        """Everything that decides the results, as JSON data."""
        config: dict[str, Any] = {
            "environment": self.env.name,
            "environment_version": self.env.version,
            "options": dataclasses.asdict(self.env),  # type: ignore[call-overload]
            "agent": self.agent,
            "episodes": self.episodes,
            "seed": self.seed,
        }
        if self.trace:
            config["trace"] = list(self.trace)
        if self.is_language and self.model:
            config["talk"] = dataclasses.asdict(self.talk)
            config["model"] = self.model.settings()
        elif self.is_mind:
            config["talk"] = dataclasses.asdict(self.mind_options)
        return config

    def folder(self) -> Path:
        """Where the run goes unless told otherwise."""
        return default_folder(self.env.name, self.preset or "", self.player, self.config())


@dataclasses.dataclass(frozen=True)
class Finished:
    """A finished run."""

    row: dict[str, Any]
    path: Path
    notes: list[str]  # what the user should know about how it came about


def run_cell(
    cell: Cell,
    *,
    command: str,
    out: Path | None = None,
    force: bool = False,
    chunk: int | None = None,
    watch: Watch | None = None,
) -> Finished:
    """Run a cell, or what is left of it, into its folder; return its row.

    Raises `RunFolderError` for a folder that cannot be used, `RecordError` for its record, `PlannerUnusable` when
    the language model cannot be asked any more.  Whatever was finished or answered stays in the folder.
    """
    least = -(-cell.episodes // MAX_PARTS)
    if chunk is not None and chunk < least:
        raise ValueError(
            f"chunk {chunk}: must be {least:,} or more for {cell.episodes:,} episodes (each chunk is a file)"
        )
    results = cell.results
    with RunFolder.open(out or cell.folder(), cell.config(), command=command, force=force) as folder:
        if folder.is_complete:
            return Finished(folder.summary()["row"], folder.path, list(folder.notes))
        done = _finished(folder)
        extra: dict[str, Any] = {}
        with (
            _resumable(folder, cell),
            watch(cell.episodes, done) if watch else nullcontext(_Nobody()) as watcher,
        ):
            if cell.is_language:
                extra = _play_language(cell, folder, chunk, watcher)
            elif cell.is_mind:
                play_minds(
                    cell.env,
                    cell.agent,
                    cell.mind_options,
                    results,
                    folder,
                    episodes=cell.episodes,
                    seed=cell.seed,
                    chunk=chunk,
                    on_episodes=watcher.advance,
                )
            else:
                policy = make_policy(cell.agent, cell.env)
                play_policy(
                    cell.env,
                    policy,
                    results,
                    folder,
                    episodes=cell.episodes,
                    seed=cell.seed,
                    chunk=chunk or default_chunk(cell.env, policy, cell.episodes, cell.trace),
                    trace=cell.trace,
                    on_episodes=watcher.advance,
                )
        columns = folder.episodes()
        row = cell_row(results, columns, model=cell.player, **cell.labels) | extra
        if cell.is_language:
            row |= language_agents(cell.env.name).row(cell.env, cell.talk, columns, folder.events())
        folder.complete({"row": row})
        if row.get("fallback"):
            folder.notes.append(
                f"{row['fallback']:,} of {row['answers']:,} answers could not be had and fell back; repeat the command "
                "with --force to ask for those again, and for no other"
            )
        return Finished(row, folder.path, list(folder.notes))


def _finished(folder: RunFolder) -> int:
    """Episodes that are safe in the folder."""
    return sum(count for _, count in folder.finished())


@contextmanager
def _resumable(folder: RunFolder, cell: Cell) -> Iterator[None]:
    """An interruption says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        answers = ", and every answer that came" if cell.is_language else ""
        raise KeyboardInterrupt(
            f"interrupted: {_finished(folder):,} of {cell.episodes:,} episodes are saved{answers}; {folder.resume_hint}"
        ) from None


def _play_language(cell: Cell, folder: RunFolder, chunk: int | None, watcher: Watcher) -> dict[str, Any]:
    """Play with the language model; returns the usage for the row."""
    model, agents = cell.model, language_agents(cell.env.name)
    if model is None:
        raise ValueError("a language model plays only with a model")
    with Record(folder.path / RECORD_NAME) as record, model.make_hub(record, agents.parser) as hub:
        if folder.earlier is not None and (folder.earlier / RECORD_NAME).is_file():
            kept = record.take_answers(folder.earlier / RECORD_NAME)
            folder.notes.append(f"{kept:,} answers of the earlier run are used again")

        def on_round(progress: Progress) -> None:
            note = f"{progress.answered:,} answers, {progress.done}/{progress.episodes} of this chunk"
            watcher.note(f"{note}; {progress.note}" if progress.note else note)

        def check() -> None:
            """A replay with a gap is no replay: fail before anything of it is stored."""
            if hub.missing:
                prompt = " / ".join(line for line in hub.missing[0].text().splitlines() if line)
                raise PlannerUnusable(
                    f"replay: {model.replay} lacks {len(hub.missing)} answers, the first one to {prompt[:200]!r}; "
                    "replay with the configuration of the recorded run, or run without --replay"
                )

        try:
            for team, last, keep in _teams(cell, folder, hub):
                play_team(
                    team,
                    folder,
                    episodes=last,
                    seed=cell.seed,
                    chunk=min(chunk or MAX_TEAM_CHUNK, last),
                    front_end=model.front_end,
                    before_writing=check,
                    keep=keep,
                    on_episodes=watcher.advance,
                    on_round=on_round,
                )
        except PlannerUnusable as err:
            lost = record.retry_unsaved()
            safe = f"{lost:,} answers could not be saved" if lost else "Every answer so far is saved"
            raise PlannerUnusable(f"{err}. {safe}; {folder.resume_hint}") from None
        return usage_row(hub.usage())


def _teams(cell: Cell, folder: RunFolder, hub: Hub) -> Iterator[tuple[Team, int, Callable[[int], None]]]:
    """The players up to an episode, and what keeps their records; logged episodes of a team that thinks come first."""
    make, options = language_agents(cell.env.name).team, cell.talk
    logged = min(options.logged, cell.episodes) if isinstance(options, MindOptions) else 0
    if logged:
        team = make(cell.env, options, hub, cell.seed, records=True)

        def keep(index: int) -> None:
            write_logs(
                folder,
                index,
                team.take_logs(),
                team.setup,
                options,
                seed=cell.seed,
                model=cell.player,
                text_of=team.texts.of_episode,
            )

        yield team, logged, keep
    if logged < cell.episodes:
        yield make(cell.env, options, hub, cell.seed), cell.episodes, lambda _: None


def usage_row(usage: Usage) -> dict[str, Any]:
    """The ledger as entries of a results row."""
    names = {"calls", "merged", "replayed", "retried", "rate_limited", "timeouts", "errors", "reasked"}
    names |= {"tokens_in", "tokens_out", "cost", "unpriced", "latency_p50_s", "latency_p90_s"}
    row: dict[str, Any] = {name: value for name, value in usage.as_dict().items() if name in names}
    if usage.unpriced:
        row["cost"] = None  # of some replies no price is known, so the sum would mislead
    return row
