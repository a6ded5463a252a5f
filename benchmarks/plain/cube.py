"""CUBE in plain Python: placement (section 3) and the primitive step (section 4), one episode.

Cells are numbered row by row on a grid with a border of one cell, so that every neighbour of a cell has a
number.  Blocks are known by their place in the given list, which is the order in which they are visited.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

Place = tuple[int, int]  # row, column

STAY, UP, DOWN, LEFT, RIGHT = range(5)
MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
REVISIONS = ("current", "legacy")
CONFLICTS = ("reference", "paper")

FREE, BORDER = -1, -2  # of `_covered`, beside block numbers
TRIES, LAYOUTS = 1000, 64


class Push(NamedTuple):
    """One push that was evaluated with at least one pusher."""

    direction: int
    block: int
    result: str  # "ok", "insufficient_force" or "blocked_destination"
    pushers: list[int]  # in the order of the face cells


class Delivery(NamedTuple):
    """One block that reached the goal column."""

    block: int
    value: float
    pushers: list[int]


class Result(NamedTuple):
    """What a step returns; the reward is the same for every agent."""

    reward: float
    terminated: bool
    truncated: bool


class PlainCube:
    """One CUBE episode after the other.

    `weights`: one for each block.  `revision` and `conflict` as in the environment.  Raises `ValueError` for
    others, and for a weight whose block cannot be placed.
    """

    def __init__(
        self,
        side: int,
        weights: Sequence[int],
        agents: int,
        *,
        max_steps: int = 500,
        step_cost: float = 0.01,
        deliver_reward: float = 1.0,
        revision: str = "current",
        conflict: str = "reference",
    ) -> None:
        if revision not in REVISIONS:
            raise ValueError(f"revision {revision!r}: must be one of {', '.join(REVISIONS)}")
        if conflict not in CONFLICTS:
            raise ValueError(f"conflict {conflict!r}: must be one of {', '.join(CONFLICTS)}")
        if not all(1 <= weight <= side - 3 for weight in weights):
            raise ValueError(f"weights {list(weights)}: must be from 1 to {side - 3} on a grid of side {side}")
        self.side, self.weights, self.num_agents = side, tuple(weights), agents
        self.max_steps, self.step_cost, self.deliver_reward = max_steps, step_cost, deliver_reward
        self.legacy, self.one_per_cell = revision == "legacy", conflict == "paper"
        self._stride = side + 2
        self._goal = side  # column of the goal on the bordered grid
        self._delta = [row * self._stride + column for row, column in MOVES]
        inner = [self._cell((row, column)) for row in range(side) for column in range(side)]
        self._empty = [BORDER] * self._stride**2
        for cell in inner:
            self._empty[cell] = FREE
        self._squares = [
            [row * self._stride + column for row in range(weight) for column in range(weight)]
            for weight in self.weights
        ]

    def start(self, agents: Sequence[Place | None], blocks: Sequence[Place | None]) -> None:
        """Begin an episode from given cells: (row, column) of agents and of top-left block cells; None: absent."""
        self._at = [None if place is None else self._cell(place) for place in agents]
        self._crowd = [0] * self._stride**2  # agents on each cell
        for cell in self._at:
            if cell is not None:
                self._crowd[cell] += 1
        self._covered = self._empty.copy()
        self._corner = {b: self._cell(place) for b, place in enumerate(blocks) if place is not None}
        for b in self._corner:
            self._paint(b, b)
        self.steps, self.score = 0, 0.0
        self.pushes: list[Push] = []
        self.delivered: list[Delivery] = []

    def reset(self, rng: random.Random) -> None:
        """Begin an episode from a random layout (section 3); a dead end redraws the whole layout.

        Raises `RuntimeError` if no layout of 64 can be completed.
        """
        for _ in range(LAYOUTS):
            blocks = self._layout(rng)
            if blocks is not None:
                break
        else:
            raise RuntimeError(f"blocks {list(self.weights)} found no room on a grid of side {self.side}")
        rows = list(range(self.side))
        rng.shuffle(rows)
        unplaced = [None] * max(0, self.num_agents - self.side)
        self.start([(row, 0) for row in rows[: self.num_agents]] + unplaced, blocks)

    @property
    def agents(self) -> list[Place | None]:
        """(row, column) of every agent; None: unplaced."""
        return [None if cell is None else self._place(cell) for cell in self._at]

    @property
    def blocks(self) -> list[Place | None]:
        """Top-left cell of every block; None: delivered."""
        return [self._place(self._corner[b]) if b in self._corner else None for b in range(len(self.weights))]

    def step(self, actions: Sequence[int]) -> Result:
        """One action per agent; values outside 0..4 count as stay.  What happened: `pushes`, `delivered`."""
        self.steps += 1
        self.pushes, self.delivered = [], []
        at = self._at
        by_direction: tuple[list[int], ...] = ([], [], [], [], [])
        top: dict[int, int] = {}  # 4.1: the highest index on each cell at the start of the step
        for i, cell in enumerate(at):
            if cell is not None:
                top[cell] = i
                if 0 < actions[i] < 5:
                    by_direction[actions[i]].append(i)
        advanced: set[int] = set()
        for direction in (UP, DOWN, LEFT, RIGHT):
            if by_direction[direction]:
                self._push(direction, by_direction[direction], top, advanced)
        self._walk(by_direction, top, advanced)

        share = sum(delivery.value for delivery in self.delivered) / self.num_agents
        reward = -self.step_cost + share if self.delivered else -self.step_cost
        return Result(reward, not self._corner, self.steps >= self.max_steps)

    def _push(self, direction: int, walkers: list[int], top: dict[int, int], advanced: set[int]) -> None:
        """4.2: one pass.  Only blocks with a pusher matter, and none of these has moved yet in this pass."""
        delta, at, covered = self._delta[direction], self._at, self._covered
        pushers_of: dict[int, list[int]] = {}
        for i in walkers:
            cell = at[i]
            if cell is not None and top[cell] == i and (block := covered[cell + delta]) >= 0:
                pushers_of.setdefault(block, []).append(i)
        for block in sorted(pushers_of):
            pushers = sorted(pushers_of[block], key=lambda i: at[i] or 0)  # cells of a face, in their order
            if len(pushers) < self.weights[block]:
                self.pushes.append(Push(direction, block, "insufficient_force", pushers))
            elif not self._has_room(block, delta):
                self.pushes.append(Push(direction, block, "blocked_destination", pushers))
            else:
                self.pushes.append(Push(direction, block, "ok", pushers))
                self._paint(block, FREE)
                self._corner[block] += delta
                self._paint(block, block)
                # Nobody is counted in before everybody has been looked at: the map is the one before they move.
                movers = [i for i in pushers if self._is_open((at[i] or 0) + delta)]
                for i in movers:
                    self._move(i, delta)
                advanced.update(movers)
                self._deliver(block, pushers)

    def _has_room(self, block: int, delta: int) -> bool:
        """Whether no agent, border or other block is in the square in front."""
        corner, covered, crowd = self._corner[block] + delta, self._covered, self._crowd
        return all(
            not crowd[corner + offset] and covered[corner + offset] in (FREE, block) for offset in self._squares[block]
        )

    def _deliver(self, block: int, pushers: list[int]) -> None:
        """4.2, 6: a moved block that covers a goal cell scores and is gone at once."""
        weight = self.weights[block]
        if self._corner[block] % self._stride + weight - 1 == self._goal:
            value = self.deliver_reward * weight
            self.score += value
            self.delivered.append(Delivery(block, value, pushers))
            self._paint(block, FREE)
            del self._corner[block]

    def _walk(self, by_direction: Sequence[list[int]], top: dict[int, int], advanced: set[int]) -> None:
        """4.4: everybody else moves at once on the map that the pushes left."""
        walkers: list[tuple[int, int, int]] = []
        for direction in (UP, DOWN, LEFT, RIGHT):
            delta = self._delta[direction]
            for i in by_direction[direction]:
                cell = self._at[i]
                if cell is None or i in advanced:
                    continue
                target = cell + delta
                onto = self.legacy and self._crowd[target] > 0 and top.get(target, -1) > i
                if onto or self._is_open(target):
                    walkers.append((i, delta, target))
        if self.one_per_cell:  # the smallest index gets a free cell
            first: dict[int, int] = {}
            for i, _, target in walkers:
                first[target] = min(i, first[target]) if target in first else i
            walkers = [walker for walker in walkers if self._crowd[walker[2]] or first[walker[2]] == walker[0]]
        for i, delta, _ in walkers:
            self._move(i, delta)

    def _is_open(self, cell: int) -> bool:
        """Whether an agent may walk there: no agent, no block, not the goal, not outside."""
        return self._covered[cell] == FREE and not self._crowd[cell] and cell % self._stride != self._goal

    def _move(self, i: int, delta: int) -> None:
        cell = self._at[i]
        if cell is not None:
            self._crowd[cell] -= 1
            self._crowd[cell + delta] += 1
            self._at[i] = cell + delta

    def _paint(self, block: int, value: int) -> None:
        corner, covered = self._corner[block], self._covered
        for offset in self._squares[block]:
            covered[corner + offset] = value

    def _layout(self, rng: random.Random) -> list[Place] | None:
        """Top-left cells of all blocks, or None in a dead end."""
        used: set[Place] = set()
        corners: list[Place] = []
        for weight in self.weights:
            for _ in range(TRIES):
                row, column = rng.randint(1, self.side - weight - 2), rng.randint(1, self.side - weight - 2)
                square = {(row + i, column + j) for i in range(weight) for j in range(weight)}
                if used.isdisjoint(square):
                    break
            else:
                return None
            used |= square
            corners.append((row, column))
        return corners

    def _cell(self, place: Place) -> int:
        return (place[0] + 1) * self._stride + place[1] + 1

    def _place(self, cell: int) -> Place:
        return cell // self._stride - 1, cell % self._stride - 1
