"""From plain numbers to prompts: what one philosopher is told, as `(system, user)` texts.  Host side, no jax.

A row describes one call.  Its keys:

- `agent`: philosopher id, 0..N-1;  `num_agents`: N;
- `eating`, `left_available`, `right_available`, `holding_left`, `holding_right`: bool;  `meals`: own meals;
- `left_message`, `right_message`: text of that neighbour, or None (optional);
- `all_messages`: text or None of each philosopher, for the broadcast channel (optional);
- `left_holder`, `right_holder`: philosopher id or -1, to show the holder of a fork (optional, the article's
  view);
- `memory`: list of entries `{timestep, deadlock, eating[N], hl[N], hr[N], meals[N]}`, oldest first
  (optional);
- `kind`: "action" (default) or "discussion", the latter with `round` (1..) and `rounds`.

Source: sections 8, 10 and 11 of the DPBench behaviour notes, docs/envs/dining.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxcoop.envs.dining.prompts import Prompts

AVAILABLE, TAKEN = "AVAILABLE", "TAKEN"
NO_MESSAGE = "[no message]"
MEMORY_HEADING = "Recent history of the table (oldest first; L and R are the left and right fork in a hand):"
_HOLDING = {
    (False, False): "nothing",
    (True, False): "left fork",
    (False, True): "right fork",
    (True, True): "left fork, right fork",
}
_STATE = ("hungry", "eating")
_HELD = {(False, False): "-", (True, False): "L", (False, True): "R", (True, True): "L+R"}


class Rendered(NamedTuple):
    """The prompt of one call, and the values its template was filled with."""

    system: str
    user: str
    values: dict[str, Any]


class PromptRenderer:
    """Fills the templates of one condition for a table of `num_agents` philosophers.

    System texts depend on the philosopher alone and are filled once, at construction.  Raises ValueError for
    fewer than two philosophers.
    """

    def __init__(self, prompts: Prompts, num_agents: int, *, communication: bool = False) -> None:
        if num_agents < 2:
            raise ValueError(f"num_agents is {num_agents}, must be at least 2: a fork needs two users")
        self.prompts = prompts
        self.num_agents = num_agents
        self.communication = communication
        self.names = tuple(philosopher_name(i) for i in range(num_agents))
        self._systems = tuple(
            prompts.system.format_map(
                {
                    "philosopher_name": name,
                    "num_philosophers": num_agents,
                    "num_philosophers_minus_one": num_agents - 1,
                }
            )
            for name in self.names
        )

    def system(self, agent: int) -> str:
        """System text of philosopher `agent`."""
        return self._systems[agent]

    def values(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Rendered values of a row: the fields a decision or discussion template may use."""
        agent = int(row["agent"])
        left_message, right_message, everyone = row.get("left_message"), row.get("right_message"), ()
        if self.communication:
            everyone = row.get("all_messages") or ()
        else:
            left_message = right_message = None
        return {
            "philosopher_name": self.names[agent],
            "state": _STATE[bool(row["eating"])],
            "meals_eaten": int(row["meals"]),
            "left_fork_status": _fork_status(agent, row["left_available"], row.get("left_holder")),
            "right_fork_status": _fork_status(agent, row["right_available"], row.get("right_holder")),
            "holding_status": _HOLDING[bool(row["holding_left"]), bool(row["holding_right"])],
            "left_message": neighbour_message(left_message),
            "right_message": neighbour_message(right_message),
            "all_messages": broadcast_messages(everyone),
        }

    def render(self, row: Mapping[str, Any]) -> Rendered:
        """System text, user text and values of a row.

        The user text is the decision prompt, followed by the memory section when the row has entries, or the
        discussion prompt, which has no memory section (10).
        """
        values = self.values(row)
        if row.get("kind", "action") == "discussion":
            values["round"], values["rounds"] = int(row["round"]), int(row["rounds"])
            user = self.prompts.discussion.format_map(values)
        else:
            user = self.prompts.decision.format_map(values)
            if row.get("memory"):
                user = f"{user}\n\n{memory_section(row['memory'])}"
        return Rendered(self._systems[int(row["agent"])], user, values)


def philosopher_name(agent: int) -> str:
    """Name of philosopher `agent` everywhere: P0, P1, …"""
    return f"P{agent}"


def neighbour_message(message: str | None) -> str:
    """Quoted text of a neighbour, or the fixed phrase when there is none."""
    return f'Neighbour message: "{message}"' if message else NO_MESSAGE


def broadcast_messages(messages: Sequence[str | None]) -> str:
    """One line per philosopher with a message, in id order, or the fixed phrase when nobody sent one."""
    lines = [f'{philosopher_name(i)}: "{message}"' for i, message in enumerate(messages) if message]
    return "\n".join(lines) or NO_MESSAGE


def memory_section(entries: Sequence[Mapping[str, Any]]) -> str:
    """History text (10): per entry timestep, deadlock mark, and everybody's state, forks and meals."""
    lines = [MEMORY_HEADING]
    for entry in entries:
        mark = " [DEADLOCK]" if entry["deadlock"] else ""
        lines.append(f"Timestep {int(entry['timestep'])}{mark}")
        lines += [
            f"  P{i}: {_STATE[bool(eating)]}, holds {_HELD[bool(left), bool(right)]}, meals {int(meals)}"
            for i, (eating, left, right, meals) in enumerate(
                zip(entry["eating"], entry["hl"], entry["hr"], entry["meals"], strict=True)
            )
        ]
    return "\n".join(lines)


def _fork_status(agent: int, available: Any, holder: Any) -> str:
    """AVAILABLE / TAKEN as the reference shows it (8), or the holder if the row states it (14, point 13)."""
    if holder is None:
        return AVAILABLE if available else TAKEN
    if holder < 0:
        return "free"
    return "held by you" if holder == agent else f"held by {philosopher_name(int(holder))}"
