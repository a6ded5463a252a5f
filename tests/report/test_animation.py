"""Animations and stills: every frame is there, in its colours, for its time; files are whole or absent."""

import numpy as np
import pytest
from PIL import Image

from jaxcoop.report.animation import COLORS, write_gif, write_png

FEW = np.array([[250, 250, 250], [0, 114, 178], [213, 94, 0], [10, 20, 30]], np.uint8)


def walk(count=4, height=20, width=30):
    """A square that walks over a chequered floor."""
    floor = FEW[(np.arange(height)[:, None] + np.arange(width)) // 5 % 2 * 3]
    frames = [floor.copy() for _ in range(count)]
    for k, frame in enumerate(frames):
        frame[4:8, 3 * k : 3 * k + 4] = FEW[1 + k % 2]
    return frames


def noise(count, shape=(40, 40, 3)):
    return list(np.random.default_rng(0).integers(0, 256, (count, *shape), np.uint8))


def read(path):
    """Frames and their times in milliseconds."""
    with Image.open(path) as image:
        frames, times = [], []
        for k in range(getattr(image, "n_frames", 1)):
            image.seek(k)
            frames.append(np.asarray(image.convert("RGB")))
            times.append(image.info["duration"])
    return frames, times


def test_a_gif_has_the_given_frames_in_their_exact_colours(tmp_path):
    write_gif(walk(6), tmp_path / "a.gif")
    frames, _ = read(tmp_path / "a.gif")
    np.testing.assert_array_equal(frames, walk(6))


def test_frames_may_come_one_by_one(tmp_path):
    write_gif((frame for frame in walk(3)), tmp_path / "a.gif")
    assert len(read(tmp_path / "a.gif")[0]) == 3


@pytest.mark.parametrize(("fps", "times"), [(5, [200, 200, 200, 2000]), (30, [30, 40, 30, 2000]), (0.5, [2000] * 4)])
def test_frames_stand_for_their_time_and_the_last_one_for_two_seconds(tmp_path, fps, times):
    write_gif(walk(4), tmp_path / "a.gif", fps=fps)
    assert read(tmp_path / "a.gif")[1] == times


def test_an_animation_starts_again(tmp_path):
    write_gif(walk(), tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as image:
        assert image.info["loop"] == 0


def test_one_frame_is_an_animation_too(tmp_path):
    write_gif(walk(1), tmp_path / "a.gif")
    np.testing.assert_array_equal(read(tmp_path / "a.gif")[0], walk(1))


def test_equal_frames_are_one_that_stands_longer(tmp_path):
    first, second = walk(2)
    write_gif([first, first, second, second], tmp_path / "a.gif")
    frames, times = read(tmp_path / "a.gif")
    assert len(frames) == 2 and times == [400, 2200]


def test_as_many_colours_as_the_palette_holds_are_kept_exactly(tmp_path):
    ramp = np.zeros((1, COLORS, 3), np.uint8)
    ramp[0, :, 0] = np.arange(COLORS)
    ramp[0, :, 1] = 7
    write_gif([ramp, ramp[:, ::-1]], tmp_path / "a.gif")
    np.testing.assert_array_equal(read(tmp_path / "a.gif")[0], [ramp, ramp[:, ::-1]])


def test_with_more_colours_common_ones_stay_and_the_rest_comes_near(tmp_path):
    frames = noise(3)
    for frame in frames:
        frame[:20] = FEW[1]
    write_gif(frames, tmp_path / "a.gif")
    shown, _ = read(tmp_path / "a.gif")
    assert len(np.unique(np.concatenate(shown).reshape(-1, 3), axis=0)) <= COLORS
    for frame, given in zip(shown, frames, strict=True):
        assert (frame[:20] == FEW[1]).all()
        assert np.abs(frame.astype(int) - given).mean() < 20


def test_a_colour_is_the_same_in_every_frame(tmp_path):
    frames = noise(4)
    for frame in frames:
        frame[:10] = frames[0][:10]
    write_gif(frames, tmp_path / "a.gif")
    shown, _ = read(tmp_path / "a.gif")
    assert all((frame[:10] == shown[0][:10]).all() for frame in shown)


def test_what_stays_costs_little(tmp_path):
    still, other = noise(2, (100, 100, 3))
    write_gif([still], tmp_path / "one.gif")
    moving = [still.copy() for _ in range(20)]
    for k, frame in enumerate(moving):
        frame[0, k] = other[0, 0]
        frame[-1, -1 - k] = other[0, 0]
    write_gif(moving, tmp_path / "many.gif")
    assert (tmp_path / "many.gif").stat().st_size < 2 * (tmp_path / "one.gif").stat().st_size


def test_equal_animations_are_equal_files(tmp_path):
    for name in ("a.gif", "b.gif"):
        write_gif(noise(3), tmp_path / name)
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()


def test_a_png_is_the_frame(tmp_path):
    write_png(noise(1)[0], tmp_path / "deep" / "a.png")
    np.testing.assert_array_equal(Image.open(tmp_path / "deep" / "a.png"), noise(1)[0])


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "no frames"),
        ([walk(1)[0], walk(1, height=21)[0]], r"frame of shape \(21, 30, 3\): must be \(20, 30, 3\)"),
        ([np.zeros((4, 4, 3))], r"frame of float64\[4, 4, 3\]: must be uint8\[height, width, 3\]"),
        ([np.zeros((4, 4), np.uint8)], "must be uint8"),
        ([np.zeros((0, 4, 3), np.uint8)], "must be uint8"),
    ],
)
def test_what_is_no_animation_is_refused(tmp_path, frames, message):
    with pytest.raises(ValueError, match=message):
        write_gif(frames, tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fps", [0, -1, 51, float("nan")])
def test_a_speed_that_viewers_cannot_show_is_refused(tmp_path, fps):
    with pytest.raises(ValueError, match="must be above 0 and at most 50"):
        write_gif(walk(), tmp_path / "a.gif", fps=fps)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    write_gif(walk(2), tmp_path / "a.gif")
    before = (tmp_path / "a.gif").read_bytes()

    def full(self, handle, *_, **__):
        handle.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(OSError, match="disk full"):
        write_gif(walk(3), tmp_path / "a.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]
    assert (tmp_path / "a.gif").read_bytes() == before


def test_frames_that_share_no_pixel_with_the_first_are_shown_whole(tmp_path):
    frames = [np.full((8, 8, 3), color, np.uint8) for color in FEW]
    write_gif(frames, tmp_path / "a.gif")
    np.testing.assert_array_equal(read(tmp_path / "a.gif")[0], frames)
