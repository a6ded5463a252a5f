"""Confidence intervals and tests for tables of finished runs; knows no environment.

Two families are used by the published tables: Wilson and t intervals (the main ones), Wald and z intervals
(the supplementary table).  Both take z = 1.96, not the exact quantile, so that published digits come out.
Source: section 12 of the DPBench behaviour notes, docs/envs/dining.md.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Z_95 = 1.96  # as published; the exact 97.5 % quantile is 1.959964


class MannWhitney(NamedTuple):
    """Result of the two-sided test; all None when a side has fewer than two values."""

    u_statistic: float | None
    p_value: float | None
    significant: bool | None  # p < 0.05


class Interval(NamedTuple):
    """One column of an interval table: a mean or a rate, its rounding, and the half-width beside it."""

    source: str  # row key of the value
    digits: int | None  # decimal places; None leaves the value as it is
    spread: str | None = None  # row key of the standard deviation, or RATE for a proportion, None for no interval
    name: str | None = None  # key of the half-width in the result


RATE = "rate"


def wilson_interval(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson score interval of a proportion, clipped to [0, 1]; (0, 0) without trials.

    Raises ValueError when `successes` is outside 0..trials.
    """
    if trials <= 0:
        return 0.0, 0.0
    if not 0 <= successes <= trials:
        raise ValueError(f"successes is {successes}, must be in 0..{trials} (the number of trials)")
    p = successes / trials
    denominator = 1 + z**2 / trials
    centre = (p + z**2 / (2 * trials)) / denominator
    half = z * math.sqrt((p * (1 - p) + z**2 / (4 * trials)) / trials) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)


def t_half_width(std: float | None, count: int, alpha: float = 0.05) -> float | None:
    """Half-width of the (1 - alpha) t interval of a mean: t quantile * std / sqrt(count).

    `std` is used as given (published tables pass the population one).  None without std or with count <= 1.
    """
    if std is None or count <= 1:
        return None
    from scipy import stats

    return float(stats.t.ppf(1 - alpha / 2, count - 1) * std / math.sqrt(count))


def wald_half_width(p: float, count: int, z: float = Z_95) -> float:
    """Half-width of the normal interval of a proportion; 0 without trials."""
    return z * math.sqrt(p * (1 - p) / count) if count > 0 else 0.0


def z_half_width(std: float, count: int, z: float = Z_95) -> float:
    """Half-width of the normal interval of a mean; 0 with fewer than two values."""
    return z * std / math.sqrt(count) if count >= 2 else 0.0


def mann_whitney(a: Sequence[float], b: Sequence[float], alpha: float = 0.05) -> MannWhitney:
    """Two-sided Mann-Whitney U test of `a` against `b`; `u_statistic` belongs to `a`.

    Exact for small samples without ties, otherwise the normal approximation with tie and continuity
    correction.
    """
    if len(a) < 2 or len(b) < 2:
        return MannWhitney(None, None, None)
    from scipy import stats

    result = stats.mannwhitneyu(a, b, alternative="two-sided")
    p_value = float(result.pvalue)
    return MannWhitney(float(result.statistic), p_value, p_value < alpha)


def with_intervals(
    row: Mapping[str, Any],
    *,
    rates: Mapping[str, str],
    means: Mapping[str, str],
    count: str = "episodes",
) -> dict[str, Any]:
    """Copy of `row` with Wilson bounds and t half-widths.

    `rates` maps the key of a number of successes to a prefix (`prefix_low`, `prefix_high` are added); `means`
    maps the key of a standard deviation to the name of the half-width.  `count` is the key of the number of
    episodes.
    """
    out = dict(row)
    total = int(row[count])
    for successes, prefix in rates.items():
        out[f"{prefix}_low"], out[f"{prefix}_high"] = wilson_interval(int(row[successes]), total)
    for std, name in means.items():
        out[name] = t_half_width(row.get(std), total)
    return out


def z_interval_table(
    rows: Iterable[Mapping[str, Any]],
    columns: Iterable[Interval | tuple[str, int | None, str | None, str | None]],
    *,
    identity: Sequence[str] = ("model", "condition"),
    count: str = "episodes",
    missing: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Rounded table with Wald (rates) and z (means) half-widths, one line per distinct `identity`.

    Of several rows with one identity the first is kept.  Missing values are None, or what `missing` gives for
    their key.  An environment, which cannot import this module, states its columns as plain tuples in
    the order of `Interval`.
    """
    intervals = [Interval(*column) for column in columns]
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in identity)
        if key in kept:
            continue
        line: dict[str, Any] = {name: row[name] for name in (*identity, count)}
        for column in intervals:
            value = row.get(column.source)
            if value is None and missing is not None:
                value = missing.get(column.source)
            line[column.source] = _rounded(value, column.digits)
            if column.name is not None:
                line[column.name] = _rounded(_half_width(row, column, int(row[count])), column.digits)
        kept[key] = line
    return list(kept.values())


def _half_width(row: Mapping[str, Any], column: Interval, count: int) -> float | None:
    value, spread = row.get(column.source), row.get(column.spread or "")
    if column.spread == RATE:
        return None if value is None else wald_half_width(value, count)
    return None if spread is None else z_half_width(spread, count)


def _rounded(value: float | None, digits: int | None) -> float | None:
    return value if value is None or digits is None else round(value, digits)
