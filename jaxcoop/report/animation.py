"""Pictures of episodes as files: PNG stills and GIF animations, written whole or not at all.

Axes: H x W pixels, three bytes (red, green, blue) each; U distinct colours of all frames of an animation.

All frames of a GIF share one palette, so that a colour is the same in every frame (nothing flickers) and pixels that
stay as they are cost next to nothing.  Up to 255 colours are kept exactly.  Pillow is imported inside functions.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from jaxcoop.runs.files import atomic_write

Frame = UInt8[np.ndarray, "H W 3"]

COLORS = 255
"""Size of the palette; the last of 256 entries stands for pixels that stay as they are."""

HOLD_SECONDS = 2.0
"""How long the last frame stands before the animation starts again."""

MAX_FPS = 50.0
"""GIF counts hundredths of a second, and viewers slow down whatever is faster than this."""

_CODES = 1 << 24
_CHUNK = 1024


def write_png(frame: Frame, path: Path | str) -> None:
    """Write one picture; the folder is made when missing.

    Raises `ValueError` for an array that is no picture, OSError when the file cannot be written.
    """
    from PIL import Image

    image = Image.fromarray(_checked(frame, None))
    path = _ready(path)
    atomic_write(path, lambda handle: image.save(handle, "PNG", optimize=True))


def write_gif(frames: Iterable[Frame], path: Path | str, *, fps: float = 5) -> None:
    """Write an endless animation of `fps` frames per second; the folder is made when missing.

    The last frame stands for `HOLD_SECONDS`.  Frames that equal the one before are stored as a longer stand of that
    one.  Raises `ValueError` without frames, for frames of different shapes, for arrays that are no pictures and for
    `fps` outside (0, 50]; OSError when the file cannot be written.
    """
    from PIL import Image

    if not 0 < fps <= MAX_FPS:
        raise ValueError(f"fps {fps!r}: must be above 0 and at most {MAX_FPS:g}")
    indexed, colors, counts = _numbered(frames)
    palette = colors if len(colors) <= COLORS else _palette(colors, counts)
    entry = _nearest(colors, palette)
    images = [Image.fromarray(entry[numbers]) for numbers in indexed]
    table = np.zeros((256, 3), np.uint8)
    table[: len(palette)] = palette
    for image in images:
        image.putpalette(table.tobytes())
    # Times add up: frame k starts at the hundredth that is nearest to k / fps.
    starts = [round(100 * k / fps) for k in range(len(images))]
    durations = [10 * (after - start) for start, after in itertools.pairwise(starts)]
    path = _ready(path)
    atomic_write(
        path,
        lambda handle: images[0].save(
            handle,
            "GIF",
            save_all=True,
            append_images=images[1:],
            duration=[*durations, round(1000 * HOLD_SECONDS)],
            loop=0,
            palette=table.tobytes(),
            transparency=COLORS,
            optimize=True,
            disposal=1,
        ),
    )


def _ready(path: Path | str) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _checked(frame: Frame, shape: tuple[int, ...] | None) -> Frame:
    frame = np.asarray(frame)
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3 or not frame.size:
        raise ValueError(f"frame of {frame.dtype}{list(frame.shape)}: must be uint8[height, width, 3]")
    if shape is not None and frame.shape != shape:
        raise ValueError(f"frame of shape {frame.shape}: must be {shape} as the first one")
    return np.ascontiguousarray(frame)


def _numbered(frames: Iterable[Frame]) -> tuple[list[Int[np.ndarray, "H W"]], UInt8[np.ndarray, "U 3"], np.ndarray]:
    """The frames as numbers of colours, the colours in the order met, and how many pixels have each."""
    number = np.full(_CODES, -1, np.int32)  # of every colour that there can be
    met: list[np.ndarray] = []
    known = 0
    indexed: list[np.ndarray] = []
    shape = None
    for frame in frames:
        frame = _checked(frame, shape)
        shape = frame.shape
        parts = frame.astype(np.int32)
        codes = parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
        fresh = np.unique(codes[number[codes] < 0])
        number[fresh] = np.arange(known, known + len(fresh), dtype=np.int32)
        known += len(fresh)
        met.append(fresh)
        numbers = number[codes]
        indexed.append(numbers.astype(np.uint16) if known <= 1 << 16 else numbers)
    if not indexed:
        raise ValueError("no frames: an animation needs at least one")
    codes = np.concatenate(met)
    colors = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
    counts = sum(np.bincount(numbers.ravel(), minlength=known) for numbers in indexed)
    return indexed, colors, np.asarray(counts)


def _palette(colors: UInt8[np.ndarray, "U 3"], counts: Int[np.ndarray, " U"]) -> UInt8[np.ndarray, "P 3"]:
    """A palette of `COLORS` entries: the commonest half exactly, the rest by median cut."""
    from PIL import Image

    exact = COLORS // 2
    order = np.argsort(-counts, kind="stable")
    common, rare = order[:exact], order[exact:]
    # Roots, so that a small mark in a colour of its own is not outvoted by large surfaces.
    weights = np.maximum(1, np.sqrt(counts[rare] / counts[rare].max()) * 16).astype(np.int64)
    sample = np.repeat(colors[rare], weights, axis=0)
    image = Image.fromarray(sample[None])
    cut = image.quantize(COLORS - exact, Image.Quantize.MEDIANCUT).getpalette() or []
    rest = np.asarray(cut, np.uint8).reshape(-1, 3)[: COLORS - exact]
    return np.concatenate([colors[common], rest])


def _nearest(colors: UInt8[np.ndarray, "U 3"], palette: UInt8[np.ndarray, "P 3"]) -> UInt8[np.ndarray, " U"]:
    """The entry of the palette that is nearest to each colour."""
    target = palette.astype(np.int32)
    entries = np.empty(len(colors), np.uint8)
    for start in range(0, len(colors), _CHUNK):
        part = colors[start : start + _CHUNK].astype(np.int32)
        entries[start : start + _CHUNK] = np.square(part[:, None] - target).sum(-1).argmin(-1)
    return entries
