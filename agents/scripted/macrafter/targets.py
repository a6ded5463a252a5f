"""Where squads meet: the cell that all members of a squad collect together.

Axes: Q squads, S places in a squad, W x H cells, K = 8 cells that a squad has given up for now.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter.needs import Needs, Team, resource_needed
from jaxcoop.agents.scripted.macrafter.squads import Squads
from jaxcoop.envs.macrafter.config import Settings, half_points, requirements
from jaxcoop.envs.macrafter.types import Material

GIVEN_UP = 8
PATIENCE = 150
"""Steps after which a target that was not collected is given up."""
AMNESTY = 256
"""Every so many steps all cells that were given up get another chance."""
URGENCY = 30
"""How much more a unit is worth that the squad needs for its next tool."""
LEG = 12
"""Steps that each further stage before a diamond takes at least."""
MINING = 10
"""Points for each step that an agent makes by digging in rock alone; a meeting that brings less is left out."""
ONWARD = 0.5
"""Weight of the way from a meeting on to the diamond that is nearest now, against the way to the meeting."""
SLACK = 6
"""Steps that collecting takes beside the walk."""
SOLID = (Material.LAVA, Material.COAL, Material.IRON, Material.DIAMOND, Material.TABLE, Material.FURNACE)
"""Ground on which nobody comes to stand, whatever is dug or built."""


@struct.dataclass
class Target:
    """What each squad goes for."""

    cell: Int[Array, " Q"]  # cell index, -1: nothing; int32
    kind: Int[Array, " Q"]  # its material when chosen; int32
    age: Int[Array, " Q"]  # steps since then in which everybody was awake and fit; int32
    waited: Int[Array, " Q"]  # steps since enough members were there; int32
    given_up: Int[Array, "Q K"]  # cells, -1: none; the latest first; int32


def no_target(squads: Squads) -> Target:
    """At the start."""
    zero = jnp.zeros((squads.count,), jnp.int32)
    none = jnp.full((squads.count,), -1, jnp.int32)
    return Target(none, zero, zero, zero, jnp.full((squads.count, GIVEN_UP), -1, jnp.int32))


def update(
    settings: Settings,
    squads: Squads,
    material: Array,
    team: Team,
    needs: Needs,
    target: Target,
    is_busy: Bool[Array, " Q"],
    t: Int[Array, ""],
) -> Target:
    """Keep each squad's target while it is there, or choose the one that pays most for the way.

    `material`: codes [W, H]; `is_busy`: members eat, drink or sleep, so time does not count; `t`: steps taken.
    """
    flat = material.reshape(-1).astype(jnp.int32)
    here = jnp.where(target.cell >= 0, flat[jnp.maximum(target.cell, 0)], -1)
    is_there = (here == target.kind) & (target.cell >= 0)
    is_late = is_there & (target.age >= PATIENCE)
    given_up = jnp.where(
        is_late[:, None],
        jnp.concatenate([target.cell[:, None], target.given_up[:, :-1]], axis=1),
        target.given_up,
    )
    given_up = jnp.where(t % AMNESTY == 0, -1, given_up)
    best, kind, found = _best(settings, squads, material, team, needs, given_up, settings.max_steps - t)
    # with nothing left, what was given up gets another chance
    given_up = jnp.where(found[:, None], given_up, -1)
    keeps = is_there & ~is_late
    cell = jnp.where(keeps, target.cell, jnp.where(found, best, -1))
    kind = jnp.where(keeps, target.kind, kind)
    age = jnp.where(keeps, target.age + (~is_busy).astype(jnp.int32), 0)
    return Target(cell, kind, age, jnp.where(keeps, target.waited, 0), given_up)


def _best(
    settings: Settings,
    squads: Squads,
    material: Array,
    team: Team,
    needs: Needs,
    given_up: Int[Array, "Q K"],
    left: Int[Array, ""],
) -> tuple[Array, Array, Array]:
    """Cell, kind and whether there is any; by value for each step of the member that is farthest away."""
    count, cells = squads.count, settings.cells
    none = jnp.full((count,), -1, jnp.int32)
    if not squads.joint:
        return none, none, jnp.zeros((count,), jnp.bool_)
    task = requirements(settings.tasks)
    points = half_points(settings.tasks)
    far = jnp.zeros((count, settings.width, settings.height), jnp.int16)
    for place in range(squads.size):
        here = _gap(settings, team.x[:, place], team.y[:, place])
        far = jnp.maximum(far, jnp.where(team.alive[:, place, None, None], here, 0))
    stand = jnp.full(material.shape, 4, jnp.int8)
    if settings.distance == 1:
        stand = _standing_room(material, Material.STONE in squads.alone)
    most = min(task[Material.DIAMOND].agents, 4)
    is_diamond = (material == Material.DIAMOND) & (Material.DIAMOND in squads.joint)
    open_diamond = is_diamond & (stand >= most)
    # with nothing but diamonds between other ores left, those ores are in the way
    in_the_way = (_neighbours(is_diamond & (stand < most)) > 0) & ~open_diamond.any()
    value = jnp.zeros((count, *material.shape), jnp.float32)
    needed = {kind: resource_needed(needs, kind) for kind in squads.joint}
    # legs of the way to a diamond, and whether there is time for them
    legs = sum((needed[kind].astype(jnp.int32) for kind in squads.joint), jnp.zeros_like(needs.tier))
    in_time = far + (LEG * legs)[:, None, None] < left
    for kind in squads.joint:
        need = task[kind].agents
        enough = team.able[kind].sum(axis=1, dtype=jnp.int32) >= need
        urgent = (needed[kind][:, None, None] | (in_the_way & (needs.tier == 3)[:, None, None])) & in_time
        worth = int(points[kind]) * jnp.where(urgent, np.float32(URGENCY), np.float32(1))
        fits = (material == kind) & (stand >= min(need, 4)) & enough[:, None, None]
        value = jnp.where(fits, worth, value)
    value = jnp.where(far + np.int16(1) < left, value, 0.0)  # too late for the others
    way = far.astype(jnp.float32)
    if Material.DIAMOND in squads.joint:
        to_diamond = jnp.where(open_diamond, far, np.int16(30_000)).reshape(count, cells)
        last = jnp.argmin(to_diamond, axis=1).astype(jnp.int32)
        onward = _gap(settings, last // settings.height, last % settings.height) * open_diamond.any()
        way = way + ONWARD * onward.astype(jnp.float32) * (needs.tier < 3)[:, None, None]
    rate = (value / (way + SLACK)).reshape(count, cells)
    rows = jnp.arange(count)[:, None]
    rate = rate.at[rows, jnp.where(given_up >= 0, given_up, cells)].set(0.0, mode="drop")
    best = jnp.argmax(rate, axis=1).astype(jnp.int32)
    has_rock = (material == Material.STONE).any() & (Material.STONE in squads.alone)
    mines = (team.able[Material.STONE].any(axis=1) & has_rock) * np.float32(2 * MINING)
    found = jnp.take_along_axis(rate, best[:, None], axis=1)[:, 0] > mines
    return best, material.reshape(-1).astype(jnp.int32)[best], found


def _standing_room(material: Array, digs: bool) -> Int[Array, "W H"]:
    """How many of the four neighbours of each cell somebody could come to stand on, digging or not; int8."""
    closed = (*SOLID, Material.NONE) if digs else (*SOLID, Material.NONE, Material.STONE, Material.WATER)
    solid = sum(1 << int(kind) for kind in closed)
    return _neighbours((np.uint32(solid) >> material.astype(jnp.uint32)) & 1 == 0)


def _gap(settings: Settings, x: Int[Array, " Q"], y: Int[Array, " Q"]) -> Int[Array, "Q W H"]:
    """Manhattan distance of each cell from (x, y); int16."""
    column, row = jnp.arange(settings.width, dtype=jnp.int16), jnp.arange(settings.height, dtype=jnp.int16)
    x, y = x.astype(jnp.int16)[:, None], y.astype(jnp.int16)[:, None]
    return jnp.abs(column - x)[:, :, None] + jnp.abs(row - y)[:, None, :]


def _neighbours(cells: Bool[Array, "W H"]) -> Int[Array, "W H"]:
    """How many of the four neighbours of each cell are in the set; int8."""
    padded = jnp.pad(cells.astype(jnp.int8), 1)
    return padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
