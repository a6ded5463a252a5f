"""The four cooperation constraints as predicates over counts (COOP², Table 1, equations 6 and 19 to 23).

Axes: G tasks that are looked at: all M of a table, or the few that an attempt names.

Every constraint of task g asks for p(g) agents: at its place (spatial), acting on it in this step (temporal), having
what it takes (dependency), and taking part (participation).  Who counts as being there, acting or able is the
environment's definition; from the counts on, everything is the same for all.
"""

from enum import IntEnum

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int


class Constraint(IntEnum):
    """The constraint types, in the order of every axis `C`."""

    SPATIAL = 0
    TEMPORAL = 1
    DEPENDENCY = 2
    PARTICIPATION = 3


SCORED = (Constraint.SPATIAL, Constraint.TEMPORAL, Constraint.DEPENDENCY)
"""Those with a score of their own; participation enters through the number of agents that each of them asks for."""


@struct.dataclass
class Counts:
    """Agents that meet each constraint of each task."""

    spatial: Int[Array, " G"]  # at its place
    temporal: Int[Array, " G"]  # acting on it in this step
    dependency: Int[Array, " G"]  # with the capability that it needs; anybody where it needs none
    participation: Int[Array, " G"]  # taking part, by the environment's definition


def satisfied(required: Int[Array, " G"], counts: Counts) -> Bool[Array, "G 4"]:
    """C_c(g): whether p(g) agents or more meet each constraint, in the order of `Constraint`."""
    each = [counts.spatial, counts.temporal, counts.dependency, counts.participation]
    return jnp.stack([count >= required for count in each], axis=-1)


def scores(required: Int[Array, " G"], counts: Counts) -> Float[Array, "G 3"]:
    """s_c = count / p(g) of the scored constraints; above 1 where more agents come than are needed."""
    each = jnp.stack([counts.spatial, counts.temporal, counts.dependency], axis=-1)
    return each.astype(jnp.float32) / jnp.maximum(required, 1)[..., None].astype(jnp.float32)


def deficits(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """v_c = max(0, 1 - min(s_c, 1)): how far a constraint is from being met, 0 to 1."""
    return jnp.maximum(0.0, 1.0 - jnp.minimum(score, 1.0))


def valid_participants(
    near: Bool[Array, " A"], acting: Bool[Array, " A"], capable: Bool[Array, " A"]
) -> Int[Array, ""]:
    """Agents that meet every individual condition of one task at once (Table 1): there, acting and capable.

    Stricter than the three counts of equation 23, which different agents may make up.
    """
    return (near & acting & capable).sum(dtype=jnp.int32)
