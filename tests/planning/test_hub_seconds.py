"""How long answers took: measured by the hub, kept in the record, the same in a replay."""

import pytest

from jaxcoop.planning import Record, Reply, Status
from jaxcoop.planning.request import Transient

from .asking import ask, echo


def slow(time, seconds, fails=0):
    """A client whose calls take `seconds`, the first `fails` of them in vain."""
    seen = []

    def fn(request):
        time.now += seconds
        seen.append(request)
        if len(seen) <= fails:
            raise Transient("server")
        return Reply(echo(request), seconds=99.0)

    return fn


def test_the_time_of_a_call_is_recorded_and_a_replay_gives_the_same(make_hub, time, tmp_path):
    with Record(tmp_path / "r") as record:
        answer = make_hub(slow(time, 1.25), record).submit([ask("a")]).result(20)[0]
        assert answer.seconds == answer.reply.seconds == 1.25
    with Record(tmp_path / "copy") as record:
        record.take_answers(tmp_path / "r")
        again = make_hub(slow(time, 7.0), record, replay=True).submit([ask("a")]).result(20)[0]
        assert again == answer and again.seconds == 1.25


def test_only_the_call_that_brought_the_reply_counts(make_hub, time):
    answer = make_hub(slow(time, 2.0, fails=2), base=5.0).submit([ask("a")]).result(20)[0]
    assert answer.status == Status.OK and answer.seconds == 2.0


def test_a_request_without_a_reply_took_what_its_calls_took_without_the_pauses(make_hub, time):
    hub = make_hub(slow(time, 2.0, fails=9), attempts=3, base=5.0)
    answer = hub.submit([ask("a")]).result(20)[0]
    assert (answer.reply, answer.status, answer.seconds) == (None, Status.FALLBACK, 6.0)
    assert time.now > 6.0
    assert hub.usage().calls == 3


def test_the_last_one_of_malformed_replies_counts(make_hub, time):
    request = ask("a", malformed=lambda reply: "never right")
    answer = make_hub(slow(time, 2.0), reasks=2).submit([request]).result(20)[0]
    assert answer.status == Status.MALFORMED and answer.seconds == 2.0


def test_replies_that_say_the_same_are_equal():
    assert Reply("a", seconds=1.0) == Reply("a", seconds=2.0)


@pytest.mark.parametrize(("given", "kept"), [(float("nan"), 0.0), (-1, 0.0), ("x", 0.0), (2, 2.0), (1e30, 2.0**53)])
def test_a_time_that_is_none_is_put_right(given, kept):
    assert Reply.from_json(Reply("a", seconds=given).as_json()).seconds == kept


def test_records_of_other_versions_have_no_times():
    assert Reply.from_json('{"text": "a"}').seconds == 0.0
