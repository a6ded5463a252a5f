"""The record: every answer that was paid for, every call that was made, and the texts behind integer handles.

One sqlite file in write-ahead mode.  An answer is committed before anyone sees it, so a killed process loses
none that arrived.  One process holds a record at a time; the lock is the operating system's and dies with the
process.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from jaxcoop.planning.process import Status
from jaxcoop.planning.request import Answer, Reply, Request

_APPLICATION_ID = 0x6A786370  # "jxcp": tells a record from other sqlite files
_FORMAT = 1
_TEXT_CACHE = 200_000  # texts kept in memory

_SCHEMA = """
CREATE TABLE answers(key TEXT PRIMARY KEY, request TEXT NOT NULL, reply TEXT NOT NULL,
  status INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE calls(seq INTEGER PRIMARY KEY, key TEXT NOT NULL, attempt INTEGER NOT NULL,
  reask INTEGER NOT NULL, outcome TEXT NOT NULL, tokens_in INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL, cost REAL NOT NULL,
  priced INTEGER NOT NULL, latency_s REAL NOT NULL, time REAL NOT NULL, detail TEXT);
CREATE INDEX malformed_calls ON calls(key) WHERE outcome = 'malformed';
CREATE TABLE texts(episode INTEGER NOT NULL, handle INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(episode, handle)) WITHOUT ROWID;
"""

T = TypeVar("T")


class RecordError(RuntimeError):
    """A record cannot be opened or read; the message names the file, the reason and the fix."""


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

    A write that fails (disk full) never raises: what was to be written stays in memory and is served from
    there, and `failure` says what happened; the hub then stops asking.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.failure: str | None = None
        self._name = "the record in memory" if path is None else f"record {path}"
        self._lock = threading.RLock()
        self._unsaved: dict[str, Answer] = {}
        self._texts: dict[tuple[int, int], str] = {}
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        if self.path is not None and not self.path.parent.is_dir():
            raise RecordError(f"{self._name}: folder {self.path.parent} does not exist; create it or name another file")
        if self.path is not None and self.path.is_dir():
            raise RecordError(f"{self._name} is a folder; name a file")
        db = None
        try:
            db = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=0.5,
                isolation_level=None,
                check_same_thread=False,
            )
            # Exclusive locking before the first access: a second process fails at once instead of
            # interleaving.
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("BEGIN EXCLUSIVE")
            db.execute("COMMIT")
            self._check_or_create(db)
        except (sqlite3.Error, RecordError) as err:
            if db is not None:
                db.close()
            raise self._explained(err) from None
        return db

    def _check_or_create(self, db: sqlite3.Connection) -> None:
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables == 0:
            # The header is part of the transaction: a process killed here leaves an empty file, not half a
            # record.
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(
                f"BEGIN; PRAGMA application_id={_APPLICATION_ID}; PRAGMA user_version={_FORMAT};{_SCHEMA}COMMIT;"
            )
        elif db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise RecordError(f"{self._name} is a database of another program; name another file")
        elif (version := db.execute("PRAGMA user_version").fetchone()[0]) != _FORMAT:
            raise RecordError(
                f"{self._name} has format {version}, this version reads {_FORMAT}; use the version of then"
            )
        elif (state := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise RecordError(f"{self._name} is corrupted ({state}); restore it from a copy or move it away")
        db.execute("PRAGMA synchronous=NORMAL")  # survives kill -9; a power cut may cost the last commits

    def _explained(self, err: Exception) -> RecordError:
        text = str(err)
        if isinstance(err, RecordError):
            return err
        if "locked" in text or "busy" in text:
            return RecordError(f"{self._name} is in use by another live process; wait for it or name another file")
        if "not a database" in text:
            return RecordError(f"{self._name} is not a jaxcoop record; name another file")
        if "malformed" in text or "corrupt" in text:
            return RecordError(f"{self._name} is corrupted ({text}); restore it from a copy or move it away")
        if "readonly" in text or "unable to open" in text:
            return RecordError(f"{self._name} cannot be written ({text}); check permissions or name another file")
        return RecordError(f"{self._name}: {text}; move it away or name another file")

    # Answers --------------------------------------------------------------------------------------

    def answer(self, key: str) -> Answer | None:
        """The recorded answer, or None.  Raises `RecordError` if the file cannot be read."""
        with self._lock:
            if (kept := self._unsaved.get(key)) is not None:
                return kept
            row = self._read(
                lambda: self._db.execute("SELECT reply, status FROM answers WHERE key = ?", (key,)).fetchone()
            )
        return None if row is None else Answer(Reply.from_json(row[0]), Status(row[1]))

    def put(self, key: str, request: Request, answer: Answer, call: Call | None) -> None:
        """Store an accepted answer and the call that brought it (None: an earlier one), as one unit."""
        if answer.reply is None:
            raise ValueError(f"only answers with a reply are recorded, not status {answer.status!r}")
        row = (key, request.as_json(), answer.reply.as_json(), int(answer.status))

        def write() -> None:
            if call is not None:
                self._insert_call(call)
            self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", row)

        with self._lock:
            if not self._write(write):
                self._unsaved[key] = answer

    def count_answers(self) -> int:
        """Number of recorded answers."""
        with self._lock:
            return self._read(lambda: self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def take_answers(self, path: str | Path) -> int:
        """Copy the answers of the record at `path`, for a replay; returns how many.  That record stays.

        Raises `RecordError` if it is not there or cannot be read, or if this one cannot be written.
        """
        if not Path(path).is_file():
            raise RecordError(f"record {path} does not exist; name a run folder or its record")
        with Record(path) as other:
            rows = other.query("SELECT * FROM answers")
        with self._lock:
            if not self._write(lambda: self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)):
                raise RecordError(self.failure or "the record cannot be written")
        return len(rows)

    # Calls ----------------------------------------------------------------------------------------

    def put_call(self, call: Call) -> None:
        """Add one row to the usage ledger."""
        with self._lock:
            self._write(lambda: self._insert_call(call))

    def _insert_call(self, call: Call) -> None:
        reply = call.reply or Reply("")
        row = (
            call.key,
            call.attempt,
            call.reask,
            call.outcome,
            reply.tokens_in,
            reply.tokens_out,
            reply.cost,
        )
        row += (int(reply.priced), call.latency_s, time.time(), call.detail)
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
        rows = [(int(episode), int(handle), text) for episode, handle, text in rows]
        with self._lock:
            saved = self._write(lambda: self._db.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", rows))
            if saved and len(self._texts) + len(rows) > _TEXT_CACHE:
                self._texts.clear()
            self._texts.update({(episode, handle): text for episode, handle, text in rows})

    def text(self, episode: int, handle: int) -> str | None:
        """The text behind `handle` of `episode`, or None."""
        place = (int(episode), int(handle))
        with self._lock:
            if (text := self._texts.get(place)) is not None:
                return text
            query = "SELECT text FROM texts WHERE episode = ? AND handle = ?"
            row = self._read(lambda: self._db.execute(query, place).fetchone())
            if row is None:
                return None
            self._texts[place] = row[0]
            return row[0]

    # Access ---------------------------------------------------------------------------------------

    def _read(self, fetch: Callable[[], T]) -> T:
        try:
            return fetch()
        except sqlite3.Error as err:
            raise self._explained(err) from None

    def _write(self, insert: Callable[[], object]) -> bool:
        """Run `insert` in one transaction; False if it, or an earlier write, failed."""
        if self.failure is not None:
            return False
        try:
            self._db.execute("BEGIN IMMEDIATE")
            insert()
            self._db.execute("COMMIT")
        except (sqlite3.Error, OSError) as err:
            with contextlib.suppress(sqlite3.Error):  # sqlite may have rolled back by itself
                self._db.execute("ROLLBACK")
            self.failure = f"{self._name} cannot be written ({err}); make room and run the same command again"
            return False
        return True

    def close(self) -> None:
        """Close the file and give up the lock; may be called twice."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
