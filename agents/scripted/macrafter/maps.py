"""The world as sets of cells: where walkers can go, what it takes, and where they want to stand.

Axes: A agents (walkers), W x H cells, N words of a set (`waves`), G goals.
"""

from enum import IntEnum

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.agents.scripted.macrafter import waves
from jaxcoop.envs.macrafter.config import Settings, requirements
from jaxcoop.envs.macrafter.types import MATERIAL_MASK, PLANT_BIT, Material, State, Thing


class Goal(IntEnum):
    """What an agent walks to."""

    NONE = 0
    WATER = 1
    COW = 2
    TREE = 3
    STONE = 4
    TABLE = 5
    FURNACE = 6
    INTERIOR = 7  # away from the first column and row, where nothing can be made (E1)
    TARGET = 8  # the cell where the squad meets


@struct.dataclass
class Maps:
    """Sets of cells."""

    ground: UInt32[Array, " N"]  # grass, path, sand without plants
    tree: UInt32[Array, " N"]
    stone: UInt32[Array, " N"]
    water: UInt32[Array, " N"]
    cow: UInt32[Array, " N"]
    agent: UInt32[Array, " N"]  # where agents stand
    still: UInt32[Array, " N"]  # where agents stand that have not moved for some steps
    own: UInt32[Array, "A N"]  # each agent's cell
    stand: UInt32[Array, "G N"]  # where agents stand to reach the goals up to INTERIOR

    def beside(self, goal: Goal, width: int, x: Int[Array, " A"], y: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Whether each agent stands where the goal is reached."""
        return at(jnp.broadcast_to(self.stand[goal], self.own.shape), width, x, y)

    def beside_set(self, cells: Array, width: int, x: Int[Array, " A"], y: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Whether each agent stands beside a cell of the set."""
        return at(jnp.broadcast_to(waves.grown(cells, width), self.own.shape), width, x, y)


def maps_of(settings: Settings, state: State, is_still: Bool[Array, " A"]) -> Maps:
    """The sets of a state."""
    width, height = settings.width, settings.height
    size = waves.num_words(width, height)
    planes = [waves.pack(state.material & jnp.uint8(bit) != 0) for bit in (1, 2, 4, 8, PLANT_BIT)]
    x, y = jnp.where(state.removed, -1, state.x).astype(jnp.int32), state.y.astype(jnp.int32)

    def made_of(code: int) -> Array:
        words = jnp.asarray(waves.inside(width, height))
        for number in range(MATERIAL_MASK.bit_length()):
            words = words & (planes[number] if code >> number & 1 else ~planes[number])
        return words

    tree, stone, water = (made_of(kind) for kind in (Material.TREE, Material.STONE, Material.WATER))
    cow = waves.union(width, size, state.cow_x.astype(jnp.int32), state.cow_y.astype(jnp.int32))
    beside = [waves.grown(cells, width) for cells in (water, cow, tree, stone)]
    around = [waves.block(made_of(kind), width) for kind in (Material.TABLE, Material.FURNACE)]
    interior = waves.pack((jnp.arange(width) > 0)[:, None] & (jnp.arange(height) > 0)[None, :])
    return Maps(
        ground=(made_of(Material.GRASS) | made_of(Material.PATH) | made_of(Material.SAND)) & ~planes[-1],
        tree=tree,
        stone=stone,
        water=water,
        cow=cow,
        agent=waves.union(width, size, x, y),
        still=waves.union(width, size, jnp.where(is_still, x, -1), y),
        own=waves.single(width, size, x, y),
        stand=jnp.stack([jnp.zeros_like(tree), *beside, *(cells & interior for cells in around), interior]),
    )


def terrain_of(settings: Settings, maps: Maps, digs: Bool[Array, " A"], bridges: Bool[Array, " A"]) -> waves.Terrain:
    """What it takes each agent to enter each cell: 2 for what is collected first, 4 for what is bridged or waited for.

    Agents that stand still are walked around.
    """
    needs = requirements(settings.tasks)
    others, still = maps.agent & ~maps.own, maps.still & ~maps.own  # [A, N]
    in_the_way = jnp.zeros_like(maps.ground)
    if needs[Material.TREE].agents == 1 and not needs[Material.TREE].tools:
        in_the_way = in_the_way | maps.tree
    if needs[Thing.COW].agents == 1 and not needs[Thing.COW].tools:
        in_the_way = in_the_way | (maps.cow & maps.ground)
    ones = jnp.uint32(0xFFFFFFFF)
    dug = jnp.where(digs, ones, jnp.uint32(0))[:, None] & maps.stone
    bridged = jnp.where(bridges, ones, jnp.uint32(0))[:, None] & maps.water
    return waves.Terrain(
        one=maps.ground & ~maps.cow & ~others,
        two=in_the_way & ~others | dug,
        four=bridged | (maps.ground & others & ~still),
    )


def target_room(settings: Settings, cell: Int[Array, " A"]) -> UInt32[Array, "A N"]:
    """The cells within reach of a target, without the target; nothing for cell -1."""
    width, height = settings.width, settings.height
    size = waves.num_words(width, height)
    x, y = jnp.where(cell >= 0, cell // height, -1), jnp.where(cell >= 0, cell % height, 0)
    seed = waves.single(width, size, x, y)
    room = seed
    for _ in range(settings.distance):
        room = room | waves.grown(room, width)
    return room & ~seed & jnp.asarray(waves.inside(width, height))


def at(sets: Array, width: int, x: Int[Array, " A"], y: Int[Array, " A"]) -> Bool[Array, " A"]:
    """Whether each agent's cell (x, y) is in its set."""
    return waves.contains(sets, width, x[:, None], y[:, None])[:, 0]
