"""What answers of language models add to results."""

import numpy as np
import pytest

from jaxcoop.agents.llm.dining import DiningTalk, answers_row
from jaxcoop.agents.llm.dining_events import Decision, decision_columns
from jaxcoop.envs.dining import Dining
from jaxcoop.envs.dining.results import RESULTS
from jaxcoop.envs.dining.types import Outcome


def decision(agent, discussion_round, action, message, ask=0):
    return Decision(0, ask, 0, discussion_round, agent, action, message, None, 0)


COLUMNS = {
    f"answers_{name}": np.array([n]) for name, n in (("ok", 3), ("fallback", 0), ("missing", 0), ("malformed", 1))
}


def test_consistency_compares_a_message_with_the_action_of_its_own_reply_only():
    events = decision_columns(
        [
            decision(0, 1, 3, "I will grab left"),  # a discussion: no action, not counted
            decision(0, 0, 0, "I will grab left", ask=1),
            decision(1, 0, 1, "I will grab left", ask=1),
        ]
    )
    row = answers_row(Dining(2), DiningTalk(communication=True, communication_rounds=2), COLUMNS, events)
    assert row["message_action_consistency"] == 50.0
    assert row["answers"] == 4 and row["malformed"] == 1


def test_without_communication_there_is_no_consistency():
    events = decision_columns([decision(0, 0, 0, None), decision(1, 0, 1, None)])
    assert "message_action_consistency" not in answers_row(Dining(2), DiningTalk(), COLUMNS, events)


def test_one_long_text_does_not_make_every_row_long():
    events = decision_columns([decision(0, 0, 0, "x" * 10_000), *(decision(i, 0, 3, "hi\\0") for i in range(1, 1000))])
    assert events["message"].nbytes < 100_000
    assert events["message"][1] == "hi\\0"


def test_a_sequential_circular_wait_has_a_time_though_it_is_not_reported():
    one = np.array([1])
    outcome = Outcome(
        meals=np.zeros((1, 3), np.int32),
        timesteps=one * 6,
        deadlock=one == 1,
        deadlock_reported=one == 0,
        deadlock_timestep=one * 6,
        deadlock_events=one * 0,
        timeout=one == 0,
    )
    row = RESULTS.cell(RESULTS.columns(outcome))
    assert row["avg_time_to_true_deadlock"] == 6.0 and row["avg_time_to_deadlock"] is None
    assert row["true_deadlock_count"] == 1 and row["deadlock_count"] == 0


@pytest.mark.parametrize("wrong", ["@/no/such/file", "{nobody}"])
def test_a_template_that_cannot_be_used_is_refused(wrong):
    with pytest.raises(ValueError, match=r"nobody|cannot read"):
        DiningTalk(decision=wrong).prompts()
