"""The scripted model of cognitive teams: its replies can be read, fit each other, and are the same every time."""

import json
import urllib.request

import jax
import numpy as np
import pytest
from coop2_facts import SCENES, crafter_scene, cube_scene

from jaxcoop.agents.llm.coop2.catalogue import every_prompt
from jaxcoop.agents.llm.coop2.facts import Facts
from jaxcoop.agents.llm.coop2.parsing import read_decision, read_plan, read_text
from jaxcoop.agents.llm.coop2.prompts import interrupt_prompt, plan_prompt
from jaxcoop.agents.llm.coop2.words import plan_words
from jaxcoop.agents.llm.coop2.worlds import worlds
from jaxcoop.benchmarks.cognitive_replies import cognitive_policy
from jaxcoop.benchmarks.loopback import LoopbackServer
from jaxcoop.core.skills import Status
from jaxcoop.envs.macrafter.types import Item


def body(prompt):
    """A request as a client sends it."""
    return {"messages": [{"role": role, "content": content} for role, content in prompt.messages]}


def reply(prompt):
    return cognitive_policy(body(prompt))


@pytest.mark.parametrize("profile", ["cube", "macrafter"])
def test_every_call_gets_a_reply_that_can_be_read(profile):
    env, state = SCENES[profile]()
    for name, prompt in every_prompt(profile, worlds(profile, env, state, (0, 1))).items():
        text = reply(prompt)
        assert text == reply(prompt), name
        if prompt.kind == "plan":
            assert read_plan(profile, text, require_action_type=True).actions, name
        elif prompt.kind == "interrupt":
            read_decision(profile, text, require_action_type=True)
        else:
            assert read_text(text).startswith(("agent_", "Whoever")), name


def plans_of(profile, env, state, team):
    seen = worlds(profile, env, state, range(team))
    return [
        read_plan(profile, reply(plan_prompt(Facts(profile, agent, team, 0, world)))) for agent, world in seen.items()
    ]


def test_the_nearest_agents_take_a_block_together_and_deliver_it():
    env, state = cube_scene(side=10, blocks="2:1,5:1")
    plans = plans_of("cube", env, state, 3)
    assert sorted(plan.specification for plan in plans) == [
        "push_block(block#0)",
        "push_block(block#0)",
        "wait(block#0)",
    ]
    words = [plan_words("cube", plan, 4) for plan in plans]
    skills, memory = env.skills, env.skills.idle()

    @jax.jit
    def play(state, memory, rows, fresh):
        memory = skills.begin(state, memory, rows, fresh)
        command, memory = skills.command(state, memory)
        state = env.step(state, command, env.sample_draws(jax.random.key(0), state)).state
        return state, memory, skills.check(state, memory).status

    index, fresh = np.zeros(3, int), np.ones(3, bool)
    for _ in range(60):
        rows = np.stack([plan.ops[min(k, 3)] for plan, k in zip(words, index)])
        state, memory, status = play(state, memory, rows, fresh)
        fresh = np.asarray(status) != Status.PENDING
        index += fresh
    assert float(state.score) == 2


def test_the_way_to_a_pickaxe_is_found():
    env, state = crafter_scene(agents=1)

    def plan(**items):
        inventory = state.inventory.copy()
        for name, count in items.items():
            inventory[0, Item[name.upper()]] = count
        return plans_of("macrafter", env, state.replace(inventory=inventory), 1)[0]

    tree = 4 * 9 + 4 + 1
    assert plan().specification == f"collect_wood(tree#{tree})"
    crafts = plan(wood=3)
    assert [action.kind for action in crafts.actions] == ["place", "craft"] and crafts.task == "make_wood_pickaxe"
    assert plan(wood_pickaxe=1, wood=3).specification == f"collect_wood(tree#{tree})"


def test_interrupted_agents_decide_differently():
    world = worlds("cube", *cube_scene(agents=2), (0,))[0]
    read = [read_decision("cube", reply(interrupt_prompt(Facts("cube", 0, 2, step, world)))) for step in range(200)]
    kinds = {(decision.decision, decision.plan is not None) for decision in read}
    assert kinds == {("resume", False), ("replan", True), ("replan", False)}


def test_the_loopback_server_answers_by_it():
    prompt = plan_prompt(Facts("cube", 0, 3, 0, worlds("cube", *cube_scene(), (0,))[0]))
    with LoopbackServer(cognitive_policy) as server:
        request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body(prompt)).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            content = json.load(answer)["choices"][0]["message"]["content"]
    assert content == reply(prompt)
