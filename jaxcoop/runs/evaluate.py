"""Running all episodes of one configuration into a run folder, chunk by chunk.

Axes: E episodes of a chunk.  Two kinds of players: policies on the device, and teams of planners at the host.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxcoop.core import Env, Policy, rollout
from jaxcoop.core.registry import EnvSpec
from jaxcoop.core.results import Columns, Results, plain_results
from jaxcoop.core.rollout import play
from jaxcoop.planning.batches import OnRound
from jaxcoop.planning.front_ends import FRONT_ENDS
from jaxcoop.planning.planner import Planner
from jaxcoop.planning.process import Process
from jaxcoop.runs.folder import RunFolder
from jaxcoop.runs.statistics import with_intervals

MEMORY_BUDGET = 1 << 28
"""Bytes of states, policy memories and traces that a chunk may take by default."""
MAX_CHUNK, MAX_TEAM_CHUNK = 65_536, 1_024

OnEpisodes = Callable[[int], None]
"""Called with the number of episodes that finished since the last call."""


class Team(Protocol):
    """Planners that play all agents of one process."""

    process: Process
    planner: Planner

    def begin(self, root: Any, episodes: Any) -> Any:
        """Starts of the numbered episodes [E]."""
        ...

    def columns(self, states: Any) -> Columns:
        """Result columns of finished episodes, numpy, those about the answers included."""
        ...

    def take_events(self) -> Columns:
        """What happened since the last call: one row for each decision."""
        ...


def results_of(spec: EnvSpec, env: Env) -> Results:
    """How outcomes of this environment are counted."""
    if spec.results is not None:
        return spec.results
    state = jax.eval_shape(env.reset, jax.eval_shape(lambda: jax.random.key(0)))
    return plain_results(jax.eval_shape(env.outcome, state))


def default_chunk(env: Env, policy: Policy, episodes: int, trace: Sequence[str] = ()) -> int:
    """Episodes that run at once: as many as the memory budget allows; does not change any result."""
    key = jax.eval_shape(lambda: jax.random.key(0))
    held = jax.eval_shape(lambda k: (env.reset(k), policy.init(k), play(env, policy, k, 0, trace=tuple(trace))), key)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(held))
    return max(1, min(episodes, MAX_CHUNK, MEMORY_BUDGET // size))


def play_policy(
    env: Env,
    policy: Policy,
    results: Results,
    folder: RunFolder,
    *,
    episodes: int,
    seed: int,
    chunk: int,
    trace: Sequence[str] = (),
    on_episodes: OnEpisodes = lambda _: None,
) -> None:
    """Play what is still to play of `episodes` episodes; `trace` fields of every step go to `trace/`.

    All chunks share one compiled program: a short last chunk is padded with later episodes that are thrown away.
    """
    root = jax.random.key(seed)
    for index, first, count in folder.plan(episodes, chunk):
        numbers = first + jnp.arange(chunk, dtype=jnp.int32)
        played = rollout(env, policy, root, numbers, trace=tuple(trace))
        kept = jax.tree.map(lambda x, count=count: np.asarray(x[:count]), played)
        if trace:
            folder.write_trace(index, {"episode": np.arange(first, first + count), **trace_arrays(kept.trace)})
        folder.write_chunk(index, first, count, results.columns(kept.outcome))
        on_episodes(count)


def trace_arrays(trace: dict[str, Any]) -> dict[str, np.ndarray]:
    """Traced fields as flat arrays [E, T, ...]; a field that is a structure gives one array for each part."""
    arrays = {}
    for name, tree in trace.items():
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            parts = [str(getattr(k, "name", getattr(k, "key", getattr(k, "idx", k)))) for k in path]
            arrays[".".join([name, *parts])] = np.asarray(leaf)
    return arrays


def play_team(
    team: Team,
    folder: RunFolder,
    *,
    episodes: int,
    seed: int,
    chunk: int,
    front_end: str = "segments",
    before_writing: Callable[[], None] = lambda: None,
    keep: Callable[[int], None] = lambda _: None,
    on_episodes: OnEpisodes = lambda _: None,
    on_round: OnRound | None = None,
) -> None:
    """Play what is still to play of `episodes` episodes with planners.

    A chunk that was cut short is played again from the record, so no recorded answer is asked for twice.
    `before_writing` may raise to keep a finished chunk from being stored; `keep` is called with the number of a chunk
    whose columns are made, before they are stored.  Raises `PlannerUnusable` when the planner
    cannot go on; the chunks before are safe.
    """
    root = jax.random.key(seed)
    for index, first, count in folder.plan(episodes, chunk):
        states = team.begin(root, first + jnp.arange(count, dtype=jnp.int32))
        states = FRONT_ENDS[front_end](team.process, team.planner, states, on_round=on_round)
        before_writing()
        columns = team.columns(states)
        keep(index)
        folder.write_chunk(index, first, count, columns, events=team.take_events())
        on_episodes(count)


def cell_row(results: Results, columns: Columns, **labels: Any) -> dict[str, Any]:
    """One row of a results table, with intervals; `labels` come first."""
    row = with_intervals(results.cell(columns), rates=results.rates, means=results.means)
    return {**labels, **row}
