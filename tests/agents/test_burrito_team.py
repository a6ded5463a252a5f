"""The scripted teams of the Burrito kitchen: what the cook chooses in drawn states, and whole episodes."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.registry import default_policy, list_policies, make_policy
from jaxcoop.agents.scripted.burrito.offers import FAR, Skill, offers_of
from jaxcoop.agents.scripted.burrito.stock import upcoming
from jaxcoop.core.rollout import play_from, rollout
from jaxcoop.core.skills import Report
from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.rules import RECIPES
from jaxcoop.envs.burrito.types import BURNT, READY, Dish, Item, Terrain
from jaxcoop.envs.null import Null

KEY = jax.random.key(11)
STEPS = 600


def kitchen(layout, agents=0, **options):
    return Burrito(layout=layout, agents=agents, **options)


def with_items(env, state, things):
    """The state with things on cells: {(x, y): item or (item, clock)}."""
    for (x, y), thing in things.items():
        item, clock = thing if isinstance(thing, tuple) else (thing, 0)
        cell = env.kitchen.grid.cell(x, y)
        state = replace(state, item=state.item.at[cell].set(item), clock=state.clock.at[cell].set(clock))
    return state


@cache
def planning(layout, agents):
    """An environment, and what its cooks choose in a state in which nobody does anything."""
    env = kitchen(layout, agents)
    planner = make_policy("cook", env).planner
    everybody = jnp.ones((env.num_agents,), jnp.bool_)
    quiet = Report(*[jnp.zeros((env.num_agents,), jnp.int8)] * 2)
    return env, jax.jit(lambda state: planner.plan(KEY, planner.init(KEY), state, everybody, quiet)[0][:, 0])


def chosen(layout, agents, *, held=(), things=None, **fields):
    env, plan = planning(layout, agents)
    state = replace(env.reset(KEY), **fields)
    for player, item in enumerate(held):
        state = replace(state, held=state.held.at[player].set(item))
    return [Skill(int(skill)) for skill in plan(with_items(env, state, things or {}))]


@cache
def played(layout, agents, start):
    """Four episodes of cooks; in the last one every pot and grill burns from the start."""
    env = kitchen(layout, agents, start=start, max_steps=STEPS)
    policy = make_policy("cook", env)
    keys = jax.random.split(KEY, 4)
    states = jax.vmap(env.reset)(keys)
    food = {Terrain.GRILL: Item.STEAK, Terrain.POT: Item.BOILED_RICE}
    for terrain, item in food.items():
        cells = np.flatnonzero(env.kitchen.terrain == terrain)
        states = replace(states, item=states.item.at[3, cells].set(item), clock=states.clock.at[3, cells].set(BURNT))
    play = jax.jit(jax.vmap(lambda key, state: play_from(env, policy, key, state, policy.init(key))))
    return play(keys, states).outcome


def delivered(outcome):
    return np.asarray(outcome.counts.in_order + outcome.counts.out_of_order)


def test_the_cook_plays_where_nobody_is_named():
    assert default_policy("burrito") == "cook"
    assert {"cook", "random_skill"} <= set(list_policies("burrito"))


@pytest.mark.parametrize("name", ["cook", "random_skill"])
def test_the_team_plays_no_other_environment(name):
    from jaxcoop.agents.scripted.burrito import POLICIES

    with pytest.raises(ValueError, match="play burrito only"):
        POLICIES[name].factory(Null())


def random_states(env, count):
    """States with random things everywhere and in all hands."""
    rng, terrain = np.random.default_rng(5), env.kitchen.terrain
    lying = [item for item in Item if item not in (Item.STEAK, Item.FRIED_MUSHROOM, Item.BOILED_RICE)]
    on = {
        Terrain.COUNTER: lying,
        Terrain.GRILL: [Item.NONE, Item.STEAK, Item.FRIED_MUSHROOM, Item.CHARCOAL],
        Terrain.POT: [Item.NONE, Item.BOILED_RICE, Item.CHARCOAL],
        Terrain.BOARD: [Item.NONE, Item.CHOPPED_MEAT, Item.CHOPPED_MUSHROOM],
        Terrain.SINK: [Item.NONE, Item.DIRTY_PLATE, Item.CLEAN_PLATE],
    }
    item, clock = np.zeros((2, count, len(terrain)), np.uint8)
    for kind, items in on.items():
        cells = np.flatnonzero(terrain == kind)
        item[:, cells] = rng.choice(items, (count, len(cells)))
        if kind != Terrain.COUNTER:
            food = item[:, cells] >= Item.STEAK
            clock[:, cells] = np.where(food, rng.choice([1, READY, BURNT], food.shape), rng.integers(0, 3, food.shape))
    clock[np.isin(item, (Item.NONE, Item.CHARCOAL, Item.CLEAN_PLATE))] = 0
    start = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), env.reset(KEY))
    return replace(
        start,
        cell=jnp.asarray(rng.choice(np.flatnonzero(terrain == Terrain.FLOOR), start.cell.shape), jnp.int16),
        held=jnp.asarray(rng.choice(lying, start.held.shape), jnp.int8),
        item=jnp.asarray(item, jnp.int8),
        clock=jnp.asarray(clock),
    )


@pytest.mark.parametrize("layout", ["fc", "open"])
def test_what_skills_offer_agrees_with_the_mask(layout):
    env = kitchen(layout)
    states = random_states(env, 300)
    offers = jax.jit(jax.vmap(lambda state: offers_of(env, state)))(states)
    mask = np.asarray(jax.jit(jax.vmap(env.skills.feasible))(states))
    assert np.array_equal(offers.distance < FAR, mask)
    assert mask.any((0, 1)).all() and not mask[..., np.arange(27) != Skill.STAY].all((0, 1)).any()


def test_random_skills_are_those_of_the_mask():
    env = kitchen("open")
    planner = make_policy("random_skill", env).planner
    state = env.reset(KEY)
    nobody = jnp.zeros((2,), jnp.bool_)
    keys = jax.random.split(KEY, 500)
    ops, changed, _ = jax.jit(jax.vmap(lambda key: planner.plan(key, None, state, nobody, None)))(keys)
    assert not changed.any() and ops.shape == (500, 2, 1)
    mask = np.asarray(env.skills.feasible(state))
    for player in range(2):
        drawn = np.bincount(np.asarray(ops)[:, player, 0], minlength=27)
        assert np.array_equal(drawn > 0, mask[player])
        assert drawn.max() < 2.5 * 500 / mask[player].sum()


def test_the_dishes_to_come_are_the_orders_and_then_those_of_the_cycle():
    env = kitchen("open")
    state = env.reset(KEY)
    assert upcoming(state).tolist() == [Dish.STEAK, Dish.MUSHROOM, *RECIPES[1:3]]
    dish = jnp.asarray([Dish.MUSHROOM, 0, 0, 0], jnp.int8)
    assert upcoming(replace(state, dish=dish, next_recipe=jnp.int8(12))).tolist() == [Dish.MUSHROOM, *RECIPES[:3]]


def test_players_do_not_start_the_same_job():
    assert len(set(chosen("open_3p", 3))) == 3
    things = {(0, 2): 0, (0, 3): 0, (9, 3): Item.CLEAN_PLATE, (9, 4): 0, (6, 6): (Item.STEAK, READY)}
    skills = chosen("open_3p", 3, things=things)
    assert skills.count(Skill.GRAB_CLEAN_PLATE) == 1


def test_the_nearer_player_does_the_job():
    env, _ = planning("open_3p", 3)
    for near, place in ((0, (1, 3)), (2, (8, 3))):
        far = [env.kitchen.grid.cell(x, 1) for x in (4, 5, 6)]
        far[near] = env.kitchen.grid.cell(*place)
        x = 0 if place[0] == 1 else 9
        things = {(0, 2): 0, (0, 3): 0, (9, 3): 0, (9, 4): 0, (x, 3): Item.STEAK_BURRITO}
        skills = chosen("open_3p", 3, things=things, cell=jnp.asarray(far, jnp.int16))
        assert skills[near] == Skill.GRAB_STEAK_BURRITO


def test_only_as_much_is_fetched_as_can_be_cooked():
    food = {(2, 6): Item.BOILED_RICE, (3, 6): Item.BOILED_RICE, (6, 6): Item.STEAK, (7, 6): Item.FRIED_MUSHROOM}
    skills = chosen("open_3p", 3, things={cell: (item, 10) for cell, item in food.items()})
    assert Skill.GRAB_RICE not in skills
    assert sum(skill in (Skill.GRAB_MEAT, Skill.GRAB_MUSHROOM) for skill in skills) <= 1


def test_the_first_order_comes_first():
    held = (Item.STEAK_BURRITO, Item.MUSHROOM_BURRITO)
    assert chosen("open", 2, held=held) == [Skill.SERVE, Skill.PUT_DOWN]
    swapped = jnp.asarray([Dish.MUSHROOM, Dish.STEAK, 0, 0], jnp.int8)
    assert chosen("open", 2, held=held, dish=swapped) == [Skill.PUT_DOWN, Skill.SERVE]


def test_shortly_before_the_end_any_order_is_served():
    held = (Item.STEAK_BURRITO, Item.MUSHROOM_BURRITO)
    assert chosen("open", 2, held=held, t=jnp.int32(2380)) == [Skill.SERVE, Skill.SERVE]


@pytest.mark.parametrize(
    ("item", "skill"),
    [
        (Item.MEAT, Skill.CHOP),
        (Item.CHOPPED_MUSHROOM, Skill.FRY),
        (Item.RICE, Skill.BOIL),
        (Item.STACK_PLATE, Skill.WASH),
        (Item.CLEAN_PLATE, Skill.GRAB_TORTILLA),
        (Item.RICE_TORTILLA_PLATE, Skill.PUT_DOWN),
        (Item.CHARCOAL, Skill.TRASH),
        (Item.TORTILLA, Skill.PUT_DOWN),
    ],
)
def test_what_is_held_goes_where_it_is_needed(item, skill):
    assert chosen("open", 2, held=(item,))[0] == skill


def test_a_plate_gets_what_is_ready():
    things = {(6, 6): (Item.STEAK, READY), (3, 6): (Item.BOILED_RICE, READY)}
    assert chosen("open", 2, held=(Item.TORTILLA_PLATE,), things=things)[0] == Skill.GET_STEAK
    assert chosen("open", 2, held=(Item.STEAK_PLATE,), things=things)[0] == Skill.GET_RICE


def test_one_player_takes_the_extinguisher_and_the_coal_is_thrown_away():
    fire = {(6, 6): (Item.STEAK, BURNT), (7, 6): (Item.STEAK, BURNT)}
    assert chosen("open_3p", 3, things=fire).count(Skill.GRAB_FIRE_EXT) == 1
    assert chosen("open_3p", 3, held=(Item.FIRE_EXT,), things=fire)[0] == Skill.PUT_OUT_FIRE
    coal = {(6, 6): Item.CHARCOAL}
    assert chosen("open_3p", 3, things=coal).count(Skill.GRAB_CHARCOAL) == 1
    assert chosen("open_3p", 3, held=(Item.FIRE_EXT,))[0] == Skill.PUT_DOWN


def test_across_the_counter_things_are_handed_over():
    """fc: player 0 stands with the grills, player 1 with the boards."""
    assert chosen("fc", 2, held=(Item.MEAT, Item.STACK_PLATE)) == [Skill.PASS, Skill.PASS]
    assert chosen("fc", 2, held=(Item.CHOPPED_MEAT, Item.MEAT)) == [Skill.FRY, Skill.CHOP]
    # Chopped food is had in exchange, and for what has been handed over to the others there is none.
    lies = {(4, 3): Item.CHOPPED_MEAT, (4, 6): Item.CHOPPED_MEAT}
    assert chosen("fc", 2, held=(Item.MEAT,), things=lies)[0] == Skill.PASS
    lies = {(4, 3): Item.MEAT, (4, 6): Item.MEAT}
    assert chosen("fc", 2, held=(Item.MUSHROOM,), things=lies) == [Skill.STAY, Skill.GRAB_MEAT]


@pytest.mark.parametrize(
    ("layout", "agents", "least"),
    [
        ("open", 0, 6),
        pytest.param("fc", 0, 3, marks=pytest.mark.slow),
        pytest.param("hallway", 0, 4, marks=pytest.mark.slow),
        pytest.param("ring", 0, 5, marks=pytest.mark.slow),
        pytest.param("fc_rev", 0, 3, marks=pytest.mark.slow),
        pytest.param("open_3p", 0, 7, marks=pytest.mark.slow),
        pytest.param("ring", 1, 3, marks=pytest.mark.slow),
        pytest.param("ring", 4, 4, marks=pytest.mark.slow),
    ],
)
def test_dishes_are_delivered_in_order(layout, agents, least):
    outcome = played(layout, agents, "fixed")
    assert delivered(outcome)[:3].min() >= least
    assert np.asarray(outcome.counts.out_of_order)[:3].max() <= 2  # at the end
    assert np.asarray(outcome.counts.fires)[:3].max() == 0


@pytest.mark.parametrize("layout", ["open", "fc"])
def test_fires_are_put_out(layout):
    outcome = played(layout, 0, "fixed")
    assert np.asarray(outcome.counts.extinguished)[3] == 4
    assert delivered(outcome)[3] >= 1


@pytest.mark.slow
def test_a_single_cook_delivers_from_anywhere():
    assert delivered(played("open", 1, "random")).min() >= 2


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["open", "fc", "ring", "hallway", "open_3p"])
def test_whole_episodes_go_on_to_the_end(layout):
    env = kitchen(layout)
    outcome = rollout(env, make_policy("cook", env), KEY, jnp.arange(16)).outcome
    assert delivered(outcome).min() >= 20
    assert np.asarray(outcome.counts.expired).mean() < 1
