"""From outcomes of finished episodes to columns and to one row of a results table.  Host side, numpy only.

Axes: E episodes.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

Columns = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Results:
    """How an environment's outcomes are counted.

    `columns(outcome)`: numpy outcome [E, ...] -> columns [E] or [E, K].  `cell(columns)`: columns of all episodes ->
    one row of plain numbers that has `episodes`.  `rates`: key of a number of successes in that row -> prefix under
    which its interval is added.  `means`: key of a population standard deviation -> name of the half-width.
    """

    columns: Callable[[Any], Columns]
    cell: Callable[[Columns], dict[str, Any]]
    rates: Mapping[str, str]
    means: Mapping[str, str]


def _named(tree: Any) -> dict[str, Any]:
    """Leaves of a pytree under their last field name; a name that occurs twice gets its whole path."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    names = [[str(getattr(k, "name", getattr(k, "key", getattr(k, "idx", k)))) for k in path] for path, _ in leaves]
    last = [name[-1] if name else "value" for name in names]
    return {
        (short if last.count(short) == 1 else ".".join(name)): leaf
        for name, short, (_, leaf) in zip(names, last, leaves, strict=True)
    }


def plain_columns(outcome: Any) -> Columns:
    """Every leaf of an outcome [E, ...] as a column."""
    return {name: np.asarray(leaf) for name, leaf in _named(outcome).items()}


def plain_results(example: Any) -> Results:
    """Results of an environment that says nothing about them: every number of the outcome, its mean and spread.

    `example`: an outcome (of one episode, shapes suffice) that tells which numbers there are.
    """
    scalars = {name: leaf.dtype for name, leaf in _named(example).items() if not leaf.shape}
    flags = [name for name, dtype in scalars.items() if dtype == np.bool_]
    numbers = [name for name in scalars if name not in flags]

    def cell(columns: Columns) -> dict[str, Any]:
        row: dict[str, Any] = {"episodes": len(next(iter(columns.values())))}
        for name in flags:
            row[f"{name}_count"] = int(columns[name].sum())
            row[f"{name}_rate"] = float(columns[name].mean())
        for name in numbers:
            row[name] = float(columns[name].mean())
            row[f"{name}_std"] = float(columns[name].std())
        return row

    return Results(
        columns=plain_columns,
        cell=cell,
        rates={f"{name}_count": name for name in flags},
        means={f"{name}_std": f"{name}_half" for name in numbers},
    )
