"""Recorded episodes of primitives with requests, compared array by array: joint collection, vitals, all the rules."""

from functools import cache, cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.cooperation import counting
from jaxcoop.envs.macrafter import MACrafter, collect, observe, tasks
from jaxcoop.envs.macrafter.types import PLANT_BIT, Action, Command, Draws, material_of

WITHIN = {"daylight": 1e-5, "pratio": 1e-5}
"""Arrays of floats that are no halves; all others have to agree bit by bit."""
EPISODES, STEPS = 72, 50
"""At most so many episodes are replayed at once and at least so many steps: files of like teams share a program."""


def environment(want):
    """The environment of a file: without runner, without balancing."""
    n, (width, height) = want["init_pos"].shape[1], want["init_mat"].shape[1:]
    return MACrafter(n, width, height, max_steps=10_000, end_on_death=False, balance=False)


def start(env, w):
    """The state at the start of an episode."""
    material = w["init_mat"] | jnp.where(w["init_plant"], PLANT_BIT, 0).astype(jnp.uint8)
    cows = jnp.where(w["init_cow_alive"][:, None], w["init_cow_pos"], -1)
    state = env.start(material, cows[:, 0], cows[:, 1], w["init_pos"][:, 0], w["init_pos"][:, 1])
    inventory = w["init_inv"].astype(jnp.int8)
    return state.replace(
        facing=w["init_facing"],
        inventory=inventory,
        paid=inventory[:, 5:10],
        counters=(w["init_counters"] * 2).astype(jnp.int16),
        sleeping=w["init_sleeping"],
        last_health=w["init_last_health"].astype(jnp.int8),
        achievements=w["init_ach"],
        removed=w["init_removed"],
    )


def inputs_of(env, want):
    """Recorded commands and cow moves [E, T, ...]."""
    first, late = env.settings.cow_slots
    recorded = want["cow_dir"]
    assert recorded.shape[2] <= first
    cow = np.full((*recorded.shape[:2], first + late), -1, np.int8)
    cow[..., : recorded.shape[2]] = np.maximum(recorded, -1)
    action, share, place = (want[name].astype(np.int32) for name in ("action", "share", "place"))
    target = np.where((action == Action.DO) & (want["target"] >= 0), want["target"] - 1, -1).astype(np.int32)
    return Command(action, share, place, target, target), cow


def one_step(env, carry, given):
    """One step and all that is recorded of it."""
    (state, before), (command, cow) = carry, given
    draws = Draws(cow, None)
    step, done, attempts = env.advance(state, command, draws)
    nxt, last = step.state, step.state.last
    counts = tasks.task_states(env.settings, nxt, done.collector, command.target)
    metrics, ratio = tasks.step_metrics(before, counts, state, nxt)
    noted = last.blocked >= 0
    seen = {
        "mat": material_of(nxt.material),
        "plant": nxt.material >= PLANT_BIT,
        "pos": jnp.stack([nxt.x, nxt.y], -1),
        "facing": nxt.facing,
        "inv": nxt.inventory,
        "counters": nxt.counters / 2,
        "sleeping": nxt.sleeping,
        "last_health": nxt.last_health,
        "ach": nxt.achievements,
        "removed": nxt.removed,
        "cow_alive": nxt.cow_x >= 0,
        "cow_pos": jnp.stack([nxt.cow_x, nxt.cow_y], -1),
        "reward": step.reward,
        "active": ~state.removed,
        "trunc": step.events.died,
        "term": jnp.zeros_like(state.removed),
        "status": last.status,
        "reason": last.reason,
        "need": last.need,
        "have": last.have,
        "blocked": last.blocked,
        "blk_need": jnp.where(noted, last.blocked_need, -1),
        "blk_have": jnp.where(noted, last.blocked_have, -1),
        "score": nxt.score,
        "daylight": observe.daylight(nxt.t),
        "metrics": metrics,
        "pratio": ratio,
    }
    return (nxt, counts), (seen, done.collection, step.events.collected, attempts, nxt.attempts)


def limits_now():
    """Up to how many pairs are compared by attempt events and by collecting."""
    return counting.PAIRS, collect.PAIRWISE


@partial(jax.jit, static_argnums=(0, 1))
def replay(env, limits, first, inputs):
    """Episodes at once, every leaf [E, T, ...]; other `limits` of comparing pairs make another program."""
    assert limits == limits_now()

    def episode(first, inputs):
        state = start(env, first)
        nobody = jnp.zeros((env.agents,), jnp.bool_)
        counts = tasks.task_states(env.settings, state, nobody, jnp.full((env.agents,), -1, jnp.int32))
        return jax.lax.scan(lambda carry, given: one_step(env, carry, given), (state, counts), inputs)[1]

    return jax.vmap(episode)(first, inputs)


def longer(array, length, axis):
    """The array with its last row again and again."""
    missing = max(0, length - array.shape[axis])
    return np.pad(array, [(0, missing if k == axis else 0) for k in range(array.ndim)], mode="edge")


class Recording:
    """A file and its replay."""

    def __init__(self, path):
        self.want = dict(np.load(path))
        self.env = environment(self.want)

    @cached_property
    def replay(self):
        """All episodes, every leaf [E, T, ...]."""
        episodes, steps = self.want["action"].shape[:2]
        first = {name: self.want[name] for name in self.want if name.startswith("init_")}
        inputs = jax.tree.map(lambda x: longer(x, STEPS, 1), inputs_of(self.env, self.want))
        size, parts = min(episodes, EPISODES), []
        for begin in range(0, episodes, size):
            part = jax.tree.map(lambda x, b=begin: longer(x[b : b + size], size, 0), (first, inputs))
            parts.append(jax.device_get(replay(self.env, limits_now(), *part)))
        return jax.tree.map(lambda *x: np.concatenate(x)[:episodes, :steps], *parts)


@cache
def recording(path):
    return Recording(path)


def recordings(path):
    """The one case of a file."""
    yield "all", recording(path)


every_file = pytest.mark.recorded("macrafter", "[acv][ori][eot][nap]*.npz", recordings)


def check_arrays(case, seen):
    """Every recorded array; the first difference is named with its place."""
    want, listed = case.want, case.want["active"].any(-1)
    for name, got in seen.items():
        got = np.asarray(got)
        if name in ("cow_alive", "cow_pos"):
            got = got[:, :, : want["cow_pos"].shape[2]]
        if name == "cow_pos":  # where a cow was that is gone is not kept
            got = np.where(want["cow_alive"][..., None], got, want[name])
        if name in ("metrics", "pratio"):  # not recorded when nobody was left
            got = np.where(listed.reshape(*listed.shape, *[1] * (got.ndim - 2)), got, -1)
        differs = np.argwhere(abs(got.astype(np.float64) - want[name]) > WITHIN.get(name, 0))
        if differs.size:
            at = tuple(map(int, differs[0]))
            pytest.fail(f"{len(differs)} differences in {name}, first at {at}: got {got[at]}, want {want[name][at]}")


@every_file
def test_macrafter_recorded_steps_replay_without_a_mismatch(case):
    check_arrays(case, case.replay[0])


@every_file
def test_macrafter_collections_come_in_the_recorded_order_with_the_recorded_participants(case):
    _, done, collected, _, _ = case.replay
    height, rows = case.env.height, []
    for e, t in np.argwhere(done.is_collected.any((2, 3))):
        order = {}
        for agent, column in np.argwhere(done.is_collected[e, t]):
            cell = int(done.cell[e, t, agent, column])
            mask, code = order.get(cell, (0, int(done.code[e, t, agent, column])))
            order[cell] = (mask | (int(done.received[e, t, agent, column]) << int(agent)), code)
        for rank, (cell, (mask, code)) in enumerate(order.items()):
            rows.append((e, t, rank, *divmod(cell, height), code, mask))
    np.testing.assert_array_equal(np.array(rows).reshape(-1, 7), case.want["collections"].reshape(-1, 7))
    np.testing.assert_array_equal(collected, np.where(done.received, done.code, 0))


@every_file
def test_macrafter_attempt_events_equal_the_recorded_ones(case):
    _, _, _, attempts, totals = case.replay
    want = case.want["events"].reshape(-1, 15)
    rows = {(int(r[0]), int(r[1]), int(r[2]) - 1): r for r in want}
    assert len(rows) == len(want)
    found = np.argwhere(attempts.task >= 0)
    assert len(found) == len(want)
    for e, t, row in found:
        task = int(attempts.task[e, t, row])
        _, _, _, _, p, trying, _, success, *numbers, _ = rows[int(e), int(t), task]
        # an agent without an active target of its own takes part in every event whose cell it collected
        tries = sum(1 << int(i) for i in (attempts.event[e, t] == row).nonzero()[0])
        assert tries & int(trying) == tries, (e, t, task)
        assert attempts.attempting[e, t, row] == int(trying).bit_count()
        assert attempts.required[e, t, row] == p
        assert attempts.success[e, t, row] == bool(success)
        np.testing.assert_allclose(attempts.score[e, t, row], numbers[:3], atol=1e-6, err_msg=f"{e, t, task}")
    last = jax.tree.map(lambda x: x[:, -1], totals)
    for e in range(last.events.shape[0]):
        mine = want[want[:, 0] == e]
        assert (last.events[e], last.successes[e]) == (len(mine), mine[:, 7].sum())
        np.testing.assert_allclose(last.deficit[e], mine[:, 11:14].sum(0), atol=1e-3)


@pytest.mark.slow
@pytest.mark.recorded("macrafter", "coop*.npz", recordings)
def test_macrafter_the_rules_of_large_teams_are_those_of_small_ones(case, monkeypatch):
    monkeypatch.setattr(counting, "PAIRS", 0)
    monkeypatch.setattr(collect, "PAIRWISE", 0)
    check_arrays(case, Recording.replay.func(case)[0])
