"""World generation (3): materials, cows and where the agents start.

Axes: A agents, W x H cells, C cow slots, R ranks; `...` are the cells of the world in any layout.

`world` and `spawn` make a random world; `decide` is the same decision list as a function of noise and uniforms.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxcoop.core.registry import unknown
from jaxcoop.envs.macrafter import noise
from jaxcoop.envs.macrafter.types import Material, material_of

MODES = ("default", "grassland")
"""3.2 and 3.5."""

GRASSLAND_FIELDS = ("start", "trees")

COAL_ABOVE, IRON_ABOVE, DIAMOND_ABOVE, TREE_ABOVE, COW_ABOVE = 0.85, 0.75, 0.994, 0.8, 0.985
"""3.2 and 3.3: the uniforms above which there is one."""

COW_BIT = np.uint8(0x80)

COW_DISTANCE = 3
"""3.3: no cows on cells that are no farther from the centre than this."""


@struct.dataclass
class Terrain:
    """3.2: the noise that a cell's material depends on."""

    start: Float[Array, "..."]  # 0 to 1: closeness to the centre, blurred; float32 as all of them
    water: Float[Array, "..."]
    mountain: Float[Array, "..."]
    caves: Float[Array, "..."]
    horizontal: Float[Array, "..."]  # tunnels
    vertical: Float[Array, "..."]
    coal: Float[Array, "..."]
    iron: Float[Array, "..."]
    lava: Float[Array, "..."]
    sand: Float[Array, "..."]
    trees: Float[Array, "..."]


@struct.dataclass
class Uniforms:
    """Random numbers of the tests, U[0, 1), float32; a cell uses those of the tests that it comes to."""

    coal: Float[Array, "..."]
    iron: Float[Array, "..."]
    diamond: Float[Array, "..."]
    tree: Float[Array, "..."]
    cow: Float[Array, "..."]


def centre_distance(width: int, height: int) -> Float[np.ndarray, "W H"]:
    """Euclidean distance of each cell to the centre (W // 2, H // 2); float32."""
    x, y = np.indices((width, height))
    return np.hypot(x - width // 2, y - height // 2).astype(np.float32)


def start_area(value: Float[Array, "..."], distance: Float[Array, "..."]) -> Float[Array, "..."]:
    """3.2: the field `start` from its noise."""
    return jax.nn.sigmoid(4.0 - distance + 2.0 * value)


def terrain(values: dict[str, Float[Array, "..."]], distance: Float[Array, "..."]) -> Terrain:
    """3.2: the terrain from the values of all of `noise.FIELDS`."""
    named = dict(values)
    start = start_area(named.pop("start"), distance)
    water = named.pop("water") + 0.1 - 2.0 * start
    mountain = named.pop("mountain") - 4.0 * start - 0.3 * water
    return Terrain(start=start, water=water, mountain=mountain, **named)


def share_uniform(t: Terrain, u: Float[Array, "..."]) -> Uniforms:
    """The numbers of all tests from one for each cell.

    What a test that failed leaves of a uniform number is uniform again, below the test's threshold; divided by it, it
    serves the next test.  No cell comes to the tests of rock and to those of meadows both.
    """
    iron = jnp.where(t.coal > 0, u / COAL_ABOVE, u)
    return Uniforms(
        coal=u,
        iron=iron,
        diamond=jnp.where(t.iron > 0.4, iron / IRON_ABOVE, iron),
        tree=u,
        cow=jnp.where((t.start <= 0.5) & (t.trees > 0), u / TREE_ABOVE, u),
    )


def decide(t: Terrain, u: Uniforms) -> UInt8[Array, "..."]:
    """3.2: the `Material` of each cell; the first test that holds decides."""
    tunnel = (t.horizontal > 0.4) | (t.vertical > 0.4)
    tests = (
        ((t.caves > 0.15) & (t.mountain > 0.3), Material.PATH),
        (tunnel, Material.PATH),
        ((t.coal > 0) & (u.coal > COAL_ABOVE), Material.COAL),
        ((t.iron > 0.4) & (u.iron > IRON_ABOVE), Material.IRON),
        ((t.mountain > 0.18) & (u.diamond > DIAMOND_ABOVE), Material.DIAMOND),
        ((t.mountain > 0.3) & (t.lava > 0.35), Material.LAVA),
    )
    rock = _first(tests, jnp.uint8(Material.STONE))
    shore = (t.water > 0.25) & (t.water <= 0.35) & (t.sand > -0.2)
    outer = (
        (t.start > 0.5, Material.GRASS),
        (t.mountain > 0.15, rock),
        (shore, Material.SAND),
        (t.water > 0.3, Material.WATER),
    )
    return _first(outer, decide_meadow(t.trees, u.tree))


def decide_meadow(trees: Float[Array, "..."], u: Float[Array, "..."]) -> UInt8[Array, "..."]:
    """3.2, last test: trees in grass."""
    return jnp.where((trees > 0) & (u > TREE_ABOVE), jnp.uint8(Material.TREE), jnp.uint8(Material.GRASS))


def _first(tests: tuple, otherwise: Array) -> UInt8[Array, "..."]:
    """The value beside the first test that holds."""
    for test, value in reversed(tests):
        otherwise = jnp.where(test, jnp.asarray(value, jnp.uint8), otherwise)
    return otherwise


def decide_cows(
    material: UInt8[Array, "..."], distance: Float[Array, "..."], u: Float[Array, "..."]
) -> Bool[Array, "..."]:
    """3.3: where the cows of the start stand."""
    return (material == Material.GRASS) & (distance > COW_DISTANCE) & (u > COW_ABOVE)


def check_mode(mode: str) -> None:
    """Raise `ValueError` unless there is such a kind of world."""
    if mode not in MODES:
        raise unknown("mode", mode, MODES)


def world(key: Array, width: int, height: int, mode: str = "default") -> tuple[Array, Array]:
    """Materials uint8[W, H] and where a cow stands bool[W, H], of a random world.

    Equal bit by bit whatever the batch.  Raises `ValueError` for an unknown mode, and as `noise.make_plan`.
    """
    check_mode(mode)
    key_noise, key_cells = jax.random.split(key)
    plan = noise.make_plan(width, height, GRASSLAND_FIELDS if mode == "grassland" else tuple(noise.FIELDS))
    # everything is decided in the layout of the tiles, as only the results need the one of the map
    distance = jnp.asarray(noise.to_tiles(plan, centre_distance(width, height)))
    values = noise.evaluate(plan, noise.random_permutation(key_noise))
    u = jax.random.uniform(key_cells, distance.shape, jnp.float32)
    if mode == "grassland":
        is_start = start_area(values["start"], distance) > 0.5
        material = jnp.where(is_start, jnp.uint8(Material.GRASS), decide_meadow(values["trees"], u))
        return noise.from_tiles(plan, material), jnp.zeros((width, height), jnp.bool_)
    land = terrain(values, distance)
    uniforms = share_uniform(land, u)
    material = decide(land, uniforms)
    cows = decide_cows(material, distance, uniforms.cow)
    # brought into the layout of the map together, or else all would be decided once for each
    both = noise.from_tiles(plan, jnp.where(cows, material | COW_BIT, material))
    return both & ~COW_BIT, (both & COW_BIT) != 0


def cells_of_ranks(mask: Bool[Array, "W H"], ranks: Int[Array, " R"]) -> tuple[Int[Array, " R"], Int[Array, " R"]]:
    """(x, y) of the marked cells with these ranks (0, 1, ... in x-major order), int16; (-1, -1) where there is none."""
    up_to = jnp.cumsum(mask.sum(1, dtype=jnp.int32))  # [W] marked cells in this and earlier columns
    column = (up_to <= ranks[:, None]).sum(1, dtype=jnp.int32)  # [R]
    found = (ranks >= 0) & (ranks < up_to[-1])
    column = jnp.where(found, column, 0)
    cells = mask[column]  # [R, H]
    missing = ranks - (up_to[column] - cells.sum(1, dtype=jnp.int32))  # rank within the column
    row = (jnp.cumsum(cells, 1, dtype=jnp.int32) <= missing[:, None]).sum(1, dtype=jnp.int32)
    none = jnp.int16(-1)
    return jnp.where(found, column.astype(jnp.int16), none), jnp.where(found, row.astype(jnp.int16), none)


def cow_slots(cows: Bool[Array, "W H"], slots: int) -> tuple[Int[Array, " C"], Int[Array, " C"]]:
    """3.4: (x, y) of the first `slots` cows in x-major order, int16; free slots are (-1, -1)."""
    return cells_of_ranks(cows, jnp.arange(slots, dtype=jnp.int32))


def random_below(word: UInt32[Array, "..."], limit: Int[Array, "..."]) -> Int[Array, "..."]:
    """A number from 0 to limit - 1 (limit from 1 to 65,536), int32: the high half of a product with 32 random bits."""
    limit = limit.astype(jnp.uint32)
    low = ((word & jnp.uint32(0xFFFF)) * limit) >> 16
    return (((word >> 16) * limit + low) >> 16).astype(jnp.int32)


def draw_ranks(words: UInt32[Array, " A"], total: Int[Array, ""]) -> Int[Array, " A"]:
    """Distinct numbers below `total` in random order, int32; `total` itself for agents that are left without.

    The first A entries of a shuffled list 0, 1, ..., of which only the entries that have moved are kept.
    """
    agents = words.shape[0]
    ids = jnp.arange(agents, dtype=jnp.int32)

    def draw(moved: tuple[Array, Array], inputs: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        at, value = moved  # [A] place i has got the entry `value[i]` of place `i`, when it swapped with place `at[i]`
        i, word = inputs
        left = total - i
        j = i + random_below(word, jnp.maximum(left, 1))

        def entry(place: Array) -> Array:
            last = jnp.where(at == place, ids, -1).max()
            return jnp.where(last < 0, place, value[jnp.maximum(last, 0)])

        drawn = entry(j)
        at, value = jnp.where(ids == i, j, at), jnp.where(ids == i, entry(i), value)
        return (at, value), jnp.where(left > 0, drawn, total)

    return jax.lax.scan(draw, (jnp.full_like(ids, -1), ids), (ids, words))[1]


def spawn(
    key: Array, material: UInt8[Array, "W H"], occupied: Bool[Array, "W H"], agents: int
) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
    """3.4: (x, y) of distinct uniformly random grass cells without an object, int16.

    With fewer such cells than agents the last agents get (-1, -1).
    """
    free = (material_of(material) == Material.GRASS) & ~occupied
    words = jax.random.bits(key, (agents,), jnp.uint32)
    return cells_of_ranks(free, draw_ranks(words, free.sum(dtype=jnp.int32)))
