"""The run folder: everything a run produced, readable at any moment, resumed by repeating the command.

    manifest.json            configuration, digest, seed, versions, machine, command, status
    episodes/part-*.parquet  one row per episode, one file per finished chunk (while the run goes on)
    events/part-*.parquet    one row per event of the chunk of that number, where events are kept
    trace/part-*.npz         arrays of the chunk of that number, where traces are kept
    episodes.parquet, events.parquet, summary.json    the whole run, once it is complete

Kill -9 at any moment costs at most the chunk in flight. The order of writes makes it so: a chunk's events and
trace come before its episodes, whose part file is the mark that the chunk is finished; the merged tables and
the summary come before the status `complete`; the parts go last.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from jaxcoop.runs import files, parts
from jaxcoop.runs import manifest as manifests
from jaxcoop.runs.files import RunFolderError, atomic_write, reason

_TABLES = ("episodes", "events")
_SUMMARY = "summary.json"
_SUBFOLDERS = (*_TABLES, "trace")


class RunFolder:
    """One run on disk.  `open` makes or resumes it, `read` only looks; use as a context manager.

    Leaving the context without `complete` marks the run as interrupted and frees the lock.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], lock: files.FolderLock | None, *, writable: bool) -> None:
        self.path = path
        self.manifest = manifest
        self.notes: list[str] = []  # what the user should be told about the opening, one line each
        self.resumed = False  # whether an earlier session left its manifest here
        self.earlier: Path | None = None  # where `force` put an earlier run
        self._lock = lock
        self._writable = writable
        self._parts: dict[int, tuple[int, int]] = {}  # chunk number -> (first episode, number of episodes)
        self._ranges: parts.Ranges = []  # the same once the parts are merged, and gone

    # Opening

    @classmethod
    def open(cls, path: Path | str, config: Mapping[str, Any], *, command: str, force: bool = False) -> Self:
        """Make a new run folder at `path`, or resume the one that is there.

        `config` is what decides the results, as JSON data (NumPy numbers allowed).  `force` begins anew and
        keeps an earlier run under `<name>.old-N`.  Raises RunFolderError, one line, for a path that is a
        file, cannot be written, holds other files, belongs to a living process or to another configuration.
        """
        path, config = Path(os.path.abspath(path)), manifests.plain(config)
        files.make_folder(path, mark=manifests.MANIFEST_NAME)
        try:
            lock = files.FolderLock.acquire(path)
        except OSError as error:
            raise RunFolderError(f"cannot write in {path}: {reason(error)}; choose another --out") from error
        try:
            if force and (path / manifests.MANIFEST_NAME).exists():
                kept = files.set_folder_aside(path)
                if lock:
                    lock.release()
                folder = cls.open(path, config, command=command)
                folder.earlier = kept
                folder.notes.insert(0, f"the earlier run is kept as {kept}")
                return folder
            earlier = manifests.read_manifest(path)
            if earlier is not None:
                manifests.check_same(path, config, earlier["config"])
            folder = cls(path, earlier or manifests.new_manifest(config, command), lock, writable=True)
            folder.resumed = earlier is not None
            if lock is None:
                folder.notes.append("this file system cannot lock; do not run two processes in this folder")
            folder._begin(command)
            return folder
        except BaseException:
            if lock:
                lock.release()
            raise

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Look at a run without locking or changing it, also while another process works on it.

        Raises RunFolderError when `path` holds no run.
        """
        path = Path(os.path.abspath(path))
        manifest = manifests.read_manifest(path) if path.is_dir() else None
        if manifest is None:
            raise RunFolderError(f"{path} is not a run folder; name one that `jaxcoop run --out` made")
        folder = cls(path, manifest, None, writable=False)
        folder._scan()
        return folder

    def _begin(self, command: str) -> None:
        with self._writing(self.path):
            for folder in (self.path, *(self.path / name for name in _SUBFOLDERS)):
                if folder.is_dir():
                    files.remove_temporaries(folder)
        self._scan()
        if self.is_complete:
            self.notes.append("the run is complete: nothing to do, its results are read back")
            self._remove_parts()
            return
        if self.resumed:
            session = {"time": manifests.now(), "command": command, "versions": manifests.versions()}
            self.manifest["resumed"].append(session)
            self.notes += manifests.version_notes(self.manifest["versions"], session["versions"])
            finished = self.finished()
            self.notes.append(f"resumed: {sum(n for _, n in finished)} episodes are finished (chunks: {len(finished)})")
        self.manifest["command"] = command
        self._set_status("running")

    def _scan(self) -> None:
        """Find what is finished; set damaged tables aside so that their chunks are run again."""
        paths = sorted((self.path / "episodes").glob("part-*.parquet"))
        # A run whose summary was lost and is being made again has its merged tables only.
        if self.is_complete or (not paths and self._merged("episodes").exists()):
            self._scan_merged()
            if self._ranges:
                return
        for path in paths:
            number = path.stem.removeprefix("part-")
            if not number.isdecimal():
                continue
            events, trace = self._part("events", int(number)), self._part("trace", int(number), "npz")
            try:
                (chunk,) = parts.read_ranges(path, events)
                is_traced = trace.exists() or self.manifest["config"].get("trace")
                if is_traced and not files.is_whole_archive(trace):
                    raise parts.DamagedTableError(trace, "not a whole archive")
            except parts.DamagedTableError as error:
                self._set_damaged_aside(error.path, path, events, trace)
            except ValueError:  # not one range
                self._set_damaged_aside(path, path, events, trace)
            else:
                self._parts[int(number)] = chunk

    def _scan_merged(self) -> None:
        """Look at the tables of a whole run, page by page if they are to be relied on, and at its summary."""
        tables = [self._merged(kind) for kind in _TABLES]
        try:
            ranges = parts.read_ranges(*tables)
            for path in filter(Path.exists, tables if self._writable else []):
                parts.check_pages(path)
        except parts.DamagedTableError as error:
            self._set_damaged_aside(error.path, *tables)
            self.manifest["status"] = "interrupted"
            return
        self._ranges = ranges
        if not files.holds_json_object(self.path / _SUMMARY):
            self.notes.append(f"{_SUMMARY} is damaged or missing; it is made again from the episodes")
            self.manifest["status"] = "interrupted"
        for trace in sorted((self.path / "trace").glob("part-*.npz")):
            if not files.is_whole_archive(trace):
                self.notes.append(f"trace/{trace.name} is damaged; --force plays the run anew, traces included")

    def _set_damaged_aside(self, damaged: Path, *tables: Path) -> None:
        """Take the tables of a chunk (or of the whole run) out of the way; one of them is damaged."""
        name = damaged.relative_to(self.path)
        self.notes.append(f"{name} is damaged or missing; its episodes are run again")
        for path in tables:
            if self._writable and path.exists():
                with self._writing(path):
                    path.replace(path.with_name(path.name + ".damaged"))

    # State

    @property
    def status(self) -> str:
        """`running`, `interrupted` or `complete`; a killed process leaves `running` behind."""
        return self.manifest["status"]

    @property
    def is_complete(self) -> bool:
        """Whether the merged tables and the summary are there."""
        return self.status == "complete"

    @property
    def resume_hint(self) -> str:
        """How to go on with this run, for the last line a stopped command prints."""
        return f"continue with: {self.manifest['command']}"

    def finished(self) -> list[tuple[int, int]]:
        """(first episode, number of episodes) of every finished chunk, in order of the first."""
        return sorted(self._ranges or self._parts.values())

    def plan(self, episodes: int, size: int) -> list[tuple[int, int, int]]:
        """The chunks still to run for `episodes` episodes: (chunk number, first, count), count <= `size`.

        Finished ranges are left out and used chunk numbers are not given again, so `size` may differ between
        the sessions of one run.
        """
        if size < 1:
            raise ValueError(f"chunk size is {size}; it must be at least 1")
        gaps, position = [], 0
        for first, count in [*self.finished(), (episodes, 0)]:
            end = min(first, episodes)
            gaps += [(start, min(size, end - start)) for start in range(position, end, size)]
            position = max(position, first + count)
        free = (number for number in range(len(gaps) + len(self._parts)) if number not in self._parts)
        return [(number, first, count) for number, (first, count) in zip(free, gaps)]

    # Reading

    def episodes(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns [E] or [E, K] of all finished episodes, in order ({} if none); `names` chooses some."""
        return self._read("episodes", names)

    def events(self, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Columns of all events of finished chunks, in the order of the chunks.  {} when none was kept."""
        return self._read("events", names)

    def _read(self, kind: str, names: Sequence[str] | None) -> dict[str, np.ndarray]:
        merged = self._merged(kind)
        paths = [path for path in [merged] if path.exists()] if self._ranges else self._part_paths(kind)
        with self._damage_handled():
            return parts.read_columns(paths, names)

    def trace(self, index: int) -> dict[str, np.ndarray]:
        """The arrays that `write_trace` stored for chunk `index`."""
        path = self._part("trace", index, "npz")
        try:
            return files.read_arrays(path)
        except (OSError, ValueError) as error:
            raise RunFolderError(f"cannot read {path}: {error}; was the run made with traces?") from error

    def summary(self) -> dict[str, Any]:
        """What `complete` was given.  Raises RunFolderError while the run is not complete."""
        if not self.is_complete:
            raise RunFolderError(f"{self.path} is not complete; {self.resume_hint}")
        return json.loads((self.path / _SUMMARY).read_bytes())

    # Writing

    def write_trace(self, index: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Store arrays of chunk `index` (any shapes).  To be called before `write_chunk` of that chunk."""
        path = self._part("trace", index, "npz")
        with self._writing(path):
            path.parent.mkdir(exist_ok=True)
            files.write_arrays(path, arrays)

    def write_chunk(
        self,
        index: int,
        first: int,
        count: int,
        columns: Mapping[str, np.ndarray],
        events: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Store chunk `index`: episodes `first` to `first + count - 1`, one row each, and its events.

        Columns are [count] or [count, K]; a column `episode` with the episode numbers is added.  Event
        columns have any common length.  Once this returns, the chunk survives anything.  Raises ValueError
        for columns that do not fit or a range or number already used, RunFolderError when the disk refuses.
        """
        if self._ranges:
            raise ValueError("the chunks of this run are merged, it takes no other; `plan` gives what is missing")
        if index in self._parts:
            raise ValueError(
                f"chunk {index} is already written (episodes {self._parts[index]}); `plan` gives free ones"
            )
        for other in self._parts.values():
            if first < other[0] + other[1] and other[0] < first + count:
                raise ValueError(f"episodes {first} to {first + count - 1} overlap the finished chunk {other}")
        numbers = np.arange(first, first + count, dtype=np.int64)
        if not np.array_equal(columns.get("episode", numbers), numbers):
            raise ValueError(f"column 'episode' must count from {first}, {count} rows; leave it out to have it added")
        ranges = [(int(first), int(count))]
        rows = None if events is None else len(next(iter(events.values()), ()))
        table = parts.to_table({"episode": numbers, **columns}, count, ranges, rows)
        self._check_schema("episodes", table)
        if events is not None and rows is not None:
            event_table = parts.to_table(events, rows, ranges)
            self._check_schema("events", event_table)
            self._write_part("events", index, event_table)
        self._write_part("episodes", index, table)
        self._parts[index] = ranges[0]

    def complete(self, summary: Mapping[str, Any]) -> None:
        """Merge the chunks into one table, write `summary` (NaN becomes null) and mark the run complete.

        Does nothing on a run that is complete.  Raises ValueError when no chunk was written, RunFolderError
        when the disk refuses; the run can then be completed later.
        """
        if self.is_complete:
            return
        ranges = self.finished()
        if not ranges:
            raise ValueError("the run has no finished chunk; write one before `complete`")
        text = json.dumps(manifests.plain(summary, "summary", nan_as_none=True), indent=2) + "\n"
        for kind in [] if self._ranges else _TABLES:
            if paths := self._part_paths(kind):
                with self._damage_handled(), self._writing(self._merged(kind)):
                    parts.merge(paths, self._merged(kind), ranges)
        with self._writing(self.path / _SUMMARY):
            atomic_write(self.path / _SUMMARY, text)
        self._set_status("complete")
        self._ranges = ranges
        self._remove_parts()

    def interrupted(self) -> None:
        """Record that the run was stopped before its end; it can be resumed."""
        if not self.is_complete:
            self._set_status("interrupted")

    def close(self) -> None:
        """Free the folder for other processes."""
        if self._lock:
            self._lock.release()
        self._writable = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self.status == "running" and self._writable:
                # On a full disk the old status stays, which resumes just as well, and must not hide the first
                # error.
                with contextlib.suppress(RunFolderError):
                    self.interrupted()
        finally:
            self.close()

    # Helpers

    def _part(self, kind: str, index: int, suffix: str = "parquet") -> Path:
        return self.path / kind / f"part-{index:06d}.{suffix}"

    def _merged(self, kind: str) -> Path:
        return self.path / f"{kind}.parquet"

    def _part_paths(self, kind: str) -> list[Path]:
        """Part files of finished chunks in order of episodes; event parts without episodes do not count."""
        order = sorted(self._parts, key=lambda index: self._parts[index])
        return [path for index in order if (path := self._part(kind, index)).exists()]

    def _check_schema(self, kind: str, table: Any) -> None:
        paths = self._part_paths(kind)
        if paths and not table.schema.equals(earlier := parts.read_schema(paths[0])):
            ours, theirs = ({field.name: str(field.type) for field in s} for s in (table.schema, earlier))
            raise ValueError(f"{kind} columns differ from earlier chunks: {manifests.difference_line(ours, theirs)}")

    def _write_part(self, kind: str, index: int, table: Any) -> None:
        path = self._part(kind, index)
        with self._writing(path):
            path.parent.mkdir(exist_ok=True)
            parts.write_table(path, table)

    def _remove_parts(self) -> None:
        # The merged tables hold everything now; what cannot be removed does no harm.
        for kind in _TABLES:
            with contextlib.suppress(OSError):
                for path in (self.path / kind).glob("part-*.parquet"):
                    path.unlink()
                (self.path / kind).rmdir()
        self._parts = {}

    def _set_status(self, status: str) -> None:
        manifest = {**self.manifest, "status": status, "updated": manifests.now()}
        with self._writing(self.path / manifests.MANIFEST_NAME):
            manifests.write_manifest(self.path, manifest)
        self.manifest = manifest

    @contextlib.contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        if not self._writable:
            raise RunFolderError(f"{self.path} is open for reading only; use RunFolder.open to write")
        try:
            yield
        except OSError as error:
            fix = files.FIXES.get(error.errno or 0)
            raise RunFolderError(
                f"cannot write {path}: {reason(error)}; finished chunks are safe; "
                f"{fix + ' and ' if fix else ''}{self.resume_hint}"
            ) from error

    @contextlib.contextmanager
    def _damage_handled(self) -> Iterator[None]:
        try:
            yield
        except parts.DamagedTableError as error:
            # The next opening finds the file gone and plans its episodes again.
            if self._writable:
                self._set_damaged_aside(error.path, error.path)
            raise RunFolderError(
                f"{error.path} is damaged; its episodes run again when you {self.resume_hint}"
            ) from error
