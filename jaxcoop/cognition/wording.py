"""Texts that no planner writes: the same in prompts and in logs.  Host side.

Numbers are sections of docs/coop2.md.
"""

from collections.abc import Sequence
from types import MappingProxyType

SUMMARY_OPERATIONS = 4
"""5.3: operations of a new plan that a speaker of MA-Crafter tells the others."""

REPAIR_ADVICE = MappingProxyType(
    {
        "cube": (
            "Bring all pushers of a block to the same face and let them start to push in the same step, or choose "
            "another task."
        ),
        "macrafter": (
            "Bring as many agents as the resource takes, with the tool, into its reach, and let them collect in the "
            "same steps. Get missing tools first, or choose another target."
        ),
    }
)
"""By profile: what members of a repair channel are told."""


def leader_request(name: str) -> str:
    """5.2: what a leader of MA-Crafter asks of everybody; no call is made for it."""
    return (
        f"{name} asks all followers for a report before the next plans are made: what you carry, where you are, which "
        "targets you can get to, and what you are going to do or need help with."
    )


def operations_text(operations: Sequence[str], limit: int | None = None) -> str:
    """Operations one after the other, at most `limit` of them."""
    shown = operations[:limit]
    more = len(operations) - len(shown)
    return ("; ".join(shown) or "no operations") + (f"; and {more} more" if more else "")


def plan_summary(name: str, specification: str, operations: Sequence[str]) -> str:
    """5.3: what a speaker of MA-Crafter tells the later ones; no call is made for it."""
    return (
        f"{name} has planned {specification}: {operations_text(operations, SUMMARY_OPERATIONS)}. Fit your plans to "
        "it, and join in if more agents are needed."
    )
