"""Language models as teams that think, for CUBE and MA-Crafter.

Axes: E episodes.
"""

from typing import Any

from jaxcoop.agents.llm.coop2.team import MESSAGES, PARSER, MindTeam
from jaxcoop.agents.llm.registry import LanguageAgents
from jaxcoop.agents.minds.options import MindOptions, setup_of
from jaxcoop.agents.minds.recording import Logged, capacity_of, logged_episodes
from jaxcoop.agents.minds.results import mind_results
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.state import State
from jaxcoop.core import Env
from jaxcoop.core.results import Columns
from jaxcoop.planning.hub import Hub


class LanguageTeam(MindTeam):
    """The team that options describe; with `records` it keeps the records of its episodes."""

    def __init__(self, env: Env, options: MindOptions, hub: Hub, seed: int, *, records: bool = False) -> None:
        capacity = Capacity(messages=MESSAGES)
        if records:
            capacity = capacity_of(setup_of(env, options, language=True), messages=MESSAGES)
        super().__init__(
            setup_of(env, options, language=True, capacity=capacity),
            hub,
            seed,
            goal=options.goal,
            require_action_type=options.require_action_type,
            enforce_schema=options.enforce_schema,
            count=mind_results(env).columns,
        )
        self._records, self._logged = records, Logged([], [])

    def columns(self, states: State) -> Columns:
        """Result columns of finished episodes, whose records are kept for `take_logs`."""
        if self._records:
            self._logged = logged_episodes(states)
        return super().columns(states)

    def take_logs(self) -> Logged:
        """Records of the episodes of the last call of `columns`."""
        taken, self._logged = self._logged, Logged([], [])
        return taken


def answers_row(env: Env, options: MindOptions, columns: Columns, events: Columns) -> dict[str, Any]:
    """How many answers there were, and how many of them could not be used."""
    del env, options, events
    errors = int(columns["call_errors"].sum())
    return {"answers": int(columns["planner_calls"].sum()) + errors, "fallback": errors}


def labels_of(env: Env, options: MindOptions) -> dict[str, Any]:
    """What tables sort cells by."""
    return {"agents": env.num_agents, "structure": options.structure, "repair": options.repair}


LANGUAGE_AGENTS = LanguageAgents(
    options=lambda preset: MindOptions(),
    sampling=lambda preset: {},
    labels=labels_of,
    team=LanguageTeam,
    row=answers_row,
    parser=PARSER,
)
