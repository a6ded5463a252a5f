"""Tables on disk: Parquet part files, one per chunk, and their merge into one file.

Axes: E rows of a table (episodes, or events), K entries of a two-dimensional column. A column is [E] or [E,
K]; the latter is stored as fixed-size lists. pyarrow is imported inside functions, so that naming this module
costs nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxcoop.runs.files import atomic_write

if TYPE_CHECKING:
    import pyarrow as pa

_RANGES_KEY = b"jaxcoop.ranges"
_EVENTS_KEY = b"jaxcoop.events"
_MERGE_ROWS = 65_536  # rows per row group of a merged file: bounds the memory of a merge

Ranges = list[tuple[int, int]]  # (first episode, number of episodes) of each chunk in a file


class DamagedTableError(Exception):
    """The Parquet file `path` cannot be read or does not hold what its footer promises."""

    def __init__(self, path: Path, detail: object) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


class Footer(NamedTuple):
    """What the end of a file says of it."""

    rows: int
    ranges: Ranges
    events: int | None  # rows of the event table that belongs to these episodes; None: there is none


def to_table(columns: Mapping[str, Any], rows: int, ranges: Ranges, events: int | None = None) -> "pa.Table":
    """Arrow table of `columns`, each [rows] or [rows, K] with K >= 1; its metadata holds the ranges.

    `events`: rows of the event table that belongs to these episodes.

    Raises ValueError, naming the column, for another length, more than two axes, K = 0, or a type other than
    numbers, booleans and text (text columns may hold None).
    """
    import pyarrow as pa

    arrays = {}
    for name, column in columns.items():
        column = np.asarray(column)
        if column.ndim not in (1, 2) or column.shape[0] != rows or 0 in column.shape[1:]:
            raise ValueError(
                f"column {name!r} has shape {list(column.shape)}; allowed: [{rows}] and [{rows}, K], K >= 1"
            )
        flat = column.reshape(-1)
        if column.dtype.kind in "OU":
            values = flat.tolist()
            if not all(value is None or isinstance(value, str) for value in values):
                raise ValueError(f"column {name!r} holds objects; allowed are numbers, booleans, text and None")
            array = pa.array(values, pa.string())
        elif column.dtype.kind in "biuf":
            array = pa.array(np.ascontiguousarray(flat))
        else:
            raise ValueError(f"column {name!r} has type {column.dtype}; allowed are numbers, booleans and text")
        if column.ndim == 2:
            array = pa.FixedSizeListArray.from_arrays(array, column.shape[1])
        arrays[name] = array
    return pa.table(arrays).replace_schema_metadata(_metadata(ranges, events))


def _metadata(ranges: Ranges, events: int | None) -> dict[bytes, bytes]:
    return {_RANGES_KEY: json.dumps(ranges).encode(), _EVENTS_KEY: json.dumps(events).encode()}


def write_table(path: Path, table: "pa.Table") -> None:
    """Write `table` atomically with page checksums; raises OSError when the disk refuses."""
    import pyarrow.parquet as pq

    def write(handle: IO[bytes]) -> None:
        pq.write_table(table, handle, compression="zstd", write_page_checksum=True)

    atomic_write(path, write)


def read_footer(path: Path) -> Footer:
    """The end of a file; the data pages are not read.  Raises DamagedTableError when it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        metadata = footer.metadata or {}
        ranges = [(int(first), int(count)) for first, count in json.loads(metadata[_RANGES_KEY])]
        return Footer(footer.num_rows, ranges, json.loads(metadata.get(_EVENTS_KEY, b"null")))
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise DamagedTableError(path, error) from error


def read_ranges(episodes: Path, events: Path) -> Ranges:
    """The chunk ranges of a table of episodes, if it and its events (where it has any) are whole.

    Raises DamagedTableError when a footer cannot be read or a number of rows is not the promised one.
    """
    footer = read_footer(episodes)
    if footer.rows != sum(count for _, count in footer.ranges):
        raise DamagedTableError(episodes, f"{footer.rows} rows do not fit the ranges {footer.ranges}")
    if footer.events is not None and (rows := read_footer(events).rows) != footer.events:
        raise DamagedTableError(events, f"{rows} rows of events, {footer.events} were written")
    return footer.ranges


def read_schema(path: Path) -> "pa.Schema":
    """Column names and types of a file, without metadata."""
    import pyarrow.parquet as pq

    return pq.read_schema(path).remove_metadata()


def read_columns(paths: Sequence[Path], names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Columns [E] or [E, K] over all files in the given order; `names` chooses some. No file: no column.

    Raises DamagedTableError when a page's checksum is wrong, KeyError when a name is unknown.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    pieces: dict[str, list[np.ndarray]] = {}
    for path in paths:
        if names is not None and (unknown := sorted(set(names) - set(read_schema(path).names))):
            raise KeyError(f"no column {unknown} in {path}; it has {read_schema(path).names}")
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read(None if names is None else list(names))
        except (pa.ArrowException, OSError) as error:
            raise DamagedTableError(path, error) from error
        for name in table.column_names:
            column = table.column(name)
            chunks = column.chunks or [pa.array([], column.type)]
            pieces.setdefault(name, []).extend(map(_to_numpy, chunks))
    return {name: np.concatenate(chunks) for name, chunks in pieces.items()}


def check_pages(path: Path) -> None:
    """Read a file to its end in bounded memory; raises DamagedTableError when a page's checksum is wrong."""
    for _ in _batches(path):
        pass


def _to_numpy(array: "pa.Array") -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(array.type):
        return _to_numpy(array.flatten()).reshape(len(array), array.type.list_size)
    if pa.types.is_string(array.type):
        values = np.empty(len(array), dtype=object)
        values[:] = array.to_pylist()
        return values
    return array.to_numpy(zero_copy_only=False)


def merge(paths: Sequence[Path], target: Path, ranges: Ranges) -> None:
    """Write the rows of all files, in the given order, to `target` atomically and in bounded memory.

    Raises DamagedTableError when a source's page is damaged, OSError when the disk refuses.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    events = [read_footer(path).events for path in paths]
    total = None if None in events else sum(count or 0 for count in events)
    schema = read_schema(paths[0]).with_metadata(_metadata(ranges, total))

    def write(handle: IO[bytes]) -> None:
        held: list[pa.RecordBatch] = []
        rows = 0
        with pq.ParquetWriter(handle, schema, compression="zstd", write_page_checksum=True) as writer:
            for path in paths:
                for batch in _batches(path):
                    held.append(batch.replace_schema_metadata(schema.metadata))
                    rows += len(batch)
                    if rows >= _MERGE_ROWS:
                        writer.write_table(pa.Table.from_batches(held))
                        held, rows = [], 0
            if held:
                writer.write_table(pa.Table.from_batches(held))

    atomic_write(target, write)


def _batches(path: Path) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches(batch_size=_MERGE_ROWS)
    except (pa.ArrowException, OSError) as error:
        raise DamagedTableError(path, error) from error
