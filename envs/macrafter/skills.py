"""12.3: symbolic actions, compiled into primitives step by step.

Axes: A agents.  Ops are rows `(kind, arguments …)`; an argument of -1 stands for its default.  All agents choose from
the state before the step; how an action goes is read from the state after it.
"""

import dataclasses
from enum import IntEnum
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.core.skills import OpSpec, Report, Skills, Status
from jaxcoop.envs.macrafter import ids, paths
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.types import (
    PLACES,
    Achievement,
    Action,
    Command,
    Item,
    Material,
    Reason,
    State,
    Thing,
    has_plant,
    material_of,
)


class Op(IntEnum):
    """Kinds of symbolic actions."""

    NOOP = 0
    MOVE = 1
    NAVIGATE = 2
    COLLECT = 3
    CRAFT = 4
    PLACE = 5
    SLEEP = 6
    SHARE = 7


OPS = (
    OpSpec("noop"),
    OpSpec("move", ("direction", "num_steps")),  # Action of the move, steps (1)
    OpSpec("navigate", ("object_type", "item_id", "timeout", "radius")),  # Material or Thing, id, steps, cells
    OpSpec("collect", ("target", "item_id", "steps")),  # Item or -1, id of the declared cell or -1, steps (3)
    OpSpec("craft", ("object_type",)),  # Action of the craft
    OpSpec("place", ("object_type",)),  # number in `PLACES`
    OpSpec("sleep"),
    OpSpec("share", ("recipient", "resource", "quantity")),  # agent, Item, units (1)
)

REASONS: dict[int, str] = {
    Reason.NOTHING_IN_RANGE: "nothing to collect in reach",
    Reason.MISSING_TOOL: "the needed tool is missing",
    Reason.TOO_FEW_AGENTS: "more agents with the tool must collect at the same time",
    Reason.NO_SHARE_REQUEST: "no share request",
    Reason.HEALTH_NOT_SHAREABLE: "health cannot be shared",
    Reason.INVALID_INDEX: "no such agent",
    Reason.SELF_SHARE: "sharing with oneself",
    Reason.REMOVED: "the agent is gone",
    Reason.NONE_AVAILABLE: "none left to share",
    Reason.REQUIREMENTS: "requirements not met or no place for it",
    Reason.MISSING_RESOURCES: "resources for placing are missing",
    Reason.NO_ADJACENT_TARGET: "no free cell beside the agent",
    Reason.UNKNOWN_ITEM: "no such item",
    Reason.NO_PATH: "no path",
    Reason.TIMEOUT: "not there in time",
    Reason.COLLECTED_OTHER: "collected something else",
}

BLOCKING = (
    Material.WATER,
    Material.STONE,
    Material.TREE,
    Material.LAVA,
    Material.COAL,
    Material.IRON,
    Material.DIAMOND,
)
"""12.4: what the planner walks around.  Tables and furnaces are not listed: it takes them for passable."""

GAINED_BY: dict[int, int] = {
    Achievement.COLLECT_COAL: Item.COAL,
    Achievement.COLLECT_DIAMOND: Item.DIAMOND,
    Achievement.COLLECT_DRINK: Item.DRINK,
    Achievement.COLLECT_IRON: Item.IRON,
    Achievement.COLLECT_SAPLING: Item.SAPLING,
    Achievement.COLLECT_STONE: Item.STONE,
    Achievement.COLLECT_WOOD: Item.WOOD,
    Achievement.EAT_COW: Item.FOOD,
}
"""12.3: what a risen achievement says was collected."""

GOT_FROM: dict[int, int] = {
    Material.WATER: Item.DRINK,
    Material.STONE: Item.STONE,
    Material.TREE: Item.WOOD,
    Material.COAL: Item.COAL,
    Material.IRON: Item.IRON,
    Material.DIAMOND: Item.DIAMOND,
    Thing.COW: Item.FOOD,
}

OWN_TARGET = -2
"""As a plan's task: none was named, so the target of the running collect counts."""


@struct.dataclass
class Memory:
    """What agents are doing."""

    op: Int[Array, "A 5"]  # the running op; kind -1: none; int32
    elapsed: Int[Array, " A"]  # steps since it began; int32
    target_x: Int[Array, " A"]  # NAVIGATE: where to, as it was at the start, -1: not found; int32
    target_y: Int[Array, " A"]
    has_path: Bool[Array, " A"]  # NAVIGATE: there was a way in the last step
    plan: Int[Array, " A"]  # 14: id of the task that the agent's plan names, -1: none, or OWN_TARGET; int32


@dataclasses.dataclass(frozen=True)
class MACrafterSkills(Skills):
    """Symbolic actions of one team."""

    env: MACrafter

    @property
    def ops(self) -> tuple[OpSpec, ...]:
        """Kinds of actions, in the order of `Op`."""
        return OPS

    @property
    def reasons(self) -> tuple[str, ...]:
        """Texts of the reasons, by `Reason`."""
        return tuple(REASONS.get(number, "") for number in range(max(Reason) + 1))

    @property
    def width(self) -> int:
        """1 + 4 arguments of navigate."""
        return 1 + max(len(op.arguments) for op in OPS)

    def idle(self) -> Memory:
        """Nobody does anything."""
        agents = self.env.num_agents
        nothing = jnp.full((agents,), -1, jnp.int32)
        return Memory(
            op=jnp.full((agents, self.width), -1, jnp.int32),
            elapsed=jnp.zeros((agents,), jnp.int32),
            target_x=nothing,
            target_y=nothing,
            has_path=jnp.zeros((agents,), jnp.bool_),
            plan=jnp.full((agents,), OWN_TARGET, jnp.int32),
        )

    def begin(
        self, state: State, memory: Memory, ops: Int[Array, "A 5"], fresh: Bool[Array, " A"], draws: Any = None
    ) -> Memory:
        """Start ops; a navigate finds its target now and does not follow it.  An unknown kind does nothing for ever."""
        del draws
        ops = ops.astype(jnp.int32)
        place = ids.resolve(state, ops[:, 1], ops[:, 2])
        goes = place.found & (ops[:, 0] == Op.NAVIGATE)
        return dataclasses.replace(
            memory,
            op=jnp.where(fresh[:, None], ops, memory.op),
            elapsed=jnp.where(fresh, 0, memory.elapsed),
            target_x=jnp.where(fresh, jnp.where(goes, place.x, -1), memory.target_x),
            target_y=jnp.where(fresh, jnp.where(goes, place.y, -1), memory.target_y),
            has_path=memory.has_path & ~fresh,
        )

    def command(self, state: State, memory: Memory, draws: Any = None) -> tuple[Command, Memory]:
        """Primitives and requests of the coming step."""
        del draws
        kind, first, second, third = (memory.op[:, k] for k in range(4))
        route = self.routes(state, memory)
        cells = self.env.width * self.env.height
        noop = jnp.full_like(kind, Action.NOOP)
        is_move = (kind == Op.MOVE) & (first >= Action.MOVE_LEFT) & (first <= Action.MOVE_DOWN)
        is_craft = (kind == Op.CRAFT) & (first >= Action.MAKE_WOOD_PICKAXE) & (first <= Action.MAKE_IRON_SWORD)
        is_place = (kind == Op.PLACE) & (first >= 0) & (first < len(PLACES))
        is_share = kind == Op.SHARE
        action = jnp.where(is_move | is_craft, first, noop)
        action = jnp.where(kind == Op.NAVIGATE, jnp.maximum(route.move, 0), action)
        action = jnp.where(kind == Op.COLLECT, Action.DO, action)
        action = jnp.where(is_place, Action.PLACE_STONE + first, action)
        action = jnp.where(kind == Op.SLEEP, Action.SLEEP, action)
        action = jnp.where(is_share, Action.SHARE, action)
        share = jnp.stack([is_share.astype(jnp.int32), first, second, jnp.maximum(third, 1)], axis=-1)
        is_declared = (kind == Op.COLLECT) & (second >= 1) & (second <= cells)
        target = jnp.where(is_declared, second - 1, -1)
        plan = jnp.where((memory.plan >= 1) & (memory.plan <= cells), memory.plan - 1, -1)
        command = Command(
            action=action.astype(jnp.int32),
            share=jnp.where(is_share[:, None], share, 0),
            place=jnp.where(is_place, first, -1),
            target=target,
            plan=jnp.where(memory.plan == OWN_TARGET, target, plan),
        )
        has_path = route.move != paths.NO_PATH
        return command, dataclasses.replace(memory, elapsed=memory.elapsed + 1, has_path=has_path)

    def routes(self, state: State, memory: Memory) -> paths.Route:
        """12.4: ways of the agents that navigate; the others get NO_PATH."""
        start = jnp.stack([state.x, state.y], axis=-1)
        target = jnp.stack([memory.target_x, memory.target_y], axis=-1)
        asks = (memory.op[:, 0] == Op.NAVIGATE) & (memory.target_x >= 0) & ~state.removed
        return paths.routes(open_ground(state), start, target, radius_of(memory.op), asks)

    def check(self, state: State, memory: Memory) -> Report:
        """12.3: what became of the actions; one of an agent that was removed before the step has failed."""
        kind, first, second, third = (memory.op[:, k] for k in range(4))
        last = state.last
        is_done = last.status == 1
        outcome = jnp.where(is_done, Status.SUCCESS, Status.FAILED)
        at_once = (kind == Op.NOOP) | (kind == Op.SLEEP)
        by_outcome = (kind == Op.CRAFT) | (kind == Op.PLACE) | (kind == Op.SHARE)

        status = jnp.where(at_once, Status.SUCCESS, Status.PENDING)
        status = jnp.where(by_outcome, outcome, status)
        reason = jnp.where(by_outcome & ~is_done, last.reason, Reason.NONE)

        is_move = kind == Op.MOVE
        status = jnp.where(is_move & (memory.elapsed >= second), Status.SUCCESS, status)

        collect, why = self.collected(state, memory.elapsed, first, jnp.maximum(jnp.where(third < 0, 3, third), 1))
        status = jnp.where(kind == Op.COLLECT, collect, status)
        reason = jnp.where(kind == Op.COLLECT, why, reason)

        is_navigate = kind == Op.NAVIGATE
        timeout = jnp.where(third < 0, 64, third)
        gap = jnp.abs(state.x - memory.target_x) + jnp.abs(state.y - memory.target_y)
        arrived = jnp.where(gap <= radius_of(memory.op), Status.SUCCESS, Status.PENDING)
        is_late = memory.elapsed >= timeout  # wins over an arrival in the same step
        lost = is_late | ~memory.has_path
        status = jnp.where(is_navigate, jnp.where(lost, Status.FAILED, arrived), status)
        why = jnp.where(memory.has_path, Reason.TIMEOUT, Reason.NO_PATH)
        reason = jnp.where(is_navigate & lost, why, reason)

        is_gone = (last.status == -1) & (kind >= Op.NOOP) & (kind <= Op.SHARE)
        status = jnp.where(is_gone, Status.FAILED, status)
        reason = jnp.where(is_gone, Reason.REMOVED, reason)
        return Report(status.astype(jnp.int8), reason.astype(jnp.int8))

    def collected(
        self, state: State, elapsed: Int[Array, " A"], target: Int[Array, " A"], steps: Int[Array, " A"]
    ) -> tuple[Int[Array, " A"], Int[Array, " A"]]:
        """Status and reason of collects of `target` (Item, -1: anything) that wait at most `steps` steps for others."""
        last = state.last
        is_done = last.status == 1
        waits = (last.reason == Reason.TOO_FEW_AGENTS) & (elapsed < steps)
        # E16: whatever changed counts as collected, so a vital lost in this step does too
        names = last.changed.astype(jnp.uint32)
        names |= _translate(last.risen.astype(jnp.uint32), GAINED_BY)
        names |= _translate(last.took.astype(jnp.uint32), GOT_FROM)
        item = jnp.clip(target, 0, len(Item) - 1)
        is_named = (target == item) & ((names >> item.astype(jnp.uint32)) & 1 > 0)
        is_right = (target < 0) | is_named
        status = jnp.where(is_done & is_right, Status.SUCCESS, Status.FAILED)
        status = jnp.where(~is_done & waits, Status.PENDING, status)
        reason = jnp.where(is_done, Reason.COLLECTED_OTHER, last.reason.astype(jnp.int32))
        return status, jnp.where(status == Status.FAILED, reason, Reason.NONE)


def radius_of(op: Int[Array, "A 5"]) -> Int[Array, " A"]:
    """Radius of navigates: 1 unless given."""
    return jnp.where(op[:, 4] < 0, 1, op[:, 4])


def open_ground(state: State) -> paths.Ground:
    """12.4: cells that the planner may cross: no obstacle, plant, cow or living agent on them."""
    material = material_of(state.material)
    obstacles = np.uint32(sum(1 << code for code in BLOCKING))
    is_blocked = (obstacles >> material.astype(jnp.uint32)) & 1 > 0
    free = paths.ground(~is_blocked & ~has_plant(state.material))
    x = jnp.concatenate([state.cow_x, jnp.where(state.removed, -1, state.x)])
    y = jnp.concatenate([state.cow_y, state.y])
    return paths.without(free, x.astype(jnp.int32), y.astype(jnp.int32))


def _translate(bits: Array, table: dict[int, int]) -> Array:
    """Bit sets with each bit moved to the one that `table` gives; bits that are not listed go."""
    moved = jnp.zeros_like(bits)
    for source, target in table.items():
        moved |= ((bits >> int(source)) & 1) << int(target)
    return moved
