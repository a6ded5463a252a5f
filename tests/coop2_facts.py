"""What tests of prompts share: facts of a call with marks in every part, worlds to look at, the order of parts."""

import dataclasses

import jax
import jax.numpy as jnp

import jaxcoop
from jaxcoop.agents.llm.coop2.catalogue import example_request
from jaxcoop.agents.llm.coop2.facts import REPAIR_REQUEST, Facts, Mail, PlanView, Role, World
from jaxcoop.agents.llm.coop2.plans import Operation, TextPlan
from jaxcoop.agents.llm.coop2.repair import request_text
from jaxcoop.cognition.logs import REPAIR_SENDER
from jaxcoop.envs.macrafter.types import Material

PROFILES = ("cube", "macrafter")
WORLD = World(
    configuration="CONFIGURATION",
    view="VIEW",
    position="POSITION",
    visible_area="AREA",
    status="STATUS",
    inventory="INVENTORY",
    hints="HINTS",
)
PLAN = PlanView(TextPlan("task(thing#1)", tuple(Operation(f"op{k}", {}) for k in range(9))), 4, "executing", 2)
MAIL = Mail("agent_0", "HELLO", 3, "leader_broadcast", ("agent_1", "agent_2"), interrupts=True)


def facts(profile="cube", kind="independent", **changes):
    base = Facts(profile, agent=1, team=3, step=12, world=WORLD, role=Role(kind, position=1))
    return dataclasses.replace(base, **changes)


def repair_mail(profile="cube", **changes):
    request = dataclasses.replace(example_request(profile), **changes)
    return Mail(REPAIR_SENDER, request_text(profile, request), 12, REPAIR_REQUEST, request=request)


def in_order(text, *parts):
    """All parts, each after the one before."""
    at = -1
    for part in parts:
        found = text.find(part, at + 1)
        assert found > at, f"{part!r} is not there after what comes before it"
        at = found


def cube_scene(agents=3, **options):
    """An environment and the start of an episode, on the host."""
    env = jaxcoop.make("cube", agents=agents, **options)
    return env, jax.device_get(env.reset(jax.random.key(1)))


def crafter_scene(agents=3):
    """A meadow with a tree in it, made by hand since a world takes long to compile."""
    env = jaxcoop.make("macrafter", agents=agents, width=9, height=9, balance=False)
    world = jnp.full((9, 9), Material.GRASS, jnp.uint8).at[4, 4].set(Material.TREE)
    nobody = jnp.full((1,), -1, jnp.int16)
    x = jnp.arange(1, 1 + agents, dtype=jnp.int16)
    return env, jax.device_get(env.start(world, nobody, nobody, x=x, y=jnp.full((agents,), 4, jnp.int16)))


SCENES = {"cube": cube_scene, "macrafter": crafter_scene}
