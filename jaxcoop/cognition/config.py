"""How the agents of an episode think: the options of the cognitive layer.

Numbers are sections of docs/coop2.md.
"""

import dataclasses

from jaxcoop.cognition.domain import Domain
from jaxcoop.cognition.latency import Latency
from jaxcoop.cognition.programs import Structure, Tables, tables
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.core.options import check_ranges

LONGEST_MS = 2**30
"""Budgets and latencies are int32 milliseconds; half of their range, so that sums stay in it."""


@dataclasses.dataclass(frozen=True)
class Fixes:
    """Remedies for known weaknesses of the reference; all off by default, which is what it does."""

    reinterrupt_on_unread: bool = False  # 1.2: an agent that has unread mail when it gets ready is interrupted again
    statement_placeholder: bool = False  # 6.2: a failed statement of a repair never ends the run
    repairs_per_step: int = 0  # repairs that may follow each other without a primitive step; 0: no limit


@dataclasses.dataclass(frozen=True)
class Setup:
    """A team in a world: everything that stays the same for all episodes.  Raises `ValueError` for bad values."""

    domain: Domain
    structure: Structure
    plan_ops: int = 8  # L: ops of a plan; longer plans are cut
    budget_ms: int = 120_000  # 3: wall-clock limit from the end of reset; 0: none
    step_ms: int = 0  # 3.1: what a primitive step takes
    latency: Latency | None = None  # of calls; None: as the answers say
    repair: RepairConfig = dataclasses.field(default_factory=lambda: RepairConfig(enabled=False))
    fixes: Fixes = Fixes()
    capacity: Capacity = dataclasses.field(default_factory=Capacity)

    def __post_init__(self) -> None:
        """Check what the parts do not check."""
        limits = (("plan_ops", 1, 1000), ("budget_ms", 0, LONGEST_MS), ("step_ms", 0, LONGEST_MS))
        check_ranges(self, limits)
        self.tables  # noqa: B018  raises if the team is too small

    @property
    def agents(self) -> int:
        """A."""
        return self.domain.env.num_agents

    @property
    def tables(self) -> Tables:
        """The structure for this team."""
        return tables(self.structure, self.agents)
