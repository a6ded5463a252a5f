"""`--planner`, `--team` and `--latency recorded:FOLDER` in terms of the other options."""

import dataclasses
from pathlib import Path
from typing import Any, get_args

from jaxcoop.agents.minds.latencies import RECORDED, in_numbers
from jaxcoop.agents.minds.makers import PERFECT, player_of
from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.cli.arguments import UsageError
from jaxcoop.cli.options import TeamRunOptions
from jaxcoop.runs.cell import LANGUAGE
from jaxcoop.runs.minds import recorded_latency
from jaxcoop.runs.model import ClientName

SCRIPTED = "scripted"
FORMS = "scripted, scripted:LEVEL, litellm:MODEL or direct:MODEL, e.g. litellm:openai/gpt-4o-mini"


def resolved(options: Any) -> Any:
    """The options with `agent`, `model`, the team's size and the latency as the short forms say.

    Raises `UsageError` for a planner that cannot be read and for two options that contradict each other.
    """
    run = options.run
    if isinstance(run, TeamRunOptions):
        options = _with_team(_with_planner(options), run.team)
    talk = getattr(options, "talk", None)
    if isinstance(talk, MindOptions):
        options = dataclasses.replace(options, talk=with_recorded(talk))
    return options


def with_recorded(talk: MindOptions) -> MindOptions:
    """The options with the latency model of a recorded run in numbers."""
    if talk.latency is None or not talk.latency.startswith(RECORDED):
        return talk
    model = recorded_latency(Path(talk.latency.removeprefix(RECORDED)))
    return dataclasses.replace(talk, latency=in_numbers(model))


def _with_team(options: Any, team: int | None) -> Any:
    """`--team N` for `--agents N`."""
    if team is None:
        return options
    usual = options.env.agents
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    default: int = getattr(defaults["env"], "agents")  # noqa: B009 - of an environment that is known by its options only
    if usual not in (default, team):
        raise UsageError(f"--team {team} and --agents {usual}: both say how many play; leave one out")
    return dataclasses.replace(options, env=dataclasses.replace(options.env, agents=team))


def _with_planner(options: Any) -> Any:
    """`--planner KIND[:NAME]` for `--agent` or `--model` and `--client`."""
    run, model = options.run, options.llm
    if run.planner is None:
        return options
    for name, value in (("agent", run.agent), ("model", model.model)):
        if value is not None:
            raise UsageError(f"--planner {run.planner} and --{name} {value}: both say who plays; leave one out")
    kind, _, name = run.planner.partition(":")
    if kind == SCRIPTED:
        return dataclasses.replace(options, run=dataclasses.replace(run, agent=player_of(name or PERFECT)))
    if kind not in get_args(ClientName) or not name:
        raise UsageError(f"--planner {run.planner}: must be {FORMS}")
    model = dataclasses.replace(model, client=kind, model=name)
    return dataclasses.replace(options, run=dataclasses.replace(run, agent=LANGUAGE), llm=model)
