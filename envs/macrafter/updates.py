"""S4 to S10: what each agent does in a step, apart from the map and from the cows.

Axes: A agents, R cells in reach; further axes are those of a batch (`jaxcoop.core.batching`).
What the map says comes in as the bytes of the cells that matter; what changes on it goes out as cells and bytes.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt8, UInt32

from jaxcoop.core.batching import along
from jaxcoop.envs.macrafter import players, requests, rewards
from jaxcoop.envs.macrafter.collect import YIELDS, Collection, reach
from jaxcoop.envs.macrafter.config import Settings
from jaxcoop.envs.macrafter.objects import NewIds, new_ids, touch
from jaxcoop.envs.macrafter.outcomes import Intent, Requests, last_of
from jaxcoop.envs.macrafter.players import crafted, near_stations, risen, sleep_first
from jaxcoop.envs.macrafter.types import (
    DELTA_X,
    DELTA_Y,
    MATERIAL_MASK,
    PLACES,
    PLANT_BIT,
    Achievement,
    Action,
    Item,
    Material,
    State,
    material_of,
)


def is_over(settings: Settings, state: State) -> Bool[Array, ""]:
    """13: the runner stops at the first death or diamond (options) and at the step limit."""
    over = state.t >= settings.max_steps
    if settings.end_on_death:
        over = over | (state.removed & (state.x >= 0)).any(0)  # not: never had a cell
    if settings.terminate_on_diamond:
        over = over | (state.achievements[:, Achievement.COLLECT_DIAMOND] > 0).any(0)
    return over


def walkable(cell: UInt8[Array, "..."], lava: bool = False) -> Bool[Array, "..."]:
    """1: whether the ground of a cell can be stepped on and no plant stands there."""
    ground = cell & (PLANT_BIT | MATERIAL_MASK)  # what a cell once held does not matter
    ok = (ground == Material.GRASS) | (ground == Material.PATH) | (ground == Material.SAND)
    return ok | (ground == Material.LAVA) if lava else ok


def team_of(state: State) -> State:
    """The state without what stays in the order of its own: map, cows, lists of ids, totals (all None)."""
    none = dict.fromkeys(("material", "cow_x", "cow_y", "cow_id", "table", "furnace", "plant", "plant_id", "attempts"))
    return dataclasses.replace(state, **none)


def intents(settings: Settings, team: State, action: Int[Array, " A"], asked: Requests | None) -> Intent:
    """S4: collectors do nothing else; who placed by request does not place once more."""
    action = jnp.where((action >= 0) & (action <= Action.SHARE), action, Action.NOOP).astype(jnp.int8)
    live = ~is_over(settings, team)
    listed = ~team.removed & live
    collector = listed & (action == Action.DO)
    acts = listed & ~collector
    if asked is not None:
        acts &= ~((action >= Action.PLACE_STONE) & (action <= Action.PLACE_PLANT) & asked.has_place)
    effective = jnp.where(acts, action, jnp.int8(Action.NOOP))
    return Intent(live, action, effective, listed, collector, reach(settings, team.x, team.y))


@struct.dataclass
class Plans:
    """What agents are about to do after the collection."""

    reward: Float[Array, " A"]
    score: Float[Array, ""]
    paid: Int[Array, "A 5"]
    unlocked: UInt32[Array, ""]
    died: Bool[Array, " A"]
    grave: Int[Array, " A"]  # cell that a dead agent leaves, W*H none; int16
    updates: Bool[Array, " A"]
    effective: Int[Array, " A"]  # int8
    sleeping: Bool[Array, " A"]
    wakes: Bool[Array, " A"]
    facing: Int[Array, " A"]
    x: Int[Array, " A"]  # cell ahead, int16
    y: Int[Array, " A"]
    cell: Int[Array, " A"]  # its index, 0 if it is outside
    steps: Bool[Array, " A"]  # wants to step ahead, or to place something there; the cell is inside
    places: Bool[Array, " A"]
    block: Int[Array, "A 9"]  # from `players.neighbourhood`
    looks: Int[Array, "A 11"]  # cells to look at: ahead, own, `block`; those outside are replaced


def decide(
    settings: Settings,
    team: State,
    inventory: Int[Array, "A 16"],
    intent: Intent,
    done: Collection,
    asked: Requests | None,
) -> Plans:
    """S6 and the first part of S8: rewards, who dies, who sleeps, who wants which cell."""
    listed, collector = intent.listed, intent.collector
    # collectors do nothing else in a step, so what they gained matters at its end only
    has = rewards.bits_of(team.achievements) | done.risen()
    if asked is not None:
        has |= risen(jnp.zeros_like(intent.action), asked.placed >= 0, asked.place, jnp.zeros_like(listed))
    pay = rewards.non_collector_pay(intent.effective, listed & ~collector, has, inventory, team.paid, team.unlocked)
    if settings.team_score:
        points = done.half_points(settings).astype(jnp.float32) * 0.5
        reward, score = pay.reward + points, team.score + points.sum(0)
    else:
        amounts = {kind: number * YIELDS[kind][1] for kind, number in done.units().items()}
        reward, score = pay.reward + rewards.collector_units(amounts), team.score
    died = listed & ~collector & (inventory[:, Item.HEALTH] <= 0)
    updates = listed & ~died
    effective, sleeping, wakes = sleep_first(intent.effective, updates, team.sleeping, inventory[:, Item.ENERGY])
    is_move = updates & (effective >= Action.MOVE_LEFT) & (effective <= Action.MOVE_DOWN)
    facing = jnp.where(is_move, effective - jnp.int8(Action.MOVE_LEFT), team.facing)
    x, y, inside, cell = ahead_of(settings, team.x, team.y, facing)
    is_place = updates & (effective >= Action.PLACE_STONE) & (effective <= Action.PLACE_PLANT)
    has_all = requests.has_ingredients(effective - jnp.int8(Action.PLACE_STONE), inventory)
    own = jnp.maximum(team.x, 0) * settings.height + jnp.maximum(team.y, 0)
    block = players.neighbourhood(settings, team.x, team.y)
    within = jnp.minimum(block, jnp.int16(settings.cells - 1))
    return Plans(
        reward=reward,
        score=score,
        paid=pay.paid,
        unlocked=pay.unlocked,
        died=died,
        grave=jnp.where(died, own, jnp.int16(settings.cells)),
        updates=updates,
        effective=effective,
        sleeping=sleeping,
        wakes=wakes,
        facing=facing,
        x=x,
        y=y,
        cell=cell,
        steps=is_move & inside,
        places=is_place & inside & has_all,
        block=block,
        looks=jnp.concatenate([cell[:, None], own[:, None], within], axis=1),
    )


@struct.dataclass
class Moves:
    """What the ground allows of the plans."""

    steps: Bool[Array, " A"]
    places: Bool[Array, " A"]
    byte: UInt8[Array, " A"]  # of the cell ahead, once something is placed there


def may_act(settings: Settings, plans: Plans, around: UInt8[Array, "A 11"]) -> Moves:
    """Who can step or place; `around`: bytes of `plans.looks`."""
    del settings
    ground = around[:, 0]
    what = plans.effective - jnp.int8(Action.PLACE_STONE)
    return Moves(
        steps=plans.steps & walkable(ground, lava=True),
        places=plans.places & (ground < PLANT_BIT) & requests.allowed_ground(what, material_of(ground)),
        byte=requests.placed_byte(what, ground),
    )


@struct.dataclass
class Made:
    """What becomes of the plans."""

    x: Int[Array, " A"]
    y: Int[Array, " A"]
    made: Int[Array, " A"]  # from `players.crafted`
    placed: Int[Array, " A"]  # cell where the agent placed something, by request or not, -1 none; int16
    what: Int[Array, " A"]  # number in `PLACES`
    rise: UInt32[Array, " A"]  # achievements that rise by one, as bits, but for those of collecting
    change: tuple[UInt32[Array, " A"], UInt32[Array, " A"]]  # from `players.change`
    levels: UInt32[Array, " A"]  # from `players.packed_levels`
    counters: Int[Array, "A 4"]


def make(
    settings: Settings,
    team: State,
    inventory: Int[Array, "A 16"],
    done: Collection,
    asked: Requests | None,
    plans: Plans,
    moves: Moves,
    won: Bool[Array, " A"],
    around: UInt8[Array, "A 11"],
    seen: players.SeenAfter | None,
) -> Made:
    """The rest of S8: what agents make and how they fare, once it is known who `won` the cell that it wants."""
    updates, effective = plans.updates, plans.effective
    stepped, put = won & moves.steps, won & moves.places
    what = effective - jnp.int8(Action.PLACE_STONE)
    if seen is None:
        station = jnp.where(what == PLACES.index("table"), jnp.uint8(Material.TABLE), jnp.uint8(0))
        station = jnp.where(what == PLACES.index("furnace"), jnp.uint8(Material.FURNACE), station)
        late = players.PlacedNow(team.x, team.y, plans.x, plans.y, jnp.where(put, station, jnp.uint8(0)))
    else:
        late = seen
    near = near_stations(settings, plans.block, around[:, 2:], late)
    made = crafted(jnp.where(updates, effective, jnp.int8(Action.NOOP)), near, inventory)
    placed = jnp.where(put, plans.cell, jnp.int16(-1))
    change = players.change(made, put, what, done.units())
    if asked is not None:
        is_early = asked.placed >= 0
        placed, what = jnp.where(is_early, asked.placed, placed), jnp.where(is_early, asked.place, what)
    is_walk = updates & (effective >= Action.MOVE_LEFT) & (effective <= Action.MOVE_DOWN)
    ground = material_of(jnp.where(stepped, around[:, 0], around[:, 1]))
    levels, counters = players.live(
        settings, plans.sleeping, inventory[:, :4], team.counters, is_walk & (ground == Material.LAVA), done.units()
    )
    return Made(
        x=jnp.where(stepped, plans.x, team.x),
        y=jnp.where(stepped, plans.y, team.y),
        made=made,
        placed=placed,
        what=what,
        rise=risen(made, placed >= 0, what, plans.wakes),
        change=change,
        levels=players.packed_levels(levels),
        counters=counters,
    )


def record(
    settings: Settings,
    team: State,
    inventory: Int[Array, "A 16"],
    used: dict[str, Int[Array, ""]],
    intent: Intent,
    done: Collection,
    asked: Requests | None,
    plans: Plans,
    made: Made,
) -> tuple[State, NewIds]:
    """S10: the team after the step, with its `inventory`, and what gets an id."""
    updates, health = plans.updates, inventory[:, Item.HEALTH]
    is_planted = (made.placed >= 0) & (made.what == PLACES.index("plant"))
    touched = touch(
        settings,
        team.touched,
        jnp.concatenate([made.x, made.placed // settings.height]),
        jnp.concatenate([made.y, made.placed % settings.height]),
        jnp.concatenate([updates, is_planted]),
    )
    nxt = dataclasses.replace(
        team,
        x=made.x,
        y=made.y,
        facing=plans.facing,
        inventory=inventory,
        achievements=counted_on(team.achievements, done.achievements() + as_counts(made.rise)),
        counters=jnp.where(updates[:, None], made.counters, team.counters),
        sleeping=plans.sleeping & ~(updates & (health < team.last_health)),
        last_health=jnp.where(updates, health, team.last_health),
        removed=team.removed | plans.died,
        paid=plans.paid,
        unlocked=plans.unlocked,
        touched=touched,
        t=team.t + intent.live.astype(jnp.int32),
        score=plans.score,
        last=last_of(team, inventory, intent, done, asked, made.placed, made.made, done.risen() | made.rise),
    )
    early = None if asked is None else asked.placed >= 0
    return nxt, new_ids(used, team.next_id, made.placed, made.what, early)


def counted_on(count: Int[Array, "A 22"], more: Int[Array, "A 22"]) -> Int[Array, "A 22"]:
    """Counters that stay at the largest number of int16, which very long episodes by the water may reach."""
    return count + jnp.minimum(more, jnp.iinfo(jnp.int16).max - count)


def as_counts(bits: UInt32[Array, " A"]) -> Int[Array, "A 22"]:
    """1 for each bit; int16."""
    return ((bits[:, None] >> along(np.arange(len(Achievement), dtype=np.uint32), bits[:, None], 1)) & 1).astype(
        jnp.int16
    )


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
