"""Process records of the episodes that are logged: buffers that are large enough, logs from final states.

Axes: E episodes.
"""

from typing import NamedTuple

import jax
import numpy as np

from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.logs.collect import collect
from jaxcoop.cognition.logs.episode import EpisodeLog
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.state import State

CHANGES, CALLS, NOTES = 6, 3, 7
"""Changes of stages and calls of each agent and notes of the team per primitive step that records have room for."""

SPARE = 64
"""Rows beside those, for what happens before the first step."""


class Logged(NamedTuple):
    """Logs of episodes, and what is to be said of those that have none."""

    episodes: list[tuple[int, EpisodeLog]]  # with their numbers
    notes: list[str]


def capacity_of(setup: Setup, messages: int = 0) -> Capacity:
    """Room for an episode in which everybody plans anew in each step; at least `messages` messages."""
    steps, agents = setup.domain.env.horizon, setup.agents
    return Capacity(
        timeline=CHANGES * agents * steps + SPARE,
        plans=agents * steps + SPARE,
        calls=CALLS * agents * steps + SPARE,
        notes=NOTES * steps + SPARE,
        messages=max(messages, agents * steps + SPARE),
        steps=steps,
    )


def logged_episodes(states: State, count: int | None = None) -> Logged:
    """Logs of the first `count` of the final states [E, ...]; an episode that outgrew its buffers has none."""
    logged = Logged([], [])
    host = jax.device_get(states)
    for k in range(len(np.asarray(host.episode)) if count is None else count):
        state = jax.tree.map(lambda x, k=k: x[k], host)
        number = int(state.episode)
        try:
            logged.episodes.append((number, collect(state)))
        except ValueError as error:
            logged.notes.append(f"episode {number} is not logged: {error}")
    return logged
