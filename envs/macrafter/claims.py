"""5, S8: actors act one after the other; who of them gets the cell that it wants.

Axes: A agents, C = C0 + C1 cow slots, N = C + A actors, W*H cells.
The order of acting is: C0 cows of the start, agents, C1 later cows.  In maps an actor has one more than its *number*:
cows have their slot, agents come behind them.  Cows and agents stay in arrays of their own, as joining them costs
more than working on both.

Every actor wants at most one cell: to step there or to place something there.  It gets it if nobody stands there when
its turn comes and nobody before it took it.  That is worked out for all actors at once, from two look-ups in a map of
their numbers, at a cost of O(N + W*H); only chains (one follows another that is leaving) need a round for each link.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

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


def turn_of(settings: Settings, number: Int[Array, "..."]) -> Int[Array, "..."]:
    """Place in the order of acting of an actor's number; int16."""
    first, late = settings.cow_slots
    cow = jnp.where(number < first, number, number + jnp.int16(settings.agents))
    return jnp.where(number < first + late, cow, number - jnp.int16(late))


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
    plane = plane.at[position.cows].set(jnp.arange(1, slots + 1, dtype=dtype), mode="drop")
    return plane.at[position.agents].set(jnp.arange(slots + 1, settings.actors + 1, dtype=dtype), mode="drop")


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
    size, nowhere = settings.actors, jnp.int16(settings.cells)
    turn = turns(settings)
    cells = (target.cows, target.agents)
    ahead = [occupants[cell].astype(jnp.int16) - 1 for cell in cells]
    # never anything but 0, but the compiler does not know: all is read before anything is written, so no copy is made
    zero = jnp.minimum(ahead[1][0] + 1, 0)
    claims, valid, claim = occupants, [], []
    for cell, number, wanted, own in zip(cells, ahead, (wants.cows, wants.agents), turn):
        valid.append(wanted & ((number < 0) | (turn_of(settings, number) < own.astype(np.int16))))
        # Numbers of claims lie above those of occupants, and the first claim has the largest.
        claim.append(jnp.asarray(2 * size + 1 - own, occupants.dtype))
        claims = claims.at[jnp.where(valid[-1], cell, nowhere) + zero].max(claim[-1], mode="drop")
    firsts = [ok & (claims[cell] == mark) for ok, mark, cell in zip(valid, claim, cells)]
    free = [number < 0 for number in ahead]
    followers = [first & ~empty for first, empty in zip(firsts, free)]
    won = [first & empty for first, empty in zip(firsts, free)]

    def following(won: list[Array]) -> list[Array]:
        """Followers of actors that have left."""
        left = jnp.concatenate([won[0], won[1] & leaves])
        return [follower & ~has & left[jnp.maximum(number, 0)] for follower, has, number in zip(followers, won, ahead)]

    def unlock(carry: tuple[list[Array], list[Array]]) -> tuple[list[Array], list[Array]]:
        won, new = carry
        won = [a | b for a, b in zip(won, new)]
        return won, following(won)

    start = unlock((won, following(won)))  # one round for everybody, since a loop costs more than a round
    won, _ = jax.lax.while_loop(lambda carry: carry[1][0].any() | carry[1][1].any(), unlock, start)
    return Pair(*won), claims


def winning_turn(settings: Settings, claims: Array) -> Int[Array, "..."]:
    """Turn of the first actor that claimed a cell, from entries of the map of claims; N if nobody did; int32."""
    value = claims.astype(jnp.int32)
    return jnp.where(value > settings.actors, 2 * settings.actors + 1 - value, settings.actors)
