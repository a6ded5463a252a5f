"""World generation of MA-Crafter: one rule, one test."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.macrafter import generate, noise
from jaxcoop.envs.macrafter.types import Material

GRASS, WATER = int(Material.GRASS), int(Material.WATER)


def keys_of(count, seed=0):
    return jax.random.split(jax.random.key(seed, impl="threefry2x32"), count)


@cache
def worlds(mode="default"):
    return jax.device_get(jax.jit(jax.vmap(lambda key: generate.world(key, 64, 64, mode)))(keys_of(64)))


def noise_by_definition(perm, x, y, z):
    """3.1, straight from the text: all 64 lattice points around one place."""
    gradients = []
    for signs in range(8):
        sign = np.array([1 if signs & 1 else -1, -1 if signs & 2 else 1, -1 if signs & 4 else 1])
        gradients += [sign * np.roll([11, 4, 4], axis) for axis in range(3)]
    s = (x + y + z) * (-1 / 6)
    total = 0.0
    for offset in np.ndindex(4, 4, 4):
        a, b, c = np.floor([x + s, y + s, z + s]).astype(int) + offset - 1
        q = (a + b + c) / 3
        delta = np.array([x - a - q, y - b - q, z - c - q])
        t = 2 - (delta**2).sum()
        if t > 0:
            number = perm[(perm[(perm[a & 255] + b) & 255] + c) & 255] % 24
            total += t**4 * gradients[number] @ delta
    return total / 103


# --- noise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 12), (40, 9)])
def test_fields_equal_the_sum_over_64_lattice_points(width, height):
    perm = noise.permutation_of(1234)
    plan = noise.make_plan(width, height)
    values = jax.jit(partial(noise.evaluate, plan))(jnp.asarray(perm))
    perm = perm.astype(int)
    for name, octaves in noise.FIELDS.items():
        got = np.asarray(noise.from_tiles(plan, values[name]))
        for x, y in {(0, 0), (width - 1, height - 1), (width // 2, height // 3), (width // 3, height // 2)}:
            want = sum(o.weight * noise_by_definition(perm, x * o.scale_x, y * o.scale_y, o.z) for o in octaves)
            assert abs(got[x, y] - want) < 1e-5, (name, x, y)


def test_every_partial_sum_of_the_noise_is_exact():
    plan = noise.make_plan(64, 64)
    for weights in plan.weights:
        assert (weights == np.rint(weights)).all()
        size = np.abs(weights).reshape(len(weights), 3, -1, weights.shape[-1])
        largest = 4 * size.sum((1, 2)) + 7 * size.max(1).sum(1)
        assert largest.max() <= 2**24


def test_a_permutation_holds_every_number_once():
    perms = jax.jit(jax.vmap(noise.random_permutation))(keys_of(200))
    assert perms.dtype == jnp.uint8
    assert (np.sort(perms, axis=1) == np.arange(256)).all()


def test_every_number_is_as_likely_as_any_other_at_a_place_of_the_permutation():
    perms = np.asarray(jax.jit(jax.vmap(noise.random_permutation))(keys_of(8192)))
    for place in (0, 100, 255):
        counts = np.bincount(perms[:, place], minlength=256)
        chi2 = ((counts - 32) ** 2 / 32).sum()
        assert abs(chi2 - 255) < 5 * np.sqrt(2 * 255)


@pytest.mark.parametrize(("width", "height"), [(8, 8), (17, 5), (1, 64)])
def test_the_layout_of_tiles_is_undone(width, height):
    plan = noise.make_plan(width, height, ("trees",))
    cells = np.arange(width * height).reshape(width, height)
    assert (noise.from_tiles(plan, noise.to_tiles(plan, cells)) == cells).all()


@pytest.mark.parametrize(
    ("size", "value"), [((0, 8), "height 0|width 0"), ((8, -1), "height -1"), ((256, 256), "32,768")]
)
def test_a_world_of_a_bad_size_is_refused(size, value):
    with pytest.raises(ValueError, match=value):
        generate.world(jax.random.key(0), *size)


# --- materials ---------------------------------------------------------------------------------------------------

FLAT = {"start": 0, "water": 0, "mountain": 0, "caves": 0, "horizontal": 0, "vertical": 0}
FLAT |= {"coal": 0, "iron": 0, "lava": 0, "sand": 0, "trees": 0}
ROCK = {"mountain": 0.2}
HIGH = {"mountain": 0.31}
EVERY_ORE = {"coal": 0.1, "iron": 0.5, "lava": 0.4}
CASES = [
    ("start is grass whatever else", {"start": 0.51, **HIGH, "water": 1}, {}, "GRASS"),
    ("caves are paths", {**HIGH, "caves": 0.16, **EVERY_ORE}, {}, "PATH"),
    ("caves need height", {**ROCK, "caves": 0.16}, {}, "STONE"),
    ("horizontal tunnels are paths", {**ROCK, "horizontal": 0.41, **EVERY_ORE}, {}, "PATH"),
    ("vertical tunnels are paths", {**ROCK, "vertical": 0.41, **EVERY_ORE}, {}, "PATH"),
    ("coal comes before iron", {**HIGH, **EVERY_ORE}, {"coal": 0.86, "iron": 0.9, "diamond": 0.999}, "COAL"),
    ("iron comes before diamonds", {**HIGH, **EVERY_ORE}, {"coal": 0.85, "iron": 0.76, "diamond": 0.999}, "IRON"),
    ("diamonds come before lava", {**HIGH, **EVERY_ORE}, {"iron": 0.75, "diamond": 0.995}, "DIAMOND"),
    ("diamonds need some height", {"mountain": 0.17}, {"diamond": 0.999}, "STONE"),
    ("lava is what is left high up", {**HIGH, **EVERY_ORE}, {"diamond": 0.99}, "LAVA"),
    ("lava needs height", {**ROCK, "lava": 0.4}, {}, "STONE"),
    ("rock is stone, also in water", {**ROCK, "water": 0.5}, {}, "STONE"),
    ("a shore is sand", {"water": 0.34}, {}, "SAND"),
    ("a shore without sand is water", {"water": 0.34, "sand": -0.3}, {}, "WATER"),
    ("a dry shore without sand is a meadow", {"water": 0.26, "sand": -0.3}, {}, "GRASS"),
    ("deep water is water", {"water": 0.36, "trees": 0.5}, {"tree": 0.9}, "WATER"),
    ("trees grow in meadows", {"trees": 0.1}, {"tree": 0.81}, "TREE"),
    ("few trees grow", {"trees": 0.1}, {"tree": 0.8}, "GRASS"),
    ("trees need their noise", {"trees": 0.0}, {"tree": 0.9}, "GRASS"),
]


@pytest.mark.parametrize(("fields", "uniforms", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_first_test_that_holds_decides(fields, uniforms, want):
    terrain = generate.Terrain(**{name: jnp.float32(value) for name, value in (FLAT | fields).items()})
    names = ("coal", "iron", "diamond", "tree", "cow")
    u = generate.Uniforms(**{name: jnp.float32(uniforms.get(name, 0)) for name in names})
    assert Material(int(generate.decide(terrain, u))).name == want


def shares(**fields):
    """The share of each material, and of cows, among cells of one terrain with evenly spread random numbers."""
    u = (jnp.arange(2**20, dtype=jnp.float32) + 0.5) / 2**20
    terrain = generate.Terrain(**{name: jnp.full(u.shape, v, jnp.float32) for name, v in (FLAT | fields).items()})
    uniforms = generate.share_uniform(terrain, u)
    material = generate.decide(terrain, uniforms)
    cows = generate.decide_cows(material, jnp.full(u.shape, 9.0), uniforms.cow)
    return np.bincount(material, minlength=13) / len(u), float(cows.mean())


@pytest.mark.parametrize("coal", [False, True])
@pytest.mark.parametrize("iron", [False, True])
def test_one_number_for_all_tests_of_rock_gives_each_ore_its_share(coal, iron):
    got, _ = shares(**ROCK, coal=0.1 * coal, iron=0.5 * iron)
    no_coal, no_iron = 0.85 if coal else 1.0, 0.75 if iron else 1.0
    assert got[Material.COAL] == pytest.approx(1 - no_coal, abs=3e-6)
    assert got[Material.IRON] == pytest.approx(no_coal * (1 - no_iron), abs=3e-6)
    assert got[Material.DIAMOND] == pytest.approx(no_coal * no_iron * 0.006, abs=3e-6)


@pytest.mark.parametrize(("fields", "trees"), [({"trees": 0.1}, 0.2), ({}, 0), ({"trees": 0.1, "start": 0.6}, 0)])
def test_one_number_for_all_tests_of_meadows_gives_trees_and_cows_their_share(fields, trees):
    got, cows = shares(**fields)
    assert got[Material.TREE] == pytest.approx(trees, abs=3e-6)
    assert cows == pytest.approx((1 - trees) * 0.015, abs=3e-6)


def test_a_world_is_the_same_bit_by_bit_in_every_batch():
    material, cows = worlds()
    few = jax.jit(jax.vmap(lambda key: generate.world(key, 64, 64)))(keys_of(64)[:3])
    np.testing.assert_array_equal(few[0], material[:3])
    np.testing.assert_array_equal(few[1], cows[:3])
    alone = jax.jit(partial(generate.world, width=64, height=64))(keys_of(64)[5])
    np.testing.assert_array_equal(alone[0], material[5])
    np.testing.assert_array_equal(alone[1], cows[5])


@pytest.mark.parametrize("mode", generate.MODES)
def test_a_world_has_the_same_types_with_64_bit_numbers(mode):
    with jax.enable_x64(True):
        shapes = jax.eval_shape(lambda key: generate.world(key, 9, 14, mode), jax.random.key(0))
        places = jax.eval_shape(lambda k, m, c: generate.spawn(k, m, c, 3), jax.random.key(0), *shapes)
    assert [(s.shape, s.dtype, s.weak_type) for s in shapes] == [
        ((9, 14), jnp.uint8, False),
        ((9, 14), jnp.bool_, False),
    ]
    assert [(s.shape, s.dtype, s.weak_type) for s in places] == 2 * [((3,), jnp.int16, False)]


def test_generated_worlds_hold_natural_materials_only():
    material, _ = worlds()
    assert set(np.unique(material)) <= {m.value for m in Material} - {Material.NONE, Material.TABLE, Material.FURNACE}


def test_cows_of_the_start_stand_on_grass_away_from_the_centre():
    material, cows = worlds()
    assert cows.any()
    assert (material[cows] == GRASS).all()
    _, x, y = np.nonzero(cows)
    assert (np.hypot(x - 32, y - 32) > 3).all()
    distance = generate.centre_distance(64, 64)
    possible = generate.decide_cows(jnp.full((64, 64), GRASS, jnp.uint8), distance, jnp.ones((64, 64)))
    assert (np.asarray(possible) == (distance > 3)).all()


def test_grassland_is_grass_with_trees_and_no_cows():
    material, cows = worlds("grassland")
    assert set(np.unique(material)) == {GRASS, Material.TREE}
    assert not cows.any()
    assert (material[:, 31:34, 31:34] == GRASS).all()  # 3.5: the start is kept free


def test_an_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="grassland"):
        generate.world(jax.random.key(0), 8, 8, "island")


# --- cows into slots, places of agents ---------------------------------------------------------------------------


def test_cows_get_slots_in_order_of_their_cells_and_those_too_many_are_left_out():
    cows = np.zeros((5, 4), bool)
    cells = [(0, 3), (1, 0), (1, 2), (4, 1)]
    cows[tuple(np.transpose(cells))] = True
    x, y = generate.cow_slots(jnp.asarray(cows), 6)
    assert [*zip(x.tolist(), y.tolist())] == [*cells, (-1, -1), (-1, -1)]
    x, y = generate.cow_slots(jnp.asarray(cows), 3)
    assert [*zip(x.tolist(), y.tolist())] == cells[:3]


def test_a_rank_that_is_negative_finds_no_cell():
    x, y = generate.cells_of_ranks(jnp.ones((2, 2), bool), jnp.array([-1, 3, 4], jnp.int32))
    assert (x.tolist(), y.tolist()) == ([-1, 1, -1], [-1, 1, -1])


def test_agents_start_on_distinct_free_grass_cells():
    material, cows = worlds()
    place = jax.jit(jax.vmap(lambda k, m, c: jnp.stack(generate.spawn(k, m, c, 40), -1)))
    places = np.asarray(place(keys_of(64, 1), material, cows))
    for cells, cow, own in zip(material, cows, places):
        assert (cells[own[:, 0], own[:, 1]] == GRASS).all()
        assert not cow[own[:, 0], own[:, 1]].any()
        assert len(np.unique(own, axis=0)) == 40


def test_agents_without_a_cell_are_the_last_ones_and_are_nowhere():
    material = np.full((4, 4), WATER, np.uint8)
    material[1, 1:] = GRASS
    occupied = np.zeros((4, 4), bool)
    occupied[1, 2] = True
    x, y = generate.spawn(jax.random.key(0), jnp.asarray(material), jnp.asarray(occupied), 5)
    assert sorted(zip(x[:2].tolist(), y[:2].tolist())) == [(1, 1), (1, 3)]
    assert (x[2:] == -1).all() and (y[2:] == -1).all()


def test_every_pair_of_cells_is_as_likely_as_any_other():
    material = jnp.full((2, 3), GRASS, jnp.uint8)
    place = jax.jit(jax.vmap(lambda k: jnp.stack(generate.spawn(k, material, material == WATER, 3), -1)))
    places = np.asarray(place(keys_of(12000))).astype(int)  # [N, 3, 2]
    cell = places[..., 0] * 3 + places[..., 1]
    counts = np.unique(cell @ [36, 6, 1], return_counts=True)[1]
    assert len(counts) == 6 * 5 * 4
    assert abs(((counts - 100) ** 2 / 100).sum() - 119) < 5 * np.sqrt(2 * 119)


def test_random_numbers_below_a_limit_are_the_high_half_of_a_product():
    words = np.array([0, 1, 65535, 65536, 2**31, 2**32 - 1, 0x89ABCDEF], np.uint32)
    for limit in (1, 2, 7, 4095, 65535, 65536):
        got = generate.random_below(jnp.asarray(words), jnp.int32(limit))
        want = words.astype(np.uint64) * limit >> 32
        assert (np.abs(np.asarray(got) - want.astype(int)) == 0).all(), limit
