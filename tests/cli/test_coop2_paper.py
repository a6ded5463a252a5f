"""`jaxcoop paper coop2`: the grid, the dry run, the files, resuming; and `--planner` of `jaxcoop run`."""

import contextlib
import csv
import io
from types import SimpleNamespace

import pytest

from jaxcoop.agents.minds.options import MindOptions
from jaxcoop.benchmarks.papers import coop2_estimate, coop2_matrix
from jaxcoop.benchmarks.papers.coop2_matrix import SIMULATED, Grid, make_plan
from jaxcoop.cli.main import run
from jaxcoop.runs.model import LanguageModel

SMALL = ("--worlds", "cube", "--teams", 3, "--structures", "individual", "--steps", 6, "--episodes", 2, "--log", 1)


def jaxcoop(*arguments):
    """Exit status, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*map(str, arguments)])
    return SimpleNamespace(status=status, out=out.getvalue(), err=err.getvalue())


def refused(*arguments):
    """The one line with which a command line is refused."""
    done = jaxcoop(*arguments)
    assert done.status == 2 and done.err.count("\n") == 1, done.err
    return done.err


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper") / "coop2"
    done = jaxcoop("paper", "coop2", *SMALL, "--models", "simulated-gpt-5.4", "--out", folder)
    assert done.status == 0, done.err
    return SimpleNamespace(folder=folder, out=done.out, err=done.err)


# The plan


def test_the_grid_has_36_cells_and_with_both_settings_of_repair_twice_as_many():
    plan = make_plan(Grid(), MindOptions(), LanguageModel())
    assert len(plan) == 36 and len({planned.folder for planned in plan}) == 36
    assert {(p.world, p.cell.env.max_steps) for p in plan} == {("cube", 50), ("macrafter", 200)}
    assert {(p.agents, p.cell.env.num_agents) for p in plan} == {(3, 3), (6, 6)}
    both = make_plan(Grid(repair="both"), MindOptions(), LanguageModel())
    assert len(both) == 72 and sum(planned.cell.talk.repair for planned in both) == 36


def test_simulated_models_differ_in_mistakes_and_call_times():
    plan = make_plan(Grid(worlds=("cube",), teams=(3,)), MindOptions(), LanguageModel())
    found = {planned.model: (planned.cell.agent, planned.cell.talk.latency) for planned in plan}
    assert len(set(found.values())) == 3 and all(latency == name for name, (_, latency) in found.items())
    assert all(planned.cell.model is None for planned in plan)


def test_models_that_would_share_a_folder_are_refused():
    grid = Grid(models=("openai/a", "openai-a"), worlds=("cube",), teams=(3,))
    with pytest.raises(ValueError, match="'openai/a' and 'openai-a' share the folder"):
        make_plan(grid, MindOptions(), LanguageModel())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--models", "simulated-gpt"), "unknown simulated model 'simulated-gpt'"),
        (("--worlds", "dining"), "unknown world 'dining'; allowed: cube, macrafter"),
        (("--structures", "ring"), "unknown structure 'ring'"),
        (("--structure", "centralized"), "name them with --structures"),
        (("--repair",), "choose with --compare on or --compare both"),
        (("--dry-run", "--reply-tokens", 0), "--reply-tokens 0: must be above 0"),
        (("--temperature", 0), "--temperature 0.0 is for language models, not for simulated models"),
        (("--teams", 0), "agents 0"),
        (("--episodes", 0), "episodes 0"),
    ],
)
def test_a_bad_option_of_the_grid_is_named_in_one_line(arguments, said):
    assert said in refused("paper", "coop2", *arguments)


# The dry run


@pytest.mark.parametrize(
    ("world", "structure", "calls"),
    [
        ("cube", "individual", 6),
        ("cube", "centralized", 12),
        ("macrafter", "centralized", 11),
        ("cube", "broadcast_chain", 11),
        ("macrafter", "broadcast_chain", 6),
    ],
)
def test_a_round_of_six_agents_makes_as_many_calls_as_the_structure_says(world, structure, calls):
    assert coop2_estimate.calls_of_round(world, structure, 6) == calls


def test_the_estimate_is_bounded_by_the_budget():
    def calls(seconds):
        grid = Grid(models=("openai/gpt-4o-mini",), worlds=("macrafter",), teams=(3,), structures=("individual",))
        (planned,) = make_plan(grid, MindOptions(budget_seconds=seconds), LanguageModel())
        return coop2_estimate.estimate(planned, coop2_estimate.Assumed()).calls

    assert calls(0) == 5 * 3 * 200 / 4
    assert calls(20) == 5 * 3 * 10


def test_a_dry_run_asks_and_writes_nothing(tmp_path):
    out = tmp_path / "o"
    done = jaxcoop("paper", "coop2", *SMALL, "--models", "openai/gpt-4o-mini", *SIMULATED, "--dry-run", "--out", out)
    assert done.status == 0 and not out.exists()
    assert "Dry run: 4 cells" in done.out and "3 cells are simulated" in done.out and "total" in done.out
    assert "unknown" not in done.out


# What is written


def test_tables_figures_and_page_are_written_and_say_that_models_are_simulated(played):
    with open(played.folder / "cube" / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["seed"] for row in rows] == ["0", "1"] and rows[0]["model"] == "simulated-gpt-5.4"
    for name in ("aggregate.csv", "table.md", "table.tex"):
        assert (played.folder / "cube" / name).stat().st_size > 0
    page = (played.folder / "report.html").read_text()
    for text in (played.out.replace("\n", " "), page):
        assert "no language model was asked" in text and "simulated models" in text
    figures = {path.stem for path in (played.folder / "figures").iterdir()}
    assert figures == {"cube_tradeoff", "cube_3_agents_trace", "cube_3_agents_trace_single", "cube_timeline"}


def test_a_repeated_command_reads_its_results_back(played):
    before = (played.folder / "cube" / "runs.csv").read_bytes()
    done = jaxcoop("paper", "coop2", *SMALL, "--models", "simulated-gpt-5.4", "--out", played.folder)
    assert done.status == 0 and "nothing to do, its results are read back" in done.err
    assert (played.folder / "cube" / "runs.csv").read_bytes() == before


# jaxcoop run --planner


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--planner", "scripted:wek"), "unknown level of mistakes 'wek'"),
        (("--planner", "gpt"), "--planner gpt: must be scripted, scripted:LEVEL, litellm:MODEL or direct:MODEL"),
        (("--planner", "litellm:"), "--planner litellm:: must be"),
        (("--planner", "direct:m"), "client 'direct' needs --api-base"),
        (("--planner", "scripted", "--agent", "greedy"), "--planner scripted and --agent greedy"),
        (("--planner", "scripted", "--model", "m"), "--planner scripted and --model m"),
        (("--planner", "scripted", "--team", 5, "--agents", 4), "--team 5 and --agents 4"),
        (("--planner", "scripted", "--team", 1, "--structure", "centralized"), "needs 2 or more"),
        (("--planner", "scripted", "--gif", 1), "not those of teams that think"),
        (("--planner", "scripted", "--latency", "recorded:nowhere"), "is not a run folder"),
        (("--agent", "greedy", "--structure", "centralized"), "--structure centralized is for teams that think"),
        (("--agent", "planz"), "unknown agent of cube 'planz'"),
    ],
)
def test_a_bad_option_of_a_team_is_named_in_one_line(arguments, said):
    done = jaxcoop("run", "cube", *arguments)
    assert done.status in (1, 2) and said in done.err and done.err.count("\n") == 1, done.err


def test_the_help_teaches_the_planner():
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        run(["run", "macrafter", "--help"])
    for text in ("--planner", "--structure", "--repair", "--budget-seconds", "--latency", "--team"):
        assert text in out.getvalue()


def test_teams_of_other_sizes_start_from_the_preset_of_three():
    plan = make_plan(Grid(worlds=("macrafter",), teams=(4,)), MindOptions(), LanguageModel())
    assert {planned.cell.env.num_agents for planned in plan} == {4}
    assert coop2_matrix.TEAMS == (3, 6)
