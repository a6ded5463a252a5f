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
    `shown`: names of the rates and means that a table shows, in its order; None: it has a table of its own.
    """

    columns: Callable[[Any], Columns]
    cell: Callable[[Columns], dict[str, Any]]
    rates: Mapping[str, str]
    means: Mapping[str, str]
    shown: tuple[str, ...] | None = None


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


def rates_and_means(
    columns: Callable[[Any], Columns], *, rates: tuple[str, ...], means: tuple[str, ...], shown: tuple[str, ...]
) -> Results:
    """Results whose row has count and share of some columns [E] (`rates`), mean and spread of others (`means`).

    In the row a rate `x` is `x_count`, `x_rate` and its interval `x_low`, `x_high`; a mean `y` is `y`, `y_std` and its
    half-width `y_half`.
    """

    def cell(columns: Columns) -> dict[str, Any]:
        row: dict[str, Any] = {"episodes": len(next(iter(columns.values())))}
        for name in rates:
            row[f"{name}_count"], row[f"{name}_rate"] = int(columns[name].sum()), float(columns[name].mean())
        for name in means:
            row[name], row[f"{name}_std"] = float(columns[name].mean()), float(columns[name].std())
        return row

    return Results(
        columns=columns,
        cell=cell,
        rates={f"{name}_count": name for name in rates},
        means={f"{name}_std": f"{name}_half" for name in means},
        shown=shown,
    )


def plain_results(example: Any) -> Results:
    """Results of an environment that says nothing about them: every number of the outcome, its mean and spread.

    `example`: an outcome (of one episode, shapes suffice) that tells which numbers there are.
    """
    scalars = {name: leaf.dtype for name, leaf in _named(example).items() if not leaf.shape}
    flags = tuple(name for name, dtype in scalars.items() if dtype == np.bool_)
    numbers = tuple(name for name in scalars if name not in flags)
    return rates_and_means(plain_columns, rates=flags, means=numbers, shown=(*flags, *numbers))
