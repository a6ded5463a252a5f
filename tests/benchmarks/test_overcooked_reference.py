"""Overcooked beside the package `overcooked-ai`, step by step; skipped where that is not installed.

Axes: E episodes, T steps, A = 2 players, C cells, H rows, W columns.

`python tests/benchmarks/test_overcooked_reference.py FOLDER` records the episodes of tests/golden/data/overcooked.
"""

import dataclasses
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.core.env import NoDraws
from jaxcoop.envs.overcooked import Overcooked
from jaxcoop.envs.overcooked.layouts import Kitchen, load
from jaxcoop.envs.overcooked.types import EVENTS, FULL, READY, RECIPES, Action, Item, Terrain

LAYOUTS = (
    "cramped_room",
    "asymmetric_advantages",
    "coordination_ring",
    "forced_coordination",
    "counter_circuit_o_1order",
    "counter_circuit",
)
EPISODES = int(os.environ.get("OVERCOOKED_EPISODES", "8"))
"""Episodes for each layout and way of playing; agreement was shown with 100."""

STEPS, CHUNK = 400, 35
GOLDEN_STEPS, GOLDEN_EVERY = 400, 40
"""Steps of a recorded episode, and steps between its recorded observations."""

PLAYS = ("uniform", "busy", "anywhere")
"""Uniform actions; players on errands; the same from random places, hands and pots."""

ITEM_OF = {"onion": Item.ONION, "tomato": Item.TOMATO, "dish": Item.DISH}


WORK = ({0: "OT", 1: "P", 3: "X"}, {0: "P", 1: "X", 3: "X"}, {0: "D", 1: "X", 3: "P"})
"""Terrain of use by what is held: nothing, food, a dish; while pots fill, when one is full, when one is on the fire."""


@dataclasses.dataclass
class Record:
    """One played episode of the reference; states have T + 1 entries, the rest T."""

    actions: np.ndarray  # uint8[T, A]
    states: dict[str, np.ndarray]
    sparse: np.ndarray  # [T, A]
    shaped: np.ndarray
    logged: np.ndarray  # uint32[T, A]
    seen: np.ndarray  # int8[T + 1, A, H, W, 26]


THREE_COOKS = """\
XXPXPXX
O 1 2 T
X  3  X
XXDXSXX

order tomato tomato tomato
bonus tomato tomato
value 7
time 5
"""
"""A kitchen of our own: three players, and onions spoil every soup."""


def reference(layout: str, old: bool = False) -> Any:
    """The package's world; `old`: with the rules that its later versions call old dynamics."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("overcooked_ai_py.mdp.overcooked_mdp")
        if layout.endswith(".txt"):
            world = own_world(package, load(layout))
        else:
            world = package.OvercookedGridworld.from_layout_name(layout)
    if old:
        cooks = world.step_environment_effects

        def start_full_pots(state):
            for thing in state.objects.values():
                if thing.name == "soup" and thing.is_idle and len(thing.ingredients) == 3:
                    thing.begin_cooking()
            cooks(state)

        world.soup_to_be_cooked_at_location = lambda *_: False
        world.step_environment_effects = start_full_pots
    return world


def own_world(package: Any, kitchen: Kitchen) -> Any:
    """The package's world of a layout file of ours."""
    grid = [list(row) for row in kitchen.grid.rows]
    for player, cell in enumerate(kitchen.starts, 1):
        grid[cell // kitchen.grid.width][cell % kitchen.grid.width] = str(player)

    def recipes(soups: tuple[int, ...]) -> list[dict[str, list[str]]]:
        counts = [RECIPES[soup - Item.SOUP] for soup in soups]
        return [{"ingredients": ["onion"] * onions + ["tomato"] * tomatoes} for onions, tomatoes in counts]

    named = {"value": "delivery_reward", "time": "cook_time"}
    numbers = {named.get(name, name): number for name, number in kitchen.numbers}
    orders = {"start_all_orders": recipes(kitchen.orders), "start_bonus_orders": recipes(kitchen.bonus)}
    return package.OvercookedGridworld.from_grid(grid, {**orders, **numbers})


def item_of(thing: Any) -> int:
    """Our code of an object of the reference, None: nothing."""
    if thing is None:
        return 0
    if thing.name != "soup":
        return ITEM_OF[thing.name]
    recipe = (thing.ingredients.count("onion"), thing.ingredients.count("tomato"))
    return Item.SOUP + RECIPES.index(recipe)


def clock_of(thing: Any) -> int:
    """Our clock of what is in a pot."""
    return 0 if thing.is_idle else READY + thing.cook_time - thing._cooking_tick


def arrays_of(world: Any, state: Any) -> dict[str, np.ndarray]:
    """Our fields of a state of the reference."""
    width, height = world.shape
    item, clock = np.zeros(width * height, np.int8), np.zeros(width * height, np.uint8)
    for (x, y), thing in state.objects.items():
        item[y * width + x] = item_of(thing)
        if world.get_terrain_type_at_pos((x, y)) == "P":
            clock[y * width + x] = clock_of(thing)
    directions = [(0, -1), (0, 1), (1, 0), (-1, 0)]
    return {
        "cell": np.array([p.position[1] * width + p.position[0] for p in state.players], np.int16),
        "facing": np.array([directions.index(p.orientation) for p in state.players], np.int8),
        "held": np.array([item_of(p.held_object) for p in state.players], np.int8),
        "item": item,
        "clock": clock,
    }


class Errands:
    """A player that walks to a thing in its reach, interacts and chooses again; now and then it acts at random.

    What its hands call for is chosen more often than the rest.  It gives up where somebody is in its way.
    """

    def __init__(self, env: Overcooked, rng: np.random.Generator) -> None:
        grid, terrain = env.kitchen.grid, env.kitchen.terrain
        self.grid, self.terrain, self.rng, self.goal, self.expected = grid, terrain, rng, None, -1
        self.stands = np.argwhere(grid.floor & (terrain[grid.ahead] > 0))
        self.front = grid.characters[grid.ahead[self.stands[:, 0], self.stands[:, 1]]]

    def act(self, here: dict[str, np.ndarray], player: int) -> int:
        cell, facing, held = (int(here[name][player]) for name in ("cell", "facing", "held"))
        is_stopped, self.expected = self.expected not in (-1, cell), -1
        if self.rng.random() < 0.1:
            return int(self.rng.integers(6))
        if self.goal is None or (is_stopped and self.rng.random() < 0.5):
            is_near = self.grid.distances[cell][self.stands[:, 1]] < 1000
            full = bool(((here["item"] >= FULL) & (here["clock"] == 0) & (self.terrain == Terrain.POT)).any())
            work = WORK[2 if here["clock"].any() else int(full)]
            fits = "S" if held >= Item.SOUP else work[1 if held == Item.TOMATO else held]
            weight = np.where(np.isin(self.front, list(fits)), 20.0, 1.0) * is_near
            self.goal = self.stands[self.rng.choice(len(weight), p=weight / weight.sum())]
        direction, stand = map(int, self.goal)
        if cell == stand:
            if facing != direction:
                return direction
            self.goal = None
            return int(Action.INTERACT)
        nearer = self.grid.closer[stand, cell]
        step = int(self.rng.choice([d for d in range(4) if nearer >> d & 1]))
        self.expected = int(self.grid.steps[step, cell])
        return step


def record(layout: str, play: str, seed: int, *, steps: int = STEPS, old: bool = False, horizon: int = STEPS) -> Record:
    """An episode of the reference."""
    world, rng = reference(layout, old), np.random.default_rng(seed)
    env = Overcooked(layout=layout, agents=world.num_players)
    np.random.seed(seed)  # noqa: NPY002  the reference draws its starts with the global generator
    state = world.get_random_start_state_fn(play == "anywhere", 0.6 if play == "anywhere" else 0.0)()
    players = [Errands(env, rng) for _ in range(env.num_agents)]
    here = arrays_of(world, state)
    states, rows, seen = [here], [], [sight(world, state, horizon)]
    index = pytest.importorskip("overcooked_ai_py.mdp.actions").Action.INDEX_TO_ACTION
    for _ in range(steps):
        if play == "uniform":
            chosen = rng.integers(6, size=env.num_agents).tolist()
        else:
            chosen = [p.act(here, i) for i, p in enumerate(players)]
        state, info = world.get_state_transition(state, [index[a] for a in chosen])
        here = arrays_of(world, state)
        happened = info["event_infos"]
        logged = [sum(1 << k for k, name in enumerate(EVENTS) if happened[name][i]) for i in range(env.num_agents)]
        rows.append((chosen, info["sparse_reward_by_agent"], info["shaped_reward_by_agent"], logged))
        states.append(here)
        seen.append(sight(world, state, horizon))
    actions, sparse, shaped, logged = map(np.array, zip(*rows, strict=True))
    return Record(
        actions=actions.astype(np.uint8),
        states={name: np.stack([s[name] for s in states]) for name in here},
        sparse=sparse,
        shaped=shaped,
        logged=logged.astype(np.uint32),
        seen=np.stack(seen),
    )


def sight(world: Any, state: Any, horizon: int) -> np.ndarray:
    """int8[A, H, W, 26]: the lossless encoding, rows first; empty for teams that the package has none for."""
    if world.num_players != 2:
        return np.zeros((0,), np.int8)
    layers = np.stack(world.lossless_state_encoding(state, horizon))
    assert (np.abs(layers) < 128).all()
    return layers.transpose(0, 2, 1, 3).astype(np.int8)


@partial(jax.jit, static_argnums=0)
def played(env: Overcooked, first: dict[str, np.ndarray], actions: np.ndarray) -> Any:
    """Ours from the same starts [E, …] with the same actions [E, T, A]: states, events and observations.

    States and observations are pairs of the first ones [E] and those after each step [E, T].
    """

    def one(first, actions):
        start = env.reset(jax.random.key(0)).replace(**first)

        def step(state, action):
            done = env.step(state, action.astype(jnp.int32), NoDraws())
            return done.state, (done.state, done.events, env.observe(done.state))

        _, (states, events, seen) = jax.lax.scan(step, start, actions)
        return (start, states), events, (env.observe(start), seen)

    return jax.vmap(one)(first, actions)


def joined(pair: Any) -> Any:
    """[E, T + 1] from first [E] and rest [E, T]."""
    return jax.tree.map(lambda a, b: np.concatenate([np.asarray(a)[:, None], np.asarray(b)], 1), *pair)


def compare(env: Overcooked, records: list[Record]) -> dict[str, int]:
    """Steps that differ, by what differs in them; and what the episodes held."""
    first = {name: np.stack([r.states[name][0] for r in records]) for name in records[0].states}
    states, events, seen = played(env, first, np.stack([r.actions for r in records]))
    states, seen, events = joined(states), joined(seen), jax.tree.map(np.asarray, events)
    wrong = {}
    for name in first:
        wrong[name] = unlike(getattr(states, name), np.stack([r.states[name] for r in records]))
    for name in ("sparse", "shaped", "logged"):
        wrong[name] = unlike(getattr(events, name), np.stack([getattr(r, name) for r in records]))
    want = np.stack([r.seen for r in records])
    wrong["seen"] = unlike(seen, want) if want.size else 0
    return wrong


def unlike(got: np.ndarray, want: np.ndarray) -> int:
    """How many of the [E, T] entries differ."""
    assert got.shape == want.shape
    return int((got != want).reshape(*got.shape[:2], -1).any(-1).sum())


def check(env: Overcooked, layout: str, play: str, episodes: int, **how: Any) -> dict[str, float]:
    """Compare in chunks of equal size; the sums of what happened, for a look at how rich the episodes are."""
    held = {"steps": 0.0, "deliveries": 0.0, "value": 0.0, "shaped": 0.0}
    for start in range(0, episodes, CHUNK):
        records = [record(layout, play, 1000 + k, **how) for k in range(start, min(start + CHUNK, episodes))]
        assert compare(env, records) == dict.fromkeys([*records[0].states, "sparse", "shaped", "logged", "seen"], 0)
        bit = 1 << EVENTS.index("soup_delivery")
        for r in records:
            held["steps"] += len(r.actions)
            held["deliveries"] += int(((r.logged & bit) > 0).sum())
            held["value"] += float(r.sparse.sum())
            held["shaped"] += float(r.shaped.sum())
    print(layout, play, how, {name: int(value) for name, value in held.items()})
    return held


@pytest.mark.peers
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_step_is_the_reference_step(layout, play):
    held = check(Overcooked(layout=layout), layout, play, EPISODES)
    assert held["shaped"] > 0


@pytest.mark.peers
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_step_with_the_old_rules_is_the_reference_step(layout):
    held = check(Overcooked(layout=layout, old_dynamics=True), layout, "busy", EPISODES, old=True)
    assert held["shaped"] > 0


@pytest.mark.peers
@pytest.mark.parametrize("play", PLAYS)
def test_every_step_of_three_players_in_a_kitchen_of_our_own_is_the_reference_step(play, tmp_path):
    path = tmp_path / "three.txt"
    path.write_text(THREE_COOKS)
    held = check(Overcooked(layout=str(path), agents=3), str(path), play, EPISODES)
    assert held["shaped"] > 0


def write_golden(folder: Path) -> None:
    """Record what tests/golden/test_overcooked_traces.py replays: three episodes of every layout, some by old rules."""
    for layout, old in [*((name, False) for name in LAYOUTS), ("cramped_room", True), ("forced_coordination", True)]:
        plays = [("busy", 7), ("busy", 8), ("busy", 9) if old else ("anywhere", 9)]
        if layout == "counter_circuit":  # spoilt soups and all three orders
            plays = [("busy", 29), ("anywhere", 10), ("anywhere", 35)]
        records = [record(layout, play, seed, old=old, steps=GOLDEN_STEPS) for play, seed in plays]
        arrays = {name: np.stack([r.states[name] for r in records]) for name in records[0].states}
        for name in ("actions", "sparse", "shaped", "logged"):
            arrays[name] = np.stack([getattr(r, name) for r in records])
        arrays["seen"] = np.stack([r.seen[::GOLDEN_EVERY] for r in records])
        arrays |= {name: arrays[name].astype(np.uint8) for name in ("sparse", "shaped")}
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(folder / f"{layout}{'_old' if old else ''}.npz", **arrays)


if __name__ == "__main__":
    write_golden(Path(sys.argv[1]))
