"""The kitchen as pictures: the floor plan with all that lies and stands there, numbers and orders above it (host side).

Axes: A players, C = W H cells; pictures are height x width x (red, green, blue).

Players are discs in a colour of their own with their id, a wedge at the side they face and what they hold in the lower
right corner.  A bar below an item is its timer: chops and rinses blue, cooking green from left to right; once food is
ready its bar is full and turns from green to orange and red as the fire comes nearer.  A yellow triangle is the
warning, flames are a fire.  Each order is a card with its dish and a bar for the time that remains; the first one, the
next to serve, has a dark frame.  `sprites` makes the pieces.
"""

from functools import lru_cache
from typing import Protocol

import numpy as np
from jaxtyping import UInt8

from jaxcoop.core.pictures import INK, PAPER, Color, put, typeface, write_line
from jaxcoop.envs.burrito import sprites
from jaxcoop.envs.burrito.layouts import Kitchen
from jaxcoop.envs.burrito.types import (
    BURNT,
    CHOPS,
    COOK,
    ORDER_LOSS,
    ORDER_TIME,
    READY,
    RINSES,
    WARNING,
    Dish,
    Item,
    State,
    Terrain,
)
from jaxcoop.envs.kitchen import draw

HEADER = 76
"""Pixels of the strip above the floor plan."""

MARGIN = 8
"""Pixels around the floor plan."""

MIN_WIDTH = 384
"""A small kitchen is shown in a picture of this width, for the strip to be readable."""

MIN_CELL, MAX_CELL, MAP_PIXELS = 8, 64, 768

_CARD, _CARD_HEIGHT, _CARD_ICON, _CARD_GAP = 90, 38, 32, 8
_WORKED: Color = (40, 110, 200)
_PALE: Color = (190, 190, 184)
_DISHES = {Dish.STEAK: Item.STEAK_BURRITO, Dish.MUSHROOM: Item.MUSHROOM_BURRITO}


class Place(Protocol):
    """What pictures need to know of their environment."""

    @property
    def kitchen(self) -> Kitchen:
        """The layout."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of every episode."""
        ...


def frame(env: Place, state: State, *, cell: int | None = None) -> UInt8[np.ndarray, "height width 3"]:
    """Picture of one episode's state (numpy arrays, no batch axis) with `cell` pixels per cell.

    Height is HEADER + H cell + MARGIN, width max(W cell, MIN_WIDTH) + 2 MARGIN.  By default the longer side of the
    floor plan has 768 pixels, a cell from 8 to 64.  Equal states give equal pictures.  Raises `ValueError` for `cell`
    outside 8 to 128.
    """
    grid = env.kitchen.grid
    cell = min(MAX_CELL, max(MIN_CELL, MAP_PIXELS // max(grid.width, grid.height))) if cell is None else cell
    if not MIN_CELL <= cell <= 2 * MAX_CELL:
        raise ValueError(f"cell {cell!r}: must be from {MIN_CELL} to {2 * MAX_CELL} pixels")
    width = max(grid.width * cell, MIN_WIDTH) + 2 * MARGIN
    picture = np.full((HEADER + grid.height * cell + MARGIN, width, 3), PAPER, np.uint8)
    left = (width - grid.width * cell) // 2
    plan = picture[HEADER : HEADER + grid.height * cell, left : left + grid.width * cell]
    plan[:] = _empty_plan(env.kitchen, cell)
    _draw_contents(plan, env.kitchen, state, cell)
    _draw_players(plan, env.kitchen, state, cell)
    picture[:HEADER] = _header(width, _numbers(env, state), _orders(state))
    return picture


@lru_cache(maxsize=8)
def _empty_plan(kitchen: Kitchen, cell: int) -> UInt8[np.ndarray, "height width 3"]:
    grid = kitchen.grid
    pieces = np.stack([sprites.station(int(code), cell)[..., :3] for code in kitchen.terrain])
    pieces = pieces.reshape(grid.height, grid.width, cell, cell, 3)
    return pieces.transpose(0, 2, 1, 3, 4).reshape(grid.height * cell, grid.width * cell, 3)


def _draw_contents(plan: UInt8[np.ndarray, "..."], kitchen: Kitchen, state: State, cell: int) -> None:
    """Everything that lies in cells, with its timer."""
    item, clock = np.asarray(state.item), np.asarray(state.clock)
    for place in np.flatnonzero(kitchen.terrain == Terrain.DIRTY_PLATES).tolist():
        top, left = _corner(kitchen, place, cell)
        put(plan, sprites.stack(int(state.plates), cell), top, left)
    size = round(0.76 * cell)
    shift = (cell - size) // 2
    for place in np.flatnonzero(item).tolist():
        top, left = _corner(kitchen, place, cell)
        put(plan, sprites.item(int(item[place]), size), top + shift, left + shift)
        _draw_timer(plan, Terrain(kitchen.terrain[place]), Item(item[place]), int(clock[place]), cell, top, left)


def _draw_timer(
    plan: UInt8[np.ndarray, "..."], terrain: Terrain, item: Item, clock: int, cell: int, top: int, left: int
) -> None:
    """The bar and the sign of an item on a station, if it has any."""
    if terrain == Terrain.BOARD:
        share, color = clock / CHOPS, _WORKED
    elif terrain == Terrain.SINK and item != Item.CLEAN_PLATE:
        share, color = clock / RINSES, _WORKED
    elif terrain in (Terrain.POT, Terrain.GRILL) and item != Item.CHARCOAL:
        share, color = clock / COOK, _fire_color(clock)
    else:
        return
    if clock >= BURNT and terrain in (Terrain.POT, Terrain.GRILL):
        put(plan, draw.flames(cell), top, left)
        return
    inset, height = max(1, round(0.08 * cell)), max(2, round(0.13 * cell))
    draw.bar(plan, top + cell - height - 1, left + inset, cell - 2 * inset, height, share, color)
    if clock >= WARNING:
        size = round(0.46 * cell)
        put(plan, draw.warning(size), top + 1, left + cell - size - 1)


def _fire_color(clock: int) -> Color:
    """Green while cooking; from ready on nearer and nearer to red."""
    share = min(max((clock - READY) / (BURNT - READY), 0.0), 1.0)
    near, far, part = (draw.GOOD, draw.SOON, 2 * share) if share < 0.5 else (draw.SOON, draw.BAD, 2 * share - 1)
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(near, far))
    return red, green, blue


def _draw_players(plan: UInt8[np.ndarray, "..."], kitchen: Kitchen, state: State, cell: int) -> None:
    size = max(6, round(0.56 * cell))
    for agent, place in enumerate(np.asarray(state.cell).tolist()):
        top, left = _corner(kitchen, place, cell)
        held = int(state.held[agent])
        put(plan, draw.cook(agent, cell, int(state.facing[agent]), held != Item.NONE), top, left)
        if held != Item.NONE:
            corner = (top + cell - size, left + cell - size)
            put(plan, draw.held_ground(size), *corner)
            inner = round(0.84 * size)
            shift = (size - inner) // 2
            put(plan, sprites.item(held, inner), corner[0] + shift, corner[1] + shift)


def _corner(kitchen: Kitchen, place: int, cell: int) -> tuple[int, int]:
    """(top, left) of a cell in the floor plan."""
    return place // kitchen.grid.width * cell, place % kitchen.grid.width * cell


def _numbers(env: Place, state: State) -> tuple[str, ...]:
    """The first line of the strip, as entries that may be left out from the last one on."""
    counts = state.counts
    served = int(counts.in_order) + int(counts.out_of_order) + int(counts.unordered)
    return (
        f"step {int(state.t)} / {env.horizon}",
        f"score {float(state.score):g}",
        f"dirty plates {int(state.plates)}",
        f"served {served}",
        f"in a row {int(state.streak)}",
    )


def _orders(state: State) -> tuple[tuple[int, int], ...]:
    """(dish, steps that remain) of each order."""
    return tuple(
        (int(dish), -(-int(left) // ORDER_LOSS)) for dish, left in zip(state.dish, state.left) if dish != Dish.NONE
    )


@lru_cache(maxsize=256)
def _header(
    width: int, numbers: tuple[str, ...], orders: tuple[tuple[int, int], ...]
) -> UInt8[np.ndarray, "height width 3"]:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, HEADER), PAPER)
    pen = ImageDraw.Draw(image)
    write_line(pen, numbers, 5, 16, margin=MARGIN, gap=20)
    top = HEADER - _CARD_HEIGHT - 7
    for place, (_, steps) in enumerate(orders):
        left = MARGIN + place * (_CARD + _CARD_GAP)
        box = (left, top, left + _CARD - 1, top + _CARD_HEIGHT - 1)
        pen.rounded_rectangle(box, 5, PAPER, INK if place == 0 else _PALE, 2 if place == 0 else 1)
        pen.text((left + _CARD_ICON + 8, top + 4), f"{steps} left", INK, typeface(12))
    picture = np.array(image)
    for place, (dish, steps) in enumerate(orders):
        left = MARGIN + place * (_CARD + _CARD_GAP)
        put(picture, sprites.item(_DISHES[Dish(dish)], _CARD_ICON), top + 3, left + 4)
        share = ORDER_LOSS * steps / ORDER_TIME
        color = draw.GOOD if share > 0.5 else draw.SOON if share > 0.2 else draw.BAD
        draw.bar(picture, top + 24, left + _CARD_ICON + 8, _CARD - _CARD_ICON - 14, 8, share, color)
    return picture
