"""DPBench: dining philosophers under simultaneous or sequential action (docs/envs/dining.md)."""

from jaxcoop.core.registry import EnvSpec
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.presets import PRESETS
from jaxcoop.envs.dining.results import RESULTS

SPEC = EnvSpec(
    name="dining",
    summary="dining philosophers: shared forks, simultaneous or sequential action, messages",
    factory=Dining,
    presets=PRESETS,
    results=RESULTS,
    origin="DPBench (dpbench 0.2)",
    renderer="jaxcoop.envs.dining.render",
)

__all__ = ["SPEC", "Dining"]
