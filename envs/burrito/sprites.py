"""Pieces of pictures of the kitchen: stations and items (host side).

What lies on a plate keeps its place and colour in all mixtures: tortilla is the yellow disc below, rice white grains at
the left, steak dark brown at the right, fried mushroom golden at the right.  A burrito is a roll whose ends show its
filling.  Pieces are drawn once per size and kept.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, put
from jaxcoop.envs.burrito.types import TERRAIN, Item, Terrain
from jaxcoop.envs.kitchen import draw
from jaxcoop.envs.kitchen.draw import DARK, STEEL, STEEL_EDGE, Brush

_RAW, _FAT, _STEAK, _STEAK_EDGE = (222, 90, 96), (250, 214, 206), (122, 66, 36), (70, 34, 16)
_CAP, _STEM, _GOLD, _GOLD_EDGE = (176, 140, 108), (240, 226, 204), (226, 158, 40), (142, 88, 10)
_DOUGH, _DOUGH_EDGE, _SPOT = (248, 220, 140), (206, 164, 78), (214, 162, 90)
_GRAIN, _GRAIN_EDGE, _SACK = (255, 255, 255), (134, 142, 156), (216, 200, 168)
_PLATE_EDGE, _MUD = (92, 126, 178), (126, 96, 52)
_WOOD, _WOOD_EDGE, _CRATE = (222, 176, 116), (156, 110, 60), (150, 108, 66)
_WATER, _GREEN, _RED = (120, 186, 230), (70, 140, 104), (208, 36, 40)

LETTER_CELL = 28
"""Stations in cells smaller than this carry no letter."""


def _plate(brush: Brush) -> None:
    brush.disc(0.5, 0.5, 0.44, PAPER, _PLATE_EDGE, width=0.045)
    brush.disc(0.5, 0.5, 0.31, None, (200, 212, 228), width=0.02)


def _dirty_plate(brush: Brush) -> None:
    brush.disc(0.5, 0.5, 0.44, (226, 220, 206), (124, 116, 100), width=0.045)
    for x, y, radius in ((0.38, 0.42, 0.13), (0.6, 0.58, 0.15), (0.62, 0.34, 0.07), (0.36, 0.66, 0.06)):
        brush.disc(x, y, radius, _MUD, flat=0.75)


def _meat(brush: Brush) -> None:
    brush.disc(0.5, 0.52, 0.4, _FAT, (150, 50, 56), flat=0.76)
    brush.disc(0.5, 0.52, 0.31, _RAW, flat=0.7)
    brush.disc(0.62, 0.48, 0.08, PAPER, (150, 50, 56))


def _mushroom(brush: Brush, cap: Color = _CAP, stem: Color = _STEM, edge: Color = (110, 82, 58)) -> None:
    brush.box(0.38, 0.48, 0.62, 0.88, stem, edge, radius=0.09)
    brush.shape(
        [(0.1, 0.56), (0.14, 0.34), (0.32, 0.16), (0.5, 0.12), (0.68, 0.16), (0.86, 0.34), (0.9, 0.56)], cap, edge
    )


def _tortilla(brush: Brush) -> None:
    brush.disc(0.5, 0.5, 0.41, _DOUGH, _DOUGH_EDGE, width=0.04)
    for x, y in ((0.36, 0.38), (0.6, 0.32), (0.66, 0.6), (0.42, 0.66), (0.5, 0.5)):
        brush.disc(x, y, 0.045, _SPOT)


def _grains(brush: Brush, x: float, y: float, scale: float) -> None:
    for dx, dy in ((-0.5, 0.3), (0.1, 0.4), (0.6, 0.25), (-0.25, -0.05), (0.35, -0.1), (0.0, -0.42), (-0.75, 0.0)):
        brush.disc(x + dx * scale, y + dy * scale, 0.34 * scale, _GRAIN, _GRAIN_EDGE, width=0.02, flat=0.75)


def _rice(brush: Brush) -> None:
    brush.shape([(0.22, 0.3), (0.78, 0.3), (0.9, 0.9), (0.1, 0.9)], _SACK, (138, 118, 82))
    brush.shape([(0.3, 0.3), (0.2, 0.12), (0.8, 0.12), (0.7, 0.3)], _SACK, (138, 118, 82))
    _grains(brush, 0.5, 0.62, 0.24)


def _chopped_meat(brush: Brush) -> None:
    for x, y in ((0.14, 0.5), (0.4, 0.58), (0.66, 0.5), (0.27, 0.24), (0.53, 0.24)):
        brush.box(x, y, x + 0.22, y + 0.22, _RAW, (150, 50, 56), width=0.025, radius=0.04)
        brush.box(x + 0.04, y + 0.04, x + 0.18, y + 0.08, _FAT)


def _slices(brush: Brush, cap: Color, stem: Color, edge: Color) -> None:
    for x, y in ((0.28, 0.36), (0.7, 0.34), (0.5, 0.68)):
        brush.box(x - 0.055, y, x + 0.055, y + 0.2, stem, edge, width=0.02)
        brush.disc(x, y, 0.19, cap, edge, width=0.02, flat=0.62)


def _chopped_mushroom(brush: Brush) -> None:
    _slices(brush, _CAP, _STEM, (110, 82, 58))


def _steak(brush: Brush) -> None:
    brush.disc(0.5, 0.52, 0.4, _STEAK, _STEAK_EDGE, flat=0.74)
    for x in (0.32, 0.5, 0.68):
        brush.line([(x - 0.08, 0.68), (x + 0.08, 0.36)], _STEAK_EDGE, 0.05)


def _fried_mushroom(brush: Brush) -> None:
    _mushroom(brush, _GOLD, (250, 214, 140), _GOLD_EDGE)


def _boiled_rice(brush: Brush) -> None:
    _grains(brush, 0.5, 0.52, 0.4)


def _charcoal(brush: Brush) -> None:
    lumps = (
        [(0.12, 0.62), (0.26, 0.4), (0.5, 0.5), (0.5, 0.8), (0.24, 0.86)],
        [(0.48, 0.54), (0.66, 0.36), (0.9, 0.54), (0.84, 0.84), (0.54, 0.84)],
        [(0.32, 0.38), (0.46, 0.14), (0.68, 0.2), (0.68, 0.42), (0.46, 0.52)],
    )
    for lump in lumps:
        brush.shape(lump, (38, 36, 38), (112, 108, 110), width=0.025)


def _fire_ext(brush: Brush) -> None:
    brush.line([(0.5, 0.2), (0.78, 0.2), (0.86, 0.46)], DARK, 0.06)
    brush.box(0.34, 0.3, 0.66, 0.94, _RED, (120, 10, 16), radius=0.1)
    brush.box(0.42, 0.12, 0.58, 0.3, DARK, radius=0.03)
    brush.box(0.34, 0.52, 0.66, 0.68, PAPER)


def _served(*parts: str) -> Callable[[Brush], None]:
    """A plate with any of tortilla, rice, steak and mushroom."""

    def paint(brush: Brush) -> None:
        _plate(brush)
        if "tortilla" in parts:
            brush.disc(0.5, 0.5, 0.35, _DOUGH, _DOUGH_EDGE, width=0.03)
            brush.disc(0.5, 0.24, 0.035, _SPOT)
            brush.disc(0.5, 0.78, 0.035, _SPOT)
        if "rice" in parts:
            _grains(brush, 0.37 if len(parts) > 1 else 0.5, 0.5, 0.25)
        if "steak" in parts:
            brush.disc(0.64, 0.5, 0.18, _STEAK, _STEAK_EDGE, width=0.025, flat=1.15)
            brush.line([(0.58, 0.58), (0.7, 0.42)], _STEAK_EDGE, 0.04)
        if "mushroom" in parts:
            brush.box(0.6, 0.5, 0.7, 0.68, (250, 214, 140), _GOLD_EDGE, width=0.02)
            brush.disc(0.65, 0.44, 0.18, _GOLD, _GOLD_EDGE, width=0.025, flat=0.75)

    return paint


def _burrito(filling: Color, edge: Color) -> Callable[[Brush], None]:
    """A roll on a plate."""

    def paint(brush: Brush) -> None:
        _plate(brush)
        brush.line([(0.26, 0.64), (0.74, 0.36)], edge, 0.36)
        brush.line([(0.27, 0.635), (0.73, 0.365)], filling, 0.28)
        brush.line([(0.36, 0.58), (0.64, 0.42)], _DOUGH_EDGE, 0.38)
        brush.line([(0.37, 0.575), (0.63, 0.425)], _DOUGH, 0.31)
        brush.disc(0.5, 0.5, 0.09, filling, edge, width=0.02)

    return paint


_ITEMS: dict[Item, Callable[[Brush], None]] = {
    Item.DIRTY_PLATE: _dirty_plate,
    Item.CLEAN_PLATE: _plate,
    Item.MEAT: _meat,
    Item.MUSHROOM: _mushroom,
    Item.TORTILLA: _tortilla,
    Item.RICE: _rice,
    Item.CHOPPED_MEAT: _chopped_meat,
    Item.CHOPPED_MUSHROOM: _chopped_mushroom,
    Item.RICE_PLATE: _served("rice"),
    Item.STEAK_PLATE: _served("steak"),
    Item.FRIED_MUSHROOM_PLATE: _served("mushroom"),
    Item.TORTILLA_PLATE: _served("tortilla"),
    Item.RICE_TORTILLA_PLATE: _served("rice", "tortilla"),
    Item.STEAK_TORTILLA_PLATE: _served("steak", "tortilla"),
    Item.FRIED_MUSHROOM_TORTILLA_PLATE: _served("mushroom", "tortilla"),
    Item.STEAK_RICE_PLATE: _served("steak", "rice"),
    Item.FRIED_MUSHROOM_RICE_PLATE: _served("mushroom", "rice"),
    Item.STEAK_BURRITO: _burrito(_STEAK, _STEAK_EDGE),
    Item.MUSHROOM_BURRITO: _burrito(_GOLD, _GOLD_EDGE),
    Item.CHARCOAL: _charcoal,
    Item.STEAK: _steak,
    Item.FRIED_MUSHROOM: _fried_mushroom,
    Item.BOILED_RICE: _boiled_rice,
    Item.FIRE_EXT: _fire_ext,
    Item.STACK_PLATE: _dirty_plate,
}


@lru_cache(maxsize=512)
def item(code: int, size: int) -> UInt8[np.ndarray, "size size 4"]:
    """An item that is there (not `Item.NONE`)."""
    brush = Brush(size)
    _ITEMS[Item(code)](brush)
    return brush.piece()


def _serving(brush: Brush) -> None:
    brush.box(0, 0, 1, 1, _GREEN, (40, 96, 68), width=0.05)
    brush.disc(0.5, 0.62, 0.3, PAPER, INK, width=0.03)
    brush.box(0.1, 0.62, 0.9, 0.96, _GREEN)
    brush.box(0.14, 0.62, 0.86, 0.72, PAPER, INK, width=0.03, radius=0.03)
    brush.disc(0.5, 0.29, 0.05, INK)


def _crate(brush: Brush) -> None:
    """What dispensers have below their sample."""
    draw.counter(brush)
    brush.box(0.08, 0.08, 0.92, 0.92, _CRATE, (92, 62, 32), width=0.04, radius=0.05)
    brush.box(0.17, 0.17, 0.83, 0.83, (236, 222, 196))


def _stack(brush: Brush) -> None:
    draw.counter(brush)
    brush.box(0.1, 0.12, 0.9, 0.88, (120, 104, 84), (80, 66, 50), width=0.03, radius=0.06)


def _pot(brush: Brush) -> None:
    brush.box(0, 0, 1, 1, DARK, (40, 42, 46), width=0.035)
    brush.box(0.01, 0.42, 0.99, 0.58, STEEL_EDGE, radius=0.06)
    brush.disc(0.5, 0.5, 0.41, STEEL, STEEL_EDGE, width=0.05)
    brush.disc(0.5, 0.5, 0.32, (92, 98, 106))


def _board(brush: Brush) -> None:
    draw.counter(brush)
    brush.box(0.07, 0.14, 0.93, 0.86, _WOOD, _WOOD_EDGE, width=0.03, radius=0.07)
    brush.box(0.8, 0.2, 0.88, 0.58, STEEL, STEEL_EDGE, width=0.02)
    brush.box(0.81, 0.58, 0.87, 0.8, INK, radius=0.02)


def _grill(brush: Brush) -> None:
    brush.box(0, 0, 1, 1, DARK, (40, 42, 46), width=0.035)
    brush.box(0.08, 0.08, 0.92, 0.92, (196, 104, 66), radius=0.05)
    for k in range(6):
        brush.box(0.12 + 0.14 * k, 0.08, 0.17 + 0.14 * k, 0.92, (58, 52, 52))


def _sink(brush: Brush) -> None:
    brush.box(0, 0, 1, 1, STEEL, STEEL_EDGE, width=0.035)
    brush.box(0.1, 0.2, 0.9, 0.9, _WATER, (70, 110, 150), width=0.03, radius=0.1)
    brush.box(0.46, 0.03, 0.54, 0.32, DARK, radius=0.03)


def _trash(brush: Brush) -> None:
    draw.counter(brush)
    brush.shape([(0.2, 0.3), (0.8, 0.3), (0.72, 0.92), (0.28, 0.92)], (112, 118, 124), DARK)
    brush.box(0.14, 0.18, 0.86, 0.3, (140, 146, 152), DARK, radius=0.04)
    brush.box(0.4, 0.1, 0.6, 0.19, None, DARK, radius=0.03)
    for x in (0.38, 0.5, 0.62):
        brush.line([(x, 0.42), (x, 0.8)], DARK, 0.04)


_STATIONS: dict[Terrain, Callable[[Brush], None]] = {
    Terrain.FLOOR: draw.floor,
    Terrain.COUNTER: draw.counter,
    Terrain.SERVING: _serving,
    Terrain.MEAT: _crate,
    Terrain.MUSHROOM: _crate,
    Terrain.TORTILLA: _crate,
    Terrain.RICE: _crate,
    Terrain.DIRTY_PLATES: _stack,
    Terrain.POT: _pot,
    Terrain.BOARD: _board,
    Terrain.GRILL: _grill,
    Terrain.SINK: _sink,
    Terrain.TRASH: _trash,
}

SAMPLES = {
    Terrain.MEAT: Item.MEAT,
    Terrain.MUSHROOM: Item.MUSHROOM,
    Terrain.TORTILLA: Item.TORTILLA,
    Terrain.RICE: Item.RICE,
}
"""What dispensers show."""


@lru_cache(maxsize=256)
def station(code: int, size: int) -> UInt8[np.ndarray, "size size 4"]:
    """An empty cell of a `Terrain`, with its letter in a corner."""
    brush = Brush(size)
    _STATIONS[Terrain(code)](brush)
    if size >= LETTER_CELL and code not in (Terrain.FLOOR, Terrain.COUNTER):
        brush.disc(0.12, 0.13, 0.11, PAPER)
        brush.label(0.12, 0.13, TERRAIN[code], 0.19, INK)
    piece = brush.piece().copy()
    if code in SAMPLES:
        small = round(0.56 * size)
        put(piece[..., :3], item(SAMPLES[Terrain(code)], small), round(0.22 * size), round(0.22 * size))
    return piece


@lru_cache(maxsize=64)
def stack(count: int, size: int) -> UInt8[np.ndarray, "size size 4"]:
    """The dirty plates of a stack, one over the other."""
    brush = Brush(size)
    for k in range(count):
        y = 0.72 - 0.13 * k
        brush.disc(0.5, y, 0.32, (226, 220, 206), (124, 116, 100), width=0.03, flat=0.4)
        brush.disc(0.5, y, 0.16, _MUD, flat=0.3)
    return brush.piece()
