"""What a repair channel in CUBE is advised to do: one block, who pushes it, how they get there together.

Axes: A agents, B blocks, S side of the grid, L ops of a plan, W words of an op; F fields of distances, one for each
cell of a face.  Numbers are sections of docs/coop2_repair.md.

Paths are those of a breadth-first search: the first of the shortest ones by the order of its steps, so the distances
from a cell are all that is needed (see `navigate`).  Teams and places are the cheapest ones (`assignment`).

Faces of more than `MOST_CELLS` cells are no longer shared out cell by cell: the nearest agents are sent to the block by
`navigate`, and wait there for the last one.
"""

import jax
import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair.types import Evaluation, Guidance
from jaxcoop.cognition.repair.views import text_order, text_rank
from jaxcoop.cognition.types import SPEC, Plan, PlanViews
from jaxcoop.core.batching import batch_last
from jaxcoop.envs.cube import fields
from jaxcoop.envs.cube.assignment import MOST_CELLS, NEVER, cheapest
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.navigate import ORDER
from jaxcoop.envs.cube.repair import World, world_of
from jaxcoop.envs.cube.skills import DEFAULT_TIMEOUT, WIDTH, Entity, Op
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.types import DELTA_COL, DELTA_ROW, Face, State

TASKS = ("push_block", "coordinate", "wait")
"""What a plan can be for: names of the numbers in word 0 of a specification; word 1 is the block."""

MOVE_STEPS, CHUNK, LONGEST_TIMEOUT = 5, 10, 100
"""9: steps of a move at most, of a wait or push, of a navigation."""


@struct.dataclass
class Team:
    """Who pushes which block, and from where."""

    found: Bool[Array, ""]
    block: Int[Array, ""]
    member: Bool[Array, " A"]
    field: Int[Array, " A"]  # number of the distances that lead the member to its cell
    distance: Int[Array, " A"]  # steps to it, 0 for others
    cell: Int[Array, "A 2"]  # (row, column) of it; -1: none, or any of the face


@struct.dataclass
class Advice:
    """Guidance, and what a prompt says beside the plans."""

    guidance: Guidance
    team: Team
    push_at: Int[Array, ""]  # step at which all of them can push


def guide(env: Cube, state: State, views: PlanViews, evaluation: Evaluation) -> Guidance:
    """9: for the agents of the views; nothing where no result fails."""
    failing = failing_blocks(evaluation, env.num_blocks)
    ops = views.plan.ops.shape[1]
    return advise(world_of(env, state), views.is_viewed, failing, failing.any(), state.t, ops).guidance


def failing_blocks(evaluation: Evaluation, blocks: int) -> Bool[Array, " B"]:
    """Blocks with a failing result."""
    is_failing = (evaluation.failed & evaluation.checked).any(1) & (evaluation.task >= 0)
    block = jnp.where(is_failing, evaluation.task // NUM_FACES, blocks)
    return jnp.zeros((blocks,), jnp.bool_).at[block].set(True, mode="drop")


def advise(
    world: World,
    available: Bool[Array, " A"],
    failing: Bool[Array, " B"],
    wanted: Bool[Array, ""],
    step: Int[Array, ""],
    ops: int,
) -> Advice:
    """9: the first candidate that a team can reach, and a plan of up to `ops` ops for each of its members.

    A plan that takes more ops ends early.  Without `wanted` nothing is searched for and nothing is found.
    """
    team, distances = _choose(world, available, failing, wanted)
    latest = jnp.where(team.member, team.distance, 0).max()
    block = jnp.where(team.found, team.block, 0)
    goal = jnp.maximum(world.side - 1 - (world.block_col[block] + world.weight[block] - 1), 0)
    rows, length = _write(world, team, distances, latest, jnp.maximum(goal, 1), ops)
    spec = jnp.stack([jnp.zeros((), jnp.int32), team.block, *[jnp.full((), -1, jnp.int32)] * (SPEC - 2)])
    plan = Plan(
        spec=jnp.where(team.member[:, None], spec, -1),
        ops=jnp.where(team.member[:, None, None], rows, -1),
        length=jnp.where(team.member, length, 0),
    )
    guidance = Guidance(
        has_target=team.found,
        target=jnp.where(team.found, NUM_FACES * team.block + Face.LEFT, -1),
        participants=team.member,
        has_plan=team.member,
        plan=plan,
    )
    return Advice(guidance, team, step + latest)


def _choose(
    world: World, available: Bool[Array, " A"], failing: Bool[Array, " B"], wanted: Bool[Array, ""]
) -> tuple[Team, Int[Array, "F S S"]]:
    """9: candidates by failure, weight and nearness to the goal until one has a team; and distances to its face."""
    fits = (world.block_row >= 0) & (world.weight <= available.sum(dtype=jnp.int32)) & wanted
    clear = fits & ~world.blocked
    candidates = jnp.where(clear.any(), clear, fits)
    goal = jnp.maximum(world.side - world.block_col - world.weight, 0)
    # Digits: none of the numbers exceeds the side.
    rank = (failing * (world.side + 1) + world.weight) * (world.side + 1) + world.side - goal

    def look(carry: tuple[Array, Team, Array]) -> tuple[Array, Team, Array]:
        left, _, _ = carry
        block = jnp.argmax(jnp.where(left, rank, -1)).astype(jnp.int32)
        team, distances = _team_for(world, available, block)
        return left & (jnp.arange(left.shape[0]) != block), team, distances

    nobody = jnp.full(available.shape, -1, jnp.int32)
    none = Team(
        found=jnp.zeros((), jnp.bool_),
        block=jnp.full((), -1, jnp.int32),
        member=nobody >= 0,
        field=nobody,
        distance=nobody + 1,
        cell=jnp.stack([nobody, nobody], axis=1),
    )
    count = min(world.heaviest, MOST_CELLS) + (world.heaviest > MOST_CELLS)
    blank = jnp.zeros((count, world.side, world.side), fields.field_type(world.side))
    _, team, distances = jax.lax.while_loop(
        lambda carry: carry[0].any() & ~carry[1].found, look, (candidates, none, blank)
    )
    return jax.tree.map(lambda new, old: jnp.where(team.found, new, old), team, none), distances


def _team_for(world: World, available: Bool[Array, " A"], block: Int[Array, ""]) -> tuple[Team, Int[Array, "F S S"]]:
    """9: the cheapest team at the left face of a block."""
    weight, top, col = world.weight[block], world.block_row[block], world.block_col[block] - 1
    goals = _face_cells(world, weight, top, col)
    distances = batch_last(fields.distances)(goals, goals | _floor(world))
    cost = _walks(world, goals, distances)  # [A, F]
    cost = jnp.where((available & (world.row >= 0))[:, None], cost, NEVER)

    single = min(world.heaviest, MOST_CELLS)
    order = text_order(available.shape[0])
    found, place = cheapest(cost[order, :single], jnp.minimum(weight, single))
    place = place[text_rank(available.shape[0])]
    distance = jnp.take_along_axis(cost, jnp.maximum(place, 0)[:, None], axis=1)[:, 0]
    cell = jnp.stack([top + place, jnp.broadcast_to(col, place.shape)], axis=1)
    if world.heaviest > MOST_CELLS:
        is_many = weight > MOST_CELLS
        nearest = jnp.lexsort((text_rank(available.shape[0]), cost[:, -1]))
        rank = jnp.zeros(place.shape, jnp.int32).at[nearest].set(jnp.arange(place.shape[0], dtype=jnp.int32))
        goes = rank < weight
        found = jnp.where(is_many, (goes & (cost[:, -1] < NEVER)).sum() == weight, found)
        place = jnp.where(is_many, jnp.where(goes, MOST_CELLS, -1), place)
        distance = jnp.where(is_many, cost[:, -1], distance)
        cell = jnp.where(is_many, -1, cell)
    member = found & (place >= 0)
    return Team(
        found=found,
        block=block,
        member=member,
        field=jnp.where(member, place, -1),
        distance=jnp.where(member, distance, 0),
        cell=jnp.where(member[:, None], cell, -1),
    ), distances


def _face_cells(world: World, weight: Array, top: Array, col: Array) -> Bool[Array, "F S S"]:
    """Each cell of a face as a map; of a face with too many cells none, and all of them as the last map."""
    lines = jnp.arange(world.side, dtype=jnp.int32)
    single = min(world.heaviest, MOST_CELLS)
    number = jnp.arange(single, dtype=jnp.int32)[:, None]
    rows = (lines == top + number) & (number < weight) & (weight <= single)
    if world.heaviest > MOST_CELLS:
        rows = jnp.concatenate([rows, ((lines >= top) & (lines < top + weight))[None]])
    return rows[:, :, None] & (lines == col)


def _floor(world: World) -> Bool[Array, "S S"]:
    """Cells without a block or an agent."""
    lines = jnp.arange(world.side, dtype=jnp.int32)

    def spans(first: Array) -> Bool[Array, "B S"]:
        return (lines >= first[:, None]) & (lines < (first + world.weight)[:, None])

    in_rows = spans(world.block_row) & (world.block_row >= 0)[:, None]
    is_block = (in_rows[:, :, None] & spans(world.block_col)[:, None, :]).any(0)
    cell = jnp.where(world.row >= 0, world.row * world.side + world.col, world.side**2)
    is_agent = jnp.zeros((world.side**2,), jnp.bool_).at[cell].set(True, mode="drop").reshape(is_block.shape)
    return ~is_block & ~is_agent


def _walks(world: World, goals: Bool[Array, "F S S"], distances: Int[Array, "F S S"]) -> Int[Array, "A F"]:
    """Steps of each agent to each target; its own cell is no obstacle, because no shortest path comes back to it."""
    number = jnp.arange(goals.shape[0], dtype=jnp.int32)
    row, col = world.row[:, None], world.col[:, None]
    is_there = goals[number, jnp.maximum(row, 0), jnp.maximum(col, 0)]
    beside = jnp.stack(
        [_value(distances, number, row + int(DELTA_ROW[a]), col + int(DELTA_COL[a])) for a in ORDER], axis=-1
    )
    return jnp.where(is_there, 0, jnp.minimum(beside.min(-1) + 1, NEVER))


def _value(distances: Int[Array, "F S S"], number: Array, row: Array, col: Array) -> Int[Array, "..."]:
    """Distances of cells; `NEVER` outside the grid and where there is no way."""
    side = distances.shape[1]
    is_in = (row >= 0) & (row < side) & (col >= 0) & (col < side) & (number >= 0)
    index = jnp.where(is_in, (number * side + row) * side + col, 0)
    value = distances.reshape(-1)[index].astype(jnp.int32)
    return jnp.where(is_in & (value < fields.far(side)), value, NEVER)


def _write(
    world: World, team: Team, distances: Int[Array, "F S S"], latest: Array, pushes: Array, ops: int
) -> tuple[Int[Array, "A L W"], Int[Array, " A"]]:
    """9: walk, wait for the last one, push to the goal; the ops and how many they are."""
    rows, walked = _walk(world, team, distances, ops)
    slot = jnp.arange(ops, dtype=jnp.int32) - walked[:, None]  # [A, L], counted from the end of the walk
    waits = latest - team.distance
    pauses = -(-waits // CHUNK)
    steps = jnp.clip(waits[:, None] - CHUNK * slot, 0, CHUNK)
    rows = jnp.where(((slot >= 0) & (slot < pauses[:, None]))[..., None], _row(Op.WAIT, steps), rows)
    slot = slot - pauses[:, None]
    count = -(-pushes // CHUNK)
    steps = jnp.clip(pushes - CHUNK * slot, 0, CHUNK)
    rows = jnp.where(((slot >= 0) & (slot < count))[..., None], _row(Op.PUSH, team.block, steps), rows)
    return rows, jnp.minimum(walked + pauses + count, ops)


def _row(kind: Op, *args: Array) -> Int[Array, "... W"]:
    """An op row with these arguments."""
    words = [jnp.full((), int(kind), jnp.int32), *args]
    words += [jnp.full((), -1, jnp.int32)] * (WIDTH - len(words))
    return jnp.stack(jnp.broadcast_arrays(*words), axis=-1)


def _walk(
    world: World, team: Team, distances: Int[Array, "F S S"], ops: int
) -> tuple[Int[Array, "A L W"], Int[Array, " A"]]:
    """9: the first of the shortest paths as moves of up to `MOVE_STEPS` in one direction, and how many they are.

    Toward a face with too many cells one navigation.
    """
    by_navigation = team.field >= MOST_CELLS
    slots = jnp.arange(ops, dtype=jnp.int32)

    def stride(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        row, col, left, last, run, slot, turns, counts = carry
        is_walking = left > 0
        ahead = [
            _value(distances, team.field, row + int(DELTA_ROW[a]), col + int(DELTA_COL[a])) == left - 1 for a in ORDER
        ]
        direction = jnp.asarray([int(a) for a in ORDER], jnp.int32)[jnp.argmax(jnp.stack(ahead), axis=0)]
        is_new = (direction != last) | (run == MOVE_STEPS)
        slot = slot + (is_walking & is_new)
        run = jnp.where(is_new, 1, run + 1)
        here = (slots == slot[:, None]) & is_walking[:, None]
        turns = jnp.where(here, direction[:, None], turns)
        counts = jnp.where(here, run[:, None], counts)
        row = row + jnp.where(is_walking, jnp.asarray(DELTA_ROW, jnp.int32)[direction], 0)
        col = col + jnp.where(is_walking, jnp.asarray(DELTA_COL, jnp.int32)[direction], 0)
        return row, col, left - is_walking, direction, run, slot, turns, counts

    zero = jnp.zeros_like(world.row)
    blank = jnp.zeros((world.row.shape[0], ops), jnp.int32)
    left = jnp.where(team.member & ~by_navigation, team.distance, 0)
    start = (world.row, world.col, left, zero - 1, zero, zero - 1, blank, blank)
    *_, slot, turns, counts = jax.lax.while_loop(lambda carry: (carry[2] > 0).any(), stride, start)
    walked = slot + 1
    rows = jnp.where((slots < walked[:, None])[..., None], _row(Op.MOVE, turns, counts), -1)
    if world.heaviest > MOST_CELLS:
        timeout = jnp.clip(2 * team.distance, DEFAULT_TIMEOUT, LONGEST_TIMEOUT)
        goes = by_navigation & (team.distance > 0)
        visit = _row(Op.NAVIGATE, jnp.int32(Entity.BLOCK), team.block, timeout)[:, None]
        rows = jnp.where((goes[:, None] & (slots == 0))[..., None], visit, rows)
        walked = jnp.where(goes, 1, walked)
    return rows, walked
