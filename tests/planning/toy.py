"""A small process for planning tests: two agents play skills of 2 to 6 steps; an answer names skill and
target.

Axes: A = 2 agents, W = 3 words (skill, target, status).  The skill's length depends on the answer, so
episodes drift apart, and every bit of the outcome depends on every answer.
"""

import dataclasses
import hashlib
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jaxcoop.planning import Message, Request, Status, View

AGENTS, WORDS, SKILLS = 2, 3, 5
traces = {"advance": 0}  # times `advance` was traced


@struct.dataclass
class State:
    seed: jax.Array  # [] episode number
    key: jax.Array  # [] typed PRNG key, consumed by advance
    t: jax.Array  # [] steps made
    left: jax.Array  # [A] steps left of the current skill, 0 asks
    decisions: jax.Array  # [A] answers applied
    total: jax.Array  # [A] running hash of all answers
    status: jax.Array  # [A, 4] answers by status
    noise: jax.Array  # [] random float, never part of a view


@dataclass(frozen=True)
class Toy:
    horizon: int = 12
    num_agents: int = AGENTS
    answer_words: int = WORDS
    max_rounds: int = 14

    def need(self, s):
        return (s.left == 0) & ~self.done(s)

    def view(self, s):
        return View(
            episode={"seed": s.seed, "t": s.t},
            agent={"agent": jnp.arange(AGENTS), "decisions": s.decisions, "total": s.total},
        )

    def apply(self, s, answers, answered):
        skill, target, status = answers[:, 0], answers[:, 1], answers[:, 2]
        skill = jnp.where(status == Status.OK, skill, 0)
        total = (s.total * 31 + skill * 7 + target + 1) % 65521
        counted = s.status + jax.nn.one_hot(status, 4, dtype=jnp.int32)
        return s.replace(
            left=jnp.where(answered, skill + 2, s.left),
            total=jnp.where(answered, total, s.total),
            decisions=s.decisions + answered,
            status=jnp.where(answered[:, None], counted, s.status),
        )

    def advance(self, s):
        traces["advance"] += 1
        key, now = jax.random.split(s.key)
        return s.replace(key=key, noise=jax.random.uniform(now), t=s.t + 1, left=jnp.maximum(s.left - 1, 0))

    def done(self, s):
        return s.t >= self.horizon


def reset(episodes, first=0):
    seeds = jnp.arange(first, first + episodes, dtype=jnp.int32)

    def one(seed):
        zeros = jnp.zeros(AGENTS, jnp.int32)
        return State(
            seed=seed,
            key=jax.random.key(seed),
            t=jnp.int32(0),
            left=zeros,
            decisions=zeros,
            total=zeros,
            status=jnp.zeros((AGENTS, 4), jnp.int32),
            noise=jnp.float32(0),
        )

    return jax.vmap(one)(seeds)


def decide(rows):
    """Answer words [R, 3] that depend on every field of the rows."""
    mixed = rows["seed"] * 7919 + rows["agent"] * 104729 + rows["decisions"] * 1299709 + rows["total"] * 31 + rows["t"]
    return np.stack([mixed % SKILLS, mixed % 11, np.zeros_like(mixed)], -1).astype(np.int32)


def write(rows):
    """One request for each row."""
    return [
        Request((Message("user", " ".join(f"{name}={int(rows[name][i])}" for name in sorted(rows))),))
        for i in range(len(rows["seed"]))
    ]


def reply_to(request):
    """The scripted model: a number from the hash of the prompt."""
    return str(int(hashlib.sha256(request.messages[0].content.encode()).hexdigest()[:8], 16))


def read(rows, answers):
    out = np.zeros((len(answers), WORDS), np.int32)
    for i, answer in enumerate(answers):
        if answer.reply is not None and answer.reply.text.isdigit():
            number = int(answer.reply.text)
            out[i, :2] = number % SKILLS, number % 11
        elif answer.reply is not None:
            out[i, 2] = Status.MALFORMED
    return out


def bits(states):
    """Every leaf as numpy, keys by their data."""
    plain = dataclasses.replace(states, key=jax.random.key_data(states.key))
    return [np.asarray(x) for x in jax.tree.leaves(plain)]


def assert_equal(a, b):
    for x, y in zip(bits(a), bits(b), strict=True):
        np.testing.assert_array_equal(x, y)
