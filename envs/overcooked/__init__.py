"""Classic Overcooked: players cook and deliver soups in a small kitchen (docs/envs/overcooked.md)."""

from jaxcoop.core.registry import EnvSpec
from jaxcoop.envs.overcooked.env import Overcooked
from jaxcoop.envs.overcooked.presets import PRESETS
from jaxcoop.envs.overcooked.results import RESULTS

SPEC = EnvSpec(
    name="overcooked",
    summary="onion soups in a cramped kitchen: fill pots, cook, dish up, deliver",
    factory=Overcooked,
    presets=PRESETS,
    results=RESULTS,
    origin="Overcooked-AI (`overcooked-ai` 1.1)",
    renderer="jaxcoop.envs.overcooked.render",
)

__all__ = ["SPEC", "Overcooked"]
