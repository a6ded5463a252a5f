"""The command line: what is refused is refused in one plain line, before anything is made or set aside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxcoop.benchmarks.loopback import LoopbackServer
from jaxcoop.cli.main import run

JAXCOOP = Path(sys.executable).parent / "jaxcoop"
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu"}


def refused(capfd, arguments, status=2):
    """The line that refuses a command."""
    assert run([str(a) for a in arguments]) == status
    error = capfd.readouterr().err
    assert error.count("\n") == 1 and error.startswith("jaxcoop: ")
    return error.removeprefix("jaxcoop: ").removesuffix("\n")


PLAIN = [
    ("run dining --episodes x", "--episodes: 'x' is not a whole number or None (see jaxcoop run dining --help)"),
    ("run dining --seed 1.5", "--seed: not a whole number: '1.5' (see jaxcoop run dining --help)"),
    ("run dining --temperature hot", "--temperature: not a number: 'hot' (see jaxcoop run dining --help)"),
    ("run dining --input-price x", "--input-price: 'x' is not a number or None (see jaxcoop run dining --help)"),
    ("run dining --mode x", "--mode 'x': allowed: 'simultaneous', 'sequential' (see jaxcoop run dining --help)"),
    ("run dining --out", "--out needs a value (see jaxcoop run dining --help)"),
    ("run dining --philosophers 1", "philosophers 1: must be from 2 to 1,000,000 (see jaxcoop run dining --help)"),
    ("run dining --bogus", "Unrecognized options: --bogus (see jaxcoop run dining --help)"),
    (
        "run dining --episode 5",
        "Unrecognized options: --episode, 5; did you mean --episodes? (see jaxcoop run dining --help)",
    ),
    ("bench throughput --batches a b", "--batches: cannot read 'a', 'b' (see jaxcoop bench throughput --help)"),
    ("paper dpbench --seed y", "--seed: not a whole number: 'y' (see jaxcoop paper dpbench --help)"),
]


@pytest.mark.parametrize(("command", "line"), PLAIN)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("columns", ["20", "80", "300"])
def test_a_wrong_option_is_the_same_line_on_every_terminal(capfd, monkeypatch, command, line, encoding, columns):
    monkeypatch.setenv("COLUMNS", columns)
    before = sys.stdout.encoding
    sys.stdout.reconfigure(encoding=encoding)
    try:
        assert refused(capfd, command.split()) == line
    finally:
        sys.stdout.reconfigure(encoding=before)
    assert os.environ["COLUMNS"] == columns


LANGUAGE_OPTIONS = [
    ("--communication", "--communication"),
    ("--memory-window 3", "--memory-window 3"),
    ("--prompt minimal", "--prompt minimal"),
    ("--temperature 0", "--temperature 0.0"),
    ("--replay X", "--replay X"),
    ("--limit 1", "--limit 1"),
    ("--front-end lanes", "--front-end lanes"),
    ("--preset sim_n5_comm --no-communication", "--no-communication"),
    ("--agent left_first --max-tokens 10", "--max-tokens 10"),
]


@pytest.mark.parametrize(("options", "named"), LANGUAGE_OPTIONS)
def test_an_option_of_language_models_is_refused_when_a_policy_plays(tmp_path, capfd, options, named):
    line = refused(capfd, ["run", "dining", "--episodes", 2, "--out", tmp_path / "run", *options.split()])
    player = "left_first" if "--agent" in options else "random_any"
    assert line.startswith(f"{named} is for language models, not for {player}; name a model with --model NAME")
    assert not (tmp_path / "run").exists()


def test_a_preset_with_communication_is_for_policies_too(tmp_path):
    assert run(["run", "dining", "--preset", "sim_n5_comm", "--episodes", "2", "--out", str(tmp_path / "run")]) == 0


def test_a_paper_played_by_policies_refuses_options_of_language_models(tmp_path, capfd):
    command = ["paper", "dpbench", "--models", "random_any", "--out", tmp_path / "out"]
    assert "--reasks 2 is for language models, not for policies" in refused(capfd, [*command, "--reasks", 2])
    assert "--reply-tokens nan: must be 0 or more" in refused(capfd, [*command, "--reply-tokens", "nan", "--dry-run"])
    assert "--reply-tokens 9 is for --dry-run only" in refused(capfd, [*command, "--reply-tokens", 9])
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """A good run whose folder a later command names with --force."""
    out = tmp_path_factory.mktemp("earlier") / "run"
    assert run(["run", "dining", "--episodes", "2", "--out", str(out)]) == 0
    return out


POLICY_FAULTS = [
    "--trace nope",
    "--trace turn.obs.x",
    "--trace __class__",
    "--trace env",
    "--chunk 0",
    "--episodes 0",
    "--agent nobody",
    "--preset nothing",
    "--limit 3",
]
LANGUAGE_FAULTS = [
    "--limit 0",
    "--attempts 0",
    "--reasks -1",
    "--max-tokens 0",
    "--temperature -1",
    "--decision {nobody}",
    "--api-key-env NO_SUCH_KEY_VARIABLE",
    "--replay /no/such/record",
    "--chunk 0",
    "--trace actions",
]


@pytest.mark.parametrize("faults", POLICY_FAULTS)
def test_force_sets_nothing_aside_for_a_policy_that_cannot_play(earlier, capfd, faults):
    refused(capfd, ["run", "dining", "--out", earlier, "--force", *faults.split()])
    assert [path.name for path in earlier.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("faults", LANGUAGE_FAULTS)
def test_force_sets_nothing_aside_for_a_model_that_cannot_be_asked(earlier, tmp_path, capfd, monkeypatch, faults):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    with LoopbackServer() as server:
        model = ["run", "dining", "--model", "openai/scripted", "--api-base", server.url, *faults.split()]
        assert run([*model, "--out", str(earlier), "--force"]) in (1, 2)
        assert run([*model, "--out", str(tmp_path / "new")]) in (1, 2)
        assert server.requests == 0
    assert capfd.readouterr().err.count("\n") == 2
    assert [path.name for path in earlier.parent.iterdir()] == ["run"] and not (tmp_path / "new").exists()


def test_force_does_not_set_the_run_aside_that_is_to_be_replayed(earlier, capfd, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    line = refused(capfd, ["run", "dining", "--model", "openai/x", "--out", earlier, "--force", "--replay", earlier])
    assert "--force sets that run aside" in line
    assert [path.name for path in earlier.parent.iterdir()] == ["run"]


def test_the_allowed_trace_fields_are_named(tmp_path, capfd):
    line = refused(capfd, ["run", "dining", "--trace", "nxt.tabel", "--out", tmp_path / "run"])
    assert "turn.obs.meals" in line and line.endswith("did you mean 'nxt.table'?")


def test_a_record_that_is_gone_from_a_complete_run_is_told(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    with LoopbackServer() as server:
        command = ["run", "dining", "--model", "openai/scripted", "--api-base", server.url, "--episodes", "2"]
        command += ["--max-timesteps", "1", "--out", str(tmp_path / "run")]
        assert run(command) == 0
        assert "llm.sqlite" not in capfd.readouterr().err
        for file in (tmp_path / "run").glob("llm.sqlite*"):
            file.unlink()
        assert run(command) == 0
    assert "llm.sqlite is gone: the results stand, but cannot be replayed" in capfd.readouterr().err


def test_an_environment_without_presets_says_so(capfd):
    line = "--preset x: null has no presets; leave --preset out"
    assert refused(capfd, ["run", "null", "--preset", "x"]) == line
    assert refused(capfd, ["bench", "throughput", "--env", "null", "--preset", "x"]) == line


def test_a_folder_with_a_null_character_is_one_plain_line(capfd):
    assert r"a\x00b' cannot be a run folder" in refused(capfd, ["run", "null", "--out", "a\0b"], status=1)
    paper = ["paper", "dpbench", "--models", "random_any", "--out", "a\0b"]
    assert r"'a\x00b' cannot be a folder" in refused(capfd, paper, status=1)


BENCH_FAULTS = [
    ("throughput --batches 0", "--batches 0: must be above 0"),
    ("throughput --batches", "--batches: names nothing"),
    ("throughput --repeats 0", "--repeats 0: must be above 0"),
    ("throughput --run-s inf", "--run-s inf: must be above 0, and finite"),
    ("throughput --run-s nan", "--run-s nan: must be above 0"),
    ("throughput --teams 5 1", "dining: no team of 1 agents"),
    ("throughput --json /proc/none/x", "--json /proc/none/x: cannot be written"),
    ("throughput --json /", "--json /: is not a file"),
    ("callback --episodes", "--episodes: names nothing"),
    ("callback --episodes 4 0", "--episodes 0: must be above 0"),
    ("callback --latency-ms -1", "latency_ms -1: must be from 0 to 60,000"),
    ("callback --latency-ms nan", "latency_ms nan: must be from 0 to 60,000"),
    ("callback --json /proc/none/x", "--json /proc/none/x: cannot be written"),
]


@pytest.mark.parametrize(("command", "says"), BENCH_FAULTS)
def test_a_measurement_that_cannot_end_does_not_begin(capfd, monkeypatch, command, says):
    def refuse(*args, **options):
        raise AssertionError("measured")

    for name in ("throughput.throughput", "throughput.scaling", "callback.front_ends", "callback.clients"):
        monkeypatch.setattr(f"jaxcoop.benchmarks.{name}", refuse)
    assert says in refused(capfd, ["bench", *command.split()])


def test_what_was_measured_is_kept_when_the_next_measurement_fails(tmp_path, capfd, monkeypatch):
    def fail(*args, **options):
        raise MemoryError

    monkeypatch.setattr("jaxcoop.benchmarks.throughput.scaling", fail)
    kept = tmp_path / "a" / "kept.json"
    options = ["--env", "null", "--batches", "2", "--teams", "5", "--repeats", "1", "--run-s", "0.001"]
    assert run(["bench", "throughput", *options, "--json", str(kept)]) == 1
    assert '"steps_per_s"' in kept.read_text()
    assert "steps/s" in capfd.readouterr().out


def in_shell(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_one_line(unbuffered):
    done = in_shell(f"PYTHONUNBUFFERED={unbuffered} {JAXCOOP} list dining > /dev/full")
    assert (done.returncode, done.stderr) == (1, "jaxcoop: cannot write the output: no space left on device\n")


def test_closed_standard_streams_lead_nowhere(tmp_path):
    done = in_shell(f"{JAXCOOP} run null --episodes 2 --out {tmp_path}/run <&- >&- 2>&-")
    assert done.returncode == 0 and (tmp_path / "run" / "summary.json").exists()
    assert in_shell(f"{JAXCOOP} list >&-").stderr == ""


def test_a_reader_that_has_enough_is_no_error():
    done = in_shell(f"set -o pipefail; {JAXCOOP} list dining | head -n 1")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("dining")


def test_characters_that_the_output_cannot_show_are_no_error(tmp_path):
    done = in_shell(f"PYTHONIOENCODING=ascii {JAXCOOP} run null --episodes 2 --out '{tmp_path}/Läufe'")
    assert done.returncode == 0 and f"run folder: {tmp_path}/L" in done.stdout


def test_nothing_heavy_is_loaded_before_ctrl_c_is_answered():
    code = "import sys, jaxcoop.cli.main\nprint({'jax', 'numpy', 'tyro', 'rich'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.0, 0.15, 0.4])
def test_an_interruption_while_libraries_load_is_one_line(tmp_path, number, delay):
    """The command waits at its first import until the signal is on its way."""
    code = f"""
import sys
from jaxcoop.cli import main
dispatch = main._dispatch
def announced(arguments):
    print("ready", flush=True)
    return dispatch(arguments)
main._dispatch = announced
sys.argv = ["jaxcoop", "run", "null", "--episodes", "100000000", "--out", {str(tmp_path / "run")!r}]
main.main()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(delay)
        child.send_signal(number)
        _, error = child.communicate(timeout=120)
    finally:
        child.kill()
    assert child.returncode == 130
    assert error.startswith("jaxcoop: interrupted") and error.count("\n") == 1
