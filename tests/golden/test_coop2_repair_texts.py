"""Recorded repair checks and guidance, told to the members of their channel."""

import pytest
from recorded import lines_of

from jaxcoop.agents.llm.coop2.facts import REPAIR_REQUEST, Facts, Mail, PlanView, World
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan
from jaxcoop.agents.llm.coop2.prompts import plan_prompt, statement_prompt
from jaxcoop.agents.llm.coop2.repair import request_text
from jaxcoop.agents.llm.coop2.repair_facts import repair_request
from jaxcoop.cognition.logs import REPAIR_SENDER

PROFILES = {"repair.cube": "cube", "repair.macrafter": "macrafter"}


def failing_cases(path):
    """(id, case) of the checks that find something."""
    cases = ((case["id"], case) for case in lines_of(path) if case["group"] in PROFILES)
    return ((name, case) for name, case in cases if case["expected"]["guidance"])


def number(name):
    return int(name.rpartition("_")[2])


def marked_plan(view):
    """A recorded plan under a name that is easily found."""
    actions = tuple(Operation(action["action_type"], action["args"]) for action in view["actions"])
    return TextPlan(f"PLAN-{view['agent_id']}.", actions)


@pytest.mark.recorded("coop2", "cases.jsonl.gz", failing_cases)
def test_coop2_recorded_repairs_are_told_to_all_members(case):
    profile, expected, step = PROFILES[case["group"]], case["expected"], case["input"]["env_step"]
    views = {number(view["agent_id"]): PlanView(marked_plan(view), 1) for view in case["input"]["plan_views"]}
    # how many a task takes is not recorded and only enters the wording
    failures = [{**failure, "required_agents": 2} for failure in expected["evaluation"]["failures"]]
    request = repair_request(step, failures, expected["guidance"], views)
    whole = request_text(profile, request)
    assert all(f"PLAN-agent_{agent}." in whole for agent in views)
    assert all(f"{f['task_id']}, {f['constraint_type']}: " in whole for f in failures)
    mail = Mail(REPAIR_SENDER, whole, step, REPAIR_REQUEST, request=request)
    world = World("configuration", "view", "position")
    recommended = expected["guidance"].get("recommended_plans", {})
    for name in expected["channel"]:
        facts = Facts(profile, number(name), 12, step, world, interrupted=True, messages=(mail,))
        asked, told = statement_prompt(facts, request).user, plan_prompt(facts).user
        assert f"PLAN-{name}." in asked
        own = recommended.get(name)
        assert ("Recommended for you: no plan" in told) == (own is None)
        if own is not None:
            said = Operation(own["actions"][0]["action_type"], own["actions"][0]["args"]).text()
            assert said in asked and said in told.split("# Repair")[1]
