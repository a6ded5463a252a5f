"""What DPBench published: its cells, who of ours stands for whom, and what is reproduced to the last episode.

Axes: N philosophers, K that act in one step, T timesteps or turns.  Source: sections 13 to 16 of the DPBench
behaviour notes, docs/envs/dining.md.
"""

import json
import math
import random
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxcoop.agents.registry import make_policy
from jaxcoop.core import rollout
from jaxcoop.core.results import Columns
from jaxcoop.core.rollout import keep
from jaxcoop.envs.dining.env import Dining
from jaxcoop.envs.dining.presets import CONDITIONS
from jaxcoop.envs.dining.results import RESULTS
from jaxcoop.envs.dining.types import Outcome
from jaxcoop.report.cells import Row, find, standard_rows

PUBLISHED_FILE = Path(__file__).with_name("dpbench_published.json")
RANDOM = "random"  # the published name of uniform random philosophers

# 15: one stream of random numbers runs through these cells in this order.
STREAM_SEED = 42
STREAM_CELLS = ("sim_n5_nocomm", "sim_n5_comm", "sim_n10_nocomm", "seq_n5_nocomm")

# 14 and 16: a language model that followed its prompt to the letter played like a policy without randomness.
SCRIPTED_CELLS = (
    ("parity_ordering", "gemini-2.5-flash", "prompt_resource_ordering"),
    ("left_first", "gemini-2.5-flash", "prompt_minimal"),
)
LAST_BITS = 1e-12  # means over episodes may be summed in another order

# What providers append to the name of the same model: dates, release words, sizes, number formats.
_SUFFIX = r"(?:-(?:\d{6,8}|20\d\d-\d\d-\d\d|latest|preview|maas|instruct|fp8|v\d+(?::\d+)?|\d+[be]))*"


class Reproduced(NamedTuple):
    """How many published episodes came out exactly."""

    what: str
    episodes: int
    published: int

    def __str__(self) -> str:
        return f"{self.episodes} of {self.published} {self.what} reproduced exactly"


@lru_cache(maxsize=1)
def published() -> dict[str, Any]:
    """Everything in the file of published numbers."""
    return json.loads(PUBLISHED_FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def published_rows() -> tuple[Row, ...]:
    """The 36 published cells under the names of `jaxcoop.report.cells`."""
    return tuple(standard_rows(published()["cells"]))


def published_name(player: str) -> str | None:
    """Name under which DPBench published this player, or None.

    `random_any` is its random baseline.  A provider's name counts when it is the published one behind any
    prefix, with dots or hyphens, and with nothing but a date, a size or a release word after it: variants
    such as `-lite` or `-mini` are other models.
    """
    if player == "random_any":
        return RANDOM
    plain = re.sub(r"[._@]", "-", player.rsplit("/", 1)[-1].lower())
    names = dict.fromkeys(str(row["model"]) for row in published_rows())
    return next(
        (
            name
            for name in names
            if name != RANDOM and re.search(rf"(?:^|-){re.escape(name.replace('.', '-'))}{_SUFFIX}$", plain)
        ),
        None,
    )


def published_row(player: str, condition: str) -> Row | None:
    """The published cell of this player under this condition, or None."""
    name = published_name(player)
    return None if name is None else find(published_rows(), model=name, condition=condition)


def published_random_episodes() -> Reproduced:
    """Play the published random episodes again, from their stream of random numbers and under our rules.

    15: each decision is one `choice` among the four actions, philosophers in id order; an episode that ends
    early leaves the rest of the stream to the next one.
    """
    stream = random.Random(STREAM_SEED)
    same = total = 0
    for code in STREAM_CELLS:
        cell = published_row("random_any", code)
        if cell is None:
            raise ValueError(f"{PUBLISHED_FILE.name} has no cell of {RANDOM!r} under {code!r}")
        env = Dining(**CONDITIONS[code].env)
        played = [_play_from(stream, env) for _ in range(cell["episodes"])]
        outcome = jax.tree.map(lambda *leaves: np.stack(leaves), *played)
        same += _equal_episodes(RESULTS.columns(outcome), cell)
        total += cell["episodes"]
    return Reproduced("published random episodes", same, total)


def published_scripted_episodes() -> list[Reproduced]:
    """Compare the published cells in which every episode is the same with the policy that plays it."""
    found = []
    for policy, model, code in SCRIPTED_CELLS:
        cell = find(published_rows(), model=model, condition=code)
        if cell is None:
            raise ValueError(f"{PUBLISHED_FILE.name} has no cell of {model!r} under {code!r}")
        env = Dining(**CONDITIONS[code].env)
        # Nothing in these episodes is random, so one stands for all of them.
        played = rollout(env, make_policy(policy, env), jax.random.key(0), jnp.zeros((1,), jnp.int32))
        outcome = jax.tree.map(lambda x, n=cell["episodes"]: np.repeat(np.asarray(x), n, 0), played.outcome)
        same = _equal_episodes(RESULTS.columns(outcome), cell)
        found.append(Reproduced(f"published {code} episodes ({policy})", same, cell["episodes"]))
    return found


def _play_from(stream: random.Random, env: Dining) -> Outcome:
    """The next episode of the stream; takes from it what the episode used."""
    before = stream.getstate()
    actions = [[stream.choice(range(env.num_actions)) for _ in range(env.num_actors)] for _ in range(env.limit)]
    outcome = jax.device_get(_play(env, jnp.asarray(actions, jnp.int32)))
    stream.setstate(before)
    for _ in range(int(outcome.timesteps) * env.num_actors):
        stream.choice(range(env.num_actions))
    return outcome


@partial(jax.jit, static_argnums=0)
def _play(env: Dining, actions: Int[Array, "T K"]) -> Outcome:
    key = jax.random.key(0)  # these conditions have no randomness of their own

    def step(state: Any, acts: Int[Array, " K"]) -> tuple[Any, None]:
        nxt = env.step(state, acts, env.sample_draws(key, state)).state
        return keep(~state.deadlock, nxt, state), None

    state, _ = jax.lax.scan(step, env.reset(key), actions)
    return env.outcome(state)


def _equal_episodes(columns: Columns, cell: Row) -> int:
    """Episodes equal to the published ones; none if throughput or fairness of the cell differ."""
    played = RESULTS.cell(columns)
    for name in ("avg_throughput", "std_throughput", "avg_fairness", "std_fairness"):
        if not math.isclose(played[name], cell[name], rel_tol=LAST_BITS, abs_tol=LAST_BITS):
            return 0
    equal = columns["timesteps"] == np.asarray(cell["episodes_total_timesteps"])
    equal &= columns["deadlock_reported"] == np.asarray(cell["episodes_deadlock"])
    equal &= (columns["meals"] == np.asarray(cell["episodes_meals"])).all(-1)
    return int(equal.sum())
