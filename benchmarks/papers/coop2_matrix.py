"""The grid of COOP² as cells to run: worlds, models, communication structures, team sizes, with repair and without.

Numbers are sections of docs/coop2.md.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from jaxcoop.agents.minds.makers import player_of
from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.core.registry import make, unknown
from jaxcoop.report.coop2_table import STRUCTURES
from jaxcoop.runs.cell import LANGUAGE, Cell
from jaxcoop.runs.model import LanguageModel

TEAMS = (3, 6)
REPAIR = MappingProxyType({"off": (False,), "on": (True,), "both": (False, True)})
_PRESETS = {"cube": "cube_paper_{}", "macrafter": "paper_{}"}
WORLDS = tuple(_PRESETS)
STEPS = MappingProxyType({"cube": 50, "macrafter": 200})
"""3: T of each world."""

_OTHER_TEAM = 3  # whose preset other team sizes start from


class Simulated(NamedTuple):
    """A scripted planner that stands for a language model: how often it errs, and how long its calls take."""

    level: str
    latency: str


SIMULATED: Mapping[str, Simulated] = MappingProxyType(
    {
        "simulated-gpt-5.4-mini": Simulated("middling", "simulated-gpt-5.4-mini"),
        "simulated-llama-4-scout": Simulated("weak", "simulated-llama-4-scout"),
        "simulated-gpt-5.4": Simulated("strong", "simulated-gpt-5.4"),
    }
)
"""Players named after the models of the paper.  No language model is asked; their mistakes are invented."""

_PREFIX = "simulated"


@dataclasses.dataclass(frozen=True)
class Grid:
    """Which part of the grid is played.  Raises `ValueError` for a value out of range."""

    models: tuple[str, ...] = tuple(SIMULATED)
    worlds: tuple[str, ...] = WORLDS
    structures: tuple[str, ...] = STRUCTURES
    teams: tuple[int, ...] = TEAMS
    repair: str = "off"
    episodes: int = 5
    seed: int = 42
    steps: int | None = None  # T; None: `STEPS`

    def __post_init__(self) -> None:
        """Check the names."""
        for kind, given, allowed in (
            ("world", self.worlds, WORLDS),
            ("structure", self.structures, STRUCTURES),
            ("repair", (self.repair,), REPAIR),
        ):
            for name in given:
                if name not in allowed:
                    raise unknown(kind, name, allowed)
        for name in self.models:
            if name.startswith(_PREFIX) and name not in SIMULATED:
                raise unknown("simulated model", name, SIMULATED)
        for name in ("models", "worlds", "structures", "teams"):
            given = getattr(self, name)
            if not given:
                raise ValueError(f"{name}: name one or more, or leave the option out")
            object.__setattr__(self, name, tuple(dict.fromkeys(given)))


class Planned(NamedTuple):
    """One cell of the grid and its place below the output folder."""

    world: str
    model: str
    structure: str
    agents: int
    repair: bool
    cell: Cell
    folder: Path

    @property
    def name(self) -> str:
        """The cell in words."""
        return (
            f"{self.world} {self.model} {self.structure} {self.agents} agents, repair {'on' if self.repair else 'off'}"
        )


def is_simulated(model: str) -> bool:
    """Whether the player is a script named after a model."""
    return model in SIMULATED


def make_plan(grid: Grid, options: MindOptions, model: LanguageModel) -> list[Planned]:
    """All cells, world by world.  Raises `ValueError` for a value out of range or two models of one folder."""
    plan = [
        _planned(grid, options, model, world, player, structure, agents, repair)
        for world in grid.worlds
        for agents in grid.teams
        for player in grid.models
        for structure in grid.structures
        for repair in REPAIR[grid.repair]
    ]
    folders: dict[Path, str] = {}
    for planned in plan:
        if folders.setdefault(planned.folder, planned.model) != planned.model:
            raise ValueError(
                f"models {folders[planned.folder]!r} and {planned.model!r} share the folder {planned.folder.parent}; "
                "play them into two --out folders"
            )
    return plan


def _planned(
    grid: Grid,
    options: MindOptions,
    model: LanguageModel,
    world: str,
    player: str,
    structure: str,
    agents: int,
    repair: bool,
) -> Planned:
    name = re.sub(r"[^A-Za-z0-9._]+", "-", player).strip("-.") or "model"
    switch = "on" if repair else "off"
    folder = Path(world) / name / f"{structure}_agents{agents}_repair_{switch}_seed{grid.seed}"
    known = agents if agents in TEAMS else _OTHER_TEAM
    preset = _PRESETS[world].format(known)
    steps = STEPS[world] if grid.steps is None else grid.steps
    talk = dataclasses.replace(options, structure=structure, repair=repair)
    script = SIMULATED.get(player)
    if script is not None:
        talk = dataclasses.replace(talk, latency=talk.latency or script.latency)
    replay = None if model.replay is None else model.replay / folder
    cell = Cell(
        env=make(world, preset, agents=agents, max_steps=steps),
        agent=LANGUAGE if script is None else player_of(script.level),
        episodes=grid.episodes,
        seed=grid.seed,
        preset=preset,
        talk=talk,
        model=dataclasses.replace(model, model=player, replay=replay) if script is None else None,
        labels={"world": world, "agents": agents, "structure": structure, "repair": repair, "player": player},
    )
    return Planned(world, player, structure, agents, repair, cell, folder)


def of_world(plan: Iterable[Planned], world: str) -> Sequence[Planned]:
    """The cells of one world."""
    return [planned for planned in plan if planned.world == world]
