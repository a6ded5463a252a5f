"""A team that works its way to the diamonds: what everybody does next.

Axes: A agents, Q squads, S places in a squad, G goals, W width of an op row.  Centralised: sees the whole state.
Every op takes one step, so everybody decides anew in every step.
"""

import dataclasses

import jax.numpy as jnp
from flax import struct
from jaxtyping import Array, Bool, Int

from jaxcoop.agents.scripted.macrafter import targets, waves
from jaxcoop.agents.scripted.macrafter.gifts import gifts
from jaxcoop.agents.scripted.macrafter.maps import Goal, Maps, at, maps_of, target_room, terrain_of
from jaxcoop.agents.scripted.macrafter.needs import (
    CRAFT_ITEMS,
    FURNACE_STONE,
    NEAR,
    TABLE_WOOD,
    USES,
    Needs,
    Team,
    choose_crafter,
    look,
    needs_of,
)
from jaxcoop.agents.scripted.macrafter.ops import first_steps, joint, row, where
from jaxcoop.agents.scripted.macrafter.squads import PICKAXES, Squads, squads_of
from jaxcoop.agents.scripted.macrafter.vitals import Cares, cares_of
from jaxcoop.core.skills import Report
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.config import Settings, requirements
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import (
    DELTA_X,
    DELTA_Y,
    PLACES,
    Action,
    Item,
    Material,
    State,
    material_of,
)

HARVEST = 2
"""So many stones beside an agent are worth a step of anybody's way."""
RETRY = 16
"""Steps after which a goal to which there was no way is tried again."""
STILL = 3
"""Steps without a move after which others walk around an agent."""
LAGGARDS = 30
"""Steps that a squad with enough members at its target waits for the others."""
LOST, LOST_ON_FOOT = 3, 30
"""Steps that a step without a way to the target counts for: ways change if there is digging, else hardly."""


@struct.dataclass
class Memory:
    """What the team remembers."""

    target: targets.Target
    crafter: Int[Array, " Q"]  # place of the member that makes tools, -1: nobody; int32
    no_way: Bool[Array, "A G"]  # goals that could not be reached when last tried
    drinks: Bool[Array, " A"]  # goes on until full
    eats: Bool[Array, " A"]
    x: Int[Array, " A"]  # in the last step; int32
    y: Int[Array, " A"]
    still: Int[Array, " A"]  # steps without a move, at most STILL; int32


@dataclasses.dataclass(frozen=True)
class GreedyTeam:
    """Planner of the scripted team of one environment."""

    env: MACrafter

    @property
    def settings(self) -> Settings:
        """Of the environment."""
        return self.env.settings

    @property
    def squads(self) -> Squads:
        """The team in squads."""
        return squads_of(self.settings)

    def init(self, key: Array) -> Memory:
        """Nobody has a plan."""
        del key
        agents, count = self.env.num_agents, self.squads.count
        never = jnp.zeros((agents,), jnp.bool_)
        nowhere = jnp.full((agents,), -1, jnp.int32)
        return Memory(
            target=targets.no_target(self.squads),
            crafter=jnp.full((count,), -1, jnp.int32),
            no_way=jnp.zeros((agents, len(Goal)), jnp.bool_),
            drinks=never,
            eats=never,
            x=nowhere,
            y=nowhere,
            still=jnp.zeros((agents,), jnp.int32),
        )

    def plan(
        self, key: Array, memory: Memory, state: State, idle: Bool[Array, " A"], report: Report
    ) -> tuple[Int[Array, "A W"], Bool[Array, " A"], Memory]:
        """One-step ops of everybody."""
        del key, report
        settings, squads = self.settings, self.squads
        team = look(settings, squads, state)
        needs = needs_of(squads, team)
        x, y = state.x.astype(jnp.int32), state.y.astype(jnp.int32)
        has_moved = (x != memory.x) | (y != memory.y)
        still = jnp.where(has_moved, 0, jnp.minimum(memory.still + 1, STILL))
        maps = maps_of(settings, state, (still >= STILL) | state.sleeping)
        no_way = memory.no_way & (state.t % RETRY != 0)

        cares = cares_of(settings, state, squads, maps, no_way, memory.drinks, memory.eats)
        is_busy = squads.by_squad(cares.drinks | cares.eats | cares.sleeps).any(axis=1)
        target = targets.update(
            settings, squads, material_of(state.material), team, needs, memory.target, is_busy, state.t
        )
        crafter = choose_crafter(team, needs, memory.crafter)

        goal = self.goals(team, needs, target, crafter, cares, no_way)
        able = squads.by_agent(team.able[Material.STONE])
        digs = able & (Material.STONE in squads.alone)
        bridges = digs & (state.inventory[:, Item.STONE] > 0)
        cell = squads.by_agent(jnp.broadcast_to(target.cell[:, None], team.x.shape))
        room = target_room(settings, cell)
        stand = jnp.where((goal == Goal.TARGET)[:, None], room, maps.stand[jnp.minimum(goal, Goal.INTERIOR)])
        asks = (goal != Goal.NONE) & ~state.sleeping & ~state.removed
        terrain = terrain_of(settings, maps, digs, bridges)
        way = waves.ways(settings.width, terrain, stand, x, y, state.facing.astype(jnp.int32), asks)
        arrived = at(stand, settings.width, x, y)
        is_lost = asks & ~arrived & (way.direction == waves.NOWHERE)
        no_way = no_way | (is_lost[:, None] & (jnp.arange(len(Goal)) == goal[:, None]))

        in_room = at(room, settings.width, x, y)
        meets, target = self.meeting(team, target, squads.by_squad(in_room))
        lost = squads.by_squad(is_lost & (goal == Goal.TARGET)).any(axis=1)
        loss = LOST if Material.STONE in squads.alone else LOST_ON_FOOT
        target = dataclasses.replace(target, age=target.age + jnp.where(lost, loss, 0))

        ops = first_steps(settings, state, maps, way)
        collects = row(Op.COLLECT, -1, -1, 1)
        mines = digs & maps.beside(Goal.STONE, settings.width, x, y)
        ops = where(arrived | (is_lost & mines), collects, ops)
        near_x, near_y = x[:, None] + jnp.asarray(DELTA_X, jnp.int32), y[:, None] + jnp.asarray(DELTA_Y, jnp.int32)
        rock = jnp.broadcast_to(maps.stone, maps.own.shape)
        stones = waves.contains(rock, settings.width, near_x, near_y).sum(axis=1, dtype=jnp.int32)
        ops = where(digs & (stones >= HARVEST) & (goal != Goal.TREE), collects, ops)
        waits = (goal == Goal.TARGET) & arrived
        ops = where(waits & ~mines, row(Op.NOOP), ops)
        ops = where(squads.by_agent(meets) & (goal == Goal.TARGET), joint(squads, target), ops)
        ops = where(cares.drinks_here | cares.eats_here, collects, ops)
        ops = where(cares.sleeps, row(Op.SLEEP), ops)
        ops = self.makes(state, maps, team, needs, crafter, mines, ops)
        asleep_useful = cares.drinks_here | (squads.by_agent(meets) & in_room)
        ops = where(state.sleeping, row(Op.SLEEP), ops)
        ops = where(state.sleeping & asleep_useful, collects, ops)
        gives, gift = gifts(squads, team, needs, crafter, maps.beside(Goal.WATER, settings.width, x, y))
        ops = where(gives, gift, ops)
        return (
            ops,
            jnp.ones_like(idle),
            Memory(target, crafter, no_way, cares.drinks, cares.eats, x, y, still),
        )

    def goals(
        self, team: Team, needs: Needs, target: targets.Target, crafter: Array, cares: Cares, no_way: Array
    ) -> Int[Array, " A"]:
        """Where everybody wants to go; `Goal`, int32."""
        squads = self.squads
        can = {goal: squads.by_squad(~no_way[:, goal]) for goal in Goal}
        digs = team.able[Material.STONE] & (Material.STONE in squads.alone)
        chops = team.able[Material.TREE] & (Material.TREE in squads.alone) & can[Goal.TREE]
        lacks_wood = (needs.have[:, 0] < needs.total[:, 0])[:, None]
        lacks_stone = (needs.have[:, 1] < needs.total[:, 1])[:, None]
        without_bridge = digs & (team.items[:, :, Item.STONE] < 1)
        mines = digs & can[Goal.STONE]
        goal = jnp.full(team.x.shape, Goal.NONE, jnp.int32)
        goal = jnp.where(chops, Goal.TREE, goal)
        goal = jnp.where(mines, Goal.STONE, goal)
        goal = jnp.where((target.cell >= 0)[:, None], Goal.TARGET, goal)
        goal = jnp.where(mines & (lacks_stone | without_bridge), Goal.STONE, goal)
        goal = jnp.where(chops & lacks_wood, Goal.TREE, goal)
        is_crafter = jnp.arange(squads.size) == crafter[:, None]
        at_furnace = needs.at_furnace[:, None]
        distance = jnp.where(at_furnace, team.furnace, team.table)
        there = jnp.where(at_furnace, team.at_furnace, team.at_table)
        station = jnp.where(at_furnace, Goal.FURNACE, Goal.TABLE)
        station = jnp.where(distance <= NEAR, station, Goal.INTERIOR)
        goal = jnp.where(is_crafter, jnp.where(there, Goal.NONE, station), goal)
        drinks, eats = squads.by_squad(cares.drinks), squads.by_squad(cares.eats)
        goal = jnp.where(eats, Goal.COW, jnp.where(drinks, Goal.WATER, goal))
        return squads.by_agent(goal)

    def meeting(
        self, team: Team, target: targets.Target, near: Bool[Array, "Q S"]
    ) -> tuple[Bool[Array, "Q S"], targets.Target]:
        """Who collects the squad's target now: enough are there, and all of them or for long enough."""
        needs = requirements(self.settings.tasks)
        able = jnp.zeros_like(near)
        required = jnp.ones_like(target.cell)
        for kind in self.squads.joint:
            is_kind = target.kind == kind
            able = jnp.where(is_kind[:, None], team.able[kind], able)
            required = jnp.where(is_kind, needs[kind].agents, required)
        here = near & able & team.alive & (target.cell >= 0)[:, None]
        count = here.sum(axis=1, dtype=jnp.int32)
        enough = count >= required
        waited = jnp.where(enough, target.waited + 1, 0)
        everybody = count >= jnp.minimum(team.alive.sum(axis=1, dtype=jnp.int32), 4)
        everybody = everybody | (target.kind == Material.STONE) | (target.kind == Material.TREE)  # there is more of it
        starts = enough & (everybody | (waited > LAGGARDS))
        return here & starts[:, None], dataclasses.replace(target, waited=waited)

    def makes(
        self,
        state: State,
        maps: Maps,
        team: Team,
        needs: Needs,
        crafter: Int[Array, " Q"],
        mines: Bool[Array, " A"],
        ops: Int[Array, "A W"],
    ) -> Int[Array, "A W"]:
        """The ops with those of crafters that can make a tool or put up a station now."""
        squads, settings = self.squads, self.settings
        is_crafter = squads.by_agent(jnp.arange(squads.size) == crafter[:, None])

        def each(values: Array) -> Array:
            return squads.by_agent(jnp.broadcast_to(values[:, None], team.x.shape))

        tier, at_furnace = each(needs.tier), each(needs.at_furnace)
        held = state.inventory.astype(jnp.int32)
        there = jnp.where(at_furnace, squads.by_agent(team.at_furnace), squads.by_agent(team.at_table))
        distance = jnp.where(at_furnace, squads.by_agent(team.furnace), squads.by_agent(team.table))
        for number in range(len(PICKAXES)):
            enough = jnp.ones_like(is_crafter)
            for item, amount in zip(CRAFT_ITEMS, USES[number].tolist(), strict=True):
                enough = enough & (held[:, item] >= amount)
            make = row(Op.CRAFT, Action.MAKE_WOOD_PICKAXE + number)
            ops = where(is_crafter & there & enough & (tier == number), make, ops)
        x, y = state.x.astype(jnp.int32), state.y.astype(jnp.int32)
        free = maps.ground & ~maps.cow & ~maps.agent
        has_room = maps.beside_set(free, settings.width, x, y)
        pays = jnp.where(at_furnace, held[:, Item.STONE] >= FURNACE_STONE, held[:, Item.WOOD] >= TABLE_WOOD)
        puts = is_crafter & ~there & (distance > NEAR) & (x > 0) & (y > 0) & pays
        for number in (PLACES.index("table"), PLACES.index("furnace")):
            is_it = at_furnace == (PLACES[number] == "furnace")
            ops = where(puts & is_it & has_room, row(Op.PLACE, number), ops)
        return where(puts & ~has_room & mines, row(Op.COLLECT, -1, -1, 1), ops)
