"""Whole plans for MA-Crafter: tools first, then what the squad collects together.

Axes: A agents, Q squads, S places in a squad, W x H cells, N words of a map, L ops of a plan.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter import waves
from jaxcoop.agents.scripted.macrafter.maps import Maps, maps_of
from jaxcoop.agents.scripted.macrafter.needs import Team, look
from jaxcoop.agents.scripted.macrafter.squads import Squads, squads_of
from jaxcoop.agents.scripted.plans.base import Questions, answers, questions_of
from jaxcoop.agents.scripted.plans.macrafter_aims import Aim, Wants, wants_of
from jaxcoop.agents.scripted.plans.macrafter_meetings import (
    Meeting,
    Memory,
    Parts,
    choose,
    is_joint,
    nothing_tried,
    parts_of,
    remembered,
)
from jaxcoop.agents.scripted.plans.macrafter_ways import Nearest, disk, flood, nearest, unpack
from jaxcoop.agents.scripted.plans.macrafter_writing import Goals, Joined, write
from jaxcoop.agents.scripted.plans.mistakes import Mistakes, Slips, slips_of
from jaxcoop.cognition import plans
from jaxcoop.cognition.state import State
from jaxcoop.cognition.types import Answer, Plan, PlanStatus
from jaxcoop.core.options import check_ranges
from jaxcoop.core.rarely import rarely
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.config import Settings, requirements
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import Material, Thing, material_of
from jaxcoop.envs.macrafter.types import State as World

GATHERS = (Aim.WOOD, Aim.STONE, Aim.EAT, Aim.DRINK, Aim.ORE)
"""Aims that lead to the nearest of many things."""

EARLY = 12
"""Who is at the meeting more steps before the last one does something of its own first."""

EXPLORES_FOR = 10
"""Steps after which who finds nothing turns to another side."""


class Talk(NamedTuple):
    """What the planner needs to know of the cognitive layer."""

    asked: Questions
    spec: Int[Array, "A 3"]  # of the committed plans
    target: Int[Array, ""]  # of the last repair channel, -1
    members: Bool[Array, " A"]  # of it
    is_lost: Bool[Array, " A"]  # the last plan failed on the way


@dataclasses.dataclass(frozen=True)
class CrafterPlans:
    """Makes plans for a team of MA-Crafter; `jaxcoop.cognition.play.PlanMaker`.

    Everybody works out where its squad meets by the same rule from the state of the world.  With `knows_plans` it also
    knows what the others have committed to, which they say in structures with messages.
    """

    env: MACrafter
    mistakes: Mistakes = dataclasses.field(default_factory=Mistakes)
    knows_plans: bool = False
    ops: int = 8  # L; as in `Setup.plan_ops`

    def __post_init__(self) -> None:
        """Check the length of plans."""
        check_ranges(self, [("ops", 4, 1000)])

    @property
    def settings(self) -> Settings:
        """Of the environment."""
        return self.env.settings

    @property
    def squads(self) -> Squads:
        """The team in squads."""
        return squads_of(self.settings)

    def init(self, key: Array) -> Memory:
        """Nothing was tried."""
        del key
        return nothing_tried(self.squads)

    def answer(self, key: Array, memory: Memory, state: State, asks: Bool[Array, " A"]) -> tuple[Answer, Memory]:
        """Plans for all that ask; an episode in which nobody does costs nothing."""
        asked = questions_of(state, asks)
        slips = slips_of(self.mistakes, key, asked.repairs)
        held, channel = state.current, state.channel
        is_lost = (held.status == PlanStatus.FAILED) & (plans.ops_now(held)[:, 0] == Op.NAVIGATE)
        talk = Talk(asked, held.plan.spec, channel.target, channel.members, is_lost)
        is_asked = asked.plans.any()
        plan, is_pointless, after = rarely(self._think, is_asked, memory, state.world, talk, slips)
        memory = jax.tree.map(lambda new, old: jnp.where(is_asked, new, old), after, memory)
        return answers(state, asked, plan, is_pointless, slips.follows), memory

    def _think(self, memory: Memory, world: World, talk: Talk, slips: Slips) -> tuple[Plan, Bool[Array, " A"], Memory]:
        """Everybody's plan, whether going on with the present one is pointless, and what is remembered."""
        settings, squads = self.settings, self.squads
        material = material_of(world.material).astype(jnp.int32)
        team = look(settings, squads, world)
        maps = maps_of(settings, world, jnp.zeros_like(world.sleeping))
        wants = wants_of(settings, squads, world, team)
        mine = self._committed(talk)
        is_pointless = self._is_pointless(material, talk, mine)
        goes_on = talk.asked.holds & ~(talk.asked.decides & is_pointless)
        meeting, parts = self._meet(material, maps, team, wants, mine, goes_on, memory)

        joined = self._joined(meeting, parts)
        # Who found no way there digs for a while, which opens new ones; who would wait long has time for it as well.
        joins = squads.by_agent(parts.joins) & wants.is_free & ~talk.is_lost
        joins &= joined.latest - joined.steps <= EARLY
        aim = jnp.where(joins, int(Aim.MEET), wants.aim)
        aim, joined = self._after_repair(material, world, team, talk, wants, aim, joined)
        # Mistakes: one who leaves its partners alone does what it would do without them.
        aim = jnp.where(slips.too_few & (aim == Aim.MEET), wants.aim, aim)
        ores = self._ores(material, team)
        if ores is not None:
            aim = jnp.where(slips.wrong_tool & (ores != 0).any(1) & (wants.tier < 3), int(Aim.ORE), aim)

        goals = self._gather(material, world, maps, aim, ores, talk.asked.plans)
        plan = write(settings, self.ops, world, aim, wants, goals, joined, slips.pause, talk.is_lost)
        made = squads.by_squad(talk.asked.plans & (aim == Aim.MEET)).sum(1, dtype=jnp.int32)
        return plan, is_pointless, remembered(squads, memory, meeting.cell, made)

    def _committed(self, talk: Talk) -> Int[Array, " A"]:
        """The cell that each agent's present plan collects together with others, -1: none."""
        kind, ident = talk.spec[:, 1], talk.spec[:, 2]
        meets = talk.asked.holds & is_joint(self.squads, kind) & (ident >= 1) & (ident <= self.settings.cells)
        return jnp.where(meets, ident - 1, -1)

    def _is_pointless(self, material: Array, talk: Talk, mine: Int[Array, " A"]) -> Bool[Array, " A"]:
        """Plans whose object is gone or, as far as known, has lost its partners."""
        kind, ident = talk.spec[:, 1], talk.spec[:, 2]
        is_cell = (kind > 0) & (kind <= Material.DIAMOND) & (ident >= 1) & (ident <= self.settings.cells)
        gone = is_cell & (material.reshape(-1)[jnp.where(is_cell, ident - 1, 0)] != kind)
        if not self.knows_plans:
            return gone
        squads = self.squads
        cells, holds = squads.by_squad(mine, -1), squads.by_squad(talk.asked.holds)
        same = (cells[:, :, None] == cells[:, None, :]).sum(2) + (~holds).sum(1)[:, None]  # [Q, S]
        required = jnp.ones_like(kind)
        for code in squads.joint:
            required = jnp.where(kind == code, requirements(self.settings.tasks)[code].agents, required)
        return gone | ((mine >= 0) & (squads.by_agent(same) < required))

    def _meet(
        self,
        material: Array,
        maps: Maps,
        team: Team,
        wants: Wants,
        mine: Int[Array, " A"],
        goes_on: Bool[Array, " A"],
        memory: Memory,
    ) -> tuple[Meeting, Parts]:
        """Where the squads meet, and who takes which part."""
        settings, squads = self.settings, self.squads
        available, agreed = squads.by_squad(wants.is_free), jnp.full_like(memory.cell, -1)
        if self.knows_plans:
            cells = squads.by_squad(jnp.where(goes_on, mine, -1), -1)
            first = jnp.argmax(cells >= 0, axis=1)[:, None]
            agreed = jnp.take_along_axis(cells, first, axis=1)[:, 0]
            available &= ~squads.by_squad(goes_on & (mine < 0))
        own, begin = squads.by_squad(maps.own), jnp.zeros((squads.count, maps.ground.shape[0]), jnp.uint32)
        for place in range(squads.size):
            begin = begin | own[:, place]
        reached = flood(settings.width, maps.ground, begin)
        digs = team.able[Material.STONE].any(1) & (Material.STONE in squads.alone)
        rock = jnp.where(digs[:, None], waves.grown(reached, settings.width) & maps.stone, jnp.uint32(0))
        walkable, near_rock = (unpack(cells, settings.width, settings.height) for cells in (reached, rock))
        nobody = jnp.zeros((squads.count,), jnp.bool_)
        needed = {int(kind): nobody for kind in squads.joint}
        needed |= {kind: squads.by_squad(lacks).any(1) for kind, lacks in wants.lacks.items()}
        meeting = choose(settings, squads, material, walkable, near_rock, team, available, needed, agreed, memory)
        return meeting, parts_of(settings, team, meeting, available)

    def _joined(self, meeting: Meeting, parts: Parts) -> Joined:
        """The meeting as each agent sees it."""
        squads = self.squads

        def each(values: Array) -> Array:
            return squads.by_agent(jnp.broadcast_to(values[:, None], parts.joins.shape))

        return Joined(
            cell=each(meeting.cell),
            kind=each(meeting.kind),
            dig=squads.by_agent(parts.dig),
            steps=squads.by_agent(parts.steps),
            latest=each(parts.latest),
        )

    def _after_repair(
        self, material: Array, world: World, team: Team, talk: Talk, wants: Wants, aim: Array, joined: Joined
    ) -> tuple[Int[Array, " A"], Joined]:
        """Members of a repair channel that make plans of their own go for its target, if they have the tool."""
        settings, cell = self.settings, jnp.maximum(talk.target, 0)
        kind = material.reshape(-1)[cell]
        able = jnp.zeros_like(talk.members)
        for code, ok in team.able.items():
            able = jnp.where(kind == code, self.squads.by_agent(ok), able)
        goes = talk.asked.repairs & able & (talk.target >= 0) & wants.is_free
        x, y = world.x.astype(jnp.int32), world.y.astype(jnp.int32)
        gap = jnp.abs(x - cell // settings.height) + jnp.abs(y - cell % settings.height)
        steps = jnp.maximum(gap - settings.distance, 0)
        new = Joined(
            cell=cell,
            kind=kind,
            dig=jnp.full_like(steps, -1),
            steps=steps,
            latest=jnp.where(talk.members & able, steps, 0).max(),
        )
        joined = jax.tree.map(lambda a, b: jnp.where(goes, a, b), new, joined)
        return jnp.where(goes, int(Aim.MEET), aim), joined

    def _ores(self, material: Array, team: Team) -> Array | None:
        """What each agent lacks the tool for, as sets of cells; None where nobody makes that mistake."""
        if not self.mistakes.wrong_tool:
            return None
        words = None
        for code in self.squads.joint:
            cells = waves.pack(material == code)
            lacks = ~self.squads.by_agent(team.able[code])
            mine = jnp.where(lacks[:, None], cells, jnp.uint32(0))
            words = mine if words is None else words | mine
        return words

    def _gather(
        self, material: Array, world: World, maps: Maps, aim: Array, ores: Array | None, asks: Bool[Array, " A"]
    ) -> Goals:
        """The nearest of what each agent is after, and another one from there."""
        settings = self.settings
        x, y = world.x.astype(jnp.int32), world.y.astype(jnp.int32)
        sets = jnp.zeros_like(maps.own)
        wanted = [(Aim.WOOD, maps.tree), (Aim.STONE, maps.stone), (Aim.EAT, maps.cow), (Aim.DRINK, maps.water)]
        for which, cells in wanted:
            sets = jnp.where((aim == which)[:, None], cells, sets)
        if ores is not None:
            sets = jnp.where((aim == Aim.ORE)[:, None], ores, sets)
        gathers = (aim[:, None] == jnp.array([int(a) for a in GATHERS])).any(1) & ~world.removed
        first = self._shared_out(maps, sets, x, y, gathers, aim)
        gathers = gathers & asks
        more = gathers & first.found & ((aim == Aim.WOOD) | (aim == Aim.STONE))
        others = sets & ~disk(settings.width, maps.ground.shape[0], first.x, first.y)
        second = nearest(settings.width, maps.ground, others, first.x, first.y, more)
        side = (jnp.arange(aim.shape[0], dtype=jnp.int32) + world.t // EXPLORES_FOR) % 4
        kind, ident = zip(*(_named(settings, material, found) for found in (first, second)), strict=True)
        is_cow = aim == Aim.EAT
        cow = _cow_at(world, first)
        return Goals(
            gathers=gathers,
            found=jnp.stack([first.found & (~is_cow | (cow >= 0)), second.found], 1),
            kind=jnp.stack([jnp.where(is_cow, int(Thing.COW), kind[0]), kind[1]], 1),
            ident=jnp.stack([jnp.where(is_cow, cow, ident[0]), ident[1]], 1),
            steps=jnp.stack([first.steps, second.steps], 1),
            side=side,
        )

    def _shared_out(
        self, maps: Maps, sets: Array, x: Int[Array, " A"], y: Int[Array, " A"], asks: Bool[Array, " A"], aim: Array
    ) -> Nearest:
        """The nearest of each agent's set; what goes to one member of a squad is left out for those after it."""
        squads, width = self.squads, self.settings.width
        sets, asks, aims = squads.by_squad(sets), squads.by_squad(asks), squads.by_squad(aim)
        x, y = squads.by_squad(x, -1), squads.by_squad(y)
        shares = (aims == Aim.WOOD) | (aims == Aim.STONE) | (aims == Aim.EAT)
        taken, found = jnp.zeros_like(sets[:, 0]), []
        for place in range(squads.size):
            mine = sets[:, place] & ~jnp.where(shares[:, place, None], taken, jnp.uint32(0))
            one = nearest(width, maps.ground, mine, x[:, place], y[:, place], asks[:, place])
            around = disk(width, maps.ground.shape[0], jnp.where(one.found, one.x, -1), one.y)
            taken = taken | jnp.where(shares[:, place, None], around, jnp.uint32(0))
            found.append(one)
        return Nearest(*(squads.by_agent(jnp.stack(field, axis=1)) for field in zip(*found, strict=True)))


def _named(settings: Settings, material: Array, found: Nearest) -> tuple[Array, Array]:
    """Material and id of the cells that were found."""
    cell = jnp.where(found.found, found.x * settings.height + found.y, 0)
    return material.reshape(-1)[cell], cell + 1


def _cow_at(world: World, found: Nearest) -> Int[Array, " A"]:
    """Id of the cow in each cell, -1: none."""
    here = (world.cow_x == found.x[:, None]) & (world.cow_y == found.y[:, None])
    return jnp.where(here, world.cow_id, -1).max(1)
