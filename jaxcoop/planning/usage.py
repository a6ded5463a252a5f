"""The usage ledger: how many requests, calls, tokens and dollars, and what went wrong on the way."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from jaxcoop.planning.record import Record

_KNOWN = ("ok", "malformed", "rate_limit", "timeout")  # outcomes with a counter of their own


@dataclass
class Session:
    """Counters of one hub since it was made; what the calls table cannot know."""

    asked: int = 0
    merged: int = 0
    replayed: int = 0
    fallback: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Usage:
    """One row of a usage table.

    Of this session: `asked` requests that came in; `merged` with an equal one in flight; `replayed` from the
    record; `fallback` and `missing` requests that ended without a reply.  Over all sessions of the record:
    `calls` attempts that reached the client, `retried` those after an error, `rate_limited`, `timeouts` and
    `errors` (all other kinds) attempts that failed, `malformed` replies that were refused, `reasked` asks
    that followed one, tokens, `cost` in US dollars (of `unpriced` replies no price was known), and latency
    percentiles of calls with a reply, in seconds (NaN before the first).
    """

    asked: int
    merged: int
    replayed: int
    fallback: int
    missing: int
    calls: int
    retried: int
    rate_limited: int
    timeouts: int
    errors: int
    malformed: int
    reasked: int
    tokens_in: int
    tokens_out: int
    cost: float
    unpriced: int
    latency_p50_s: float
    latency_p90_s: float
    latency_p99_s: float

    def as_dict(self) -> dict[str, int | float]:
        """Column name -> value, in a fixed order."""
        return dataclasses.asdict(self)


def usage_of(record: Record, session: Session | None = None) -> Usage:
    """Totals of a record, with the counters of `session` (zeros when None)."""
    outcomes = dict(record.query("SELECT outcome, count(*) FROM calls GROUP BY outcome"))
    sums = record.query(
        "SELECT count(*), coalesce(sum(attempt > 0), 0), coalesce(sum(reask > 0 AND attempt = 0), 0),"
        " total(tokens_in), total(tokens_out), total(cost),"  # `sum` of integers fails when it overflows
        " coalesce(sum(priced = 0), 0) FROM calls"
    )[0]
    calls, retried, reasked, tokens_in, tokens_out, cost, unpriced = sums
    seconds = [row[0] for row in record.query("SELECT latency_s FROM calls WHERE outcome IN ('ok', 'malformed')")]
    p50, p90, p99 = (float(p) for p in np.percentile(seconds, (50, 90, 99))) if seconds else (np.nan,) * 3
    return Usage(
        **dataclasses.asdict(session or Session()),
        calls=calls,
        retried=retried,
        rate_limited=outcomes.get("rate_limit", 0),
        timeouts=outcomes.get("timeout", 0),
        errors=sum(count for kind, count in outcomes.items() if kind not in _KNOWN),
        malformed=outcomes.get("malformed", 0),
        reasked=reasked,
        tokens_in=int(tokens_in),
        tokens_out=int(tokens_out),
        cost=cost,
        unpriced=unpriced,
        latency_p50_s=p50,
        latency_p90_s=p90,
        latency_p99_s=p99,
    )
