"""The record: what arrived stays, one process at a time, clear words for files that are not records."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from jaxcoop.planning import Answer, Message, Record, RecordError, Reply, Request, Status
from jaxcoop.planning.record import Call
from jaxcoop.planning.usage import usage_of

REQUEST = Request((Message("user", "a"),))
REPLY = Reply("b", 3, 4, 0.5, "stop", None)


def call(key="k", outcome="ok", **options):
    return Call(key, options.pop("attempt", 0), options.pop("reask", 0), outcome, 0.1, **options)


def put(record, key="k", text="b"):
    record.put(key, REQUEST, Answer(Reply(text), Status.OK), call(key))


def test_an_answer_outlives_the_file_handle(tmp_path):
    with Record(tmp_path / "r") as record:
        record.put("k", REQUEST, Answer(REPLY, Status.MALFORMED), call(reply=REPLY))
    with Record(tmp_path / "r") as record:
        assert record.answer("k") == Answer(REPLY, Status.MALFORMED)
        assert record.answer("other") is None


def test_texts_are_found_by_episode_and_handle(tmp_path):
    with Record(tmp_path / "r") as record:
        record.put_text(1, 7, "hello")
        record.put_texts([(2, 7, "there"), (2, 8, "again")])
    with Record(tmp_path / "r") as record:
        assert [record.text(1, 7), record.text(2, 7), record.text(2, 8), record.text(1, 8)] == [
            "hello",
            "there",
            "again",
            None,
        ]


def test_the_ledger_adds_up_the_calls_of_all_sessions(tmp_path):
    for _ in range(2):
        with Record(tmp_path / "r") as record:
            record.put_call(call(outcome="rate_limit"))
            record.put_call(call(outcome="server", attempt=1))
            record.put_call(call(outcome="malformed", attempt=2, reply=REPLY))
            record.put_call(call(reask=1, reply=REPLY))
    with Record(tmp_path / "r") as record:
        usage = usage_of(record)
    assert (usage.calls, usage.retried, usage.rate_limited, usage.errors) == (8, 4, 2, 2)
    assert (usage.malformed, usage.reasked) == (2, 2)
    assert (usage.tokens_in, usage.tokens_out, usage.cost) == (12, 16, 2.0)
    assert usage.latency_p50_s == pytest.approx(0.1)


def test_a_second_opener_is_told_that_the_record_is_in_use(tmp_path):
    with Record(tmp_path / "r"), pytest.raises(RecordError, match="in use by another live process"):
        Record(tmp_path / "r")


def test_a_killed_process_leaves_its_answers_and_no_lock(tmp_path):
    script = (
        "import sys, time; from tests.planning.test_record import *\n"
        "record = Record(sys.argv[1]); put(record); print('up', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path / "r"],
        stdout=subprocess.PIPE,
        cwd=os.path.join(os.path.dirname(__file__), "..", ".."),
    )
    assert child.stdout.readline() == b"up\n"
    with pytest.raises(RecordError, match="in use by another live process"):
        Record(tmp_path / "r")
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with Record(tmp_path / "r") as record:
        assert record.answer("k") == Answer(Reply("b"), Status.OK)


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "r").write_text("some notes of mine, long enough to have a header " * 40)
    with pytest.raises(RecordError, match="is not a jaxcoop record"):
        Record(tmp_path / "r")


def test_a_database_of_another_program_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "r") as db:
        db.execute("CREATE TABLE addresses(name)")
    db.close()
    with pytest.raises(RecordError, match="another program"):
        Record(tmp_path / "r")


def test_a_record_of_another_format_is_refused(tmp_path):
    Record(tmp_path / "r").close()
    with sqlite3.connect(tmp_path / "r") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(RecordError, match="format 99"):
        Record(tmp_path / "r")


def test_a_corrupted_record_is_refused(tmp_path):
    with Record(tmp_path / "r") as record:
        for i in range(400):
            put(record, f"key{i}", "x" * 200)
    data = bytearray((tmp_path / "r").read_bytes())
    data[4096 * 6 : 4096 * 12] = b"\xff" * (4096 * 6)
    (tmp_path / "r").write_bytes(data)
    with pytest.raises(RecordError, match="corrupted"):
        Record(tmp_path / "r")


@pytest.mark.parametrize(("name", "message"), [("", "is a folder"), ("no/such/r", "does not exist")])
def test_places_that_cannot_hold_a_record_are_named(tmp_path, name, message):
    with pytest.raises(RecordError, match=message):
        Record(tmp_path / name)


def test_on_a_full_disk_the_reply_is_kept_in_memory_and_the_reason_is_given(tmp_path):
    with Record(tmp_path / "r") as record:
        pages = record.query("PRAGMA page_count")[0][0]
        record.query(f"PRAGMA max_page_count={pages}")
        put(record, "k", "x" * 100_000)
        record.put_text(0, 1, "y" * 100_000)
        assert "disk is full" in record.failure and "make room" in record.failure
        assert record.answer("k").reply.text == "x" * 100_000
        assert record.text(0, 1) == "y" * 100_000
    with Record(tmp_path / "r") as record:
        assert record.answer("k") is None


def test_a_hub_whose_record_is_full_answers_once_more_and_then_stops(make_hub):
    record = Record()
    record.query(f"PRAGMA max_page_count={record.query('PRAGMA page_count')[0][0]}")
    hub = make_hub(lambda _: "x" * 100_000, record)
    answer = hub.submit([REQUEST]).result(10)[0]
    assert (answer.reply.text, answer.status) == ("x" * 100_000, Status.OK)
    assert "disk is full" in hub.unusable
    other = hub.submit([Request((Message("user", "other"),))]).result(10)[0]
    assert other.status == Status.FALLBACK


def test_half_a_surrogate_pair_in_a_reply_can_be_stored(tmp_path):
    with Record(tmp_path / "r") as record:
        reply = Reply("left \ud800 right", reasoning="\udfff")
        record.put("k", Request((Message("user", "q"),)), Answer(reply, Status.OK), None)
        record.put_text(0, 0, reply.text)
        assert record.text(0, 0) == "left ? right" == record.answer("k").reply.text


def test_half_a_surrogate_pair_in_an_error_text_costs_neither_its_row_nor_later_answers():
    record = Record()
    record.put_call(call(outcome="server", detail="bad \ud800 gateway"))
    put(record)
    assert (record.failure, record.unsaved, record.count_answers()) == (None, 0, 1)
    assert record.query("SELECT detail FROM calls WHERE outcome = 'server'") == [("bad ? gateway",)]


def test_a_ledger_row_that_cannot_be_stored_does_not_take_the_answer_along(tmp_path):
    with Record(tmp_path / "r") as record:
        record.put("k", REQUEST, Answer(REPLY, Status.OK), call(attempt=10**30))
        record.put_call(call(attempt=10**30))
        put(record, "later")
        assert (record.failure, record.unsaved) == (None, 0)
    with Record(tmp_path / "r") as record:
        assert record.answer("k") == Answer(REPLY, Status.OK)
        assert record.count_answers() == 2


def test_a_text_that_cannot_be_stored_is_served_from_memory_and_not_called_a_full_disk():
    record = Record()
    record.put_text(10**30, 0, "x")
    put(record)
    assert record.text(10**30, 0) == "x"
    assert "refuses a value" in record.failure and record.count_answers() == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_write_leaves_no_open_transaction(error):
    def rows():
        yield (0, 0, "x")

    record = Record()

    class Interrupting:
        def __init__(self, db):
            self.db = db

        def executemany(self, *_):
            raise error

        def __getattr__(self, name):
            return getattr(self.db, name)

    record._db, db = Interrupting(record._db), record._db
    with pytest.raises(error):
        record.put_texts(rows())
    record._db = db
    put(record)
    assert (record.failure, record.count_answers()) == (None, 1)


NAN = float("nan")


@pytest.mark.parametrize(
    ("given", "kept"),
    [(7, 7), (10**30, 2**53), (1e300, 2**53), (-1, 0), (NAN, 0), (float("inf"), 0), ("12", 0), (None, 0), (True, 0)],
)
def test_token_counts_are_whole_numbers_from_0_to_2_to_the_53(given, kept):
    record, reply = Record(), Reply("b", given, given)
    record.put("k", REQUEST, Answer(reply, Status.OK), call(reply=reply))
    assert (reply.tokens_in, reply.tokens_out, record.failure) == (kept, kept, None)
    assert usage_of(record).tokens_in == kept


@pytest.mark.parametrize("cost", [-0.5, NAN, float("inf"), "free", None])
def test_a_cost_that_is_no_number_from_0_up_counts_as_unknown(cost):
    reply = Reply("b", cost=cost)
    assert (reply.cost, reply.priced) == (0.0, False)


def test_the_ledger_adds_up_more_tokens_than_an_integer_of_the_database_holds():
    record = Record()
    for _ in range(1030):
        record.put_call(call(reply=Reply("b", 2**53)))
    assert usage_of(record).tokens_in == 1030 * 2**53


def test_answers_that_could_not_be_saved_are_counted_and_saved_at_close_if_there_is_room_by_then(tmp_path):
    with Record(tmp_path / "r") as record:
        record.query(f"PRAGMA max_page_count={record.query('PRAGMA page_count')[0][0]}")
        put(record, "k", "x" * 100_000)
        assert (record.unsaved, record.retry_unsaved()) == (1, 1)
        assert "; 1 answer could not be saved; make room" in record.failure
        put(record, "l", "x" * 100_000)
        record.put_text(0, 1, "y" * 100_000)
        assert "; 2 answers could not be saved" in record.failure
        record.query("PRAGMA max_page_count=1000000")
    with Record(tmp_path / "r") as record:
        assert record.answer("k").reply.text == record.answer("l").reply.text == "x" * 100_000
        assert record.text(0, 1) == "y" * 100_000
        assert record.query("SELECT key FROM calls") == [("k",), ("l",)]


def test_a_forked_process_neither_reads_nor_writes_nor_closes_the_record(monkeypatch):
    record = Record()
    put(record)
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 1)
        with pytest.raises(RecordError, match="belongs to process"):
            record.answer("k")
        put(record, "other")
        record.close()
    assert record.unsaved == 1
    assert record.count_answers() == 1


@contextlib.contextmanager
def without_write_access(folder):
    """Files of `folder` as on a read-only mount, for root too."""
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    if as_root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if as_root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def shared():
    """A folder that another user can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_answers_can_be_taken_from_a_record_that_cannot_be_written(shared):
    with Record(shared / "old # 1?") as old:
        put(old)
    before = (shared / "old # 1?").read_bytes()
    with Record() as new, without_write_access(shared):
        assert new.take_answers(shared / "old # 1?") == 1
        assert new.answer("k").reply.text == "b"
    assert [path.name for path in shared.iterdir()] == ["old # 1?"]
    assert (shared / "old # 1?").read_bytes() == before


def test_answers_a_killed_process_left_in_the_log_can_be_taken_from_a_record_that_cannot_be_written(shared, tmp_path):
    with Record(tmp_path / "r") as old:
        put(old)
        for name in ("r", "r-wal"):
            shutil.copyfile(tmp_path / name, shared / name)
    assert (shared / "r-wal").stat().st_size > 0
    with Record() as new, without_write_access(shared):
        assert new.take_answers(shared / "r") == 1
        assert new.answer("k").reply.text == "b"


@pytest.mark.parametrize("can_write", [True, False])
def test_no_answers_are_taken_from_a_record_in_use(shared, can_write):
    guard = contextlib.nullcontext() if can_write else without_write_access(shared)
    with Record(shared / "r") as old, Record() as new:
        put(old)
        with guard, pytest.raises(RecordError, match=r"r is in use by another live process"):
            new.take_answers(shared / "r")


def test_another_file_that_cannot_be_written_is_still_refused_as_no_record(shared):
    (shared / "r").write_text("some notes of mine, long enough to have a header " * 40)
    with Record() as new, without_write_access(shared), pytest.raises(RecordError, match="is not a jaxcoop record"):
        new.take_answers(shared / "r")


def test_no_answers_are_taken_from_the_record_itself(tmp_path):
    with Record(tmp_path / "r") as record:
        (tmp_path / "link").symlink_to(tmp_path / "r")
        for name in ("r", "link"):
            with pytest.raises(RecordError, match="is the one this run writes"):
                record.take_answers(tmp_path / name)


def test_answers_of_another_record_can_be_taken_for_a_replay(tmp_path):
    with Record(tmp_path / "old") as old:
        old.put("k", Request((Message("user", "q"),)), Answer(Reply("yes"), Status.OK), None)
    with Record(tmp_path / "new") as new:
        assert new.take_answers(tmp_path / "old") == 1
        assert new.answer("k").reply.text == "yes"
        with pytest.raises(RecordError, match="does not exist"):
            new.take_answers(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
