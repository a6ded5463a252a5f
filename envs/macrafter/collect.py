"""7: cooperative collection.

Axes: A agents, R = 2D(D+1) cells in reach, M = A * R cells in reach of anybody, in the order in which they are seen.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int, UInt8, UInt16, UInt32

from jaxcoop.cooperation import first_with, tally
from jaxcoop.core.batching import along, batch_alone
from jaxcoop.envs.macrafter.claims import is_cow
from jaxcoop.envs.macrafter.config import TOOLS, Settings, half_points, offsets, requirements
from jaxcoop.envs.macrafter.types import (
    MATERIAL_MASK,
    RESOURCE_SHIFT,
    RESOURCES,
    Achievement,
    Item,
    Material,
    Reason,
    Thing,
    material_of,
)

YIELDS = {
    Material.TREE: (Item.WOOD, 1, Achievement.COLLECT_WOOD),
    Material.STONE: (Item.STONE, 1, Achievement.COLLECT_STONE),
    Material.COAL: (Item.COAL, 1, Achievement.COLLECT_COAL),
    Material.IRON: (Item.IRON, 1, Achievement.COLLECT_IRON),
    Material.DIAMOND: (Item.DIAMOND, 1, Achievement.COLLECT_DIAMOND),
    Material.WATER: (Item.DRINK, 1, Achievement.COLLECT_DRINK),
    Thing.COW: (Item.FOOD, 6, Achievement.EAT_COW),
}
"""2: item, amount and achievement of each collectable code."""

PAIRWISE = 32
"""Up to this many cells in reach are compared with each other, which vectorises; more are counted on the map."""

BAG_ITEMS = slice(Item.SAPLING, None)
"""Items that count for the bag: one unit of weight each."""


NOTE_BITS = 15
FEW_BIT = 1 << (NOTE_BITS - 1)
"""Layout of `notes`."""

UNIT_BITS = 4
"""Bits that count the cells of one kind that an agent collects in a step; R = 12 at D = 2 fits."""


@struct.dataclass
class Collection:
    """What the collectors of a step did."""

    cell: Int[Array, "A R"]  # cells in reach, W*H outside the world; int16
    code: Int[Array, "A R"]  # collectable code of the cell for a collector, 0: nothing to collect; uint8
    is_collected: Bool[Array, "A R"]  # enough able collectors
    received: Bool[Array, "A R"]  # the agent took part and got its share
    occupant: Array  # [A, R] entry of the occupancy
    gains: UInt32[Array, " A"]  # number of cells received of each kind of `YIELDS`, `UNIT_BITS` each
    blocked: Int[Array, " A"]  # block note; int8, -1 none
    need: Int[Array, " A"]
    have: Int[Array, " A"]

    def units(self) -> dict[int, Int[Array, " A"]]:
        """Number of cells received of each kind; int16."""
        mask = jnp.uint32((1 << UNIT_BITS) - 1)
        return {
            kind: ((self.gains >> (UNIT_BITS * number)) & mask).astype(jnp.int16) for number, kind in enumerate(YIELDS)
        }

    def achievements(self) -> Int[Array, "A 22"]:
        """7: rises of the counters; int16."""
        shift, mask = np.zeros(len(Achievement), np.uint32), np.zeros(len(Achievement), np.uint32)
        for number, (_, _, goal) in enumerate(YIELDS.values()):
            shift[goal], mask[goal] = UNIT_BITS * number, (1 << UNIT_BITS) - 1
        gains = self.gains[:, None]
        return ((gains >> along(shift, gains, 1)) & along(mask, gains, 1)).astype(jnp.int16)

    def half_points(self, settings: Settings) -> Int[Array, " A"]:
        """13: sum of v * amount, in halves of a point; int32."""
        points = half_points(settings.tasks)
        halves = jnp.zeros(self.gains.shape, jnp.int32)
        for kind, number in self.units().items():
            if kind < len(points):
                halves = halves + number.astype(jnp.int32) * int(points[kind])
        return halves

    def risen(self) -> UInt32[Array, " A"]:
        """Achievements that rose, as bits."""
        bits = jnp.zeros(self.gains.shape, jnp.uint32)
        for kind, number in self.units().items():
            bits = bits | jnp.where(number > 0, jnp.uint32(1 << YIELDS[kind][2]), jnp.uint32(0))
        return bits

    def took(self) -> UInt16[Array, " A"]:
        """Kinds that were received, as bits (`types.Last`)."""
        bits = jnp.zeros(self.gains.shape, jnp.uint16)
        for kind, number in self.units().items():
            bits = bits | jnp.where(number > 0, jnp.uint16(1 << kind), jnp.uint16(0))
        return bits


def has_tools(settings: Settings, inventory: Int[Array, "A 16"]) -> dict[int, Bool[Array, " A"]]:
    """2: who holds what each collectable code requires; tools are never used up."""
    held = {name: inventory[:, item] > 0 for name, item in TOOLS.items()}
    able = {}
    for code, need in requirements(settings.tasks).items():
        ok = jnp.full_like(inventory[:, 0], not (need.any_tool and need.tools), jnp.bool_)
        for tool in need.tools:
            ok = (ok | held[tool]) if need.any_tool else (ok & held[tool])
        able[code] = ok
    return able


def reach(settings: Settings, x: Int[Array, " A"], y: Int[Array, " A"]) -> Int[Array, "A R"]:
    """Cells within Manhattan distance D of each agent but its own, W*H outside the world; int16."""
    x, y = x[:, None], y[:, None]
    dx, dy = (along(step, x, 1) for step in offsets(settings.distance).T)
    nx, ny = x + dx, y + dy
    inside = (nx >= 0) & (nx < settings.width) & (ny >= 0) & (ny < settings.height)
    return jnp.where(inside, nx * settings.height + ny, jnp.int16(settings.cells))


def collect(
    settings: Settings,
    cell: Int[Array, "A R"],
    ground: UInt8[Array, "A R"],
    before: UInt8[Array, "A R"] | None,
    occupant: Array,
    inventory: Int[Array, "A 16"],
    collector: Bool[Array, " A"],
) -> tuple[Collection, Int[Array, "A R"], UInt8[Array, "A R"]]:
    """All collectors act together: a cell is collected where p able ones or more have it in reach.

    `cell`: from `reach`; `ground`: their bytes, `before`: those at the start of the step if they may differ;
    `occupant`: their entries of the occupancy.  Returns what was done, the cells that change (W*H: none) and their
    bytes.  With a bag limit an able collector that has no room left for a unit counts for p but receives nothing (our
    own reading).
    """
    seen = batch_alone(partial(_seen, settings))(cell, ground, occupant, inventory, collector)
    wanted, able, required = seen
    count, order = counted(settings, wanted, able)
    return batch_alone(partial(_collected, settings))(
        cell, ground, before, occupant, inventory, able, required, count, order, collector
    )


def _codes(settings: Settings, cell: Array, ground: Array, occupant: Array, collector: Array) -> UInt8[Array, "A R"]:
    """What each collector can collect, 0: nothing."""
    material = material_of(ground)
    code = jnp.where(is_cow(settings, occupant), jnp.uint8(Thing.COW), jnp.uint8(0))
    is_kind = (material >= Material.COAL) & (material <= Material.DIAMOND)
    for kind in (Material.TREE, Material.STONE, Material.WATER):
        is_kind = is_kind | (material == kind)
    code = jnp.where(is_kind, material, code)
    return jnp.where(collector[:, None] & (cell < settings.cells), code, jnp.uint8(0))


def _seen(
    settings: Settings, cell: Array, ground: Array, occupant: Array, inventory: Array, collector: Array
) -> tuple[Int[Array, "A R"], Bool[Array, "A R"], Int[Array, "A R"]]:
    """Cells with something to collect (-1: none), whether the collector is able to, and p; int16."""
    needs = requirements(settings.tasks)
    code = _codes(settings, cell, ground, occupant, collector)
    able, required = jnp.zeros_like(code, jnp.bool_), jnp.zeros_like(code, jnp.int16)
    for kind, ok in has_tools(settings, inventory).items():
        able = able | ((code == kind) & ok[:, None])
        required = jnp.where(code == kind, jnp.int16(needs[kind].agents), required)
    return jnp.where(code > 0, cell, jnp.int16(-1)), able, required


def _collected(
    settings: Settings,
    cell: Array,
    ground: Array,
    before: Array | None,
    occupant: Array,
    inventory: Array,
    able: Array,
    required: Array,
    count: Array,
    order: Array,
    collector: Array,
) -> tuple[Collection, Array, Array]:
    """Results of `collect`, from what is known of each cell in reach."""
    code = _codes(settings, cell, ground, occupant, collector)
    is_collected = (code > 0) & (count >= required)
    received = is_collected & able
    if settings.bag:
        received = with_room(settings, received, code, inventory)
    # code -> UNIT_BITS * its number among the kinds, as a look-up in two words
    low, high = (sum(k << (4 * (c & 7)) for k, c in enumerate(YIELDS) if c // 8 == half) for half in (0, 1))
    word = jnp.where(code < 8, jnp.uint32(low), jnp.uint32(high))
    place = ((word >> (4 * (code & 7).astype(jnp.uint32))) & 15) * UNIT_BITS
    gains = (received.astype(jnp.uint32) << place).sum(1, dtype=jnp.uint32)
    note = notes(order, code, able, is_collected, required, count)
    done = Collection(
        cell=cell,
        code=code,
        is_collected=is_collected,
        received=received,
        occupant=occupant,
        gains=gains,
        blocked=jnp.where(
            note < 0,
            jnp.int8(-1),
            jnp.where(note & FEW_BIT != 0, jnp.int8(Reason.TOO_FEW_AGENTS), jnp.int8(Reason.MISSING_TOOL)),
        ),
        need=jnp.where(note < 0, 0, (note >> 7) & 127).astype(jnp.int8),
        have=jnp.where(note < 0, 0, note & 127).astype(jnp.int8),
    )
    return done, *consumed(settings, done, ground if before is None else before)


def counted(
    settings: Settings, seen: Int[Array, "A R"], able: Bool[Array, "A R"]
) -> tuple[Int[Array, "A R"], Int[Array, "A R"]]:
    """For each entry: able agents at its cell, and the first entry with that cell (0 to M-1); int16.

    `seen`: cell, -1 for nothing to collect; such entries have order -1.
    """
    size = seen.size
    if size <= PAIRWISE:
        return batch_alone(_compared)(seen, able)
    cells = seen.reshape(-1).astype(jnp.int32)
    count = tally(jnp.where(able.reshape(-1), cells, -1), cells, settings.cells)
    order = first_with(cells, settings.cells)
    return count.astype(jnp.int16).reshape(seen.shape), order.astype(jnp.int16).reshape(seen.shape)


def _compared(seen: Int[Array, "A R"], able: Bool[Array, "A R"]) -> tuple[Int[Array, "A R"], Int[Array, "A R"]]:
    """`counted` by comparing all pairs."""
    flat, ok = (x.reshape(-1, *x.shape[2:]) for x in (seen, able))
    size = flat.shape[0]
    count, order = jnp.zeros_like(flat), jnp.full_like(flat, size)
    for entry in reversed(range(size)):
        same = flat == flat[entry]
        count = count + (same & ok[entry]).astype(jnp.int16)
        order = jnp.where(same, jnp.int16(entry), order)
    order = jnp.where(flat < 0, jnp.int16(-1), order)
    return count.reshape(seen.shape), order.reshape(seen.shape)


def notes(
    order: Int[Array, "A R"],
    code: Array,
    able: Bool[Array, "A R"],
    is_collected: Bool[Array, "A R"],
    required: Int[Array, "A R"],
    count: Int[Array, "A R"],
) -> Int[Array, " A"]:
    """Block note of each collector: of all cells that gave it one, that of the cell which was seen first last.

    -1: none; else, from the low bits up: able agents (7 bits, 127 for more too) and p (7 bits) of a note about too few
    agents, whether it is one (`FEW_BIT`), and above them the order of the cell.
    """
    few = ~is_collected
    numbers = FEW_BIT | (jnp.minimum(required, 127).astype(jnp.int32) << 7) | jnp.minimum(count, 127).astype(jnp.int32)
    entry = (order.astype(jnp.int32) << NOTE_BITS) | jnp.where(few, numbers, 0)
    return jnp.where((code > 0) & (few | ~able), entry, -1).max(1)


def with_room(
    settings: Settings, received: Bool[Array, "A R"], code: Array, inventory: Int[Array, "A 16"]
) -> Bool[Array, "A R"]:
    """Units for which there is room in the bag, cell by cell; food and drink weigh nothing."""
    load = inventory[:, BAG_ITEMS].sum(1, dtype=jnp.int32)
    kept = []
    for column in range(received.shape[1]):
        is_heavy = (code[:, column] != Material.WATER) & (code[:, column] != Thing.COW)
        gets = received[:, column] & (~is_heavy | (load < settings.bag))
        load = load + (gets & is_heavy).astype(jnp.int32)
        kept.append(gets)
    return jnp.stack(kept, axis=1)


def consumed(
    settings: Settings, done: Collection, before: UInt8[Array, "A R"]
) -> tuple[Int[Array, "A R"], UInt8[Array, "A R"]]:
    """2, 14: cells whose resource is gone (W*H: none) and their bytes, which keep in mind what it was.

    `before`: bytes at the start of the step.  A stone that was placed in this very step was never a task, so that it
    leaves the memory of the cell alone.
    """
    memory = before >> RESOURCE_SHIFT
    for number, kind in enumerate(RESOURCES):
        memory = jnp.where((before & MATERIAL_MASK) == kind, jnp.uint8(number + 1), memory)
    ground = jnp.where(done.code == Material.TREE, jnp.uint8(Material.GRASS), jnp.uint8(Material.PATH))
    is_gone = done.is_collected & (done.code != Material.WATER) & (done.code != Thing.COW)
    return jnp.where(is_gone, done.cell, jnp.int16(settings.cells)), ground | (memory << RESOURCE_SHIFT)
