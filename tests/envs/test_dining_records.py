"""The runner's decision records, the log file, and the table rows made from it."""

import json

import numpy as np
import pytest

from jaxcoop.envs.dining.cells import canonical_condition, cell_row, parse_condition, rows_from_logs
from jaxcoop.envs.dining.records import (
    EpisodeTrace,
    LogWriter,
    decision_records,
    episode_end_record,
    read_log,
    record_count,
    record_indices,
    timestep_records,
)

CONFIG = {
    "mode": "simultaneous",
    "philosophers": 2,
    "communication": True,
    "model": "scripted",
    "max_timesteps": 4,
}


def trace(mode="simultaneous", steps=2, deadlock_terminal=False, **changes):
    """Two philosophers; both take their left fork at the first timestep and hold it: a circular wait."""
    fields = {
        "fork": np.tile([0, 1], (steps, 1)),
        "hl": np.ones((steps, 2), bool),
        "hr": np.zeros((steps, 2), bool),
        "eat": np.zeros((steps, 2), bool),
        "meals": np.zeros((steps, 2), int),
        "actions": np.zeros((steps, 2) if mode == "simultaneous" else steps, int),
    }
    return EpisodeTrace(mode=mode, deadlock_terminal=deadlock_terminal, **(fields | changes))


def test_simultaneous_records_are_the_decisions_themselves():
    np.testing.assert_array_equal(record_indices(6, 3, "simultaneous"), [[0, 1, 2], [3, 4, 5]])


def test_sequential_records_repeat_everybodys_latest_decision_after_every_turn():
    np.testing.assert_array_equal(record_indices(6, 3, "sequential"), [[0, 1, 2], [3, 1, 2], [3, 4, 2], [3, 4, 5]])


def test_six_sequential_rounds_of_five_keep_130_records():
    assert int(record_count(30, 5, "sequential")) == 130
    assert record_indices(30, 5, "sequential").size == 130


def test_messages_follow_their_actions_into_the_records():
    actions, messages = decision_records([0, 1, 2, 3], 2, "sequential", ["a", None, "c", "d"])
    assert actions.tolist() == [0, 1, 2, 1, 2, 3]
    assert messages == ["a", None, "c", None, "c", "d"]


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (
            lambda: record_indices(5, 2, "sequential"),
            "num_decisions is 5, must be a multiple of num_agents = 2",
        ),
        (lambda: record_count(5, 2, "parallel"), "mode 'parallel' is unknown; choose one of simultaneous"),
        (lambda: decision_records([0, 1], 2, "sequential", ["a"]), "1 messages for 2 actions"),
        (lambda: trace(hl=np.ones((3, 2), bool)), r"hl has shape \(3, 2\), must be \(2, 2\)"),
        (lambda: trace(messages=["a"]), r"messages has 1 entries, must have one per decision \(4\)"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(call, fault):
    with pytest.raises(ValueError, match=fault):
        call()


def test_a_simultaneous_record_shows_the_table_after_a_resolved_deadlock():
    table = timestep_records(0, trace())[0]["table_state"]
    assert [fork["holder"] for fork in table["forks"]] == [None, None]
    assert not any(p["has_left_fork"] or p["has_right_fork"] for p in table["philosophers"])


def test_a_sequential_record_shows_the_table_before_a_deadlock_is_resolved():
    table = timestep_records(0, trace("sequential"))[0]["table_state"]
    assert [fork["holder"] for fork in table["forks"]] == [0, 1]
    assert all(p["has_left_fork"] for p in table["philosophers"])


def test_a_terminal_deadlock_stays_in_the_logged_table():
    table = timestep_records(0, trace(deadlock_terminal=True))[0]["table_state"]
    assert [fork["holder"] for fork in table["forks"]] == [0, 1]


def test_sequential_timestep_records_begin_at_the_end_of_the_first_round():
    written = timestep_records(7, trace("sequential", steps=4))
    assert [record["timestep"] for record in written] == [2, 3, 4]
    assert {record["episode_id"] for record in written} == {7}


def test_a_record_names_decisions_messages_and_calls():
    calls = [{"tokens_in": 5}, None, None, None]
    one = timestep_records(0, trace(messages=["hi", None, None, None], reasoning=["r"] * 4, llm_calls=calls))[0]
    assert one["decisions"][0] == {
        "philosopher_id": 0,
        "philosopher_name": "P0",
        "action": "grab_left",
        "message": "hi",
        "reasoning": "r",
    }
    assert one["llm_calls"] == [{"tokens_in": 5}]
    assert one["table_state"]["philosophers"][1] == {
        "id": 1,
        "name": "P1",
        "state": "hungry",
        "meals_eaten": 0,
        "has_left_fork": False,
        "has_right_fork": False,
    }


def test_a_sequential_deadlock_is_true_but_not_reported():
    # 7.2: the reference ends the episode and calls it no deadlock
    end = episode_end_record(0, trace("sequential", deadlock_terminal=True))
    assert (end["deadlock"], end["circular_wait"]) == (False, True)
    end = episode_end_record(0, trace(deadlock_terminal=True))
    assert (end["deadlock"], end["circular_wait"]) == (True, True)


def test_resolved_deadlocks_are_events_and_no_deadlock():
    end = episode_end_record(0, trace(steps=3))
    assert (end["deadlock"], end["circular_wait"], end["deadlock_events"]) == (False, False, 3)
    assert episode_end_record(0, trace("sequential", steps=4))["deadlock_events"] == 2  # at round ends only


def test_the_episode_end_holds_the_outcome():
    end = episode_end_record(3, trace(meals=np.array([[0, 0], [1, 2]])))
    assert end["total_timesteps"] == 2 and end["meals_per_philosopher"] == [1, 2] and end["total_meals"] == 3
    assert end["throughput"] == 1.5 and end["fairness"] == pytest.approx(2 / 3)


def written_log(path, config=CONFIG, episodes=2):
    with LogWriter(path, config, {"jaxcoop": "0"}) as log:
        for episode in range(episodes):
            log.write_episode(
                episode,
                trace(
                    deadlock_terminal=True,
                    messages=["I grab left", "wait — née", None, None],
                    llm_calls=[{"tokens_in": 3, "tokens_out": 1}] * 4,
                ),
            )
    return path


def test_a_log_is_read_back_as_it_was_written(tmp_path):
    read = list(read_log(written_log(tmp_path / "a" / "log.jsonl")))
    expected = ["header", "timestep", "timestep", "episode_end", "timestep", "timestep", "episode_end"]
    assert [record["type"] for record in read] == expected
    assert read[0] == {"type": "header", "config": CONFIG, "versions": {"jaxcoop": "0"}}
    assert read[1]["decisions"][1]["message"] == "wait — née"


def test_a_second_run_appends_to_the_log(tmp_path):
    path = written_log(tmp_path / "log.jsonl")
    written_log(path)
    assert [record["type"] for record in read_log(path)].count("header") == 2


def test_a_killed_writers_half_line_is_left_out_and_then_dropped(tmp_path):
    path = written_log(tmp_path / "log.jsonl")
    whole = list(read_log(path))
    with path.open("a") as file:
        file.write('{"type": "timestep", "episode_id"')
    assert list(read_log(path)) == whole
    written_log(path, episodes=0)
    assert list(read_log(path)) == [*whole, whole[0]]


def test_a_broken_line_inside_a_log_is_reported_with_its_number(tmp_path):
    path = written_log(tmp_path / "log.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], "nonsense\n", *lines[1:]]))
    with pytest.raises(ValueError, match="line 2: not a JSON record"):
        list(read_log(path))


def test_a_log_becomes_one_row_per_cell(tmp_path):
    other = CONFIG | {"communication": False}
    path = written_log(tmp_path / "log.jsonl")
    written_log(path, other, episodes=1)
    written_log(path, episodes=1)
    first, second = rows_from_logs([path])
    assert (first["model"], first["condition"], first["episodes"]) == ("scripted", "sim_n2_comm", 3)
    assert (second["condition"], second["episodes"]) == ("sim_n2_nocomm", 1)
    assert (first["deadlock_count"], first["deadlock_rate"], first["max_timesteps"]) == (3, 1.0, 4)
    assert (first["total_llm_calls"], first["total_tokens_in"], first["total_tokens"]) == (12, 36, 48)
    # "I grab left" with GRAB_LEFT agrees, "wait …" with GRAB_LEFT does not
    assert first["message_action_consistency"] == 50.0 and second["message_action_consistency"] is None


def test_steps_of_an_unfinished_episode_are_left_out_of_the_row(tmp_path):
    path = written_log(tmp_path / "log.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    (row,) = rows_from_logs([path])
    assert (row["episodes"], row["total_llm_calls"]) == (1, 4)


def test_a_file_without_a_header_is_no_log(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({"type": "episode_end"}) + "\n")
    with pytest.raises(ValueError, match="does not start with a header"):
        rows_from_logs([tmp_path / "x.jsonl"])


@pytest.mark.parametrize(
    ("old", "code"),
    [
        ("sim5nc", "sim_n5_nocomm"),
        ("seq10c", "seq_n10_comm"),
        ("sim_n5_comm", "sim_n5_comm"),
        ("memory_3", "memory_3"),
    ],
)
def test_old_condition_codes_are_translated(old, code):
    assert canonical_condition(old) == code


@pytest.mark.parametrize(
    ("name", "prompt", "memory", "communication", "rounds"),
    [
        ("sim_n5_nocomm", "default", 0, False, 0),
        ("sim5c", "default", 0, True, 1),
        ("prompt_theory_of_mind", "theory_of_mind", 0, None, None),
        ("memory_5", "default", 5, None, None),
        ("memory_3_with_comm", "default", 3, True, 1),
        ("comm_rounds_3", "default", 0, True, 3),
    ],
)
def test_a_condition_name_tells_prompt_memory_and_rounds(name, prompt, memory, communication, rounds):
    parsed = parse_condition(name)
    assert (parsed.prompt, parsed.memory_window) == (prompt, memory)
    assert (parsed.communication, parsed.communication_rounds) == (communication, rounds)


def test_communication_of_the_configuration_settles_an_open_name():
    assert parse_condition("memory_5", communication=False).communication_rounds == 0


def test_a_missing_deadlock_count_is_restored_from_the_rate():
    row = cell_row({"num_episodes": 30, "deadlock_rate": 0.1333}, model="m", condition="sim5nc")
    assert row["deadlock_count"] == 4


def test_release_0_1_0_has_no_deadlock_events():
    metrics = {"num_episodes": 1, "deadlock_rate": 0.0, "deadlock_count": 0, "total_deadlock_events": 0}
    assert cell_row(metrics, model="m", condition="sim5nc", release="0.1.0")["total_deadlock_events"] is None
    assert cell_row(metrics, model="m", condition="sim5nc")["total_deadlock_events"] == 0


def test_metrics_without_a_number_of_episodes_are_refused():
    with pytest.raises(ValueError, match="have no num_episodes"):
        cell_row({}, model="m", condition="sim5nc")
