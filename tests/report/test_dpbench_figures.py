"""Figures: what is drawn from which cells, what is left out, and that no text overlaps."""

import itertools

import pytest

from jaxcoop.benchmarks.papers.dpbench import published_rows
from jaxcoop.envs.dining.presets import CONDITIONS
from jaxcoop.report import style
from jaxcoop.report.dpbench_cells import ablated_model, study_rows
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


def assert_legible(figure):
    """No text overlaps another or leaves the figure."""
    style.as_png(figure, 100)
    renderer = figure.canvas.get_renderer()
    boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in texts(figure)]
    for (a, box), (b, other) in itertools.combinations(boxes, 2):
        assert not box.padded(-1).overlaps(other.padded(-1)), (a, b)
    for a, box in boxes:
        assert figure.bbox.padded(1).contains(box.x0, box.y0), a
        assert figure.bbox.padded(1).contains(box.x1, box.y1), a


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_another_or_leaves_the_figure(name):
    assert_legible(FIGURES[name](CELLS))


@pytest.mark.parametrize("count", [2, 3, 5, 8, 11])
def test_the_labels_of_many_models_stay_apart_when_all_of_them_fail(count):
    names = [f"{LONG}-{number} (published)" for number in range(count)]
    cells = [cell(name, 20, philosophers=n) for name in names for n in (5, 10)]
    assert_legible(ablations_figure(cells))
    prompts = [cell(names[0], 20, prompt=prompt) for prompt in PROMPTS]
    rounds = [cell(names[0], 20, communication_rounds=k) for k in (1, 3, 5)]
    figure = ablations_figure([*cells, *prompts, *rounds])
    assert_legible(figure)
    assert figure.get_figwidth() <= 9.5


def test_many_group_sizes_stay_as_wide_as_a_page():
    numbers = (3, 5, 7, 10, 15, 20)
    cells = [cell(f"m{number}", 20, philosophers=n) for number in range(8) for n in numbers]
    figure = ablations_figure(cells, group_sizes=numbers)
    assert_legible(figure)
    assert figure.get_figwidth() <= 9.5


def test_more_models_than_a_page_is_wide_are_shown_in_two_panels_and_all_of_them():
    cells = [cell(f"m{number}", 10, philosophers=n) for number in range(11) for n in (5, 10)]
    figure = ablations_figure(cells)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a  Group size", "b  Group size (continued)"]
    shown = {t.get_text() for t in texts(figure)}
    assert {f"m{number}" for number in range(11)} <= shown


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
    for name in ("prompt theory of mind", "1 round;", "5 rounds", "group sizes"):
        assert name in text
    assert "minimal" not in text
    assert "no data" not in small_print(ablations_figure([c for c in CELLS if c["model"] == LONG]))


def test_figure_1_compares_no_round_with_three():
    figure = rounds_figure(CELLS)
    assert [height for height, _ in bars(figure.axes[1])] == [0.9, 0.4]


@pytest.mark.parametrize("rounds", [0, 3])
def test_one_number_of_rounds_alone_gives_no_figure_1(rounds):
    assert rounds_figure([cell("m", 18, communication_rounds=rounds)]) is None


def test_a_figure_of_one_panel_has_no_letters():
    figure = ablations_figure([cell("m", 10), cell("m", 2, prompt="minimal")])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Prompt"]
    assert small_print(figure).startswith("Model: m.")


# Which rows are cells of the figures

OTHERS = {"temperature_0.3", "temperature_1.0", "temperature_1.5", "non_terminal_deadlock", "randomized_backoff",
          "long_episodes"}  # fmt: skip


def test_the_figures_take_every_condition_that_they_can_tell_from_the_others_and_no_further_one():
    rows = [{"model": "m", "episodes": 20, **condition.labels} for condition in CONDITIONS.values()]
    assert {row["condition"] for row in study_rows(rows)} == CONDITIONS.keys() - OTHERS


def test_every_published_cell_is_one_of_the_figures():
    assert len(study_rows(published_rows())) == 36


def test_the_names_of_the_first_release_are_understood():
    assert len(study_rows([cell("m", 1, condition="sim5nc")])) == 1


@pytest.mark.parametrize(
    "change",
    [
        *({"condition": code} for code in sorted(OTHERS)),
        {"condition": "paper_rules"},
        {"condition": "sim_n5_nocomm", "max_timesteps": 100},
        {"max_timesteps": 50},
        {"deadlock_terminal": False},
    ],
)
def test_a_cell_of_another_condition_is_never_taken_for_the_base_cell(change):
    other = cell("m", 20, **change)
    figure = memory_figure([other, cell("m", 5, condition="sim_n5_nocomm"), cell("m", 10, memory_window=3)])
    assert figure.axes[0].lines[0].get_ydata()[0] == 0.25  # the dashed baseline
    assert models_figure([other]) is None
    assert (
        sequential_figure([{**other, "mode": "sequential", "episode_timesteps": [5], "episode_deadlock": [0]}]) is None
    )


def test_the_model_with_most_ablations_is_shown_whatever_sizes_others_played():
    sizes = [cell("policy", 1, philosophers=n) for n in (3, 5, 7, 10, 15, 20)]
    assert ablated_model([*sizes, cell("llm", 18), cell("llm", 2, communication_rounds=3)]) == "llm"


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


def test_a_single_episode_among_thousands_still_shows_how_it_ended():
    row = cell("m", 0, mode="sequential", episode_timesteps=[5] + [30] * 9999, episode_deadlock=[False] * 10_000)
    figure = sequential_figure([row])
    heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in figure.axes[0].patches[:2]}
    assert heights == {5: pytest.approx(200, abs=1), 30: 9999}
    assert {"1", "9,999"} <= {t.get_text() for t in figure.axes[0].texts}


@pytest.mark.parametrize(
    ("name", "letters", "lines"),
    [
        ("grok-4.1 (published)", 18, "grok-4.1\n(published)"),
        ("llama-4-maverick", 11, "llama-4-\nmaverick"),
        ("chandy_misra_low", 11, "chandy_\nmisra_low"),
        ("left_first", 11, "left_first"),
        ("onewordwithoutanybreak", 8, "onewordw\nithoutan\nybreak"),
    ],
)
def test_a_name_is_broken_where_it_has_a_joint_or_else_where_the_line_ends(name, letters, lines):
    assert style.wrapped(name, letters) == lines


def test_figures_of_an_earlier_call_are_removed_and_files_of_others_stay(tmp_path):
    write_figures(CELLS, tmp_path, action_shares=SHARES, formats=("png",))
    (tmp_path / "figure1_rounds-edited.png").write_bytes(b"mine")
    (tmp_path / "figureA1_memory.txt").write_bytes(b"mine")
    written = write_figures([cell("m", 3)], tmp_path, formats=("png",))
    assert list(written) == ["figure2_models"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "figure1_rounds-edited.png", "figure2_models.png", "figureA1_memory.txt",
    ]  # fmt: skip


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
