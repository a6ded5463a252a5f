"""5: one step of the world, in the order of the original.

Axes: A agents, C cow slots, N = C0 + A + C1 actors in the order in which they act, W*H cells.
The map is written at three points only (place requests, collection, the players' own placements); in between it is
read at the few cells that matter.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.core import bits
from jaxcoop.core.batching import batch_alone, read, write
from jaxcoop.envs.macrafter import balance, players, requests
from jaxcoop.envs.macrafter.claims import Pair, occupancy, winners
from jaxcoop.envs.macrafter.collect import Collection, collect
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.objects import FEW, positions, touch, used_slots, with_ids
from jaxcoop.envs.macrafter.types import Command, Draws, State, Thing
from jaxcoop.envs.macrafter.updates import ahead_of, decide, intents, is_over, make, may_act, record, team_of, walkable


@struct.dataclass
class Advanced:
    """The result of a step."""

    state: State
    reward: Float[Array, " A"]
    died: Bool[Array, " A"]
    collection: Collection
    collector: Bool[Array, " A"]


def step(settings: Settings, state: State, actions: Int[Array, " A"] | Command, draws: Draws) -> Advanced:
    """Advance by one step; a state whose episode is over stays as it is, with reward 0.

    Any action outside 0..17 is a noop.
    """
    command = actions if isinstance(actions, Command) else None
    action = actions if command is None else command.action
    before = state.material.reshape(-1)
    cells, inventory, asked = before, state.inventory.astype(jnp.int16), None
    occupants = occupancy(settings, positions(settings, state))
    team = team_of(state)

    # S2, S3
    if command is not None:
        cells, inventory, asked = requests.carry_out(settings, command, state, occupants, ~is_over(settings, state))

    # S4, S5
    intent = batch_alone(partial(intents, settings))(team, action, asked)
    inside = jnp.minimum(intent.reach, jnp.int16(settings.cells - 1))
    ground, known = read(cells, inside), None if command is None else read(before, inside)
    found = read(occupants, inside)
    done, gone, byte = collect(settings, intent.reach, ground, known, found, inventory, intent.collector)
    cells = write(cells, gone, byte)
    is_eaten = done.is_collected & (done.code == Thing.COW)
    is_alive = (state.cow_x >= 0) & ~eaten(settings, jnp.where(is_eaten, done.occupant, 0))

    # S6, P1 to P3
    plans = batch_alone(partial(decide, settings))(team, inventory, intent, done, asked)
    left = jnp.where(is_eaten, done.cell, jnp.int16(settings.cells))
    occupants = write(occupants, jnp.concatenate([left, plans.grave[:, None]], axis=1), jnp.zeros_like(occupants[0]))

    # S8
    tries = is_alive & (draws.cow >= 0) & intent.live
    cow_x, cow_y, cow_inside, cow_cell = ahead_of(settings, state.cow_x, state.cow_y, draws.cow)
    cow_may = tries & cow_inside & walkable(read(cells, cow_cell, rows=True))
    around = read(cells, plans.looks)
    moves = batch_alone(partial(may_act, settings))(plans, around)
    won, claims = winners(
        settings, occupants, Pair(cow_cell, plans.cell), Pair(cow_may, moves.steps | moves.places), moves.steps
    )
    put = jnp.where(won.agents & moves.places, plans.cell, jnp.int16(settings.cells))
    nxt_cells = write(cells, put, moves.byte)
    seen = None
    if settings.agents > FEW:
        block = jnp.minimum(plans.block, jnp.int16(settings.cells - 1))
        seen = players.SeenAfter(read(nxt_cells, block), read(claims, block))
    gone = jnp.int16(-1)
    cow_x = jnp.where(is_alive, jnp.where(won.cows, cow_x, state.cow_x), gone)
    cow_y = jnp.where(is_alive, jnp.where(won.cows, cow_y, state.cow_y), gone)
    touched = touch(settings, state.touched, cow_x, cow_y, cow_x >= 0)
    made = batch_alone(partial(make, settings))(team, inventory, done, asked, plans, moves, won.agents, around, seen)
    held = batch_alone(players.inventory_after)(inventory, plans.updates, made.change, made.levels)
    kept = dataclasses.replace(team, touched=touched)
    nxt, ids = batch_alone(partial(record, settings))(kept, held, used_slots(state), intent, done, asked, plans, made)
    nxt = dataclasses.replace(
        nxt,
        material=nxt_cells.reshape(state.material.shape),
        cow_x=cow_x,
        cow_y=cow_y,
        cow_id=jnp.where(cow_x >= 0, state.cow_id, -1),
        attempts=state.attempts,
        table=state.table,
        furnace=state.furnace,
        plant=state.plant,
        plant_id=state.plant_id,
    )
    nxt = with_ids(nxt, ids)

    # S9
    if settings.balance:
        herd = balance.balance(
            nxt.material,
            balance.Herd(nxt.cow_x, nxt.cow_y, nxt.cow_id, nxt.next_id),
            nxt.x,
            nxt.y,
            nxt.touched,
            nxt.t,
            draws.balance,
            intent.live & (nxt.t % balance.EVERY == 0),
            settings.cow_slots[0],
        )
        nxt = dataclasses.replace(nxt, cow_x=herd.x, cow_y=herd.y, cow_id=herd.id, next_id=herd.next_id)
    return Advanced(nxt, plans.reward, plans.died, done, intent.collector)


def eaten(settings: Settings, occupants: Array) -> Bool[Array, " C"]:
    """Which cows were collected; `occupants` [A, R]: entries of the occupancy where a cow was collected, else 0."""
    slots = sum(settings.cow_slots)
    if occupants.size > 4 * FEW:
        return jnp.zeros((slots + 1,), jnp.bool_).at[occupants.reshape(-1)].set(True)[1:]
    return bits.unpack(batch_alone(partial(_cow_bits, bits.num_words(slots)))(occupants), slots)


def _cow_bits(num_words: int, occupants: Array) -> UInt32[Array, " N"]:
    """Numbers of the cows as bits of N words."""
    number = occupants.astype(jnp.int16) - 1
    bit = jnp.where(number >= 0, jnp.uint32(1) << (number & 31).astype(jnp.uint32), jnp.uint32(0))
    words = []
    for word in range(num_words):
        mine = jnp.where(number >> 5 == word, bit, jnp.uint32(0))
        words.append(jax.lax.reduce(mine, jnp.uint32(0), jax.lax.bitwise_or, (0, 1)))
    return jnp.stack(words)
