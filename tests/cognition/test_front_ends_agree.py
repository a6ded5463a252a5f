"""One planner on the device, behind the host callback and in segments: equal episodes, bit for bit."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxcoop
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.play import play
from jaxcoop.cognition.process import answer_of
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.repair.config import PRESETS
from jaxcoop.cognition.structures import STRUCTURES, structure_of
from jaxcoop.cognition.thinking import HEAD, Thinking, begin_all
from jaxcoop.cognition.types import Call, Verdict
from jaxcoop.envs.cube.minds import CubeMinds
from jaxcoop.envs.cube.skills import WIDTH, Op
from jaxcoop.envs.cube.types import Action
from jaxcoop.planning import FRONT_ENDS, FunctionPlanner, Status
from jaxcoop.planning.process import flat_fields

ENV = jaxcoop.make("cube", side=8, agents=3, blocks="2:1,1:2", max_steps=12)
EPISODES, OPS = 5, 4
SEEN = ("episode", "step", "agent", "call", "kind", "stage", "got", "has_plan", "message_count", "directive")


def mixed(xp, parts):
    """A number below 2^15 that depends on all the parts [R]."""
    total = xp.zeros(parts[0].shape, xp.uint32)
    for part in parts:
        total = (total ^ part.astype(xp.uint32)) * xp.uint32(2654435761)
        total = total ^ (total >> xp.uint32(15))
    return (total >> xp.uint32(16)).astype(xp.int32) % 32768


def parts_of(xp, rows):
    """Everything in the view that this planner looks at, one number for each row."""
    whole = [rows[name] for name in SEEN]
    mail = [(rows[name] & 0xFFFF).sum(1).astype(xp.int32) for name in ("shown", "history", "inbox")]
    world = [rows[name].astype(xp.int32) @ xp.arange(1, 1 + rows[name].shape[1]) for name in ("world.row", "world.col")]
    return whole + mail + world + [rows["memory"].sum((1, 2)).astype(xp.int32), rows["channel.target"]]


def decide(xp, rows):
    """Words of the answers: whatever the view says decides the verdict, the latency and the plan."""
    base = mixed(xp, parts_of(xp, rows))

    def draw(number, size):
        return (base + number * 4099) * 28411 % 65521 % size

    verdict = xp.where(
        rows["kind"] == Call.DECIDE,
        draw(0, 4) + 1,  # ERROR, RESUME, REPLAN, REPLAN_EMPTY
        xp.where(draw(1, 8) == 0, int(Verdict.ERROR), int(Verdict.OK)),
    )
    verdict = xp.where(rows["kind"] == Call.STATEMENT, int(Verdict.OK), verdict)
    block = draw(2, 3)
    none = xp.full_like(block, -1)
    kind = draw(3, 3)
    walks = xp.where(kind == 0, int(Op.NAVIGATE), int(Op.MOVE))
    first = xp.where(kind == 0, 0, draw(4, 4) + int(Action.UP))
    second = xp.where(kind == 0, block, draw(5, 3) + 1)
    ops = [walks, first, second, none]
    ops += [xp.full_like(block, int(Op.PUSH)), block, draw(6, 3) + 1, none]
    ops += [none] * (WIDTH * (OPS - 2))
    advised = rows["is_advised"] & (draw(7, 2) == 0)
    own = rows["agent"]
    lines = xp.arange(len(own))
    spec = xp.stack([draw(8, 2), block, none], -1)
    plan = xp.stack(ops, -1)
    length = xp.full_like(block, 2)
    spec = xp.where(advised[:, None], rows["channel.spec"][lines, own], spec)
    plan = xp.where(advised[:, None], rows["channel.ops"][lines, own].reshape(len(own), -1), plan)
    length = xp.where(advised, rows["channel.length"][lines, own], length)
    head = xp.stack([verdict, draw(9, 40) * 25, length], -1)
    status = xp.full((len(own), 1), int(Status.OK), xp.int32)
    return xp.concatenate([head, spec, plan, status], -1).astype(xp.int32)


@dataclasses.dataclass(frozen=True)
class Scripted:
    """The same planner on the device."""

    setup: Setup

    def init(self, key) -> Any:
        return ()

    def answer(self, key, memory, state, asks):
        view = jax.tree.map(lambda x: x[None], Thinking(self.setup).view(state))
        rows = {name: x[0] for name, x in flat_fields(view, self.setup.agents).items()}
        return answer_of(decide(jnp, rows), OPS, WIDTH), memory


def setup_of(structure, repairs):
    return Setup(
        CubeMinds(ENV),
        structure_of("cube", structure),
        plan_ops=OPS,
        budget_ms=25_000,
        repair=dataclasses.replace(PRESETS["cube"], enabled=repairs),
        capacity=Capacity(timeline=400, messages=48, calls=200),
    )


def same(got, expected):
    """Equal in every leaf."""
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(expected), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b, jax.tree_util.keystr(path))


CASES = [
    ("centralized", False),  # the check of a repair takes most of the time that the programs take to compile
    *(pytest.param(structure, True, marks=pytest.mark.slow) for structure in STRUCTURES["cube"]),
]


@pytest.mark.parametrize(("structure", "repairs"), CASES)
def test_device_callback_and_segments_give_equal_states(structure, repairs):
    setup = setup_of(structure, repairs)
    root, numbers = jax.random.key(3), jnp.arange(EPISODES, dtype=jnp.int32)
    on_device = jax.device_get(play(setup, Scripted(setup), root, numbers))
    thinking = Thinking(setup)
    assert thinking.answer_words == HEAD + OPS * WIDTH + 1
    for name in ("in_graph", "segments"):
        planner = FunctionPlanner(lambda rows: decide(np, rows), thinking.answer_words)
        same(jax.device_get(FRONT_ENDS[name](thinking, planner, begin_all(thinking, root, numbers))), on_device)
    totals, talks = on_device.totals, structure != "individual"
    assert (totals.calls.sum((0, 1)) > 0).tolist() == [talks, True, talks, repairs]
    assert totals.errors.sum() > 0 and on_device.step.sum() > 0 and len(set(on_device.now.tolist())) > 1
