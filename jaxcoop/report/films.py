"""Episodes of a run as animations: played again from their numbers, drawn frame by frame."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxcoop.agents.registry import make_policy
from jaxcoop.core import rollout
from jaxcoop.core.registry import get_spec
from jaxcoop.report.animation import write_gif, write_png
from jaxcoop.runs.cell import Cell

FIGURES = "figures"


def check_films(cell: Cell, count: int) -> None:
    """Raises `ValueError` when `count` episodes of this cell cannot be drawn."""
    if not 0 <= count <= cell.episodes:
        raise ValueError(f"gif {count}: must be from 0 to {cell.episodes:,}, the number of episodes")
    if count and cell.is_language:
        raise ValueError(f"gif {count}: only episodes of policies are drawn, not those of a language model")
    if count and cell.is_mind:
        raise ValueError(f"gif {count}: only episodes of policies are drawn, not those of teams that think")
    if count and not get_spec(cell.env.name).renderer:
        raise ValueError(f"gif {count}: {cell.env.name} has no pictures; leave --gif out")


def film_episodes(cell: Cell, folder: Path, count: int) -> Iterator[Path]:
    """Draw the first `count` episodes into `folder/figures`; yields the path of each animation when it is written."""
    draw = import_module(get_spec(cell.env.name).renderer).frame
    figures = folder / FIGURES
    figures.mkdir(exist_ok=True)
    for episode in range(count):
        frames = [draw(cell.env, state) for state in states_of(cell, episode)]
        path = figures / f"episode-{episode}.gif"
        write_gif(frames, path)
        write_png(frames[-1], path.with_suffix(".png"))
        yield path


def states_of(cell: Cell, episode: int) -> Iterator[Any]:
    """The states of one episode from the first to the last, as numpy arrays."""
    policy = make_policy(cell.agent, cell.env)
    numbers = jnp.asarray([episode], jnp.int32)
    played = rollout(cell.env, policy, jax.random.key(cell.seed), numbers, trace=("turn.state", "nxt"))
    trace = jax.tree.map(lambda x: np.asarray(x[0]), played.trace or {})
    before, after = trace["turn.state"], trace["nxt"]
    length = int(played.length[0])
    yield jax.tree.map(lambda x: x[0], before)
    for t in range(length):
        yield jax.tree.map(lambda x, t=t: x[t], after)
