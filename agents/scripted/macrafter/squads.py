"""Who works together, and what a squad has to make: everything that follows from the environment's options.

Axes: Q squads, S places in a squad, A agents.  The squads share the team out evenly, consecutive agents together; each
is large enough for every resource that the team can collect at all.
"""

import dataclasses
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxcoop.envs.macrafter.config import TOOLS, Settings, offsets, requirements
from jaxcoop.envs.macrafter.types import Item, Material

PICKAXES = (Item.WOOD_PICKAXE, Item.STONE_PICKAXE, Item.IRON_PICKAXE)
RESOURCES = (Material.TREE, Material.STONE, Material.COAL, Material.IRON, Material.DIAMOND)


@dataclasses.dataclass(frozen=True)
class Squads:
    """A team in squads."""

    agents: int  # A
    size: int  # S
    count: int  # Q
    wants: tuple[bool, bool, bool]  # `PICKAXES` that are of use to a squad
    joint: tuple[Material, ...]  # resources that take several agents
    alone: tuple[Material, ...]  # of trees and stone, what one agent can collect

    @property
    def members(self) -> np.ndarray:
        """Agent in each place, int32[Q, S]; A where there is none."""
        table = np.full((self.count, self.size), self.agents, np.int32)
        for number, ids in enumerate(np.array_split(np.arange(self.agents), self.count)):
            table[number, : len(ids)] = ids
        return table

    @property
    def places(self) -> np.ndarray:
        """Place of each agent as an index into Q * S; int32[A]."""
        flat = self.members.reshape(-1)
        return np.flatnonzero(flat < self.agents)[np.argsort(flat[flat < self.agents])].astype(np.int32)

    def by_squad(self, values: Array, fill: int = 0) -> Array:
        """Values of the agents [A, ...] as [Q, S, ...]; `fill` in empty places."""
        if self.count * self.size == self.agents:
            return values.reshape(self.count, self.size, *values.shape[1:])
        empty = jnp.full((1, *values.shape[1:]), fill, values.dtype)
        return jnp.concatenate([values, empty])[self.members]

    def by_agent(self, values: Array) -> Array:
        """The inverse of `by_squad`."""
        flat = values.reshape(self.count * self.size, *values.shape[2:])
        return flat if flat.shape[0] == self.agents else flat[self.places]


@lru_cache(maxsize=64)
def squads_of(settings: Settings) -> Squads:
    """The squads of a team under its requirements."""
    needs = requirements(settings.tasks)
    most = min(settings.agents, len(offsets(settings.distance)))
    possible = {kind: needs[kind].agents <= most for kind in RESOURCES}
    wants = []
    for pickaxe in PICKAXES:
        name = next(name for name, item in TOOLS.items() if item == pickaxe)
        wanted = any(
            possible[kind] and name in (needs[kind].tools[:1] if needs[kind].any_tool else needs[kind].tools)
            for kind in RESOURCES
        )
        parts = RESOURCES[: {Item.WOOD_PICKAXE: 1, Item.STONE_PICKAXE: 2, Item.IRON_PICKAXE: 4}[pickaxe]]
        wants.append(wanted and all(possible[kind] for kind in parts))
    strength = max([1, *(needs[kind].agents for kind in RESOURCES if possible[kind])])
    count = max(1, settings.agents // strength)
    alone = tuple(kind for kind in (Material.TREE, Material.STONE) if needs[kind].agents == 1)
    return Squads(
        agents=settings.agents,
        size=-(-settings.agents // count),
        count=count,
        wants=(wants[0], wants[1], wants[2]),
        joint=tuple(kind for kind in RESOURCES if possible[kind] and kind not in alone),
        alone=alone,
    )
