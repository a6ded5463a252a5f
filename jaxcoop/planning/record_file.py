"""The file of a record: made, checked, read where it cannot be written, and every refusal in one line."""

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path

_APPLICATION_ID = 0x6A786370  # "jxcp": tells a record from other sqlite files
_FORMAT = 1

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


class RecordError(RuntimeError):
    """A record cannot be opened or read; the message names the file, the reason and the fix."""


class RecordUnwritableError(RecordError):
    """The file, or its folder, cannot be written; it may still be readable."""


def open_record(path: Path | None, name: str) -> sqlite3.Connection:
    """A connection to the record at `path` (None: in memory), made if absent, locked for this process alone.

    `name` stands for it in messages.  Raises `RecordError`, `RecordUnwritableError` where reading may work.
    """
    if path is not None and not path.parent.is_dir():
        raise RecordError(f"{name}: folder {path.parent} does not exist; create it or name another file")
    if path is not None and path.is_dir():
        raise RecordError(f"{name} is a folder; name a file")
    db = None
    try:
        db = sqlite3.connect(
            ":memory:" if path is None else path, timeout=0.5, isolation_level=None, check_same_thread=False
        )
        # Exclusive locking before the first access: a second process fails at once instead of interleaving.
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("COMMIT")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            _check(db, name)
        else:
            _create(db)
        db.execute("PRAGMA synchronous=NORMAL")  # survives kill -9; a power cut may cost the last commits
    except (sqlite3.Error, RecordError) as err:
        if db is not None:
            db.close()
        raise explained(name, err) from None
    return db


def answer_rows(path: Path) -> list[tuple[str, str, str, int]]:
    """Rows (key, request, reply, status) of the record at `path`, also where nothing can be written.

    Raises `RecordError` if another live process has it, or if it cannot be read.
    """
    name, log = f"record {path}", Path(f"{path}-wal")
    try:
        with contextlib.suppress(RecordUnwritableError):
            return _answers(open_record(path, name), name)
        _check_unused(path, name)
        if not log.is_file() or log.stat().st_size == 0:
            db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
            return _answers(db, name, check=True)
        # A killed process left answers in the log, which only a writer can fold in: a copy is writable.
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, path.name)
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            return _answers(open_record(copy, name), name)
    except (sqlite3.OperationalError, OSError) as err:
        raise RecordError(f"{name} cannot be read ({err}); check permissions or name another run") from None


def _answers(db: sqlite3.Connection, name: str, *, check: bool = False) -> list[tuple[str, str, str, int]]:
    """All answers of an open record, which is closed afterwards."""
    with contextlib.closing(db):
        try:
            if check:
                _check(db, name)
            return db.execute("SELECT key, request, reply, status FROM answers").fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.Error as err:
            raise explained(name, err) from None


def _check_unused(path: Path, name: str) -> None:
    """Reading without a lock is safe only while nobody writes, perhaps through another mount."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as db:
            db.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as err:
        if _is_locked(err):
            raise explained(name, err) from None


def _create(db: sqlite3.Connection) -> None:
    # The header is part of the transaction: a process killed here leaves an empty file, not half a record.
    db.execute("PRAGMA journal_mode=WAL")
    db.executescript(f"BEGIN; PRAGMA application_id={_APPLICATION_ID}; PRAGMA user_version={_FORMAT};{_SCHEMA}COMMIT;")


def _check(db: sqlite3.Connection, name: str) -> None:
    if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise RecordError(f"{name} is a database of another program; name another file")
    if (version := db.execute("PRAGMA user_version").fetchone()[0]) != _FORMAT:
        raise RecordError(f"{name} has format {version}, this version reads {_FORMAT}; use the version of then")
    if (state := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise RecordError(f"{name} is corrupted ({state}); restore it from a copy or move it away")


def _is_locked(err: Exception) -> bool:
    return "locked" in str(err) or "busy" in str(err)


def explained(name: str, err: Exception) -> RecordError:
    """What sqlite says about a file, with the fix."""
    text = str(err)
    if isinstance(err, RecordError):
        return err
    if _is_locked(err):
        return RecordError(f"{name} is in use by another live process; wait for it or name another file")
    if "not a database" in text:
        return RecordError(f"{name} is not a jaxcoop record; name another file")
    if "malformed" in text or "corrupt" in text:
        return RecordError(f"{name} is corrupted ({text}); restore it from a copy or move it away")
    # A lock for writing is refused for a file that was opened for reading only.
    if "readonly" in text or "unable to open" in text or getattr(err, "sqlite_errorname", "") == "SQLITE_IOERR_LOCK":
        return RecordUnwritableError(f"{name} cannot be written ({text}); check permissions or name another file")
    return RecordError(f"{name}: {text}; move it away or name another file")
