"""6 and 8: what a player does in its own update: sleeping, crafting, vitals.

Axes: A agents.  Moves and placements, where players get into each other's way, are decided in `claims`.
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8, UInt32

from jaxcoop.core.batching import along
from jaxcoop.envs.macrafter.claims import winning_turn
from jaxcoop.envs.macrafter.collect import YIELDS
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.requests import RECIPES
from jaxcoop.envs.macrafter.types import CAPS, Achievement, Action, Item, Material, Thing, material_of

CRAFTS = {
    Action.MAKE_WOOD_PICKAXE: (((Item.WOOD, 1),), Material.TABLE),
    Action.MAKE_STONE_PICKAXE: (((Item.WOOD, 1), (Item.STONE, 1)), Material.TABLE),
    Action.MAKE_IRON_PICKAXE: (((Item.WOOD, 1), (Item.COAL, 1), (Item.IRON, 1)), Material.FURNACE),
    Action.MAKE_WOOD_SWORD: (((Item.WOOD, 1),), Material.TABLE),
    Action.MAKE_STONE_SWORD: (((Item.WOOD, 1), (Item.STONE, 1)), Material.TABLE),
    Action.MAKE_IRON_SWORD: (((Item.WOOD, 1), (Item.COAL, 1), (Item.IRON, 1)), Material.FURNACE),
}
"""2: ingredients and the station that has to be near."""

MADE = {action: Item.WOOD_PICKAXE + number for number, action in enumerate(CRAFTS)}
CRAFT_ACHIEVEMENTS = {action: Achievement[action.name] for action in CRAFTS}
PLACE_ACHIEVEMENTS = (
    Achievement.PLACE_STONE,
    Achievement.PLACE_TABLE,
    Achievement.PLACE_FURNACE,
    Achievement.PLACE_PLANT,
)

# 6, in units of 1/2: the counters' limits.
HUNGER, THIRST, FATIGUE_LOW, FATIGUE_HIGH, RECOVER_LOW, RECOVER_HIGH = 50, 40, -20, 60, -30, 50


def neighbourhood(settings: Settings, x: Int[Array, " A"], y: Int[Array, " A"]) -> Int[Array, "A 9"]:
    """Cells of the 3 x 3 block around each agent, W*H outside the world, int16.

    8.3, E1: for a player in the first column or the first row all of it is outside.
    """
    steps = np.array([(d % 3 - 1, d // 3 - 1) for d in range(9)], np.int16)
    on_edge = (x <= 0) | (y <= 0)
    x, y, on_edge = x[:, None], y[:, None], on_edge[:, None]
    nx, ny = x + along(steps[:, 0], x, 1), y + along(steps[:, 1], y, 1)
    inside = (nx < settings.width) & (ny < settings.height) & ~on_edge
    return jnp.where(inside, nx * settings.height + ny, jnp.int16(settings.cells))


def near_stations(
    settings: Settings, block: Int[Array, "A 9"], old: UInt8[Array, "A 9"], late: "PlacedNow | SeenAfter"
) -> dict[int, Bool[Array, " A"]]:
    """8.3: whether each station is near when the agent's turn comes.

    `block`: from `neighbourhood`; `old`: bytes of its cells before this step's updates.
    """
    inside, material = block < settings.cells, material_of(old)
    return {
        station: (inside & (material == station)).any(1) | late.near(settings, block, station)
        for station in (Material.TABLE, Material.FURNACE)
    }


@struct.dataclass
class PlacedNow:
    """Stations that a small team puts up in this step: all agents are compared with each other."""

    x: Int[Array, " A"]  # where the agent stands, and its cell ahead
    y: Int[Array, " A"]
    ahead_x: Int[Array, " A"]
    ahead_y: Int[Array, " A"]
    station: Int[Array, " A"]  # Material of the station that it puts ahead, 0 none; uint8

    def near(self, settings: Settings, block: Int[Array, "A 9"], station: int) -> Bool[Array, " A"]:
        """Whether an agent with a lower id puts such a station near."""
        del settings
        is_near = jnp.zeros_like(self.x, jnp.bool_)
        ids = along(np.arange(self.x.shape[0]), self.x)
        for other in range(self.x.shape[0] - 1):
            dx, dy = self.ahead_x[other] - self.x, self.ahead_y[other] - self.y
            touches = (jnp.abs(dx) <= 1) & (jnp.abs(dy) <= 1) & (ids > other)
            is_near = is_near | (touches & (self.station[other] == station))
        return is_near & (self.x > 0) & (self.y > 0)


@struct.dataclass
class SeenAfter:
    """Stations that a large team puts up in this step: those of the new map, by the winner of their cell."""

    new: UInt8[Array, "A 9"]  # bytes of the cells of `neighbourhood` after the step's updates
    claims: Array  # [A, 9], their entries of the map of claims

    def near(self, settings: Settings, block: Int[Array, "A 9"], station: int) -> Bool[Array, " A"]:
        """Whether an actor before the agent has put such a station near."""
        turn = along(settings.cow_slots[0] + np.arange(settings.agents), block)
        in_time = winning_turn(settings, self.claims) < turn
        return ((block < settings.cells) & (material_of(self.new) == station) & in_time).any(1)


def crafted(
    action: Int[Array, " A"], near: dict[int, Bool[Array, " A"]], inventory: Int[Array, "A 16"]
) -> Int[Array, " A"]:
    """8.3: the `Action` with which each agent makes something in this step, 0 for nothing; int8."""
    done = jnp.zeros_like(action, jnp.int8)
    for make, (recipe, station) in CRAFTS.items():
        can = (action == make) & near[station]
        for item, amount in recipe:
            can = can & (inventory[:, item] >= amount)
        done = jnp.where(can, jnp.int8(make), done)
    return done


CHANGE_BITS, CHANGE_BIAS, PER_WORD = 5, 8, 6
"""Layout of `change`: items from SAPLING on, six to a word, five bits each, with 8 added."""


def change(
    made: Int[Array, " A"], placed: Bool[Array, " A"], what: Int[Array, " A"], units: dict[int, Int[Array, " A"]]
) -> tuple[UInt32[Array, " A"], UInt32[Array, " A"]]:
    """What making, placing and collecting change in the inventories but for the vitals, packed, for each agent."""
    bias = sum(CHANGE_BIAS << (CHANGE_BITS * k) for k in range(PER_WORD))
    words = [jnp.full_like(made, bias, jnp.int32) for _ in range(2)]

    def add(number: Array, item: int, amount: int) -> None:
        word, place = divmod(item - Item.SAPLING, PER_WORD)
        words[word] = words[word] + number.astype(jnp.int32) * (amount * (1 << (CHANGE_BITS * place)))

    for make, (recipe, _) in CRAFTS.items():
        add(made == make, MADE[make], 1)
        for item, amount in recipe:
            add(made == make, item, -amount)
    for number, (item, amount) in enumerate(RECIPES):
        add(placed & (what == number), item, -amount)
    for kind, number in units.items():
        item, amount, _ = YIELDS[kind]
        if item >= Item.SAPLING:
            add(number, item, amount)
    return words[0].astype(jnp.uint32), words[1].astype(jnp.uint32)


def inventory_after(
    inventory: Int[Array, "A 16"],
    updates: Bool[Array, " A"],
    words: tuple[UInt32[Array, " A"], UInt32[Array, " A"]],
    levels: UInt32[Array, " A"],
) -> Int[Array, "A 16"]:
    """V3: inventories (int8) after changes from `change` and new levels from `packed_levels`, within the caps.

    Players that do not update keep what they have, cut to what int8 holds.
    """
    number = np.arange(len(Item)) - Item.SAPLING
    is_vital, cap = along(number < 0, inventory, 1), along(CAPS.astype(inventory.dtype), inventory, 1)
    shift = along(np.where(number >= 0, number % PER_WORD * CHANGE_BITS, 0).astype(np.uint32), inventory, 1)
    place = along(np.where(number < 0, 8 * np.arange(len(Item)), 0).astype(np.uint32), inventory, 1)
    word = jnp.where(along(number < PER_WORD, inventory, 1), words[0][:, None], words[1][:, None])
    amount = ((word >> shift) & ((1 << CHANGE_BITS) - 1)).astype(inventory.dtype) - CHANGE_BIAS
    level = ((levels[:, None] >> place) & 255).astype(inventory.dtype)
    new = jnp.where(is_vital, level, jnp.clip(inventory + amount, 0, cap))
    return jnp.clip(jnp.where(updates[:, None], new, inventory), -127, 127).astype(jnp.int8)


def risen(
    made: Int[Array, " A"], placed: Bool[Array, " A"], what: Int[Array, " A"], wakes: Bool[Array, " A"]
) -> UInt32[Array, " A"]:
    """Achievements, as bits, that rise by one each: for making, placing (number `what` of `PLACES`), waking up."""
    bits = jnp.where(wakes, jnp.uint32(1 << Achievement.WAKE_UP), jnp.uint32(0))
    for make, goal in CRAFT_ACHIEVEMENTS.items():
        bits = bits | jnp.where(made == make, jnp.uint32(1 << goal), jnp.uint32(0))
    for number, goal in enumerate(PLACE_ACHIEVEMENTS):
        bits = bits | jnp.where(placed & (what == number), jnp.uint32(1 << goal), jnp.uint32(0))
    return bits


def sleep_first(
    action: Int[Array, " A"], updates: Bool[Array, " A"], sleeping: Bool[Array, " A"], energy: Int[Array, " A"]
) -> tuple[Int[Array, " A"], Bool[Array, " A"], Bool[Array, " A"]]:
    """P2, P3: what each does after all, who sleeps, who has woken up.

    Who sleeps goes on sleeping until its energy is full, then wakes up and does what it was asked to.
    """
    is_tired = energy < CAPS[Item.ENERGY]
    asleep = sleeping & updates
    wakes = asleep & ~is_tired
    action = jnp.where(asleep & is_tired, jnp.int8(Action.SLEEP), action)
    return action, (sleeping & ~wakes) | (updates & is_tired & (action == Action.SLEEP)), wakes


def live(
    settings: Settings,
    asleep: Bool[Array, " A"],
    levels: Int[Array, "A 4"],
    counters: Int[Array, "A 4"],
    burns: Bool[Array, " A"],
    units: dict[int, Int[Array, " A"]],
) -> tuple[tuple[Array, ...], Int[Array, "A 4"]]:
    """V1 and V2: hunger, thirst, fatigue, recovery: new levels of the vitals ([A] each), new counters (int16).

    `levels`: before the step's gains, which are `units` of water and cows; `burns`: moved in lava.
    """
    kind = levels.dtype
    hunger, thirst, fatigue, recover = (counters[:, k] for k in range(4))
    health, food, drink, energy = (levels[:, k] for k in range(4))
    health = jnp.where(burns, 0, health)
    food = food + units[Thing.COW].astype(kind) * YIELDS[Thing.COW][1]
    drink = drink + units[Material.WATER].astype(kind) * YIELDS[Material.WATER][1]
    if settings.vitals:
        pace = jnp.where(asleep, jnp.int16(1), jnp.int16(2))
        hunger, thirst = hunger + pace, thirst + pace
        starves, dries = hunger > HUNGER, thirst > THIRST
        hunger, food = jnp.where(starves, 0, hunger), food - starves.astype(kind)
        thirst, drink = jnp.where(dries, 0, thirst), drink - dries.astype(kind)
        fatigue = jnp.where(asleep, jnp.minimum(fatigue - 2, 0), fatigue + 2)
        rested, tired = fatigue < FATIGUE_LOW, fatigue > FATIGUE_HIGH
        fatigue = jnp.where(rested | tired, 0, fatigue)
        energy = energy + rested.astype(kind) - tired.astype(kind)
    well = (food > 0) & (drink > 0) & ((energy > 0) | asleep)
    gain, loss = (jnp.where(asleep, jnp.int16(a), jnp.int16(b)) for a, b in ((4, 2), (-1, -2)))
    recover = recover + jnp.where(well, gain, loss)
    heals, fades = recover > RECOVER_HIGH, recover < RECOVER_LOW
    recover = jnp.where(heals | fades, 0, recover)
    health = jnp.where(fades, jnp.maximum(0, health - 1), health + heals.astype(kind))
    return (health, food, drink, energy), jnp.stack([hunger, thirst, fatigue, recover], axis=1)


def packed_levels(levels: tuple[Array, ...]) -> UInt32[Array, " A"]:
    """V3: levels within their caps, one byte each."""
    packed = jnp.zeros_like(levels[0], jnp.uint32)
    for item, level in enumerate(levels):
        packed = packed | (jnp.clip(level, 0, int(CAPS[item])).astype(jnp.uint32) << (8 * item))
    return packed
