"""MA-Crafter as pictures: the map, a row for each agent beside it, numbers above it (host side).

Axes: A agents, W x H cells, C cow slots; pictures are height x width x (red, green, blue).

Agents are discs in a colour of their own with their id; a wedge shows where they face, a white ring that they
collected something in the last step, a z that they sleep; removed ones are pale and crossed out.  On maps with small
cells they are drawn larger than a cell, for their ids to be readable.  `sprites` makes the pieces.
"""

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import Int, UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, put, typeface
from jaxcoop.envs.macrafter import sprites
from jaxcoop.envs.macrafter.types import (
    CAPS,
    DIRECTION_NAMES,
    MATERIAL_MASK,
    MATERIAL_NAMES,
    PLANT_BIT,
    Item,
    Material,
    Reason,
    State,
    Thing,
)

HEADER = 44
"""Pixels of the strip above the map."""

MARGIN = 8
"""Pixels around the map."""

PANEL = 308
"""Pixels of the column of agents, its right margin included."""

ROW = 96
"""Pixels of an agent's row."""

MIN_BODY = 2 * ROW
"""The picture of a small map has room for two rows."""

MIN_CELL, MAX_CELL, MAP_PIXELS = 4, 40, 768

_LEGEND_LINE, _LEGEND_COLUMNS = 20, 3
_GREY, _PALE, _TRACK = (96, 96, 96), (214, 214, 208), (232, 232, 227)
_VITALS = (Item.HEALTH, Item.FOOD, Item.DRINK, Item.ENERGY)
_BARS: dict[int, Color] = {
    Item.HEALTH: (204, 44, 58),
    Item.FOOD: (190, 116, 66),
    Item.DRINK: (54, 122, 196),
    Item.ENERGY: (226, 168, 0),
}
_LOW = 3  # vitals up to this are printed in red


class World(Protocol):
    """What pictures need to know of their environment."""

    @property
    def horizon(self) -> int:
        """Steps of the longest episode."""
        ...


def frame(env: World, state: State, *, cell: int | None = None) -> UInt8[np.ndarray, "height width 3"]:
    """Picture of one episode's state (numpy arrays, no batch axis) with `cell` pixels per cell.

    Height is HEADER + max(H cell, MIN_BODY) + MARGIN, width W cell + 2 MARGIN + PANEL.  By default the longer side of
    the map has 768 pixels, a cell from 4 to 40.  Equal states give equal pictures.  Raises `ValueError` for `cell`
    outside 4 to 80.
    """
    material = np.asarray(state.material)
    width, height = material.shape
    cell = min(MAX_CELL, max(MIN_CELL, MAP_PIXELS // max(width, height))) if cell is None else cell
    if not MIN_CELL <= cell <= 2 * MAX_CELL:
        raise ValueError(f"cell {cell!r}: must be from {MIN_CELL} to {2 * MAX_CELL} pixels")
    body = max(height * cell, MIN_BODY)
    left = width * cell + 2 * MARGIN
    picture = np.full((HEADER + body + MARGIN, left + PANEL, 3), PAPER, np.uint8)
    picture[HEADER : HEADER + height * cell, MARGIN : left - MARGIN] = _map(state, cell)
    _draw_numbers(picture, _numbers(env, state))
    _draw_panel(picture[HEADER : HEADER + body, left:], state)
    return picture


def _map(state: State, cell: int) -> UInt8[np.ndarray, "height width 3"]:
    codes = np.asarray(state.material)
    width, height = codes.shape
    material = (codes & MATERIAL_MASK).astype(np.intp)
    pieces = sprites.cells(cell)[material.T, _variants(width, height)]  # [H, W, cell, cell, 3]
    picture = pieces.transpose(0, 2, 1, 3, 4).reshape(height * cell, width * cell, 3)
    for x, y in np.argwhere(codes & PLANT_BIT):
        put(picture, sprites.thing(Thing.PLANT, cell), y * cell, x * cell)
    cow_x, cow_y = np.asarray(state.cow_x), np.asarray(state.cow_y)
    # Cows and agents stand out from their cell where cells are small; the picture is drawn around the cell's middle.
    size = min(cell + 4, 16) if cell < 16 else cell
    for slot in np.flatnonzero(cow_x >= 0):
        _put_centred(picture, sprites.thing(Thing.COW, size), cow_x[slot], cow_y[slot], cell)
    x, y, removed = (np.asarray(leaf) for leaf in (state.x, state.y, state.removed))
    size = max(cell, min(2 * cell, 22))
    for agent in sorted(np.flatnonzero(x >= 0), key=lambda i: not removed[i]):
        _put_centred(picture, _disc(state, int(agent), size), x[agent], y[agent], cell)
    return picture


def _disc(state: State, agent: int, size: int) -> UInt8[np.ndarray, "size size 4"]:
    removed = bool(state.removed[agent])
    return sprites.agent(
        agent,
        size,
        int(state.facing[agent]),
        asleep=bool(state.sleeping[agent]) and not removed,
        removed=removed,
        active=bool(state.last.took[agent]) and not removed,
    )


@lru_cache(maxsize=8)
def _variants(width: int, height: int) -> Int[np.ndarray, "H W"]:
    """Which drawing of its material each cell shows: without a visible pattern, but the same in every picture."""
    x, y = np.arange(width, dtype=np.uint32), np.arange(height, dtype=np.uint32)[:, None]
    mixed = (x * np.uint32(2654435761)) ^ (y * np.uint32(2246822519))
    mixed ^= mixed >> np.uint32(15)
    return ((mixed * np.uint32(3266489917)) >> np.uint32(20)).astype(np.intp) % sprites.VARIANTS


def daylight(t: int) -> float:
    """4: 1 - |cos(pi (t/300 mod 1 + 0.3))|^3."""
    return 1 - abs(math.cos(math.pi * (t / 300 % 1 + 0.3))) ** 3


def _numbers(env: World, state: State) -> tuple[str, ...]:
    removed = np.asarray(state.removed)
    t = int(state.t)
    return (
        f"step {t} / {env.horizon}",
        f"team score {float(state.score):g}",
        f"achievements {int(state.unlocked).bit_count()}",
        f"agents {int((~removed).sum())} / {len(removed)}",
        f"cows {int((np.asarray(state.cow_x) >= 0).sum())}",
        f"daylight {daylight(t):.2f}",
    )


def _draw_numbers(picture: UInt8[np.ndarray, "height width 3"], numbers: tuple[str, ...]) -> None:
    """The strip above the map; the last numbers are left out where there is no room."""
    left = MARGIN
    for text in numbers:
        piece = _text(18, INK, text)
        if left + piece.shape[1] > picture.shape[1] - MARGIN:
            break
        put(picture, piece, 9, left)
        left += piece.shape[1] + 24


def _draw_panel(panel: UInt8[np.ndarray, "height width 3"], state: State) -> None:
    """One row per agent and the legend below; a last line counts agents without room."""
    agents, room = len(np.asarray(state.x)), panel.shape[0]
    fits = agents if agents * ROW <= room else (room - _LEGEND_LINE) // ROW
    for agent in range(fits):
        row = panel[agent * ROW : (agent + 1) * ROW]
        _draw_row(row, state, agent)
        row[-1, :-MARGIN] = _PALE
    used = fits * ROW
    if fits < agents:
        _put_text(panel, 4, used + 3, 14, _GREY, f"+{agents - fits} more")
        used += _LEGEND_LINE
    legend = _legend()
    if used + MARGIN + legend.shape[0] <= room:
        panel[-legend.shape[0] :, : legend.shape[1]] = legend


def _draw_row(row: UInt8[np.ndarray, "height width 3"], state: State, agent: int) -> None:
    inventory = np.asarray(state.inventory)[agent]
    removed = bool(state.removed[agent])
    put(row, _disc(state, agent, 28), 4, 0)
    x, y = int(state.x[agent]), int(state.y[agent])
    place = f"({x}, {y}) {DIRECTION_NAMES[int(state.facing[agent]) % 4]}" if x >= 0 else "no place to start"
    _put_text(row, 36, 9, 14, INK, place)
    note, color = _note(state, agent)
    _put_text(row, PANEL - MARGIN, 11, 12, color, note, right=True)
    for place_, item in enumerate(_VITALS):
        put(row, sprites.item(item, 16, faint=removed), 37, place_ * 75)
        put(row, _bar(item, int(inventory[item])), 37, place_ * 75 + 19)
    for first, top in ((Item.SAPLING, 57), (Item.WOOD_PICKAXE, 75)):
        for place_ in range(6):
            count = int(inventory[first + place_])
            put(row, sprites.item(first + place_, 16, faint=count == 0), top, place_ * 50)
            if count:
                _put_text(row, place_ * 50 + 20, top, 13, INK, str(count))


def _note(state: State, agent: int) -> tuple[str, Color]:
    """What the agent is in, or how its last action ended."""
    last = state.last
    if state.removed[agent]:
        return "removed", (176, 32, 44)
    took = int(last.took[agent])
    if took:
        names = [name for code, name in enumerate(MATERIAL_NAMES) if took >> code & 1]
        return "collected " + ", ".join(names + ["cow"] * (took >> Thing.COW & 1)), (0, 110, 70)
    if state.sleeping[agent]:
        return "asleep", (40, 60, 140)
    reason = int(last.reason[agent])
    if reason == Reason.TOO_FEW_AGENTS:
        return f"needs {int(last.need[agent])} able agents, has {int(last.have[agent])}", (168, 76, 0)
    return (Reason(reason).name.lower().replace("_", " "), (168, 76, 0)) if reason else ("", _GREY)


@lru_cache(maxsize=64)
def _bar(item: int, value: int) -> UInt8[np.ndarray, "height width 4"]:
    """How much of one of the vitals is left."""
    picture = np.full((16, 50, 3), PAPER, np.uint8)
    picture[3:13, :34] = _TRACK
    picture[3:13, : round(34 * min(max(value / int(CAPS[item]), 0.0), 1.0))] = _BARS[item]
    _put_text(picture, 38, 0, 13, (176, 32, 44) if value <= _LOW else INK, str(value))
    return np.dstack([picture, np.full(picture.shape[:2], 255, np.uint8)])


@lru_cache(maxsize=1)
def _legend() -> UInt8[np.ndarray, "height width 3"]:
    """Names of what is on the map."""
    entries = [(sprites.cells(16)[m, 0], MATERIAL_NAMES[m]) for m in Material if m != Material.NONE]
    grass = sprites.cells(16)[Material.GRASS, 0]
    for code in (Thing.COW, Thing.PLANT):
        ground = grass.copy()
        put(ground, sprites.thing(code, 16), 0, 0)
        entries.append((ground, code.name.lower()))
    lines = -(-len(entries) // _LEGEND_COLUMNS)
    picture = np.full((lines * _LEGEND_LINE, PANEL - MARGIN, 3), PAPER, np.uint8)
    for number, (piece, name) in enumerate(entries):
        column, line = divmod(number, lines)
        left, top = column * (PANEL - MARGIN) // _LEGEND_COLUMNS, line * _LEGEND_LINE + 2
        picture[top : top + 16, left : left + 16] = piece
        _put_text(picture, left + 22, top, 13, _GREY, name)
    return picture


@lru_cache(maxsize=2048)
def _text(size: int, color: Color, text: str) -> UInt8[np.ndarray, "height width 4"]:
    from PIL import Image, ImageDraw

    font = typeface(size)
    box = font.getbbox(text)
    image = Image.new("RGBA", (math.ceil(box[2]) + 1, math.ceil(box[3]) + 1), (*color, 0))
    ImageDraw.Draw(image).text((0, 0), text, (*color, 255), font)
    return np.asarray(image)


def _put_text(
    picture: UInt8[np.ndarray, "..."],
    left: int,
    top: int,
    size: int,
    color: Color,
    text: str,
    *,
    right: bool = False,
) -> None:
    """Write a line that begins, or with `right` ends, at `left`."""
    if text:
        piece = _text(size, color, text)
        put(picture, piece, top, left - piece.shape[1] if right else left)


def _put_centred(picture: UInt8[np.ndarray, "..."], piece: UInt8[np.ndarray, "..."], x: int, y: int, cell: int) -> None:
    """Lay a square piece over the middle of a cell."""
    shift = (cell - piece.shape[0]) // 2
    put(picture, piece, int(y) * cell + shift, int(x) * cell + shift)
