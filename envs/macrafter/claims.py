"""5, S8: actors act one after the other; who of them gets the cell that it wants.

Axes: A agents, C = C0 + C1 cow slots, N = C + A actors, W*H cells.
The order of acting is: C0 cows of the start, agents, C1 later cows.  In maps an actor has one more than its *number*:
cows have their slot, agents come behind them.  Cows and agents stay in arrays of their own, as joining them costs
more than working on both.

Every actor wants at most one cell: to step there or to place something there.  It gets it if nobody stands there when
its turn comes and nobody before it took it.  That is worked out for all actors at once, from two look-ups in a map of
their numbers, at a cost of O(N + W*H); only chains (one follows another that is leaving) need a round for each link.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.core.batching import batch_alone, read, write
from jaxcoop.envs.macrafter.config import Settings


@struct.dataclass
class Pair:
    """An array for the cows [C] and one for the agents [A]."""

    cows: Array
    agents: Array


def turns(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Place in the order of acting of each cow slot and of each agent."""
    first, late = settings.cow_slots
    slots = np.arange(first + late)
    return np.where(slots < first, slots, slots + settings.agents), first + np.arange(settings.agents)


def plane_type(settings: Settings) -> type:
    """The smallest integer type that holds twice the number of actors."""
    return jnp.uint8 if 2 * settings.actors + 1 < 256 else jnp.int16


def occupancy(settings: Settings, position: Pair) -> Array:
    """One more than the number of the actor in each cell [W*H], 0 for none; plants are not counted.

    `position`: cells of all actors, W*H for those that are not in the world.
    """
    dtype = plane_type(settings)
    slots = position.cows.shape[0]
    plane = jnp.zeros((settings.cells,), dtype)
    plane = write(plane, position.cows, jnp.arange(1, slots + 1, dtype=dtype), rows=True)
    return write(plane, position.agents, jnp.arange(slots + 1, settings.actors + 1, dtype=dtype), rows=True)


def is_cow(settings: Settings, occupant: Array) -> Bool[Array, "..."]:
    """Whether an entry of `occupancy` is a cow."""
    return (occupant > 0) & (occupant <= sum(settings.cow_slots))


def is_agent(settings: Settings, occupant: Array) -> Bool[Array, "..."]:
    """Whether an entry of `occupancy` is an agent."""
    return occupant > sum(settings.cow_slots)


def winners(
    settings: Settings, occupants: Array, target: Pair, wants: Pair, leaves: Bool[Array, " A"]
) -> tuple[Pair, Array]:
    """Which actors get the cell that they want; also who may have won each cell, as `winning_turn` reads it.

    `occupants`: `occupancy` before anybody acts.  `target`: cell index, valid where `wants`.  `wants`: nothing but
    other actors can be in the way.  `leaves`: the agent's own cell becomes free when it succeeds; a cow's does.

    The cell of an actor that stays, or whose turn comes later, goes to nobody; any other cell goes to the first
    who acts after its occupant has left.
    """
    nowhere = jnp.int16(settings.cells)
    dtype = occupants.dtype
    turn = Pair(*(jnp.asarray(own + 1, dtype) for own in turns(settings)))
    # Numbers of claims lie above those of occupants, and the first claim has the largest.
    mark = Pair(*(jnp.asarray(2 * settings.actors + 1 - own, dtype) for own in turns(settings)))
    valid_cows, valid_agents = partial(_valid, settings), batch_alone(partial(_valid, settings))
    there = Pair(read(occupants, target.cows, rows=True), read(occupants, target.agents))
    # never anything but 0, but the compiler does not know: all is read before anything is written, so no copy is made
    zero = jnp.minimum(there.agents[0], 0).astype(jnp.int16)
    valid = Pair(valid_cows(there.cows, wants.cows, turn.cows), valid_agents(there.agents, wants.agents, turn.agents))
    claims = write(occupants, jnp.where(valid.cows, target.cows, nowhere) + zero, mark.cows, rows=True, largest=True)
    claims = write(claims, jnp.where(valid.agents, target.agents, nowhere), mark.agents, largest=True)
    top = Pair(read(claims, target.cows, rows=True), read(claims, target.agents))
    first = jax.tree.map(lambda ok, mine, best: ok & (mine == best), valid, mark, top)
    won = jax.tree.map(lambda mine, number: mine & (number == 0), first, there)
    followers = jax.tree.map(lambda mine, number: mine & (number > 0), first, there)

    def following(won: Pair) -> Pair:
        """Followers of actors that have left."""
        left = jnp.concatenate([won.cows, won.agents & leaves])
        last = jnp.maximum(there.cows, 1) - 1, jnp.maximum(there.agents, 1) - 1
        return Pair(
            followers.cows & ~won.cows & read(left, last[0], rows=True),
            followers.agents & ~won.agents & read(left, last[1]),
        )

    def unlock(carry: tuple[Pair, Pair]) -> tuple[Pair, Pair]:
        won = jax.tree.map(jnp.bitwise_or, *carry)
        return won, following(won)

    start = unlock((won, following(won)))  # one round for everybody, since a loop costs more than a round
    won, _ = jax.lax.while_loop(lambda carry: carry[1].cows.any() | carry[1].agents.any(), unlock, start)
    return won, claims


def _valid(settings: Settings, occupant: Array, wants: Bool[Array, "..."], turn: Array) -> Bool[Array, "..."]:
    """Whether a cell is free when an actor's turn comes, or at least its occupant has had its own.

    `turn`: one more than the place in the order of acting, so that nobody (0) is always early enough.
    """
    first, late = settings.cow_slots
    unit = occupant.dtype.type
    acts = jnp.where(occupant <= first + late, occupant + unit(settings.agents), occupant - unit(late))
    acts = jnp.where(occupant <= first, occupant, acts)
    return wants & (acts < turn)


def winning_turn(settings: Settings, claims: Array) -> Int[Array, "..."]:
    """Turn of the first actor that claimed a cell, from entries of the map of claims; N if nobody did; int32."""
    value = claims.astype(jnp.int32)
    return jnp.where(value > settings.actors, 2 * settings.actors + 1 - value, settings.actors)
