"""Options of `jaxcoop run` that say how a run is made."""

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """How the run is made."""

    agent: str | None = None  # see jaxcoop list ENV.  Default: the scripted team or random_any; with --model: llm
    episodes: int | None = None  # default: 1000 with policies, 100 with teams that think, 30 with a language model
    seed: int = 0  # episode e of seed s is always the same, whatever --chunk and --episodes are
    out: Path | None = None  # run folder; default: runs/ENV-PRESET-AGENT-DIGEST
    force: bool = False  # begin anew; the earlier run is kept as FOLDER.old-N, its recorded answers are used again
    chunk: int | None = None  # episodes at a time; default: what fits into memory
    gif: int = 0  # draw the first N episodes into figures/, each as an animation and a picture of its end
    trace: tuple[str, ...] = ()  # fields of every step to keep, e.g. actions reward nxt


@dataclasses.dataclass(frozen=True)
class TeamRunOptions(RunOptions):
    """How the run is made, and who plans."""

    planner: str | None = None  # scripted[:LEVEL] (strong, middling, weak), litellm:MODEL, direct:MODEL
    team: int | None = None  # the same as --agents: how many play
