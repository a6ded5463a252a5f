"""MA-Crafter: rules and options that the recorded episodes do not show."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.envs.macrafter import MACrafter, balance, claims, config, observe
from jaxcoop.envs.macrafter.rewards import new_to_team
from jaxcoop.envs.macrafter.types import Action, Draws, Item, Material, as_command
from jaxcoop.envs.macrafter.updates import counted_on

GRASS = jnp.full((8, 8), Material.GRASS, jnp.uint8)
NOWHERE = jnp.zeros((0,), jnp.int16)


def small(agents=2, **options):
    return MACrafter(agents, 8, 8, **{"balance": False, "max_steps": 20, **options})


def at(env, *cells, material=GRASS, cows=()):
    """A state with agents at the given cells and cows where asked for."""
    x, y = (jnp.asarray([cell[k] for cell in cells], jnp.int16) for k in (0, 1))
    cow_x, cow_y = (jnp.asarray([cell[k] for cell in cows], jnp.int16).reshape(-1) for k in (0, 1))
    return env.start(material, cow_x, cow_y, x, y)


def still(env, *directions):
    """Draws in which the first cows go in the given directions and all others stay."""
    cow = np.full(sum(env.settings.cow_slots), -1, np.int8)
    cow[: len(directions)] = directions
    return Draws(jnp.asarray(cow), None)


@partial(jax.jit, static_argnums=0)
def compiled_step(env, state, actions, draws):
    return env.step(state, actions, draws)


def play(env, state, *actions, cows=()):
    return compiled_step(env, state, jnp.asarray(actions, jnp.int32), still(env, *cows))


def places(state):
    return list(zip(np.asarray(state.x).tolist(), np.asarray(state.y).tolist()))


def test_a_later_agent_may_follow_into_the_cell_that_an_earlier_one_left():
    env = small(3)
    nxt = play(env, at(env, (3, 3), (2, 3), (1, 3)), *[Action.MOVE_RIGHT] * 3).state
    assert places(nxt) == [(4, 3), (3, 3), (2, 3)]


def test_an_earlier_agent_does_not_get_the_cell_that_a_later_one_leaves():
    env = small(2)
    nxt = play(env, at(env, (2, 3), (3, 3)), Action.MOVE_RIGHT, Action.MOVE_RIGHT).state
    assert places(nxt) == [(2, 3), (4, 3)]


def test_two_agents_cannot_swap_and_the_lower_id_wins_a_contested_cell():
    env = small(2)
    assert places(play(env, at(env, (2, 3), (3, 3)), Action.MOVE_RIGHT, Action.MOVE_LEFT).state) == [(2, 3), (3, 3)]
    assert places(play(env, at(env, (2, 3), (4, 3)), Action.MOVE_RIGHT, Action.MOVE_LEFT).state) == [(3, 3), (4, 3)]


def test_a_cow_of_the_start_moves_before_the_players():
    env = small(1)
    nxt = play(env, at(env, (2, 3), cows=[(4, 3)]), Action.MOVE_RIGHT, cows=[0]).state
    assert (int(nxt.cow_x[0]), places(nxt)) == (3, [(2, 3)])


def test_a_later_cow_moves_after_the_players():
    env = small(1)
    first = env.settings.cow_slots[0]
    state = at(env, (2, 3))
    state = state.replace(cow_x=state.cow_x.at[first].set(4), cow_y=state.cow_y.at[first].set(3))
    cow = np.full(sum(env.settings.cow_slots), -1, np.int8)
    cow[first] = 0
    nxt = compiled_step(env, state, jnp.asarray([Action.MOVE_RIGHT]), Draws(jnp.asarray(cow), None)).state
    assert (int(nxt.cow_x[first]), places(nxt)) == (4, [(3, 3)])


def plain_winners(position, target, wants, leaves, order):
    """One after the other."""
    position, taken, won = dict(position), set(), {}
    for actor in order:
        cell = target[actor]
        won[actor] = bool(wants[actor]) and cell not in position.values() and cell not in taken
        if won[actor]:
            taken.add(cell)
            if leaves[actor]:
                taken.discard(cell)
                position[actor] = cell
    return won


@pytest.mark.parametrize("agents", [3, 40])
def test_all_actors_at_once_get_what_they_would_get_one_after_the_other(agents):
    env = MACrafter(agents, 10, 10, balance=False)
    settings, rng = env.settings, np.random.default_rng(agents)
    cows = sum(settings.cow_slots)
    number = cows + agents
    resolve = jax.jit(
        jax.vmap(lambda p, t, w, leaves: claims.winners(settings, claims.occupancy(settings, p), t, w, leaves)[0])
    )
    order = np.argsort(np.concatenate(claims.turns(settings)))
    position = np.stack([rng.permutation(100)[:number] for _ in range(300)]).astype(np.int16)
    # half of them want the cell of somebody who is in play, the rest any cell
    aimed = np.take_along_axis(position, rng.integers(0, number, position.shape), 1)
    target = np.where(rng.random(position.shape) < 0.5, aimed, rng.integers(0, 100, position.shape)).astype(np.int16)
    wants = (rng.random(position.shape) < 0.8) & (target != position)
    leaves = rng.random((300, agents)) < 0.7
    pair = lambda x: claims.Pair(jnp.asarray(x[:, :cows]), jnp.asarray(x[:, cows:]))  # noqa: E731
    won = resolve(pair(position), pair(target), pair(wants), jnp.asarray(leaves))
    won = np.concatenate([won.cows, won.agents], 1)
    for row in range(300):
        moves = np.concatenate([np.ones(cows, bool), leaves[row]])
        want = plain_winners(dict(enumerate(position[row])), target[row], wants[row], moves, order)
        assert [want[actor] for actor in range(number)] == won[row].tolist()


def test_an_action_that_does_not_exist_does_nothing():
    env = small(2)
    state = at(env, (2, 3), (5, 5))
    for action in (-1, 18, 2**31 - 1, -(2**31)):
        nxt = play(env, state, action, action)
        same = play(env, state, Action.NOOP, Action.NOOP)
        jax.tree.map(np.testing.assert_array_equal, nxt, same)


def test_plain_actions_are_commands_without_requests():
    env = MACrafter(3, 16, 16)
    state = jax.jit(env.reset)(jax.random.key(3))

    @jax.jit
    def both(state, key):
        actions, draws = jax.random.randint(key, (3,), 0, 18), env.sample_draws(key, state)
        return env.step(state, actions, draws), env.step(state, as_command(actions), draws)

    for number in range(12):
        plain, command = both(state, jax.random.key(number))
        jax.tree.map(np.testing.assert_array_equal, plain, command)
        state = plain.state


def test_one_coal_needs_two_agents_with_a_pickaxe_and_gives_each_one():
    env = small(2)
    world = GRASS.at[3, 3].set(Material.COAL)
    state = at(env, (2, 3), (4, 3), material=world)
    with_tool = state.replace(inventory=state.inventory.at[:, Item.WOOD_PICKAXE].set(1))
    alone = play(env, with_tool, Action.DO, Action.NOOP)
    assert alone.state.material[3, 3] == Material.COAL and float(alone.state.score) == 0
    both = play(env, with_tool, Action.DO, Action.DO)
    assert (both.state.inventory[:, Item.COAL] == 1).all()
    assert float(both.state.score) == 150 and both.reward.tolist() == [75, 75]


def test_a_full_bag_receives_nothing_but_counts():
    env = small(2, bag=2)
    state = at(env, (2, 3), (4, 3), material=GRASS.at[3, 3].set(Material.TREE))
    state = state.replace(inventory=state.inventory.at[0, Item.WOOD].set(2))
    nxt = play(env, state, Action.DO, Action.DO).state
    assert nxt.inventory[:, Item.WOOD].tolist() == [2, 1] and float(nxt.score) == 1


def test_food_and_drink_need_no_room_in_a_full_bag():
    env = small(2, bag=2)
    state = at(env, (2, 3), (6, 5), material=GRASS.at[6, 6].set(Material.WATER), cows=[(3, 3)])
    held = state.inventory.at[:, Item.WOOD].set(2).at[:, Item.FOOD].set(2).at[:, Item.DRINK].set(2)
    nxt = play(env, state.replace(inventory=held), Action.DO, Action.DO).state
    assert nxt.inventory[0, Item.FOOD] == 8 and nxt.inventory[1, Item.DRINK] == 3


@pytest.mark.parametrize("agents", [2, 8, 9, 20])
def test_what_the_team_has_already_is_new_to_nobody(agents):
    new, unlocked = new_to_team(jnp.full((agents,), 3, jnp.uint32), jnp.uint32(1))
    assert new.tolist() == [2] + [0] * (agents - 1) and int(unlocked) == 3


def test_a_death_ends_the_episode_unless_it_is_told_not_to():
    for ends in (True, False):
        env = small(2, end_on_death=ends)
        state = at(env, (2, 3), (5, 5), material=GRASS.at[3, 3].set(Material.LAVA))
        state = play(env, state, Action.MOVE_RIGHT, Action.NOOP).state
        assert state.inventory[0, Item.HEALTH] == 0 and not state.removed.any()
        step = play(env, state, Action.NOOP, Action.NOOP)
        assert step.state.removed.tolist() == [True, False]
        assert bool(step.terminated) == ends and step.events.died.tolist() == [True, False]


def test_an_agent_that_never_had_a_cell_does_not_end_the_episode():
    env = small(2)
    step = play(env, at(env, (2, 3), (-1, -1)), Action.MOVE_RIGHT, Action.NOOP)
    assert not step.terminated and places(step.state)[0] == (3, 3)


def test_nothing_changes_after_the_end():
    env = small(2, max_steps=1)
    state = play(env, at(env, (2, 3), (5, 5), cows=[(1, 1)]), Action.NOOP, Action.NOOP).state
    step = play(env, state, Action.MOVE_UP, Action.DO, cows=[1])
    jax.tree.map(np.testing.assert_array_equal, step.state, state)
    assert step.truncated and not step.reward.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": 0}, "agents 0: must be from 1 to 1,024"),
        ({"width": 200, "height": 200}, "40,000 cells"),
        ({"mode": "desert"}, "unknown mode 'desert'"),
        ({"vitals": 1}, "vitals 1: must be True or False"),
        ({"distance": 3}, "distance 3: must be from 1 to 2"),
        ({"requirements": "papr"}, "did you mean 'paper'"),
        ({"requirements": "gold:1"}, "unknown resource 'gold'"),
        ({"requirements": "coal:0"}, "agents 0 of coal: must be a whole number from 1 to 1,024"),
        ({"requirements": "coal:-2"}, "agents -2 of coal"),
        ({"requirements": "coal:2:axe"}, "unknown tool of coal 'axe'"),
        ({"requirements": "coal:2,coal:3"}, "listed twice"),
    ],
)
def test_a_bad_option_is_named(options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        MACrafter(**options)


def test_a_file_of_tasks_is_read_once_and_replaced_by_its_content(tmp_path):
    path = tmp_path / "tasks.toml"
    path.write_text('[resources.coal]\nagents = 4\ntools = ["wood_pickaxe", "iron_pickaxe"]\nmode = "any"\n')
    env = MACrafter(requirements=str(path))
    path.unlink()
    assert env.requirements == "coal:4:wood_pickaxe|iron_pickaxe"
    assert dataclasses.replace(env) == env and hash(env) == hash(dataclasses.replace(env))
    assert config.half_points(env.requirements)[Material.COAL] == 2 * 25 * 4 * 2.5
    path.write_text("[resources.coal]\nagent = 4\n")
    with pytest.raises(ValueError, match="unknown key of coal"):
        MACrafter(requirements=str(path))


def test_a_state_is_small():
    from jaxcoop.core.env import state_bytes

    few, many = (state_bytes(MACrafter(agents)) for agents in (3, 103))
    assert few <= 8192 and many - few <= 100 * 105


def test_a_local_view_is_the_window_of_the_full_one_around_the_agent():
    env = MACrafter(3, 16, 12)
    state = jax.jit(env.reset)(jax.random.key(5))
    local, full = jax.jit(lambda s: [observe.observe(env.settings, s, full=full) for full in (False, True)])(state)
    assert set(observe.legend()) >= set(vars(local))
    for name in ("material", "thing", "agent"):
        padded = np.pad(np.asarray(getattr(full, name)), ((0, 0), (4, 4), (3, 3)))
        for i in range(3):
            x, y = int(state.x[i]), int(state.y[i])
            np.testing.assert_array_equal(getattr(local, name)[i], padded[i, x : x + 9, y : y + 7])
    assert (local.agent[:, 4, 3] == jnp.arange(1, 4)).all()


@pytest.mark.parametrize(
    ("agents", "requests", "shape"),
    [
        pytest.param(3, False, (6,), marks=pytest.mark.slow),
        (12, True, (2, 3)),
        pytest.param(3, False, (2, 3), marks=pytest.mark.slow),
        pytest.param(12, True, (6,), marks=pytest.mark.slow),
    ],
)
def test_an_episode_goes_on_alike_alone_in_a_batch_and_in_a_batch_of_batches(agents, requests, shape):
    env = MACrafter(agents, 8, 8, balance=False)

    def play_on(key):
        def one(state, number):
            key_actions, key_draws, key_place = jax.random.split(jax.random.fold_in(key, number), 3)
            told = jax.random.randint(key_actions, (agents,), 0, 18)
            if requests:
                place = jax.random.randint(key_place, (agents,), -3, 4)
                told = dataclasses.replace(as_command(told), place=place)
            draws = env.sample_draws(key_draws, state)
            rich = dataclasses.replace(state, inventory=jnp.where(number % 8 == 0, jnp.int8(5), state.inventory))
            step = env.step(rich, told, draws)
            return step.state, step

        return jax.lax.scan(one, env.start(GRASS, NOWHERE, NOWHERE, *spots), jnp.arange(30))

    spots = (jnp.arange(agents) % 6 + 1, jnp.arange(agents) // 6 + 3)
    keys = jax.random.split(jax.random.key(agents), 6)
    together = play_on
    for _ in shape:
        together = jax.vmap(together)
    batch = jax.jit(together)(keys.reshape(shape))
    single = jax.jit(play_on)
    for row in (2, 3):
        jax.tree.map(
            lambda a, b, row=row: np.testing.assert_array_equal(a.reshape(6, *b.shape)[row], b),
            batch,
            single(keys[row]),
        )


def test_cows_stay_in_half_of_their_draws_and_go_each_way_in_an_eighth():
    env = MACrafter(1)
    state = jax.eval_shape(env.reset, jax.random.key(0))
    state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state)
    draw = lambda t: env.sample_draws(jax.random.fold_in(jax.random.key(5), t), state)  # noqa: E731
    draws = jax.jit(jax.vmap(draw))(jnp.arange(4000))
    share = np.stack([(np.asarray(draws.cow) == way).mean(0) for way in (-1, 0, 1, 2, 3)])  # [5, C]
    assert np.abs(share - np.array([0.5, *[0.125] * 4])[:, None]).max() < 5 * 0.5 / np.sqrt(4000)
    word = np.asarray(draws.balance.word) / 2**32
    assert abs((word < balance.SPAWN_BELOW / 2**32).mean() - 0.01) < 0.002
    drawn = np.concatenate([np.asarray(draws.cow) < 0, word < 0.5], 1)
    between = np.corrcoef(drawn.T) - np.eye(drawn.shape[1])
    assert np.abs(between).max() < 6 / np.sqrt(4000)


def test_achievement_counters_stay_at_the_largest_number_they_hold():
    full = jnp.full((1, 22), 32_765, jnp.int16)
    more = jnp.full((1, 22), 8, jnp.int16)
    assert counted_on(full, more).tolist() == [[32_767] * 22]
    assert counted_on(full - 10, more).tolist() == [[32_763] * 22]
    assert counted_on(full, more).dtype == jnp.int16
