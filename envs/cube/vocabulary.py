"""CUBE's names for the logs of agents that think: specifications, ops, tasks, reasons, focuses.  Host side.

Specifications are rows (number of the task's name, block or -1, unused).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxcoop.cognition.logs import TaskWords, Vocabulary
from jaxcoop.cognition.metrics import Profile
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.skills import REASONS
from jaxcoop.envs.cube.tasks import NUM_FACES
from jaxcoop.envs.cube.text import op_action, task_id
from jaxcoop.envs.cube.types import FACES


@dataclasses.dataclass(frozen=True)
class CubeVocabulary(Vocabulary):
    """Names in one CUBE environment; `tasks` are the names that word 0 of a specification counts."""

    env: Cube
    tasks: tuple[str, ...]

    @property
    def profile(self) -> Profile:
        """Rules of cube."""
        return "cube"

    @property
    def targets(self) -> tuple[str, ...]:
        """The weights that there are, the heaviest first."""
        return tuple(f"weight_{weight}" for weight in sorted({int(w) for w in self.env.layout.weights}, reverse=True))

    def spec(self, words: Sequence[int]) -> str:
        """`push_block(block#3)`; the bare name without a block."""
        if not 0 <= words[0] < len(self.tasks):
            return ""
        name = self.tasks[words[0]]
        return name if words[1] < 0 else f"{name}(block#{words[1]})"

    def op(self, row: Sequence[int]) -> dict[str, Any]:
        """As planners write it."""
        return op_action(row) or {"action_type": "noop"}

    def task(self, slot: int, kind: int) -> TaskWords:
        """A face of a block; its type is the block's weight, so that `kind` says nothing new."""
        del kind
        block, face = divmod(slot, NUM_FACES)
        weight = int(self.env.layout.weights[block])
        return TaskWords(
            id=task_id(block, face),
            type=f"weight_{weight}",
            required=weight,
            details={"block_id": block, "face": FACES[face]},
        )

    def reason(self, code: int) -> str:
        """Why an op failed."""
        return REASONS[code] if 0 <= code < len(REASONS) else ""

    def focus(self, words: Sequence[int], row: Sequence[int], kind: int) -> str:
        """The weight (`kind`) that the plan aims at, else `block` for a push, else the op's name."""
        del words
        if kind >= 0:
            return f"weight_{kind}"
        name = str(self.op(row)["action_type"])
        return "block" if name == "push" else name

    def item(self, code: int) -> str:
        """There are no items; a number stays one."""
        return str(code)
