"""5 and 6: the published reward parameters."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from jaxcoop.envs.burrito.types import TERMS


@dataclasses.dataclass(frozen=True)
class Rewards:
    """One set of parameters; terms that are not listed weigh nothing."""

    multipliers: tuple[tuple[int, int], ...]  # (deliveries in a row up to which it holds, factor of the tip)
    unordered: float  # what a dish is worth that nobody ordered
    terms: Mapping[str, float]
    burn: float  # for each burning food and step

    def weights(self, team: int) -> Float[np.ndarray, "A terms"]:
        """6: weights of `TERMS` for each player."""
        return np.tile(np.array([self.terms.get(name, 0.0) for name in TERMS], np.float32), (team, 1))


SETS: Mapping[str, Rewards] = MappingProxyType(
    {
        "eval": Rewards(
            multipliers=((1, 1), (4, 2), (100, 5)),
            unordered=0.0,
            terms=MappingProxyType(
                {
                    "pickup_dish_from_sink": 1.0,
                    "place_ingredient_on_grill": 1.0,
                    "pickup_cooked_ingredient_from_grill": 1.0,
                    "place_ingredient_on_pot": 1.0,
                    "pickup_cooked_ingredient_from_pot": 1.0,
                    "wash_dish": 1.0,
                    "chop_ingredient": 1.0,
                    "food_assembly": 1.0,
                    "serve_dish": 5.0,
                }
            ),
            burn=-0.01,
        ),
        "default": Rewards(
            multipliers=((0, 1), (1, 10), (2, 20), (3, 30), (100, 40)),
            unordered=40.0,
            terms=MappingProxyType(
                {
                    "place_ingredient_on_grill": 1.5,
                    "pickup_cooked_ingredient_from_grill": 3.0,
                    "place_ingredient_on_pot": 1.5,
                    "pickup_cooked_ingredient_from_pot": 3.0,
                    "extinguish_fire": 1.0,
                    "place_charcoal_on_trash": 1.0,
                    "wash_dish": 1.0,
                    "chop_ingredient": 1.0,
                    "food_assembly": 5.0,
                    "serve_dish": 10.0,
                }
            ),
            burn=0.0,
        ),
    }
)
"""By name: "eval" is that of the published experiments, "default" that of the code."""
