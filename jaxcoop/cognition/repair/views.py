"""The viewed plans, and the orders in which agents are named.

Axes: A agents, L ops of a plan.  Numbers are sections of docs/coop2_repair.md.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxcoop.cognition.types import PlanViews


def remaining(views: PlanViews) -> Bool[Array, "A L"]:
    """2: the ops of viewed plans from the current one on."""
    op = jnp.arange(views.plan.ops.shape[1], dtype=jnp.int32)
    remains = (op >= views.index[:, None]) & (op < views.plan.length[:, None])
    return remains & views.is_viewed[:, None]


def text_order(agents: int) -> Int[np.ndarray, " A"]:
    """8: the agents in the order of their ids as text, agent_10 before agent_2; members are listed like this."""
    return np.array(sorted(range(agents), key=str), np.int32)


def statement_order(agents: int) -> Int[np.ndarray, " A"]:
    """8: the agents in the order of their statements: by the number at the end of the id."""
    return np.arange(agents, dtype=np.int32)


def text_rank(agents: int) -> Int[np.ndarray, " A"]:
    """The place of each agent in `text_order`."""
    return np.argsort(text_order(agents)).astype(np.int32)
