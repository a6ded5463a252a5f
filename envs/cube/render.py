"""CUBE as pictures: grid, goal column, blocks, agents and a strip of numbers above them (host side).

Axes: A agents, B blocks, S side of the map; pictures are height x width x (red, green, blue).

Blocks are crates, the darker the heavier, labelled `id·weight`; the goal column is chequered green.  Agents are discs
in a colour of their own with their id; agents that share a cell share a disc, with their number on it.  A wedge on a
disc points where its agent pushes (its face task after the last step, 8).  Pieces are drawn once per size and kept.
"""

from collections import defaultdict
from functools import lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, agent_color, header, put, readable, typeface
from jaxcoop.envs.cube.types import ACTION_OF_FACE, Action, State

HEADER = 52
"""Pixels of the strip above the map."""

MARGIN = 8
"""Pixels around the map."""

MIN_WIDTH = 320
"""A small map is shown in a picture of this width, for the strip to be readable."""

MIN_CELL, MAX_CELL, MAP_PIXELS = 4, 64, 720
LABEL_CELL = 14
"""Agents in cells smaller than this carry no text."""

LABEL_CRATE = 30
"""Crates that are smaller than this in such cells carry none either."""

_FLOOR, _LINE = (246, 246, 243), (223, 223, 217)
_GOAL, _GOAL_PALE = (142, 203, 160), (216, 238, 222)
_WOOD: tuple[Color, ...] = ((240, 222, 178), (221, 184, 130), (184, 137, 87), (138, 98, 62), (92, 66, 46))
_SMOOTH = 4  # pieces are drawn this much larger and shrunk
_MAX_SHARES = 6  # sectors of a shared disc


class Board(Protocol):
    """What pictures need to know of their environment."""

    @property
    def side(self) -> int:
        """S."""
        ...

    @property
    def weights(self) -> tuple[int, ...]:
        """Of the B blocks."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of the longest episode."""
        ...

    @property
    def step_cost(self) -> float:
        """4: cost of a step."""
        ...

    @property
    def deliver_reward(self) -> float:
        """4: value of a delivered unit of weight."""
        ...


def frame(env: Board, state: State, *, cell: int | None = None) -> UInt8[np.ndarray, "height width 3"]:
    """Picture of one episode's state (numpy arrays, no batch axis) with `cell` pixels per cell.

    Height is HEADER + S cell + MARGIN, width max(S cell, MIN_WIDTH) + 2 MARGIN.  By default a cell has 720 / S pixels,
    from 4 to 64.  Equal states give equal pictures.  Raises `ValueError` for `cell` outside 4 to 128.
    """
    cell = min(MAX_CELL, max(MIN_CELL, MAP_PIXELS // env.side)) if cell is None else cell
    if not MIN_CELL <= cell <= 2 * MAX_CELL:
        raise ValueError(f"cell {cell!r}: must be from {MIN_CELL} to {2 * MAX_CELL} pixels")
    picture = _empty_map(env.side, cell).copy()
    left = (picture.shape[1] - env.side * cell) // 2
    block_row, block_col = np.asarray(state.block_row), np.asarray(state.block_col)
    for block in np.flatnonzero(block_row >= 0):
        crate = _crate(env.weights[block], cell, f"{block}·{env.weights[block]}")
        put(picture, crate, HEADER + int(block_row[block]) * cell, left + int(block_col[block]) * cell)
    aim = np.asarray(state.aim)
    for (row, col), agents in _cells(np.asarray(state.row), np.asarray(state.col)).items():
        pushes = tuple(sorted({int(ACTION_OF_FACE[aim[agent] % 4]) for agent in agents if aim[agent] >= 0}))
        label = str(agents[0]) if len(agents) == 1 else f"x{len(agents)}"
        disc = _disc(cell, tuple(agent_color(agent) for agent in agents[:_MAX_SHARES]), label, pushes)
        put(picture, disc, HEADER + row * cell, left + col * cell)
    picture[:HEADER] = header(picture.shape[1], HEADER, *_texts(env, state), margin=MARGIN, gap=22)
    return picture


def _cells(row: np.ndarray, col: np.ndarray) -> dict[tuple[int, int], list[int]]:
    """The agents on each cell, ascending; unplaced ones are nowhere."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for agent in np.flatnonzero(row >= 0):
        found[int(row[agent]), int(col[agent])].append(int(agent))
    return found


def _texts(env: Board, state: State) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The two lines of the strip, each as entries that may be left out from the last one on."""
    alive = np.asarray(state.block_row) >= 0
    pushing = int((np.asarray(state.aim) >= 0).sum())
    unplaced = np.flatnonzero(np.asarray(state.row) < 0)
    total = env.deliver_reward * sum(env.weights)
    first = (
        f"step {int(state.t)} / {env.horizon}",
        f"score {float(state.score):g} / {total:g}",
        f"blocks left {int(alive.sum())} / {len(env.weights)}",
        f"pushing {pushing}",
    )
    weights = np.asarray(env.weights)
    left = ", ".join(f"{int((alive & (weights == weight)).sum())} of weight {weight}" for weight in np.unique(weights))
    # The font has neither typographic signs for times and minus nor an ellipsis.
    second = (f"left: {left}", f"each step -{env.step_cost:g}, delivery +{env.deliver_reward:g} per weight")
    if len(unplaced):
        names = ", ".join(map(str, unplaced[:8])) + (" ..." if len(unplaced) > 8 else "")
        second = (f"unplaced agents: {names}", *second)
    return first, second


@lru_cache(maxsize=8)
def _empty_map(side: int, cell: int) -> UInt8[np.ndarray, "height width 3"]:
    span = side * cell
    width = max(span, MIN_WIDTH) + 2 * MARGIN
    picture = np.full((HEADER + span + MARGIN, width, 3), PAPER, np.uint8)
    left = (width - span) // 2
    area = picture[HEADER : HEADER + span, left : left + span]
    area[:] = _FLOOR
    half = np.arange(span) * 2 // cell
    chequered = (half[:, None] + half[None, :cell]) % 2 == 0
    area[:, -cell:] = np.where(chequered[..., None], _GOAL, _GOAL_PALE)
    if cell > 2 * MIN_CELL:
        area[::cell, :-cell] = area[:, ::cell] = _LINE
    area[[0, -1]] = area[:, [0, -1]] = (150, 150, 145)
    return picture


def _crate_font(cell: int, weight: int, label: str) -> int:
    return max(9, min(26, round(cell * (0.4 if weight == 1 else 0.52) * min(1.0, 3.6 / len(label)))))


@lru_cache(maxsize=1024)
def _crate(weight: int, cell: int, label: str) -> UInt8[np.ndarray, "size size 4"]:
    from PIL import Image, ImageDraw

    size, big = weight * cell, weight * cell * _SMOOTH
    wood = _WOOD[min(weight, len(_WOOD)) - 1]
    edge = _mixed(wood, (40, 25, 10), 0.45)
    image = Image.new("RGBA", (big, big), (*edge, 0))
    draw = ImageDraw.Draw(image)
    unit = cell * _SMOOTH / 48  # drawn for cells of 48 pixels
    draw.rounded_rectangle(
        (unit, unit, big - 1 - unit, big - 1 - unit), 5 * unit, (*wood, 255), (*edge, 255), max(1, round(2.2 * unit))
    )
    if cell >= LABEL_CELL:
        inset = 6 * unit
        inner = (inset, inset, big - 1 - inset, big - 1 - inset)
        draw.rounded_rectangle(inner, 3 * unit, None, (*_mixed(wood, edge, 0.35), 255), max(1, round(1.2 * unit)))
    image = image.resize((size, size), Image.Resampling.BOX)
    if cell >= LABEL_CELL or size >= LABEL_CRATE:
        ink = readable(wood)
        font = typeface(_crate_font(cell, weight, label))
        ImageDraw.Draw(image).text((size / 2, size / 2), label, (*ink, 255), font, anchor="mm")
    return np.asarray(image)


@lru_cache(maxsize=8192)
def _disc(
    cell: int, colors: tuple[Color, ...], label: str, pushes: tuple[int, ...]
) -> UInt8[np.ndarray, "cell cell 4"]:
    """An agent, or several in sectors, with a wedge for each direction (`Action`) in which one pushes."""
    from PIL import Image, ImageDraw

    big = cell * _SMOOTH
    image = Image.new("RGBA", (big, big), (*INK, 0))
    draw = ImageDraw.Draw(image)
    inset = 0.12 * big
    box = (inset, inset, big - 1 - inset, big - 1 - inset)
    for action in pushes:
        draw.polygon(_wedge(Action(action), big), (*INK, 255))
    rim = max(1, round(0.035 * big))
    for sector, color in enumerate(colors):
        if len(colors) == 1:
            draw.ellipse(box, (*color, 255))
        else:
            start = 360 * sector / len(colors) - 90
            draw.pieslice(box, start, start + 360 / len(colors), (*color, 255))
    draw.ellipse(box, None, (*INK, 255), rim)
    image = image.resize((cell, cell), Image.Resampling.BOX)
    if cell >= LABEL_CELL:
        font = typeface(max(8, round(cell * (0.46, 0.4, 0.32, 0.26)[min(len(label), 4) - 1])))
        ink = readable(colors[0]) if len(colors) == 1 else PAPER
        stroke = 0 if len(colors) == 1 else 2
        middle = (cell / 2, cell / 2)
        ImageDraw.Draw(image).text(
            middle, label, (*ink, 255), font, anchor="mm", stroke_width=stroke, stroke_fill=(*INK, 255)
        )
    return np.asarray(image)


def _wedge(action: Action, size: int) -> list[tuple[float, float]]:
    """A triangle whose tip is on the side of the cell to which the action leads."""
    tip, base, half = 0.0, 0.28 * size, 0.28 * size
    up = [(size / 2, tip), (size / 2 - half, base), (size / 2 + half, base)]
    if action in (Action.DOWN, Action.RIGHT):
        up = [(x, size - y) for x, y in up]
    return up if action in (Action.UP, Action.DOWN) else [(y, x) for x, y in up]


def _mixed(color: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, other))
    return red, green, blue
