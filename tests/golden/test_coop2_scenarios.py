"""Recorded runs of agents that think: every event, plan, message, call and memory, under the canonical schedule."""

import dataclasses

import coop2_scenarios
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coop2_cases import of_group
from recorded import lines_of

from jaxcoop.cognition import process, stages
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.domain import CUBE, MACRAFTER
from jaxcoop.cognition.programs import INTERRUPTS
from jaxcoop.cognition.structures import INDIVIDUAL, structure_of
from jaxcoop.cognition.types import STAGES, Mail, Stage, is_ready

LARGE = 6
"""Teams from this size on run with `make test-all`: each size and structure is a program of its own."""


def teams(path):
    """The scenarios of one profile, structure and team size together; those of large teams are slow."""
    groups = {}
    for case in lines_of(path):
        definition = case["definition"]
        groups.setdefault((definition["profile"], definition["topology"], definition["n"]), []).append(case)
    for (profile, structure, agents), cases in groups.items():
        marks = [pytest.mark.slow] if agents >= LARGE else []
        yield f"{profile}-{structure}-{agents}", cases, *marks


@pytest.mark.recorded("coop2", "scenarios.jsonl.gz", teams)
def test_coop2_scenarios_replay_event_by_event(case):
    for scenario in case:
        definition, expected = scenario["definition"], scenario["expected"]
        state, script = coop2_scenarios.play(definition)
        found = coop2_scenarios.logs(definition, state, script)
        for number, (event, wanted) in enumerate(zip(found["events"], expected["events"])):
            assert event == wanted, f"{scenario['id']}, event {number}"
        for name, wanted in expected.items():
            assert found[name] == wanted, f"{scenario['id']}, {name}"


FIRST = {"latency": {"text": 4, "plan": 10, "decide": 7, "intent": 3, "per_agent": 0}, "T": 4}


def counts(profile, structure, agents, ready, decides):
    """Messages, calls and interrupts of the round that follows when the agents not in `ready` have finished."""
    plans = {f"agent_{i}": [[3]] if i in ready else [[1], [2]] for i in range(agents)}
    definition = {**FIRST, "profile": profile, "topology": structure, "n": agents, "plans": plans}
    definition["default"] = {"decide": decides}
    first, _ = coop2_scenarios.play({**definition, "T": 1})
    both, _ = coop2_scenarios.play({**definition, "T": 2})
    before, after = (jax.device_get(state.totals) for state in (first, both))
    entries = (after.entries - before.entries)[:, Stage.INTERRUPTED].sum()
    sent, asked = after.messages.sum() - before.messages.sum(), after.calls.sum() - before.calls.sum()
    return int(sent), int(asked), int(entries)


@pytest.mark.parametrize("agents", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 6, 16, 64))])
@pytest.mark.parametrize("profile", ["cube", "macrafter"])
def test_coop2_decision_rounds_cost_what_the_table_says(profile, agents):
    n, is_cube, everybody = agents, profile == "cube", set(range(agents))
    last, middle = n - 1, n // 2
    wanted, found = {}, {}

    def expect(name, structure, finished, decides, messages, calls, interrupts):
        wanted[name] = (messages, calls, interrupts)
        found[name] = counts(profile, structure, n, everybody - set(finished), decides)

    expect("individual", "individual", everybody, "resume", 0, n, 0)
    expect("some alone", "individual", [0, last], "resume", 0, len({0, last}), 0)
    expect("led, all", "centralized", everybody, "resume", n, 2 * n if is_cube else 2 * n - 1, 0)
    expect("led, leader", "centralized", [0], "resume", n, 2 * n if is_cube else 2 * n - 1, n - 1)
    expect("led, followers", "centralized", [last], "resume", 0, 1, 0)
    expect("chain, all", "broadcast_chain", everybody, "resume", n - 1, 2 * n - 1 if is_cube else n, 0)
    for k in {0, middle, last}:
        later = last - k
        speaks = 1 if k < last else 0
        own = 1 + speaks if is_cube else 1
        expect(f"chain, {k}, resume", "broadcast_chain", [k], "resume", speaks, own + later, later)
        talks = 2 * later if is_cube else later
        expect(f"chain, {k}, replan", "broadcast_chain", [k], "replan", later, 1 + talks, later)
    assert found == wanted


@pytest.mark.recorded("coop2", "cases.jsonl.gz", of_group("messages.route"))
def test_coop2_messages_reach_and_interrupt_whom_they_should(case):
    """The engine's own delivery; a recipient that does not exist stays in the log only."""
    given, expected = case["input"], case["expected"]
    agents = len(given["stages"])
    profile = {"cube": CUBE, "macrafter": MACRAFTER}[given["profile"]]
    setup = Setup(coop2_scenarios.Timed(coop2_scenarios.Waiting(agents), profile), INDIVIDUAL)
    state = process.begin(setup, jax.random.key(0), jnp.int32(0))
    codes = jnp.asarray([STAGES.index(letter) for letter in given["stages"]], jnp.int32)
    state = dataclasses.replace(state, minds=state.minds.replace(stage=codes))
    sender, names = int(given["sender"].rsplit("_", 1)[1]), given["recipients"]
    if names == "all":
        names = [f"agent_{i}" for i in range(agents) if i != sender]
    names = [names] if isinstance(names, str) else names
    to = np.isin([f"agent_{i}" for i in range(agents)], names)
    metadata = given["metadata"]
    kind = metadata.get("type", metadata.get("message_type", ""))
    named = {mail.name.lower(): mail for mail in Mail} | {"coop2_repair_request": Mail.REPAIR_REQUEST}
    mail = named.get(kind, Mail.OTHER)
    flags = INTERRUPTS if metadata.get("interrupts_execution") else 0
    words = (jnp.int32(sender), jnp.asarray(to), jnp.int32(int(mail)), jnp.int32(flags))
    state, turned = stages.deliver(setup, state, jnp.bool_(True), *words)
    state = stages.enter(state, turned, int(Stage.INTERRUPTED))
    ids = [f"agent_{i}" for i in range(agents)]
    assert {i: STAGES[s] for i, s in zip(ids, np.asarray(state.minds.stage))} == expected["stages"]
    assert dict(zip(ids, np.asarray(is_ready(state.minds.stage)).tolist())) == expected["ready"]
    assert dict(zip(ids, np.asarray(state.mail.unread).tolist())) == expected["buffered"]
    assert int(state.mail.log.count) == expected["messages_logged"]
    assert names == expected["log_recipients"]


def test_coop2_structures_of_teams_that_are_too_small_are_refused():
    domain = coop2_scenarios.Timed(coop2_scenarios.Waiting(1), CUBE)
    with pytest.raises(ValueError, match="agents 1: structure 'centralized' needs 2 or more"):
        Setup(domain, structure_of("cube", "centralized"))
    assert Setup(domain, structure_of("cube", "broadcast_chain")).agents == 1
