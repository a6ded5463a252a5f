"""Prompts of repairs: the section of a plan prompt, statements, and the request itself."""

import dataclasses

import pytest
from coop2_facts import PLAN, PROFILES, facts, in_order, repair_mail

from jaxcoop.agents.llm.coop2.catalogue import example_plan, example_request
from jaxcoop.agents.llm.coop2.facts import Candidate, Failure, PlanView, ToolHint
from jaxcoop.agents.llm.coop2.prompts import plan_prompt, statement_prompt
from jaxcoop.agents.llm.coop2.repair import request_text
from jaxcoop.agents.llm.coop2.repair_facts import repair_request


def failures(count):
    return tuple(Failure(f"task{k}", "spatial", 0.5, 2, agents=(0,), about=f"ABOUT{k}") for k in range(count))


def test_the_repair_section_of_cube_shows_failures_and_plans():
    recommended = {
        agent: dataclasses.replace(example_plan("cube"), specification=f"PLAN{agent}.") for agent in range(9)
    }
    mail = repair_mail("cube", failures=failures(9), recommended=recommended)
    text = plan_prompt(facts(messages=(mail,), interrupted=True, team=9)).user
    in_order(
        text,
        "# Repair",
        "step 12",
        "task0, spatial: 1 of 2 agents",
        "task5",
        "for you: PLAN1.",
        "PLAN0.",
        "PLAN5.",
        "advice",
    )
    section = text[text.index("# Repair") :]
    assert "task6" not in section and "PLAN6." not in section and "PLAN1." not in section.split("teammates")[1]
    assert not any(part in section for part in ("Strategy", "ABOUT", "Statements", "Present plans"))
    assert "for you: no plan" in plan_prompt(facts(messages=(repair_mail("cube", recommended={}),))).user


def test_the_repair_section_of_the_crafting_world_shows_everything_within_limits():
    many = tuple(Candidate(f"coal#{k}.", (0,), steps=3, timeout=8) for k in range(9))
    mail = repair_mail(
        "macrafter",
        failures=failures(12),
        views={agent: PlanView(PLAN.plan, 1, index=1) for agent in range(20)},
        target=many[0],
        candidates=many,
        blocked=many,
        tools=tuple(ToolHint(f"task{k}.", "wood_pickaxe", {0: "collect wood"}) for k in range(9)),
        statements=((0, "S" * 400), (2, "short")),
    )
    section = plan_prompt(facts("macrafter", messages=(mail,), interrupted=True)).user.split("# Repair")[1]
    in_order(
        section,
        "ABOUT7",
        "Strategy: dependency_first",
        "Recommended target: coal#0., for agent_0, 3 steps until all can act, time-out 8",
        "Candidate targets",
        "coal#4.",
        "Tools",
        "task4. needs wood_pickaxe; agent_0: collect wood",
        "Targets once",
        "coal#2.",
        "agent_11: task(thing#1) (pending): op1(); op2(); op3(); op4(); and 4 more",
        "S" * 279 + "…",
        "agent_2: short",
        "advice",
    )
    for part in ("ABOUT8", "coal#5.", "task5. needs", "agent_12", "S" * 280):
        assert part not in section
    assert "coal#3." not in section.split("Targets once")[1]


def test_the_latest_request_counts():
    early, late = (repair_mail(step=step) for step in (11, 12))
    assert "before step 12" in plan_prompt(facts(messages=(early, late), interrupted=True)).user


@pytest.mark.parametrize("profile", PROFILES)
def test_statements_are_asked_with_what_was_said_before(profile):
    request = example_request(profile)
    prompt = statement_prompt(facts(profile), request)
    in_order(prompt.user, "Failures", "Your plan: ", "Recommended for you", "I will be in place", "one or two")
    assert "# The world" in prompt.system
    first = statement_prompt(facts(profile), dataclasses.replace(request, statements=(), views={}, recommended={}))
    assert "You speak first" in first.user and "Your plan: none" in first.user


def test_a_request_tells_the_channel_everything():
    text = request_text("macrafter", example_request("macrafter"))
    in_order(
        text,
        "step 12",
        "temporal",
        "dependency",
        "agent_1: collect_coal",
        "Advice",
        "Strategy",
        "Channel",
        "1. agent_0:",
    )
    silent = request_text("cube", dataclasses.replace(example_request("cube"), statements=()))
    assert "Channel" not in silent and "Revise" in silent


def results(required):
    return [
        {
            "task_id": "7",
            "constraint_type": "temporal",
            "score": 0.5,
            "required_agents": required,
            "agents": ["agent_0"],
            "metadata": {"collect_steps": {"2": ["agent_0"], "9": ["agent_1", "agent_10"]}},
        },
        {
            "task_id": "7",
            "constraint_type": "dependency",
            "score": 0.5,
            "required_agents": required,
            "agents": ["agent_0"],
            "metadata": {"required_tool": "wood_pickaxe", "selected_step": 2},
        },
    ]


def test_named_results_and_advice_become_facts():
    target = {
        "target_id": "11",
        "target_type": "coal",
        "position": [2, 3],
        "recommended_participants": ["agent_0", "agent_10"],
        "max_estimated_steps": 6,
        "recommended_timeout": 11,
        "dependency_stage": "prepare_tools",
        "reachability": "good",
    }
    navigate = {"action_type": "navigate", "args": {"object_type": "coal", "item_id": 11}}
    guidance = {
        "strategy": "dependency_first",
        "recommended_target": target,
        "recommended_plans": {"agent_10": {"task": "wait_for_coal_partner(coal#11)", "actions": [navigate]}},
        "dependency_prerequisites": [
            {
                "task_id": "7",
                "target_type": "coal",
                "required_tool": ["wood_pickaxe"],
                "agent_prerequisites": [
                    {"agent_id": "agent_0", "suggestion": "collect"},
                    {"agent_id": "agent_1", "suggestion": "acquire_hoe"},
                ],
            }
        ],
        "blocked_targets_after_prerequisites": [target],
    }
    request = repair_request(4, results(2), guidance, {0: PLAN})
    candidate = Candidate("coal#11", (0, 10), (2, 3), 6, 11, "prepare_tools", "good")
    assert request.target == candidate and request.blocked == (candidate,) and request.candidates == ()
    assert request.recommended[10].specification == "wait_for_coal_partner(coal#11)"
    assert request.recommended[10].actions[0].text() == "navigate(object_type=coal, item_id=11)"
    assert request.tools == (ToolHint("coal#7", "wood_pickaxe", {0: "holds it", 1: "acquire hoe"}),)
    assert request.failures[0].about == "planned: agent_0 at step 2; agent_1, agent_10 at step 9"
    assert request.failures[1].tool == "wood_pickaxe" and request.failures[1].about == "expected at step 2"
    assert [(f.constraint, f.required, f.agents) for f in request.failures] == [
        ("temporal", 2, (0,)),
        ("dependency", 2, (0,)),
    ]


def test_advice_for_blocks_is_named_after_the_block():
    push = {"action_type": "push", "args": {"block_id": 3, "num_steps": 8}}
    target = {"target_id": "3", "target_type": "weight_2", "participants": ["agent_2"], "task_id": "block_3_left"}
    guidance = {"recommended_target": target, "recommended_plans": {"agent_2": {"actions": [push]}}}
    request = repair_request(4, [], guidance, {})
    assert request.recommended[2].specification == "push_block(block#3)"
    assert request.target == Candidate("block#3", (2,))
    assert repair_request(4, [], None, {}).target is None
