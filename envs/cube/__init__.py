"""CUBE: agents push blocks together to the goal column (docs/envs/cube.md)."""

from jaxcoop.core.registry import EnvSpec
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.presets import PRESETS
from jaxcoop.envs.cube.results import RESULTS

SPEC = EnvSpec(
    name="cube",
    summary="cooperative block pushing: a block of weight w takes w agents on one side at once",
    factory=Cube,
    presets=PRESETS,
    preset_note="cube_scale_N for every N from 2 to 256",
    results=RESULTS,
    origin="COOP² CUBE (the later public revision)",
    renderer="jaxcoop.envs.cube.render",
)

__all__ = ["SPEC", "Cube"]
