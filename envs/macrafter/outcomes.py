"""10: how the actions of a step ended.

Axes: A agents.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.core.batching import along
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


@struct.dataclass
class Intent:
    """Who acts, and how."""

    live: Bool[Array, ""]  # the episode is not over
    action: Int[Array, " A"]  # what each was told to do, 0 instead of numbers that are no action; int8
    effective: Int[Array, " A"]  # what of it is left for its own update; int8
    listed: Bool[Array, " A"]
    collector: Bool[Array, " A"]
    reach: Int[Array, "A R"]  # from `collect.reach`


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
    intent: Intent,
    done: Collection,
    asked: Requests | None,
    placed: Int[Array, " A"],
    made: Int[Array, " A"],
    risen: UInt32[Array, " A"],
) -> Last:
    """Outcome of each listed agent; moves, sleeping and doing nothing always succeed.

    `inventory`: after the step; `placed`: where it put something; `made`: the making
    action that it carried out, 0 none; `risen`: achievements that rose, as bits.
    """
    action, listed = intent.action, intent.listed
    requirements = jnp.int8(Reason.REQUIREMENTS)
    is_make = (action >= Action.MAKE_WOOD_PICKAXE) & (action <= Action.MAKE_IRON_SWORD)
    reason = jnp.where(is_make & (made != action), requirements, jnp.int8(0))
    is_place = (action >= Action.PLACE_STONE) & (action <= Action.PLACE_PLANT)
    own = jnp.where(placed >= 0, jnp.int8(0), requirements)
    reason = jnp.where(is_place, own if asked is None else jnp.where(asked.has_place, asked.place_reason, own), reason)
    refused = jnp.int8(Reason.NO_SHARE_REQUEST) if asked is None else asked.share_reason
    reason = jnp.where(action == Action.SHARE, refused, reason)
    missed = jnp.where(done.blocked >= 0, done.blocked, jnp.int8(Reason.NOTHING_IN_RANGE))
    reason = jnp.where((action == Action.DO) & (done.gains == 0), missed, reason)
    reason = jnp.where(listed, reason, jnp.int8(0))
    few = reason == Reason.TOO_FEW_AGENTS
    items = along(np.uint16(1) << np.arange(len(ITEM_NAMES), dtype=np.uint16), inventory, 1)
    last = Last(
        status=jnp.where(listed, (reason == 0).astype(jnp.int8), jnp.int8(-1)),
        reason=reason,
        need=jnp.where(few, done.need, jnp.int8(0)),
        have=jnp.where(few, done.have, jnp.int8(0)),
        changed=jnp.where(inventory != before.inventory, items, jnp.uint16(0)).sum(1, dtype=jnp.uint16),
        risen=risen,
        took=done.took(),
        blocked=done.blocked,
        blocked_need=done.need,
        blocked_have=done.have,
        placed=placed,
        shared=jnp.full_like(placed, -99) if asked is None else asked.shared,
    )
    return jax.tree.map(lambda new, old: jnp.where(intent.live, new, old), last, before.last)
