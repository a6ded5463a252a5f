"""8.4, 8.7: where the macro-skills of Burrito are random, and crews of all sizes at work."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from burrito_scenes import BOARD, OPEN, SINK, STACK, random_states, scene
from scipy.stats import binomtest, chisquare

from jaxcoop.core.skills import Status
from jaxcoop.envs.burrito import Burrito
from jaxcoop.envs.burrito.skills import GAVE_WAY
from jaxcoop.envs.burrito.skillset import SKILLS
from jaxcoop.envs.burrito.types import Item

I = Item  # noqa: E741
CHOP, REST, WASH, GRAB_DIRTY, GRAB_CLEAN, PUT_DOWN = 2, 4, 5, 12, 13, 26
PENDING, SUCCESS, _ = map(int, Status)
PINNED = Burrito(controller="pinned")


@cache
def started(count=4000):
    """Of many starts of one skill of player 0 in a state: how many interactions, and who keeps its goal."""
    skills = OPEN.skills

    def one(state, ops, key):
        draws = skills.sample_draws(key, state)
        memory = skills.begin(state, skills.idle(), ops[:, None], jnp.ones((2,), jnp.bool_), draws)
        after = skills.resolve(state, memory, draws)
        return memory.repeats, after.reason, draws

    drawn = jax.jit(jax.vmap(one, (None, None, 0)))
    return lambda state, *ops: jax.device_get(
        drawn(state, jnp.asarray(ops, jnp.int32), jax.random.split(jax.random.key(11), count))
    )


@pytest.mark.parametrize(
    "place, held, lying, skill, most",
    [
        (BOARD, I.MEAT, I.NONE, CHOP, 3),
        (BOARD, I.NONE, (I.CHOPPED_MUSHROOM, 0), CHOP, 2),
        (BOARD, I.NONE, (I.CHOPPED_MUSHROOM, 1), CHOP, 1),
        (SINK, I.STACK_PLATE, I.NONE, WASH, 4),
        (SINK, I.NONE, (I.DIRTY_PLATE, 0), WASH, 3),
        (SINK, I.NONE, (I.DIRTY_PLATE, 1), WASH, 2),
        (SINK, I.DIRTY_PLATE, I.CLEAN_PLATE, WASH, 1),
        (STACK, I.NONE, I.NONE, GRAB_DIRTY, 1),
        (STACK, I.MEAT, I.NONE, PUT_DOWN, 1),
        (STACK, I.NONE, I.NONE, REST, 0),
        (STACK, I.NONE, I.NONE, CHOP, 0),  # impossible
    ],
)
def test_burrito_players_interact_any_number_of_times_up_to_the_most_equally_often(place, held, lying, skill, most):
    repeats, *_ = started()(scene(place, None, held=(held, 0), lying={place: lying}), skill, REST)
    counts = np.bincount(repeats[:, 0], minlength=most + 1)
    assert len(counts) == most + 1
    assert counts[0] == (0 if most else len(repeats))
    assert most < 2 or chisquare(counts[1:]).pvalue > 1e-4


def test_burrito_players_give_way_to_each_other_equally_often():
    state = scene(None, None, cell=[32, 43], lying={(0, 3): I.CLEAN_PLATE})
    _, reason, draws = started()(state, GRAB_CLEAN, GRAB_CLEAN)
    assert ((reason == GAVE_WAY).sum(1) == 1).all() and set(reason.flat) == {0, GAVE_WAY}
    assert binomtest(int((reason[:, 0] == 0).sum()), len(reason)).pvalue > 1e-4
    for flags in (draws.reorder, draws.plan.reshuffle):
        assert binomtest(int(flags.sum()), len(flags), 0.1).pvalue > 1e-4


def test_pinned_burrito_skills_do_not_look_at_draws():
    skills = PINNED.skills
    states = random_states(PINNED, np.random.default_rng(3), 30)

    @jax.jit
    @jax.vmap
    def both(state, ops):
        found = []
        for key in (0, 1):
            draws = skills.sample_draws(jax.random.key(key), state)
            memory = skills.begin(state, skills.idle(), ops[:, None], jnp.ones((2,), jnp.bool_), draws)
            found.append(skills.command(state, memory, draws))
        return found

    ops = np.random.default_rng(4).integers(0, len(SKILLS), (30, 2)).astype(np.int32)
    jax.tree.map(np.testing.assert_array_equal, *both(states, ops))


@pytest.mark.parametrize("agents", [pytest.param(1, marks=pytest.mark.slow), 16])
def test_burrito_crews_of_all_sizes_do_their_skills(agents):
    """Everybody does anything that is possible, drawn when the last skill has ended, for 60 steps."""
    env = Burrito(agents=agents)
    skills = env.skills

    def one(carry, key):
        state, memory = carry
        could = skills.feasible(state)
        ops = jax.random.categorical(key, jnp.where(could, 0.0, -jnp.inf)).astype(jnp.int32)
        draws = skills.sample_draws(key, state)
        memory = skills.begin(state, memory, ops[:, None], memory.done, draws)
        actions, memory = skills.command(state, memory, draws)
        state = env.step(state, actions, env.sample_draws(key, state)).state
        status = skills.check(state, memory).status
        return (state, memory), (state.cell, actions, status, state.held)

    start = env.reset(jax.random.key(0)), skills.idle()
    _, (cell, actions, status, held) = jax.jit(lambda keys: jax.lax.scan(one, start, keys))(
        jax.random.split(jax.random.key(agents), 60)
    )
    cell = np.sort(cell, 1)
    assert env.kitchen.grid.floor[cell].all() and (cell[:, 1:] != cell[:, :-1]).all()
    assert set(np.asarray(actions).flat) <= set(range(6))
    for player_status in np.asarray(status).T:
        assert (player_status != PENDING).any()
    assert (np.asarray(held) > 0).any() and (np.asarray(status) == SUCCESS).sum() > 3 * agents
