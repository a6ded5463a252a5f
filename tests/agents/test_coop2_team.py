"""From rows of the engine to what prompts may say, and from replies to words."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_desk import AGENTS, DOMAINS, EPISODE, KEPT, Desk, setup_of

from jaxcoop.agents.llm.coop2.adapter import roles_of
from jaxcoop.agents.llm.coop2.catalogue import example_plan, example_request
from jaxcoop.agents.llm.coop2.mails import MISSED
from jaxcoop.agents.llm.coop2.rows import WorldReader, by_episode
from jaxcoop.agents.llm.coop2.team import MindTeam, vocabulary_of
from jaxcoop.agents.llm.coop2.texts import Kind, Texts, as_json
from jaxcoop.cognition.mail import GOT_ANY
from jaxcoop.cognition.programs import END, Cast, Role, Structure, call, send
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.state import MADE_PLAN, MESSAGE_IN, PLAN_FAILED
from jaxcoop.cognition.types import Call, Ended, PlanStatus, Stage
from jaxcoop.cognition.types import Mail as Type
from jaxcoop.planning import Hub
from jaxcoop.planning.clients import FunctionClient
from jaxcoop.planning.process import named_leaves
from jaxcoop.planning.record import Record


def test_messages_come_in_the_order_sent_and_without_those_that_are_overwritten():
    desk = Desk()
    for n in range(KEPT + 3):
        desk.put(Kind.TEXT, 0, n, f"text {n}")
        desk.say(0, Type.OTHER, call=n, step=n, to=(1, 2))
    desk.mark("shown", *range(KEPT + 3))
    mails = desk.facts(got=GOT_ANY).messages
    assert [m.content for m in mails] == [f"text {n}" for n in range(3, KEPT + 3)]
    assert mails[0].step == 3 and mails[0].recipients == ("agent_1", "agent_2") and mails[0].type == ""
    assert desk.row().message(2) is None and desk.row().message(KEPT + 3) is None


def test_what_an_earlier_pass_has_collected_is_not_shown_again():
    desk = Desk()
    desk.put(Kind.TEXT, 0, 0, "old")
    desk.mark("shown", desk.say(0, Type.OTHER, call=0))
    assert desk.facts(got=0).messages == () and len(desk.facts(got=GOT_ANY).messages) == 1


def test_types_of_messages_have_the_words_and_marks_of_their_world():
    for profile, marked in (("cube", False), ("macrafter", True)):
        desk = Desk(profile, "broadcast_chain")
        desk.put(Kind.PLAN, 0, 1, as_json(example_plan(profile)))
        desk.mark("shown", desk.say(0, Type.BROADCAST_CHAIN, plan=1))
        mail = desk.facts(got=GOT_ANY).messages[0]
        assert (mail.type, mail.speaker_order, mail.interrupts) == ("broadcast_chain", 0, marked)


def test_a_leader_that_writes_nothing_says_its_fixed_line_also_after_a_statement():
    desk = Desk("macrafter", "centralized")
    desk.put(Kind.STATEMENT, 0, 3, "a statement")
    number = desk.say(0, Type.LEADER_BROADCAST, call=3)
    directive = desk.facts(directive=number).directive
    assert directive.startswith("agent_0 asks all followers")
    assert desk.texts.of_episode(EPISODE)(0, 3) == "a statement"


def test_a_speaker_that_writes_nothing_sums_up_the_plan_that_it_tells_of():
    desk = Desk("macrafter", "broadcast_chain")
    desk.put(Kind.PLAN, 0, 2, as_json(example_plan("macrafter")))
    desk.mark("history", desk.say(0, Type.BROADCAST_CHAIN, call=5, plan=2))
    assert desk.facts().collected[0].content.startswith("agent_0 has planned collect_coal(coal#7): navigate(")


def test_a_decision_tells_new_messages_from_known_proposals():
    desk = Desk("cube", "broadcast_chain")
    old, new = (desk.say(0, Type.BROADCAST_CHAIN, call=n) for n in range(2))
    for n in range(2):
        desk.put(Kind.TEXT, 0, n, f"proposal {n}")
    desk.mark("history", old, new)
    desk.mark("shown", new)
    asked = {"got": GOT_ANY, "stage": int(Stage.INTERRUPTED)}
    decides = desk.facts(kind=int(Call.DECIDE), **asked)
    assert [m.content for m in decides.collected] == ["proposal 0"]
    assert [m.content for m in decides.messages] == ["proposal 1"] and decides.interrupted
    assert [m.content for m in desk.facts(kind=int(Call.PLAN), **asked).collected] == ["proposal 0", "proposal 1"]


def test_a_leader_collects_answers_and_in_cube_is_shown_nothing_else():
    for profile in DOMAINS:
        desk = Desk(profile, "centralized", agent=0)
        answer, other = desk.say(1, Type.FOLLOWER_RESPONSE, call=0, to=(0,)), desk.say(2, Type.OTHER, call=0, to=(0,))
        for agent in (1, 2):
            desk.put(Kind.TEXT, agent, 0, f"from {agent}")
        desk.mark("shown", answer, other)
        facts = desk.facts(got=GOT_ANY)
        assert [m.content for m in facts.collected] == ["from 1"]
        assert len(facts.messages) == (0 if profile == "cube" else 2)


def test_a_follower_reports_the_plan_that_it_has_just_made():
    desk = Desk("cube", "centralized")
    plan = example_plan("cube")
    desk.put(Kind.PLAN, 1, 1, as_json(plan))
    desk.put(Kind.PLAN, 1, 2, as_json(dataclasses.replace(plan, specification="new")))
    desk.fields["plans.number"][1], desk.fields["plans.status"][1] = 1, PlanStatus.EXECUTING
    asked = {"kind": int(Call.TEXT), "stage": int(Stage.INTERRUPTED)}
    kept, changed = desk.facts(**asked), desk.facts(has_plan=True, **asked)
    assert (kept.decision, kept.plan.plan, kept.plan.status) == ("resumed", plan, "executing")
    assert (changed.decision, changed.plan.plan.specification, changed.plan.number) == ("replanned", "new", 2)
    assert desk.facts(kind=int(Call.TEXT), stage=int(Stage.REASONING)).decision is None


def test_memory_names_what_failed_and_leaves_out_what_is_lost():
    desk = Desk("macrafter")
    plan = example_plan("macrafter")
    for number in (1, 2):
        desk.put(Kind.PLAN, 1, number, as_json(plan))
    desk.fields["plans.number"][1] = 2
    for n in range(KEPT + 1):
        desk.say(0, Type.OTHER, call=n)
    desk.put(Kind.TEXT, 0, KEPT, "hello")
    reason = Ended.SKILL + 20  # no path
    desk.remember(
        (PLAN_FAILED, int(Ended.GOAL_MISSED), 2, 3),
        (MESSAGE_IN, 0, 0, 4),  # overwritten
        (MESSAGE_IN, 0, KEPT, 4),
        (MADE_PLAN, 2, -1, 5),
        (PLAN_FAILED, reason, 1, 6),
    )
    missed, heard, made, failed = desk.facts().memory
    assert (missed.plan.number, (missed.operation, missed.reason)) == (1, MISSED)
    assert (heard.mail.content, made.plan.plan, made.step) == ("hello", plan, 5)
    assert failed.plan.number == 2 and failed.operation == "collect(target=coal, steps=5)" and failed.reason


def test_a_repair_request_is_shown_as_it_was_sent():
    desk = Desk()
    request = example_request("cube")
    number = desk.say(AGENTS, Type.REPAIR_REQUEST, to=(0, 1))
    desk.put(Kind.REQUEST, 0, number, as_json(request))
    desk.mark("shown", number)
    facts = desk.facts(got=GOT_ANY)
    assert facts.request == request and facts.messages[0].sender == "coop2_repair"
    assert "align_push" in facts.messages[0].content


@pytest.mark.parametrize("profile", DOMAINS)
def test_plans_and_requests_come_back_from_the_table_as_they_were(profile):
    desk = Desk(profile)
    desk.put(Kind.PLAN, 0, 1, as_json(example_plan(profile)))
    desk.put(Kind.REQUEST, 0, 0, as_json(example_request(profile)))
    assert desk.texts.plan(EPISODE, 0, 1) == example_plan(profile)
    assert desk.texts.request(EPISODE, 0) == example_request(profile)
    assert desk.texts.plan(EPISODE, 0, 2) is None and desk.texts.plan(EPISODE + 1, 0, 1) is None


def test_handles_of_different_texts_never_meet():
    texts = Texts(Record(), AGENTS)
    handles = {texts.handle(kind, agent, number) for kind in Kind for agent in range(AGENTS) for number in range(9)}
    assert len(handles) == len(Kind) * AGENTS * 9


def test_roles_follow_from_the_structure_and_those_of_ones_own_are_members():
    ring = Structure(
        "ring",
        (Role("talker", (call(Call.TEXT), send(Type.OTHER), END), (END,)),),
        lambda n: Cast(np.zeros(n, int), np.full(n, -1), np.ones((1, n, n), bool)),
    )
    kinds = {name: [r.kind for r in roles_of(setup_of(structure=name))] for name in ("individual", "centralized")}
    assert kinds == {"individual": ["independent"] * 3, "centralized": ["leader", "follower", "follower"]}
    assert [r.position for r in roles_of(setup_of(structure="broadcast_chain"))] == [0, 1, 2]
    assert [r.kind for r in roles_of(setup_of(structure=ring))] == ["member"] * 3
    desk = Desk(structure=ring)
    desk.put(Kind.TEXT, 0, 0, "hi")
    desk.mark("shown", desk.say(0, Type.OTHER, call=0))
    assert [m.content for m in desk.facts().collected] == ["hi"]


@pytest.mark.parametrize("profile", DOMAINS)
def test_the_world_of_a_row_is_that_of_the_state(profile):
    setup, (_, state) = setup_of(profile), DOMAINS[profile][1]()
    shown = jax.device_get(setup.domain.shown(jax.tree.map(jnp.asarray, state)))
    fields = {f"world.{name}": x for name, x in named_leaves(shown)}
    row = Desk(profile).row(**fields)
    again = WorldReader(setup.domain.env).state(row)
    jax.tree.map(np.testing.assert_array_equal, again, state)
    assert jax.tree.structure(again) == jax.tree.structure(state)


def test_rows_of_one_episode_and_step_share_a_world():
    desk = Desk()
    rows = [desk.row(episode=e, step=s) for e, s in ((0, 0), (1, 0), (0, 0), (0, 1))]
    assert [len(group) for group in by_episode(rows)] == [2, 1, 1]


def test_a_setup_without_room_for_messages_is_refused():
    setup = dataclasses.replace(setup_of(), capacity=Capacity())
    says = pytest.raises(ValueError, match=r"capacity.messages is 0.*Capacity\(messages=256\)")
    with Hub(FunctionClient(lambda request: "")) as hub, says:
        MindTeam(setup, hub, 0)


def test_a_world_without_prompts_is_refused():
    setup = setup_of()
    profile = dataclasses.replace(setup.domain.profile, name="chess")
    with pytest.raises(ValueError, match="exist for cube and macrafter"):
        vocabulary_of(dataclasses.replace(setup, domain=dataclasses.replace(setup.domain, profile=profile)))
