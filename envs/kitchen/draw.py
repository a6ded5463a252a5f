"""Drawing that kitchens share: a brush with smooth edges, floor and counters, cooks, bars and signs (host side).

Pictures are height x width x (red, green, blue), pieces have opacity as a fourth channel.  Shapes are given in units of
their square piece: (0, 0) is its top left corner, (1, 1) the bottom right one.  Pillow is imported inside functions.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, agent_color, readable, typeface
from jaxcoop.envs.kitchen.grid import DELTA_X, DELTA_Y

SMOOTH = 4
"""Pieces are drawn this much larger and shrunk."""

MIN_LABEL = 20
"""Pieces that are smaller than this carry no text."""

FLOOR, FLOOR_LINE = (244, 241, 234), (228, 223, 212)
COUNTER, COUNTER_EDGE = (196, 178, 150), (164, 146, 118)
DARK, STEEL, STEEL_EDGE = (66, 68, 74), (186, 194, 202), (120, 128, 138)
GOOD, SOON, BAD, TRACK = (46, 160, 80), (240, 170, 20), (214, 52, 40), (70, 70, 70)

Points = Sequence[tuple[float, float]]


class Brush:
    """Draws on a square piece of `size` pixels, which starts transparent."""

    def __init__(self, size: int) -> None:
        from PIL import Image, ImageDraw

        self.size = size
        self._big = size * SMOOTH
        self._image = Image.new("RGBA", (self._big, self._big), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._image)
        self._labels: list[tuple[float, float, str, int, Color]] = []

    def box(
        self,
        left: float,
        top: float,
        right: float,
        bottom: float,
        fill: Color | None,
        edge: Color | None = None,
        *,
        width: float = 0.03,
        radius: float = 0.0,
    ) -> None:
        """A rectangle, with round corners if a radius is given."""
        corners = self._scaled([(left, top), (right, bottom)])
        outline = {"outline": edge, "width": self._width(width)} if edge else {}
        self._draw.rounded_rectangle(corners, radius * self._big, fill, **outline)

    def disc(
        self,
        x: float,
        y: float,
        radius: float,
        fill: Color | None,
        edge: Color | None = None,
        *,
        width: float = 0.03,
        flat: float = 1.0,
    ) -> None:
        """A circle, or with `flat` below 1 an ellipse of less height."""
        corners = self._scaled([(x - radius, y - radius * flat), (x + radius, y + radius * flat)])
        outline = {"outline": edge, "width": self._width(width)} if edge else {}
        self._draw.ellipse(corners, fill, **outline)

    def shape(self, points: Points, fill: Color, edge: Color | None = None, *, width: float = 0.03) -> None:
        """A polygon."""
        outline = {"outline": edge, "width": self._width(width)} if edge else {}
        self._draw.polygon(self._scaled(points), fill, **outline)

    def line(self, points: Points, color: Color, width: float) -> None:
        """A line with round ends."""
        scaled = self._scaled(points)
        self._draw.line(scaled, color, self._width(width), joint="curve")
        for x, y in (points[0], points[-1]):
            self.disc(x, y, width / 2, color)

    def label(self, x: float, y: float, text: str, height: float, color: Color) -> None:
        """Text around a middle, as high as this share of the piece; left out of small pieces."""
        if self.size >= MIN_LABEL:
            self._labels.append((x, y, text, max(8, round(height * self.size)), color))

    def piece(self) -> UInt8[np.ndarray, "size size 4"]:
        """What was drawn."""
        from PIL import Image, ImageDraw

        image = self._image.resize((self.size, self.size), Image.Resampling.BOX)
        draw = ImageDraw.Draw(image)
        for x, y, text, height, color in self._labels:
            draw.text((x * self.size, y * self.size), text, (*color, 255), typeface(height), anchor="mm")
        return np.asarray(image)

    def _scaled(self, points: Points) -> list[tuple[float, float]]:
        return [(x * (self._big - 1), y * (self._big - 1)) for x, y in points]

    def _width(self, width: float) -> int:
        return max(1, round(width * self._big))


def floor(brush: Brush) -> None:
    """Something to walk on."""
    brush.box(0, 0, 1, 1, FLOOR, FLOOR_LINE, width=0.02)


def counter(brush: Brush) -> None:
    """A place that holds one thing, and what stations stand on."""
    brush.box(0, 0, 1, 1, COUNTER, COUNTER_EDGE, width=0.035)


@lru_cache(maxsize=1024)
def cook(agent: int, size: int, facing: int, is_loaded: bool) -> UInt8[np.ndarray, "size size 4"]:
    """A player: a disc in a colour of its own, its id on it, a wedge at the side (`Direction`) that it faces.

    `is_loaded`: the id makes room for a held thing in the lower right corner.
    """
    brush, color = Brush(size), agent_color(agent)
    x, y = float(DELTA_X[facing]), float(DELTA_Y[facing])
    base, half = 0.3, 0.24
    brush.shape(
        [
            (0.5 + 0.49 * x, 0.5 + 0.49 * y),
            (0.5 + base * x + half * y, 0.5 + base * y + half * x),
            (0.5 + base * x - half * y, 0.5 + base * y - half * x),
        ],
        INK,
    )
    brush.disc(0.5, 0.5, 0.37, color, INK, width=0.035)
    label, shift = str(agent), 0.1 if is_loaded else 0.0
    brush.label(0.5 - shift, 0.5 - shift, label, 0.42 if len(label) == 1 else 0.34, readable(color))
    return brush.piece()


@lru_cache(maxsize=64)
def held_ground(size: int) -> UInt8[np.ndarray, "size size 4"]:
    """What a held thing is drawn on."""
    brush = Brush(size)
    brush.disc(0.5, 0.5, 0.5, PAPER, INK, width=0.05)
    return brush.piece()


@lru_cache(maxsize=64)
def warning(size: int) -> UInt8[np.ndarray, "size size 4"]:
    """A yellow triangle with an exclamation mark."""
    brush = Brush(size)
    brush.shape([(0.5, 0.04), (0.98, 0.92), (0.02, 0.92)], (255, 212, 0), INK, width=0.08)
    brush.line([(0.5, 0.38), (0.5, 0.6)], INK, 0.12)
    brush.disc(0.5, 0.77, 0.07, INK)
    return brush.piece()


@lru_cache(maxsize=64)
def flames(size: int) -> UInt8[np.ndarray, "size size 4"]:
    """Three tongues of fire."""
    brush = Brush(size)
    for scale, color in ((1.0, (226, 62, 28)), (0.68, (250, 148, 24)), (0.36, (255, 226, 90))):
        points = [(-0.42, 0), (-0.4, -0.5), (-0.2, -0.28), (0, -0.92), (0.2, -0.3), (0.38, -0.55), (0.42, 0)]
        brush.shape([(0.5 + scale * x, 0.94 + scale * y) for x, y in points], color)
    return brush.piece()


def bar(
    picture: UInt8[np.ndarray, "..."], top: int, left: int, width: int, height: int, share: float, c: Color
) -> None:
    """A bar on a picture, in place, of which a share is filled with the colour."""
    area = picture[top : top + height, left : left + width]
    area[:] = TRACK
    edge = 1 if height > 3 else 0
    inner = area[edge : height - edge, edge : width - edge]
    inner[:] = PAPER
    inner[:, : round(inner.shape[1] * min(max(share, 0.0), 1.0))] = c
