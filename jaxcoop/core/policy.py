"""The policy contract: who plays the agents on the device.

Axes: A agents, K agents that act in one step.
"""

from typing import Any, Protocol

import jax
from flax import struct
from jaxtyping import Array, Bool, Int


@struct.dataclass
class Turn:
    """What a policy may look at when the K acting agents decide.

    A decentralised policy reads `obs` and `legal`, row k belonging to agent `agents[k]`; only a policy that
    says it is centralised reads `state`.
    """

    agents: Int[Array, " K"]
    obs: Any  # leading axis K
    legal: Bool[Array, "K num_actions"]
    state: Any


class Policy(Protocol):
    """Plays all agents of one episode; pure functions, hashable (a frozen dataclass), batched by `vmap`."""

    def init(self, key: Array) -> Any:
        """Memory at the start of an episode; per-agent leaves have the leading axis A."""
        ...

    def act(self, key: Array, memory: Any, turn: Turn) -> tuple[Int[Array, " K"], Any]:
        """Actions of the acting agents and the new memory."""
        ...


def take_rows(memory: Any, agents: Int[Array, " K"]) -> Any:
    """Rows of per-agent memory `[A, ...]` for the acting agents `[K]`.

    When everybody acts (K = A) the ids are 0 … A-1, so the rows are the memory itself and nothing is moved.
    """
    return jax.tree.map(lambda x: x if x.shape[0] == agents.shape[0] else x[agents], memory)


def put_rows(memory: Any, agents: Int[Array, " K"], rows: Any) -> Any:
    """Memory `[A, ...]` with the acting agents' rows `[K, ...]` replaced; the inverse of `take_rows`."""
    return jax.tree.map(lambda x, r: r if x.shape[0] == agents.shape[0] else x.at[agents].set(r), memory, rows)
