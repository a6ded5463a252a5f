"""Damage to a folder that is complete or was interrupted is noticed, and costs no more than what is damaged."""

import json

import numpy as np
import pytest

from jaxcoop.core import make
from jaxcoop.runs.cell import Cell, run_cell
from jaxcoop.runs.files import RunFolderError
from jaxcoop.runs.folder import RunFolder

COMMAND = "jaxcoop run null"
CELL = Cell(make("null"), "random_any", 6)
TRACED = Cell(make("null"), "random_any", 6, trace=("reward",))


def play(path, cell=CELL, **options):
    return run_cell(cell, command=COMMAND, out=path, chunk=2, **options)


@pytest.fixture
def complete(tmp_path):
    """A complete run and its row."""
    finished = play(tmp_path / "run")
    return finished.path, finished.row


@pytest.fixture
def nobody_plays(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("an episode was played")

    monkeypatch.setattr("jaxcoop.runs.evaluate.rollout", refuse)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_lost_summary_is_made_again_without_playing(complete, nobody_plays, content):
    path, row = complete
    (path / "summary.json").unlink()
    if content is not None:
        (path / "summary.json").write_bytes(content)
    again = play(path)
    assert again.row == row
    assert any("summary.json is damaged or missing" in note for note in again.notes)
    with RunFolder.read(path) as folder:
        assert folder.is_complete and folder.summary()["row"] == row
    assert play(path).notes == ["the run is complete: nothing to do, its results are read back"]


def test_a_process_that_dies_while_it_makes_the_summary_again_loses_nothing(complete, nobody_plays):
    path, row = complete
    (path / "summary.json").unlink()
    RunFolder.open(path, CELL.config(), command=COMMAND).close()
    assert json.loads((path / "manifest.json").read_bytes())["status"] == "running"
    assert play(path).row == row


def test_a_lost_summary_is_told_to_readers(complete):
    path, _ = complete
    (path / "summary.json").write_text("[]")
    with RunFolder.read(path) as folder:
        assert not folder.is_complete and len(folder.episodes()["episode"]) == 6
        with pytest.raises(RunFolderError, match=r"is not complete; continue with: jaxcoop run null$"):
            folder.summary()


def test_a_flipped_page_of_a_complete_run_is_noticed_and_played_again(complete):
    path, row = complete
    data = bytearray((path / "episodes.parquet").read_bytes())
    data[60] ^= 0xFF
    (path / "episodes.parquet").write_bytes(data)
    again = play(path)
    assert again.row == row
    assert "episodes.parquet is damaged or missing; its episodes are run again" in again.notes[0]


def test_a_run_whose_chunks_are_merged_takes_no_other(complete):
    path, _ = complete
    (path / "summary.json").unlink()
    with RunFolder.open(path, CELL.config(), command=COMMAND) as folder, pytest.raises(ValueError, match="merged"):
        folder.write_chunk(7, 6, 1, {"length": np.ones(1)})


@pytest.mark.parametrize("key", ["versions", "resumed", "command", "config", "status", "format"])
@pytest.mark.parametrize("value", [None, 7])
def test_a_manifest_without_one_of_its_entries_is_one_line(complete, key, value):
    path, _ = complete
    manifest = json.loads((path / "manifest.json").read_bytes())
    if value is None:
        del manifest[key]
    else:
        manifest[key] = value
    (path / "manifest.json").write_text(json.dumps(manifest))
    for use in (lambda: play(path), lambda: RunFolder.read(path)):
        with pytest.raises(
            RunFolderError, match=rf"manifest\.json .*{key if key != 'format' else ''}.*--force"
        ) as caught:
            use()
        assert key == "format" or key in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "status": "complete", "config": {"seed": NaN}}'])
def test_a_manifest_that_is_not_json_is_one_line(complete, text):
    path, _ = complete
    (path / "manifest.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"manifest\.json is damaged \(not JSON\); repeat with --force"):
        play(path)


def interrupted(path):
    """A traced run of which two of three chunks are there."""

    class StopsAfterTwo:
        count = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def advance(self, count):
            self.count += count
            if self.count == 4:
                raise KeyboardInterrupt

        def note(self, text):
            pass

    with pytest.raises(KeyboardInterrupt):
        play(path, TRACED, watch=lambda total, done: StopsAfterTwo())
    return path


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize("damage", [cut, lambda path: path.unlink(), lambda path: path.write_bytes(b"")])
def test_a_damaged_trace_part_runs_its_chunk_again(tmp_path, damage):
    path = interrupted(tmp_path / "run")
    before = RunFolder.read(path).trace(1)
    damage(path / "trace" / "part-000001.npz")
    finished = play(path, TRACED)
    assert any("trace/part-000001.npz is damaged or missing; its episodes are run again" in n for n in finished.notes)
    after = RunFolder.read(path).trace(1)
    assert after.keys() == before.keys()
    for name in before:
        np.testing.assert_array_equal(after[name], before[name])


def test_whole_traces_are_not_played_again(tmp_path):
    path = interrupted(tmp_path / "run")
    with RunFolder.open(path, TRACED.config(), command=COMMAND) as folder:
        assert folder.plan(6, 2) == [(2, 4, 2)]


def test_a_damaged_trace_of_a_complete_run_is_told(tmp_path):
    path = play(tmp_path / "run", TRACED).path
    cut(path / "trace" / "part-000002.npz")
    assert "trace/part-000002.npz is damaged; --force plays the run anew, traces included" in play(path, TRACED).notes


def test_a_folder_name_with_a_null_character_is_one_line():
    with pytest.raises(RunFolderError, match=r"^'.*a\\x00b' cannot be a run folder: .*; choose another --out$"):
        RunFolder.open("a\0b", {}, command="x")
