"""Recorded views, reachable targets and utilities of the crafting world: files hints*.jsonl.gz beside symbolic*.npz."""

import dataclasses
from collections import defaultdict
from functools import cache

import jax
import pytest
from recorded import lines_of
from symbolic_replay import episodes_of, marks_of, replay

from jaxcoop.envs.macrafter.hints import Surroundings


def played_of(path):
    """The file of the episodes that the hints of a file belong to."""
    return path.with_name(path.name.replace("hints", "symbolic").removesuffix(".jsonl.gz") + ".npz")


@cache
def lines_by_side(path):
    """The hints of a file by the size of the map."""
    groups = defaultdict(list)
    for line in lines_of(path):
        groups[int(episodes_of(played_of(path))[line["episode"]]["side"])].append(line)
    return groups


def by_side(path):
    """(name, (file, size of the map), marks) of the hints whose episodes are there."""
    if played_of(path).exists():
        yield from ((f"{side}x{side}", (path, side), *marks_of(side)) for side in lines_by_side(path))


@cache
def surroundings_of(path, side):
    """(recorded hints, the same of the replay) of every line."""
    env, played = replay(played_of(path), side)
    states = {number: seen["state"] for number, _, seen in played}
    found = []
    for line in lines_by_side(path)[side]:
        state = jax.tree.map(lambda leaf, t=line["step"]: leaf[t], states[line["episode"]])
        found.append((line, Surroundings(env, state, line["agent"])))
    return found


@pytest.fixture
def surroundings(case):
    return surroundings_of(*case)


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
