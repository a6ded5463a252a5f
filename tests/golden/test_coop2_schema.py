"""Recorded replies of language models: what the reference reads from each of them."""

import pytest
from recorded import lines_of

from jaxcoop.agents.llm.coop2.parsing import Unreadable, read_decision, read_plan


def schema_cases(path):
    """(id, case) of the group of replies."""
    return ((case["id"], case) for case in lines_of(path) if case["group"] == "schema")


def recorded_plan(plan):
    """A plan in the form of the recorded ones."""
    if plan is None:
        return None
    return {"specification": plan.specification, "actions": [action.as_json() for action in plan.actions]}


@pytest.mark.recorded("coop2", "cases.jsonl.gz", schema_cases)
def test_coop2_replies_are_read_as_recorded(case):
    profile, kind, text = (case["input"][name] for name in ("profile", "kind", "text"))
    try:
        if kind == "plan":
            got = {"ok": True, "plan": recorded_plan(read_plan(profile, text))}
        else:
            read = read_decision(profile, text)
            got = {"ok": True, "decision": read.decision, "new_plan": recorded_plan(read.plan)}
    except Unreadable:
        got = {"ok": False}
    assert got == case["expected"]


def test_coop2_all_recorded_replies_are_found(default_data):
    cases = list(schema_cases(default_data / "coop2" / "cases.jsonl.gz"))
    assert len(cases) == 34
    assert {case["input"]["profile"] for _, case in cases} == {"cube", "macrafter"}
