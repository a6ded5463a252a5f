"""Where squads meet to collect together, and from where each member does it.

Axes: Q squads, S places in a squad, W x H cells, R cells in reach of a collector, K = 8 cells that were given up.
The rule is the same for everybody: value for each step of the way of the member that is farthest away.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter.needs import Team
from jaxcoop.agents.scripted.macrafter.squads import Squads
from jaxcoop.envs.macrafter.config import Settings, half_points, offsets, requirements

GIVEN_UP = 8
PATIENCE = 8
"""Plans that each member makes for a target on average before the squad gives it up."""
URGENCY = 3
"""How much more a unit is worth that somebody needs for the next tool."""
SLACK = 6
"""Steps that a meeting takes beside the walk."""
DIGGING = 3
"""Steps that it takes to dig out a place to stand on."""


@struct.dataclass
class Memory:
    """What everybody saw: at which targets the squads got nothing."""

    cell: Int[Array, " Q"]  # the last target, -1: none
    plans: Int[Array, " Q"]  # made for it
    given_up: Int[Array, "Q K"]  # cells, -1: none; the latest first


@struct.dataclass
class Meeting:
    """What each squad collects next."""

    cell: Int[Array, " Q"]  # -1: nothing
    kind: Int[Array, " Q"]
    required: Int[Array, " Q"]
    is_open: Bool[Array, "Q R"]  # somebody can stand there now
    digs: Bool[Array, "Q R"]  # once it is dug out


@struct.dataclass
class Parts:
    """Who collects, and from where."""

    joins: Bool[Array, "Q S"]
    steps: Int[Array, "Q S"]  # about how many until the member can
    dig: Int[Array, "Q S"]  # cell that it digs out to stand on, -1: it finds a free one
    latest: Int[Array, " Q"]  # steps until the last of those who join can collect


def nothing_tried(squads: Squads) -> Memory:
    """At the start."""
    none = jnp.full((squads.count,), -1, jnp.int32)
    return Memory(cell=none, plans=none + 1, given_up=jnp.full((squads.count, GIVEN_UP), -1, jnp.int32))


def remembered(squads: Squads, memory: Memory, cell: Int[Array, " Q"], plans: Int[Array, " Q"]) -> Memory:
    """After `plans` more plans for the squads' targets."""
    plans = jnp.where(cell == memory.cell, memory.plans, 0) + plans
    gives_up = (cell >= 0) & (plans > PATIENCE * squads.size)
    longer = jnp.concatenate([cell[:, None], memory.given_up[:, :-1]], axis=1)
    return Memory(cell, plans, jnp.where(gives_up[:, None], longer, memory.given_up))


def choose(
    settings: Settings,
    squads: Squads,
    material: Int[Array, "W H"],
    walkable: Bool[Array, "Q W H"],
    near_rock: Bool[Array, "Q W H"],
    team: Team,
    available: Bool[Array, "Q S"],
    needed: dict[int, Bool[Array, " Q"]],
    agreed: Int[Array, " Q"],
    memory: Memory,
) -> Meeting:
    """The best target of each squad, or the one that it has agreed on.

    `walkable`: cells that the squad can reach; `near_rock`: rock beside them; `needed`: kinds that somebody needs for
    a tool; `agreed`: cell, -1: none.
    """
    gap = jnp.zeros((squads.count, settings.width, settings.height), jnp.int16)
    for place in range(squads.size):
        here = _gap(settings, team.x[:, place], team.y[:, place])
        gap = jnp.maximum(gap, jnp.where(available[:, place, None, None], here, 0))
    room = _room(settings, walkable | near_rock)
    way = gap.astype(jnp.float32) + SLACK
    rate = jnp.zeros(way.shape, jnp.float32)
    points, task = half_points(settings.tasks), requirements(settings.tasks)
    for kind in squads.joint:
        need = task[kind].agents
        is_enough = (team.able[kind] & available).sum(axis=1) >= need
        worth = jnp.where(needed[kind], float(URGENCY * points[kind]), float(points[kind]))
        fits = (material == kind) & (room >= need) & is_enough[:, None, None]
        rate = jnp.where(fits, worth[:, None, None] / way, rate)
    rate = rate.reshape(squads.count, -1)
    rows = jnp.arange(squads.count)[:, None]
    rate = rate.at[rows, jnp.where(memory.given_up >= 0, memory.given_up, settings.cells)].set(0.0, mode="drop")
    best = jnp.argmax(rate, axis=1).astype(jnp.int32)
    found = jnp.take_along_axis(rate, best[:, None], axis=1)[:, 0] > 0
    cell = jnp.where(agreed >= 0, agreed, jnp.where(found, best, -1))
    return meeting_at(settings, material, cell, walkable, near_rock)


def meeting_at(
    settings: Settings,
    material: Int[Array, "W H"],
    cell: Int[Array, " Q"],
    walkable: Bool[Array, "Q W H"],
    near_rock: Bool[Array, "Q W H"],
) -> Meeting:
    """What it takes to collect a cell."""
    at = jnp.maximum(cell, 0)
    kind = material.reshape(-1)[at].astype(jnp.int32)
    required = jnp.ones_like(kind)
    for code, need in requirements(settings.tasks).items():
        required = jnp.where(kind == code, need.agents, required)
    x, y, inside = around(settings, cell)
    flat, rows = jnp.where(inside, x * settings.height + y, 0), jnp.arange(cell.shape[0])[:, None]
    is_open = walkable.reshape(cell.shape[0], -1)[rows, flat] & inside
    digs = near_rock.reshape(cell.shape[0], -1)[rows, flat] & inside
    return Meeting(cell, jnp.where(cell >= 0, kind, 0), required, is_open, digs & (settings.distance == 1))


def around(settings: Settings, cell: Int[Array, " Q"]) -> tuple[Array, Array, Bool[Array, "Q R"]]:
    """Coordinates of the cells from which a cell is in reach, and whether they are on the map."""
    steps = offsets(settings.distance).astype(np.int32)
    x = (cell // settings.height)[:, None] + steps[:, 0]
    y = (cell % settings.height)[:, None] + steps[:, 1]
    inside = (x >= 0) & (x < settings.width) & (y >= 0) & (y < settings.height) & (cell >= 0)[:, None]
    return x, y, inside


def parts_of(settings: Settings, team: Team, meeting: Meeting, available: Bool[Array, "Q S"]) -> Parts:
    """The members that join: all that are able to and find a place, the nearest first; free places go first."""
    x, y = (meeting.cell // settings.height)[:, None], (meeting.cell % settings.height)[:, None]
    gap = jnp.abs(team.x - x) + jnp.abs(team.y - y)
    able = jnp.zeros_like(available)
    for kind, ok in team.able.items():
        able = jnp.where((meeting.kind == kind)[:, None], ok, able)
    able = able & available & (meeting.cell >= 0)[:, None]
    key = jnp.where(able, gap, 2**14) * gap.shape[1] + jnp.arange(gap.shape[1], dtype=jnp.int32)
    rank = (key[:, None, :] < key[:, :, None]).sum(2, dtype=jnp.int32)
    free, rock = meeting.is_open.sum(1, dtype=jnp.int32)[:, None], meeting.digs.sum(1, dtype=jnp.int32)[:, None]
    joins = able & (rank < free + rock)
    digs = joins & (rank >= free)
    number = jnp.where(meeting.digs, jnp.cumsum(meeting.digs, axis=1) - 1, -1)  # [Q, R]
    is_mine = digs[:, :, None] & (number[:, None] == (rank - free)[:, :, None])
    near_x, near_y, _ = around(settings, meeting.cell)
    own = jnp.where(is_mine, (near_x * settings.height + near_y)[:, None], 0).sum(2, dtype=jnp.int32)
    steps = jnp.maximum(gap - settings.distance, 0) + DIGGING * digs
    return Parts(
        joins=joins,
        steps=jnp.where(joins, steps, 0),
        dig=jnp.where(digs, own, -1),
        latest=jnp.where(joins, steps, 0).max(1),
    )


def _gap(settings: Settings, x: Int[Array, " Q"], y: Int[Array, " Q"]) -> Int[Array, "Q W H"]:
    """Manhattan distance of each cell from (x, y); int16."""
    column, row = jnp.arange(settings.width, dtype=jnp.int16), jnp.arange(settings.height, dtype=jnp.int16)
    x, y = x.astype(jnp.int16)[:, None], y.astype(jnp.int16)[:, None]
    return jnp.abs(column - x)[:, :, None] + jnp.abs(row - y)[:, None, :]


def _room(settings: Settings, places: Bool[Array, "Q W H"]) -> Int[Array, "Q W H"]:
    """From how many places each cell can be collected; int8."""
    reach = settings.distance
    padded = jnp.pad(places.astype(jnp.int8), ((0, 0), (reach, reach), (reach, reach)))
    total = jnp.zeros(places.shape, jnp.int8)
    for dx, dy in offsets(reach).tolist():
        x, y = reach + dx, reach + dy
        total = total + padded[:, x : x + settings.width, y : y + settings.height]
    return total


def is_joint(squads: Squads, kind: Int[Array, "..."]) -> Bool[Array, "..."]:
    """Whether a kind is one that squads collect together."""
    return (kind[..., None] == np.array(squads.joint, np.int32)).any(-1)
