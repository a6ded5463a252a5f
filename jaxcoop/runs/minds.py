"""Teams that think in run folders: chunks of episodes on the device, process records of those that are logged.

    logs/RECORD/part-*.parquet    one table for each record of the process, one file per chunk that is logged
    export/episode-*/             the reference's JSON files

Axes: E episodes of a chunk.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.agents.minds.makers import make_planner
from jaxcoop.agents.minds.options import MindOptions, setup_of
from jaxcoop.agents.minds.recording import Logged, capacity_of, logged_episodes
from jaxcoop.cognition import process
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.latency import Latency, calibrated
from jaxcoop.cognition.logs.episode import EpisodeLog
from jaxcoop.cognition.play import PlanMaker, play
from jaxcoop.cognition.process import Outcome
from jaxcoop.cognition.types import Call
from jaxcoop.core import Env
from jaxcoop.core.results import Results
from jaxcoop.planning.process import Status
from jaxcoop.runs import parts
from jaxcoop.runs.files import RunFolderError, atomic_write
from jaxcoop.runs.folder import RunFolder

LOGS, EXPORT = "logs", "export"
MEMORY_BUDGET = 1 << 28
"""Bytes of states that a chunk may take by default."""
MAX_CHUNK = 1024

TextOf = Callable[[int], Callable[[int, int], str | None]]
"""Episode -> (agent, number of its call) -> the text that it wrote."""


def setup_chunk(setup: Setup, episodes: int) -> int:
    """Episodes that run at once by default; does not change any result."""
    one = jax.eval_shape(partial(process.begin, setup), jax.eval_shape(lambda: jax.random.key(0)), 0)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
    return max(1, min(episodes, MAX_CHUNK, MEMORY_BUDGET // size))


def play_minds(
    env: Env,
    agent: str,
    options: MindOptions,
    results: Results,
    folder: RunFolder,
    *,
    episodes: int,
    seed: int,
    chunk: int | None = None,
    on_episodes: Callable[[int], None] = lambda _: None,
) -> None:
    """Play what is still to play of `episodes` episodes with a scripted planner.

    All chunks share one compiled program: a short last chunk is padded with later episodes that are thrown away.
    Logged episodes come first, with a program of their own unless all episodes fit into one chunk of theirs.
    """
    root, maker = jax.random.key(seed), make_planner(agent, env, options)
    setup = setup_of(env, options)
    logged = min(options.logged, episodes)
    phases = [(episodes, setup)]
    if logged:
        records = setup_of(env, options, capacity=capacity_of(setup))
        fits = setup_chunk(records, episodes) == episodes
        phases = [(episodes, records)] if fits else [(logged, records), (episodes, setup)]
    for last, phase in phases:
        size = setup_chunk(phase, last) if chunk is None else min(chunk, last)
        for index, first, count in folder.plan(last, size):
            states, outcome = _played(phase, maker, root, first + jnp.arange(size, dtype=jnp.int32))
            if phase is not setup and first < logged:
                found = logged_episodes(states, min(count, logged - first))
                write_logs(folder, index, found, setup, options, seed=seed, model=agent)
            kept = jax.tree.map(lambda x, count=count: np.asarray(x[:count]), outcome)
            folder.write_chunk(index, first, count, results.columns(kept))
            on_episodes(count)


@partial(jax.jit, static_argnums=(0, 1))
def _played(setup: Setup, maker: PlanMaker, root: Array, episodes: Int[Array, " E"]) -> tuple[Any, Outcome]:
    """Final states and outcomes; of states without records only the outcomes are wanted."""
    states = play(setup, maker, root, episodes)
    outcome = jax.vmap(partial(process.outcome, setup))(states)
    return (states if setup.capacity.steps else None), outcome


def write_logs(
    folder: RunFolder,
    index: int,
    logged: Logged,
    setup: Setup,
    options: MindOptions,
    *,
    seed: int,
    model: str,
    text_of: TextOf = lambda _: lambda *_: None,
) -> None:
    """Write the records of chunk `index`, and the JSON files of the episodes that are exported.

    Comes before the chunk's episodes, so that a finished chunk has its records.  Raises RunFolderError when the disk
    refuses.
    """
    folder.notes += logged.notes
    try:
        for name, table in _tables(logged.episodes).items():
            path = folder.path / LOGS / name
            path.mkdir(parents=True, exist_ok=True)
            parts.write_table(path / f"part-{index:06d}.parquet", table)
        for number, log in logged.episodes:
            if number < options.export:
                _export(folder.path, number, log, setup, options, seed, model, text_of)
    except OSError as error:
        raise RunFolderError(f"cannot write logs into {folder.path}: {error.strerror}; {folder.resume_hint}") from error


def _tables(episodes: Sequence[tuple[int, EpisodeLog]]) -> dict[str, Any]:
    """The tables of logs with any numbers."""
    import pyarrow as pa

    from jaxcoop.cognition.logs.tables import to_tables

    each = [to_tables([log], number) for number, log in episodes]
    return {name: pa.concat_tables([tables[name] for tables in each]) for name in (each[0] if each else ())}


def _export(
    path: Path,
    number: int,
    log: EpisodeLog,
    setup: Setup,
    options: MindOptions,
    seed: int,
    model: str,
    text_of: TextOf,
) -> None:
    from jaxcoop.agents.llm.coop2.team import vocabulary_of
    from jaxcoop.cognition.logs import RunInfo, file_texts, reference_files

    info = RunInfo(
        structure=options.structure,
        model=model,
        seed=seed,
        repair=options.repair,
        max_steps=setup.domain.env.horizon,
        budget_seconds=options.budget_seconds,
    )
    target = path / EXPORT / f"episode-{number:05d}"
    target.mkdir(parents=True, exist_ok=True)
    for name, text in file_texts(reference_files(log, vocabulary_of(setup), info, text_of(number))).items():
        atomic_write(target / name, text)


def read_logs(path: Path) -> dict[int, EpisodeLog]:
    """The logged episodes of a run folder by their numbers; {} when none is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from jaxcoop.cognition.logs.tables import from_tables

    kinds = sorted(p for p in (path / LOGS).glob("*") if p.is_dir())
    if not kinds:
        return {}
    tables = {}
    for kind in kinds:
        files = sorted(kind.glob("part-*.parquet"))
        tables[kind.name] = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    return from_tables(tables)


def recorded_latency(path: Path) -> Latency:
    """The model of the calls that a language model's run made.

    Raises `ValueError` for a folder without such calls, RunFolderError for one that is none.
    """
    columns = RunFolder.read(path).events()
    if "latency_ms" not in columns:
        raise ValueError(f"latency recorded:{path}: no calls of a team that thinks are in events.parquet there")
    usable = (columns["status"] == Status.OK) & (columns["latency_ms"] > 0)
    times = {kind: columns["latency_ms"][usable & (columns["kind"] == kind)].tolist() for kind in Call}
    return calibrated(f"recorded:{path.name}", {kind: found for kind, found in times.items() if found})
