"""What pictures of all environments share: the colours of agents, the font, laying pieces on a picture (host side).

Pictures are height x width x (red, green, blue), pieces have opacity as a fourth channel.  Pillow is imported inside
functions.
"""

import colorsys
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

Color = tuple[int, int, int]

INK, PAPER = (34, 34, 34), (255, 255, 255)

_AGENTS: tuple[Color, ...] = (
    (0, 114, 178),
    (213, 94, 0),
    (240, 228, 66),
    (204, 121, 167),
    (86, 180, 233),
    (230, 159, 0),
    (90, 60, 140),
    (0, 158, 115),
)
"""Colours that stay apart for colour-blind readers (Okabe and Ito, with violet for their black); green, the colour of
meadows and goals, comes last."""


def agent_color(agent: int) -> Color:
    """The colour of an agent, the same in every picture; the first eight stay apart for colour-blind readers."""
    if agent < len(_AGENTS):
        return _AGENTS[agent]
    # Hues by the golden ratio never come back; changing lightness keeps neighbours apart without colour vision.
    shade = colorsys.hls_to_rgb(agent * 0.6180339887 % 1.0, (0.35, 0.55, 0.7, 0.45)[agent % 4], 0.6 + 0.1 * (agent % 3))
    return (round(255 * shade[0]), round(255 * shade[1]), round(255 * shade[2]))


@lru_cache(maxsize=32)
def typeface(size: int) -> "FreeTypeFont | ImageFont":
    """Pillow's own font; it has neither typographic signs for times and minus nor an ellipsis."""
    from PIL import ImageFont

    return ImageFont.load_default(size=size)


def readable(color: Color) -> Color:
    """Ink or white, whichever stands out on the colour."""
    return INK if 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] > 135 else PAPER


def write_line(
    pen: "ImageDraw", entries: tuple[str, ...], top: int, size: int, *, margin: int, gap: int, color: Color = INK
) -> None:
    """Entries beside each other, the first one `margin` from the edge; those that find no room are left out."""
    left, font = float(margin), typeface(size)
    for entry in entries:
        length = pen.textlength(entry, font)
        if left > margin and left + length > pen.im.size[0] - margin:
            break
        pen.text((left, top), entry, color, font)
        left += length + gap


@lru_cache(maxsize=256)
def header(
    width: int, height: int, first: tuple[str, ...], second: tuple[str, ...], *, margin: int, gap: int
) -> UInt8[np.ndarray, "height width 3"]:
    """A strip with two lines of numbers, the second one smaller and paler."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(image)
    write_line(pen, first, 6, 17, margin=margin, gap=gap)
    write_line(pen, second, 29, 13, margin=margin, gap=gap, color=(96, 96, 96))
    return np.asarray(image)


def put(picture: UInt8[np.ndarray, "..."], piece: UInt8[np.ndarray, "..."], top: int, left: int) -> None:
    """Lay a piece with transparency on the picture, in place; what hangs over an edge is cut off."""
    piece = piece[max(0, -top) :, max(0, -left) :]
    top, left = max(0, top), max(0, left)
    area = picture[top : top + piece.shape[0], left : left + piece.shape[1]]
    piece = piece[: area.shape[0], : area.shape[1]]
    alpha = piece[..., 3:].astype(np.uint16)
    area[:] = (area * (255 - alpha) + piece[..., :3] * alpha + 127) // 255
