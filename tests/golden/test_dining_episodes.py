"""Whole episodes and conversations of the reference's runner, every recorded field compared."""

from collections import defaultdict

import jax
import numpy as np
import pytest
from recorded import grouped, lines_of, play_recorded

from jaxcoop.agents.llm.dining import DiningTalk, DiningTeam
from jaxcoop.envs.dining import Dining
from jaxcoop.envs.dining.metrics import fairness, starvation, throughput
from jaxcoop.envs.dining.records import decision_records, record_count
from jaxcoop.envs.dining.text import neighbour_message
from jaxcoop.envs.dining.types import ACTION_NAMES, Action
from jaxcoop.planning.clients.function import FunctionClient
from jaxcoop.planning.hub import Hub


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Some hundred small programs run once each: compile them fast rather than well."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def check_result(case, meals, timesteps):
    """What follows from meals and length alone."""
    assert meals.tolist() == case["meals"]
    assert timesteps == case["total_timesteps"]
    if "throughput" in case:
        assert meals.sum() == case["total_meals"]
        assert throughput(meals.sum(), timesteps) == case["throughput"]
        assert fairness(meals) == case["fairness"]
        assert starvation(meals) == case["starvation"]


SETTINGS = ("n", "max_timesteps", "mode", "deadlock_terminal")


@pytest.mark.recorded("dining", "episodes*.jsonl.gz", grouped(*SETTINGS))
def test_dining_episodes_end_as_the_reference_ends_them(case):
    n, limit, mode, terminal = (case[0][name] for name in SETTINGS)
    env = Dining(n, mode, limit, terminal)
    steps = np.full((len(case), env.horizon * env.num_actors), int(Action.WAIT))
    for row, episode in zip(steps, case):
        row[: len(episode["actions"])] = [int(a) for a in episode["actions"]]
    out, done = play_recorded(env, steps.reshape(len(case), env.horizon, env.num_actors))
    assert done.all()
    for k, episode in enumerate(case):
        check_result(episode, out.meals[k], out.timesteps[k])
        assert len(episode["actions"]) == out.timesteps[k] * env.num_actors
        assert bool(out.deadlock_reported[k]) == episode["deadlock"]
        reported_at = int(out.deadlock_timestep[k]) if out.deadlock_reported[k] else None
        assert reported_at == episode["deadlock_timestep"]
        assert out.deadlock_events[k] == episode["deadlock_events"]
        records, _ = decision_records([int(a) for a in episode["actions"]], n, mode)
        assert len(records) == episode["decision_records"] == record_count(out.timesteps[k], n, mode)
        assert episode["call_records"] == len(records)
        if episode["decision_actions"] is not None:
            assert "".join(map(str, records)) == episode["decision_actions"]


def test_dining_default_data_hold_episodes_of_every_kind(default_data):
    kinds = {tuple(case[name] for name in SETTINGS[2:]) for case in lines_of(default_data / "dining/episodes.jsonl.gz")}
    assert kinds == {(mode, terminal) for mode in ("simultaneous", "sequential") for terminal in (True, False)}


FIELDS = {
    "st": "state",
    "me": "meals_eaten",
    "lf": "left_fork_status",
    "rf": "right_fork_status",
    "hold": "holding_status",
}
SEEN = "|{left_message}|{right_message}"
DECISION = "|".join(f"{{{field}}}" for field in FIELDS.values()) + SEEN
DISCUSSION = "{round} of {rounds}" + SEEN
PROMPTS = {"system": "{philosopher_name}", "decision": DECISION, "discussion": DISCUSSION}


class Script:
    """A model that says what the recorded philosophers said, and keeps what it was shown."""

    def __init__(self, cases):
        self.cases = cases
        self.heard = defaultdict(list)  # (episode, philosopher) -> user texts in order

    def __call__(self, request):
        _, episode, agent, _ = request.draw
        heard = self.heard[episode, agent]
        call = self.cases[episode]["calls"][str(agent)][len(heard)]
        heard.append(request.messages[1].content)
        said = "" if call["said"] is None else f"MESSAGE: {call['said']}\n"
        return f"THINKING: -\n{said}ACTION: {call['action'] or 'WAIT'}"


def memory_of(user):
    """(timesteps, marks) of the memory section of a prompt."""
    heads = [line.split() for line in user.splitlines() if line.startswith("Timestep ")]
    return [int(head[1]) for head in heads], [len(head) > 2 for head in heads]


def check_call(call, user, communication):
    """What one philosopher was shown in one call, against the record."""
    first = user.splitlines()[0].split("|")
    left, right = call["left_seen"], call["right_seen"]
    assert first[-2:] == [neighbour_message(left), neighbour_message(right)]
    if call["kind"] == "discussion":
        assert first[0] == "{} of {}".format(*call["round"])
        assert call["shown"] == {} and memory_of(user) == ([], []) and call["action"] is None
    else:
        assert call["kind"] == "action" and call["round"] is None
        assert dict(zip(FIELDS, first)) == call["shown"]
    assert memory_of(user) == (call["memory_timesteps"], call["memory_deadlock"])
    assert communication or (left, right) == (None, None)


@pytest.fixture(scope="module")
def programs():
    """Start and ask-closing functions, compiled once for the dialogues that share a program."""
    made = {}

    def find(dialogue):
        key = (dialogue.env, dialogue.communication, dialogue.discussions, dialogue.memory_window)
        if key not in made:

            def look(state):
                return (
                    state,
                    dialogue.need(state),
                    dialogue.done(state),
                    dialogue.view(state),
                    dialogue.outcome(state),
                )

            def start(episode):
                return look(dialogue.begin(jax.random.key(0), episode))

            def close(state, answers, answered):
                return look(dialogue.advance(dialogue.apply(state, answers, answered)))

            made[key] = jax.jit(jax.vmap(start)), jax.jit(jax.vmap(close))
        return made[key]

    return find


def converse(team, episodes, start, close):
    """All episodes to their end, asking everybody who needs an answer at once; returns the outcomes."""
    states, need, done, view, outcome = jax.device_get(start(np.arange(episodes, dtype=np.int32)))
    while not done.all():
        rows = np.nonzero(need)
        fields = {name: x[rows[0]] for name, x in view.episode.items()}
        fields |= {name: x[rows] for name, x in view.agent.items()}
        answers = np.full((*need.shape, team.process.answer_words), -1, np.int32)
        answers[rows] = team.planner.submit(fields).result()
        states, need, done, view, outcome = jax.device_get(close(states, answers, need))
    return outcome.game


TALK = ("n", "mode", "communication", "communication_rounds", "memory_window", "max_timesteps", "deadlock_terminal")


@pytest.mark.recorded("dining", "communication*.jsonl.gz", grouped(*TALK))
def test_dining_conversations_show_and_do_what_the_reference_did(case, programs):
    n, mode, communication, rounds, window, limit, terminal = (case[0][name] for name in TALK)
    env = Dining(n, mode, limit, terminal)
    talk = DiningTalk(communication, rounds, window, **PROMPTS)
    script = Script(case)
    with Hub(FunctionClient(script, temperature=None)) as hub:
        team = DiningTeam(env, talk, hub, seed=0)
        out = converse(team, len(case), *programs(team.process))
        events = team.take_events()
    for k, episode in enumerate(case):
        check_result(episode, out.meals[k], out.timesteps[k])
        assert out.deadlock_events[k] == episode["deadlock_events"]
        assert record_count(out.timesteps[k], n, mode) == episode["decision_records"]
        assert episode["call_records"] == episode["decision_records"]
        for agent, calls in episode["calls"].items():
            heard = script.heard[k, int(agent)]
            assert len(heard) == len(calls), (k, agent)
            for call, user in zip(calls, heard):
                check_call(call, user, communication)
            mine = (events["episode"] == k) & (events["agent"] == int(agent))
            acted = [ACTION_NAMES[a] for a in events["action"][mine & (events["discussion_round"] == 0)]]
            assert acted == [c["action"].lower() for c in calls if c["kind"] == "action"]
            said = [c["said"] or "" if communication else "" for c in calls]
            assert events["message"][mine].tolist() == said


def test_dining_default_data_hold_conversations_of_both_modes(default_data):
    cases = lines_of(default_data / "dining" / "communication.jsonl.gz")
    assert {case["mode"] for case in cases} == {"simultaneous", "sequential"}
    assert {call["kind"] for case in cases for calls in case["calls"].values() for call in calls} == {
        "action",
        "discussion",
    }
