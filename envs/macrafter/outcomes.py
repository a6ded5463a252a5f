"""10: how the actions of a step ended.

Axes: A agents.
"""

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.envs.macrafter.collect import Collection
from jaxcoop.envs.macrafter.types import ITEM_NAMES, Action, Last, Reason, State


@struct.dataclass
class Requests:
    """What became of the requests of a step."""

    has_place: Bool[Array, " A"]
    place: Int[Array, " A"]  # number in `PLACES`
    place_reason: Int[Array, " A"]  # int8, 0: placed
    placed: Int[Array, " A"]  # int16, -1: nowhere
    share_reason: Int[Array, " A"]  # int8, 0: shared
    shared: Int[Array, " A"]  # int16, -99: nothing

    @classmethod
    def none(cls, agents: int) -> "Requests":
        """Nobody asked for anything."""
        return cls(
            has_place=jnp.zeros((agents,), jnp.bool_),
            place=jnp.full((agents,), -1, jnp.int32),
            place_reason=jnp.zeros((agents,), jnp.int8),
            placed=jnp.full((agents,), -1, jnp.int16),
            share_reason=jnp.full((agents,), Reason.NO_SHARE_REQUEST, jnp.int8),
            shared=jnp.full((agents,), -99, jnp.int16),
        )


def no_last(agents: int) -> Last:
    """Before the first step."""
    zero = jnp.zeros((agents,), jnp.int8)
    none = jnp.full((agents,), -1, jnp.int8)
    return Last(
        status=zero,
        reason=zero,
        need=zero,
        have=zero,
        changed=jnp.zeros((agents,), jnp.uint16),
        risen=jnp.zeros((agents,), jnp.uint32),
        took=jnp.zeros((agents,), jnp.uint16),
        blocked=none,
        blocked_need=zero,
        blocked_have=zero,
        placed=jnp.full((agents,), -1, jnp.int16),
        shared=jnp.full((agents,), -99, jnp.int16),
    )


def last_of(
    before: State,
    inventory: Int[Array, "A 16"],
    action: Int[Array, " A"],
    listed: Bool[Array, " A"],
    done: Collection,
    asked: Requests,
    placed: Int[Array, " A"],
    made: Int[Array, " A"],
    risen: UInt32[Array, " A"],
    live_now: Bool[Array, ""],
) -> Last:
    """Outcome of each listed agent; moves, sleeping and doing nothing always succeed.

    `inventory`: after the step; `action`: what it was told to do; `placed`: where it put something; `made`: the making
    action that it carried out, 0 none; `risen`: achievements that rose, as bits.
    """
    requirements = jnp.int8(Reason.REQUIREMENTS)
    is_make = (action >= Action.MAKE_WOOD_PICKAXE) & (action <= Action.MAKE_IRON_SWORD)
    reason = jnp.where(is_make & (made != action), requirements, jnp.int8(0))
    is_place = (action >= Action.PLACE_STONE) & (action <= Action.PLACE_PLANT)
    own = jnp.where(placed >= 0, jnp.int8(0), requirements)
    reason = jnp.where(is_place, jnp.where(asked.has_place, asked.place_reason, own), reason)
    reason = jnp.where(action == Action.SHARE, asked.share_reason, reason)
    missed = jnp.where(done.blocked >= 0, done.blocked, jnp.int8(Reason.NOTHING_IN_RANGE))
    reason = jnp.where((action == Action.DO) & (done.gains == 0), missed, reason)
    reason = jnp.where(listed, reason, jnp.int8(0))
    few = reason == Reason.TOO_FEW_AGENTS
    items = jnp.uint16(1) << jnp.arange(len(ITEM_NAMES), dtype=jnp.uint16)
    last = Last(
        status=jnp.where(listed, (reason == 0).astype(jnp.int8), jnp.int8(-1)),
        reason=reason,
        need=jnp.where(few, done.need, jnp.int8(0)),
        have=jnp.where(few, done.have, jnp.int8(0)),
        changed=jnp.where(inventory != before.inventory, items, jnp.uint16(0)).sum(-1, dtype=jnp.uint16),
        risen=risen,
        took=done.took(),
        blocked=done.blocked,
        blocked_need=done.need,
        blocked_have=done.have,
        placed=placed,
        shared=asked.shared,
    )
    return jax.tree.map(lambda new, old: jnp.where(live_now, new, old), last, before.last)
