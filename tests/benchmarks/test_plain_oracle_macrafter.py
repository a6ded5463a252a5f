"""The compiled MA-Crafter does what the plain one does, at odd sizes, with options that no recording has.

Crowded random worlds, agents that hold many things, random commands with requests of every kind.
"""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.benchmarks.plain.macrafter import PlainCrafter
from jaxcoop.benchmarks.plain.macrafter_codes import ACTION, tasks_of
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.types import Command, Draws, has_plant, material_of

EPISODES, STEPS, COWS = 24, 30, 4
ODD_ACTIONS = (-1, 18, 2**31 - 1, -(2**31))
MATERIALS = [2] * 8 + [4, 5, 1, 3, 6, 6, 7, 8, 9, 10, 11, 12]

SETTINGS = [
    MACrafter(agents=6, width=9, height=7, requirements="level1", balance=False, end_on_death=False),
    MACrafter(
        **{"agents": 21, "width": 5, "height": 19, "distance": 2, "balance": False, "end_on_death": False},
        **{"vitals": False, "team_score": False},
        requirements="tree:2,stone:1:wood_pickaxe|iron_pickaxe,coal:2:wood_pickaxe+stone_pickaxe,cow:2,water:3",
    ),
]


def random_world(env, rng):
    """(material, cows, agents, inventories) of one crowded start."""
    places = [(x, y) for x in range(env.width) for y in range(env.height)]
    chosen = rng.sample(places, COWS + env.num_agents)
    material = np.array(rng.choices(MATERIALS, k=len(places)), np.uint8).reshape(env.width, env.height)
    for place in chosen:
        material[place] = rng.choice((2, 4, 5))
    inventory = [
        [rng.randint(1, 9) for _ in range(4)] + [rng.choice((0, 0, 1, 3, 19)) for _ in range(12)] for _ in chosen
    ]
    return material, chosen[:COWS], chosen[COWS:], inventory[COWS:]


def random_command(env, rng):
    """(actions, shares, places, cow directions) of one step, as the arrays of a command."""
    n = env.num_agents
    actions = [rng.choice((*range(18), *[ACTION["do"]] * 8, *ODD_ACTIONS)) for _ in range(n)]
    shares = [
        (int(rng.random() < 0.3), rng.randint(-1, n), rng.randrange(16), rng.choice((-2, 0, 1, 2, 30)))
        for _ in range(n)
    ]
    places = [a - ACTION["place_stone"] if 7 <= a <= 10 and rng.random() < 0.5 else -1 for a in actions]
    return actions, shares, places, [rng.randint(-1, 3) for _ in range(COWS)]


def compiled(env, worlds, commands):
    """(states, rewards) after each step [E, T, ...], numpy."""
    slots = sum(env.settings.cow_slots)
    material, cows, agents, inventory = (jnp.asarray(np.array(part)) for part in zip(*worlds))
    actions, shares, places, directions = (np.array([[c[k] for c in e] for e in commands], np.int32) for k in range(4))
    none = np.full_like(actions, -1)
    cow = np.full((*directions.shape[:2], slots), -1, np.int8)
    cow[..., :COWS] = directions

    def episode(material, cows, agents, inventory, commands, cow):
        state = env.start(material, cows[:, 0], cows[:, 1], agents[:, 0], agents[:, 1])
        state = state.replace(
            inventory=inventory.astype(jnp.int8),
            paid=inventory[:, 5:10].astype(jnp.int8),
            last_health=inventory[:, 0].astype(jnp.int8),
        )

        def step(state, inputs):
            command, cow = inputs
            done = env.step(state, command, Draws(cow=cow, balance=None))
            return done.state, (done.state, done.reward)

        return jax.lax.scan(step, state, (commands, cow))[1]

    command = Command(actions, shares, places, none, none)
    return jax.device_get(jax.jit(jax.vmap(episode))(material, cows, agents, inventory, command, cow))


def plain_start(env, material, cows, agents, inventory):
    """The plain simulator in the same world."""
    game = PlainCrafter(
        material,
        cows,
        agents,
        tasks=tasks_of(env.requirements),
        distance=env.distance,
        vitals=env.vitals,
        balance=False,
        team_score=env.team_score,
    )
    for player, held in zip(game.players, inventory):
        player.inventory, player.paid, player.last_health = list(held), held[5:10], held[0]
    return game


def plain_view(game, result):
    """What the plain simulator says after a step, by the names of the compiled state."""
    players, outcomes = game.players, [outcome and list(outcome) for outcome in result.outcomes]
    notes = [game.notes.get(i) for i in range(len(players))]
    places = np.array([game.place(player.cell) for player in players])
    cows = np.array([game.cows.get(slot, (-1, -1)) for slot in range(COWS)])
    return {
        "material": game.material,
        "plants": sorted(game.plants),
        "x": places[:, 0],
        "y": places[:, 1],
        "cow_x": cows[:, 0],
        "cow_y": cows[:, 1],
        **{
            name: [getattr(player, name) for player in players]
            for name in ("facing", "inventory", "achievements", "sleeping", "removed", "last_health", "paid")
        },
        "counters": [[2 * v for v in (p.hunger, p.thirst, p.fatigue, p.recover)] for p in players],
        "unlocked": sum(1 << number for number in game.unlocked),
        "score": np.float32(game.score),
        "reward": np.float32(result.rewards),
        "status": [-1 if outcome is None else int(outcome[0]) for outcome in outcomes],
        **{name: [outcome[k] if outcome else 0 for outcome in outcomes] for k, name in enumerate(REASONS, 1)},
        "blocked": [note.reason if note else -1 for note in notes],
    }


REASONS = ("reason", "need", "have")


def compiled_view(states, rewards, e, t):
    """The same of the compiled one."""
    state = jax.tree.map(lambda leaf: leaf[e, t], states)
    names = ("x", "y", "facing", "inventory", "achievements", "sleeping", "removed", "last_health", "paid", "counters")
    return {
        "material": material_of(state.material),
        "plants": [tuple(place) for place in np.argwhere(has_plant(state.material)).tolist()],
        "cow_x": state.cow_x[:COWS],
        "cow_y": state.cow_y[:COWS],
        **{name: getattr(state, name) for name in (*names, "unlocked", "score")},
        "reward": rewards[e, t],
        **{name: getattr(state.last, name) for name in ("status", *REASONS, "blocked")},
    }


@pytest.mark.slow
@pytest.mark.parametrize("env", SETTINGS, ids=["few", "many"])
def test_the_compiled_crafter_does_what_the_plain_one_does(env):
    rng = random.Random(2)
    worlds = [random_world(env, rng) for _ in range(EPISODES)]
    commands = [[random_command(env, rng) for _ in range(STEPS)] for _ in range(EPISODES)]
    states, rewards = compiled(env, worlds, commands)
    seen = set()
    for e, (world, played) in enumerate(zip(worlds, commands)):
        game = plain_start(env, *world)
        for t, (actions, shares, places, directions) in enumerate(played):
            asked = [(i, *share[1:]) for i, share in enumerate(shares) if share[0]]
            put = [(i, place) for i, place in enumerate(places) if place >= 0]
            want = plain_view(game, game.step(actions, asked, put, directions))
            got = compiled_view(states, rewards, e, t)
            for name, value in want.items():
                if not np.array_equal(got[name], value):
                    np.testing.assert_array_equal(got[name], value, f"{name}, episode {e}, step {t}")
            seen |= {collection.kind for collection in game.collections}
            seen |= {("reason", number) for number in (*want["reason"], *want["blocked"])}
    rules = (2, 3, 4, 5, 6, 7, 9, 10, 11)
    assert {1, 3, 6, 8, 14, *(("reason", number) for number in rules)} <= seen
