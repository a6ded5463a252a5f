"""MA-Crafter: the cooperative crafting world of COOP² (docs/envs/macrafter.md)."""

from jaxcoop.core.registry import EnvSpec
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.presets import PRESETS
from jaxcoop.envs.macrafter.results import RESULTS

SPEC = EnvSpec(
    name="macrafter",
    summary="crafting world whose resources take several agents with tools, acting together",
    factory=MACrafter,
    presets=PRESETS,
    results=RESULTS,
    origin="COOP² MA-Crafter",
    renderer="jaxcoop.envs.macrafter.render",
)

__all__ = ["SPEC", "MACrafter"]
