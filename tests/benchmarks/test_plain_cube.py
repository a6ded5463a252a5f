"""The plain CUBE replays the recorded episodes exactly; what has no recording is checked on small scenes."""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest

from jaxcoop.benchmarks.plain.cube import LEFT, RIGHT, UP, PlainCube

DATA = Path(__file__).parents[1] / "golden" / "data" / "cube"
RESULTS = {"ok": 1, "insufficient_force": 2, "blocked_destination": 3}
GONE = (-1, -1)


@pytest.fixture
def folder(pytestconfig):
    """The recorded CUBE data, of `--golden-dir` where that is known and given."""
    other = pytestconfig.getoption("--golden-dir", default=None)
    return Path(other) / "cube" if other else DATA


def files(folder, pattern):
    """The recorded files of that name; skips the test where there is none."""
    return sorted(folder.glob(pattern)) or pytest.skip(f"nothing recorded in {folder / pattern}")


def places(cells):
    """Recorded cells; (-1, -1) means absent."""
    return [None if row < 0 else (int(row), int(column)) for row, column in cells]


def cells(places):
    return [place or GONE for place in places]


def replay(data, episode, revision):
    """Play one recorded episode and compare all that it says of every step."""
    cube = PlainCube(
        int(data["K"]),
        data["block_weight"].tolist(),
        int(data["N"]),
        max_steps=int(data["max_steps"]),
        step_cost=float(data["step_cost"]),
        deliver_reward=float(data["deliver_reward"]),
        revision=revision,
    )
    cube.start(places(data["init_agent_pos"][episode]), places(data["init_block_pos"][episode]))
    for t in range(data["ep_len"][episode]):
        at = f"episode {episode}, step {t}"
        result = cube.step(data["actions"][episode, t].tolist())
        np.testing.assert_array_equal(cells(cube.agents), data["agent_pos"][episode, t], at)
        np.testing.assert_array_equal(cells(cube.blocks), data["block_pos"][episode, t], at)
        got = [result.reward, cube.score, result.terminated, result.truncated]
        assert got == [data[name][episode, t] for name in ("reward", "team_score", "terminated", "truncated")], at
        outcome, pushers = np.zeros_like(data["push_result"][0, 0]), np.zeros_like(data["push_agents"][0, 0])
        for push in cube.pushes:
            outcome[push.direction - 1, push.block] = RESULTS[push.result]
            pushers[push.direction - 1, push.block, push.pushers] = True
        np.testing.assert_array_equal(outcome, data["push_result"][episode, t], at)
        np.testing.assert_array_equal(pushers, data["push_agents"][episode, t], at)
        delivered = np.flatnonzero(data["delivered"][episode, t]).tolist()
        assert sorted(delivery.block for delivery in cube.delivered) == delivered, at


@pytest.mark.parametrize(("pattern", "revision"), [("prim_*.npz", "current"), ("legacy_*.npz", "legacy")])
def test_plain_cube_replays_recorded_episodes_exactly(folder, pattern, revision):
    for path in files(folder, pattern):
        data = dict(np.load(path))
        for episode in range(len(data["ep_len"])):
            replay(data, episode, revision)


@pytest.mark.parametrize("revision", ["current", "legacy"])
def test_plain_cube_replays_hand_made_scenes_exactly(folder, revision):
    for path in files(folder, "scripted*.jsonl.gz"):
        for scene in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()):
            ids, weights, *corners = zip(*scene["blocks"]) if scene["blocks"] else ((), (), (), ())
            agents = [place and tuple(place) for place in scene["agents"]]
            cube = PlainCube(
                scene["K"], weights, len(agents), max_steps=scene.get("max_steps") or 500, revision=revision
            )
            cube.start(agents, list(zip(*corners)))
            trace = scene["legacy_trace"] if revision == "legacy" and scene["legacy_trace"] else scene["trace"]
            for actions, want in zip(scene["actions"], trace):
                result = cube.step(actions)
                assert [list(place) if place else place for place in cube.agents] == want["agents"], scene["name"]
                blocks = {str(ids[b]): list(place) for b, place in enumerate(cube.blocks) if place}
                assert blocks == want["blocks"], scene["name"]
                got = [result.reward, cube.score, result.terminated, result.truncated]
                assert got == [want[k] for k in ("reward", "team_score", "terminated", "truncated")], scene["name"]
                pushes = [[p.direction, ids[p.block], p.result, p.pushers] for p in cube.pushes]
                assert pushes == [push[:4] for push in want["pushes"]], scene["name"]
                assert [[ids[d.block], d.value, d.pushers] for d in cube.delivered] == want["delivered"], scene["name"]


@pytest.mark.parametrize(
    ("conflict", "after"), [("reference", [(2, 3), (2, 3), (2, 3)]), ("paper", [(2, 3), (3, 3), (2, 4)])]
)
def test_a_free_cell_takes_everybody_or_by_the_rule_of_the_paper_the_smallest_index(conflict, after):
    cube = PlainCube(8, [1], 3, conflict=conflict)
    cube.start([(2, 2), (3, 3), (2, 4)], [(6, 5)])
    cube.step([RIGHT, UP, LEFT])
    assert cube.agents == after


@pytest.mark.parametrize("seed", range(5))
def test_a_random_layout_keeps_its_margins_and_nothing_overlaps(seed):
    weights = [3, 2, 2, 1, 1, 1]
    cube = PlainCube(12, weights, 14)
    cube.reset(random.Random(seed))
    covered = [
        (row + i, column + j) for w, (row, column) in zip(weights, cube.blocks) for i in range(w) for j in range(w)
    ]
    assert len(set(covered)) == len(covered) == sum(w * w for w in weights)
    assert all(c in range(1, 12 - w - 1) for w, place in zip(weights, cube.blocks) for c in place)
    placed = [place for place in cube.agents if place]
    assert cube.agents[12:] == [None, None]
    assert sorted(placed) == [(row, 0) for row in range(12)]


def test_a_layout_without_room_is_said():
    with pytest.raises(RuntimeError, match="found no room on a grid of side 5"):
        PlainCube(5, [2] * 5, 1).reset(random.Random(0))


@pytest.mark.parametrize("bad", [{"revision": "old"}, {"conflict": "none"}, {"weights": [6]}, {"weights": [0]}])
def test_a_bad_configuration_is_refused_with_its_value(bad):
    options = {"side": 8, "weights": [1], "agents": 1, **bad}
    with pytest.raises(ValueError, match=str(next(iter(bad.values()))).strip("[]")):
        PlainCube(**options)
