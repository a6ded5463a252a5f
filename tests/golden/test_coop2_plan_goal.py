"""Recorded outcomes of MA-Crafter plans: whether a plan has failed although all its ops succeeded."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from coop2_cases import of_group

from jaxcoop.envs.macrafter.env import MACrafter
from jaxcoop.envs.macrafter.goal_text import goal_missed, task_name
from jaxcoop.envs.macrafter.goals import NAMES, missed, no_progress, progress
from jaxcoop.envs.macrafter.ids import KINDS
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import PLACES, Achievement, Item, Material

CASES = pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("macrafter.plan_goal"))
ENV = MACrafter(agents=1, width=5, height=5)
NOBODY = jnp.zeros(0, jnp.int16)


@CASES
def test_coop2_plan_goals_are_judged_by_their_texts(case):
    given = case["input"]
    assert goal_missed(given["specification"], given["outcomes"]) == case["expected"]["plan_fails"]


@jax.jit
def seen(before, changes):
    """Progress of a step with these changes of `last` and inventory, done by an op row."""
    last = dataclasses.replace(before.last, **changes["last"])
    after = dataclasses.replace(before, inventory=before.inventory + changes["inventory"], last=last)
    return progress(before, after, changes["op"])


@pytest.fixture(scope="module")
def start():
    ground = jnp.full((5, 5), Material.GRASS, jnp.uint8)
    state = ENV.start(ground, NOBODY, NOBODY, jnp.array([2], jnp.int16), jnp.array([2], jnp.int16))
    return dataclasses.replace(state, inventory=state.inventory.at[:, Item.WOOD].set(5))


def bit(number, dtype):
    return jnp.array([1 << number], dtype)


def changes_of(effects):
    """What the effects of an outcome are in a state; they happen to an agent that collects or places."""
    inventory = jnp.zeros((1, len(Item)), jnp.int8)
    risen, took, op, status = jnp.zeros(1, jnp.uint32), jnp.zeros(1, jnp.uint16), [Op.COLLECT, -1], 1
    gains = dict(effects.get("inventory_delta", {}))
    for collection in effects.get("collections", []):
        gains |= collection.get("received", {})
        if "resource_type" in collection:
            took |= bit(KINDS[collection["resource_type"]], jnp.uint16)
    for name, amount in gains.items():
        inventory = inventory.at[0, Item[name.upper()]].add(amount)
    for name in effects.get("achievement_delta", {}):
        risen |= bit(Achievement[name.upper()], jnp.uint32)
    for result in effects.get("place_results", []):
        op, status = [Op.PLACE, PLACES.index(result["object_type"].lower())], int(result["success"])
    row = jnp.array([[*op, -1, -1, -1]], jnp.int32)
    return {
        "inventory": inventory,
        "op": row,
        "last": {"risen": risen, "took": took, "status": jnp.array([status], jnp.int8)},
    }


@CASES
def test_coop2_plan_goals_are_judged_alike_on_the_device(case, start):
    bits = no_progress(1)
    for outcome in case["input"]["outcomes"]:
        bits |= seen(start, changes_of((outcome or {}).get("effects", {})))
    name = task_name(case["input"]["specification"])
    number = NAMES.index(name) if name in NAMES else -1
    assert bool(missed(jnp.array([[number, -1, -1]], jnp.int32), bits)[0]) == case["expected"]["plan_fails"]
