"""Every prompt, as it is sent: `python -m jaxcoop.agents.llm.coop2.catalogue cube` prints those of a world.

The state is the start of an episode; plans, messages and a repair request are made up to fill all parts.
"""

import argparse
import dataclasses
from collections.abc import Mapping

from jaxcoop.agents.llm.coop2.facts import (
    REPAIR_REQUEST,
    Candidate,
    Facts,
    Failure,
    Mail,
    MemoryEvent,
    PlanView,
    RepairRequest,
    Role,
    ToolHint,
    World,
    agent_name,
)
from jaxcoop.agents.llm.coop2.fixed import chain_summary, failed_statement, failed_text, leader_request
from jaxcoop.agents.llm.coop2.parsing import Profile
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan, specification
from jaxcoop.agents.llm.coop2.prompts import Prompt, interrupt_prompt, plan_prompt, statement_prompt, text_prompt
from jaxcoop.agents.llm.coop2.repair import request_text
from jaxcoop.cognition.logs import REPAIR_SENDER

TEAM = 3


def example_plan(profile: Profile) -> TextPlan:
    """A plan of this world."""
    if profile == "cube":
        actions = (
            Operation("navigate", {"entity_type": "block", "entity_id": 0, "timeout": 30}),
            Operation("wait", {"num_steps": 2}),
            Operation("push", {"block_id": 0, "num_steps": 5}),
        )
        return TextPlan(specification("push_block", "block", 0), actions, "push_block", "block", 0)
    actions = (
        Operation("navigate", {"object_type": "coal", "item_id": 7, "timeout": 30}),
        Operation("collect", {"target": "coal", "steps": 5}),
    )
    return TextPlan(specification("collect_coal", "coal", 7), actions, "collect_coal", "coal", 7)


def example_request(profile: Profile) -> RepairRequest:
    """A repair request of this world, with a statement of agent 0."""
    plan = example_plan(profile)
    views = {agent: PlanView(plan, number=2 + agent) for agent in range(2)}
    task = "block_0_left" if profile == "cube" else "7"
    request = RepairRequest(
        step=12,
        failures=(Failure(task, "temporal", score=0.5, required=2, agents=(0,), about=plan.target),),
        views=views,
        recommended=dict.fromkeys(range(2), plan),
        strategy="align_push",
        statements=((0, "I will be in place at step 15 and start then."),),
    )
    if profile == "cube":
        return request
    target = Candidate("coal#7", (0, 1), (5, 5), steps=4, timeout=9, stage="collect_ready", reach="good")
    hint = ToolHint("coal#7", "wood_pickaxe", {0: "holds it", 1: "place a table and craft it"})
    failures = (*request.failures, Failure(task, "dependency", 0.5, 2, (0,), "coal at x=5, y=5", "wood_pickaxe"))
    return dataclasses.replace(
        request,
        failures=failures,
        strategy="dependency_first",
        target=target,
        tools=(hint,),
        blocked=(target,),
    )


def example_facts(profile: Profile, world: World) -> Facts:
    """An independent agent 1 in the middle of an episode."""
    plan = PlanView(example_plan(profile), number=1, status="executing", index=1)
    mail = Mail(agent_name(0), "Meet me there, I arrive in four steps.", 9, recipients=(agent_name(1), agent_name(2)))
    return Facts(
        profile=profile,
        agent=1,
        team=TEAM,
        step=12,
        world=world,
        messages=(mail,),
        memory=(MemoryEvent("message_in", 9, mail=mail), MemoryEvent("plan", 10, plan=plan)),
        plan=plan,
    )


def every_prompt(profile: Profile, worlds: Mapping[int, World]) -> dict[str, Prompt]:
    """Prompts of all calls of all structures by a name that says which; `worlds` of agents 0 and 1."""
    facts = example_facts(profile, worlds[1])
    request = example_request(profile)
    repair = Mail(REPAIR_SENDER, request_text(profile, request), 12, REPAIR_REQUEST, request=request)
    is_crafter = profile == "macrafter"
    directive = leader_request(0) if is_crafter else "We push block 0. agent_1 and agent_2 go there and wait for me."
    proposal = (
        chain_summary(0, example_plan(profile)) if is_crafter else "I push block 0 and need one partner at step 16."
    )
    order = Mail(agent_name(0), directive, 11, "leader_broadcast", interrupts=is_crafter)
    answer = Mail(agent_name(2), "I am on my way and can be there in five steps.", 11, "follower_response")
    proposed = Mail(agent_name(0), proposal, 11, "broadcast_chain", speaker_order=0)
    first = dataclasses.replace(facts, agent=0, world=worlds[0], memory=(), messages=())
    leader = dataclasses.replace(first, role=Role("leader"), collected=(answer,))
    follower = dataclasses.replace(facts, role=Role("follower"), directive=directive, messages=(order,))
    speaker = dataclasses.replace(facts, role=Role("speaker", position=1), collected=(proposed,), messages=(proposed,))
    member = dataclasses.replace(facts, role=Role("member", text="The team talks in a ring."), collected=(proposed,))
    told = dataclasses.replace(follower, interrupted=True)
    prompts = {
        "individual: plan": plan_prompt(facts),
        "individual: plan after a repair request": plan_prompt(
            dataclasses.replace(facts, interrupted=True, messages=(repair,))
        ),
        "individual: interrupt": interrupt_prompt(dataclasses.replace(facts, interrupted=True)),
        "centralized: plan of the leader": plan_prompt(leader),
        "centralized: answer of a follower": text_prompt(follower),
        "centralized: answer after an interrupt": text_prompt(dataclasses.replace(told, decision="resumed")),
        "centralized: plan of a follower": plan_prompt(follower),
        "centralized: interrupt of a follower": interrupt_prompt(told),
        "chain: plan of a speaker": plan_prompt(speaker),
        "chain: interrupt of a speaker": interrupt_prompt(dataclasses.replace(speaker, interrupted=True)),
        "own structure: message": text_prompt(member),
        "own structure: plan": plan_prompt(member),
        "repair: statement": statement_prompt(facts, request),
    }
    if not is_crafter:
        prompts["centralized: directive of the leader"] = text_prompt(leader)
        prompts["chain: proposal of a speaker"] = text_prompt(speaker)
    return prompts


def fixed_texts(profile: Profile) -> dict[str, str]:
    """Messages that no model writes."""
    texts = {
        "failed directive": failed_text(0, "leader"),
        "failed answer": failed_text(1, "follower"),
        "failed proposal": failed_text(1, "speaker"),
        "failed repair statement": failed_statement(1),
        "repair request": request_text(profile, example_request(profile)),
    }
    if profile == "macrafter":
        texts["request of the leader"] = leader_request(0)
        texts["summary of a speaker"] = chain_summary(0, example_plan(profile))
    return texts


def example_worlds(profile: Profile) -> dict[int, World]:
    """What agents 0 and 1 perceive at the start of an episode."""
    import jax

    from jaxcoop.agents.llm.coop2.worlds import worlds
    from jaxcoop.core.registry import make

    env = make(profile, agents=TEAM)
    return worlds(profile, env, jax.device_get(env.reset(jax.random.key(0))), (0, 1))


def main(arguments: list[str] | None = None) -> None:
    """Print all prompts and fixed texts of one world."""
    parser = argparse.ArgumentParser(
        prog="python -m jaxcoop.agents.llm.coop2.catalogue", description="Every prompt of a cognitive team."
    )
    parser.add_argument("profile", choices=("cube", "macrafter"), help="the world")
    profile = parser.parse_args(arguments).profile
    for name, prompt in every_prompt(profile, example_worlds(profile)).items():
        print(f"===== {name} =====")
        for role, content in prompt.messages:
            print(f"[{role}]\n{content}\n")
    for name, text in fixed_texts(profile).items():
        print(f"===== {name} =====\n{text}\n")


if __name__ == "__main__":
    main()
