"""Who goes where at the least total cost: agents to the cells of a face, with the published tie-breaks.

Axes: A agents in order of preference, F cells, M = 2^F sets of cells (bit f: cell f is still to be filled).
Numbers are sections of docs/coop2_repair.md.

The published search lists all teams and all ways to place them (9).  Here the cheapest completion of every set of
cells by the agents from the i-th on is tabulated backward, which finds the same winner for any number of agents.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

NEVER = 2**20
"""Cost of what cannot be done; real ones are far below."""

MOST_CELLS = 6
"""F at most: 64 sets of cells."""


def cheapest(cost: Int[Array, "A F"], cells: Int[Array, ""]) -> tuple[Bool[Array, ""], Int[Array, " A"]]:
    """(is there a way, the cell of each agent or -1) to fill the cells from 0 to `cells` - 1, one agent each.

    Least in total; of equal ones the first by the tuple of agents, then by the tuple of their cells.
    """
    everything = (jnp.int32(1) << cells) - 1
    table = _completions(cost)
    is_possible = table[0, everything] < NEVER
    is_taken = _team(cost, table, everything) & is_possible
    team_cost = jnp.where(is_taken[:, None], cost, NEVER)
    cell = _places(team_cost, _completions(team_cost), everything)
    return is_possible, jnp.where(is_taken, cell, -1)


def _choices(cost: Int[Array, " F"], later: Int[Array, " M"]) -> Int[Array, "M F"]:
    """Total cost for each set if one agent takes each cell of it and later ones fill the rest."""
    sets = np.arange(later.shape[0])[:, None]
    bits = 1 << np.arange(cost.shape[0])
    total = cost + later[sets & ~bits]
    return jnp.where((sets & bits) > 0, jnp.minimum(total, NEVER), NEVER)


def _completions(cost: Int[Array, "A F"]) -> Int[Array, "A1 M"]:
    """Row i: the least cost of filling each set with agents from the i-th on; the last row is for nobody."""
    sets = 1 << cost.shape[1]
    nobody = jnp.full((sets,), NEVER, jnp.int32).at[0].set(0)

    def add(later: Array, one: Array) -> tuple[Array, Array]:
        now = jnp.minimum(later, _choices(one, later).min(1))
        return now, now

    _, rows = jax.lax.scan(add, nobody, cost, reverse=True)
    return jnp.concatenate([rows, nobody[None]])


def _team(cost: Int[Array, "A F"], table: Int[Array, "A1 M"], everything: Int[Array, ""]) -> Bool[Array, " A"]:
    """The first team by its tuple: whoever can take part at the least cost, given those before, does.

    Which cells are filled may be open for a while, so all sets are kept that the least cost allows.
    """
    sets = table.shape[1]
    left_of = np.arange(sets)[:, None] & ~(1 << np.arange(cost.shape[1]))  # set without each cell

    def visit(open_sets: Bool[Array, " M"], rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        one, now, later = rows
        takes = (_choices(one, later) == now[:, None]) & (now < NEVER)[:, None] & open_sets[:, None]  # [M, F]
        rest = jnp.zeros((sets,), jnp.bool_).at[left_of].max(takes)
        can = takes.any()
        return jnp.where(can, rest, open_sets), can

    start = jnp.arange(sets, dtype=jnp.int32) == everything
    _, is_taken = jax.lax.scan(visit, start, (cost, table[:-1], table[1:]))
    return is_taken


def _places(cost: Int[Array, "A F"], table: Int[Array, "A1 M"], everything: Int[Array, ""]) -> Int[Array, " A"]:
    """The first cell for each member in turn with which the team still comes at the least cost; -1 for others."""

    def visit(left: Int[Array, ""], rows: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        one, now, later = rows
        fits = (_choices(one, later)[left] == now[left]) & (now[left] < NEVER)
        cell = jnp.where(fits.any(), jnp.argmax(fits).astype(jnp.int32), -1)
        return jnp.where(cell >= 0, left & ~(1 << jnp.maximum(cell, 0)), left), cell

    _, cell = jax.lax.scan(visit, everything, (cost, table[:-1], table[1:]))
    return cell
