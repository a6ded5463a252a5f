"""Uniformly random philosophers without sampling: the chain of table states under the rules of a timestep.

Axes: S states, A = 4^N joint actions.
"""

from functools import cache, partial
from itertools import product
from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from jaxcoop.envs.dining import observe, rules
from jaxcoop.envs.dining.types import Action

SETS = ("by_left", "by_right", "left", "right", "eating")  # one word each: N is small
BLOCK = 64  # states looked at together


def tables_of(codes, n):
    """Tables [S] with no meals from the state numbers of `code_of`."""
    words = [(codes >> (n * place) & (2**n - 1)).astype(np.uint32)[:, None] for place in range(len(SETS))]
    return rules.empty_table(n).replace(**dict(zip(SETS, words)), meals=np.zeros((len(codes), n), np.int32))


def code_of(table, n):
    """State numbers from the pattern of forks, flags and phases."""
    return sum(np.asarray(getattr(table, name))[..., 0].astype(np.int64) << (n * k) for k, name in enumerate(SETS))


@partial(jax.jit, static_argnames="legal_only")
def look(tables, joint, legal_only):
    """Next tables [S, A], joint actions that can be drawn [S, A], tables that are circular waits [S]."""

    def one(table):
        allowed = observe.legal(table) if legal_only else jnp.ones((joint.shape[1], len(Action)), jnp.bool_)
        possible = jnp.take_along_axis(allowed, joint.T, axis=1).all(axis=0)
        return jax.vmap(lambda actions: rules.simultaneous_step(table, actions))(joint), possible

    return *jax.vmap(one)(tables), jax.vmap(rules.is_circular_wait)(tables)


@cache
def chain(n, actions):
    """(P, G, dead): chances [S, S] from state to state, those times the meals eaten, and deadlocked states [S].

    `actions`: "any" or "legal".  State 0 is the start table.  Deadlocked states are absorbing: their rows are empty.
    """
    joint = np.array(list(product(range(len(Action)), repeat=n)), np.int32)
    number, states, dead, entries = {0: 0}, [0], [], []
    while len(dead) < len(states):
        block = np.array(states[len(dead) : len(dead) + BLOCK])
        padded = np.concatenate([block, np.zeros(BLOCK - len(block), np.int64)])  # one shape: one compilation
        found = jax.device_get(look(tables_of(padded, n), joint, actions == "legal"))
        nxt, possible, waits = jax.tree.map(itemgetter(slice(len(block))), found)
        live = possible & ~waits[:, None]
        rows = np.broadcast_to(np.arange(len(block))[:, None] + len(dead), live.shape)[live]
        codes, place = np.unique(code_of(nxt, n)[live], return_inverse=True)
        for code in codes.tolist():
            if code not in number:
                number[code] = len(states)
                states.append(code)
        columns = np.array([number[code] for code in codes.tolist()], np.int64)[place]
        # Everybody draws uniformly from its own set, so the joint actions of a state are equally likely.
        chance = (1 / possible.sum(axis=1))[rows - len(dead)]
        entries.append((rows, columns, chance, chance * nxt.meals.sum(-1)[live]))
        dead += waits.tolist()
    rows, columns, chances, meals = (np.concatenate(part) for part in zip(*entries))
    shape = (len(states), len(states))
    return *(sparse.csr_array((x, (rows, columns)), shape) for x in (chances, meals)), np.array(dead)


def exact_row(n, actions, horizon):
    """The fields of a recorded row of exact values."""
    chances, gains, dead = chain(n, actions)
    there, meals = np.zeros(len(dead)), np.zeros(len(dead))  # chance to be in a state, times the meals so far
    there[0] = 1.0
    stops, throughput = [], 0.0
    for t in range(1, horizon + 1):
        there, meals = there @ chances, meals @ chances + there @ gains
        stops.append(there[dead].sum())
        throughput += meals[dead].sum() / t
        there, meals = np.where(dead, 0.0, there), np.where(dead, 0.0, meals)
    rate, times = sum(stops), np.dot(stops, np.arange(1, horizon + 1))
    return {
        "n": n,
        "actions": actions,
        "horizon": horizon,
        "table_states": len(dead),
        "deadlock_rate": rate,
        "deadlock_at_timestep": stops,
        "mean_time_to_deadlock": times / rate if rate else None,
        "mean_timesteps": times + horizon * (1 - rate),
        "mean_throughput": throughput + meals.sum() / horizon,
    }
