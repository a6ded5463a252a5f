"""The record: every answer that was paid for, every call that was made, and the texts behind integer handles.

One sqlite file in write-ahead mode.  An answer is committed before anyone sees it, so a killed process loses
none that arrived.  One process holds a record at a time; the lock is the operating system's and dies with the
process.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jaxcoop.planning.process import Status
from jaxcoop.planning.record_file import RecordError, answer_rows, explained, open_record
from jaxcoop.planning.request import Answer, Reply, Request, clean_text

_TEXT_CACHE = 200_000  # texts kept in memory

T = TypeVar("T")
_Row = tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """One row of the usage ledger: one attempt at one request.

    `outcome`: "ok", "malformed" (a reply came and was refused; it is kept in `detail`), or the kind of a
    client error ("rate_limit", "timeout", "server", ...).  `attempt` counts retries after errors and `reask`
    asks after malformed replies, both from 0.
    """

    key: str
    attempt: int
    reask: int
    outcome: str
    latency_s: float
    reply: Reply | None = None
    detail: str | None = None


class Record:
    """Answers, calls and texts of one run.  `path=None` keeps them in memory.  Safe to use from several
    threads.

    A write that fails (disk full) never raises: what was to be written stays in memory, is served from there
    and tried once more by `close`; `failure` says what happened, and the hub then stops asking.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._name = "the record in memory" if path is None else f"record {path}"
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._error: str | None = None
        self._closed = False
        self._unsaved: dict[str, tuple[Answer, _Row]] = {}
        self._unsaved_calls: list[_Row] = []
        self._unsaved_texts: dict[tuple[int, int], str] = {}
        self._texts: dict[tuple[int, int], str] = {}
        self._db = open_record(self.path, self._name)

    @property
    def unsaved(self) -> int:
        """Number of answers that are in memory only because they could not be written."""
        return len(self._unsaved)

    @property
    def failure(self) -> str | None:
        """None, or one line: why something could not be written, how many answers that concerns, and the fix.
        It stays once it is there.
        """
        if self._error is None:
            return None
        count = self.unsaved
        lost = f"; {count} answer{'s' * (count != 1)} could not be saved" if count else ""
        return f"{self._name} {self._error}{lost}; make room or check permissions, and run the same command again"

    # Answers --------------------------------------------------------------------------------------

    def answer(self, key: str) -> Answer | None:
        """The recorded answer, or None.  Raises `RecordError` if the file cannot be read."""
        with self._lock:
            if (kept := self._unsaved.get(key)) is not None:
                return kept[0]
            row = self._read(
                lambda: self._db.execute("SELECT reply, status FROM answers WHERE key = ?", (key,)).fetchone()
            )
        return None if row is None else Answer(Reply.from_json(row[0]), Status(row[1]))

    def put(self, key: str, request: Request, answer: Answer, call: Call | None) -> None:
        """Store an accepted answer and the call that brought it (None: an earlier one)."""
        if answer.reply is None:
            raise ValueError(f"only answers with a reply are recorded, not status {answer.status!r}")
        row = (key, request.as_json(), answer.reply.as_json(), int(answer.status))
        call_row = None if call is None else _call_row(call)

        def write() -> None:
            self._insert_answer(row)
            if call_row is not None:
                self._insert_call(call_row)

        with self._lock:
            error = self._transact(write)
            if error is None:
                return
            # The answer was paid for: a ledger row that cannot be written must not take it along.
            if (alone := self._transact(lambda: self._insert_answer(row))) is not None:
                self._unsaved[key] = (answer, row)
                self._failed(alone)
            if call_row is not None and not _is_value_problem(error):
                self._unsaved_calls.append(call_row)
                self._failed(error)

    def _insert_answer(self, row: _Row) -> None:
        self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)

    def retry_unsaved(self) -> int:
        """Try once more to write what could not be written; returns the answers that still could not."""
        with self._lock:
            for key, (_, row) in list(self._unsaved.items()):  # one by one: a little room saves a few
                if self._transact(lambda row=row: self._insert_answer(row)) is None:
                    del self._unsaved[key]
            texts = [(*place, text) for place, text in self._unsaved_texts.items()]
            if texts and self._transact(lambda: self._insert_texts(texts)) is None:
                self._unsaved_texts.clear()
            calls = self._unsaved_calls
            if calls and self._transact(lambda: [self._insert_call(row) for row in calls]) is None:
                self._unsaved_calls = []
            return self.unsaved

    def count_answers(self) -> int:
        """Number of recorded answers."""
        with self._lock:
            return self._read(lambda: self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def take_answers(self, path: str | Path) -> int:
        """Copy the answers of the record at `path`, for a replay; returns how many.  That record stays, and
        may lie where nothing can be written.

        Raises `RecordError` if it is not there, is this one, is in use or cannot be read, or if this one
        cannot be written.
        """
        if not Path(path).is_file():
            raise RecordError(f"record {path} does not exist; name a run folder or its record")
        if self.path is not None and self.path.exists() and self.path.samefile(path):
            raise RecordError(f"record {path} is the one this run writes; replay from another run, or without replay")
        rows = answer_rows(Path(path))
        insert = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)"
        with self._lock:
            if (err := self._transact(lambda: self._db.executemany(insert, rows))) is not None:
                self._failed(err)
                raise RecordError(self.failure)
        return len(rows)

    # Calls ----------------------------------------------------------------------------------------

    def put_call(self, call: Call) -> None:
        """Add one row to the usage ledger; one with a value no database takes is left out."""
        row = _call_row(call)
        with self._lock:
            err = self._transact(lambda: self._insert_call(row))
            if err is not None and not _is_value_problem(err):
                self._unsaved_calls.append(row)
                self._failed(err)

    def _insert_call(self, row: _Row) -> None:
        self._db.execute(f"INSERT INTO calls VALUES (NULL{', ?' * len(row)})", row)

    def malformed_replies(self, key: str) -> list[Reply]:
        """Replies to this request that were refused as malformed, oldest first, those of killed sessions
        included.
        """
        query = "SELECT detail FROM calls WHERE key = ? AND outcome = 'malformed' ORDER BY seq"
        with self._lock:
            rows = self._read(lambda: self._db.execute(query, (key,)).fetchall())
        return [Reply.from_json(row[0]) for row in rows]

    def query(self, sql: str, *arguments: Any) -> list[tuple]:
        """Rows of a read-only query, for tables and reports."""
        with self._lock:
            return self._read(lambda: self._db.execute(sql, arguments).fetchall())

    # Texts ----------------------------------------------------------------------------------------

    def put_text(self, episode: int, handle: int, text: str) -> None:
        """Store the text behind `handle` of `episode`; a later text of the same handle replaces it."""
        self.put_texts([(episode, handle, text)])

    def put_texts(self, rows: Iterable[tuple[int, int, str]]) -> None:
        """Store many (episode, handle, text) in one transaction."""
        rows = [(int(episode), int(handle), clean_text(text)) for episode, handle, text in rows]
        texts = {(episode, handle): text for episode, handle, text in rows}
        with self._lock:
            if (err := self._transact(lambda: self._insert_texts(rows))) is not None:
                self._unsaved_texts.update(texts)
                self._failed(err)
                return
            if len(self._texts) + len(rows) > _TEXT_CACHE:
                self._texts.clear()
            self._texts.update(texts)
            for place in self._unsaved_texts.keys() & texts.keys():
                del self._unsaved_texts[place]

    def _insert_texts(self, rows: list[tuple[int, int, str]]) -> None:
        self._db.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", rows)

    def text(self, episode: int, handle: int) -> str | None:
        """The text behind `handle` of `episode`, or None."""
        place = (int(episode), int(handle))
        with self._lock:
            for kept in (self._unsaved_texts, self._texts):
                if (text := kept.get(place)) is not None:
                    return text
            query = "SELECT text FROM texts WHERE episode = ? AND handle = ?"
            row = self._read(lambda: self._db.execute(query, place).fetchone())
            if row is None:
                return None
            self._texts[place] = row[0]
            return row[0]

    # Access ---------------------------------------------------------------------------------------

    def _read(self, fetch: Callable[[], T]) -> T:
        self._check_process()
        try:
            return fetch()
        except sqlite3.Error as err:
            raise explained(self._name, err) from None

    def _transact(self, insert: Callable[[], object]) -> Exception | None:
        """Run `insert` in one transaction, which ends here in any case; the error that undid it, or None."""
        try:
            self._check_process()
            self._db.execute("BEGIN IMMEDIATE")
            insert()
            self._db.execute("COMMIT")
        except BaseException as err:
            with contextlib.suppress(sqlite3.Error):  # sqlite may have rolled back by itself
                self._db.execute("ROLLBACK")
            if not isinstance(err, Exception):
                raise
            return err
        return None

    def _failed(self, err: Exception) -> None:
        what = "refuses a value" if _is_value_problem(err) else "cannot be written"
        self._error = self._error or f"{what} ({clean_text(str(err))})"

    def _check_process(self) -> None:
        """A forked child shares the file but not the lock, and would write over its parent."""
        if os.getpid() != self._process:
            raise RecordError(f"{self._name} belongs to process {self._process}; open one in this process")

    def close(self) -> None:
        """Write what is unsaved if that works now, close the file and give up the lock; may be called twice."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._closed:
                self.retry_unsaved()
            self._closed = True
            self._db.close()

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _call_row(call: Call) -> _Row:
    reply = call.reply or Reply("")
    detail = None if call.detail is None else clean_text(call.detail)
    usage = (reply.tokens_in, reply.tokens_out, reply.cost, int(reply.priced))
    return (call.key, call.attempt, call.reask, clean_text(call.outcome), *usage, call.latency_s, time.time(), detail)


def _is_value_problem(err: Exception) -> bool:
    """Whether sqlite minds what is written, rather than where."""
    if isinstance(err, sqlite3.IntegrityError | sqlite3.DataError | sqlite3.InterfaceError):
        return True
    return not isinstance(err, sqlite3.Error | OSError | MemoryError | RecordError)
