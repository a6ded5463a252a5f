"""What a repair check tolerates, and how often it may intervene.

Numbers are sections of docs/coop2_repair.md.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxcoop.cooperation.constraints import SCORED
from jaxcoop.core.options import check_ranges, check_types
from jaxcoop.core.registry import brief

Scope = Literal["task", "task_type", "target_type"]
Axes = Literal["published", "corrected"]

SCOPES = MappingProxyType(
    {
        "task": "task",
        "task_type": "task_type",
        "target_type": "target_type",
        "resource": "target_type",
        "resource_type": "target_type",
        "target": "target_type",
    }
)
"""1: what the cooldown of a failing task covers, by every name that it goes by."""

MOST_STEPS = 1_000_000


@dataclasses.dataclass(frozen=True)
class RepairConfig:
    """1: options of COOP²-Repair; the same for all episodes, so that jit takes them as static.

    Raises `ValueError` for a value out of range, naming it and the allowed range.
    """

    enabled: bool = True
    spatial_tolerance: int = 0  # cells that a predicted position may be off
    temporal_tolerance: int = 0  # steps by which two actions may miss each other
    cooldown: int = 0  # steps before the same key opens another repair; 0: never cooling
    scope: Scope = "task"  # whose cooldown it is; any name of `SCOPES`
    thresholds: tuple[float, float, float] = (1.0, 1.0, 1.0)  # tau_c in the order of `SCORED`
    axes: Axes = "published"  # "corrected": predicted moves of CUBE run along rows and columns as the real ones do (3)

    def __post_init__(self) -> None:
        """Check every option."""
        if isinstance(self.scope, str):
            object.__setattr__(self, "scope", SCOPES.get(self.scope, self.scope))
        check_types(self)
        steps = ("spatial_tolerance", "temporal_tolerance", "cooldown")
        check_ranges(self, [(name, 0, MOST_STEPS) for name in steps])
        object.__setattr__(self, "thresholds", _checked_thresholds(self.thresholds))

    @classmethod
    def published(cls, config: Mapping[str, Any], cooldown: int | None = None) -> "RepairConfig":
        """1: from the names and by the rules of the reference, which takes anything.

        Missing and negative numbers are 0, an unknown scope is `task`; `cooldown` goes before the one of `config`.
        """
        names = ("spatial_tolerance", "temporal_tolerance", "task_cooldown_steps")
        space, time, steps = (max(int(config.get(name) or 0), 0) for name in names)
        return cls(
            spatial_tolerance=space,
            temporal_tolerance=time,
            cooldown=steps if cooldown is None else max(int(cooldown), 0),
            scope=SCOPES.get(str(config.get("cooldown_scope")), "task"),  # type: ignore[arg-type]  # its values are
        )

    def fails(self, score: Float[Array, "... 3"]) -> Bool[Array, "... 3"]:
        """1: a constraint fails where its score is below the threshold of its type."""
        return score < jnp.asarray(self.thresholds, jnp.float32)


def _checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    """Three numbers from 0 to 1,000 as floats."""
    is_right = isinstance(thresholds, (tuple, list)) and len(thresholds) == len(SCORED)
    if not is_right or not all(isinstance(x, (int, float)) and 0 <= x <= 1000 for x in thresholds):
        names = ", ".join(constraint.name.lower() for constraint in SCORED)
        raise ValueError(f"thresholds {brief(thresholds)}: must be three numbers from 0 to 1,000 ({names})")
    return tuple(float(x) for x in thresholds)


PRESETS: Mapping[str, RepairConfig] = MappingProxyType(
    {
        "cube": RepairConfig(spatial_tolerance=0, temporal_tolerance=1, cooldown=5, scope="task"),
        "macrafter": RepairConfig(spatial_tolerance=1, temporal_tolerance=2, cooldown=20, scope="target_type"),
    }
)
"""1: the published values by profile."""
