"""Recorded views, reachable targets and utilities of the crafting world: files hints*.jsonl.gz beside symbolic*.npz."""

import dataclasses
from collections import defaultdict

import jax
import pytest
from recorded import lines_of
from symbolic_replay import episodes_of, replay

from jaxcoop.envs.macrafter.hints import Surroundings


def by_side(path):
    """The hints of a file with the episodes that they belong to, by the size of the map."""
    played = path.with_name(path.name.replace("hints", "symbolic").removesuffix(".jsonl.gz") + ".npz")
    if played.exists():
        groups = defaultdict(list)
        for line in lines_of(path):
            groups[int(episodes_of(played)[line["episode"]]["side"])].append(line)
        for side, lines in groups.items():
            yield f"{side}x{side}", (played, side, lines)


@pytest.fixture
def surroundings(case):
    """(recorded hints, the same of the replay) of every line."""
    path, side, lines = case
    env, played = replay(path, side)
    states = {number: seen["state"] for number, _, seen in played}
    found = []
    for line in lines:
        state = jax.tree.map(lambda leaf, t=line["step"]: leaf[t], states[line["episode"]])
        found.append((line, Surroundings(env, state, line["agent"])))
    return found


def as_dicts(things):
    return [{**dataclasses.asdict(thing), "position": list(thing.position)} for thing in things]


@pytest.mark.recorded("macrafter", "hints*.jsonl.gz", by_side)
def test_macrafter_views_hold_what_is_recorded(surroundings):
    for line, around in surroundings:
        view = [[[[e.kind, e.id, e.name] for e in cell] for cell in row] for row in around.view()]
        assert view == line["view"], (line["episode"], line["step"], line["agent"])


@pytest.mark.recorded("macrafter", "hints*.jsonl.gz", by_side)
def test_macrafter_reachable_targets_are_those_recorded(surroundings):
    for line, around in surroundings:
        targets = around.reachable()
        got = [{**entry, "purpose": target.purpose} for entry, target in zip(as_dicts(targets), targets, strict=True)]
        assert got == line["reachable"], (line["episode"], line["step"], line["agent"])


@pytest.mark.recorded("macrafter", "hints*.jsonl.gz", by_side)
def test_macrafter_reachable_utilities_are_those_recorded(surroundings):
    for line, around in surroundings:
        assert as_dicts(around.utilities()) == line["utilities"], (line["episode"], line["step"], line["agent"])
