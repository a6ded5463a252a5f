"""MA-Crafter in plain Python: the step of sections 5 to 10 and the rewards of section 13, in a given world."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxcoop.benchmarks.plain.macrafter_body import ENERGY, HEALTH, Player
from jaxcoop.benchmarks.plain.macrafter_codes import (
    ACHIEVEMENT,
    ACHIEVEMENT_PAY,
    ACTION,
    ACTIONS,
    BECOMES,
    CAPS,
    COW,
    ITEM_PAY,
    ITEMS,
    LAVA,
    MAKE,
    PAPER_TASKS,
    PLACE,
    PLAIN_SCORE,
    SEARCH,
    WALKABLE,
    YIELDS,
    Placing,
    Reason,
    Task,
    unit_score,
)
from jaxcoop.benchmarks.plain.macrafter_world import PLANT, Cow, Place, World

NOOP, DO, SLEEP, SHARE = ACTION["noop"], ACTION["do"], ACTION["sleep"], ACTION["share"]
MOVE, PLACING, MAKING = ACTION["move_left"], ACTION["place_stone"], ACTION["make_wood_pickaxe"]
WAKE_UP, COLLECT_DIAMOND = ACHIEVEMENT["wake_up"], ACHIEVEMENT["collect_diamond"]


class Outcome(NamedTuple):
    """How an agent's action ended (section 10); `need` and `have` belong to `Reason.REQUIRES_AGENTS`."""

    success: bool
    reason: int = Reason.NONE
    need: int = 0
    have: int = 0


SUCCESS = Outcome(True)


class Collection(NamedTuple):
    """One cell that was collected."""

    kind: int  # material, or COW
    place: Place
    participants: list[int]


class Result(NamedTuple):
    """What a step returns, one entry per agent; `outcomes` None: was not listed any more."""

    rewards: list[float]
    terminated: list[bool]
    truncated: list[bool]
    outcomes: list[Outcome | None]


class PlainCrafter(World):
    """One MA-Crafter episode in a given world.

    `material[x][y]`, cells (x, y) of `cows` (None: an empty slot), `players` and `plants`.  `tasks` maps
    materials (and `COW`) to what their collection takes; others take one agent.  `rng` moves and balances cows.
    """

    def __init__(
        self,
        material: Any,
        cows: Sequence[Place | None],
        players: Sequence[Place],
        *,
        plants: Sequence[Place] = (),
        tasks: Mapping[int, Task] = PAPER_TASKS,
        distance: int = 1,
        vitals: bool = True,
        balance: bool = True,
        team_score: bool = True,
        terminate_on_diamond: bool = False,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(material, cows, players, plants, distance, rng or random.Random(0))
        self.vitals, self.balance, self.team_score = vitals, balance, team_score
        self.terminate_on_diamond = terminate_on_diamond
        self._tasks = {kind: tasks.get(kind, Task()) for kind in YIELDS}
        self._points = {kind: unit_score(YIELDS[kind].item, task) for kind, task in self._tasks.items()}
        self.listed = list(range(len(players)))  # agents that are not removed
        self.steps, self.score, self.daylight = 0, 0.0, 0.0
        self.unlocked: set[int] = set()  # achievements that the team has been paid for
        self.collections: list[Collection] = []  # of the last step
        self.notes: dict[int, Outcome] = {}  # block notes of the last step

    def step(
        self,
        actions: Sequence[int],
        shares: Sequence[tuple[int, int, int, int]] = (),
        places: Sequence[tuple[int, int]] = (),
        cow_directions: Sequence[int] | None = None,
    ) -> Result:
        """One primitive per agent; values outside 0..17 count as noop.

        `shares`: (sharer, recipient, item, quantity); `places`: (agent, 0..3); `cow_directions`: by slot, -1
        stays, drawn if not given.  What was collected: `collections`.
        """
        self.steps += 1
        self.daylight = 1 - abs(math.cos(math.pi * ((self.steps / 300) % 1 + 0.3))) ** 3
        players, listed = self.players, self.listed
        does = [action if 0 <= action < len(ACTIONS) else NOOP for action in actions]
        earned = {i: self._count(players[i], does[i]) for i in listed}
        shared = self._share(shares)
        placed = self._place_requests(places)
        collectors = [i for i in listed if does[i] == DO]
        pay = self._collect(collectors)
        primitives = [NOOP if a == DO or (i in placed and PLACING <= a < MAKING) else a for i, a in enumerate(does)]

        rewards, truncated = [0.0] * len(players), [False] * len(players)
        for i in listed:
            if i in pay:
                rewards[i] = pay[i]
                continue
            rewards[i] = self._reward(players[i], primitives[i])
            if players[i].inventory[HEALTH] <= 0:
                truncated[i] = players[i].removed = True
                del self._objects[players[i].cell]
        self.listed = [i for i in listed if not players[i].removed]
        terminated = [False] * len(players)
        if self.terminate_on_diamond:
            for i in listed:
                terminated[i] = players[i].achievements[COLLECT_DIAMOND] > 0

        self._update_cows(self.first_cows, cow_directions)
        for i in self.listed:
            self._update(players[i], primitives[i])
        self._update_cows(self.later_cows, cow_directions)
        if self.balance and self.steps % 10 == 0:
            self._balance(self.daylight)

        outcomes: list[Outcome | None] = [None] * len(players)
        took = {i for collection in self.collections for i in collection.participants}
        for i in listed:
            outcomes[i] = self._outcome(i, does[i], earned[i], took, shared, placed)
        return Result(rewards, terminated, truncated, outcomes)

    def _share(self, requests: Sequence[tuple[int, int, int, int]]) -> dict[int, Outcome]:
        """S2, section 9: the outcome of each sharer: any success, else the first failure."""
        outcomes: dict[int, Outcome] = {}
        for sharer, recipient, item, quantity in requests:
            outcome = self._transfer(sharer, recipient, item, quantity)
            if outcome.success or sharer not in outcomes:
                outcomes[sharer] = outcome
        return outcomes

    def _transfer(self, sharer: int, recipient: int, item: int, quantity: int) -> Outcome:
        known = range(len(self.players))
        if item == HEALTH:
            return Outcome(False, Reason.HEALTH_NOT_SHAREABLE)
        if sharer not in known or recipient not in known:
            return Outcome(False, Reason.INVALID_INDEX)
        if sharer == recipient:
            return Outcome(False, Reason.SELF_SHARE)
        giver, taker = self.players[sharer], self.players[recipient]
        if giver.removed or taker.removed:
            return Outcome(False, Reason.REMOVED)
        if giver.inventory[item] <= 0:
            return Outcome(False, Reason.NONE_AVAILABLE)
        moved = min(quantity, giver.inventory[item])
        giver.inventory[item] -= moved
        taker.inventory[item] += moved
        return SUCCESS

    def _place_requests(self, requests: Sequence[tuple[int, int]]) -> dict[int, Outcome]:
        """S3, 8.2: one after the other, so that a cell is taken by the first."""
        outcomes = {}
        for i, number in requests:
            if i not in range(len(self.players)):
                continue
            player = self.players[i]
            if not 0 <= number < len(PLACE):
                outcomes[i] = Outcome(False, Reason.UNKNOWN_ITEM)
            elif player.removed:
                outcomes[i] = Outcome(False, Reason.REMOVED)
            elif player.inventory[PLACE[number].item] < PLACE[number].amount:
                outcomes[i] = Outcome(False, Reason.MISSING_PLACE_RESOURCES)
            else:
                facings = dict.fromkeys((player.facing, *SEARCH))
                found = any(self._place_at(player, PLACE[number], facing) for facing in facings)
                outcomes[i] = SUCCESS if found else Outcome(False, Reason.NO_ADJACENT_TARGET)
        return outcomes

    def _place_at(self, player: Player, placing: Placing, facing: int) -> bool:
        """8.1: put it on the neighbour in that direction; whether that was possible."""
        cell = player.cell + self._map.steps[facing]
        if (
            cell in self._objects
            or self._material[cell] not in placing.on
            or player.inventory[placing.item] < placing.amount
        ):
            return False
        player.inventory[placing.item] -= placing.amount
        if placing.becomes is None:
            self._enter(cell, PLANT)
        else:
            self._material[cell] = placing.becomes
        player.achievements[placing.achievement] += 1
        return True

    def _collect(self, collectors: list[int]) -> dict[int, float]:
        """S5, section 7: the pay of every collector."""
        self.collections, self.notes = [], {}
        pay = dict.fromkeys(collectors, 0.0)
        near: dict[tuple[int, int], list[int]] = {}
        for i in collectors:
            for offset in self._map.reach:
                cell = self.players[i].cell + offset
                if (kind := self._collectable(cell)) is not None:
                    near.setdefault((cell, kind), []).append(i)
        for (cell, kind), agents in near.items():
            task = self._tasks[kind]
            able = [i for i in agents if task.can(self.players[i].inventory)]
            if len(able) < task.agents:
                note = Outcome(False, Reason.REQUIRES_AGENTS, task.agents, len(able))
                self.notes.update(dict.fromkeys(agents, note))
                continue
            for i in agents:
                if i not in able:
                    self.notes[i] = Outcome(False, Reason.MISSING_TOOL)
            self._take(cell, kind, able, pay)
        return pay

    def _collectable(self, cell: int) -> int | None:
        material = self._material[cell]
        if material in BECOMES:
            return material
        return COW if isinstance(self._objects.get(cell), Cow) else None

    def _take(self, cell: int, kind: int, able: list[int], pay: dict[int, float]) -> None:
        item, amount, achievement = YIELDS[kind]
        if kind == COW:
            self._remove(self._objects[cell])
        else:
            self._material[cell] = BECOMES[kind]
        points = self._points[kind] if self.team_score else PLAIN_SCORE[ITEMS[item]]
        for i in able:
            self.players[i].inventory[item] += amount
            self.players[i].achievements[achievement] += 1
            pay[i] += points * amount
        if self.team_score:
            self.score += points * amount * len(able)
        self.collections.append(Collection(kind, self.place(cell), able))

    def _reward(self, player: Player, primitive: int) -> float:
        """13: the pay of one who does not collect, before its own action."""
        reward = 0.0 if primitive == NOOP else 3.0 if MOVE <= primitive < DO else 1.0
        for achievement, count in enumerate(player.achievements):
            if count and achievement not in self.unlocked:
                self.unlocked.add(achievement)
                reward += ACHIEVEMENT_PAY[achievement]
        for k, (item, points) in enumerate(ITEM_PAY):
            if player.inventory[item] > player.paid[k]:
                reward += points
            player.paid[k] = player.inventory[item]
        return reward

    def _update(self, player: Player, action: int) -> None:
        """S8, section 6: one player acts and lives on."""
        inventory = player.inventory
        if player.sleeping:
            if inventory[ENERGY] < CAPS[ENERGY]:
                action = SLEEP
            else:
                player.sleeping = False
                player.achievements[WAKE_UP] += 1
        if action == SLEEP:
            player.sleeping = player.sleeping or inventory[ENERGY] < CAPS[ENERGY]
        elif MOVE <= action < DO:
            self._move(player, action - MOVE)
        elif PLACING <= action < MAKING:
            self._place_at(player, PLACE[action - PLACING], player.facing)
        elif MAKING <= action < SHARE:
            self._make(player, action - MAKING)
        player.live(self.vitals)

    def _move(self, player: Player, direction: int) -> None:
        player.facing = direction
        cell = player.cell + self._map.steps[direction]
        material = self._material[cell]
        if (material in WALKABLE or material == LAVA) and cell not in self._objects:
            del self._objects[player.cell]
            player.cell = cell
            self._enter(cell, player)
        if self._material[player.cell] == LAVA:
            player.inventory[HEALTH] = 0

    def _make(self, player: Player, number: int) -> None:
        """8.3; E1: nothing can be made in the first column or row."""
        recipe, inventory, cell = MAKE[number], player.inventory, player.cell
        if 0 in self.place(cell) or any(inventory[item] < 1 for item in recipe.ingredients):
            return
        if all(self._material[cell + offset] != recipe.station for offset in self._map.around):
            return
        for item in recipe.ingredients:
            inventory[item] -= 1
        inventory[recipe.item] += 1
        player.achievements[recipe.achievement] += 1

    def _count(self, player: Player, action: int) -> int:
        """How often the player has made or placed what the action is about."""
        if PLACING <= action < MAKING:
            return player.achievements[PLACE[action - PLACING].achievement]
        if MAKING <= action < SHARE:
            return player.achievements[MAKE[action - MAKING].achievement]
        return 0

    def _outcome(
        self,
        i: int,
        action: int,
        earned: int,
        took: set[int],
        shared: dict[int, Outcome],
        placed: dict[int, Outcome],
    ) -> Outcome:
        """S10, section 10."""
        if action == DO:
            return SUCCESS if i in took else self.notes.get(i, Outcome(False, Reason.NOTHING_IN_RANGE))
        if action == SHARE:
            return shared.get(i, Outcome(False, Reason.NO_SHARE_REQUEST))
        if PLACING <= action < MAKING and i in placed:
            return placed[i]
        if PLACING <= action < SHARE and self._count(self.players[i], action) <= earned:
            return Outcome(False, Reason.REQUIREMENTS_NOT_MET)
        return SUCCESS
