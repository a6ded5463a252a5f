"""What squads have and what they lack on the way to the diamonds.

Axes: Q squads, S places in a squad, T station slots.  Whatever is needed for the next tool is handed to one member, the
crafter, who makes the tool for all (sharing knows no distance, 9); so only one member needs a station.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter.squads import PICKAXES, Squads
from jaxcoop.envs.macrafter.collect import has_tools
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.types import Item, Material, State

NEAR = 10
"""A station farther away is not worth the walk: another one is put up."""

TABLE_WOOD, FURNACE_STONE = 2, 4
CRAFT_ITEMS = (Item.WOOD, Item.STONE, Item.COAL, Item.IRON)
USES = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 1]], np.int32)
"""2: `CRAFT_ITEMS` for each of the pickaxes."""

BRIDGE = 1
"""Stones that every member keeps to cross water."""


@struct.dataclass
class Team:
    """The agents in their squads."""

    alive: Bool[Array, "Q S"]  # False in empty places
    asleep: Bool[Array, "Q S"]
    x: Int[Array, "Q S"]  # int32
    y: Int[Array, "Q S"]
    facing: Int[Array, "Q S"]
    items: Int[Array, "Q S 16"]  # int32
    able: dict[int, Bool[Array, "Q S"]]  # 2: holds the tools for each collectable code
    table: Int[Array, "Q S"]  # Manhattan distance to the nearest table; int32, large without one
    furnace: Int[Array, "Q S"]
    at_table: Bool[Array, "Q S"]  # 8.3: can make things there
    at_furnace: Bool[Array, "Q S"]


@struct.dataclass
class Needs:
    """What each squad works for."""

    tier: Int[Array, " Q"]  # the next of `PICKAXES` to make, 3: all are made; int32
    missing: Int[Array, " Q"]  # tools of that tier
    now: Int[Array, "Q 4"]  # `CRAFT_ITEMS` that go into them and their station
    total: Int[Array, "Q 4"]  # and into those that come later
    have: Int[Array, "Q 4"]  # what the members can give
    ready: Bool[Array, " Q"]  # there is enough for the next tier
    at_furnace: Bool[Array, " Q"]  # that tier is made at a furnace


def look(settings: Settings, squads: Squads, state: State) -> Team:
    """The agents in their squads."""
    x, y = state.x.astype(jnp.int32), state.y.astype(jnp.int32)
    table, at_table = _stations(settings, state.table, x, y)
    furnace, at_furnace = _stations(settings, state.furnace, x, y)
    inventory = state.inventory.astype(jnp.int32)
    alive = ~state.removed
    able = {code: squads.by_squad(ok & alive) for code, ok in has_tools(settings, inventory).items()}
    return Team(
        alive=squads.by_squad(alive),
        asleep=squads.by_squad(state.sleeping),
        x=squads.by_squad(x, -1),
        y=squads.by_squad(y, -1),
        facing=squads.by_squad(state.facing.astype(jnp.int32)),
        items=squads.by_squad(jnp.where(alive[:, None], inventory, 0)),
        able=able,
        table=squads.by_squad(table),
        furnace=squads.by_squad(furnace),
        at_table=squads.by_squad(at_table),
        at_furnace=squads.by_squad(at_furnace),
    )


def _stations(
    settings: Settings, cells: Int[Array, " T"], x: Int[Array, " A"], y: Int[Array, " A"]
) -> tuple[Int[Array, " A"], Bool[Array, " A"]]:
    """Manhattan distance to the nearest of the listed stations, and whether one is beside the agent (8.3, E1)."""
    at = cells.astype(jnp.int32)
    dx = jnp.abs(at // settings.height - x[:, None])
    dy = jnp.abs(at % settings.height - y[:, None])
    known = at >= 0
    beside = known & (jnp.maximum(dx, dy) <= 1) & ((x > 0) & (y > 0))[:, None]
    far = settings.width + settings.height
    return jnp.where(known, dx + dy, far).min(axis=1), beside.any(axis=1)


def needs_of(squads: Squads, team: Team) -> Needs:
    """What every squad lacks."""
    members = team.alive.sum(axis=1, dtype=jnp.int32)
    held = jnp.stack([team.items[:, :, tool].sum(axis=1) for tool in PICKAXES], axis=1)
    missing = jnp.maximum(members[:, None] - held, 0) * np.array(squads.wants, np.int32)  # [Q, 3]
    tier = jnp.where(missing > 0, np.arange(3, dtype=np.int32), 3).min(axis=1)
    lacks = jnp.where(np.arange(3) == tier[:, None], missing, 0)
    at_furnace = tier == 2
    near_table = (jnp.where(team.alive, team.table, 2 * NEAR) <= NEAR).any(axis=1)
    near_furnace = (jnp.where(team.alive, team.furnace, 2 * NEAR) <= NEAR).any(axis=1)
    wood = jnp.where((tier < 2) & ~near_table, TABLE_WOOD, 0)
    stone = jnp.where(near_furnace, 0, FURNACE_STONE)
    station = jnp.stack([wood, jnp.where(at_furnace, stone, 0), 0 * wood, 0 * wood], axis=1)
    later = jnp.stack([wood, jnp.where(missing[:, 2] > 0, stone, 0), 0 * wood, 0 * wood], axis=1)
    now = lacks @ USES + station
    have = jnp.stack([spare(team, item).sum(axis=1) for item in CRAFT_ITEMS], axis=1)
    return Needs(
        tier=tier,
        missing=lacks.sum(axis=1, dtype=jnp.int32),
        now=now,
        total=missing @ USES + later,
        have=have,
        ready=(tier < 3) & (have >= now).all(axis=1),
        at_furnace=at_furnace,
    )


def spare(team: Team, item: int) -> Int[Array, "Q S"]:
    """Units of an item that each member can give."""
    count = team.items[:, :, item]
    return jnp.maximum(count - BRIDGE, 0) if item == Item.STONE else count


def choose_crafter(team: Team, needs: Needs, crafter: Int[Array, " Q"]) -> Int[Array, " Q"]:
    """Place of the member that makes the next tools, -1 as long as something is missing for them.

    The one beside or nearest to a station, else the one that holds most; never in the first column or row (E1).
    """
    distance = jnp.where(needs.at_furnace[:, None], team.furnace, team.table)
    held = sum(team.items[:, :, item] for item in CRAFT_ITEMS)
    score = held + 100 * jnp.maximum(NEAR + 1 - distance, 0)
    score = score - 5_000 * ((team.x == 0) | (team.y == 0)) - 2_000 * team.asleep - 100_000 * ~team.alive
    best = jnp.argmax(score, axis=1).astype(jnp.int32)
    is_gone = ~jnp.take_along_axis(team.alive, jnp.maximum(crafter, 0)[:, None], axis=1)[:, 0]
    return jnp.where(needs.ready, jnp.where((crafter < 0) | is_gone, best, crafter), -1)


def resource_needed(needs: Needs, kind: int) -> Bool[Array, " Q"]:
    """Whether the next steps of the tree take units of a resource: diamonds when there is nothing left to make."""
    if kind == Material.DIAMOND:
        return needs.tier == 3
    item = {Material.TREE: 0, Material.STONE: 1, Material.COAL: 2, Material.IRON: 3}[Material(kind)]
    return needs.total[:, item] > needs.have[:, item]
