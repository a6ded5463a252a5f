"""Language-model teams by environment."""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any

from jaxcoop.core.registry import unknown

_MODULES = {
    "dining": "jaxcoop.agents.llm.dining",
    "cube": "jaxcoop.agents.minds.language",
    "macrafter": "jaxcoop.agents.minds.language",
}


@dataclasses.dataclass(frozen=True)
class LanguageAgents:
    """How language models play one environment.

    `options(preset)`: the dataclass of what is said and shown, as a preset of the environment has it.
    `sampling(preset)`: settings of the model that the preset names.  `labels(env, options)`: what tables sort by.
    `team(env, options, hub, seed)`: the players of all episodes.  `row(env, options, columns, events)`: what the
    answers add to the row of a cell.  `parser`: version of the reply parser, part of the key of recorded answers.
    """

    options: Callable[[str | None], Any]
    sampling: Callable[[str | None], dict[str, Any]]
    labels: Callable[[Any, Any], dict[str, Any]]
    team: Callable[..., Any]
    row: Callable[..., dict[str, Any]]
    parser: str


def language_agents(env_name: str) -> LanguageAgents:
    """Raises `ValueError`, naming the environments that language models can play."""
    if env_name not in _MODULES:
        raise unknown("environment for language models", env_name, _MODULES)
    return import_module(_MODULES[env_name]).LANGUAGE_AGENTS


def can_talk(env_name: str) -> bool:
    """Whether language models can play this environment."""
    return env_name in _MODULES
