"""Reading replies: labelled lines, the JSON form, and texts made to break the parser."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxcoop.envs.dining.replies import Parsed, parse_action, parse_message, parse_reply, sanitize
from jaxcoop.envs.dining.types import Action

MEGABYTES = 10_000_000


def json_reply(text, communication=True, **options):
    return parse_reply(text, communication, "json", **options)


@pytest.mark.parametrize(
    ("text", "action", "source"),
    [
        ("ACTION: GRAB_LEFT", Action.GRAB_LEFT, "label"),
        ("ACTION: wait", Action.WAIT, "label"),
        ("ACTION: [RELEASE]", Action.RELEASE, "text"),
        ("I will wait.", Action.WAIT, "text"),
        ("ACTION: GRAB LEFT", Action.WAIT, "none"),
        ("no idea", Action.WAIT, "none"),
        ("", Action.WAIT, "none"),
    ],
)
def test_an_action_says_where_it_was_read(text, action, source):
    assert parse_action(text) == (action, source)


def test_a_wait_that_is_only_the_fallback_counts_as_not_found():
    assert parse_reply("ACTION: WAIT", False).found
    assert not parse_reply("ACTION: DANCE", False).found
    assert not parse_reply(None, False).found


def test_messages_are_ignored_without_communication():
    text = "MESSAGE: after you\nACTION: WAIT"
    assert parse_reply(text, True).message == "after you"
    assert parse_reply(text, False).message is None


def test_text_after_ten_thousand_characters_is_not_read():
    assert parse_reply("x" * 9_984 + "ACTION: RELEASE!", False).action == Action.RELEASE
    assert parse_reply("x" * 9_990 + "ACTION: RELEASE", False) == (Action.WAIT, None, None, False, "none")


def test_a_discussion_reply_gives_a_message_and_no_action():
    said = parse_reply("THINKING: a\nMESSAGE: RELEASE please\nACTION: GRAB_LEFT", True, discussion=True)
    assert said == Parsed(Action.WAIT, "RELEASE please", "a", True, "none")
    assert not parse_reply("THINKING: nothing to say", True, discussion=True).found


def test_an_unknown_reply_form_is_refused_by_name():
    with pytest.raises(ValueError, match="'yaml' is unknown; choose one of text, json"):
        parse_reply("", False, "yaml")


def test_json_reply_is_read_through_fences_and_prose():
    reply = '{"thinking": "P1 waits", "message": " you first ", "action": "Grab-Right"}'
    text = f"Sure {{here}} it is:\n```json\n{reply}\n```"
    assert json_reply(text) == Parsed(Action.GRAB_RIGHT, "you first", "P1 waits", True, "json")


def test_the_first_valid_json_object_wins():
    text = '{"note": 1} {"action": "dance"} {"action": "release"} {"action": "wait"}'
    assert json_reply(text).action == Action.RELEASE


def test_at_most_64_opening_braces_are_tried():
    assert json_reply("{" * 63 + '{"action": "release"}').found
    assert not json_reply("{" * 64 + '{"action": "release"}').found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ACTION: GRAB_LEFT",
        '{"action": "eat"}',
        '{"action": null}',
        '{"action": "grab_left"',
        "[]",
        '{"action": 0}',
    ],
)
def test_an_invalid_json_reply_is_wait_and_not_found(text):
    assert json_reply(text) == Parsed(Action.WAIT, None, None, False, "none")


def test_a_wrong_type_beside_a_good_json_action_costs_only_that_text():
    assert json_reply('{"action": "WAIT", "message": ["a"], "thinking": 3}') == (
        Action.WAIT,
        None,
        None,
        True,
        "json",
    )


@pytest.mark.parametrize("silence", ['"None"', '"n/a"', '"-"', '" "', "null"])
def test_json_silence_is_no_message(silence):
    assert json_reply(f'{{"action": "wait", "message": {silence}}}').message is None


def test_a_json_message_stays_on_one_line_and_within_200_characters():
    reply = json_reply('{"action": "wait", "message": "a\\n\\nACTION: RELEASE ' + "x" * 300 + '"}')
    assert reply.message is not None
    assert reply.message.startswith("a ACTION: RELEASE x") and len(reply.message) == 200


def test_a_json_discussion_reply_needs_no_action():
    assert json_reply('{"message": "hi"}', discussion=True) == (Action.WAIT, "hi", None, True, "none")


@pytest.mark.parametrize(
    "unit",
    [
        "ACTION:", "ACTION: ", "ACTION:\n", "MESSAGE:", "MESSAGE:\n", "THINKING:", "THINKING: x\n",
        "\nMESSAGE", " ", "\n", "_", "A", "{", '{"a":', '{"a":{}', "[", '"', "\\", "{}", '{"action":"x"}',
        "9", "ß", "\u2028",
    ],
)  # fmt: skip
@pytest.mark.parametrize("head", ["", "ACTION:", "MESSAGE:", "THINKING:", '{"action": "'])
def test_ten_megabytes_of_any_pattern_are_read_in_no_time(unit, head):
    text = head + unit * (MEGABYTES // len(unit))
    start = time.process_time()
    for form in ("text", "json"):
        parse_reply(text, True, form)
        parse_reply(text, True, form, discussion=True)
    assert time.process_time() - start < 1.0


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.booleans(), st.sampled_from(["text", "json"]))
def test_every_text_gives_one_of_four_actions_and_a_bounded_message(text, communication, form):
    parsed = parse_reply(text, communication, form)
    assert parsed.action in tuple(Action)
    assert parsed.message is None or (communication and 0 < len(parsed.message) <= 200)
    assert parsed.found or parsed.action == Action.WAIT


def test_a_message_is_the_sanitized_line():
    assert parse_message("MESSAGE: " + "y" * 300) == sanitize("y" * 300) == "y" * 200


def test_of_two_actions_the_grab_is_read_not_the_release():
    assert parse_action("grab_right, then release").action == Action.GRAB_RIGHT
    assert parse_action("release, then grab_left and grab_right").action == Action.GRAB_LEFT
