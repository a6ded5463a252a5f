"""The plain MA-Crafter replays the recorded episodes exactly; its random parts keep to the stated laws."""

import random
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.benchmarks.plain.macrafter import PlainCrafter
from jaxcoop.benchmarks.plain.macrafter_codes import (
    ACHIEVEMENT,
    ACTION,
    COAL,
    COW,
    DIAMOND,
    GRASS,
    ITEM,
    PAPER_TASKS,
    STONE,
    TREE,
    Reason,
    Task,
    tasks_of,
)

DATA = Path(__file__).parents[1] / "golden" / "data" / "macrafter"


@pytest.fixture
def folder(pytestconfig):
    """The recorded MA-Crafter data, of `--golden-dir` where that is known and given."""
    other = pytestconfig.getoption("--golden-dir", default=None)
    return Path(other) / "macrafter" if other else DATA


def recorded_start(data, e):
    """The simulator at the start of a recorded episode."""
    cows = [
        tuple(p) if alive else None for p, alive in zip(data["init_cow_pos"][e].tolist(), data["init_cow_alive"][e])
    ]
    plants = [tuple(cell) for cell in np.argwhere(data["init_plant"][e]).tolist()]
    places = [tuple(place) for place in data["init_pos"][e].tolist()]
    world = PlainCrafter(data["init_mat"][e], cows, places, plants=plants, balance=False)
    for i, player in enumerate(world.players):
        player.facing = int(data["init_facing"][e, i])
        player.inventory = data["init_inv"][e, i].tolist()
        player.paid = player.inventory[5:10]
        player.hunger, player.thirst, player.fatigue, player.recover = data["init_counters"][e, i].tolist()
        player.sleeping = bool(data["init_sleeping"][e, i])
        player.last_health = int(data["init_last_health"][e, i])
        player.achievements = data["init_ach"][e, i].tolist()
    assert not data["init_removed"].any()
    return world


def inputs(data, e, t):
    """(actions, shares, places, cow directions) of a recorded step."""
    shares = [(i, *row[1:]) for i, row in enumerate(data["share"][e, t].tolist()) if row[0]]
    places = [(i, place) for i, place in enumerate(data["place"][e, t].tolist()) if place >= 0]
    return data["action"][e, t].tolist(), shares, places, data["cow_dir"][e, t].tolist()


def recorded_view(world, result, cows):
    """What a step has led to, in the arrays of the recording."""
    players = world.players
    plant = np.zeros(np.shape(world.material), bool)
    for place in world.plants:
        plant[place] = True
    outcomes = [outcome and list(outcome) for outcome in result.outcomes]
    notes = [world.notes.get(i) for i in range(len(players))]
    view = {
        "mat": world.material,
        "plant": plant,
        "pos": [world.place(player.cell) for player in players],
        "facing": [player.facing for player in players],
        "inv": [player.inventory for player in players],
        "counters": [[player.hunger, player.thirst, player.fatigue, player.recover] for player in players],
        "sleeping": [player.sleeping for player in players],
        "last_health": [player.last_health for player in players],
        "ach": [player.achievements for player in players],
        "removed": [player.removed for player in players],
        "cow_alive": [slot in world.cows for slot in range(cows)],
        "term": result.terminated,
        "trunc": result.truncated,
        "status": [-1 if outcome is None else outcome[0] for outcome in outcomes],
        "score": np.float32(world.score),
        "reward": np.float32(result.rewards),
        "blocked": [-1 if note is None else note.reason for note in notes],
        "blk_need": [-1 if note is None else note.need for note in notes],
        "blk_have": [-1 if note is None else note.have for note in notes],
    }
    for k, name in enumerate(("reason", "need", "have"), 1):
        view[name] = [0 if outcome is None else outcome[k] for outcome in outcomes]
    return view


@pytest.mark.parametrize("name", ["arena", "coop", "vitals"])
def test_plain_crafter_replays_recorded_episodes_exactly(folder, name):
    path = folder / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"nothing recorded in {path}")
    data = dict(np.load(path))
    took = {}
    for e, t, order, x, y, kind, mask in data["collections"].tolist():
        took.setdefault((e, t), []).append((order, kind, (x, y), mask))
    for e in range(len(data["action"])):
        world = recorded_start(data, e)
        for t in range(data["action"].shape[1]):
            active = [i in world.listed for i in range(len(world.players))]
            np.testing.assert_array_equal(active, data["active"][e, t])
            result = world.step(*inputs(data, e, t))
            for key, got in recorded_view(world, result, data["cow_pos"].shape[2]).items():
                if not np.array_equal(got, data[key][e, t]):  # the quick look comes first: there are many
                    np.testing.assert_array_equal(got, data[key][e, t], f"{key}, episode {e}, step {t}")
            alive = np.flatnonzero(data["cow_alive"][e, t]).tolist()  # the others keep their last place there
            assert [world.cows[slot] for slot in alive] == [tuple(p) for p in data["cow_pos"][e, t, alive].tolist()]
            assert world.daylight == pytest.approx(data["daylight"][e, t], abs=1e-6)
            got = [
                (order, c.kind, c.place, sum(1 << i for i in c.participants))
                for order, c in enumerate(world.collections)
            ]
            assert got == took.get((e, t), []), f"collections, episode {e}, step {t}"


def meadow(*things, side=7, **options):
    """Grass with the given (x, y, material) in it and one player in the middle, unless `players` says otherwise."""
    material = np.full((side, side), GRASS)
    for x, y, kind in things:
        material[x, y] = kind
    options = {"cows": [], "players": [(side // 2, side // 2)], "balance": False, **options}
    return PlainCrafter(material, **options)


def test_a_configured_task_needs_its_agents_and_tool_and_pays_by_its_tier():
    world = meadow((3, 2, COAL), players=[(3, 3), (2, 2)], tasks={COAL: Task(2, ("stone_pickaxe",))})
    world.players[0].inventory[ITEM["stone_pickaxe"]] = 1
    assert world.step([ACTION["do"]] * 2).outcomes[0] == (False, Reason.REQUIRES_AGENTS, 2, 1)
    world.players[1].inventory[ITEM["stone_pickaxe"]] = 1
    assert world.step([ACTION["do"]] * 2).rewards == [100, 100]  # 25 points * 2 agents * (1 + 0.5 * tier 2)
    assert world.score == 200


@pytest.mark.parametrize(("any_tool", "able"), [(True, True), (False, False)])
def test_of_several_tools_all_are_needed_or_any(any_tool, able):
    world = meadow((3, 2, COAL), tasks={COAL: Task(1, ("wood_pickaxe", "stone_pickaxe"), any_tool)})
    world.players[0].inventory[ITEM["wood_pickaxe"]] = 1
    assert world.step([ACTION["do"]]).outcomes[0].success == able


def test_tasks_are_read_from_their_text():
    text = "tree:1,stone:1:wood_pickaxe,coal:2:wood_pickaxe,iron:3:stone_pickaxe,diamond:3:iron_pickaxe"
    assert tasks_of(text) == PAPER_TASKS
    assert tasks_of("cow:2:wood_pickaxe|iron_pickaxe") == {COW: Task(2, ("wood_pickaxe", "iron_pickaxe"), True)}


def test_a_longer_reach_collects_what_is_two_cells_away():
    world = meadow((3, 1, TREE), (1, 2, TREE), distance=2)
    world.step([ACTION["do"]])
    assert [c.place for c in world.collections] == [(3, 1)]
    corner = meadow((0, 2, TREE), (2, 0, TREE), side=3, players=[(0, 0)], distance=2)
    corner.step([ACTION["do"]])
    assert [c.place for c in corner.collections] == [(0, 2), (2, 0)]


@pytest.mark.parametrize(("team_score", "pay", "score"), [(True, 15, 15), (False, 50, 0)])
def test_without_a_team_score_collectors_are_paid_by_the_other_table(team_score, pay, score):
    world = meadow((3, 2, STONE), team_score=team_score)
    world.players[0].inventory[ITEM["wood_pickaxe"]] = 1
    assert world.step([ACTION["do"]]).rewards == [pay]
    assert world.score == score


def test_without_vitals_nobody_gets_hungry():
    world = meadow(vitals=False)
    for _ in range(60):
        world.step([ACTION["noop"]])
    assert world.players[0].inventory[:4] == [9] * 4


def test_the_holder_of_a_diamond_is_done_if_asked_for():
    world = meadow(terminate_on_diamond=True, tasks={DIAMOND: Task()}, players=[(3, 3), (0, 0)])
    assert world.step([ACTION["noop"]] * 2).terminated == [False, False]
    world.players[0].achievements[ACHIEVEMENT["collect_diamond"]] = 1
    assert world.step([ACTION["noop"]] * 2).terminated == [True, False]


def test_a_value_that_is_no_action_does_nothing():
    world = meadow(players=[(3, 3), (0, 0)])
    result = world.step([18, -1])
    assert result.rewards == [0, 0]
    assert [world.place(player.cell) for player in world.players] == [(3, 3), (0, 0)]


def test_a_lone_cow_moves_with_probability_one_half():
    moved, rng = 0, random.Random(1)
    for _ in range(2000):
        world = meadow(side=5, players=[(0, 0)], cows=[(2, 2)], rng=rng)
        world.step([ACTION["noop"]])
        moved += world.cows[0] != (2, 2)
    assert abs(moved / 2000 - 0.5) < 4 * (0.25 / 2000) ** 0.5


def balanced(cows, trials=400, player=(11, 11)):
    """Number of trials in which the herd of a 12 x 12 meadow with the given cows has changed by step 10, and how."""
    changes = []
    for seed in range(trials):
        world = meadow(side=12, players=[player], cows=cows, balance=True, rng=random.Random(seed))
        for _ in range(10):
            world.step([ACTION["noop"]], cow_directions=[-1] * 20)
        changes.append(len(world.cows) - len(cows))
    return changes


def test_a_meadow_without_cows_gets_one_now_and_then_away_from_the_players():
    changes = balanced([], trials=3000)
    far = (144 - 15) / 144  # cells of a corner's square at 5 or more
    assert set(changes) <= {0, 1}
    assert abs(sum(changes) / 3000 - 0.01 * far) < 4 * (0.01 / 3000) ** 0.5


def test_of_many_cows_one_vanishes_with_probability_one_tenth():
    changes = balanced([(x, 0) for x in range(6)])
    assert set(changes) <= {0, -1}
    assert abs(-sum(changes) / 400 - 0.1) < 4 * (0.09 / 400) ** 0.5


def test_cows_near_a_player_stay():
    assert set(balanced([(x, 0) for x in range(3)], player=(1, 1))) == {0}
