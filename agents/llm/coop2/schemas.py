"""Reply schemas that both worlds share, and the two forms in which a schema is shown to a model.

Numbers are sections of docs/coop2.md; the schemas are those of 6.3.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field

P = TypeVar("P", bound=BaseModel)


class Direction(StrEnum):
    """Directions of moves."""

    UP = "up"
    DOWN = "down"
    LEFT = "left"
    RIGHT = "right"


class Decision(StrEnum):
    """What an interrupted agent does with its plan."""

    RESUME = "resume"
    REPLAN = "replan"


class InterruptReply(BaseModel, Generic[P]):
    """6.3: the reply of an interrupted agent."""

    decision: Decision = Field(description="resume keeps the current plan, replan drops it")
    reasoning: str = Field(description="one sentence: why")
    new_plan: P | None = Field(default=None, description="the new plan; give it with replan")


class MessageReply(BaseModel):
    """6.3: a message as structured output; declared, and asked for by nobody."""

    recipients: list[str] = Field(description="names of the agents it is for")
    content: str = Field(description="the text")
    reasoning: str = Field(description="one sentence: why")


def prompt_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema as it is put into a prompt.

    Titles and texts of classes only cost tokens; the word that names a type is asked for, although 6.3 does without.
    """
    return _for_prompt(model.model_json_schema())


def provider_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema as providers enforce it: every key and no other, no defaults, nothing beside a reference."""
    return _for_provider(prompt_schema(model))


def _for_prompt(node: Any, is_names: bool = False) -> Any:
    """`is_names`: the keys are names of properties or definitions, not keywords, so all of them stay."""
    if isinstance(node, list):
        return [_for_prompt(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    if is_names:
        return {name: _for_prompt(value) for name, value in node.items()}
    dropped = {"title"}
    if "properties" in node or "enum" in node:
        dropped.add("description")
    if "const" in node:
        dropped.add("default")
    kept = {
        key: _for_prompt(value, is_names=key in ("properties", "$defs"))
        for key, value in node.items()
        if key not in dropped
    }
    constants = [name for name, value in kept.get("properties", {}).items() if "const" in value]
    if constants:
        kept["required"] = [*constants, *kept.get("required", ())]
    return kept


def _for_provider(node: Any) -> Any:
    if isinstance(node, list):
        return [_for_provider(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    closed = {key: _for_provider(value) for key, value in node.items() if key != "default"}
    if closed.get("type") == "object":
        closed |= {"required": list(closed["properties"]), "additionalProperties": False}
    return closed
