"""6.3: reply schemas for CUBE.  Numbers are sections of docs/coop2.md.

An operation without `action_type` becomes the type that takes most of its fields; ties go to a match without a
conversion, then to the earlier one in `Operation`.  That is the rule of pydantic's smart unions, to which words of a
fixed list (enumerations here) are conversions.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from jaxcoop.agents.llm.coop2.schemas import Direction


class Task(StrEnum):
    """What a plan can be for; the order numbers them in array words."""

    PUSH_BLOCK = "push_block"
    COORDINATE = "coordinate"
    WAIT = "wait"


class EntityType(StrEnum):
    """What one can name as the target of a walk; nobody ever arrives at a wall."""

    AGENT = "agent"
    BLOCK = "block"
    GOAL = "goal"
    WALL = "wall"


class TaskReply(BaseModel):
    """A task of a plan."""

    task: Task = Field(description="what the plan is for")
    block_id: int = Field(description="id of the block that it is about")


class Move(BaseModel):
    """Steps in one direction."""

    action_type: Literal["move"] = "move"
    direction: Direction
    num_steps: int = Field(ge=1, le=5)


class Navigate(BaseModel):
    """A walk to something."""

    action_type: Literal["navigate"] = "navigate"
    entity_type: EntityType
    entity_id: int
    timeout: int = Field(default=30, ge=1, le=100, description="steps after which the walk is given up")


class Push(BaseModel):
    """Steps into a block."""

    action_type: Literal["push"] = "push"
    block_id: int = Field(ge=0)
    num_steps: int = Field(ge=1, le=10)


class Wait(BaseModel):
    """Steps of standing still."""

    action_type: Literal["wait"] = "wait"
    num_steps: int = Field(ge=1, le=10)


class Noop(BaseModel):
    """One step of standing still."""

    action_type: Literal["noop"] = "noop"


Operation = Move | Navigate | Push | Wait | Noop
TypedOperation = Annotated[Operation, Field(discriminator="action_type")]


class PlanReply(BaseModel):
    """A plan; `action_type` may be left out."""

    task: TaskReply = Field(description="what the plan is for")
    actions: list[Operation] = Field(description="operations in the order in which they are carried out, at most 6")
    reasoning: str = Field(description="one or two sentences: why this plan")

    @model_validator(mode="before")
    @classmethod
    def _task_from_word(cls, data: Any) -> Any:
        """A bare word as task takes its block from the operations; without any it stays as it is and is refused."""
        if not isinstance(data, dict) or not isinstance(data.get("task"), str):
            return data
        block = _first_block(data.get("actions"))
        return data if block is None else {**data, "task": {"task": data["task"], "block_id": block}}


class TypedPlanReply(PlanReply):
    """A plan whose operations name their type."""

    actions: list[TypedOperation]


def _first_block(actions: Any) -> Any:
    """The block of the first operation that names one."""
    for action in actions if isinstance(actions, list) else ():
        if not isinstance(action, dict):
            continue
        if action.get("block_id") is not None:
            return action["block_id"]
        if action.get("entity_type") == "block" and action.get("entity_id") is not None:
            return action["entity_id"]
    return None
