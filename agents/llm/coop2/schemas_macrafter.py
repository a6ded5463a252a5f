"""6.3: reply schemas for MA-Crafter.  Numbers are sections of docs/coop2.md.

How an operation without `action_type` gets its type is said in `schemas_cube`.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from jaxcoop.agents.llm.coop2.schemas import Direction


class Task(StrEnum):
    """What a plan can be for; the order numbers them in array words."""

    COLLECT_WOOD = "collect_wood"
    COLLECT_STONE = "collect_stone"
    COLLECT_COAL = "collect_coal"
    COLLECT_IRON = "collect_iron"
    COLLECT_DIAMOND = "collect_diamond"
    COLLECT_FOOD = "collect_food"
    MAKE_WOOD_PICKAXE = "make_wood_pickaxe"
    MAKE_STONE_PICKAXE = "make_stone_pickaxe"
    MAKE_IRON_PICKAXE = "make_iron_pickaxe"
    PLACE_TABLE = "place_table"
    PLACE_FURNACE = "place_furnace"
    PLACE_STONE = "place_stone"


class Yield(StrEnum):
    """What can be collected."""

    WOOD = "wood"
    STONE = "stone"
    COAL = "coal"
    IRON = "iron"
    DIAMOND = "diamond"
    FOOD = "food"


class Station(StrEnum):
    """What can be placed by an operation."""

    TABLE = "table"
    FURNACE = "furnace"


class Tool(StrEnum):
    """What can be crafted."""

    WOOD_PICKAXE = "wood_pickaxe"
    STONE_PICKAXE = "stone_pickaxe"
    IRON_PICKAXE = "iron_pickaxe"


class TaskReply(BaseModel):
    """A task of a plan."""

    task: Task = Field(description="what the plan is for")
    object_type: str = Field(
        description="type of the thing that it is about, as the view names it, such as tree or cow"
    )
    object_id: int = Field(description="id of that thing")


class Move(BaseModel):
    """Steps in one direction."""

    action_type: Literal["move"] = "move"
    direction: Direction
    num_steps: int = Field(ge=1, le=5)


class Collect(BaseModel):
    """Collecting what is in reach."""

    action_type: Literal["collect"] = "collect"
    target: Yield
    steps: int = Field(
        default=3, ge=1, le=10, description="how many steps to keep trying until enough agents take part"
    )


class Place(BaseModel):
    """Building a station beside oneself."""

    action_type: Literal["place"] = "place"
    item: Station


class Craft(BaseModel):
    """Making a tool."""

    action_type: Literal["craft"] = "craft"
    item: Tool


class Sleep(BaseModel):
    """Falling asleep."""

    action_type: Literal["sleep"] = "sleep"


class Noop(BaseModel):
    """One step of doing nothing."""

    action_type: Literal["noop"] = "noop"


class Navigate(BaseModel):
    """A walk to something."""

    action_type: Literal["navigate"] = "navigate"
    object_type: str = Field(description="type of the target, as the view names it")
    item_id: int = Field(description="id of the target, of a table or furnace its local id")
    timeout: int = Field(default=30, ge=1, le=100, description="steps after which the walk is given up")


class Share(BaseModel):
    """Giving something to a teammate."""

    action_type: Literal["share"] = "share"
    recipient_agent_id: str = Field(description="name of the teammate, such as agent_1")
    resource_type: str = Field(description="the item, such as wood")
    quantity: int = Field(default=1, ge=1)


Operation = Move | Collect | Place | Craft | Sleep | Noop | Navigate | Share
TypedOperation = Annotated[Operation, Field(discriminator="action_type")]


class PlanReply(BaseModel):
    """A plan; `action_type` may be left out."""

    task: TaskReply = Field(description="what the plan is for")
    actions: list[Operation] = Field(description="operations in the order in which they are carried out, at most 6")
    reasoning: str = Field(description="one or two sentences: why this plan")


class TypedPlanReply(PlanReply):
    """A plan whose operations name their type."""

    actions: list[TypedOperation]
