"""The front ends by name.  All run the same episodes to the same integer states; they differ in who waits for
whom.
"""

from typing import Any, Protocol

from jaxcoop.planning.batches import OnRound
from jaxcoop.planning.decide import run_in_graph
from jaxcoop.planning.lanes import run_lanes
from jaxcoop.planning.planner import Planner
from jaxcoop.planning.process import Process
from jaxcoop.planning.segments import run_segments


class FrontEnd(Protocol):
    """Signature that all front ends share; options change the schedule, never the result."""

    def __call__(
        self,
        process: Process,
        planner: Planner,
        states: Any,
        *,
        groups: int = 2,
        quota: int | None = None,
        timeout: float | None = None,
        on_round: OnRound | None = None,
    ) -> Any:
        """Final states [B, ...] of the episodes `states` [B, ...]."""
        ...


FRONT_ENDS: dict[str, FrontEnd] = {"segments": run_segments, "lanes": run_lanes, "in_graph": run_in_graph}
