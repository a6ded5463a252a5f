"""8: the controller of the macro-skills: from skills to primitive actions.

Axes: A players, C cells, T cells that can be a target; then those of a batch.

Memory keeps what every player is doing; `command` checks it against the kitchen, settles who gives way, follows the
joint plan and says which skills end with the coming step.
"""

import dataclasses
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxcoop.core.batching import along, batch_last, read
from jaxcoop.core.skills import OpSpec, Report, Skills, Status
from jaxcoop.envs.burrito import rules
from jaxcoop.envs.burrito.skillset import (
    CHOP,
    NAMES,
    PASS,
    PASS_CELLS,
    SKILLS,
    STAY,
    WASH,
    for_hand,
    words,
)
from jaxcoop.envs.burrito.types import CHOPS, RINSES, Action, Item, State
from jaxcoop.envs.kitchen import plan
from jaxcoop.envs.kitchen.grid import DELTA_X, DELTA_Y, FAR, Grid
from jaxcoop.envs.kitchen.plan import Plan, PlanDraws

if TYPE_CHECKING:
    from jaxcoop.envs.burrito.env import Burrito

REASONS = ("", "cannot be done", "gave way to another player", "timed out")
CANNOT, GAVE_WAY, TIMED_OUT = 1, 2, 3

RESHUFFLE = 0.1
"""8.5, 8.6: probability that an order of players is drawn anew."""


@struct.dataclass
class SkillDraws:
    """8.7: every random number of a step."""

    repeats: Float[Array, " A"]  # share of the largest number of interactions
    reorder: Bool[Array, ""]  # the order of giving way is drawn anew
    order: UInt32[Array, " A"]
    plan: PlanDraws


@struct.dataclass
class Memory:
    """What every player does."""

    op: Int[Array, " A"]  # the skill that was commanded, -1: none yet; int8
    skill: Int[Array, " A"]  # the skill that runs: `op`, or STAY in its place; int8
    target: Int[Array, " A"]  # cell; int16
    goal: Int[Array, " A"]  # cell to stand in; int16
    facing: Int[Array, " A"]  # Direction to look in; int8
    repeats: Int[Array, " A"]  # interactions to go; int8
    arrived: Bool[Array, " A"]
    done: Bool[Array, " A"]  # the skill ended with the last step, or none was ever commanded
    reason: Int[Array, " A"]  # why STAY runs in place of `op`; int8
    age: Int[Array, " A"]  # steps since the command; int16
    order: Int[Array, " A"]  # place in the order of giving way; int8
    started: Bool[Array, ""]  # the orders have been drawn
    plan: Plan


@dataclasses.dataclass(frozen=True)
class Targets:
    """8.3: everything about target cells that the layout fixes."""

    cells: Int[np.ndarray, " T"]
    terrain: Int[np.ndarray, " T"]
    is_pass: Bool[np.ndarray, " T"]
    rank: Int[np.ndarray, "C T"]  # order in which somebody in a cell considers them; `UNREACHABLE`: not at all; uint16
    stand: Int[np.ndarray, "C T"]  # the cell to stand in, the nearest
    facing: Int[np.ndarray, "C T"]  # and where to look from there


UNREACHABLE = np.iinfo(np.uint16).max


@lru_cache(maxsize=256)
def targets_of(grid: Grid, terrain: bytes) -> Targets:
    """The targets of a layout; `terrain`: codes of its cells."""
    codes = np.frombuffer(terrain, np.int8)
    sides = [[(int(d), int(grid.ahead[d, c])) for d in range(4)] for c in range(grid.cells)]
    around = {c: [(s, d ^ 1) for d, s in sides[c] if s != c and grid.floor[s]] for c in np.flatnonzero(~grid.floor)}
    cells = np.array([c for c, stands in around.items() if stands], np.int16)
    rank = np.full((grid.cells, len(cells)), UNREACHABLE, np.uint16)
    stand, facing = np.zeros(rank.shape, np.int16), np.zeros(rank.shape, np.int8)
    for here in np.flatnonzero(grid.floor):
        best = []
        for k, target in enumerate(cells):
            ways = [
                (int(grid.distances[here, s]), int(grid.x[s]), int(grid.y[s]), int(DELTA_X[d]), int(DELTA_Y[d]), s, d)
                for s, d in around[target]
                if grid.distances[here, s] < FAR
            ]
            if ways:
                distance, *_, stand[here, k], facing[here, k] = min(ways)
                best.append((distance, int(grid.x[target]), int(grid.y[target]), k))
        for place, (*_, k) in enumerate(sorted(best)):
            rank[here, k] = place
    passes = [grid.cell(x, y) for x, y in PASS_CELLS if grid.is_inside(x, y)]
    return Targets(cells, codes[cells], np.isin(cells, passes), rank, stand, facing)


@dataclasses.dataclass(frozen=True)
class BurritoSkills(Skills):
    """The macro-skills of one kitchen."""

    env: "Burrito"

    @property
    def ops(self) -> tuple[OpSpec, ...]:
        """The 27 skills; they have no arguments."""
        return tuple(OpSpec(name) for name in NAMES)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a skill ended early."""
        return REASONS

    @property
    def width(self) -> int:
        """Only the number of the skill."""
        return 1

    @property
    def is_pinned(self) -> bool:
        """8.8: whether every choice is fixed."""
        return self.env.controller == "pinned"

    @cached_property
    def targets(self) -> Targets:
        """Of the layout."""
        return targets_of(self.env.kitchen.grid, self.env.kitchen.terrain.tobytes())

    def idle(self) -> Memory:
        """Nobody does anything."""
        players = self.env.num_agents
        none = jnp.full((players,), -1, jnp.int16)
        small, flags = none.astype(jnp.int8), jnp.ones((players,), jnp.bool_)
        return Memory(
            op=small,
            skill=small,
            target=none,
            goal=none,
            facing=small,
            repeats=small * 0,
            arrived=~flags,
            done=flags,
            reason=small * 0,
            age=none * 0,
            order=jnp.arange(players, dtype=jnp.int8),
            started=jnp.zeros((), jnp.bool_),
            plan=plan.no_plan(players),
        )

    def sample_draws(self, key: Array, state: State) -> SkillDraws:
        """8.7; in pinned mode nobody looks at them."""
        del state
        players = self.env.num_agents
        ways, numbers = jax.random.split(key)
        reorder, reshuffle, *repeats = jax.random.uniform(ways, (2 + players,))
        bits = jax.random.bits(numbers, (2 * players + 1,), jnp.uint32)
        return SkillDraws(
            repeats=jnp.stack(repeats),
            reorder=reorder < RESHUFFLE,
            order=bits[:players],
            plan=PlanDraws(reshuffle < RESHUFFLE, bits[players : 2 * players], bits[-1]),
        )

    def feasible(self, state: State) -> Bool[Array, "A 27"]:
        """8.3: the mask: which skills each player could start now."""

        def masks(cell: Array, held: Array, item: Array, clock: Array) -> Array:
            seen = self._seen(held, item, clock)
            word = jnp.where(self._reaches(cell), seen, 0)
            bits = jnp.zeros(held.shape, jnp.int32)
            for k in range(seen.shape[0]):
                bits |= word[k]
            shift = along(np.arange(len(SKILLS), dtype=np.int32), jnp.zeros((1, 1, *bits.shape[1:])), axis=1)
            return ((bits[:, None] >> shift & 1) > 0) | (shift == STAY)

        return batch_last(masks)(state.cell, state.held, state.item, state.clock)

    def begin(
        self,
        state: State,
        memory: Memory,
        ops: Int[Array, "A W"],
        fresh: Bool[Array, " A"],
        draws: SkillDraws | None = None,
    ) -> Memory:
        """8.5.1: start skills; any other number than 0 to 26 is STAY."""
        known = (ops[:, 0] >= 0) & (ops[:, 0] < len(SKILLS))
        skill = jnp.where(known, ops[:, 0], STAY)
        choose = batch_last(self._choose)
        target, goal, facing, is_found = choose(state.cell, state.facing, state.held, state.item, state.clock, skill)
        most = _most_repeats(skill, read(state.item, target), read(state.clock, target).astype(jnp.int32))
        if draws is not None and not self.is_pinned:
            most = 1 + (draws.repeats * most).astype(jnp.int32)
        new = replace(
            memory,
            op=skill.astype(jnp.int8),
            skill=skill.astype(jnp.int8),
            target=target,
            goal=goal,
            facing=facing,
            repeats=jnp.where(is_found, most, 0).astype(jnp.int8),
            arrived=jnp.zeros_like(fresh),
            done=jnp.zeros_like(fresh),
            reason=jnp.zeros_like(memory.reason),
            age=jnp.zeros_like(memory.age),
        )
        return jax.tree.map(lambda n, o: n if n is o else jnp.where(fresh, n, o), new, memory)

    def command(self, state: State, memory: Memory, draws: SkillDraws | None = None) -> tuple[Int[Array, " A"], Memory]:
        """8.5.2 to 8.5.5: the primitive action of every player, and whose skill ends with it."""
        return self.act(state, self.resolve(state, memory, draws), draws)

    def resolve(self, state: State, memory: Memory, draws: SkillDraws | None = None) -> Memory:
        """8.5.2, 8.5.3: skills that cannot be done, and those who have to give way, become STAY."""
        is_right = self._holds(state, memory.skill.astype(jnp.int32), memory.target)
        memory = _staying(memory, state.cell, state.facing, ~is_right, CANNOT)
        settle = batch_last(self._settle)
        return settle(memory, state.cell, state.facing, None if self.is_pinned else draws)

    def act(self, state: State, memory: Memory, draws: SkillDraws | None = None) -> tuple[Int[Array, " A"], Memory]:
        """8.5.4, 8.5.5, after `resolve`."""
        act = batch_last(self._act)
        return act(state.cell, state.facing, memory, None if self.is_pinned or draws is None else draws.plan)

    def check(self, state: State, memory: Memory) -> Report:
        """Whether each player's skill ended with the last step; it fails if STAY came in its place."""
        del state
        failed = memory.done & (memory.reason > 0)
        status = jnp.where(failed, int(Status.FAILED), jnp.where(memory.done, int(Status.SUCCESS), int(Status.PENDING)))
        status = jnp.where(memory.op < 0, int(Status.PENDING), status)
        return Report(status=status.astype(jnp.int8), reason=jnp.where(failed, memory.reason, 0).astype(jnp.int8))

    def _seen(self, held: Array, item: Array, clock: Array) -> Int[Array, "T A"]:
        """8.3: for each target and player the skills that may be aimed at it, as bits; distances do not count."""
        cells, terrain = self.targets.cells, self.targets.terrain
        content = rules.content_of(item[cells], clock[cells])
        table = words().target
        index = along(terrain.astype(np.int32) * table.shape[2], content) + content
        allows, others = (rules.look_up(kind.reshape(-1), index)[:, None] for kind in table)
        seen = for_hand(rules.look_up(words().allowed, held.astype(jnp.int32))[None], allows, others)
        # PASS_OBJECT looks at cells of its own list only.
        return seen & along(np.where(self.targets.is_pass, -1, ~(1 << PASS)).astype(np.int32), seen)

    def _reaches(self, cell: Int[Array, " A"]) -> Bool[Array, "T A"]:
        """Which targets each player can get to."""
        targets = self.targets
        regions = self.env.kitchen.regions
        region = rules.look_up(regions, cell)
        found = jnp.zeros((len(targets.cells), *cell.shape), jnp.bool_)
        for number in range(int(regions.max()) + 1):
            example = int(np.flatnonzero(regions == number)[0])
            is_near = along(targets.rank[example] != UNREACHABLE, found)
            found |= is_near & (region == number)
        return found

    def _choose(
        self, cell: Array, facing: Array, held: Array, item: Array, clock: Array, skill: Array
    ) -> tuple[Array, Array, Array, Array]:
        """8.3: target, goal and where to look; the own cell and direction where the skill cannot be done."""
        targets = self.targets
        may = (self._seen(held, item, clock) >> skill[None] & 1) > 0
        here = cell.astype(jnp.int32)
        numbers = along(np.arange(len(targets.cells), dtype=np.int32), may)
        row = here[None] * len(numbers) + numbers
        rank = jnp.where(may, rules.look_up(targets.rank.reshape(-1), row).astype(jnp.int32), UNREACHABLE)
        best = rank.min(0)
        is_found = (best < UNREACHABLE) & (skill != STAY)
        chosen = jnp.where(rank == best[None], numbers, len(numbers) - 1).min(0)
        entry = here * len(numbers) + chosen
        return (
            jnp.where(is_found, rules.look_up(targets.cells, chosen), cell),
            jnp.where(is_found, rules.look_up(targets.stand.reshape(-1), entry), cell),
            jnp.where(is_found, rules.look_up(targets.facing.reshape(-1), entry), facing),
            is_found,
        )

    def _settle(self, memory: Memory, cell: Array, facing: Array, draws: SkillDraws | None) -> Memory:
        """8.5.3."""
        order = memory.order
        if draws is not None:
            order = jnp.where(draws.reorder | ~memory.started, plan.ranks(draws.order), order)
        stays = memory.skill == STAY
        # Whose goal is one of those that staying players have.
        taken = ((memory.goal[None] == memory.goal[:, None]) & stays[None]).any(1)
        before, settled = memory.goal, jnp.zeros_like(stays)
        for place in range(self.env.num_agents):
            now = order == place
            goal = jnp.where(now, before, 0).sum(0, dtype=jnp.int16)
            is_claimed = (now & taken).any(0) | ((memory.goal == goal) & settled).any(0)
            memory = _staying(memory, cell, facing, now & is_claimed, GAVE_WAY)
            settled |= now
        return replace(memory, order=order)

    def _holds(self, state: State, skill: Array, cell: Array) -> Bool[Array, " A"]:
        """8.2: whether the formula of a skill is true at a cell."""
        terrain = rules.look_up(self.env.kitchen.terrain, cell).astype(jnp.int32)
        content = rules.content_of(read(state.item, cell), read(state.clock, cell))
        table = words().formula
        index = terrain * table.shape[2] + content
        allowed = rules.look_up(words().allowed, state.held.astype(jnp.int32))
        word = for_hand(allowed, *(rules.look_up(kind.reshape(-1), index) for kind in table))
        return (word >> skill & 1) > 0

    def _act(self, cell: Array, facing: Array, memory: Memory, draws: PlanDraws | None) -> tuple[Array, Memory]:
        grid = self.env.kitchen.grid
        if draws is not None:
            draws = replace(draws, reshuffle=draws.reshuffle | ~memory.started)
        planned, ahead = plan.follow(grid, memory.plan, cell, facing, memory.goal, memory.facing, draws)
        stays = planned == Action.STAY
        interacts = memory.arrived & (memory.repeats > 0) & stays
        looks = jnp.where(stays, facing, planned)
        aimed = rules.look_up(grid.ahead.reshape(-1), looks.astype(jnp.int32) * grid.cells + cell)
        aimed = jnp.where(stays, cell, aimed)
        is_there = (aimed == memory.goal) & ((looks == memory.facing) | (memory.skill == STAY))
        arrived = memory.arrived | (is_there & ~interacts)
        repeats = memory.repeats - interacts.astype(jnp.int8)
        ends = arrived & (repeats == 0)
        age = memory.age + 1
        late = ~ends & (age >= self.env.timeout) if self.env.timeout else jnp.zeros_like(ends)
        return jnp.where(interacts, int(Action.INTERACT), planned), replace(
            memory,
            repeats=repeats,
            arrived=arrived,
            done=ends | late,
            reason=jnp.where(late, np.int8(TIMED_OUT), memory.reason),
            age=age,
            started=jnp.ones_like(memory.started),
            plan=ahead,
        )


def _most_repeats(skill: Array, item: Array, clock: Array) -> Int[Array, " A"]:
    """8.4: the largest number of interactions with what lies on the target."""
    chops = jnp.where(item == Item.NONE, 1 + CHOPS, CHOPS - clock)
    is_dirty = (item == Item.DIRTY_PLATE) | (item == Item.STACK_PLATE)
    rinses = jnp.where(is_dirty, RINSES - clock, jnp.where(item == Item.NONE, 1 + RINSES, 1))
    return jnp.where(skill == CHOP, chops, jnp.where(skill == WASH, rinses, 1))


def _staying(memory: Memory, cell: Array, facing: Array, who: Bool[Array, " A"], reason: int) -> Memory:
    """8.5.2: a fresh STAY where they are, for those in `who`."""
    is_other = memory.op != STAY
    return replace(
        memory,
        skill=jnp.where(who, np.int8(STAY), memory.skill),
        target=jnp.where(who, cell, memory.target),
        goal=jnp.where(who, cell, memory.goal),
        facing=jnp.where(who, facing, memory.facing),
        repeats=jnp.where(who, np.int8(0), memory.repeats),
        arrived=memory.arrived & ~who,
        reason=jnp.where(who & is_other & (memory.reason == 0), np.int8(reason), memory.reason),
    )
