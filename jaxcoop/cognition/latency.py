"""How long calls take where nobody measures them: a keyed model, so that a run is a function of its seed.

Numbers are sections of docs/coop2.md.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.cognition.types import Call
from jaxcoop.core.registry import brief

MOST_MS = 2**30


@dataclasses.dataclass(frozen=True)
class Latency:
    """Log-normal latencies by kind of call, in milliseconds; with `sigma` 0 they are constant.

    `median[k]` and `sigma[k]` belong to `Call` k; member i of the team takes `per_agent * i` longer (3.1).
    """

    name: str = "constant"
    median: tuple[float, float, float, float] = (400.0, 1000.0, 700.0, 300.0)
    sigma: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    per_agent: float = 0.0

    def __post_init__(self) -> None:
        """Check every number."""
        for name, low, high in (("median", 0, MOST_MS), ("sigma", 0, 5)):
            values = getattr(self, name)
            is_right = isinstance(values, (tuple, list)) and len(values) == len(Call)
            if not is_right or not all(isinstance(x, (int, float)) and low <= x <= high for x in values):
                kinds = ", ".join(kind.name.lower() for kind in Call)
                raise ValueError(
                    f"{name} {brief(values)}: must be {len(Call)} numbers from {low} to {high:,} ({kinds})"
                )
            object.__setattr__(self, name, tuple(float(x) for x in values))
        if not 0 <= self.per_agent <= MOST_MS:
            raise ValueError(f"per_agent {self.per_agent!r}: must be from 0 to {MOST_MS:,} ms")

    def sample(self, key: Array, kind: Int[Array, " A"], number: Int[Array, " A"]) -> Int[Array, " A"]:
        """Milliseconds of the agents' calls; `number` counts the calls of each agent."""
        ids = jnp.arange(kind.shape[0], dtype=jnp.int32)
        median = jnp.asarray(self.median, jnp.float32)[kind] + self.per_agent * ids
        if any(self.sigma):
            draw = jax.vmap(lambda i, n: jax.random.normal(jax.random.fold_in(jax.random.fold_in(key, i), n)))
            spread = jnp.exp(jnp.asarray(self.sigma, jnp.float32)[kind] * draw(ids, number))
            median = median * spread
        return jnp.clip(jnp.round(median), 0, MOST_MS).astype(jnp.int32)


def calibrated(name: str, latencies_ms: Mapping[Call, Sequence[float]], per_agent: float = 0.0) -> Latency:
    """The model of recorded calls: median and spread of the logarithms for each kind.

    A kind without a recorded call takes those of all calls together.  Raises `ValueError` without any.
    """
    everything = np.concatenate([np.asarray(v, float) for v in latencies_ms.values()] or [np.zeros(0)])
    if not everything.size or (everything <= 0).any():
        raise ValueError("latencies: must be one or more times above 0 ms; record a run with a model first")
    pairs = []
    for kind in Call:
        logs = np.log(np.asarray(latencies_ms.get(kind) or everything, float))
        pairs.append((float(np.exp(np.median(logs))), float(min(logs.std(), 5.0))))
    median, sigma = (tuple(p[k] for p in pairs) for k in range(2))
    return Latency(name, median, sigma, per_agent)  # type: ignore[arg-type]  # four of each
