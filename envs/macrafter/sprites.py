"""The pieces that MA-Crafter pictures are made of: cells, cows, plants, agents, icons of items (host side).

Axes: M materials, V variants of a cell; pictures are height x width x (red, green, blue[, opacity]).

Everything is drawn by the functions below, once per size, and kept.  They work on a square of side 1, which is drawn
`_SMOOTH` times larger than asked for and shrunk.  Pillow is imported inside functions.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, agent_color, typeface
from jaxcoop.envs.macrafter.types import Item, Material, Thing

Point = tuple[float, float]

VARIANTS = 2
"""V: grass, sand and paths come in two drawings, so that a meadow does not look like wallpaper."""

LABEL_SIZE = 14
"""Agents drawn smaller than this carry no id."""

_SMOOTH = 4
_GRASS, _GRASS_DARK = (138, 188, 98), (112, 163, 76)
_STONE, _STONE_DARK, _STONE_PALE = (150, 151, 156), (121, 122, 128), (172, 173, 178)
_WOOD, _WOOD_DARK = (176, 125, 72), (112, 74, 40)
_COAL, _IRON, _DIAMOND = (38, 38, 42), (222, 150, 96), (190, 246, 255)
_LEAF, _LEAF_PALE = (34, 96, 52), (52, 124, 68)


class _Pen:
    """Shapes on a square of side 1, y downwards."""

    def __init__(self, size: int, ground: Color | None) -> None:
        from PIL import Image, ImageDraw

        self.size, self._big = size, size * _SMOOTH
        self.image = Image.new("RGBA", (self._big, self._big), (*INK, 0) if ground is None else (*ground, 255))
        self._draw = ImageDraw.Draw(self.image)

    def _at(self, points: Sequence[Point]) -> list[Point]:
        return [(x * self._big, y * self._big) for x, y in points]

    def polygon(self, color: Color, *points: Point) -> None:
        self._draw.polygon(self._at(points), (*color, 255))

    def box(self, color: Color, left: float, top: float, right: float, bottom: float, radius: float = 0.0) -> None:
        (x0, y0), (x1, y1) = self._at([(left, top), (right, bottom)])
        self._draw.rounded_rectangle((x0, y0, x1 - 1, y1 - 1), radius * self._big, (*color, 255))

    def spot(self, color: Color, x: float, y: float, radius: float, tall: float = 1.0) -> None:
        (x0, y0), (x1, y1) = self._at([(x - radius, y - radius * tall), (x + radius, y + radius * tall)])
        self._draw.ellipse((x0, y0, x1 - 1, y1 - 1), (*color, 255))

    def line(self, color: Color, width: float, *points: Point) -> None:
        self._draw.line(self._at(points), (*color, 255), max(1, round(width * self._big)), joint="curve")

    def done(self, opacity: float = 1.0) -> UInt8[np.ndarray, "size size 4"]:
        from PIL import Image

        made = np.array(self.image.resize((self.size, self.size), Image.Resampling.BOX))
        made[..., 3] = made[..., 3] * opacity
        return made


def _waves(pen: _Pen, color: Color, variant: int) -> None:
    for left, y in ((0.08, 0.3), (0.42, 0.68)) if variant == 0 else ((0.38, 0.26), (0.1, 0.62)):
        pen.line(color, 0.07, *((left + 0.12 * k, y + (0.07 if k % 2 else -0.03)) for k in range(5)))


def _blades(pen: _Pen, variant: int) -> None:
    for x, y in ((0.25, 0.4), (0.7, 0.75)) if variant == 0 else ((0.6, 0.35), (0.2, 0.8)):
        pen.line(_GRASS_DARK, 0.06, (x - 0.08, y - 0.12), (x, y), (x + 0.08, y - 0.12))


def _grains(pen: _Pen, color: Color, variant: int) -> None:
    for x, y in ((0.2, 0.3), (0.65, 0.2), (0.45, 0.7), (0.85, 0.75)):
        pen.spot(color, x if variant == 0 else 1 - x, y, 0.055)


def _rock(pen: _Pen, variant: int) -> None:
    pen.line(_STONE_DARK, 0.06, (0.0, 0.62), (0.3, 0.52), (0.46, 0.68), (0.42, 1.0))
    pen.line(_STONE_DARK, 0.06, (0.55, 0.0), (0.6, 0.26), (1.0, 0.36))
    pen.line(_STONE_PALE, 0.05, (0.1, 0.16), (0.34, 0.12) if variant == 0 else (0.22, 0.32))


def _ore(pen: _Pen, color: Color, rim: Color) -> None:
    for x, y, radius in ((0.3, 0.3, 0.17), (0.7, 0.42, 0.15), (0.4, 0.74, 0.16)):
        pen.spot(rim, x, y, radius)
        pen.spot(color, x, y, radius - 0.035)


def _gem(pen: _Pen) -> None:
    pen.polygon((28, 112, 138), (0.5, 0.06), (0.92, 0.44), (0.5, 0.96), (0.08, 0.44))
    pen.polygon(_DIAMOND, (0.5, 0.14), (0.83, 0.45), (0.5, 0.86), (0.17, 0.45))
    pen.polygon(PAPER, (0.5, 0.14), (0.64, 0.45), (0.36, 0.45))


def _crown(pen: _Pen) -> None:
    pen.box(_WOOD_DARK, 0.42, 0.6, 0.58, 0.98)
    pen.spot(_LEAF, 0.5, 0.42, 0.38)
    pen.spot(_LEAF_PALE, 0.42, 0.34, 0.2)


def _workbench(pen: _Pen) -> None:
    pen.box(_WOOD_DARK, 0.06, 0.1, 0.94, 0.96, 0.08)
    pen.box((206, 158, 104), 0.12, 0.16, 0.88, 0.62, 0.05)
    pen.line(_WOOD_DARK, 0.06, (0.5, 0.16), (0.5, 0.62))
    pen.line(_WOOD_DARK, 0.06, (0.12, 0.39), (0.88, 0.39))


def _oven(pen: _Pen) -> None:
    pen.box((70, 70, 76), 0.06, 0.06, 0.94, 0.96, 0.08)
    pen.box((104, 104, 110), 0.14, 0.13, 0.86, 0.34, 0.04)
    pen.box((24, 20, 20), 0.24, 0.44, 0.76, 0.88, 0.12)
    pen.polygon((255, 150, 30), (0.3, 0.86), (0.4, 0.6), (0.5, 0.72), (0.6, 0.54), (0.7, 0.86))


_CELLS: dict[int, tuple[Color, Callable[[_Pen, int], None]]] = {
    Material.NONE: (INK, lambda pen, variant: None),
    Material.WATER: ((74, 142, 206), lambda pen, variant: _waves(pen, (156, 202, 238), variant)),
    Material.GRASS: (_GRASS, _blades),
    Material.STONE: (_STONE, _rock),
    Material.PATH: ((197, 178, 152), lambda pen, variant: _grains(pen, (170, 148, 120), variant)),
    Material.SAND: ((243, 228, 168), lambda pen, variant: _grains(pen, (216, 192, 118), variant)),
    Material.TREE: (_GRASS, lambda pen, variant: _crown(pen)),
    Material.LAVA: ((214, 62, 24), lambda pen, variant: _waves(pen, (255, 196, 60), variant)),
    Material.COAL: (_STONE, lambda pen, variant: _ore(pen, _COAL, _STONE_DARK)),
    Material.IRON: (_STONE, lambda pen, variant: _ore(pen, _IRON, (140, 84, 44))),
    Material.DIAMOND: (_STONE, lambda pen, variant: _gem(pen)),
    Material.TABLE: (_GRASS, lambda pen, variant: _workbench(pen)),
    Material.FURNACE: (_STONE_PALE, lambda pen, variant: _oven(pen)),
}


@lru_cache(maxsize=16)
def cells(size: int) -> UInt8[np.ndarray, "M V size size 3"]:
    """Every material in every variant."""
    made = np.empty((len(Material), VARIANTS, size, size, 3), np.uint8)
    for material, (ground, draw) in _CELLS.items():
        for variant in range(VARIANTS):
            pen = _Pen(size, ground)
            draw(pen, variant)
            made[material, variant] = pen.done()[..., :3]
    return made


@lru_cache(maxsize=64)
def thing(code: int, size: int) -> UInt8[np.ndarray, "size size 4"]:
    """A cow or a plant (`Thing`)."""
    pen = _Pen(size, None)
    if code == Thing.COW:
        pen.box(INK, 0.06, 0.2, 0.94, 0.86, 0.2)
        pen.box((250, 246, 240), 0.1, 0.24, 0.9, 0.82, 0.17)
        pen.spot((92, 64, 48), 0.32, 0.42, 0.15)
        pen.spot((92, 64, 48), 0.66, 0.36, 0.1)
        pen.box((242, 170, 170), 0.4, 0.58, 0.88, 0.8, 0.1)
        pen.spot(INK, 0.54, 0.69, 0.045)
        pen.spot(INK, 0.74, 0.69, 0.045)
    else:
        _sprout(pen)
    return pen.done()


def _sprout(pen: _Pen) -> None:
    pen.line(_LEAF, 0.1, (0.5, 0.95), (0.5, 0.4))
    pen.polygon(_LEAF, (0.5, 0.62), (0.1, 0.5), (0.14, 0.18), (0.46, 0.34))
    pen.polygon(_LEAF_PALE, (0.5, 0.5), (0.9, 0.38), (0.84, 0.06), (0.54, 0.22))


def _pickaxe(pen: _Pen, head: Color) -> None:
    pen.line(_WOOD_DARK, 0.13, (0.2, 0.92), (0.66, 0.3))
    pen.polygon(INK, (0.2, 0.22), (0.6, 0.0), (0.98, 0.36), (0.94, 0.74), (0.74, 0.4), (0.54, 0.24))
    pen.polygon(head, (0.3, 0.2), (0.6, 0.06), (0.92, 0.38), (0.91, 0.6), (0.77, 0.34), (0.57, 0.18))


def _sword(pen: _Pen, blade: Color) -> None:
    pen.line(INK, 0.24, (0.3, 0.7), (0.92, 0.08))
    pen.line(blade, 0.14, (0.32, 0.68), (0.9, 0.1))
    pen.line(_WOOD_DARK, 0.14, (0.16, 0.5), (0.5, 0.84))
    pen.line(_WOOD_DARK, 0.14, (0.06, 0.94), (0.3, 0.7))


def _heart(pen: _Pen) -> None:
    red = (204, 44, 58)
    pen.spot(red, 0.29, 0.34, 0.24)
    pen.spot(red, 0.71, 0.34, 0.24)
    pen.polygon(red, (0.07, 0.44), (0.5, 0.38), (0.93, 0.44), (0.5, 0.94))


def _log(pen: _Pen) -> None:
    pen.box(_WOOD_DARK, 0.06, 0.26, 0.8, 0.78, 0.1)
    pen.spot(_WOOD_DARK, 0.76, 0.52, 0.2, 1.3)
    pen.spot((222, 180, 126), 0.76, 0.52, 0.14, 1.3)


def _pebble(pen: _Pen, color: Color) -> None:
    pen.polygon(INK, (0.06, 0.6), (0.26, 0.2), (0.66, 0.12), (0.95, 0.46), (0.82, 0.88), (0.26, 0.9))
    pen.polygon(color, (0.14, 0.6), (0.31, 0.27), (0.63, 0.2), (0.86, 0.48), (0.76, 0.8), (0.3, 0.82))


def _meat(pen: _Pen) -> None:
    pen.line((236, 226, 208), 0.15, (0.3, 0.7), (0.1, 0.9))
    pen.spot((152, 84, 44), 0.6, 0.4, 0.35)
    pen.spot((190, 116, 66), 0.54, 0.33, 0.2)


def _drop(pen: _Pen) -> None:
    pen.spot((54, 122, 196), 0.5, 0.64, 0.31)
    pen.polygon((54, 122, 196), (0.5, 0.04), (0.77, 0.5), (0.23, 0.5))


def _bolt(pen: _Pen) -> None:
    pen.polygon((226, 168, 0), (0.62, 0.02), (0.16, 0.58), (0.46, 0.58), (0.36, 0.98), (0.84, 0.4), (0.54, 0.4))


_TIERS: tuple[Color, ...] = (_WOOD, _STONE_PALE, _IRON)

_ITEMS: dict[int, Callable[[_Pen], None]] = {
    Item.HEALTH: _heart,
    Item.FOOD: _meat,
    Item.DRINK: _drop,
    Item.ENERGY: _bolt,
    Item.SAPLING: _sprout,
    Item.WOOD: _log,
    Item.STONE: lambda pen: _pebble(pen, _STONE_PALE),
    Item.COAL: lambda pen: _pebble(pen, (70, 70, 76)),
    Item.IRON: lambda pen: _pebble(pen, _IRON),
    Item.DIAMOND: _gem,
    **{Item.WOOD_PICKAXE + tier: lambda pen, tier=tier: _pickaxe(pen, _TIERS[tier]) for tier in range(3)},
    **{Item.WOOD_SWORD + tier: lambda pen, tier=tier: _sword(pen, _TIERS[tier]) for tier in range(3)},
}


@lru_cache(maxsize=128)
def item(code: int, size: int, *, faint: bool = False) -> UInt8[np.ndarray, "size size 4"]:
    """The icon of an `Item`; `faint` for one that is not there."""
    pen = _Pen(size, None)
    _ITEMS[code](pen)
    return pen.done(0.16 if faint else 1.0)


@lru_cache(maxsize=8192)
def agent(
    number: int, size: int, facing: int, *, asleep: bool, removed: bool, active: bool = False
) -> UInt8[np.ndarray, "size size 4"]:
    """An agent: a disc with its id and a wedge to where it faces; z: asleep, crossed and pale: removed.

    `active` gives it a white ring: it collected something in the last step.
    """
    from PIL import Image, ImageDraw

    color = agent_color(number)
    pen = _Pen(size, None)
    if not removed:
        pen.polygon(INK, *_wedge(facing, 0.0, 0.34))
    pen.spot(INK, 0.5, 0.5, 0.41)
    pen.spot(PAPER if active else color, 0.5, 0.5, 0.37)
    pen.spot(color, 0.5, 0.5, 0.3 if active else 0.37)
    if removed:
        pen.line(INK, 0.09, (0.16, 0.16), (0.84, 0.84))
        pen.line(INK, 0.09, (0.84, 0.16), (0.16, 0.84))
    if asleep:
        pen.box(PAPER, 0.6, 0.0, 1.0, 0.4, 0.1)
        pen.line((40, 60, 140), 0.08, (0.68, 0.09), (0.91, 0.09), (0.69, 0.31), (0.92, 0.31))
    made = pen.done(0.5 if removed else 1.0)
    if size < LABEL_SIZE:
        return made
    image = Image.fromarray(made)
    label = str(number)
    ink = INK if 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 135 else PAPER
    font = typeface(max(8, round(size * (0.54, 0.42, 0.32, 0.26)[min(len(label), 4) - 1])))
    ImageDraw.Draw(image).text((size / 2, size / 2), label, (*ink, 255), font, anchor="mm")
    return np.asarray(image)


def _wedge(facing: int, tip: float, depth: float) -> list[Point]:
    """A triangle at the side of the square that lies in the direction (left, right, up, down)."""
    left = [(tip, 0.5), (tip + depth, 0.5 - 0.34), (tip + depth, 0.5 + 0.34)]
    points = [(1 - x, y) for x, y in left] if facing in (1, 3) else left
    return points if facing in (0, 1) else [(y, x) for x, y in points]
