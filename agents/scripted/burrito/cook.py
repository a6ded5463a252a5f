"""A team of cooks with one plan: who does which macro-skill next.

Axes: A players, K = 27 skills.  Centralised: sees the whole state.  Players who have finished something choose one
after the other, always the pair of player and skill with the highest value; the next choice counts with that one.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.burrito.offers import FAR, Offers, Skill, offers_of
from jaxcoop.agents.scripted.burrito.stock import stock_of
from jaxcoop.agents.scripted.burrito.values import values_of
from jaxcoop.agents.scripted.burrito.view import View
from jaxcoop.core.skills import Report
from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.skills import GAVE_WAY
from jaxcoop.envs.burrito.types import Item, State

PATIENCE = 45
"""Steps after which a skill that has not come to its end is dropped."""
STILL = 12
"""Steps without any change after which a player with nothing to do takes a walk."""
POLITE = 3
"""The same with empty hands, if somebody had to give way."""
WALK = 4
"""Longest walk; it leads towards where a skill could be done and ends there, so that nothing is touched."""


@struct.dataclass
class Memory:
    """What the team remembers; int32."""

    aim: Int[Array, " A"]  # `Skill` that runs; STAY: nothing
    age: Int[Array, " A"]  # steps since its start
    walk: Int[Array, " A"]  # steps left of a walk
    still: Int[Array, " A"]  # steps without a change of place or hand
    cell: Int[Array, " A"]  # in the last step
    held: Int[Array, " A"]


@dataclasses.dataclass(frozen=True)
class Cook:
    """Planner of the scripted team of one kitchen."""

    env: Burrito

    def init(self, key: Array) -> Memory:
        """Nobody does anything."""
        del key
        zero = jnp.zeros((self.env.num_agents,), jnp.int32)
        return Memory(aim=zero + Skill.STAY, age=zero, walk=zero, still=zero, cell=zero - 1, held=zero)

    def plan(
        self, key: Array, memory: Memory, state: State, idle: Bool[Array, " A"], report: Report
    ) -> tuple[Int[Array, "A 1"], Bool[Array, " A"], Memory]:
        """Skills for those who have nothing to do, or for too long the same."""
        cell, held = state.cell.astype(jnp.int32), state.held.astype(jnp.int32)
        same = (cell == memory.cell) & (held == memory.held)
        still = jnp.where(same, memory.still + 1, 0)
        free = idle | (memory.age >= PATIENCE) | (memory.walk == 1)
        walks = ~free & (memory.walk > 1)
        offers = offers_of(self.env, state)
        aim = self.choices(state, offers, jnp.where(free, int(Skill.STAY), memory.aim), free)

        # Who has nothing to do may be in somebody's way, or two wait for each other.
        is_asked = (report.reason == GAVE_WAY).any() & (held == Item.NONE)
        patience = jnp.where(is_asked, POLITE, STILL)
        starts = free & (aim == Skill.STAY) & (still >= patience)
        is_away = (offers.distance > 1) & (offers.distance < FAR)
        chances = jnp.where(is_away, 0.0, -jnp.inf).at[:, Skill.STAY].set(-100.0)  # only if there is nothing else
        way = jax.random.categorical(key, chances, axis=1).astype(jnp.int32)
        length = jnp.minimum(jnp.take_along_axis(offers.distance, way[:, None], 1)[:, 0], WALK)
        return (
            jnp.where(starts, way, aim)[:, None],
            free,
            Memory(
                aim=aim,
                age=jnp.where(free, 0, memory.age + 1),
                walk=jnp.where(starts, length, jnp.where(walks, memory.walk - 1, 0)),
                still=jnp.where(starts, 0, still),
                cell=cell,
                held=held,
            ),
        )

    def choices(
        self, state: State, offers: Offers, aims: Int[Array, " A"], free: Bool[Array, " A"]
    ) -> Int[Array, " A"]:
        """The aims with those of the players in `free`; who finds nothing to do has STAY."""
        players, stock = np.arange(self.env.num_agents), stock_of(self.env, state)

        def one(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
            aims, free = carry
            values = values_of(View(self.env, state, stock, offers, aims))
            values = jnp.where(free[:, None], values, -1)
            best = values.reshape(-1).argmax()
            chooses = (players == best // values.shape[1]) & (values.max() > 0)
            return jnp.where(chooses, best % values.shape[1], aims).astype(jnp.int32), free & ~chooses

        return jax.lax.fori_loop(0, len(players), one, (aims, free))[0]
