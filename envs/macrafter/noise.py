"""Simplex noise of the world generator (3.1), summed by one small matrix product for each tile of the map.

Axes: W x H cells of the world, T tiles of 8 x 8 cells (x outer), L = 64 cells of a tile (x outer),
Q lattice points that touch the world, P lattice points that touch a tile.

A noise value is a sum over lattice points of `weight * gradient`.  Cells have fixed places, so the weights depend on
the size of the world alone and are made once, on the host; a permutation only says which of 24 gradients belongs to
which lattice point.  Weights are rounded to a multiple of a power of two that is small enough for a field to be exact
to 1e-5 and large enough for every partial sum to be exact in float32: a world does not depend on the order of
summation, hence neither on the size of a batch nor on the device.
"""

import dataclasses
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

TILE = 8
LATTICE = 256  # lattice coordinates are taken modulo this
GRADIENTS = 24
LONG, SHORT = 11, 4  # components of a gradient
NORM = 103.0
REACH = 2.0  # squared distance at which a lattice point has no weight any more
MAX_CELLS = 2**15
POINT_SHIFTS, POINT_OFFSET = (40, 20, 0), 2**18
"""Three lattice coordinates in one number; the offset, a multiple of 256, makes them positive."""


class Octave(NamedTuple):
    """One call of the noise function: `weight * N(x * scale_x, y * scale_y, z)` of cell (x, y)."""

    scale_x: float
    scale_y: float
    z: int
    weight: float = 1.0


def octave(size: float, z: int, weight: float = 1.0) -> Octave:
    """3.1: one term of `S(x, y, z, size)`."""
    return Octave(1 / size, 1 / size, z, weight)


FIELDS: dict[str, tuple[Octave, ...]] = {
    "start": (octave(3, 8),),
    "water": (octave(15, 3), octave(5, 3, 0.15)),  # raw: not divided by the sum of the weights
    "mountain": (octave(15, 0, 1 / 1.3), octave(5, 0, 0.3 / 1.3)),
    "caves": (octave(7, 6),),
    "horizontal": (Octave(2 / 3, 1 / 15, 7),),
    "vertical": (Octave(1 / 15, 2 / 3, 7),),
    "coal": (octave(8, 1),),
    "iron": (octave(6, 2),),
    "lava": (octave(5, 6),),
    "sand": (octave(9, 4),),
    "trees": (octave(7, 5),),
}
"""3.2: the noise terms, by what they decide.  Those of `start`, `water` and `mountain` are parts of their formulas."""


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """What is fixed for a size of the world and a choice of fields."""

    fields: tuple[str, ...]
    width: int
    height: int
    lattice: UInt8[np.ndarray, "3 Q"]  # coordinates of the lattice points, modulo 256
    rows: tuple[np.ndarray, ...]  # of each field int32[T, 3*P]: entry of the [3*Q] gradient components
    weights: tuple[np.ndarray, ...]  # of each field float32[T, 3*P, L]: whole numbers, in units of `unit`
    unit: float

    @property
    def tiles(self) -> tuple[int, int]:
        """Number of tiles along x and y; those at the far edges may stick out of the world."""
        return -(-self.width // TILE), -(-self.height // TILE)


def permutation_of(seed: int) -> UInt8[np.ndarray, " 256"]:
    """3.1: the permutation that the original makes from an integer seed (64-bit arithmetic that wraps around)."""
    bits = 2**64

    def advance(state: int) -> int:
        return (state * 6364136223846793005 + 1442695040888963407) % bits

    state = seed % bits
    for _ in range(3):
        state = advance(state)
    source, perm = list(range(LATTICE)), np.zeros(LATTICE, np.uint8)
    for i in reversed(range(LATTICE)):
        state = advance(state)
        signed = state - bits if state >= bits // 2 else state
        wrapped = (signed + 31 + bits // 2) % bits - bits // 2
        r = wrapped % (i + 1)
        perm[i] = source[r]
        source[r] = source[i]
    return perm


def random_permutation(key: Array) -> UInt8[Array, " 256"]:
    """A uniformly random permutation: the ranks of 256 random numbers."""
    ids = jnp.arange(LATTICE, dtype=jnp.uint32)
    # the place in the low byte makes the numbers distinct; 24 random bits remain, equal ones are rare
    numbers = (jax.random.bits(key, (LATTICE,), jnp.uint32) & ~jnp.uint32(0xFF)) | ids
    return (numbers[:, None] > numbers[None, :]).sum(1, dtype=jnp.uint8)


def contributions(
    x: Float[np.ndarray, " M"], y: Float[np.ndarray, " M"], z: float
) -> tuple[Int[np.ndarray, " K"], Int[np.ndarray, "K 3"], Float[np.ndarray, "K 3"]]:
    """3.1: (number of the place, lattice point, what its gradient is multiplied with), for all points with weight."""
    places = np.stack([x, y, np.full_like(x, z)], 1)  # [M, 3]
    base = np.floor(places - places.sum(1, keepdims=True) / 6).astype(np.int64)
    offsets = np.stack(np.meshgrid(*[np.arange(-1, 3)] * 3, indexing="ij"), -1).reshape(64, 3)
    points = base[:, None] + offsets  # [M, 64, 3]
    delta = places[:, None] - points - points.sum(2, keepdims=True) / 3
    t = REACH - (delta**2).sum(2)
    near = np.nonzero(t > 1e-12)
    return near[0], points[near], t[near][:, None] ** 4 * delta[near] / NORM


def _field_entries(octaves: tuple[Octave, ...], width: int, height: int) -> Iterator[tuple[np.ndarray, ...]]:
    """(tile, cell of the tile, number of the lattice point, weights) of one field, in parts."""
    x, y = (axis.ravel() for axis in np.indices((width, height)))
    tile, cell = (x // TILE) * (-(-height // TILE)) + y // TILE, (x % TILE) * TILE + y % TILE
    for scale_x, scale_y, z, weight in octaves:
        place, points, weights = contributions(x * scale_x, y * scale_y, z)
        numbers = ((points + POINT_OFFSET) << np.array(POINT_SHIFTS)).sum(1)
        yield tile[place], cell[place], numbers, weight * weights


@lru_cache(maxsize=8)
def make_plan(width: int, height: int, fields: tuple[str, ...] = tuple(FIELDS)) -> Plan:
    """The plan for worlds of `width` x `height` cells, 12 MB for all fields at 64 x 64.

    Raises `ValueError` for a size below 1 or worlds of more than 32,768 cells.
    """
    for name, size in (("width", width), ("height", height)):
        if size < 1:
            raise ValueError(f"{name} {size}: must be 1 or more")
    if width * height > MAX_CELLS:
        raise ValueError(f"world of {width} x {height} cells: must have {MAX_CELLS:,} cells or fewer")
    entries = [
        tuple(np.concatenate(part) for part in zip(*_field_entries(FIELDS[name], width, height))) for name in fields
    ]
    lattice = np.unique(np.concatenate([points for _, _, points, _ in entries]))
    rows, exact = zip(*(_field_tables(field, lattice, -(-width // TILE) * -(-height // TILE)) for field in entries))
    # the largest sum that any gradients can make: each has one long component
    largest = 0.0
    for table in exact:
        size = np.abs(table)
        largest = max(largest, (SHORT * size.sum((1, 2)) + (LONG - SHORT) * size.max(1).sum(1)).max())
    unit = 2.0 ** -np.floor(np.log2(2**24 / (largest + 1e-3)))
    return Plan(
        fields=fields,
        width=width,
        height=height,
        lattice=np.stack([(lattice >> shift) % LATTICE for shift in POINT_SHIFTS]).astype(np.uint8),
        rows=rows,
        weights=tuple(np.rint(w / unit).astype(np.float32).reshape(len(w), -1, TILE * TILE) for w in exact),
        unit=float(unit),
    )


def _field_tables(
    entries: tuple[np.ndarray, ...], lattice: Int[np.ndarray, " Q"], tiles: int
) -> tuple[Int[np.ndarray, "T 3*P"], Float[np.ndarray, "T 3 P L"]]:
    """Rows and exact weights of one field: its entries by the tile and the lattice point that they share."""
    tile, cell, points, weights = entries
    point = np.searchsorted(lattice, points)
    pairs, pair = np.unique(tile * len(lattice) + point, return_inverse=True)
    pair_tile, pair_point = np.divmod(pairs, len(lattice))
    slot = np.arange(len(pairs)) - np.searchsorted(pair_tile, pair_tile)  # of the point in its tile
    table = np.zeros((tiles, 1, slot.max() + 1), np.int32)
    table[pair_tile, 0, slot] = pair_point
    rows = table + len(lattice) * np.arange(3, dtype=np.int32)[:, None]  # [T, 3, P]
    shape = (*rows.shape, TILE * TILE)
    places = np.ravel_multi_index((tile[:, None], np.arange(3), slot[pair][:, None], cell[:, None]), shape)
    exact = np.bincount(places.ravel(), weights.ravel(), minlength=math.prod(shape)).reshape(shape)
    return rows.reshape(tiles, -1), exact


def gradient_components(number: UInt8[Array, " Q"]) -> Float[Array, " 3*Q"]:
    """All x components, then y, then z, of the gradients with these numbers (0 to 23)."""
    axis, signs = number % 3, number // 3
    positive = ((signs & 1) != 0, (signs & 2) == 0, (signs & 4) == 0)
    parts = []
    for j, is_positive in enumerate(positive):
        size = jnp.where(axis == j, jnp.float32(LONG), jnp.float32(SHORT))
        parts.append(jnp.where(is_positive, size, -size))
    return jnp.concatenate(parts)


def evaluate(plan: Plan, perm: UInt8[Array, " 256"]) -> dict[str, Float[Array, "T L"]]:
    """Values of the fields, tile by tile; see `from_tiles`."""
    a, b, c = (jnp.asarray(axis) for axis in plan.lattice)

    def look_up(i: Array) -> Array:
        return perm.at[i].get(mode="promise_in_bounds")

    number = look_up(look_up(look_up(a) + b) + c) % GRADIENTS  # uint8 wraps around like the lattice
    # computed once and not again for each of the reads below
    components = jax.lax.optimization_barrier(gradient_components(number))
    values = {}
    # field by field, as the tables of one field stay in the cache
    for name, rows, weights in zip(plan.fields, plan.rows, plan.weights):
        gradients = components.at[rows].get(mode="promise_in_bounds")  # [T, 3*P]
        sums = jax.lax.dot_general(
            gradients,
            jnp.asarray(weights),
            (((1,), (1,)), ((0,), (0,))),
            precision=jax.lax.Precision.HIGHEST,  # anything less is not exact on accelerators
        )
        values[name] = sums * jnp.float32(plan.unit)
    return values


def to_tiles(plan: Plan, cells: np.ndarray) -> np.ndarray:
    """[T, L] from a constant [W, H]; zeros where tiles stick out."""
    columns, rows = plan.tiles
    padded = np.zeros((columns * TILE, rows * TILE), cells.dtype)
    padded[: plan.width, : plan.height] = cells
    return padded.reshape(columns, TILE, rows, TILE).swapaxes(1, 2).reshape(-1, TILE * TILE)


def from_tiles(plan: Plan, tiles: Array) -> Array:
    """[..., W, H] from [..., T, L]."""
    columns, rows = plan.tiles
    cells = tiles.reshape(*tiles.shape[:-2], columns, rows, TILE, TILE).swapaxes(-2, -3)
    return cells.reshape(*tiles.shape[:-2], columns * TILE, rows * TILE)[..., : plan.width, : plan.height]
