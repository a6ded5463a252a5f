"""Episodes as pyarrow tables, for Parquet: one table for each record, with the number of the episode, and back.

Further axes of a field lie flat in lists of one size; their sizes are in the metadata of the column.  All episodes of
a table have equal sizes.  pyarrow is imported inside functions.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jaxcoop.cognition.logs.episode import RECORDS, EpisodeLog, dtype_of

if TYPE_CHECKING:
    import pyarrow as pa

EPISODES = "episodes"
"""Name of the table with one row for each episode."""

EPISODE = "episode"
"""Name of the column with the episode's number."""

_SCALARS = ("agents", "end_ms", "timed_out")
_SHAPE = b"shape"


def to_tables(logs: Sequence[EpisodeLog], first: int = 0) -> "dict[str, pa.Table]":
    """The tables of episodes numbered from `first` on.

    Raises ValueError when there is no episode, or when a record has fields of other sizes in another episode.
    """
    import pyarrow as pa

    if not logs:
        raise ValueError("there is no episode to make tables of; give at least one")
    numbers = range(first, first + len(logs))
    columns = {name: [getattr(log, name) for log in logs] for name in _SCALARS}
    committed = pa.array([log.committed.tolist() for log in logs], pa.list_(pa.int32()))
    tables = {EPISODES: pa.table({EPISODE: pa.array(numbers, pa.int32()), **columns, "committed": committed})}
    for name in RECORDS:
        tables[name] = _table(name, [getattr(log, name) for log in logs], numbers)
    return tables


def _table(name: str, records: Sequence[Any], numbers: Iterable[int]) -> "pa.Table":
    import pyarrow as pa

    fields = dataclasses.fields(RECORDS[name])
    counts = [len(getattr(record, fields[0].name)) for record in records]
    arrays = [pa.array(np.repeat(np.array(list(numbers), np.int32), counts))]
    schema = [pa.field(EPISODE, pa.int32())]
    for field in fields:
        parts = [np.asarray(getattr(record, field.name), dtype_of(field)) for record in records]
        shapes = {part.shape[1:] for part in parts}
        if len(shapes) > 1:
            raise ValueError(
                f"{name}.{field.name} has shapes {sorted(shapes)} in different episodes; make tables of those with "
                "equal sizes only"
            )
        column, metadata = _column(np.concatenate(parts))
        arrays.append(column)
        schema.append(pa.field(field.name, column.type, metadata=metadata))
    return pa.Table.from_arrays(arrays, schema=pa.schema(schema))


def _column(values: NDArray[Any]) -> "tuple[pa.Array, dict[bytes, bytes] | None]":
    import pyarrow as pa

    flat = pa.array(values.reshape(-1))
    if values.ndim == 1:
        return flat, None
    size = int(np.prod(values.shape[1:]))
    return pa.FixedSizeListArray.from_arrays(flat, size), {_SHAPE: json.dumps(values.shape[1:]).encode()}


def from_tables(tables: "Mapping[str, pa.Table]") -> dict[int, EpisodeLog]:
    """The inverse of `to_tables`: episodes by their numbers.  Raises ValueError when a table is missing."""
    missing = [name for name in (EPISODES, *RECORDS) if name not in tables]
    if missing:
        raise ValueError(f"tables {', '.join(missing)} are missing; an episode needs all of {EPISODES}, "
                         f"{', '.join(RECORDS)}")  # fmt: skip
    arrays = {name: _arrays(tables[name]) for name in RECORDS}
    logs = {}
    for row in tables[EPISODES].to_pylist():
        number = row.pop(EPISODE)
        records = {}
        for name, columns in arrays.items():
            chosen = columns[EPISODE] == number
            records[name] = RECORDS[name](**{k: v[chosen] for k, v in columns.items() if k != EPISODE})
        row["committed"] = np.array(row["committed"], np.int32)
        logs[number] = EpisodeLog(**row, **records)
    return logs


def _arrays(table: "pa.Table") -> dict[str, NDArray[Any]]:
    out = {}
    for field, column in zip(table.schema, table.columns):
        values = column.combine_chunks()
        shape = json.loads((field.metadata or {}).get(_SHAPE, b"[]"))
        flat = values.flatten() if shape else values
        out[field.name] = flat.to_numpy(zero_copy_only=False).reshape(-1, *shape)
    return out
