"""`jaxcoop paper dpbench`: the plan, the dry run, the files, resuming, and the exact published episodes."""

import contextlib
import csv
import io
import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from jaxcoop.benchmarks.loopback import LoopbackServer
from jaxcoop.benchmarks.papers import dpbench, dpbench_matrix, dpbench_tables
from jaxcoop.cli import paper
from jaxcoop.cli.main import run

SMALL = ("--models", "random_any", "parity_ordering", "--conditions", "sim_n5_nocomm", "seq_n5_nocomm")


def jaxcoop(*arguments):
    """Exit status, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(["paper", "dpbench", *map(str, arguments)])
    return SimpleNamespace(status=status, out=out.getvalue(), err=err.getvalue())


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "dpbench"
    done = jaxcoop(*SMALL, "--episodes", 20, "--out", folder, "--with-published")
    assert done.status == 0, done.err
    return SimpleNamespace(folder=folder, out=done.out)


@pytest.fixture(scope="module")
def rows(played):
    found = json.loads((played.folder / "results.json").read_text())
    return {(row["model"], row["condition"]): row for row in found}


# What is reproduced exactly


def test_all_published_random_episodes_come_out_of_their_stream():
    assert dpbench.published_random_episodes() == ("published random episodes", 120, 120)


def test_another_stream_does_not_reproduce_the_published_random_episodes(monkeypatch):
    monkeypatch.setattr(dpbench, "STREAM_SEED", 43)
    assert dpbench.published_random_episodes().episodes == 0


def test_the_published_cells_without_variation_are_those_of_two_policies():
    found = dpbench.published_scripted_episodes()
    assert [(one.episodes, one.published) for one in found] == [(20, 20), (20, 20)]


# Who stands for whom


@pytest.mark.parametrize(
    ("player", "name"),
    [
        ("random_any", "random"),
        ("gemini/gemini-2.5-flash", "gemini-2.5-flash"),
        ("anthropic/claude-opus-4-5-20251101", "claude-opus-4.5"),
        ("bedrock/us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4.5"),
        ("groq/meta-llama/llama-4-maverick-17b-128e-instruct", "llama-4-maverick"),
        ("openai/gpt-5.2-2025-12-11", "gpt-5.2"),
        ("gemini/gemini-2.5-flash-lite", None),
        ("openai/gpt-5.2-pro", None),
        ("random_legal", None),
        ("parity_ordering", None),
    ],
)
def test_a_player_is_compared_with_the_published_model_of_its_name_only(player, name):
    assert dpbench.published_name(player) == name


# The plan


def codes(player, *conditions):
    plan = dpbench_matrix.make_plan([player], dpbench_matrix.chosen_conditions(conditions))
    return [planned.condition.code for planned in plan]


def test_policies_are_spared_conditions_that_only_change_what_is_said():
    assert codes("parity_ordering", "layer3") == [
        "non_terminal_deadlock",
        "randomized_backoff",
        "long_episodes",
    ]


def test_the_random_baseline_plays_the_condition_with_messages_that_was_published_for_it():
    assert "sim_n5_comm" in codes("random_any", "published")
    assert "sim_n5_comm" not in codes("random_legal", "published")


def test_a_condition_named_itself_is_played_by_every_player():
    assert codes("parity_ordering", "comm_rounds_3", "sim5nc") == ["sim_n5_nocomm", "comm_rounds_3"]


def test_every_published_cell_is_in_the_default_plan_of_its_model():
    all_codes = {condition.code for condition, _ in dpbench_matrix.chosen_conditions(())}
    assert {row["condition"] for row in dpbench.published_rows()} <= all_codes


def test_conditions_with_the_same_table_are_different_samples():
    seeds = {dpbench_matrix.condition_seed(0, code) for code in ("sim_n5_nocomm", "sim_n5_comm")}
    assert len(seeds) == 2


# The dry run


def test_a_dry_run_counts_calls_with_discussions_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = jaxcoop(
        "--dry-run", "--model", "openai/gpt-4o-mini", "--input-price", 1, "--output-price", 10,
        "--reply-tokens", 100, "--episodes", 10,
        "--conditions", "sim_n20_nocomm", "comm_rounds_3", "seq_n5_comm",
    )  # fmt: skip
    assert done.status == 0, done.err
    lines = {line.split()[0]: line.split() for line in done.out.splitlines() if line.strip()}
    # episodes x 30 timesteps x 20; x 5 x 3 asks; sequential: one call for each turn
    assert [lines[code][2] for code in ("sim_n20_nocomm", "comm_rounds_3", "seq_n5_comm")] == [
        "6,000",
        "4,500",
        "300",
    ]
    assert lines["total"][2] == "10,800"
    assert float(lines["sim_n20_nocomm"][5]) == 0.6  # million tokens of 6,000 replies of 100
    tokens_in, dollars = float(lines["sim_n20_nocomm"][4]), float(lines["sim_n20_nocomm"][6])
    assert dollars == pytest.approx(tokens_in * 1 + 0.6 * 10, abs=0.02)
    assert 250 < tokens_in * 1e6 / 6000 < 400  # published prompts of this kind have about 305 tokens
    assert max(map(len, done.out.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_expects_episodes_as_long_as_the_published_ones():
    done = jaxcoop("--dry-run", "--model", "gemini/gemini-2.5-flash", "--conditions", "sim_n5_nocomm")
    line = next(line for line in done.out.splitlines() if line.startswith("sim_n5_nocomm"))
    assert line.split()[2:4] == ["4,500", "1,005"]  # the published number of calls


def test_a_dry_run_says_when_a_price_is_unknown():
    done = jaxcoop("--dry-run", "--model", "hosted_vllm/own-model", "--conditions", "sim_n5_nocomm")
    assert done.status == 0
    assert " ".join(done.out.split()).count("price unknown") == 2  # at the model and in the total


def test_a_dry_run_of_policies_does_not_load_litellm():
    script = (
        "import sys; from jaxcoop.cli.main import run\n"
        "assert run(['paper', 'dpbench', '--dry-run']) == 0\n"
        "assert 'litellm' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no calls, no cost" in done.stdout


# Playing


def test_a_run_writes_rows_tables_figures_and_a_page(played):
    folder = played.folder
    assert len(list(csv.DictReader((folder / "results.csv").open()))) == 4
    assert "## All cells" in (folder / "results.md").read_text()
    assert (folder / "report.html").read_text().count("data:image/png") >= 4
    for name in ("figure2_models", "figureA3_sequential", "published/figure1_rounds"):
        for suffix in ("png", "pdf"):
            assert (folder / "figures" / f"{name}.{suffix}").stat().st_size > 5000
    for name in ("results.csv", "results.json", "results.md", "report.html", "figures"):
        assert str(folder / name) in played.out


def test_a_run_says_what_was_reproduced_exactly(played):
    assert "120 of 120 published random episodes reproduced exactly" in played.out


def test_the_printed_tables_fit_eighty_columns(played):
    lines = [line for line in played.out.splitlines() if str(played.folder) not in line]
    assert max(map(len, lines[3:])) <= 80


def test_published_values_stand_beside_own_ones(played):
    line = next(line for line in played.out.splitlines() if line.startswith("sim_n5_nocomm") and "deadlock %" in line)
    assert "13.3 [5.3, 29.7]" in line
    assert "random_any beside the published random" in played.out


def test_sequential_deadlocks_are_shown_as_reported_and_as_they_happened(played):
    line = next(line for line in played.out.splitlines() if line.startswith("random (published)"))
    assert line.split()[3:] == ["0.0", "[0.0,", "11.4]", "10.0", "[3.5,", "25.6]"]


def test_cells_whose_episodes_are_all_the_same_have_no_intervals(rows):
    fixed, sampled = rows["parity_ordering", "sim_n5_nocomm"], rows["random_any", "sim_n5_nocomm"]
    assert fixed["deterministic"] and not sampled["deterministic"]
    assert fixed["avg_throughput"] == pytest.approx(22 / 30)
    assert fixed["deadlock_ci_high"] is None and sampled["deadlock_ci_high"] is not None
    cells = dpbench_tables.n5_table([fixed])
    assert cells is not None and cells.rows == (("parity_ordering", "sim_n5_nocomm", "20", "0.0", "0.733"),)


def test_equal_values_are_no_standard_errors_apart_and_unequal_constants_are_not_equal(rows):
    fixed = dpbench_tables.shown_rows([rows["parity_ordering", "sim_n5_nocomm"]])[0]
    assert dpbench_tables.distances(fixed, fixed) == [0.0, 0.0, 0.0]
    assert dpbench_tables.distances(fixed, {**fixed, "throughput": 0.5})[1] == float("inf")


def test_the_distance_of_two_rates_is_in_pooled_standard_errors():
    own = {"true_deadlock_rate": 0.5, "episodes": 100, "throughput": 1.0, "fairness": 1.0}
    other = {**own, "true_deadlock_rate": 0.3}
    # pooled rate 0.4: (0.5 - 0.3) / sqrt(0.4 * 0.6 * (1/100 + 1/100))
    assert dpbench_tables.distances(own, other)[0] == pytest.approx(2.886751, abs=1e-6)


def test_the_rank_test_needs_two_models_that_are_not_random(rows):
    row = rows["parity_ordering", "sim_n5_nocomm"]
    made = dpbench_tables.mann_whitney_table([*rows.values(), {**row, "model": "another"}])
    assert made.rows[0][1:] == ("2, 1", "needs 2 models", "U=4, p=0.2207")


def test_the_rank_test_of_the_published_models_is_the_published_one():
    two = ("gemini-2.5-flash", "llama-4-maverick")
    made = dpbench_tables.mann_whitney_table([row for row in dpbench.published_rows() if row["model"] in two])
    assert made.rows[0][2] == made.rows[0][3] and made.rows[2][2] == made.rows[2][3]


# Stopping and resuming


def test_a_repeated_command_plays_only_what_is_missing_and_gives_the_same_results(played, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(played.folder, folder)
    shutil.rmtree(folder / "random_any" / "seq_n5_nocomm")
    before = (folder / "random_any" / "sim_n5_nocomm" / "manifest.json").read_bytes()
    done = jaxcoop(*SMALL, "--episodes", 20, "--out", folder)
    assert done.status == 0
    assert "nothing to do, its results are read back (3 cells)" in done.err
    assert (folder / "random_any" / "sim_n5_nocomm" / "manifest.json").read_bytes() == before
    assert (folder / "results.csv").read_bytes() == (played.folder / "results.csv").read_bytes()


def test_an_interrupted_command_says_how_to_go_on(tmp_path, monkeypatch):
    calls = []

    def interrupted_at_the_second(cell, **options):
        calls.append(cell)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run_cell(cell, **options)

    run_cell = paper.run_cell
    monkeypatch.setattr(paper, "run_cell", interrupted_at_the_second)
    done = jaxcoop(*SMALL, "--episodes", 20, "--out", tmp_path / "o")
    assert done.status == 130
    assert f"interrupted after 1 of 4 cells; continue with: jaxcoop paper dpbench {' '.join(SMALL)}" in done.err
    assert done.err.count("\n") == 1


def test_other_settings_in_the_same_folder_are_refused(played):
    done = jaxcoop(*SMALL, "--episodes", 21, "--out", played.folder)
    assert done.status == 1
    assert "episodes: 21 here, 20 there" in done.err and done.err.count("\n") == 1


# Language models


def test_a_language_model_is_played_talked_with_and_replayed(tmp_path):
    with LoopbackServer() as server:
        common = (
            "--model", "own/gemini-2.5-flash", "--client", "direct", "--api-base", server.url,
            "--conditions", "sim_n5_comm", "--episodes", 2,
        )  # fmt: skip
        first = jaxcoop(*common, "--out", tmp_path / "a")
        asked = server.requests
        again = jaxcoop(*common, "--out", tmp_path / "b", "--replay", tmp_path / "a")
        assert first.status == again.status == 0, first.err + again.err
        assert asked > 0 and server.requests == asked
    assert "Message-action consistency" in first.out
    table = first.out[first.out.index("Message-action") :]
    assert table.splitlines()[3].split()[-2:] == ["100.0", "70.6"]  # the server does what it says
    printed = [text[text.index("Five philosophers") : text.index(str(tmp_path))] for text in (first.out, again.out)]
    assert printed[0] == printed[1]


def test_a_model_that_cannot_be_asked_stops_the_command_with_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = jaxcoop("--model", "openai/gpt-4o-mini", "--conditions", "sim_n5_nocomm", "--episodes", 1, "--out", tmp_path)
    assert done.status == 1
    assert "OPENAI_API_KEY" in done.err and "continue with: jaxcoop paper dpbench" in done.err
    assert done.err.count("\n") == 1


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--models", "random_eny"], "did you mean the policy 'random_any'?"),
        (["--models", "nobody"], "neither a policy of dining"),
        (["--conditions", "sim_n5_nocom"], "did you mean 'sim_n5_nocomm'?"),
        (["--episodes", "0"], "episodes 0: must be from 1"),
        (["--episodes", "many"], "--episodes"),
        (["--seed", "-1"], "seed -1: must be from 0"),
        (["--reply-tokens", "-1", "--dry-run"], "must be 0 or more"),
        (["--models", "left_first", "--conditions", "memory_3", "--no-such-option"], "--no-such-option"),
    ],
)
def test_a_wrong_option_is_named_in_one_line(arguments, said, tmp_path):
    done = jaxcoop(*arguments, "--out", tmp_path / "o")
    assert done.status == 2
    assert said in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_a_folder_that_is_a_file_is_refused_before_anything_is_played(tmp_path):
    (tmp_path / "file").write_text("")
    done = jaxcoop(*SMALL, "--out", tmp_path / "file")
    assert done.status == 1
    assert "is a file; choose another --out" in done.err and done.out == ""


def test_an_unknown_paper_is_named_with_the_known_ones(capsys):
    assert run(["paper", "dbpench"]) == 2
    assert "did you mean 'dpbench'?" in capsys.readouterr().err
