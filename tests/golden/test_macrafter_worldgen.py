"""Generated worlds with their noise, and the statistics of many of them."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core import bits
from jaxcoop.envs.macrafter import balance, generate, noise
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.types import Material, material_of

NOISE_OF = {
    "caves": "n_cave",
    "horizontal": "n_htun",
    "vertical": "n_vtun",
    "coal": "n_coal",
    "iron": "n_iron",
    "lava": "n_lava",
    "sand": "n_sand",
    "trees": "n_tree",
}
TOLERANCE = 2e-4
"""The reference leaves out some tiny terms of its noise."""


def recorded_worlds(path):
    """(file name, arrays), one case for all worlds of a file."""
    data = np.load(path)
    yield "worlds", {name: data[name] for name in data.files}


@cache
def terrain_of(width, height):
    """Compiled: permutations [N, 256] to the terrain, arrays [N, W, H]."""
    plan = noise.make_plan(width, height)
    distance = generate.centre_distance(width, height)

    def one_world(perm):
        values = noise.evaluate(plan, perm)
        return generate.terrain({name: noise.from_tiles(plan, value) for name, value in values.items()}, distance)

    return jax.jit(jax.vmap(one_world))


def uniforms_of(case):
    """The recorded uniforms; no test holds for those that were not drawn."""
    names = ("coal", "iron", "diamond", "tree", "cow")
    return generate.Uniforms(**{name: jnp.asarray(np.nan_to_num(case[f"u_{name}"], nan=0.0)) for name in names})


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_permutations_are_made_from_seeds_like_those_of_the_reference(case):
    for seed, perm in zip(case["simplex_seed"], case["perm"]):
        np.testing.assert_array_equal(noise.permutation_of(int(seed)), perm)


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_gradients_have_the_numbers_of_the_reference(case):
    got = noise.gradient_components(jnp.arange(noise.GRADIENTS, dtype=jnp.uint8)).reshape(3, -1).T
    np.testing.assert_array_equal(got, case["gradients"])


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_noise_of_worlds_equals_the_reference_within_its_tolerance(case):
    got = terrain_of(*case["mat"].shape[1:])(jnp.asarray(case["perm"]))
    for name, recorded in NOISE_OF.items():
        np.testing.assert_allclose(getattr(got, name), case[recorded], rtol=0, atol=TOLERANCE, err_msg=name)
    # 3.2: start has slope 1/4 at most and twice the noise in it; it reaches the others times 2 and times 4
    np.testing.assert_allclose(got.start, case["start"], rtol=0, atol=TOLERANCE / 2, err_msg="start")
    np.testing.assert_allclose(got.water, case["water"], rtol=0, atol=2.15 * TOLERANCE, err_msg="water")
    np.testing.assert_allclose(got.mountain, case["mountain"], rtol=0, atol=3.7 * TOLERANCE, err_msg="mountain")


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_recorded_noise_and_uniforms_give_the_recorded_materials(case):
    terrain = generate.Terrain(
        start=case["start"],
        water=case["water"],
        mountain=case["mountain"],
        **{name: case[recorded] for name, recorded in NOISE_OF.items()},
    )
    differs = np.asarray(generate.decide(terrain, uniforms_of(case))) != case["mat"]
    # the sign of a noise of 0 was a rounding error, and two of the tests ask for it
    by_rounding = (np.abs(case["n_coal"]) < 1e-9) | (np.abs(case["n_tree"]) < 1e-9)
    assert not (differs & ~by_rounding).any(), np.argwhere(differs & ~by_rounding)


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_worlds_from_recorded_seeds_differ_in_four_cells_at_most(case):
    terrain = terrain_of(*case["mat"].shape[1:])(jnp.asarray(case["perm"]))
    differs = np.asarray(generate.decide(terrain, uniforms_of(case))) != case["mat"]
    assert differs.sum((1, 2)).max() <= 4, np.argwhere(differs)


@pytest.mark.recorded("macrafter", "worldgen*.npz", recorded_worlds)
def test_cows_of_worlds_stand_where_they_are_recorded(case):
    distance = generate.centre_distance(*case["mat"].shape[1:])
    cows = generate.decide_cows(jnp.asarray(case["mat"]), distance, uniforms_of(case).cow)
    np.testing.assert_array_equal(cows, case["cow"])


def statistics(path):
    """One case for the raw numbers of many worlds."""
    data = np.load(path)
    yield "worlds", {name: data[name] for name in data.files}


WORLDS = 1000
AGENTS = 3


@cache
def many_worlds(side):
    """Materials [N, W, H], cows and places of the agents [N, A, 2] of random worlds."""

    def one_world(key):
        key_world, key_spawn = jax.random.split(key)
        material, cows = generate.world(key_world, side, side)
        return material, cows, jnp.stack(generate.spawn(key_spawn, material, cows, AGENTS), -1)

    return jax.device_get(
        jax.jit(jax.vmap(one_world))(jax.random.split(jax.random.key(0, impl="threefry2x32"), WORLDS))
    )


def side_of(case):
    """Worlds are squares."""
    return round(float(case["mat_counts"][0].sum()) ** 0.5)


def assert_same_mean(got, want, label):
    """Within four standard errors of the difference."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    error = np.sqrt(got.var(ddof=1) / len(got) + want.var(ddof=1) / len(want))
    assert abs(got.mean() - want.mean()) <= 4 * error, f"{label}: {got.mean()} want {want.mean()} +- {error}"


@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_materials_of_random_worlds_are_as_frequent_as_in_the_reference(case):
    material = many_worlds(side_of(case))[0]
    for kind in Material:
        got = (material == kind).sum((1, 2))
        assert_same_mean(got, case["mat_counts"][:, kind], kind.name)
        assert_same_mean(got == 0, case["mat_counts"][:, kind] == 0, f"worlds without {kind.name}")


@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_random_worlds_start_with_as_many_cows_as_the_reference(case):
    assert_same_mean(many_worlds(side_of(case))[1].sum((1, 2)), case["cows_initial"], "cows")


def distances(places, side):
    """Mean Manhattan distances of each world's agents to the centre and to each other."""
    places = places.astype(np.int64)
    first, second = np.triu_indices(places.shape[1], 1)
    pairs = np.abs(places[:, first] - places[:, second]).sum(2)
    return np.abs(places - side // 2).sum(2).mean(1), pairs.mean(1)


@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_agents_start_as_far_apart_as_in_the_reference(case):
    side = side_of(case)
    got, want = distances(many_worlds(side)[2], side), distances(case["spawn"], side)
    for i, label in enumerate(("to the centre", "of pairs")):
        assert_same_mean(got[i], want[i], label)


@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_the_first_agent_can_walk_as_far_as_in_the_reference(case):
    from scipy.ndimage import label

    material, _, places = many_worlds(side_of(case))
    sizes = []
    for cells, (x, y) in zip(material[:300], places[:300, 0]):
        parts, _ = label(np.isin(cells, (Material.GRASS, Material.PATH, Material.SAND)))
        sizes.append((parts == parts[x, y]).sum())
    assert_same_mean(sizes, case["component"], "cells")


EPISODES = 64
LAST_STEP = 600
RECORD_EVERY = 50
SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def count_moves(state, nxt):
    """How many cows had 0 to 4 free neighbours before the step [5], and how many of these moved [5]."""
    kinds = jnp.pad(material_of(state.material), 1)  # a margin that nobody can walk on
    taken = jnp.zeros(kinds.shape, bool)
    for x, y in ((state.cow_x, state.cow_y), (state.x, state.y)):
        taken = taken.at[jnp.where(x >= 0, x + 1, len(kinds)), y + 1].set(True, mode="drop")
    walkable = (kinds == Material.GRASS) | (kinds == Material.PATH) | (kinds == Material.SAND)
    free = sum((walkable & ~taken)[state.cow_x + 1 + dx, state.cow_y + 1 + dy].astype(jnp.int32) for dx, dy in SIDES)
    stays_alive = (state.cow_x >= 0) & (state.cow_id == nxt.cow_id)
    moved = (state.cow_x != nxt.cow_x) | (state.cow_y != nxt.cow_y)
    counts = jnp.arange(5)[:, None] == free
    return (counts & stays_alive).sum(1, dtype=jnp.int32), (counts & stays_alive & moved).sum(1, dtype=jnp.int32)


def count_changes(before, nxt):
    """Chunks that may get a cow, those that got one, those that may lose one, that lost one, and any other change."""
    width, height = nxt.material.shape
    x, y = jnp.indices((width, height))
    chunk = balance.chunk_of(x, y, height)
    chunks = jnp.arange(balance.num_chunks(width, height))

    def herds(state):
        is_in = balance.chunk_of(state.cow_x, state.cow_y, height) == chunks[:, None]
        return (is_in & (state.cow_x >= 0)).sum(1, dtype=jnp.int32)

    is_grass = material_of(nxt.material) == Material.GRASS
    grass = jnp.zeros(len(chunks), jnp.int32).at[chunk].add(is_grass.astype(jnp.int32))
    old, new = herds(before), herds(nxt)
    held = bits.unpack(nxt.touched, len(chunks))
    may_grow = held & (old == 0) & (grass >= balance.MEADOW)
    may_shrink = held & (old > balance.most_cows(nxt.t))
    grew, shrank = new == old + 1, new == old - 1
    strange = (new != old) & ~(may_grow & grew) & ~(may_shrink & shrank)
    return jnp.stack([m.sum(dtype=jnp.int32) for m in (may_grow, may_grow & grew, may_shrink, shrank, strange)])


@cache
def idle_episodes(side):
    """Cows at every 50th step [E, 12], moves [2, 5] and changes by balancing [5]; agents are idle and do not die."""
    env = MACrafter(agents=AGENTS, width=side, height=side, vitals=False, end_on_death=False, max_steps=LAST_STEP + 1)
    noop = jnp.zeros((AGENTS,), jnp.int32)

    def one_episode(key):
        def half_step(carry, inputs):
            """Every step is taken twice: without what balancing may do, for comparison, and for real."""
            state, before, moves, changes = carry
            key, is_real = inputs
            draws = env.sample_draws(key, state)
            word = jnp.where(is_real, draws.balance.word, jnp.uint32(balance.NEVER))
            nxt = env.step(state, noop, draws.replace(balance=balance.BalanceDraws(word))).state
            is_due = nxt.t % balance.EVERY == 0
            changed = jnp.where(is_due, count_changes(before, nxt), 0)
            strange = ~is_due & (nxt.cow_id != before.cow_id).any()
            changed = changed.at[-1].add(strange.astype(jnp.int32))
            real = nxt, before, moves + jnp.stack(count_moves(state, before)), changes + changed
            compared = state, nxt, moves, changes
            return jax.tree.map(lambda a, b: jnp.where(is_real, a, b), real, compared), None

        def stretch(carry, keys):
            halves = jnp.repeat(keys, 2), jnp.arange(2 * RECORD_EVERY) % 2 == 1
            carry, _ = jax.lax.scan(half_step, carry, halves)
            return carry, (carry[0].cow_x >= 0).sum(dtype=jnp.int32)

        key_start, key_steps = jax.random.split(key)
        state = env.reset(key_start)
        start = state, state, jnp.zeros((2, 5), jnp.int32), jnp.zeros((5,), jnp.int32)
        keys = jax.random.split(key_steps, (LAST_STEP // RECORD_EVERY, RECORD_EVERY))
        (_, _, moves, changes), population = jax.lax.scan(stretch, start, keys)
        return population, moves, changes

    keys = jax.random.split(jax.random.key(1, impl="threefry2x32"), EPISODES)
    play = jax.jit(jax.vmap(one_episode), compiler_options={"xla_backend_optimization_level": 1})  # compiles faster
    population, moves, changes = jax.device_get(play(keys))
    return population, moves.sum(0), changes.sum(0)


def assert_same_rate(got, want, label):
    """(hits, tries) each: within four standard errors of the difference."""
    rate = (got[0] + want[0]) / (got[1] + want[1])
    error = np.sqrt(rate * (1 - rate) * (1 / got[1] + 1 / want[1]))
    assert abs(got[0] / got[1] - want[0] / want[1]) <= 4 * error, f"{label}: {got} want {want}"


@pytest.mark.slow
@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_as_many_cows_are_alive_over_time_as_in_the_reference(case):
    population, _, _ = idle_episodes(side_of(case))
    for k in range(case["cow_population"].shape[1]):
        assert_same_mean(population[:, k], case["cow_population"][:, k], f"step {RECORD_EVERY * (k + 1)}")


@pytest.mark.slow
@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_cows_appear_and_vanish_as_often_as_in_the_reference(case):
    may_grow, grew, may_shrink, shrank, strange = idle_episodes(side_of(case))[2]
    cows, grass, limit, spawned, vanished = case["balance_events"].T
    eligible = (cows == 0) & (grass >= balance.MEADOW)
    assert_same_rate((grew, may_grow), (spawned[eligible].sum(), eligible.sum()), "appear")
    assert_same_rate((shrank, may_shrink), (vanished[cows > limit].sum(), (cows > limit).sum()), "vanish")
    assert strange == 0


@pytest.mark.slow
@pytest.mark.recorded("macrafter", "stats*.npz", statistics)
def test_cows_move_as_often_as_in_the_reference_for_each_number_of_free_neighbours(case):
    tries, moved = idle_episodes(side_of(case))[1]
    for free in range(5):
        own = case["cow_moves"][:, 0] == free
        assert_same_rate((moved[free], tries[free]), (case["cow_moves"][own, 1].sum(), own.sum()), f"{free} free")
