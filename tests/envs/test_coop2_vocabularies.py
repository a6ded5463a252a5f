"""How the worlds of COOP² are put into words in logs."""

import pytest

from jaxcoop.cognition.metrics import cube_target, resource_category
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube.vocabulary import CubeVocabulary
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.skills import OPS, REASONS
from jaxcoop.envs.macrafter.types import Item, Material, Reason, Thing
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary

CUBE = CubeVocabulary(Cube(blocks="3:1,1:2"), ("push_block", "coordinate", "wait", "Fallback"))
CRAFTER = MACrafterVocabulary(MACrafter(width=12, height=10), ("collect_coal", "make_wood_pickaxe"))


@pytest.mark.parametrize(
    ("words", "text"),
    [((0, 2, -1), "push_block(block#2)"), ((2, 0, -1), "wait(block#0)"), ((3, -1, -1), "Fallback"), ((-1, -1, -1), "")],
)
def test_specifications_of_cube(words, text):
    assert CUBE.spec(words) == text


def test_tasks_of_cube_are_faces_of_blocks_and_targets_their_weights():
    task = CUBE.task(4 * 0 + 2, 3)
    assert (task.id, task.type, task.required, task.place) == ("block_0_left", "weight_3", 3, None)
    assert task.details == {"block_id": 0, "face": "left"}
    assert CUBE.task(4 * 2 + 3, -1).id == "block_2_right"
    assert CUBE.targets == ("weight_3", "weight_1")
    assert all(cube_target(name) == name for name in CUBE.targets)


def test_focus_of_cube_is_the_weight_else_the_op():
    assert CUBE.focus((0, 0, -1), (2, 0, 4, 2), 3) == "weight_3"
    assert CUBE.focus((0, 0, -1), (2, 0, 4, 2), -1) == "block"
    assert CUBE.focus((0, 0, -1), (1, 3, -1, -1), -1) == "wait"
    assert CUBE.op((2, 0, 4, 2)) == {"action_type": "push", "block_id": 0, "num_steps": 4, "face": "left"}
    assert CUBE.op((-1, -1, -1, -1)) == {"action_type": "noop"}
    assert CUBE.reason(1) == "insufficient_force" and CUBE.reason(99) == ""


def test_tasks_of_macrafter_have_the_ids_that_planners_write():
    slot = 3 * 10 + 4
    task = CRAFTER.task(slot, Material.COAL)
    assert (task.type, task.required, task.tool, task.place) == ("coal", 2, "wood_pickaxe", (3, 4))
    op = CRAFTER.op((3, Item.COAL, slot + 1, -1, -1))
    assert op == {"action_type": "collect", "target": "coal", "item_id": int(task.id)}
    assert CRAFTER.task(slot, Material.TREE).tool is None
    assert CRAFTER.task(slot, -1).id == task.id and CRAFTER.task(slot, -1).type == ""


@pytest.mark.parametrize(
    ("row", "action"),
    [
        ((0, -1, -1, -1, -1), {"action_type": "noop"}),
        ((1, 4, 2, -1, -1), {"action_type": "move", "direction": "down", "num_steps": 2}),
        ((2, Thing.COW, 130, 9, 1), {"action_type": "navigate", "object_type": "cow", "item_id": 130, "timeout": 9,
                                     "radius": 1}),
        ((4, 11, -1, -1, -1), {"action_type": "craft", "object_type": "wood_pickaxe"}),
        ((5, 2, -1, -1, -1), {"action_type": "place", "object_type": "furnace"}),
        ((7, 1, Item.WOOD, 3, -1), {"action_type": "share", "recipient_agent_id": "agent_1", "resource_type": "wood",
                                    "quantity": 3}),
        ((9, -1, -1, -1, -1), {"action_type": "noop"}),
    ],
)  # fmt: skip
def test_ops_of_macrafter(row, action):
    assert CRAFTER.op(row) == action


def test_focus_of_macrafter_comes_from_the_op_then_from_the_specification():
    coal = (0, Material.COAL, 35)
    assert CRAFTER.focus(coal, (3, Item.FOOD, -1, -1, -1), Material.COAL) == "survival"
    assert CRAFTER.focus(coal, (2, Material.TREE, 5, -1, -1), Material.COAL) == "wood"
    assert CRAFTER.focus(coal, (4, 11, -1, -1, -1), -1) == "tools"
    assert CRAFTER.focus(coal, (1, 2, 1, -1, -1), Material.COAL) == "coal"
    assert CRAFTER.focus((-1, -1, -1), (6, -1, -1, -1, -1), -1) == "other"
    assert CRAFTER.spec(coal) == "collect_coal(coal#35)" and CRAFTER.spec((1, -1, -1)) == "make_wood_pickaxe"
    assert all(resource_category(name) == name for name in CRAFTER.targets)


def test_every_op_and_reason_of_macrafter_has_words():
    assert all(CRAFTER.op((kind, -1, -1, -1, -1))["action_type"] == op.name for kind, op in enumerate(OPS))
    assert CRAFTER.reason(Reason.NO_PATH) == REASONS[Reason.NO_PATH] and CRAFTER.reason(0) == ""
    assert CRAFTER.item(Item.IRON_PICKAXE) == "iron_pickaxe"
