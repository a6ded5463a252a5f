"""Prompts rendered from rows of numbers: values, messages, memory, the article's view, and speed."""

import time

import numpy as np
import pytest

from jaxcoop.envs.dining.prompts import build_prompts
from jaxcoop.envs.dining.text import MEMORY_HEADING, NO_MESSAGE, PromptRenderer


def row(**changes):
    plain = {
        "agent": 1,
        "num_agents": 3,
        "eating": False,
        "meals": 2,
        "left_available": True,
        "right_available": False,
        "holding_left": True,
        "holding_right": False,
        "left_message": None,
        "right_message": None,
    }
    return plain | changes


def renderer(communication=False, num_agents=3, **options):
    prompts = build_prompts(communication=communication, **options)
    return PromptRenderer(prompts, num_agents, communication=communication)


def test_a_row_is_rendered_to_the_reference_words():
    assert renderer().values(row()) == {
        "philosopher_name": "P1",
        "state": "hungry",
        "meals_eaten": 2,
        "left_fork_status": "AVAILABLE",
        "right_fork_status": "TAKEN",
        "holding_status": "left fork",
        "left_message": NO_MESSAGE,
        "right_message": NO_MESSAGE,
        "all_messages": NO_MESSAGE,
    }


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [
        (False, False, "nothing"),
        (True, False, "left fork"),
        (False, True, "right fork"),
        (True, True, "left fork, right fork"),
    ],
)
def test_hands_are_named(left, right, shown):
    assert renderer().values(row(holding_left=left, holding_right=right))["holding_status"] == shown


def test_the_system_text_is_the_philosophers_own():
    texts = [renderer(num_agents=3).system(i) for i in range(3)]
    assert [f"You are P{i}, one of 3" in text for i, text in enumerate(texts)] == [True] * 3


def test_the_user_text_is_the_filled_decision_prompt():
    rendered = renderer().render(row())
    assert rendered.user == build_prompts().decision.format_map(rendered.values)
    assert rendered.system == renderer().system(1)


def test_neighbour_messages_are_labelled_and_quoted():
    values = renderer(communication=True).values(row(left_message="go {first}", right_message=""))
    assert values["left_message"] == 'Neighbour message: "go {first}"'
    assert values["right_message"] == NO_MESSAGE


def test_a_message_with_braces_is_not_taken_for_a_template():
    assert "{state} {0}" in renderer(communication=True).render(row(left_message="{state} {0}")).user


def test_no_message_is_shown_without_communication():
    values = renderer().values(row(left_message="hi", right_message="ho", all_messages=["a", "b", "c"]))
    assert {values["left_message"], values["right_message"], values["all_messages"]} == {NO_MESSAGE}


def test_the_broadcast_lists_everybody_who_spoke():
    shown = renderer(communication=True, broadcast=True)
    user = shown.render(row(all_messages=["first", None, "third"])).user
    assert 'P0: "first"\nP2: "third"' in user


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [(-1, 1, ("free", "held by you")), (0, 2, ("held by P0", "held by P2"))],
)
def test_the_articles_view_names_the_holder_of_a_fork(left, right, shown):
    values = renderer().values(row(left_holder=left, right_holder=right))
    assert (values["left_fork_status"], values["right_fork_status"]) == shown


def entry(timestep, deadlock=False):
    return {
        "timestep": timestep,
        "deadlock": deadlock,
        "eating": np.array([False, True, False]),
        "hl": np.array([True, True, False]),
        "hr": np.array([False, True, False]),
        "meals": np.array([0, 1, 4]),
    }


def test_memory_shows_the_whole_table_after_the_decision_prompt():
    plain = renderer().render(row()).user
    user = renderer().render(row(memory=[entry(4), entry(5, deadlock=True)])).user
    table = "  P0: hungry, holds L, meals 0\n  P1: eating, holds L+R, meals 1\n  P2: hungry, holds -, meals 4"
    assert user == f"{plain}\n\n{MEMORY_HEADING}\nTimestep 4\n{table}\nTimestep 5 [DEADLOCK]\n{table}"


def test_an_empty_memory_adds_nothing():
    assert renderer().render(row(memory=[])).user == renderer().render(row()).user


def test_a_discussion_row_gets_the_discussion_prompt_without_memory():
    talk = renderer(communication=True)
    user = talk.render(row(kind="discussion", round=1, rounds=3, memory=[entry(1)], left_message="me first")).user
    assert "round 1 of 3" in user and '"me first"' in user
    assert MEMORY_HEADING not in user and "ACTION" not in user


def test_values_follow_the_row_of_numpy_scalars():
    typed = row(agent=np.int32(1), meals=np.int32(2), eating=np.bool_(True), left_holder=np.int8(-1))
    assert renderer().values(typed)["state"] == "eating"
    assert "eaten 2 meals" in renderer().render(typed).user


def test_a_table_of_one_is_refused():
    with pytest.raises(ValueError, match="num_agents is 1, must be at least 2"):
        PromptRenderer(build_prompts(), 1)


def test_ten_thousand_prompts_are_rendered_in_a_second():
    render = renderer(num_agents=5).render
    rows = [row(agent=i % 5, num_agents=5, meals=i % 7) for i in range(10_000)]
    start = time.process_time()
    for one in rows:
        render(one)
    assert time.process_time() - start < 1.0
