"""8.2, communication: how many messages are sent, and by whom."""

from collections.abc import Iterable, Mapping
from typing import Any

from jaxcoop.cognition.metrics.profiles import mean_and_std

NOBODY = "unknown"
"""Sender, agent or reason that a record does not name."""


def communication(messages: Iterable[Mapping[str, Any]] | None, agents: Iterable[str]) -> dict[str, Any]:
    """Counts of sends; one to several recipients is one.  `agents` are counted even if they are silent."""
    sends = dict.fromkeys(agents, 0)
    total = 0
    for message in messages or ():
        sender = str(message.get("sender", NOBODY))
        sends[sender] = sends.get(sender, 0) + 1
        total += 1
    # The reference has another name for the spread where there is nothing to spread.
    spread = {"L_std": mean_and_std(sends.values())[1]} if total else {"L_var": 0}
    return {"L_tot": total, "messages_per_agent": sends} | spread
