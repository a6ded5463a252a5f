"""Replies of models in cognitive teams: what recorded ones do not reach, and plans as rows of skills and back."""

import json

import numpy as np
import pytest

from jaxcoop.agents.llm.coop2 import words_macrafter
from jaxcoop.agents.llm.coop2.parsing import (
    MAX_REPLY,
    TextDecision,
    Unreadable,
    fallback_plan,
    json_text,
    malformed,
    read_decision,
    read_plan,
    read_text,
    reply_model,
)
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan
from jaxcoop.agents.llm.coop2.schemas import MessageReply, prompt_schema, provider_schema
from jaxcoop.agents.llm.coop2.words import TASKS, operation, plan_words, spec_words, text_plan
from jaxcoop.core.registry import make
from jaxcoop.envs.cube import guidance as cube_guidance
from jaxcoop.envs.cube.skills import Op as CubeOp
from jaxcoop.envs.cube.vocabulary import CubeVocabulary
from jaxcoop.envs.macrafter import goals
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import Action, Item, Material, Thing
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary
from jaxcoop.planning.request import Reply

VOCABULARIES = {
    "cube": CubeVocabulary(make("cube", agents=3), TASKS["cube"]),
    "macrafter": MACrafterVocabulary(make("macrafter", agents=3), TASKS["macrafter"]),
}


def cube(*actions, task=None):
    task = {"task": "push_block", "block_id": 2} if task is None else task
    return json.dumps({"task": task, "actions": list(actions), "reasoning": "r"})


def macrafter(*actions, task=("collect_wood", "tree", 7)):
    spec = dict(zip(("task", "object_type", "object_id"), task))
    return json.dumps({"task": spec, "actions": list(actions), "reasoning": "r"})


def first(plan):
    return plan.actions[0].kind, dict(plan.actions[0].args)


@pytest.mark.parametrize(
    "text, found",
    [
        ('a {"x": 1} b', '{"x": 1}'),
        ("```\n[1]\n``` {2}", "[1]"),
        ("```json{1}```", "{1}"),
        ("``` {1} ``` ``` {2} ```", "{1}"),
        ("```json {1}", "{1}"),
        ("} {", "} {"),
        ("", ""),
    ],
)
def test_json_is_the_first_fence_or_what_is_between_the_outermost_braces(text, found):
    assert json_text(text) == found


@pytest.mark.parametrize(
    "fields, kind",
    [
        ({}, "noop"),
        ({"direction": "up", "num_steps": 7}, "wait"),  # beyond the limit of move
        ({"direction": "up", "num_steps": "3", "block_id": 2}, "move"),  # both converted: the earlier one
        ({"num_steps": 2, "block_id": 2, "timeout": 9}, "push"),
        ({"entity_type": "wall", "entity_id": 0, "num_steps": 2}, "navigate"),
    ],
)
def test_a_missing_type_is_the_one_that_takes_most_fields(fields, kind):
    assert first(read_plan("cube", cube(fields)))[0] == kind


def test_nothing_at_all_is_sleep_in_the_crafting_world():
    assert first(read_plan("macrafter", macrafter({})))[0] == "sleep"


@pytest.mark.parametrize(
    "profile, text", [("cube", cube({"num_steps": 2})), ("macrafter", macrafter({"target": "wood"}))]
)
def test_types_can_be_required(profile, text):
    assert read_plan(profile, text).actions
    with pytest.raises(Unreadable, match=r"actions\.0"):
        read_plan(profile, text, require_action_type=True)
    decision = json.dumps({"decision": "replan", "reasoning": "r", "new_plan": json.loads(text)})
    assert read_decision(profile, decision).plan
    with pytest.raises(Unreadable, match="new_plan"):
        read_decision(profile, decision, require_action_type=True)
    named = cube({"action_type": "wait", "num_steps": "2"})
    assert read_plan("cube", named, require_action_type=True) == read_plan("cube", named)


@pytest.mark.parametrize(
    "action, number",
    [
        ({"action_type": "navigate", "entity_type": "block", "entity_id": 3}, 3),
        ({"action_type": "push", "block_id": "5", "num_steps": 1}, 5),
    ],
)
def test_a_bare_task_takes_the_first_block_of_the_operations(action, number):
    others = [
        {"action_type": "navigate", "entity_type": "agent", "entity_id": 9},
        action,
        {"action_type": "push", "block_id": 8, "num_steps": 1},
    ]
    plan = read_plan("cube", cube(*others, task="coordinate"))
    assert (plan.specification, plan.number) == (f"coordinate(block#{number})", number)


@pytest.mark.parametrize(
    "text, why",
    [
        ("[" * 100_000, "no JSON"),
        ('{"a": ' * 50_000 + "}", "no JSON"),
        ("9" * 5000, "no JSON"),
        ("[]", "reply: "),
        ("null", "reply: "),
        ('"text"', "reply: "),
        (cube({"action_type": "move", "direction": "up", "num_steps": 6}), "num_steps"),
        (cube({"action_type": "fly"}), "no such action_type"),
        (cube({"action_type": "wait", "num_steps": 2.5}), "num_steps"),
        (cube({"action_type": "push", "block_id": -1, "num_steps": 2}), "block_id"),
        (cube({"action_type": "navigate", "entity_type": "block", "entity_id": 1, "timeout": 101}), "timeout"),
        (cube(task=7), "task"),
        (cube({"num_steps": 1})[:-1] + "}" * MAX_REPLY, "no JSON"),
    ],
)
def test_what_cannot_be_read_is_named(text, why):
    with pytest.raises(Unreadable, match=why) as error:
        read_plan("cube", text)
    assert len(str(error.value)) < 400


def test_only_faults_of_the_named_type_are_told():
    with pytest.raises(Unreadable) as error:
        read_plan("cube", cube({"action_type": "push", "num_steps": 11}))
    assert "block_id" in str(error.value) and "direction" not in str(error.value)


def test_decisions_are_read():
    assert read_decision("cube", '{"decision": "resume", "reasoning": "fits"}') == TextDecision("resume", None, "fits")
    with pytest.raises(Unreadable, match="new_plan"):
        read_decision("cube", '{"decision": "replan", "reasoning": "r", "new_plan": {"task": "wait"}}')


def test_messages_are_stripped_and_blank_ones_refused():
    assert read_text("  go right \n") == "go right"
    with pytest.raises(Unreadable, match="blank"):
        read_text(" \n")


def test_hubs_are_told_why_a_reply_is_refused():
    assert malformed("cube", "plan")(Reply(cube())) is None
    assert "no JSON" in (malformed("cube", "interrupt")(Reply("hm")) or "")
    assert "blank" in (malformed("macrafter", "text")(Reply("")) or "")
    untyped = Reply(cube({"num_steps": 1}))
    assert malformed("cube", "plan")(untyped) is None
    assert malformed("cube", "plan", require_action_type=True)(untyped)


def test_matching_collects_get_the_ids_of_the_task():
    plan = read_plan("macrafter", macrafter({"action_type": "collect", "target": "wood", "steps": 5}))
    assert first(plan) == (
        "collect",
        {"target": "wood", "steps": 5, "resource_type": "tree", "task_id": 7, "target_id": 7, "item_id": 7},
    )
    assert len(plan.actions) == 1
    assert plan.actions[0].text() == "collect(target=wood, steps=5, item_id=7)"


@pytest.mark.parametrize("verb, kind, thing", [("make", "craft", "iron_pickaxe"), ("place", "place", "table")])
def test_plans_end_with_what_their_task_is_called_after(verb, kind, thing):
    task = (f"{verb}_{thing}", "grass", 1)
    last = {"action_type": kind, "item": thing}
    appended = read_plan("macrafter", macrafter(task=task))
    assert appended.actions == (Operation(kind, {"object_type": thing}),)
    assert read_plan("macrafter", macrafter(last, task=task)).actions == appended.actions


def test_fallback_plans_are_for_nothing_and_can_be_played():
    right, down = plan_words("cube", fallback_plan("cube"), 6).ops[:2].tolist()
    assert (right, down) == ([CubeOp.MOVE, 4, 2, -1], [CubeOp.MOVE, 2, 1, -1])
    words = plan_words("macrafter", fallback_plan("macrafter"), 3)
    assert words.ops.tolist() == [
        [Op.MOVE, Action.MOVE_LEFT, 2, -1, -1],
        [Op.COLLECT, Item.WOOD, -1, -1, -1],
        [-1] * 5,
    ]
    assert words.spec.tolist() == [-1, -1, -1] and words.length == 2
    for profile in ("cube", "macrafter"):
        words = plan_words(profile, fallback_plan(profile), 4)
        assert text_plan(VOCABULARIES[profile], words.spec, words.ops, words.length) == fallback_plan(profile)


def test_cube_operations_become_rows():
    text = cube(
        {"action_type": "move", "direction": "left", "num_steps": 3},
        {"action_type": "navigate", "entity_type": "wall", "entity_id": 1},
        {"action_type": "navigate", "entity_type": "goal", "entity_id": 10**30, "timeout": 4},
        {"action_type": "push", "block_id": 2, "num_steps": 10},
        {"action_type": "noop"},
    )
    words = plan_words("cube", read_plan("cube", text), 8)
    assert words.spec.tolist() == [0, 2, -1] and (words.length, words.is_cut) == (5, False)
    assert words.ops.dtype == np.int32 and words.ops.shape == (8, 4)
    assert words.ops[:5].tolist() == [
        [CubeOp.MOVE, 3, 3, -1],
        [CubeOp.NAVIGATE, -1, 1, 30],  # a wall has no target
        [CubeOp.NAVIGATE, 2, 2**31 - 1, 4],
        [CubeOp.PUSH, 2, 10, -1],
        [CubeOp.NOOP, -1, -1, -1],
    ]
    assert (words.ops[5:] == -1).all()


@pytest.mark.parametrize(
    "action, row",
    [
        (Operation("sleep", {}), [Op.SLEEP, -1, -1, -1, -1]),
        (Operation("move", {"direction": "down", "num_steps": 2}), [Op.MOVE, Action.MOVE_DOWN, 2, -1, -1]),
        (
            Operation("navigate", {"object_type": "Tree", "item_id": 7, "timeout": 9}),
            [Op.NAVIGATE, Material.TREE, 7, 9, -1],
        ),
        (Operation("navigate", {"object_type": "agent_1", "item_id": 70, "radius": 2}), [Op.NAVIGATE, 13, 70, -1, 2]),
        (
            Operation("navigate", {"object_type": "unicorn", "item_id": 7}),
            [Op.NAVIGATE, Material.NONE, 7, -1, -1],
        ),
        (Operation("collect", {"target": "food", "item_id": 80, "steps": 2}), [Op.COLLECT, Item.FOOD, 80, 2, -1]),
        (
            Operation("collect", {"target": "coal", "task_id": 0, "target_id": "12", "item_id": 5}),
            [Op.COLLECT, Item.COAL, 12, -1, -1],
        ),
        (Operation("craft", {"object_type": "iron_pickaxe"}), [Op.CRAFT, Action.MAKE_IRON_PICKAXE, -1, -1, -1]),
        (Operation("place", {"object_type": "furnace"}), [Op.PLACE, 2, -1, -1, -1]),
        (
            Operation("share", {"recipient_agent_id": "agent_2", "resource_type": "wood_pickaxe", "quantity": 1}),
            [Op.SHARE, 2, Item.WOOD_PICKAXE, 1, -1],
        ),
        (
            Operation("share", {"recipient_agent_id": "the leader", "resource_type": "gold", "quantity": 1}),
            [Op.SHARE, -1, -1, 1, -1],
        ),
        (Operation("dance", {}), [len(Op), -1, -1, -1, -1]),
    ],
)
def test_macrafter_operations_become_rows(action, row):
    assert words_macrafter.op_row(action) == row


@pytest.mark.parametrize(
    "action",
    [
        Operation("move", {"direction": "up", "num_steps": 2}),
        Operation("navigate", {"object_type": "cow", "item_id": 80, "timeout": 9, "radius": 1}),
        Operation("collect", {"target": "wood", "item_id": 7, "steps": 3}),
        Operation("craft", {"object_type": "stone_pickaxe"}),
        Operation("place", {"object_type": "table"}),
        Operation("share", {"recipient_agent_id": "agent_2", "resource_type": "wood", "quantity": 4}),
        Operation("noop", {}),
    ],
)
def test_rows_of_the_crafting_world_say_what_they_were_made_of(action):
    assert operation(VOCABULARIES["macrafter"], words_macrafter.op_row(action)) == action


@pytest.mark.parametrize(
    "kind, code", [("tree", Material.TREE), ("Wood", Material.TREE), ("cow", Thing.COW), ("food", Thing.COW), ("xy", 0)]
)
def test_what_a_plan_is_about_may_be_called_after_its_yield(kind, code):
    plan = read_plan("macrafter", macrafter(task=("collect_stone", kind, 9)))
    assert plan.specification == f"collect_stone({kind}#9)"
    assert spec_words("macrafter", plan).tolist() == [1, code, 9]


@pytest.mark.parametrize("number, word", [(10**30, 2**31 - 1), (-(10**30), -(2**31)), (-7, -7)])
def test_ids_that_are_too_large_for_words_are_cut(number, word):
    plan = read_plan("macrafter", macrafter(task=("collect_wood", "tree", number)))
    assert spec_words("macrafter", plan).tolist() == [0, Material.TREE, word]
    assert plan_words("macrafter", plan, 2).ops[0].tolist() == [Op.COLLECT, Item.WOOD, word, -1, -1]
    assert str(number) in plan.specification


def test_plans_of_words_are_named_again():
    plan = read_plan("macrafter", macrafter({"action_type": "noop"}))
    words = plan_words("macrafter", plan, 4)
    again = text_plan(VOCABULARIES["macrafter"], words.spec, words.ops, words.length)
    assert again.specification == plan.specification
    assert [action.kind for action in again.actions] == ["noop", "collect"]


def test_tasks_are_numbered_as_the_environments_number_them():
    assert (TASKS["cube"], TASKS["macrafter"]) == (cube_guidance.TASKS, goals.TASKS)


def test_long_plans_are_cut_and_say_so():
    plan = TextPlan("s", tuple(Operation("wait", {"num_steps": k}) for k in range(1, 9)))
    words = plan_words("cube", plan, 6)
    assert words.is_cut and words.length == 6 and words.ops[:, 1].tolist() == [1, 2, 3, 4, 5, 6]
    assert not plan_words("cube", plan, 8).is_cut
    with pytest.raises(ValueError, match="ops is 0; allowed: 1 or more"):
        plan_words("cube", plan, 0)


def test_unknown_profiles_are_refused():
    for call in (lambda: read_plan("cubes", "{}"), lambda: plan_words("cubes", TextPlan("s", ()), 1)):
        with pytest.raises(ValueError, match="did you mean 'cube'"):
            call()


@pytest.mark.parametrize("profile", ["cube", "macrafter"])
@pytest.mark.parametrize("kind", ["plan", "interrupt"])
def test_schemas_ask_for_the_type_and_close_for_providers(profile, kind):
    shown = prompt_schema(reply_model(profile, kind))
    assert "title" not in json.dumps(shown)
    assert shown["$defs"]["Move"]["required"] == ["action_type", "direction", "num_steps"]
    assert shown["$defs"]["Move"]["properties"]["num_steps"] == {"maximum": 5, "minimum": 1, "type": "integer"}
    assert shown["$defs"]["Navigate"]["properties"]["timeout"]["default"] == 30

    def check(node):
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["required"] == list(node["properties"]) and node["additionalProperties"] is False
            assert "default" not in node and (("$ref" not in node) or len(node) == 1)
            for entry in node.values():
                check(entry)
        elif isinstance(node, list):
            for entry in node:
                check(entry)

    check(provider_schema(reply_model(profile, kind)))


def test_messages_have_a_schema_too():
    assert prompt_schema(MessageReply)["required"] == ["recipients", "content", "reasoning"]
