"""Prompt templates: what each strategy says, and which templates of a user are refused."""

import pytest

from jaxcoop.envs.dining.prompts import (
    DECISION_FIELDS,
    DISCUSSION_FIELDS,
    STRATEGIES,
    SYSTEM_FIELDS,
    build_prompts,
)

SYSTEM_VALUES = {"philosopher_name": "P3", "num_philosophers": 5, "num_philosophers_minus_one": 4}


def system(strategy, **options):
    return build_prompts(strategy, **options).system.format_map(SYSTEM_VALUES)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_names_the_philosopher_the_table_and_the_four_actions(strategy):
    text = system(strategy)
    for needed in ("P3", "5 philosophers", "P0 to P4", "GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"):
        assert needed in text


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_the_goal_free_strategies_leave_the_goals_out(strategy):
    # 11: minimal and resource ordering state no goals
    assert ("fairly" in system(strategy)) == (strategy not in ("minimal", "resource_ordering"))


def test_the_minimal_text_speaks_of_no_goal_deadlock_or_coordination():
    text = system("minimal").lower()
    assert not [word for word in ("deadlock", "fair", "goal", "coordinat", "group", "wants") if word in text]


@pytest.mark.parametrize(
    ("strategy", "needed"),
    [
        ("theory_of_mind", ("neighbour", "first what each neighbour will do")),
        ("symmetry_breaking", ("one or two turns", "waited for long")),
        ("resource_ordering", ("even, your first fork is the right", "odd, your first fork is the left")),
    ],
)
def test_a_strategy_adds_its_own_part(strategy, needed):
    text = system(strategy)
    assert all(part in text for part in needed)
    assert not any(part in system("default") for part in needed[-1:])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_decision_prompt_is_one_for_all_strategies(strategy):
    assert build_prompts(strategy).decision == build_prompts("default").decision


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_with_communication_falls_back_to_the_default_texts(strategy):
    assert build_prompts(strategy, communication=True) == build_prompts("default", communication=True)


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
def test_keeping_the_strategy_adds_the_part_on_messages_to_it(strategy):
    kept = build_prompts(strategy, communication=True, keep_strategy_with_communication=True)
    default = build_prompts("default", communication=True)
    assert "send a message to your neighbours" in kept.system and "MESSAGE:" in kept.system
    assert kept.system != default.system
    assert kept.decision == default.decision
    alone = build_prompts(strategy).system.split("\n\n")
    assert all(part in kept.system for part in alone if not part.startswith("Answer in"))


def test_the_message_line_exists_only_with_communication():
    assert "MESSAGE" not in build_prompts().system + build_prompts().decision
    talking = build_prompts(communication=True)
    assert "MESSAGE:" in talking.system and "MESSAGE:" in talking.decision
    assert "{left_message}" in talking.decision and "{all_messages}" not in talking.decision


def test_broadcast_shows_the_messages_of_all():
    decision = build_prompts(communication=True, broadcast=True).decision
    assert "{all_messages}" in decision and "{left_message}" not in decision


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_json_form_asks_for_one_object_and_no_labelled_line(strategy):
    prompts = build_prompts(strategy, communication=True, reply_format="json")
    for text in (prompts.system, prompts.decision, prompts.discussion):
        filled = text.format_map(dict.fromkeys(DISCUSSION_FIELDS + SYSTEM_FIELDS, 0))
        assert '"message": "' in filled and "{\n" in filled and "{{" not in filled
        assert "THINKING:" not in filled


def test_the_discussion_prompt_states_the_round_and_asks_for_no_action():
    text = build_prompts(communication=True).discussion
    assert "round {round} of {rounds}" in text and "MESSAGE:" in text and "ACTION" not in text


def test_own_templates_replace_the_texts():
    prompts = build_prompts(system="I am {philosopher_name}", decision="{{literal}} {meals_eaten:03d}")
    assert prompts.system == "I am {philosopher_name}"
    assert prompts.decision.format(meals_eaten=7) == "{literal} 007"
    assert prompts.discussion == build_prompts().discussion


@pytest.mark.parametrize("blank", ["", "  \n"])
@pytest.mark.parametrize("name", ["system", "decision", "discussion"])
def test_a_blank_prompt_is_refused(name, blank):
    with pytest.raises(ValueError, match=f"the {name} prompt is blank"):
        build_prompts(**{name: blank})


@pytest.mark.parametrize(
    "field",
    ["neighbour", "", "0", "state.__class__", "state[0]", "meals_eaten:{width}", "round", "num_philosophers"],
)
def test_an_unknown_field_is_refused_with_the_allowed_ones(field):
    with pytest.raises(ValueError, match="unknown field") as error:
        build_prompts(decision=f"Act! {{{field}}}")
    assert all(allowed in str(error.value) for allowed in DECISION_FIELDS)


@pytest.mark.parametrize("template", ["{", "}", "answer {state", "a } b", '{"action": "WAIT"}'])
def test_an_unbalanced_or_json_brace_is_refused_with_the_allowed_fields(template):
    with pytest.raises(ValueError, match="the decision prompt has") as error:
        build_prompts(decision=template)
    assert "right_fork_status" in str(error.value)


@pytest.mark.parametrize("template", ["{state:d}", "{state!x}", "{meals_eaten:zz}"])
def test_a_format_that_cannot_be_applied_is_refused(template):
    with pytest.raises(ValueError, match="the decision prompt"):
        build_prompts(decision=template)


def test_an_unknown_strategy_is_refused_by_name():
    with pytest.raises(ValueError, match="'greedy' is unknown; choose one of default, minimal"):
        build_prompts("greedy")
