"""COOP²-Repair in CUBE: will the pushers of a block be there, together, and many enough?

Axes: A agents, B blocks, L ops of a plan, N = A * L planned ops, row `agent * L + op`; task slots are the face tasks,
`4 * block + face`.  Numbers are sections of docs/coop2_repair.md.

Every push is predicted at the left face of its block, whatever face it names, and only pushes make a group (4).
"""

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.repair import timeline, windows
from jaxcoop.cognition.repair.config import RepairConfig
from jaxcoop.cognition.repair.timeline import MOVES, Planned, Timeline
from jaxcoop.cognition.repair.types import Evaluation
from jaxcoop.cognition.repair.views import remaining
from jaxcoop.cognition.repair.windows import Window
from jaxcoop.cognition.types import PlanViews
from jaxcoop.envs.cube import tasks
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.lookup import take
from jaxcoop.envs.cube.skills import DEFAULT_TIMEOUT, Entity, Op
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.types import ACTION_NAMES, DELTA_COL, DELTA_ROW, Action, Face, State

_STEPS = {
    "published": np.array([MOVES.get(name, (0, 0)) for name in ACTION_NAMES], np.int32),
    "corrected": np.stack([DELTA_ROW, DELTA_COL], axis=1).astype(np.int32),
}
"""3: predicted displacement of a step on (row, column) by `Action`."""


@struct.dataclass
class World:
    """What the estimator and the guidance need of a state."""

    side: int = struct.field(pytree_node=False)
    heaviest: int = struct.field(pytree_node=False)  # no weight is above it
    row: Int[Array, " A"]  # -1: unplaced
    col: Int[Array, " A"]
    block_row: Int[Array, " B"]  # top-left cell; -1: delivered
    block_col: Int[Array, " B"]
    weight: Int[Array, " B"]
    blocked: Bool[Array, " B"]  # 9: another block is between it and the goal


@struct.dataclass
class Prediction:
    """How an evaluation came about."""

    named: Int[Array, " A"]  # 4: block of the view's task, -1: none
    face: Int[Array, " A"]  # 4: its `Face`
    block: Int[Array, "A L"]  # block that the op is predicted to be about, -1: none
    timeline: Timeline
    window: Window  # 4: of the pushes
    near: Bool[Array, " N"]  # 4: a push of the chosen anchor that is made at the face


def world_of(env: Cube, state: State) -> World:
    """The world of a state."""
    return World(
        side=env.side,
        heaviest=max(env.weights),
        row=state.row.astype(jnp.int32),
        col=state.col.astype(jnp.int32),
        block_row=state.block_row.astype(jnp.int32),
        block_col=state.block_col.astype(jnp.int32),
        weight=jnp.asarray(env.weights, jnp.int32),
        blocked=tasks.blockers(env.layout, state).any(1),
    )


def num_kinds(env: Cube) -> int:
    """Target types of tasks: type k is a block of weight k + 1."""
    return max(env.weights)


def evaluate(env: Cube, config: RepairConfig, state: State, views: PlanViews) -> Evaluation:
    """4: what will become of the pushes that the viewed plans contain."""
    return estimate(config, world_of(env, state), views, state.t)[0]


def targets(env: Cube, views: PlanViews) -> Int[Array, "A 2"]:
    """4: face task and weight of the block that each plan's remaining ops name first; -1, -1 for none."""
    kind, args = views.plan.ops[..., 0], views.plan.ops[..., 1:]
    block, face = _view_tasks(kind, args, remaining(views))
    block = jnp.where(block < env.num_blocks, block, -1)
    weight = take(jnp.asarray(env.weights, jnp.int32), block)
    return jnp.where((block >= 0)[:, None], jnp.stack([NUM_FACES * block + face, weight], 1), -1)


def estimate(
    config: RepairConfig, world: World, views: PlanViews, step: Int[Array, ""]
) -> tuple[Evaluation, Prediction]:
    """4: the same from a world, with the prediction behind it."""
    agents, blocks = world.row.shape[0], world.block_row.shape[0]
    remains = remaining(views)
    kind, args = views.plan.ops[..., 0], views.plan.ops[..., 1:]
    named, face = _view_tasks(kind, args, remains)
    own = _named_block(kind, args)
    block = jnp.where(remains, jnp.where(own >= 0, own, named[:, None]), -1)
    cells = _left_faces(world, block)
    path = timeline.predict(
        _planned(config, world, kind, args, remains, cells), jnp.stack([world.row, world.col], axis=1), step
    )

    is_push = remains & (kind == Op.PUSH) & cells.exists
    task = jnp.where(is_push, NUM_FACES * block + Face.LEFT, -1).reshape(-1)
    start, end = path.start.reshape(-1), path.end.reshape(-1)
    window = windows.choose(task, start, end, config.temporal_tolerance, agents, NUM_FACES * blocks, "agents")
    off = jnp.abs(path.after[..., 1] - cells.col) + jnp.abs(path.after[..., 0] - cells.nearest(path.after[..., 0]))
    is_near = (off <= config.spatial_tolerance) & cells.is_inside & (world.row >= 0)[:, None]
    near = window.inside & is_near.reshape(-1)
    found = _results(config, task, cells.height.reshape(-1), window, near, agents, NUM_FACES * blocks)
    return found, Prediction(named, face, block, path, window, near)


@struct.dataclass
class _Faces:
    """Left faces of blocks: `height` cells of a column, `row` the topmost."""

    exists: Bool[Array, "A L"]  # there is such a block, and it is not delivered
    row: Int[Array, "A L"]
    col: Int[Array, "A L"]
    height: Int[Array, "A L"]  # weight of the block
    is_inside: Bool[Array, "A L"]  # on the grid, so that agents can stand there

    def nearest(self, row: Int[Array, "..."]) -> Int[Array, "..."]:
        """The row of the cell that is nearest to this row."""
        return jnp.clip(row, self.row, self.row + jnp.maximum(self.height, 1) - 1)


def _left_faces(world: World, block: Int[Array, "A L"]) -> _Faces:
    """Of a block for each op."""
    ids = block.reshape(-1)
    row, col, weight = (
        take(table, ids).reshape(block.shape) for table in (world.block_row + 1, world.block_col, world.weight)
    )
    # `take` gives 0 for a block that does not exist, and -1 + 1 is that of a delivered one.
    return _Faces(exists=row > 0, row=row - 1, col=col - 1, height=weight, is_inside=(row > 0) & (col > 0))


def _named_block(kind: Int[Array, "A L"], args: Int[Array, "A L 3"]) -> Int[Array, "A L"]:
    """4: the block that an op names, -1 for none; there may be no such block."""
    is_push = kind == Op.PUSH
    is_visit = (kind == Op.NAVIGATE) & (args[..., 0] == Entity.BLOCK)
    named = jnp.where(is_push, args[..., 0], jnp.where(is_visit, args[..., 1], -1))
    return jnp.maximum(named, -1)


def _view_tasks(
    kind: Int[Array, "A L"], args: Int[Array, "A L 3"], remains: Bool[Array, "A L"]
) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
    """4: block (-1: none) and face of the first remaining op that names a block; a push may say which face."""
    block = jnp.where(remains, _named_block(kind, args), -1)
    first = jnp.argmax(block >= 0, axis=1)[:, None]
    face = jnp.where((kind == Op.PUSH) & (args[..., 2] >= 0) & (args[..., 2] < len(Face)), args[..., 2], int(Face.LEFT))
    block, face = (jnp.take_along_axis(x, first, axis=1)[:, 0] for x in (block, face))
    return block, jnp.where(block >= 0, face, int(Face.LEFT))


def _planned(
    config: RepairConfig,
    world: World,
    kind: Int[Array, "A L"],
    args: Int[Array, "A L 3"],
    remains: Bool[Array, "A L"],
    cells: _Faces,
) -> Planned:
    """4: durations, and where ops lead; every navigation ends on the face cell nearest to where its agent is now."""
    timeout = jnp.where((args[..., 2] == 0) | (args[..., 2] == -1), DEFAULT_TIMEOUT, args[..., 2])
    duration = jnp.where((kind == Op.MOVE) | (kind == Op.PUSH), args[..., 1], 1)
    duration = jnp.where(kind == Op.WAIT, args[..., 0], jnp.where(kind == Op.NAVIGATE, timeout, duration))
    direction = args[..., 0]
    is_move = (kind == Op.MOVE) & (direction >= Action.UP) & (direction <= Action.RIGHT)
    steps = jnp.clip(duration, 1, timeline.LONGEST)
    shift = jnp.asarray(_STEPS[config.axes])[jnp.where(is_move, direction, int(Action.STAY))] * steps[..., None]
    nearest = cells.nearest(world.row[:, None])
    return Planned(
        remains=remains,
        duration=duration,
        shift=shift,
        travels=(kind == Op.NAVIGATE) & cells.is_inside & (world.row >= 0)[:, None],
        target=jnp.stack([nearest, cells.col], axis=-1),
        threshold=jnp.zeros_like(duration),
    )


def _results(
    config: RepairConfig,
    task: Int[Array, " N"],
    weight: Int[Array, " N"],
    window: Window,
    near: Bool[Array, " N"],
    agents: int,
    num_tasks: int,
) -> Evaluation:
    """4: spatial, temporal and dependency results; the last is always satisfied."""
    required = jnp.where(task >= 0, weight, 0)
    at_face = windows.distinct_agents(task, near, agents, num_tasks)
    met = jnp.stack([at_face, window.size], axis=1).astype(jnp.float32)
    ratio = jnp.minimum(met / jnp.maximum(required, 1).astype(jnp.float32)[:, None], 1.0)
    score = jnp.concatenate([ratio, jnp.ones_like(ratio[:, :1])], axis=1)
    checked = jnp.broadcast_to((task >= 0)[:, None], score.shape)
    meets = windows.by_agent(task, window.inside, agents)
    stands = windows.by_agent(task, near, agents)
    named = jnp.stack([jnp.where(at_face > 0, stands, meets), meets, meets], axis=1)
    return Evaluation(
        task=task,
        first=window.first,
        required=required,
        kind=jnp.where(task >= 0, weight - 1, -1),
        checked=checked,
        score=score,
        failed=config.fails(score) & checked,
        named=named & checked,
    )
