"""The dining table as a picture: philosophers around it, forks between or in hand, meals (host side).

Axes: N philosophers (= forks); pictures are height x width x (red, green, blue).

Philosopher 0 sits at the top, ids grow clockwise, and fork i lies between philosophers i-1 and i.  White: no fork in
hand; yellow: one fork; orange: two; green: eating.  A fork that is held lies beside its holder, in dark; one that
is free lies halfway, pale.  The number outside is the philosopher's meals.  Pillow is imported inside functions.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, typeface
from jaxcoop.envs.dining.types import State, to_seats

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

    from jaxcoop.envs.dining.env import Dining

Point = tuple[float, float]

HEADER = 44
"""Pixels of the strip above the table."""

MIN_CELL, MAX_CELL, TARGET_PIXELS, MAX_PIXELS = 4, 112, 680, 8192
MIN_WIDTH = 420
LABEL_CELL = 14
"""Philosophers drawn smaller than this carry no id, and no meals beside them."""

_RED, _GREY = (176, 32, 44), (96, 96, 96)
_TABLE, _TABLE_EDGE, _FREE = (228, 205, 168), (176, 142, 96), (160, 128, 88)
_HUNGRY: tuple[Color, ...] = ((250, 250, 248), (240, 228, 66), (230, 159, 0))  # by number of forks
_EATING = (0, 158, 115)
_SMOOTH = 3  # drawn this much larger and shrunk
_SPACE = 1.9  # distance of neighbours on the circle, in diameters


def frame(env: "Dining", state: State, *, cell: int | None = None) -> UInt8[np.ndarray, "height width 3"]:
    """Picture of one episode's state (numpy arrays, no batch axis); a philosopher is a disc of `cell` pixels.

    Height is HEADER + side(N, cell), width max(side(N, cell), MIN_WIDTH).  By default the side is about 680 pixels, a
    disc from 4 to 112.  Equal states give equal pictures.  Raises `ValueError` for `cell` outside 4 to 224 and for a
    table whose picture would be wider than 8,192 pixels.
    """
    n = env.philosophers
    if cell is None:
        cell = next((size for size in range(MAX_CELL, MIN_CELL, -1) if side(n, size) <= TARGET_PIXELS), MIN_CELL)
    if not MIN_CELL <= cell <= 2 * MAX_CELL:
        raise ValueError(f"cell {cell!r}: must be from {MIN_CELL} to {2 * MAX_CELL} pixels")
    if side(n, cell) > MAX_PIXELS:
        raise ValueError(
            f"philosophers {n:,} at {cell} pixels: the picture would be {side(n, cell):,} pixels wide; "
            f"must be at most {MAX_PIXELS:,}"
        )
    picture = np.full((HEADER + side(n, cell), max(side(n, cell), MIN_WIDTH), 3), PAPER, np.uint8)
    left = (picture.shape[1] - side(n, cell)) // 2
    picture[HEADER:, left : left + side(n, cell)] = _circle(state, cell)
    picture[:HEADER] = _header(picture.shape[1], *_numbers(env, state))
    return picture


def side(philosophers: int, cell: int) -> int:
    """Pixels of the square around the table."""
    return 2 * math.ceil(_radius(philosophers, cell) + 1.4 * cell)


def _radius(philosophers: int, cell: int) -> float:
    return max(1.5 * cell, philosophers * _SPACE * cell / (2 * math.pi))


def _circle(state: State, cell: int) -> UInt8[np.ndarray, "side side 3"]:
    from PIL import Image, ImageDraw

    seats = to_seats(state.table)
    n = len(seats.meals)
    size, radius = side(n, cell), _radius(n, cell)
    image = Image.new("RGB", (size * _SMOOTH, size * _SMOOTH), PAPER)
    draw = ImageDraw.Draw(image)
    middle = size * _SMOOTH / 2

    def at(seat: float, distance: float) -> Point:
        angle = 2 * math.pi * seat / n - math.pi / 2
        return middle + distance * _SMOOTH * math.cos(angle), middle + distance * _SMOOTH * math.sin(angle)

    def disc(center: Point, reach: float, fill: Color, edge: Color, width: float) -> None:
        x, y, reach = *center, reach * _SMOOTH
        draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill, edge, max(1, round(width * _SMOOTH)))

    disc((middle, middle), radius - 0.2 * cell, _TABLE, _TABLE_EDGE, max(0.5, 0.04 * cell))
    for fork, holder in enumerate(seats.fork.tolist()):
        # Halfway to the left of philosopher `fork`; in a hand it moves toward its holder, who sits on either side.
        shift = -0.5 if holder < 0 else -0.3 if holder == fork else -0.7
        color = _FREE if holder < 0 else INK
        _draw_fork(draw, at(fork + shift, radius - 0.95 * cell), at(fork + shift, radius - 0.1 * cell), cell, color)
    hands = seats.left.astype(int) + seats.right.astype(int)
    for i in range(n):
        color = _EATING if seats.eating[i] else _HUNGRY[hands[i]]
        disc(at(i, radius), cell / 2, color, INK, max(0.5, 0.04 * cell))
    image = image.reduce(_SMOOTH)
    if cell >= LABEL_CELL:
        draw = ImageDraw.Draw(image)
        for i in range(n):
            x, y = at(i, radius)
            ink = PAPER if seats.eating[i] else INK
            draw.text((x / _SMOOTH, y / _SMOOTH), str(i), ink, typeface(max(8, round(0.42 * cell))), anchor="mm")
            x, y = at(i, radius + 0.9 * cell)
            font = typeface(max(8, round(0.34 * cell)))
            draw.text((x / _SMOOTH, y / _SMOOTH), str(seats.meals[i]), _GREY, font, anchor="mm")
    return np.asarray(image)


def _draw_fork(draw: "ImageDraw", tip: Point, end: Point, cell: int, color: Color) -> None:
    """A handle from `end` inwards and three tines up to `tip`."""
    (tip_x, tip_y), (end_x, end_y) = tip, end
    width = max(1, round(0.05 * cell * _SMOOTH))
    neck = (end_x + 0.55 * (tip_x - end_x), end_y + 0.55 * (tip_y - end_y))
    draw.line([end, neck], color, width + round(0.02 * cell * _SMOOTH))
    across = (0.13 * (tip_y - end_y), -0.13 * (tip_x - end_x))
    draw.line([(neck[0] - across[0], neck[1] - across[1]), (neck[0] + across[0], neck[1] + across[1])], color, width)
    for part in (-1, 0, 1):
        shift = (part * across[0], part * across[1])
        draw.line([(neck[0] + shift[0], neck[1] + shift[1]), (tip_x + shift[0], tip_y + shift[1])], color, width)


def _numbers(env: "Dining", state: State) -> tuple[str, str]:
    """The line of numbers, and a warning."""
    meals, eating = np.asarray(state.table.meals), to_seats(state.table).eating
    clock = "turn" if env.is_sequential else "timestep"
    numbers = f"{clock} {int(state.t)} / {env.limit}    meals {int(meals.sum())}    eating {int(eating.sum())}"
    return numbers, "deadlock" if state.deadlock or int(state.waiting) == env.philosophers else ""


@lru_cache(maxsize=64)
def _header(width: int, numbers: str, warning: str) -> UInt8[np.ndarray, "height width 3"]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, HEADER), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((12, 10), numbers, INK, typeface(18))
    draw.text((width - 12, 10), warning, _RED, typeface(18), anchor="ra")
    return np.asarray(image)
