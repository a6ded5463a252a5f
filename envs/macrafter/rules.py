"""5: one step of the world, in the order of the original.

Axes: A agents, C cow slots, N = C0 + A + C1 actors in the order in which they act, W*H cells.
The map is written at three points only (place requests, collection, the players' own placements); in between it is
read at the few cells that matter.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxcoop.envs.macrafter import balance, players, requests, rewards
from jaxcoop.envs.macrafter.claims import Pair, occupancy, winners
from jaxcoop.envs.macrafter.collect import YIELDS, Collection, collect, consumed
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.fences import once
from jaxcoop.envs.macrafter.objects import FEW, positions, touch, with_ids
from jaxcoop.envs.macrafter.outcomes import Requests, last_of
from jaxcoop.envs.macrafter.players import crafted, near_stations, risen, sleep_first
from jaxcoop.envs.macrafter.types import (
    DELTA_X,
    DELTA_Y,
    MATERIAL_MASK,
    PLACES,
    PLANT_BIT,
    Achievement,
    Action,
    Command,
    Draws,
    Item,
    Material,
    State,
    Thing,
    material_of,
)


@struct.dataclass
class Advanced:
    """The result of a step."""

    state: State
    reward: Float[Array, " A"]
    died: Bool[Array, " A"]
    collection: Collection
    collector: Bool[Array, " A"]


def is_over(settings: Settings, state: State) -> Bool[Array, ""]:
    """13: the runner stops at the first death or diamond (options) and at the step limit."""
    over = state.t >= settings.max_steps
    if settings.end_on_death:
        over = over | (state.removed & (state.x >= 0)).any()  # not: never had a cell
    if settings.terminate_on_diamond:
        over = over | (state.achievements[:, Achievement.COLLECT_DIAMOND] > 0).any()
    return over


def walkable(cell: UInt8[Array, "..."], lava: bool = False) -> Bool[Array, "..."]:
    """1: whether the ground of a cell can be stepped on and no plant stands there."""
    ground = cell & (PLANT_BIT | MATERIAL_MASK)  # what a cell once held does not matter
    ok = (ground == Material.GRASS) | (ground == Material.PATH) | (ground == Material.SAND)
    return ok | (ground == Material.LAVA) if lava else ok


def step(settings: Settings, state: State, actions: Int[Array, " A"] | Command, draws: Draws) -> Advanced:
    """Advance by one step; a state whose episode is over stays as it is, with reward 0.

    Any action outside 0..17 is a noop.
    """
    if isinstance(actions, Command):
        command, action = actions, actions.action
    else:
        command, action = None, actions
    action = jnp.where((action >= 0) & (action <= Action.SHARE), action, Action.NOOP).astype(jnp.int32)
    live_now = ~is_over(settings, state)
    listed = ~state.removed & live_now
    inventory = state.inventory.astype(jnp.int32)
    cells = state.material.reshape(-1)
    occupants = occupancy(settings, positions(settings, state))

    # S2, S3, S4
    asked = Requests.none(settings.agents)
    if command is not None:
        inventory, share_reason, shared = requests.share(command.share, inventory, listed)
        cells, inventory, place_reason, placed = requests.place(
            settings, cells, occupants, command.place, state.x, state.y, state.facing, inventory, listed
        )
        asked = Requests((command.place >= 0) & listed, command.place, place_reason, placed, share_reason, shared)
    is_place = (action >= Action.PLACE_STONE) & (action <= Action.PLACE_PLANT)
    collector = listed & (action == Action.DO)
    effective = jnp.where(listed & ~collector & ~(is_place & asked.has_place), action, Action.NOOP)

    effective = once(effective, state.t)

    # S5
    done = collect(settings, cells, occupants, state.x, state.y, inventory, collector, state.t)
    cells = consumed(settings, cells, state.material.reshape(-1), done)
    is_eaten = done.is_collected & (done.code == Thing.COW)
    occupants = occupants.at[jnp.where(is_eaten, done.cell, jnp.int16(settings.cells))].set(0, mode="drop")
    is_alive = (state.cow_x >= 0) & ~eaten(settings, once(jnp.where(is_eaten, done.occupant, 0), state.t))

    # S6
    early = risen(jnp.zeros_like(action), asked.placed >= 0, asked.place, jnp.zeros_like(listed))
    # collectors do nothing else in a step, so what they gained matters at its end only
    has = once(rewards.bits_of(state.achievements) | done.risen() | early, state.t)
    pay = rewards.non_collector_pay(effective, listed & ~collector, has, inventory, state.paid, state.unlocked)
    if settings.team_score:
        points = done.half_points(settings).astype(jnp.float32) * 0.5
        reward, score = pay.reward + points, state.score + points.sum()
    else:
        amounts = {kind: number * YIELDS[kind][1] for kind, number in done.units().items()}
        reward, score = pay.reward + rewards.collector_units(amounts), state.score
    died = listed & ~collector & (inventory[:, Item.HEALTH] <= 0)
    updates = listed & ~died
    grave = jnp.where(died, state.x * settings.height + state.y, jnp.int16(settings.cells))
    occupants = occupants.at[grave].set(0, mode="drop")

    # S8
    effective, sleeping, wakes = sleep_first(effective, updates, state.sleeping, inventory[:, Item.ENERGY])
    effective, sleeping, wakes, updates = once((effective, sleeping, wakes, updates), state.t)
    moved = move(settings, state, cells, occupants, is_alive, updates, live_now, effective, inventory, draws)
    near = near_stations(settings, cells, moved.cells, moved.claims, state.x, state.y)
    made = once(crafted(jnp.where(updates, effective, Action.NOOP), near, inventory), state.t)
    placed = jnp.where(asked.placed >= 0, asked.placed, moved.placed)
    what = jnp.where(asked.placed >= 0, asked.place, effective - Action.PLACE_STONE)
    once_each = once(risen(made, placed >= 0, what, wakes), state.t)
    levels = players.live(settings, sleeping, inventory[:, :4], state.counters, moved.burns, done.units())
    levels, counters = once((players.packed_levels(levels[0]), levels[1]), state.t)
    used = once(players.change(made, moved.placed >= 0, effective - Action.PLACE_STONE, done.units()), state.t)
    inventory = players.inventory_after(inventory, updates, used, levels)
    is_hurt = updates & (inventory[:, Item.HEALTH] < state.last_health)
    removed = state.removed | died
    is_planted = (placed >= 0) & (what == PLACES.index("plant"))
    touched = touch(
        settings,
        state.touched,
        jnp.concatenate([moved.cow_x, moved.x, placed // settings.height]),
        jnp.concatenate([moved.cow_y, moved.y, placed % settings.height]),
        jnp.concatenate([moved.cow_x >= 0, updates, is_planted]),
    )
    t = state.t + live_now.astype(jnp.int32)
    nxt = dataclasses.replace(
        state,
        material=moved.cells.reshape(state.material.shape),
        cow_x=moved.cow_x,
        cow_y=moved.cow_y,
        cow_id=jnp.where(moved.cow_x >= 0, state.cow_id, -1),
        x=moved.x,
        y=moved.y,
        facing=moved.facing,
        inventory=inventory,
        achievements=state.achievements + done.achievements() + as_counts(once_each),
        counters=jnp.where(updates[:, None], counters, state.counters),
        sleeping=sleeping & ~is_hurt,
        last_health=jnp.where(updates, inventory[:, Item.HEALTH], state.last_health),
        removed=removed,
        paid=pay.paid,
        unlocked=pay.unlocked,
        touched=touched,
        t=t,
        score=score,
    )
    nxt = with_ids(nxt, placed, what, asked.placed >= 0)

    # S9
    if settings.balance:
        herd = balance.balance(
            nxt.material,
            balance.Herd(nxt.cow_x, nxt.cow_y, nxt.cow_id, nxt.next_id),
            nxt.x,
            nxt.y,
            touched,
            t,
            draws.balance,
            live_now & (t % balance.EVERY == 0),
            settings.cow_slots[0],
        )
        nxt = dataclasses.replace(nxt, cow_x=herd.x, cow_y=herd.y, cow_id=herd.id, next_id=herd.next_id)

    # S10
    last = last_of(state, inventory, action, listed, done, asked, placed, made, done.risen() | once_each, live_now)
    return Advanced(dataclasses.replace(nxt, last=last), reward, died, done, collector)


@struct.dataclass
class Moved:
    """What moving and placing changes."""

    cells: UInt8[Array, " W*H"]
    claims: Array  # who won each cell, see `claims.winner_of`
    cow_x: Int[Array, " C"]
    cow_y: Int[Array, " C"]
    x: Int[Array, " A"]
    y: Int[Array, " A"]
    facing: Int[Array, " A"]
    placed: Int[Array, " A"]  # cell where the agent itself placed something, -1 none; int16
    burns: Bool[Array, " A"]  # moved in lava


def move(
    settings: Settings,
    state: State,
    cells: UInt8[Array, " W*H"],
    occupants: Array,
    is_alive: Bool[Array, " C"],
    updates: Bool[Array, " A"],
    live_now: Bool[Array, ""],
    action: Int[Array, " A"],
    inventory: Int[Array, "A 16"],
    draws: Draws,
) -> Moved:
    """S8 as far as actors get into each other's way: cows step, players step or place what they carry."""
    is_move = updates & (action >= Action.MOVE_LEFT) & (action <= Action.MOVE_DOWN)
    is_place = updates & (action >= Action.PLACE_STONE) & (action <= Action.PLACE_PLANT)
    what = action - Action.PLACE_STONE
    turn = jnp.where(is_move, (action - Action.MOVE_LEFT).astype(jnp.int8), state.facing)
    tries = is_alive & (draws.cow >= 0) & live_now
    cow_x, cow_y, cow_inside, cow_cell = ahead_of(settings, state.cow_x, state.cow_y, draws.cow)
    tx, ty, inside, cell = ahead_of(settings, state.x, state.y, turn)
    cow_may = tries & cow_inside & walkable(cells[cow_cell])
    ground = cells[cell]
    material = material_of(ground)
    may_place = (
        is_place
        & inside
        & (ground < PLANT_BIT)
        & requests.allowed_ground(what, material)
        & requests.has_ingredients(what, inventory)
    )
    may_step = is_move & inside & walkable(ground, lava=True)
    won, claims = winners(settings, occupants, Pair(cow_cell, cell), Pair(cow_may, may_step | may_place), may_step)
    stepped, put = won.agents & may_step, won.agents & may_place
    written = jnp.where(put, cell, jnp.int16(settings.cells))
    own = jnp.maximum(state.x, 0) * settings.height + jnp.maximum(state.y, 0)
    gone = jnp.int16(-1)
    return Moved(
        cells=cells.at[written].set(requests.placed_byte(what, ground), mode="drop"),
        claims=claims,
        cow_x=jnp.where(is_alive, jnp.where(won.cows, cow_x, state.cow_x), gone),
        cow_y=jnp.where(is_alive, jnp.where(won.cows, cow_y, state.cow_y), gone),
        x=jnp.where(stepped, tx, state.x),
        y=jnp.where(stepped, ty, state.y),
        facing=turn,
        placed=jnp.where(put, cell, gone),
        burns=is_move & (jnp.where(stepped, material, material_of(cells[own])) == Material.LAVA),
    )


def as_counts(bits: UInt32[Array, " A"]) -> Int[Array, "A 22"]:
    """1 for each bit; int16."""
    return ((bits[:, None] >> jnp.arange(len(Achievement), dtype=jnp.uint32)) & 1).astype(jnp.int16)


def eaten(settings: Settings, occupants: Array) -> Bool[Array, " C"]:
    """Which cows were collected; `occupants` [A, R]: entries of the occupancy where a cow was collected, else 0."""
    slots = sum(settings.cow_slots)
    who = occupants.reshape(-1)
    if who.shape[0] > 4 * FEW:
        return jnp.zeros((slots + 1,), jnp.bool_).at[who].set(True)[1:]
    entry = jnp.arange(1, slots + 1, dtype=who.dtype)
    gone = jnp.zeros((slots,), jnp.bool_)
    for k in range(who.shape[0]):
        gone = gone | (entry == who[k])
    return gone


def ahead_of(settings: Settings, x: Array, y: Array, direction: Array) -> tuple[Array, Array, Array, Array]:
    """The cell ahead of (x, y): its x and y, whether it is inside the world, its index (else 0); int16."""
    tx, ty = x + steps(direction, DELTA_X), y + steps(direction, DELTA_Y)
    inside = (tx >= 0) & (tx < settings.width) & (ty >= 0) & (ty < settings.height)
    return tx, ty, inside, jnp.where(inside, tx * settings.height + ty, jnp.int16(0))


def steps(direction: Int[Array, "..."], table: np.ndarray) -> Int[Array, "..."]:
    """Entries of `DELTA_X` or `DELTA_Y` by comparison, which vectorises where a look-up does not; int16."""
    out = jnp.zeros(direction.shape, jnp.int16)
    for number, value in enumerate(table.tolist()):
        if value:
            out = jnp.where(direction == number, jnp.int16(value), out)
    return out
