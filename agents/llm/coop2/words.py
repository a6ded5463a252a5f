"""Plans as array words: rows of the environment's skills and the three words of a specification, and back to text.

Axes: L ops of a plan, W words of an op row, S = 3 words of a specification.  Numbers are sections of docs/coop2.md.

What rows cannot say stays in the text form, and the row does what the text would have done: a wall or another word
that names nothing has no target; a thing of MA-Crafter that does not exist fits no cell; ids beyond int32 are cut to it
and name nothing either.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from jaxcoop.agents.llm.coop2 import schemas_cube, schemas_macrafter, words_macrafter
from jaxcoop.agents.llm.coop2.parsing import Profile, fallback_plan
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan, int32
from jaxcoop.cognition.logs import Vocabulary
from jaxcoop.cognition.types import SPEC
from jaxcoop.core.registry import unknown
from jaxcoop.envs.cube import text as cube_text
from jaxcoop.envs.cube.skills import WIDTH as CUBE_WIDTH

TASKS: dict[str, tuple[str, ...]] = {
    "cube": tuple(task.value for task in schemas_cube.Task),
    "macrafter": tuple(task.value for task in schemas_macrafter.Task),
}
"""Names of tasks by number: word 0 of a specification."""

WIDTHS: dict[str, int] = {"cube": CUBE_WIDTH, "macrafter": words_macrafter.WIDTH}
"""W of each world."""


class PlanWords(NamedTuple):
    """A plan for the device."""

    spec: Int[np.ndarray, " S"]  # number of the task, two arguments; -1 where unused; int32
    ops: Int[np.ndarray, "L W"]  # rows of skills, -1 beyond the end; int32
    length: int  # rows that are used
    is_cut: bool  # the plan was longer than L: the operations beyond are dropped


def plan_words(profile: Profile, plan: TextPlan, ops: int) -> PlanWords:
    """A plan as words for buffers of `ops` operations.

    A longer plan is cut and says so: replies may list any number of operations (6.3), buffers hold a fixed one.
    """
    if ops < 1:
        raise ValueError(f"ops is {ops}; allowed: 1 or more")
    length = min(len(plan.actions), ops)
    rows = np.full((ops, WIDTHS[checked(profile)]), -1, np.int32)
    for k, action in enumerate(plan.actions[:length]):
        rows[k] = op_row(profile, action)
    return PlanWords(spec_words(profile, plan), rows, length, len(plan.actions) > ops)


def op_row(profile: Profile, action: Operation) -> list[int]:
    """One operation as a row of skills."""
    if profile == "cube":
        return cube_text.op_row({**action.args, "action_type": action.kind})
    return words_macrafter.op_row(action)


def spec_words(profile: Profile, plan: TextPlan) -> Int[np.ndarray, " S"]:
    """Words of what a plan is for; all -1 for the fallback plan, which is for nothing."""
    words = np.full((SPEC,), -1, np.int32)
    names = TASKS[checked(profile)]
    if plan.task not in names:
        return words
    words[0] = names.index(plan.task)
    if profile == "cube":
        words[1] = int32(plan.number)
    else:
        words[1:] = words_macrafter.spec_kind(plan.target), int32(plan.number)
    return words


def text_plan(
    vocabulary: Vocabulary, spec: Sequence[int], ops: Sequence[Sequence[int]] | np.ndarray, length: int
) -> TextPlan:
    """The plan of words, for plans that no model wrote.

    What was said in words that rows cannot hold is gone, so plans of models are better kept as text.
    """
    named = vocabulary.spec(spec) or fallback_plan(vocabulary.profile).specification
    return TextPlan(named, tuple(operation(vocabulary, row) for row in ops[:length]))


def operation(vocabulary: Vocabulary, row: Sequence[int] | np.ndarray) -> Operation:
    """The operation of a row of skills; arguments that are -1 are left out."""
    args = vocabulary.op([int(word) for word in row])
    return Operation(args.pop("action_type"), args)


def checked(profile: str) -> str:
    """The profile.  Raises `ValueError` for an unknown one."""
    if profile not in TASKS:
        raise unknown("profile", profile, TASKS)
    return profile
