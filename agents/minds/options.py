"""The options of a team that thinks, and the setup that they describe.

Numbers are sections of docs/coop2.md.
"""

import dataclasses
import math

from jaxcoop.agents.minds.latencies import MEASURED, RECORDED, latency_of
from jaxcoop.cognition.config import LONGEST_MS, Fixes, Setup
from jaxcoop.cognition.domain import Domain
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.repair.config import PRESETS, SCOPES, Axes, RepairConfig
from jaxcoop.cognition.structures import STRUCTURES, structure_of
from jaxcoop.core import Env
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.core.registry import unknown

MOST_SECONDS = LONGEST_MS // 1000
_STRUCTURES = tuple(dict.fromkeys(name for named in STRUCTURES.values() for name in named))
_REPAIR = ("spatial_tolerance", "temporal_tolerance", "cooldown", "scope", "thresholds")


@dataclasses.dataclass(frozen=True)
class MindOptions:
    """How agents think and talk (--planner scripted[:LEVEL], litellm:MODEL).

    Raises `ValueError` for a value out of range.
    """

    structure: str = "individual"  # who talks to whom: individual, centralized or broadcast_chain
    repair: bool = False  # check plans before each step, and open a channel where they will fail
    spatial_tolerance: int | None = None  # with --repair: cells; default: the published value of the environment
    temporal_tolerance: int | None = None  # with --repair: steps; default: published
    cooldown: int | None = None  # with --repair: steps before a task may open another channel; default: published
    scope: str | None = None  # with --repair: what cools down: task, task_type, target_type; default: published
    thresholds: tuple[float, float, float] | None = None  # with --repair: spatial, temporal, dependency; default: 1 1 1
    repair_axes: Axes = "published"  # with --repair: "corrected" predicts moves of CUBE as they really go
    budget_seconds: float = 120.0  # wall clock of an episode; 0: no limit
    step_ms: int = 0  # what a primitive step takes
    latency: str | None = None  # constant[:MS], lognormal:MS:SIGMA, simulated-MODEL, recorded:RUNFOLDER, measured (llm)
    plan_ops: int = 8  # actions of a plan; longer ones are cut
    reinterrupt_on_unread: bool = False  # fix: who gets ready with unread mail is interrupted again
    statement_placeholder: bool = False  # fix: a failed statement of a repair never ends the episode
    repairs_per_step: int = 0  # fix: repairs in a row without a step; 0: no limit
    log: int = 0  # keep the process records of the first N episodes: tables in logs/, figures
    export: int = 0  # write the first N episodes as the reference's JSON files into export/
    goal: str = ""  # language models in the individual structure: told before everything else
    require_action_type: bool = False  # language models: an action without its type is invalid
    enforce_schema: bool = False  # language models: ask the provider for structured output

    def __post_init__(self) -> None:
        """Check every option that the setup does not check."""
        check_types(self)
        if self.structure not in _STRUCTURES:
            raise unknown("structure", self.structure, _STRUCTURES)
        if not 0 <= self.budget_seconds <= MOST_SECONDS or not math.isfinite(self.budget_seconds):
            raise ValueError(f"budget_seconds {self.budget_seconds}: must be from 0 (no limit) to {MOST_SECONDS:,}")
        check_ranges(
            self,
            [
                ("step_ms", 0, LONGEST_MS),
                ("plan_ops", 2, 1000),
                ("repairs_per_step", 0, 1_000_000),
                ("log", 0, 100_000),
                ("export", 0, 1_000),
            ],
        )
        if self.scope is not None and self.scope not in SCOPES:
            raise unknown("scope", self.scope, SCOPES)
        if not self.repair:
            for name in _REPAIR:
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} {getattr(self, name)} is for --repair; add it, or leave the option out")
        if self.latency is not None and self.latency != MEASURED and not self.latency.startswith(RECORDED):
            latency_of(self.latency)
        if self.repair:
            self.repair_config("cube")

    @property
    def logged(self) -> int:
        """Episodes whose records are kept."""
        return max(self.log, self.export)

    def repair_config(self, profile: str) -> RepairConfig:
        """What a check tolerates: the published values of the profile where no others are given."""
        given = {name: getattr(self, name) for name in _REPAIR if getattr(self, name) is not None}
        return dataclasses.replace(PRESETS[profile], enabled=self.repair, axes=self.repair_axes, **given)


LANGUAGE_ONLY = ("goal", "require_action_type", "enforce_schema")
"""Options that scripted planners do not follow."""


def domain_of(env: Env) -> Domain:
    """The environment as the cognitive layer sees it.  Raises `ValueError` for one in which nobody thinks."""
    if env.name == "cube":
        from jaxcoop.envs.cube.minds import CubeMinds

        return CubeMinds(env)  # type: ignore[arg-type]  # a Cube by its name
    if env.name == "macrafter":
        from jaxcoop.envs.macrafter.minds import CrafterMinds

        return CrafterMinds(env)  # type: ignore[arg-type]  # a MACrafter by its name
    raise unknown("environment of agents that think", env.name, STRUCTURES)


def can_think(env_name: str) -> bool:
    """Whether teams that think can play the environment."""
    return env_name in STRUCTURES


def setup_of(env: Env, options: MindOptions, *, language: bool = False, capacity: Capacity | None = None) -> Setup:
    """The setup of a team.  Raises `ValueError` for a team that is too small for its structure."""
    domain = domain_of(env)
    profile = domain.profile.name
    return Setup(
        domain,
        structure_of(profile, options.structure),
        plan_ops=options.plan_ops,
        budget_ms=round(options.budget_seconds * 1000),
        step_ms=options.step_ms,
        latency=latency_of(options.latency, language=language),
        repair=options.repair_config(profile) if options.repair else RepairConfig(enabled=False),
        fixes=Fixes(options.reinterrupt_on_unread, options.statement_placeholder, options.repairs_per_step),
        capacity=capacity or Capacity(),
    )
