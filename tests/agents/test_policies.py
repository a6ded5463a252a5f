"""The policy contract, for every policy of the dining table; and what each may look at."""

from functools import cache, partial

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.registry import list_policies, make_policy
from jaxcoop.agents.scripted import dining as scripted
from jaxcoop.core import Turn, bits
from jaxcoop.envs.dining import Dining
from jaxcoop.envs.dining.types import Action, Obs, Seats, from_seats

NAMES = list(list_policies("dining"))
NEEDS_OTHERS_MEALS = ["chandy_misra_even", "chandy_misra_low"]
NEEDS_THE_CLOCK = ["colour_timetable"]
DECENTRALISED = [name for name in NAMES if name not in NEEDS_OTHERS_MEALS + NEEDS_THE_CLOCK]
DRAWS = [name for name in NAMES if name.startswith(("random", "coin", "lehmann"))]
SIZES = (2, 3, 128)
MODES = ("simultaneous", "sequential")
PAIRS = 256


def random_seats(seed, n):
    """Forks, hands and meals in any condition, reachable or not, and any time; numpy."""
    draw = np.random.default_rng(seed)
    left, right, eating = draw.random((3, n)) < 0.5
    ids = np.arange(n)
    fork = np.choose(draw.integers(0, 3, n), [ids, (ids - 1) % n, -1])
    return Seats(fork, left, right, left & right & eating, draw.integers(0, 4, n)), draw.integers(0, 300)


@cache
def random_states(env, count, first=0):
    """Tables of the seeds from `first` on, leading axis `count`."""
    drawn = [random_seats(first + i, env.num_agents) for i in range(count)]
    seats, times = jax.tree.map(lambda *x: np.stack(x), *drawn)
    start = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), env.reset(jax.random.key(0)))
    return start.replace(table=from_seats(seats), t=jnp.asarray(times, jnp.int32))


def random_state(seed, env):
    """One table in any condition at any time."""
    return jax.tree.map(lambda x: x[0], random_states(env, 1, first=seed))


def turn_of(env, state):
    agents = env.actors(state)
    return Turn(agents, env.observe(state, agents), env.legal(state, agents), state)


def decide(policy, env, key, state):
    """One decision with fresh memory."""
    start, now = jax.random.split(key)
    return policy.act(now, policy.init(start), turn_of(env, state))


def types_of(tree):
    return [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(tree)]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_a_decision_is_one_int32_action_per_acting_philosopher(name, n, mode):
    env = Dining(philosophers=n, mode=mode)
    actions, _ = jax.eval_shape(partial(decide, make_policy(name, env), env), jax.random.key(0), random_state(0, env))
    assert types_of(actions) == [((env.num_actors,), jnp.int32, False)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_memory_keeps_its_types_from_turn_to_turn(name, n, mode):
    env = Dining(philosophers=n, mode=mode)
    policy = make_policy(name, env)
    before = jax.eval_shape(policy.init, jax.random.key(0))
    _, after = jax.eval_shape(partial(decide, policy, env), jax.random.key(0), random_state(0, env))
    assert jax.tree.structure(before) == jax.tree.structure(after)
    assert types_of(before) == types_of(after)
    assert not any(weak for _, _, weak in types_of(after))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_per_agent_memory_has_a_row_for_every_philosopher(name, n):
    policy = make_policy(name, Dining(philosophers=n))
    memory = jax.eval_shape(policy.init, jax.random.key(0))
    assert all(leaf.shape[0] == n for leaf in jax.tree.leaves(memory))


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_codes_of_the_action_set(name):
    env = Dining(philosophers=3)
    keys = jax.random.split(jax.random.key(0), PAIRS)
    deciding = jax.jit(jax.vmap(partial(decide, make_policy(name, env), env)))
    actions, _ = deciding(keys, random_states(env, PAIRS))
    assert set(np.unique(actions)) <= set(Action)


@pytest.mark.parametrize("name", NAMES)
def test_no_key_is_used_twice(name, mode):
    env = Dining(philosophers=3, mode=mode)
    decision = jax.jit(partial(decide, make_policy(name, env), env))
    with jax.debug_key_reuse(True):
        jax.eval_shape(decision, jax.random.key(0), random_state(0, env))


@pytest.mark.parametrize("name", NAMES)
def test_only_policies_that_draw_depend_on_the_key(name):
    env = Dining(philosophers=128)
    policy, state = make_policy(name, env), random_state(0, env)
    deciding = jax.jit(partial(decide, policy, env))
    first, second = (jax.tree.leaves(deciding(jax.random.key(i), state)) for i in (1, 2))
    is_same = all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert is_same == (name not in DRAWS)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_hashable_and_equal_to_its_twin(name):
    env = Dining(philosophers=3)
    first, second = make_policy(name, env), make_policy(name, env)
    assert first == second
    assert hash(first) == hash(second)


def same_view(state, other, i):
    """`other` with everything that philosopher i sees taken from `state`."""
    mine, table = state.table, other.table
    right = (i + 1) % mine.meals.shape[0]
    seen = {
        name: bits.put(getattr(table, name), i, bits.get(getattr(mine, name), i))
        for name in ("left", "right", "eating")
    }
    for name in ("by_left", "by_right"):
        words = getattr(table, name)
        for fork in (i, right):
            words = bits.put(words, fork, bits.get(getattr(mine, name), fork))
        seen[name] = words
    seen["meals"] = table.meals.at[i].set(mine.meals[i])
    return other.replace(table=table.replace(**seen))


@cache
def look_alikes(env):
    """Who decides, and two tables that look the same to it; leading axis PAIRS."""
    i = jnp.arange(PAIRS) % env.num_agents
    first, second = random_states(env, PAIRS), random_states(env, PAIRS, first=PAIRS)
    if env.is_sequential:  # it decides in its own turn, at two times
        rounds = jnp.arange(PAIRS) // 7
        first, second = first.replace(t=i), second.replace(t=i + rounds * env.num_agents)
    return i, first, jax.jit(jax.vmap(same_view))(first, second, i)


def decide_alike(policy, env, key, i, first, second):
    """Philosopher i's decisions and new memory at both tables; the memory of the others differs too."""
    now, *starts = jax.random.split(key, 3)
    memory, other = (policy.init(start) for start in starts)
    other = jax.tree.map(lambda x, y: x.at[i].set(y[i]), other, memory)
    row = 0 if env.is_sequential else i
    results = []
    for state, known in ((first, memory), (second, other)):
        actions, after = policy.act(now, known, turn_of(env, state))
        results.append((actions[row], jax.tree.map(lambda x: x[i], after)))
    return results


def changes(name, mode):
    """How often the rest of the table made a difference to a decision or to the own memory."""
    env = Dining(philosophers=5, mode=mode)
    keys = jax.random.split(jax.random.key(0), PAIRS)
    deciding = jax.jit(jax.vmap(partial(decide_alike, make_policy(name, env), env)))
    decisions = deciding(keys, *look_alikes(env))
    first, second = map(jax.tree.leaves, decisions)
    return sum(int((a != b).sum()) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("name", DECENTRALISED)
def test_a_decentralised_policy_does_not_see_the_rest_of_the_table(name, mode):
    assert changes(name, mode) == 0


@pytest.mark.parametrize("name", NEEDS_OTHERS_MEALS + NEEDS_THE_CLOCK)
def test_a_policy_that_is_said_to_see_more_does(name, mode):
    assert changes(name, mode) > 0


@pytest.mark.parametrize("name", NEEDS_THE_CLOCK)
def test_the_timetable_sees_the_clock_and_nothing_of_the_table(name, mode):
    env = Dining(philosophers=5, mode=mode)
    deciding = jax.jit(partial(decide, make_policy(name, env), env))
    for t in range(0, 60, 7):
        states = [random_state(i, env).replace(t=jnp.int32(t)) for i in (0, 1)]
        np.testing.assert_array_equal(*(deciding(jax.random.key(0), state)[0] for state in states))


def equations(jaxpr):
    """Every primitive operation, those of inner functions included."""
    for equation in jaxpr.eqns:
        inner = [p.jaxpr for p in equation.params.values() if isinstance(p, jax.extend.core.ClosedJaxpr)]
        if inner:
            for sub in inner:
                yield from equations(sub)
        else:
            yield equation


@pytest.mark.parametrize("name", DECENTRALISED + NEEDS_THE_CLOCK)
def test_one_turn_of_a_decentralised_policy_does_not_cost_more_at_a_larger_table(name):
    env = Dining(philosophers=1021, mode="sequential")  # a prime: no other axis has this length
    policy = make_policy(name, env)
    turn = turn_of(env, random_state(0, env))
    jaxpr = jax.make_jaxpr(policy.act)(jax.random.key(0), policy.init(jax.random.key(0)), turn)
    large = {e.primitive.name for e in equations(jaxpr.jaxpr) for out in e.outvars if 1021 in out.aval.shape}
    assert large <= {"scatter"}  # the write of one row of memory


def view(**fields):
    """Observation of one hungry philosopher at a free table, changed by the given fields."""
    default = {"eating": False, "left_available": True, "right_available": True}
    default |= {"holding_left": False, "holding_right": False}
    flags = {name: jnp.array([value]) for name, value in (default | fields).items()}
    return Obs(meals=jnp.zeros((1,), jnp.int32), **flags)


@pytest.mark.parametrize(
    "over, wanted",
    [
        ("not_held", [False, True, True, True]),  # left in hand, right taken by the neighbour
        ("available", [True, False, True, True]),
        ("any_release", [False, False, True, True]),
        ("no_wait", [False, False, True, False]),
    ],
)
def test_each_reading_of_legal_allows_its_own_actions(over, wanted):
    obs = view(holding_left=True, right_available=False)
    legal = jnp.array([[False, False, True, True]])
    assert scripted.UniformOver(over).mask(obs, legal)[0].tolist() == wanted


def test_release_is_always_allowed_in_any_release_and_wait_only_alone_in_no_wait():
    nothing_free = view(left_available=False, right_available=False)
    legal = jnp.array([[False, False, False, True]])
    assert scripted.UniformOver("any_release").mask(nothing_free, legal)[0].tolist() == [
        False,
        False,
        True,
        True,
    ]
    assert scripted.UniformOver("no_wait").mask(nothing_free, legal)[0].tolist() == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: scripted.Greedy(5, "middle"), "unknown first 'middle'; allowed: left"),
        (lambda: scripted.RandomWait(5, 3, 1), "low 3, high 1: must satisfy 0 <= low <= high"),
        (lambda: scripted.CoinWait(1.5), "probability 1.5: must be from 0 to 1"),
        (lambda: scripted.ChandyMisra(5, "high"), "unknown start 'high'; allowed: even, low"),
        (lambda: scripted.UniformOver("all"), "unknown over 'all'; allowed: any_release"),
    ],
)
def test_an_option_out_of_range_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
