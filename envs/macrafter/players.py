"""6 and 8: what a player does in its own update: sleeping, crafting, vitals.

Axes: A agents.  Moves and placements, where players get into each other's way, are decided in `claims`.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8, UInt32

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
    dx, dy = (jnp.asarray([d // 3 - 1 if axis else d % 3 - 1 for d in range(9)], jnp.int16) for axis in (1, 0))
    nx, ny = x[:, None] + dx, y[:, None] + dy
    inside = (nx < settings.width) & (ny < settings.height) & ((x > 0) & (y > 0))[:, None]
    return jnp.where(inside, nx * settings.height + ny, jnp.int16(settings.cells))


def near_stations(
    settings: Settings,
    before: UInt8[Array, " W*H"],
    after: UInt8[Array, " W*H"],
    claims: Array,
    x: Int[Array, " A"],
    y: Int[Array, " A"],
) -> dict[int, Bool[Array, " A"]]:
    """8.3: whether each station is near when the agent's turn comes.

    `before`, `after`: the map before and after this step's updates; a station that is only in the latter was put there
    by the winner of its cell, and counts for the agents after it.
    """
    block = neighbourhood(settings, x, y)
    inside = block < settings.cells
    at = jnp.where(inside, block, jnp.int16(0))
    old, new = material_of(before[at]), material_of(after[at])
    turn = settings.cow_slots[0] + jnp.arange(settings.agents, dtype=jnp.int32)
    in_time = winning_turn(settings, claims[at]) < turn[:, None]
    return {
        station: (inside & ((old == station) | ((new == station) & in_time))).any(-1)
        for station in (Material.TABLE, Material.FURNACE)
    }


def crafted(
    action: Int[Array, " A"], near: dict[int, Bool[Array, " A"]], inventory: Int[Array, "A 16"]
) -> Int[Array, " A"]:
    """8.3: the `Action` with which each agent makes something in this step, 0 for nothing; int32."""
    done = jnp.zeros(action.shape, jnp.int32)
    for make, (recipe, station) in CRAFTS.items():
        can = (action == make) & near[station]
        for item, amount in recipe:
            can = can & (inventory[:, item] >= amount)
        done = jnp.where(can, jnp.int32(make), done)
    return done


CHANGE_BITS, CHANGE_BIAS, PER_WORD = 5, 8, 6
"""Layout of `change`: items from SAPLING on, six to a word, five bits each, with 8 added."""


def change(
    made: Int[Array, " A"], placed: Bool[Array, " A"], what: Int[Array, " A"], units: dict[int, Int[Array, " A"]]
) -> tuple[UInt32[Array, " A"], UInt32[Array, " A"]]:
    """What making, placing and collecting change in the inventories but for the vitals, packed, for each agent."""
    bias = sum(CHANGE_BIAS << (CHANGE_BITS * k) for k in range(PER_WORD))
    words = [jnp.full(made.shape, bias, jnp.int32) for _ in range(2)]

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
    entry = np.arange(len(Item)) - Item.SAPLING
    shift = np.where(entry >= 0, entry % PER_WORD * CHANGE_BITS, 0).astype(np.uint32)
    word = jnp.where(entry < PER_WORD, words[0][:, None], words[1][:, None])
    amount = ((word >> shift) & ((1 << CHANGE_BITS) - 1)).astype(jnp.int32) - CHANGE_BIAS
    level = ((levels[:, None] >> np.where(entry < 0, 8 * np.arange(len(Item)), 0).astype(np.uint32)) & 255).astype(
        jnp.int32
    )
    new = jnp.where(entry < 0, level, jnp.clip(inventory + amount, 0, jnp.asarray(CAPS)))
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
    action = jnp.where(asleep & is_tired, Action.SLEEP, action)
    return action, (sleeping & ~wakes) | (updates & is_tired & (action == Action.SLEEP)), wakes


def live(
    settings: Settings,
    asleep: Bool[Array, " A"],
    levels: Int[Array, "A 4"],
    counters: Int[Array, "A 4"],
    burns: Bool[Array, " A"],
    units: dict[int, Int[Array, " A"]],
) -> tuple[tuple[Array, ...], Int[Array, "A 4"]]:
    """V1 and V2: hunger, thirst, fatigue, recovery: new levels of the vitals (int32[A] each), new counters (int16).

    `levels`: before the step's gains, which are `units` of water and cows; `burns`: moved in lava.
    """
    hunger, thirst, fatigue, recover = (counters[:, k].astype(jnp.int32) for k in range(4))
    health, food, drink, energy = (levels[:, k] for k in range(4))
    health = jnp.where(burns, 0, health)
    food = food + units[Thing.COW] * YIELDS[Thing.COW][1]
    drink = drink + units[Material.WATER] * YIELDS[Material.WATER][1]
    if settings.vitals:
        pace = jnp.where(asleep, 1, 2)
        hunger, thirst = hunger + pace, thirst + pace
        starves, dries = hunger > HUNGER, thirst > THIRST
        hunger, food = jnp.where(starves, 0, hunger), food - starves.astype(jnp.int32)
        thirst, drink = jnp.where(dries, 0, thirst), drink - dries.astype(jnp.int32)
        fatigue = jnp.where(asleep, jnp.minimum(fatigue - 2, 0), fatigue + 2)
        rested, tired = fatigue < FATIGUE_LOW, fatigue > FATIGUE_HIGH
        fatigue = jnp.where(rested | tired, 0, fatigue)
        energy = energy + rested.astype(jnp.int32) - tired.astype(jnp.int32)
    well = (food > 0) & (drink > 0) & ((energy > 0) | asleep)
    recover = recover + jnp.where(well, jnp.where(asleep, 4, 2), jnp.where(asleep, -1, -2))
    heals, fades = recover > RECOVER_HIGH, recover < RECOVER_LOW
    recover = jnp.where(heals | fades, 0, recover)
    health = jnp.where(fades, jnp.maximum(0, health - 1), health + heals.astype(jnp.int32))
    new = jnp.stack([hunger, thirst, fatigue, recover], axis=1).astype(jnp.int16)
    return (health, food, drink, energy), new


def packed_levels(levels: tuple[Array, ...]) -> UInt32[Array, " A"]:
    """V3: levels within their caps, one byte each."""
    packed = jnp.zeros(levels[0].shape, jnp.uint32)
    for item, level in enumerate(levels):
        packed = packed | (jnp.clip(level, 0, int(CAPS[item])).astype(jnp.uint32) << (8 * item))
    return packed
