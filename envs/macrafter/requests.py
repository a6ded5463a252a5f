"""5, S2 and S3: share and place requests, one agent after the other.

Axes: A agents.  Only the symbolic layer makes requests, so plain primitives never come here.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8

from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.outcomes import Requests
from jaxcoop.envs.macrafter.types import (
    DELTA_X,
    DELTA_Y,
    MATERIAL_MASK,
    PLACES,
    PLANT_BIT,
    Command,
    Item,
    Material,
    Reason,
    State,
    material_of,
)

SEARCH = (3, 1, 0, 2)
"""8.2: directions that are tried after the facing one: down, right, left, up."""

RECIPES = ((Item.STONE, 1), (Item.WOOD, 2), (Item.STONE, 4), (Item.SAPLING, 1))
"""2: what each of `PLACES` uses."""

GROUNDS = (
    (Material.GRASS, Material.SAND, Material.PATH, Material.WATER, Material.LAVA),
    (Material.GRASS, Material.SAND, Material.PATH),
    (Material.GRASS, Material.SAND, Material.PATH),
    (Material.GRASS,),
)
"""2: materials on which each of `PLACES` may be placed."""

LARGEST_SHARE = 1 << 20
"""Quantities are cut to +- this, far above any inventory, so that sums stay in range."""


def allowed_ground(what: Array, material: Array) -> Bool[Array, "..."]:
    """2: whether number `what` of `PLACES` may be placed on a material."""
    ok = jnp.zeros(jnp.broadcast_shapes(what.shape, material.shape), jnp.bool_)
    for number, grounds in enumerate(GROUNDS):
        fits = jnp.zeros(material.shape, jnp.bool_)
        for ground in grounds:
            fits = fits | (material == ground)
        ok = ok | ((what == number) & fits)
    return ok


def has_ingredients(what: Int[Array, " A"], inventory: Int[Array, "A 16"]) -> Bool[Array, " A"]:
    """2: whether an inventory holds what number `what` of `PLACES` uses."""
    ok = jnp.zeros_like(what, jnp.bool_)
    for number, (item, amount) in enumerate(RECIPES):
        ok = ok | ((what == number) & (inventory[:, item] >= amount))
    return ok


def placed_byte(what: Array, cell: UInt8[Array, "..."]) -> UInt8[Array, "..."]:
    """The byte of a cell on which number `what` of `PLACES` is put; its memory of resources stays (types)."""
    codes = {0: Material.STONE, 1: Material.TABLE, 2: Material.FURNACE}
    material = material_of(cell)
    for number, code in codes.items():
        material = jnp.where(what == number, jnp.uint8(code), material)
    plant = jnp.where(what == PLACES.index("plant"), jnp.uint8(PLANT_BIT), cell & PLANT_BIT)
    return plant | (cell & jnp.uint8(0xFF ^ PLANT_BIT ^ MATERIAL_MASK)) | material


def share(
    requests: Int[Array, "A 4"], inventory: Int[Array, "A 16"], listed: Bool[Array, " A"]
) -> tuple[Int[Array, "A 16"], Int[Array, " A"], Int[Array, " A"]]:
    """9: inventories (int32) after all share requests, reason of each (int8), quantity moved (int16, -99 none).

    An item number out of range is never available.  The quantity is not checked: zero and negative ones are executed.
    """
    agents = jnp.arange(listed.shape[0], dtype=jnp.int32)

    def one(inventory: Array, entry: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        sharer, request = entry
        present, to, item, quantity = request[0] != 0, request[1], request[2], request[3]
        valid_to = (to >= 0) & (to < agents.shape[0])
        valid_item = (item >= 0) & (item < inventory.shape[1])
        recipient, what = jnp.where(valid_to, to, 0), jnp.where(valid_item, item, 0)
        count = jnp.where(valid_item, inventory[sharer, what], 0)
        reason = jnp.int8(0)
        for bad, code in reversed(
            (
                (~present, Reason.NO_SHARE_REQUEST),
                (item == Item.HEALTH, Reason.HEALTH_NOT_SHAREABLE),
                (~valid_to, Reason.INVALID_INDEX),
                (recipient == sharer, Reason.SELF_SHARE),
                (~(listed[sharer] & listed[recipient]), Reason.REMOVED),
                (count <= 0, Reason.NONE_AVAILABLE),
            )
        ):
            reason = jnp.where(bad, jnp.int8(code), reason)
        amount = jnp.minimum(jnp.clip(quantity, -LARGEST_SHARE, LARGEST_SHARE), count)
        moved = jnp.where(reason == 0, amount, 0)
        inventory = inventory.at[sharer, what].add(-moved).at[recipient, what].add(moved)
        shared = jnp.where(reason == 0, jnp.clip(moved, -32_000, 32_000), -99).astype(jnp.int16)
        return inventory, (reason, shared)

    inventory, (reason, shared) = jax.lax.scan(one, inventory, (agents, requests))
    return inventory, reason, shared


def place(
    settings: Settings,
    cells: UInt8[Array, " W*H"],
    occupants: Array,
    requests: Int[Array, " A"],
    x: Int[Array, " A"],
    y: Int[Array, " A"],
    facing: Int[Array, " A"],
    inventory: Int[Array, "A 16"],
    listed: Bool[Array, " A"],
) -> tuple[UInt8[Array, " W*H"], Int[Array, "A 16"], Int[Array, " A"], Int[Array, " A"]]:
    """8.2: map and inventories after all place requests, reason of each (int8), cell where it was placed (int16, -1).

    The ingredients of each are checked against its own inventory only, which other placements do not change.
    """
    has = (requests >= 0) & listed
    known = requests < len(PLACES)
    enough = has_ingredients(requests, inventory)
    reason = jnp.where(~known, jnp.int8(Reason.UNKNOWN_ITEM), jnp.int8(0))
    reason = jnp.where(known & ~enough, jnp.int8(Reason.MISSING_RESOURCES), reason)
    direction = jnp.concatenate(
        [facing[:, None].astype(jnp.int32), jnp.broadcast_to(jnp.asarray(SEARCH, jnp.int32), (facing.shape[0], 4))], 1
    )
    tx, ty = x[:, None] + jnp.asarray(DELTA_X)[direction], y[:, None] + jnp.asarray(DELTA_Y)[direction]  # [A, 5]
    inside = (tx >= 0) & (tx < settings.width) & (ty >= 0) & (ty < settings.height)
    target = jnp.where(inside, tx * settings.height + ty, jnp.int16(0))
    empty = inside & (occupants[target] == 0)

    def one(cells: Array, entry: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        what, tries, target, empty = entry
        byte = cells[target]  # [5]
        fits = empty & (byte < PLANT_BIT) & allowed_ground(what, material_of(byte))
        chosen = jnp.argmax(fits)
        done = tries & fits.any()
        where = jnp.where(done, target[chosen], jnp.int16(settings.cells))
        cells = cells.at[where].set(placed_byte(what, byte[chosen]), mode="drop")
        return cells, (done, jnp.where(done, target[chosen], jnp.int16(-1)))

    tries = has & known & enough
    cells, (done, placed) = jax.lax.scan(one, cells, (requests, tries, target, empty))
    reason = jnp.where(tries & ~done, jnp.int8(Reason.NO_ADJACENT_TARGET), reason)
    return cells, pay(requests, done, inventory), jnp.where(has, reason, jnp.int8(0)), placed


def pay(what: Int[Array, " A"], done: Bool[Array, " A"], inventory: Int[Array, "A 16"]) -> Int[Array, "A 16"]:
    """2: inventories without the ingredients of what was placed."""
    for number, (item, amount) in enumerate(RECIPES):
        price = np.where(np.arange(len(Item)) == item, amount, 0).astype(np.int32)
        inventory = inventory - (done & (what == number))[:, None].astype(jnp.int32) * price
    return inventory


def carry_out(
    settings: Settings, command: Command, state: State, occupants: Array, live: Bool[Array, ""]
) -> tuple[UInt8[Array, " W*H"], Int[Array, "A 16"], Requests]:
    """S2, S3: map and inventories (int32) after the requests of a command, and what became of these.

    `occupants`: who is where; `live`: nothing is carried out unless it holds.
    """
    listed = ~state.removed & live
    inventory, share_reason, shared = share(command.share, state.inventory.astype(jnp.int32), listed)
    cells, inventory, place_reason, placed = place(
        settings,
        state.material.reshape(-1),
        occupants,
        command.place,
        state.x,
        state.y,
        state.facing,
        inventory,
        listed,
    )
    has_place = (command.place >= 0) & listed
    return cells, inventory, Requests(has_place, command.place, place_reason, placed, share_reason, shared)
