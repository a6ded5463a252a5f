"""Reading replies: from the text of a model to a plan or a decision.

Numbers are sections of docs/coop2.md.  Nothing but `Unreadable` is raised, whatever the text.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from jaxcoop.agents.llm.coop2 import schemas_cube, schemas_macrafter
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan, specification
from jaxcoop.agents.llm.coop2.schemas import InterruptReply
from jaxcoop.core.registry import unknown
from jaxcoop.planning.request import Reply

Profile = Literal["cube", "macrafter"]
Kind = Literal["plan", "interrupt"]

MAX_REPLY = 200_000
"""Characters of a reply that are read: no plan is as long, and a runaway one must not hold up the others."""

MAX_REASON = 300
"""Characters kept of why a reply cannot be read."""

_FENCED = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)

M = TypeVar("M", bound=BaseModel)


class Unreadable(ValueError):  # noqa: N818  (named for what it says of the reply)
    """A reply that is no plan or no decision; the text says why."""


@dataclasses.dataclass(frozen=True)
class TextDecision:
    """What an interrupted agent decided."""

    decision: Literal["resume", "replan"]
    plan: TextPlan | None = None  # with replan, if the reply holds one
    reasoning: str = ""


@dataclasses.dataclass(frozen=True)
class _Form:
    """How the replies of one world look."""

    plan: type[BaseModel]
    typed_plan: type[BaseModel]
    finish: Callable[[Any], TextPlan]
    fallback: TextPlan


def json_text(text: str) -> str:
    """6.2: the part of a reply that should be JSON: the first fenced block, else all between the outermost braces."""
    fenced = _FENCED.search(text)
    if fenced:
        return fenced[1].strip()
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def read_plan(profile: Profile, text: str, *, require_action_type: bool = False) -> TextPlan:
    """6.3: the plan of a reply.  Raises `Unreadable`.

    `require_action_type` refuses operations that leave it out, which otherwise get the type that fits best.
    """
    form = _form(profile)
    model = form.typed_plan if require_action_type else form.plan
    return form.finish(_validated(model, text))


def read_decision(profile: Profile, text: str, *, require_action_type: bool = False) -> TextDecision:
    """6.3: the decision of a reply.  Raises `Unreadable`; `require_action_type` as in `read_plan`."""
    form = _form(profile)
    model = form.typed_plan if require_action_type else form.plan
    reply = _validated(InterruptReply[model], text)
    plan = None if reply.new_plan is None else form.finish(reply.new_plan)
    return TextDecision(reply.decision.value, plan, reply.reasoning)


def read_text(text: str) -> str:
    """The message of a text call.  Raises `Unreadable` for a blank one."""
    message = text[:MAX_REPLY].strip()
    if not message:
        raise Unreadable("the reply is blank; a message was asked for")
    return message


def fallback_plan(profile: Profile) -> TextPlan:
    """6.2: the plan of an agent whose plan call failed."""
    return _form(profile).fallback


def reply_model(profile: Profile, kind: Kind) -> type[BaseModel]:
    """The model whose schema is shown for a kind of call."""
    form = _form(profile)
    return form.plan if kind == "plan" else InterruptReply[form.plan]


def malformed(
    profile: Profile, kind: Literal["plan", "interrupt", "text"], *, require_action_type: bool = False
) -> Callable[[Reply], str | None]:
    """What a request's `malformed` takes: why a reply cannot be read, or None.  With it a hub can ask again."""

    def why(reply: Reply) -> str | None:
        try:
            if kind == "text":
                read_text(reply.text)
            elif kind == "plan":
                read_plan(profile, reply.text, require_action_type=require_action_type)
            else:
                read_decision(profile, reply.text, require_action_type=require_action_type)
        except Unreadable as err:
            return str(err)
        return None

    return why


def _validated(model: type[M], text: str) -> M:
    try:
        data = json.loads(json_text(text[:MAX_REPLY]))
    except (ValueError, RecursionError) as err:
        raise Unreadable(f"no JSON: {str(err)[:MAX_REASON]}") from None
    try:
        return model.model_validate(data)
    except ValidationError as err:
        raise Unreadable(_reason(err)) from None


def _reason(err: ValidationError) -> str:
    """The faults as `place: what is wrong`, without those of types that an operation does not claim to be."""
    faults = err.errors(include_url=False, include_input=False, include_context=False)
    others = {fault["loc"][:-1] for fault in faults if fault["loc"][-1:] == ("action_type",)}
    found = []
    for fault in faults:
        if fault["loc"][:-1] not in others:
            found.append(f"{'.'.join(map(str, fault['loc'])) or 'reply'}: {fault['msg']}")
    if not found:
        found = [f"{'.'.join(map(str, place[:-1]))}: no such action_type" for place in sorted(others, key=str)[:1]]
    return "; ".join(found)[:MAX_REASON]


def _form(profile: str) -> _Form:
    if profile not in _FORMS:
        raise unknown("profile", profile, _FORMS)
    return _FORMS[profile]


def _arguments(action: BaseModel) -> dict[str, Any]:
    """Arguments of a validated operation, words as plain text."""
    return {name: getattr(value, "value", value) for name, value in action if name != "action_type"}


def _finish_cube(reply: schemas_cube.PlanReply) -> TextPlan:
    task, number = reply.task.task.value, reply.task.block_id
    return TextPlan(
        specification=specification(task, "block", number),
        actions=tuple(Operation(action.action_type, _arguments(action)) for action in reply.actions),
        task=task,
        target="block",
        number=number,
        reasoning=reply.reasoning,
    )


def _finish_macrafter(reply: schemas_macrafter.PlanReply) -> TextPlan:
    """6.3, post-processing: collects get the ids of the task, and a plan ends with what its task is called after."""
    task, target, number = reply.task.task.value, reply.task.object_type, reply.task.object_id
    actions = [_renamed(Operation(action.action_type, _arguments(action))) for action in reply.actions]
    last = _terminal(task)
    name = next(iter(last.args))
    if not any(action.kind == last.kind and action.args[name] == last.args[name] for action in actions):
        actions.append(last)
    if last.kind == "collect":
        ids = {"resource_type": target, "task_id": number, "target_id": number, "item_id": number}
        actions = [
            Operation(action.kind, {**action.args, **ids})
            if action.kind == "collect" and action.args["target"] == last.args["target"]
            else action
            for action in actions
        ]
    return TextPlan(specification(task, target, number), tuple(actions), task, target, number, reply.reasoning)


def _renamed(action: Operation) -> Operation:
    """What is placed or crafted is called `object_type` from here on."""
    if action.kind not in ("place", "craft"):
        return action
    return Operation(action.kind, {"object_type": action.args["item"]})


def _terminal(task: str) -> Operation:
    """The operation that a task is called after, without options."""
    verb, _, thing = task.partition("_")
    if verb == "collect":
        return Operation("collect", {"target": thing})
    return Operation("craft" if verb == "make" else "place", {"object_type": thing})


_FORMS: dict[str, _Form] = {
    "cube": _Form(
        plan=schemas_cube.PlanReply,
        typed_plan=schemas_cube.TypedPlanReply,
        finish=_finish_cube,
        fallback=TextPlan(
            "Fallback: move towards blocks",
            (
                Operation("move", {"direction": "right", "num_steps": 2}),
                Operation("move", {"direction": "down", "num_steps": 1}),
            ),
        ),
    ),
    "macrafter": _Form(
        plan=schemas_macrafter.PlanReply,
        typed_plan=schemas_macrafter.TypedPlanReply,
        finish=_finish_macrafter,
        fallback=TextPlan(
            "Fallback exploration",
            (Operation("move", {"direction": "left", "num_steps": 2}), Operation("collect", {"target": "wood"})),
        ),
    ),
}
