"""A run of ten episodes whose every value depends on the episode number alone."""

import numpy as np
import pytest

from jaxcoop.runs.folder import RunFolder

CONFIG = {"env": "dining", "seed": 7, "episodes": 10, "agent": {"name": "random", "temperature": 0.5}}
COMMAND = "jaxcoop run dining --seed 7"


def open_run(path, config=CONFIG, **options):
    return RunFolder.open(path, config, command=COMMAND, **options)


def columns(first, count):
    """Columns of every kind whose values depend on the episode number alone."""
    e = np.arange(first, first + count)
    return {
        "timesteps": e.astype(np.int32),
        "deadlock": e % 2 == 0,
        "throughput": np.where(e % 3 == 0, np.nan, e / 7),
        "meals": (e[:, None] + np.arange(5)).astype(np.uint8),
        "note": np.array([None if i % 2 else f"é{i}" for i in e], dtype=object),
    }


def write(run, index, first, count):
    run.write_trace(index, {"fork": np.arange(first, first + count, dtype=np.int8)})
    events = {"episode": np.full(index + 1, first), "kind": np.arange(index + 1)}
    run.write_chunk(index, first, count, columns(first, count), events)


def finish(run):
    """Run what is left of 10 episodes in chunks of 4, and complete."""
    for index, first, count in run.plan(10, 4):
        write(run, index, first, count)
    run.complete({"episodes": 10})


def assert_whole(run):
    got = run.episodes()
    for name, expected in {"episode": np.arange(10), **columns(0, 10)}.items():
        np.testing.assert_array_equal(got[name], expected)
        assert got[name].dtype == expected.dtype
    np.testing.assert_array_equal(run.events()["episode"], [0, 4, 4, 8, 8, 8])


def error_of(action):
    with pytest.raises(Exception) as caught:
        action()
    assert type(caught.value).__name__ == "RunFolderError", caught.value
    message = str(caught.value)
    assert "\n" not in message
    return message
