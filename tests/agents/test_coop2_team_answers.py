"""From replies to answer words and events, and from an open repair channel to its request."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_desk import AGENTS, Desk
from coop2_facts import crafter_scene

from jaxcoop.agents.llm.coop2.answers import answer_words, read_answer, with_statement
from jaxcoop.agents.llm.coop2.catalogue import example_plan
from jaxcoop.agents.llm.coop2.events import thought, thought_columns
from jaxcoop.agents.llm.coop2.facts import Role
from jaxcoop.agents.llm.coop2.texts import Kind, as_json
from jaxcoop.agents.llm.coop2.tool_hints import stations_near, tools_planned
from jaxcoop.cognition.config import LONGEST_MS
from jaxcoop.cognition.process import answer_of
from jaxcoop.cognition.thinking import HEAD
from jaxcoop.cognition.types import Call, PlanStatus, Verdict
from jaxcoop.cooperation.constraints import SCORED, Constraint
from jaxcoop.envs.macrafter.goals import NAMES
from jaxcoop.envs.macrafter.guidance import planned_tools
from jaxcoop.envs.macrafter.repair import team_of
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.tools import TOOL_CRAFTS, TOOL_ITEMS
from jaxcoop.envs.macrafter.types import Item, Material
from jaxcoop.planning import Status
from jaxcoop.planning.request import Answer, Reply

PLAN = {
    "task": {"task": "push_block", "block_id": 1},
    "actions": [{"action_type": "navigate", "entity_type": "block", "entity_id": 1}, {"action_type": "noop"}],
    "reasoning": "because",
}
OPS, WIDTH = 4, 4


def read(kind, text, *, status=Status.OK, seconds=0.0, profile="cube", role="independent", strict=False):
    reply = None if text is None else Reply(text if isinstance(text, str) else json.dumps(text), seconds=seconds)
    answer = Answer(reply, status, lost_s=seconds)
    return read_answer(profile, Desk(profile).row(kind=int(kind)), Role(role), answer, require_action_type=strict)


def words(found):
    """The words of an answer as the engine takes them."""
    row = answer_words("cube", OPS, found)
    assert row.dtype == np.int32 and len(row) == HEAD + OPS * WIDTH + 1
    return answer_of(jnp.asarray(row)[None], OPS, WIDTH), int(row[-1])


def test_a_plan_becomes_rows_of_skills_with_its_time():
    found = read(Call.PLAN, PLAN, seconds=1.2345)
    answer, status = words(found)
    assert (found.verdict, status, found.reasoning) == (Verdict.OK, Status.OK, "because")
    assert answer.latency[0] == 1234 and answer.plan.length[0] == 2
    assert answer.plan.spec[0].tolist() == [0, 1, -1]
    assert answer.plan.ops[0].tolist() == [[3, 0, 1, 30], [4, -1, -1, -1], [-1] * 4, [-1] * 4]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ({"decision": "resume", "reasoning": ""}, Verdict.RESUME),
        ({"decision": "replan", "reasoning": ""}, Verdict.REPLAN_EMPTY),
        ({"decision": "replan", "reasoning": "", "new_plan": PLAN}, Verdict.REPLAN),
        ("I would rather go on.", Verdict.ERROR),
    ],
)
def test_decisions_have_their_verdicts(reply, verdict):
    found = read(Call.DECIDE, reply)
    assert found.verdict == verdict and (found.plan is not None) == (verdict == Verdict.REPLAN)
    assert (found.status == Status.MALFORMED) == (verdict == Verdict.ERROR)


@pytest.mark.parametrize("status", [Status.FALLBACK, Status.MISSING])
def test_calls_that_failed_have_the_fixed_texts_and_plans(status):
    plan, text, said, decided = (read(k, None, status=status, role="follower") for k in (1, 0, 3, 2))
    assert {r.verdict for r in (plan, text, said, decided)} == {Verdict.ERROR} and plan.status == status
    assert plan.plan.specification == "Fallback: move towards blocks"
    assert text.text == "agent_1: understood, I will plan accordingly."
    assert "could not make a statement" in said.text
    assert decided.plan is None and decided.text is None


def test_a_reply_that_the_hub_found_malformed_is_not_read_and_its_time_counts():
    found = read(Call.PLAN, PLAN, status=Status.MALFORMED, seconds=0.5)
    assert (found.verdict, found.status, found.latency_ms) == (Verdict.ERROR, Status.MALFORMED, 500)


def test_blank_texts_have_failed_and_others_are_trimmed():
    assert read(Call.TEXT, " \n").status == Status.MALFORMED
    assert read(Call.STATEMENT, " I push. \n").text == "I push."


def test_times_stay_in_their_range():
    assert read(Call.TEXT, "x", seconds=1e12).latency_ms == LONGEST_MS
    assert read(Call.TEXT, None, status=Status.FALLBACK, seconds=2.0).latency_ms == 2000


def test_a_type_that_is_left_out_is_refused_only_when_asked_to():
    reply = {**PLAN, "actions": [{"direction": "left", "num_steps": 2}]}
    assert read(Call.PLAN, reply).status == Status.OK
    assert read(Call.PLAN, reply, strict=True).status == Status.MALFORMED


def test_events_say_what_was_decided_and_whether_the_plan_was_cut():
    long = {**PLAN, "actions": [{"action_type": "noop"}] * (OPS + 1)}
    row = Desk().row(kind=int(Call.PLAN), step=7, call=2)
    events = [thought(row, read(Call.PLAN, reply), OPS) for reply in (long, PLAN)]
    columns = thought_columns(events)
    assert columns["is_cut"].tolist() == [True, False] and columns["operations"].tolist() == [OPS + 1, 2]
    assert columns["said"].tolist() == ["push_block(block#1)"] * 2 and columns["reasoning"][0] == "because"
    assert columns["step"].dtype == np.int32 and columns["call"].tolist() == [2, 2]
    assert thought_columns([])["said"].shape == (0,)


def channel(desk, slot, kind, *, failed, scores=(1.0, 1.0, 1.0), required=2):
    """Fields of an open channel: agents 0 and 2 act on one task, the former with its op 1, the latter with its op 0."""
    count = AGENTS * OPS
    task = np.full(count, -1, np.int32)
    rows = [1, 2 * OPS]
    task[rows] = slot
    first = np.zeros(count, np.bool_)
    first[1] = True
    flags = np.zeros((count, 3), np.bool_)
    flags[rows] = [c in failed for c in SCORED]
    named = np.zeros((count, 3), np.bool_)
    named[2 * OPS] = True
    width = desk.setup.domain.skills.width
    return {
        "kind": np.int32(Call.STATEMENT),
        "channel.task": task,
        "channel.first": first,
        "channel.required": np.where(task >= 0, required, 0),
        "channel.kind": np.where(task >= 0, kind, -1),
        "channel.checked": np.repeat((task >= 0)[:, None], 3, 1),
        "channel.score": np.full((count, 3), [round(1000 * s) for s in scores], np.int32),
        "channel.failed": flags,
        "channel.named": named,
        "channel.members": np.array([True, False, True]),
        "channel.advised": np.array([False, False, True]),
        "channel.target": np.int32(slot),
        "channel.spec": np.full((AGENTS, 3), -1, np.int32),
        "channel.ops": np.full((AGENTS, OPS, width), -1, np.int32),
        "channel.length": np.zeros(AGENTS, np.int32),
        "plans.ops": np.full((AGENTS, OPS, width), -1, np.int32),
        "plans.length": np.zeros(AGENTS, np.int32),
    }


def requests_of(desk, state, fields):
    return desk.adapter._requests.request(desk.row(**fields), state)


def crafter_channel(failed):
    """An open channel about coal, its row's agent 2, and the state of its world."""
    desk = Desk("macrafter", agent=2)
    ops = np.full((AGENTS, OPS, desk.setup.domain.skills.width), -1, np.int32)
    ops[2, 0, :3] = Op.COLLECT, Item.COAL, 30
    fields = channel(desk, 29, int(Material.COAL), failed=failed, scores=(1 / 3, 0.5, 0.0), required=3)
    fields["channel.ops"], fields["channel.length"] = ops, np.array([0, 0, 1])
    fields["channel.spec"][2] = NAMES.index("collect_coal"), Material.COAL, 30
    for agent in (0, 2):
        desk.put(Kind.PLAN, agent, 1, as_json(example_plan("macrafter")))
        desk.fields["plans.number"][agent] = 1
    desk.fields["plans.status"][:] = PlanStatus.EXECUTING
    return desk, fields


def test_a_request_of_macrafter_names_tasks_tools_and_plans():
    desk, fields = crafter_channel(SCORED)
    request = requests_of(desk, crafter_scene()[1], fields)
    assert [f.constraint for f in request.failures] == ["temporal", "spatial", "dependency"]
    assert [round(f.score * f.required) for f in request.failures] == [2, 1, 0]  # halves are rounded to even
    failure = request.failures[2]
    assert (failure.task, failure.agents, failure.tool) == ("30", (2,), "wood_pickaxe")
    assert failure.about == "coal at x=3, y=2"
    assert request.strategy == "dependency_first" and set(request.views) == {0, 2}
    assert request.recommended[2].specification == "collect_coal(coal#30)"
    assert request.recommended[2].actions[0].text() == "collect(target=coal, item_id=30)"
    assert (request.target.target, request.target.position, request.target.participants) == ("coal#30", (3, 2), (2,))
    assert request.blocked == (request.target,) and request.candidates == ()
    assert request.tools[0].tool == "wood_pickaxe" and set(request.tools[0].advice) == {0, 2}
    assert request.tools[0].advice[0] == "collect wood"


def test_without_a_failing_dependency_the_target_is_a_candidate():
    desk, fields = crafter_channel((Constraint.TEMPORAL,))
    request = requests_of(desk, crafter_scene()[1], fields)
    assert request.strategy == "soft_sync" and request.candidates == (request.target,)
    assert request.tools == () == request.blocked and len(request.failures) == 1


def test_a_request_of_cube_names_faces_and_blocks():
    desk = Desk(agent=2)
    fields = channel(desk, 6, 1, failed=(Constraint.SPATIAL, Constraint.TEMPORAL), scores=(0.5, 0.5, 1))
    request = requests_of(desk, None, fields)
    assert [(f.task, f.constraint) for f in request.failures] == [("block_1_left", c) for c in ("spatial", "temporal")]
    assert request.strategy == "align_push" and request.target.target == "block#1" and request.candidates == ()


def test_statements_of_this_channel_come_in_turn():
    desk, fields = crafter_channel(SCORED)
    desk.say(AGENTS, 3)
    desk.put(Kind.SAID, 0, 0, "of an earlier channel")
    assert requests_of(desk, crafter_scene()[1], fields).statements == ()
    desk.put(Kind.SAID, 0, 1, "mine")
    desk.put(Kind.SAID, 2, 1, "left by a run that was cut short")
    request = requests_of(desk, crafter_scene()[1], fields)
    assert request.statements == ((0, "mine"),)
    assert with_statement(request, 2, "yours").statements == ((0, "mine"), (2, "yours"))


def test_tools_at_hand_are_those_that_the_device_sees():
    env, state = crafter_scene()
    material = np.array(state.material)
    material[2, 5], material[5, 4] = Material.TABLE, Material.FURNACE
    state = dataclasses.replace(state, material=material, x=np.array([1, 4, 0], np.int16))
    near = jax.device_get(team_of(env.settings, jax.tree.map(jnp.asarray, state)).near)
    assert near.tolist() == [stations_near(state, agent).tolist() for agent in range(AGENTS)]
    assert near.tolist() == [[True, False], [False, True], [False, False]]


def test_tools_that_plans_bring_are_those_that_the_device_sees():
    collect, craft = (int(Op.COLLECT), -1, -1), (int(Op.CRAFT), int(TOOL_CRAFTS[1]), -1)
    share = (int(Op.SHARE), 1, int(TOOL_ITEMS[0]))
    plans = np.array([[craft, collect, share], [share, collect, craft], [share, craft, collect]], np.int32)
    on_device = planned_tools(jnp.asarray(plans), jnp.ones(plans.shape[:2], jnp.bool_))
    assert on_device.tolist() == [tools_planned(agent, plans[agent]) for agent in range(3)] == [2, 1, 2]
