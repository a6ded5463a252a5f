"""Classic Overcooked as pictures: the kitchen, what lies in it, the players, and a strip above with numbers and orders.

Axes: A players, W x H cells; pictures are height x width x (red, green, blue).

Counters are wooden, floor is tiled.  Dispensers show what they give, the serving window is green.  Pots show their
ingredients, the steps that they still cook as a number, and a green rim once the soup is ready.  Players are discs in a
colour of their own with their number; a wedge points where they look, and what they carry is drawn there.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, agent_color, header, put, typeface
from jaxcoop.envs.kitchen.grid import DELTA_X, DELTA_Y
from jaxcoop.envs.overcooked.interact import SUPPLIES
from jaxcoop.envs.overcooked.layouts import Kitchen
from jaxcoop.envs.overcooked.types import ONIONS_IN, READY, TOMATOES_IN, Item, State, Terrain

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

HEADER = 52
"""Pixels of the strip above the kitchen."""

MARGIN = 8
MIN_WIDTH = 320
MIN_CELL, MAX_CELL, MAP_PIXELS = 16, 96, 640

_SMOOTH = 4  # pieces are drawn this much larger and shrunk
_FLOOR, _TILE = (238, 236, 230), (226, 223, 215)
_WOOD, _EDGE = (201, 160, 112), (150, 112, 70)
_STEEL, _IRON, _BROTH = (120, 124, 130), (58, 60, 66), (150, 116, 66)
_WINDOW, _DONE = (142, 203, 160), (0, 158, 115)
_ONION, _TOMATO, _DISH = (236, 205, 96), (208, 62, 48), (250, 250, 250)
_FOODS: dict[int, Color] = {Item.ONION: _ONION, Item.TOMATO: _TOMATO, Item.DISH: _DISH}
_PILE = ((0.33, 0.36), (0.67, 0.36), (0.5, 0.66))
_BOWL = {1: ((0.5, 0.5),), 2: ((0.38, 0.5), (0.62, 0.5)), 3: ((0.5, 0.37), (0.37, 0.6), (0.63, 0.6))}


class Board(Protocol):
    """What pictures need to know of their environment."""

    @property
    def kitchen(self) -> Kitchen:
        """The layout."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        ...


def frame(env: Board, state: State, *, cell: int | None = None) -> UInt8[np.ndarray, "height width 3"]:
    """Picture of one episode's state (numpy arrays, no batch axis) with `cell` pixels per cell.

    Height is HEADER + H cell + MARGIN, width max(W cell, MIN_WIDTH) + 2 MARGIN.  By default the longer side of the
    kitchen has 640 pixels, and a cell from 16 to 96.  Equal states give equal pictures.  Raises `ValueError` for
    `cell` outside 16 to 192.
    """
    grid = env.kitchen.grid
    if cell is None:
        cell = min(MAX_CELL, max(MIN_CELL, MAP_PIXELS // max(grid.width, grid.height)))
    if not MIN_CELL <= cell <= 2 * MAX_CELL:
        raise ValueError(f"cell {cell!r}: must be from {MIN_CELL} to {2 * MAX_CELL} pixels")
    width = max(grid.width * cell, MIN_WIDTH) + 2 * MARGIN
    picture = np.full((HEADER + grid.height * cell + MARGIN, width, 3), PAPER, np.uint8)
    left = (width - grid.width * cell) // 2
    item, clock = np.asarray(state.item), np.asarray(state.clock)
    for number, terrain in enumerate(env.kitchen.terrain):
        x, y = number % grid.width, number // grid.width
        piece = _place(cell, int(terrain), int(item[number]), int(clock[number]), bool((x + y) % 2))
        put(picture, piece, HEADER + y * cell, left + x * cell)
    for agent, number in enumerate(np.asarray(state.cell).tolist()):
        piece = _player(cell, agent, int(np.asarray(state.facing)[agent]), int(np.asarray(state.held)[agent]))
        put(picture, piece, HEADER + number // grid.width * cell, left + number % grid.width * cell)
    first = (f"step {int(state.t)} / {env.horizon}", f"score {float(state.score):g}")
    done = (f"soups {int(state.counts.deliveries)}", f"shaped {float(state.shaped):g}")
    picture[:HEADER] = header(width, HEADER, first + done, _orders(env.kitchen), margin=MARGIN, gap=18)
    return picture


def _orders(kitchen: Kitchen) -> tuple[str, ...]:
    """The strip's second line, as entries that may be left out from the last one on."""
    if len(kitchen.orders) == len(ONIONS_IN) - Item.SOUP:
        return ("any soup is ordered",)
    return tuple(
        f"{'o' * int(ONIONS_IN[soup])}{'t' * int(TOMATOES_IN[soup])} +{kitchen.values[soup]:g}"
        for soup in kitchen.orders
    )


@lru_cache(maxsize=4096)
def _place(cell: int, terrain: int, item: int, clock: int, odd: bool) -> UInt8[np.ndarray, "cell cell 4"]:
    """A cell with what is on it."""
    from PIL import Image, ImageDraw

    big = cell * _SMOOTH
    ground: dict[int, Color] = {Terrain.FLOOR: _TILE if odd else _FLOOR, Terrain.SERVING: _WINDOW}
    image = Image.new("RGBA", (big, big), (*ground.get(terrain, _WOOD), 255))
    draw = ImageDraw.Draw(image)
    if terrain != Terrain.FLOOR:
        draw.rectangle((0, 0, big - 1, big - 1), None, _EDGE, max(1, big // 40))
    supply = SUPPLIES.get(Terrain(terrain))
    if supply is not None:
        for x, y in _PILE:
            _thing(draw, x * big, y * big, 0.19 * big, supply)
    elif terrain == Terrain.POT:
        _pot(draw, big, item, clock)
    elif terrain == Terrain.SERVING:
        tip, base, half = 0.22 * big, 0.62 * big, 0.28 * big
        draw.polygon([(big / 2, tip), (big / 2 - half, base), (big / 2 + half, base)], PAPER)
        draw.rectangle((0.4 * big, base, 0.6 * big, 0.8 * big), PAPER)
    elif item:
        _thing(draw, big / 2, big / 2, 0.3 * big, item)
    image = image.resize((cell, cell), Image.Resampling.BOX)
    if clock > READY:
        font = typeface(max(9, round(0.3 * cell)))
        ImageDraw.Draw(image).text(
            (cell / 2, cell / 2), str(clock - READY), (*PAPER, 255), font, anchor="mm", stroke_width=2, stroke_fill=INK
        )
    return np.asarray(image)


def _pot(draw: "ImageDraw", big: int, item: int, clock: int) -> None:
    draw.rectangle((0.06 * big, 0.06 * big, 0.94 * big, 0.94 * big), _STEEL)
    rim = _DONE if clock == READY else _IRON
    for x in (0.1, 0.78):  # handles
        draw.rectangle((x * big, 0.44 * big, (x + 0.12) * big, 0.56 * big), _IRON)
    _disc(draw, big / 2, big / 2, 0.34 * big, rim)
    _soup(draw, big / 2, big / 2, 0.26 * big, item, _BROTH if clock else (178, 181, 186))


def _thing(draw: "ImageDraw", x: float, y: float, radius: float, item: int) -> None:
    """An item with its middle at (x, y)."""
    if item >= Item.SOUP:
        _disc(draw, x, y, radius * 1.15, _DISH)
        _soup(draw, x, y, radius * 0.85, item, _BROTH)
        return
    _disc(draw, x, y, radius, _FOODS[item])
    if item == Item.DISH:
        inner = 0.62 * radius
        draw.ellipse((x - inner, y - inner, x + inner, y + inner), None, (190, 190, 190), max(1, round(radius / 9)))
    else:  # a stalk
        green = (70, 130, 60) if item == Item.TOMATO else (150, 120, 50)
        draw.rectangle((x - radius / 8, y - radius * 1.1, x + radius / 8, y - radius * 0.6), green)


def _soup(draw: "ImageDraw", x: float, y: float, radius: float, item: int, liquid: Color) -> None:
    """A round surface with the ingredients of a soup on it."""
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), liquid)
    foods = [_ONION] * int(ONIONS_IN[item]) + [_TOMATO] * int(TOMATOES_IN[item])
    for color, (dx, dy) in zip(foods, _BOWL.get(len(foods), ())):
        _disc(draw, x + (2 * dx - 1) * radius, y + (2 * dy - 1) * radius, 0.32 * radius, color)


def _disc(draw: "ImageDraw", x: float, y: float, radius: float, color: Color) -> None:
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), color, INK, max(1, round(radius / 12)))


@lru_cache(maxsize=4096)
def _player(cell: int, agent: int, facing: int, held: int) -> UInt8[np.ndarray, "cell cell 4"]:
    """A player, where it looks and what it carries."""
    from PIL import Image, ImageDraw

    big, color = cell * _SMOOTH, agent_color(agent)
    image = Image.new("RGBA", (big, big), (*INK, 0))
    draw = ImageDraw.Draw(image)
    dx, dy, middle = int(DELTA_X[facing]), int(DELTA_Y[facing]), big / 2
    base, half, tip = 0.2 * big, 0.26 * big, 0.48 * big
    corners = [(middle + dx * base + s * dy * half, middle + dy * base + s * dx * half) for s in (-1, 1)]
    draw.polygon([(middle + dx * tip, middle + dy * tip), *corners], (*INK, 255))
    _disc(draw, middle, middle, 0.34 * big, color)
    if held:
        _thing(draw, middle + dx * 0.3 * big, middle + dy * 0.3 * big, 0.17 * big, held)
    image = image.resize((cell, cell), Image.Resampling.BOX)
    light = 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 135
    font = typeface(max(9, round(0.3 * cell)))
    # Away from what is carried.
    spot = (cell / 2 - dx * 0.12 * cell, cell / 2 - dy * 0.12 * cell) if held else (cell / 2, cell / 2)
    ImageDraw.Draw(image).text(spot, str(agent), (*(INK if light else PAPER), 255), font, anchor="mm")
    return np.asarray(image)
