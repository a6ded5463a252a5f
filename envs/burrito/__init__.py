"""The Burrito kitchen: cooks make and serve burritos together (docs/envs/burrito.md)."""

from jaxcoop.core.registry import EnvSpec
from jaxcoop.envs.burrito.env import Burrito
from jaxcoop.envs.burrito.presets import PRESETS
from jaxcoop.envs.burrito.results import RESULTS

SPEC = EnvSpec(
    name="burrito",
    summary="a kitchen: cooks chop, boil, fry, assemble and serve burritos together",
    factory=Burrito,
    presets=PRESETS,
    results=RESULTS,
    origin="the Burrito kitchen of BayesBeliefAgent (Overcooked family)",
    renderer="jaxcoop.envs.burrito.render",
)

__all__ = ["SPEC", "Burrito"]
