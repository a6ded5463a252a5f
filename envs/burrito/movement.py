"""3.2: who may go where.

Axes: A players, then those of a batch.

Of the players who want to go, the largest set that fits is chosen, one at random if there are several.  Who goes into a
cell that somebody leaves depends on that one, who depends on the next, and so on: chains, which end at a free cell, at
somebody who stays, or in a circle.  Whoever depends on somebody who stays has to stay; circles of three or more turn;
and of the chains that end at the same free cell one of the longest goes.  Free cells do not affect each other, so the
sets that fit best are all combinations of these choices, and drawing each of them uniformly draws the whole so.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from jaxcoop.core.batching import along


def moving(cell: Int[Array, " A"], want: Int[Array, " A"], priority: UInt32[Array, " A"]) -> Bool[Array, " A"]:
    """Who moves from `cell` to `want`; players who want their own cell stay.

    Of equally long chains to one cell the one goes whose last player has the largest priority, or the lowest index.
    """
    return _pair(cell, want, priority) if cell.shape[0] == 2 else _team(cell, want, priority)


def _pair(cell: Array, want: Array, priority: Array) -> Array:
    """The same for two players."""
    goes = [want[k] != cell[k] for k in range(2)]
    follows = [want[k] == cell[1 - k] for k in range(2)]  # goes where the other one stands
    swaps = follows[0] & follows[1]
    clash = (want[0] == want[1]) & goes[0] & goes[1]
    is_first = priority[0] >= priority[1]
    wins = (is_first, ~is_first)
    return jnp.stack([goes[k] & ~swaps & ~(follows[k] & ~goes[1 - k]) & ~(clash & ~wins[k]) for k in range(2)])


def _team(cell: Array, want: Array, priority: Array) -> Array:
    """The same for any number of players."""
    team = cell.shape[0]
    goes = want != cell
    # after[i, k]: i goes where k stands.
    after = (want[:, None] == cell[None]) & goes[:, None]
    stays_ahead = (after & ~goes[None]).any(1)
    ids = along(np.arange(team), after) == along(np.arange(team), after, axis=1)
    at, path = jnp.broadcast_to(ids, after.shape), jnp.broadcast_to(ids, after.shape)
    length = jnp.ones(cell.shape, jnp.int32)
    blocked = stays_ahead
    for _ in range(team):
        # One player on for each chain at once; `at` becomes empty where it has ended.
        at = (at[:, :, None] & after[None]).any(1)
        path |= at
        blocked |= (at & stays_ahead[None]).any(1)
        length += at.any(1)
    circles = at.any(1)
    straight = goes & ~circles & ~blocked
    end = (path & ~after.any(1)[None]).astype(jnp.int32)
    root = jnp.where(straight, (end * want[None]).sum(1), -1)
    rival = (root[:, None] == root[None]) & straight[:, None] & straight[None]
    longer = length[None] > length[:, None]
    lower = along(np.arange(team), rival, axis=1) < along(np.arange(team), rival)
    ahead = (priority[None] > priority[:, None]) | ((priority[None] == priority[:, None]) & lower)
    beaten = (rival & (longer | ((length[None] == length[:, None]) & ahead))).any(1)
    goes_straight = (path & (straight & ~beaten)[:, None]).any(0)
    # In a circle of two or more: k comes back to itself; two cannot change places.
    swaps = (after & jnp.swapaxes(after, 0, 1)).any(1)
    turns = _comes_back(after) & ~swaps
    return goes_straight | turns


def _comes_back(after: Bool[Array, "A A"]) -> Bool[Array, " A"]:
    """Who depends on itself."""
    team = after.shape[0]
    at, back = after, jnp.zeros(after.shape[1:], jnp.bool_)
    own = along(np.arange(team), after) == along(np.arange(team), after, axis=1)
    for _ in range(team):
        back |= (at & own).any(1)
        at = (at[:, :, None] & after[None]).any(1)
    return back
