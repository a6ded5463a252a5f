"""Joint plans as the text says them (behaviour notes of Burrito, 8.6), in plain Python.

Cells are numbers in reading order; `Floor` knows the ways of a kitchen from a search with a queue.
"""

from collections import deque
from functools import cache, cached_property
from itertools import groupby, permutations, product

NORTH, SOUTH, EAST, WEST, STAY = range(5)
LIMIT = 1000


class Floor:
    """The walkable cells of rows of terrain characters."""

    def __init__(self, rows):
        self.width = len(rows[0])
        self.cells = [k for k, character in enumerate("".join(rows)) if character == " "]
        self.offsets = {NORTH: -self.width, SOUTH: self.width, EAST: 1, WEST: -1}

    @cached_property
    def ways(self):
        """Cell -> {direction: neighbour that is floor}."""
        known, column = set(self.cells), lambda cell: cell % self.width
        edges = {EAST: self.width - 1, WEST: 0}
        return {
            c: {d: c + k for d, k in self.offsets.items() if c + k in known and column(c) != edges.get(d)}
            for c in self.cells
        }

    @cache  # noqa: B019  lives as long as the tests
    def distances(self, goal):
        """Cell -> steps to the goal, for cells that are connected with it."""
        found, queue = {goal: 0}, deque([goal])
        while queue:
            cell = queue.popleft()
            for near in self.ways[cell].values():
                if near not in found:
                    found[near] = found[cell] + 1
                    queue.append(near)
        return found

    def direction(self, cell, to):
        """The direction from a cell to a neighbour, `STAY` to itself."""
        return STAY if cell == to else next(d for d, near in self.ways[cell].items() if near == to)

    def candidates(self, cell, goal, order):
        """The own cell and its neighbours, the nearest to the goal first, equally near ones in the order given."""
        far, ways = self.distances(goal), self.ways[cell]
        return sorted([cell, *(ways[d] for d in order if d in ways)], key=lambda c: far[c])

    @cache  # noqa: B019
    def all_candidates(self, cell, goal):
        """The same in all orders."""
        far = self.distances(goal)
        near = sorted([cell, *self.ways[cell].values()], key=lambda c: far[c])
        groups = [list(permutations(group)) for _, group in groupby(near, key=lambda c: far[c])]
        return [sum(parts, ()) for parts in product(*groups)]


def one_step(at, rank, candidates):
    """Where everybody is next: the one-step rule with lists of candidates."""
    team = range(len(at))
    reserved = [None for _ in team]

    def assign(i):
        for v in candidates[i]:
            if v in reserved:
                continue
            j = at.index(v) if v in at else None
            if j is not None and reserved[j] == at[i]:
                continue
            reserved[i] = v
            if j is not None and reserved[j] is None and not assign(j):
                continue
            return True
        reserved[i] = at[i]
        return False

    for i in sorted(team, key=lambda i: (-rank[i], i)):
        if reserved[i] is None:
            assign(i)
    return tuple(reserved)


def outcomes(floor, at, goal, rank):
    """Where everybody can be next, whatever the order of ties."""
    return {one_step(at, rank, lists) for lists in product(*map(floor.all_candidates, at, goal))}


class Follower:
    """A plan that is made as a whole, as one sequence of cells for each player."""

    def __init__(self, floor):
        self.floor, self.goals, self.ways = floor, None, []

    def act(self, cell, facing, goal, goal_facing, rank, orders):
        """The action of each player; `orders[time][i]` are the directions of player i in the order of ties."""
        if self.goals != (goal, goal_facing):
            self.goals = goal, goal_facing
            self.ways = [_trimmed(way) for way in zip(*self._plan(cell, goal, rank, orders))]
        actions = []
        for i, way in enumerate(self.ways):
            if way[0] != cell[i]:
                way.insert(0, cell[i])
            if len(way) > 1:
                actions.append(self.floor.direction(way[0], way[1]))
                way.pop(0)
            else:
                actions.append(STAY if facing[i] == goal_facing[i] else goal_facing[i])
        return actions

    def _plan(self, at, goal, rank, orders):
        plan = [at]
        while plan[-1] != goal and len(plan) <= LIMIT:
            order, at = orders[len(plan) - 1], plan[-1]
            lists = [self.floor.candidates(at[i], goal[i], order[i]) for i in range(len(at))]
            plan.append(one_step(at, rank, lists))
        return plan


def _trimmed(way):
    way = list(way)
    while len(way) > 1 and way[-1] == way[-2]:
        way.pop()
    return way
