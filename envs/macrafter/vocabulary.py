"""MA-Crafter's names for the logs of agents that think: specifications, ops, tasks, reasons, focuses.  Host side.

Specifications are rows (number of the task's name, `Material` or `Thing` or -1, id or -1).
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jaxcoop.cognition.logs import TaskWords, Vocabulary, agent_name
from jaxcoop.cognition.metrics import Profile, resource_category, resource_of_text
from jaxcoop.envs.macrafter.config import requirements
from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.skills import OPS, REASONS, Op
from jaxcoop.envs.macrafter.types import (
    ACTION_NAMES,
    DIRECTION_NAMES,
    ITEM_NAMES,
    MATERIAL_NAMES,
    PLACES,
    THING_NAMES,
    Action,
)

_FOCUS_ARGUMENTS = ("target", "resource_type", "object_type")

Reading = Callable[[int], Any]


def _of(names: Sequence[str], first: int = 0) -> Reading:
    """Numbers from `first` on as names; others stay numbers."""
    return lambda code: names[code - first] if first <= code < first + len(names) else code


def kind_name(code: int) -> str:
    """Name of a `Material` or `Thing`."""
    return THING_NAMES.get(code) or str(_of(MATERIAL_NAMES)(code))


_ARGUMENTS: dict[int, tuple[tuple[str, Reading], ...]] = {
    Op.NOOP: (),
    Op.MOVE: (("direction", _of(DIRECTION_NAMES, Action.MOVE_LEFT)), ("num_steps", int)),
    Op.NAVIGATE: (("object_type", kind_name), ("item_id", int), ("timeout", int), ("radius", int)),
    Op.COLLECT: (("target", _of(ITEM_NAMES)), ("item_id", int), ("steps", int)),
    Op.CRAFT: (("object_type", lambda code: str(_of(ACTION_NAMES)(code)).removeprefix("make_")),),
    Op.PLACE: (("object_type", _of(PLACES)),),
    Op.SLEEP: (),
    Op.SHARE: (("recipient_agent_id", agent_name), ("resource_type", _of(ITEM_NAMES)), ("quantity", int)),
}
"""Names that planners give the arguments of each op, and what their numbers mean."""


@dataclasses.dataclass(frozen=True)
class MACrafterVocabulary(Vocabulary):
    """Names in one world; `tasks` are the names that word 0 of a specification counts."""

    env: MACrafter
    tasks: tuple[str, ...]

    @property
    def profile(self) -> Profile:
        """Rules of macrafter."""
        return "macrafter"

    @property
    def targets(self) -> tuple[str, ...]:
        """The scored resources, the dearest first, below what it takes to collect them."""
        return ("tools", "diamond", "iron", "coal", "stone", "wood")

    def spec(self, words: Sequence[int]) -> str:
        """`collect_coal(coal#17)`; the bare name without an object."""
        if not 0 <= words[0] < len(self.tasks):
            return ""
        name = self.tasks[words[0]]
        return name if words[1] < 0 else f"{name}({kind_name(words[1])}#{words[2]})"

    def op(self, row: Sequence[int]) -> dict[str, Any]:
        """As planners write it, without arguments that are left to their defaults."""
        kind = int(row[0])
        if not 0 <= kind < len(OPS):
            return {"action_type": "noop"}
        named = zip(_ARGUMENTS[kind], map(int, row[1:]))
        return {"action_type": OPS[kind].name} | {name: read(value) for (name, read), value in named if value != -1}

    def task(self, slot: int, kind: int) -> TaskWords:
        """The resource in a cell; `kind` is its `Material`."""
        place = divmod(slot, self.env.height)
        needs = requirements(self.env.settings.tasks)
        if kind not in needs:
            return TaskWords(id=str(slot + 1), type="", required=1, place=place)
        need = needs[kind]
        joined = ("|" if need.any_tool else "+").join(need.tools)
        return TaskWords(
            id=str(slot + 1),
            type=MATERIAL_NAMES[kind],
            required=need.agents,
            tool=joined or None,
            place=place,
            details={"resource_type": MATERIAL_NAMES[kind]},
        )

    def reason(self, code: int) -> str:
        """Why an op failed."""
        return REASONS.get(code, "")

    def focus(self, words: Sequence[int], row: Sequence[int], kind: int) -> str:
        """The category of what the op handles, else tools for crafting and placing, else that of the specification."""
        del kind
        op = self.op(row)
        for name in _FOCUS_ARGUMENTS:
            category = resource_category(op.get(name))
            if category:
                return category
        if op["action_type"] in ("craft", "place"):
            return "tools"
        return resource_of_text(self.spec(words)) or "other"

    def item(self, code: int) -> str:
        """Name of an item."""
        return str(_of(ITEM_NAMES)(code))
