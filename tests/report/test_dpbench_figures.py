"""Figures: what is drawn from which cells, what is left out, and that no text overlaps."""

import itertools

import pytest

from jaxcoop.report import style
from jaxcoop.report.dpbench_figures import (
    ablations_figure,
    memory_figure,
    models_figure,
    rounds_figure,
    write_figures,
)
from jaxcoop.report.dpbench_sequential import outcomes, sequential_figure


def cell(model, count, episodes=20, **change):
    base = {
        "mode": "simultaneous",
        "philosophers": 5,
        "communication_rounds": 0,
        "memory_window": 0,
        "prompt": "default",
    }
    return {"model": model, "episodes": episodes, "deadlock_count": count, **base, **change}


LONG = "provider/model-with-a-long-name-2.5"
PROMPTS = ("minimal", "theory_of_mind", "symmetry_breaking", "resource_ordering")
CELLS = [
    cell(LONG, 18),
    *(cell(LONG, i, prompt=prompt) for i, prompt in enumerate(PROMPTS)),
    *(cell(LONG, 20 - 4 * k, communication_rounds=k) for k in (1, 3, 5)),
    cell(LONG, 2, philosophers=10),
    cell(LONG, 17, memory_window=3),
    cell(LONG, 18, memory_window=5),
    cell(LONG, 16, memory_window=3, communication_rounds=1),
    cell(LONG, 0, mode="sequential", true_deadlock_count=12, episode_timesteps=[5] * 12 + [30] * 8,
         episode_deadlock=[False] * 20),
    cell("random", 3, 1_000_000),
    cell("random", 0, 1_000_000, philosophers=10),
    cell("random", 0, mode="sequential", episode_timesteps=[30] * 20, episode_deadlock=[False] * 20),
    cell("other", 5),
    cell("other", 12, mode="sequential", episode_timesteps=[5] * 12 + [30] * 8,
         episode_deadlock=[True] * 12 + [False] * 8),
]  # fmt: skip
SHARES = [
    {"model": model, "action": action, "share": share}
    for model in (LONG, "other")
    for action, share in zip(("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"), (0.4, 0.3, 0.27, 0.03))
]
FIGURES = {
    "rounds": lambda rows: rounds_figure(rows),
    "models": lambda rows: models_figure(rows),
    "ablations": lambda rows: ablations_figure(rows),
    "memory": lambda rows: memory_figure(rows),
    "sequential": lambda rows: sequential_figure(rows, SHARES if rows else ()),
}


def texts(figure):
    from matplotlib.text import Text

    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]


def small_print(figure):
    return " ".join(figure.get_supxlabel().split())


def bars(axes):
    return [(patch.get_height(), patch.get_facecolor()) for patch in axes.patches]


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_another_or_leaves_the_figure(name):
    figure = FIGURES[name](CELLS)
    style.as_png(figure, 100)
    renderer = figure.canvas.get_renderer()
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts(figure)]
    for (a, box), (b, other) in itertools.combinations(boxes, 2):
        assert not box.padded(-1).overlaps(other.padded(-1)), (a, b)
    for a, box in boxes:
        assert figure.bbox.padded(1).contains(box.x0, box.y0), a
        assert figure.bbox.padded(1).contains(box.x1, box.y1), a


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_to_plot_gives_no_figure(name):
    assert FIGURES[name]([]) is None


def test_bars_have_the_heights_and_colours_of_their_rates():
    from matplotlib.colors import to_rgba

    figure = ablations_figure([cell("m", 10), cell("m", 2, prompt="minimal"), cell("m", 5, prompt="theory_of_mind")])
    assert bars(figure.axes[0]) == [
        (0.1, to_rgba(style.GREEN)),
        (0.5, to_rgba(style.RED)),
        (0.25, to_rgba(style.BLUE)),
    ]


def test_missing_cells_are_named_in_the_small_print():
    figure = ablations_figure([cell("m", 10), cell("m", 2, prompt="minimal"), cell("m", 1, communication_rounds=3)])
    text = small_print(figure)
    for name in ("prompt theory of mind", "1 rounds", "5 rounds", "group sizes"):
        assert name in text
    assert "minimal" not in text
    assert "no data" not in small_print(ablations_figure([c for c in CELLS if c["model"] == LONG]))


def test_figure_1_compares_no_round_with_three():
    figure = rounds_figure(CELLS)
    assert [height for height, _ in bars(figure.axes[1])] == [0.9, 0.4]


def test_the_model_figure_has_a_row_per_model_and_marks_missing_ones():
    figure = models_figure([cell("a", 18), cell("b", 2), cell("b", 0, mode="sequential")])
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["b", "a"]
    assert "a (sequential)" in small_print(figure)
    assert "no data" in [t.get_text() for t in figure.axes[1].texts]


def test_unreported_circular_waits_are_marked_beside_the_reported_rate():
    assert "Open diamonds" in small_print(models_figure(CELLS))
    assert "Open diamonds" not in small_print(models_figure([c for c in CELLS if c["model"] == "other"]))


def test_a_model_without_memory_cells_has_no_memory_figure():
    assert memory_figure([cell("m", 3)]) is None


def test_episodes_are_counted_by_end_and_outcome():
    row = {
        "episode_timesteps": [5, 5, 30, 30],
        "episode_deadlock": [True, False, False, True],
        "max_timesteps": 30,
    }
    assert outcomes(row) == {5: {0: 1, 1: 1}, 30: {2: 1, 0: 1}}
    assert outcomes({**row, "episode_circular_wait": [True, True, True, True]})[30] == {1: 1, 0: 1}


def test_figures_are_written_as_pdf_and_png_and_repeat_bit_for_bit(tmp_path):
    first = write_figures(CELLS, tmp_path / "a", action_shares=SHARES)
    assert list(first) == [
        "figure1_rounds", "figure2_models", "figure3_ablations", "figureA1_memory", "figureA3_sequential",
    ]  # fmt: skip
    for paths in first.values():
        assert [p.suffix for p in paths] == [".pdf", ".png"]
        assert paths[0].read_bytes().startswith(b"%PDF") and paths[1].read_bytes().startswith(b"\x89PNG")
    repeated = style.save(memory_figure(CELLS), tmp_path / "b", "figureA1_memory")
    assert [p.read_bytes() for p in repeated] == [p.read_bytes() for p in first["figureA1_memory"]]


def test_drawing_leaves_the_settings_of_the_user_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    models_figure(CELLS)
    assert dict(matplotlib.rcParams) == before
