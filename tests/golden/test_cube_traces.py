"""Recorded CUBE episodes and hand-made scenes, replayed and compared field by field.

Axes: E episodes, T steps, A agents, B blocks, F = 4 B face tasks.
"""

import dataclasses
import gzip
import itertools
import json
from collections import defaultdict
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recorded import lines_of

from jaxcoop.cooperation import violations
from jaxcoop.core.env import NoDraws
from jaxcoop.envs.cube import Cube, observe, tasks
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.types import ACTION_NAMES, FACES, PUSH_NAMES, Push

FACE_NAMES = list(FACES)


def block_list(weights):
    """The option `blocks` for weights in id order, those of a kind together."""
    return ",".join(f"{int(w)}:{len(list(group))}" for w, group in itertools.groupby(weights))


@partial(jax.jit, static_argnums=0)
def replay(env, start, t, actions):
    """(first states [E], steps [E, T]) of episodes from given starts and clocks."""

    def one(start, t, actions):
        first = env.start_from(start).replace(t=t)

        def step(state, action):
            done = env.step(state, action, NoDraws())
            return done.state, done

        return first, jax.lax.scan(step, first, actions)[1]

    return jax.vmap(one)(start, t, actions)


def played(env, agents, blocks, actions, t=None):
    """`replay` on numpy positions [E, A, 2] and [E, B, 2]."""
    start = Start(*(jnp.asarray(x[..., axis], jnp.int16) for x in (agents, blocks) for axis in (0, 1)))
    t = np.zeros(len(actions)) if t is None else t
    return jax.device_get(replay(env, start, jnp.asarray(t, jnp.int32), jnp.asarray(actions, jnp.int32)))


def joined(first, rest):
    """[E, 1 + T] from first states [E] and the states after each step [E, T]."""
    return jax.tree.map(lambda a, b: np.concatenate([a[:, None], b], 1), first, rest)


def same(what, got, want, valid):
    """Every element of the valid steps; floats within 1e-6.  Names the first that differs."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, what
    differs = ~np.isclose(got, want, rtol=1e-6, atol=1e-6) if want.dtype.kind == "f" else got != want
    at = np.argwhere(differs & valid.reshape(*valid.shape, *(1,) * (got.ndim - 2)))
    if len(at):
        e, k, *_ = at[0]
        pytest.fail(f"{what}: {len(at)} differences, first at {at[0]}: got {got[e, k]} want {want[e, k]}")


def attempts_of(events, actions, e, k):
    """The attempt events of a step in the recorded form: sorted [task, w, attempting, successful, success, s, s, s]."""
    found, pusher = events.attempts, events.pusher[e, k]
    rows = []
    for i in np.flatnonzero(found.task[e, k] >= 0):
        task = int(found.task[e, k, i])
        named = np.flatnonzero(found.event[e, k] == i)
        moved = [j for j in named if pusher[j] >= 0 and events.push[e, k, actions[e, k, j] - 1, pusher[j]] == 1]
        rows.append(
            (
                f"block_{task // 4}_{FACES[task % 4]}",
                int(found.required[e, k, i]),
                int(found.attempting[e, k, i]),
                [int(j) for j in moved],
                bool(found.success[e, k, i]),
                *(pytest.approx(float(s), abs=1e-6) for s in np.minimum(found.score[e, k, i], 1)),
            )
        )
    return sorted(rows, key=lambda row: row[0])


MORE = ("legacy_k15_n6_paper", "prim_k15_n6_paper", "prim_k15_n6_paper_50")
"""Replayed with the slow tests: their rules and blocks are those of prim_k15_n3_paper and legacy_k8_n3."""


def files(path):
    """An npz file with the attempt events that belong to it."""
    events = path.with_name(path.name.replace(".npz", ".attempts.jsonl.gz"))
    marks = [pytest.mark.slow] * (path.stem in MORE)
    of_file = path.name.startswith("legacy"), dict(np.load(path)), lines_of(events) if events.exists() else []
    yield "all", of_file, *marks


def env_of(data, legacy):
    return Cube(
        side=int(data["K"]),
        agents=int(data["N"]),
        blocks=block_list(data["block_weight"]),
        max_steps=int(data["max_steps"]),
        step_cost=float(data["step_cost"]),
        deliver_reward=float(data["deliver_reward"]),
        revision="legacy" if legacy else "current",
    )


@partial(jax.jit, static_argnums=0)
def derived(env, states):
    """What follows from the states [E, 1 + T] and their predecessors."""
    layout = env.layout

    def update(before, after):
        return tasks.step_metrics(layout, before, after)

    def of_episode(states):
        first, before, after = (jax.tree.map(lambda x, s=s: x[s], states) for s in (0, slice(-1), slice(1, None)))
        metrics = jax.tree.map(
            lambda a, b: jnp.concatenate([a[None], b]), update(None, first), jax.vmap(update)(before, after)
        )
        one = (tasks.face_sets, tasks.distances_to_goal, tasks.blockers, observe.occupied)
        return metrics, *(jax.vmap(partial(f, layout))(states) for f in one)

    return jax.vmap(of_episode)(states)


@pytest.mark.recorded("cube", "prim_*.npz", files)
def test_cube_episodes_replay_without_a_difference(case):
    check_episodes(*case)


@pytest.mark.recorded("cube", "legacy_*.npz", files)
def test_cube_episodes_of_the_first_revision_replay_without_a_difference(case):
    check_episodes(*case)


def check_episodes(legacy, data, recorded_attempts):
    env = env_of(data, legacy)
    first, steps = played(env, data["init_agent_pos"], data["init_block_pos"], data["actions"])
    states = joined(first, steps.state)
    lengths = data["ep_len"][:, None]
    valid = np.arange(data["actions"].shape[1]) < lengths
    valid_states = np.arange(data["actions"].shape[1] + 1) <= lengths

    compare = partial(same, valid=valid)
    compare("agents", np.stack([steps.state.row, steps.state.col], -1), data["agent_pos"])
    compare("blocks", np.stack([steps.state.block_row, steps.state.block_col], -1), data["block_pos"])
    compare("reward", steps.reward, np.repeat(data["reward"][..., None], env.agents, -1))
    compare("score", steps.state.score, data["team_score"])
    compare("terminated", steps.terminated, data["terminated"])
    compare("truncated", steps.truncated, data["truncated"])
    compare("push results", steps.events.push, data["push_result"])
    compare("delivered", steps.events.delivered, data["delivered"])
    directions, blocks = np.arange(1, 5)[:, None, None], np.arange(env.num_blocks)[:, None]
    pushers = (data["actions"][:, :, None, None] == directions) & (steps.events.pusher[:, :, None, None] == blocks)
    compare("pushers", pushers, data["push_agents"])

    check_sets(env, data, states, partial(same, valid=valid_states))
    for e, episode in enumerate(recorded_attempts):
        check_attempts(episode, steps, data["actions"], e, int(lengths[e, 0]))
    if "obs_ep0" in data:
        seen = jax.vmap(partial(observe.grid, env.layout))(jax.tree.map(lambda x: x[0], states))
        n = int(lengths[0, 0]) + 1
        np.testing.assert_array_equal(seen[:n], data["obs_ep0"][:n])


def check_sets(env, data, states, compare):
    """8, 10.3: face tasks and what is derived of them, after each update."""
    (metrics, ratio), sets, distances, ahead, occupied = jax.device_get(derived(env, states))
    shape = (*states.t.shape, env.num_blocks, 4)
    active = np.repeat(states.block_row[..., None] >= 0, 4, -1)
    numbers = np.arange(4 * env.num_blocks).reshape(env.num_blocks, 4, 1)
    compare("adjacent", sets.adjacent.reshape(shape) * active, data["adjacent"].sum(-1) * active)
    pushing = states.aim[..., None, None, :] == numbers
    compare("pushing", pushing & active[..., None], data["pushing"] & active[..., None])
    compare("number pushing", sets.pushing.reshape(shape), (data["pushing"].sum(-1) * active))
    frozen = np.where(data["pushing"] & ~active[..., None], numbers, -1).max((2, 3))
    compare("last frozen task", states.phantom, frozen)
    status = np.where(active, (sets.adjacent.reshape(shape) > 0) | pushing.any(-1), 2)
    compare("status", status, data["task_status"])
    compare("distances", distances, data["distance_to_goal"])
    compare("blockers", ahead, data["blockers"])
    compare("occupied", occupied, data["occupied"])
    compare("metrics", metrics, data["step_metrics"])
    compare("ratio", ratio, data["participation_ratio_avg"])


def check_attempts(episode, steps, actions, e, length):
    """10: attempt events of one episode and their aggregates."""
    want = defaultdict(list)
    for t, task, required, attempting, successful, *rest in episode["events"]:
        want[t].append((task, required, len(attempting), successful, *rest))
    for k in range(length):
        assert attempts_of(steps.events, actions, e, k) == want[k + 1], f"episode {e}, step {k + 1}"
    totals = jax.tree.map(lambda x: x[e, length - 1], steps.state.attempts)
    aggregate, viol = episode["aggregate"], np.asarray(violations(totals))
    assert int(totals.events) == aggregate["attempt_constraint_events"]
    assert int(totals.successes) == aggregate["successful_attempt_events"]
    for c, name in enumerate(("spatial", "temporal", "dependency")):
        assert viol[c] == pytest.approx(aggregate[f"{name}_violation_rate"], abs=1e-5)


def scenes(path):
    """Scenes of a file by side of the grid; those of one side are replayed together."""
    groups = defaultdict(list)
    for scene in lines_of(path):
        groups[scene["K"]].append(scene)
    yield from ((f"side {side}", group) for side, group in sorted(groups.items()))


def common_list(lists):
    """A list of weights that has each of the given ones as a subsequence, weights of a kind together where possible."""
    whole = []
    for weights in sorted(lists, key=len, reverse=True):
        at = 0
        for w in weights:
            at = next((k + 1 for k in range(at, len(whole)) if whole[k] == w), None) or len(whole) + 1
            if at > len(whole):
                whole.append(w)
    return whole


def places(whole, weights):
    """Where a list stands in `common_list`."""
    at, found = -1, []
    for w in weights:
        at = whole.index(w, at + 1)
        found.append(at)
    return found


class Scenes:
    """Scenes on grids of one side, padded to one team and one list of blocks by agents and blocks that are absent."""

    def __init__(self, scenes, **options):
        self.scenes = scenes
        lists = [[b[1] for b in scene["blocks"]] for scene in scenes]
        self.whole = common_list(lists)
        self.slots = [places(self.whole, weights) for weights in lists]
        self.size = max(len(scene["agents"]) for scene in scenes)
        self.length = max(len(scene["actions"]) for scene in scenes)
        self.env = Cube(side=scenes[0]["K"], agents=self.size, blocks="1:1", **options)
        layout = dataclasses.replace(self.env.layout, weights=tuple(self.whole))
        vars(self.env)["layout"] = layout  # weights that repeat out of order cannot be written as an option
        agents = np.full((len(scenes), self.size, 2), -1)
        blocks = np.full((len(scenes), len(self.whole), 2), -1)
        self.actions = np.zeros((len(scenes), self.length, self.size), int)
        clock = np.zeros(len(scenes))
        for e, (scene, slots) in enumerate(zip(scenes, self.slots, strict=True)):
            agents[e, : len(scene["agents"])] = [a or (-1, -1) for a in scene["agents"]]
            blocks[e, slots] = [b[2:] for b in scene["blocks"]]
            self.actions[e, : len(scene["actions"]), : len(scene["agents"])] = scene["actions"]
            clock[e] = self.env.max_steps - scene.get("max_steps", self.env.max_steps)
        _, self.steps = played(self.env, agents, blocks, self.actions, clock)

    def check(self, trace):
        """Compare each step of `trace(scene)` with `want`."""
        for e, scene in enumerate(self.scenes):
            ids = {slot: block[0] for slot, block in zip(self.slots[e], scene["blocks"], strict=True)}
            for k, want in enumerate(trace(scene)):
                yield e, k, scene, ids, want

    def check_positions(self, e, k, scene, ids, want):
        state, label = self.steps.state, f"{scene['name']}, step {k + 1}"
        agents = np.stack([state.row, state.col], -1)[e, k, : len(scene["agents"])]
        assert agents.tolist() == [list(a or (-1, -1)) for a in want["agents"]], label
        corners = {ids[s]: [int(state.block_row[e, k, s]), int(state.block_col[e, k, s])] for s in ids}
        assert {i: c for i, c in corners.items() if c[0] >= 0} == {int(i): c for i, c in want["blocks"].items()}, label
        share = self.size / len(scene["agents"])
        reward = (float(self.steps.reward[e, k, 0]) + self.env.step_cost) * share - self.env.step_cost
        assert reward == pytest.approx(want["reward"], abs=2e-6), label
        assert bool(self.steps.terminated[e, k]) == want["terminated"], label


def check_scene_step(group, e, k, scene, ids, want):
    """One step of a hand-made scene: everything that is recorded of it."""
    group.check_positions(e, k, scene, ids, want)
    events, state, label = group.steps.events, group.steps.state, f"{scene['name']}, step {k + 1}"
    n, weights = len(scene["agents"]), {b[0]: b[1] for b in scene["blocks"]}
    slots = {i: s for s, i in ids.items()}
    assert float(state.score[e, k]) == pytest.approx(want["team_score"]), label
    assert bool(group.steps.truncated[e, k]) == want["truncated"], label
    actions, pusher = group.actions[e, k, :n], events.pusher[e, k, :n]
    pushes = []
    for d in range(1, 5):
        for slot, block in sorted(ids.items()):
            result = events.push[e, k, d - 1, slot]
            if result != Push.NONE:
                who = np.flatnonzero((actions == d) & (pusher == slot)).tolist()
                text = "ok" if result == Push.SUCCESS else PUSH_NAMES[result]
                pushes.append([d, block, text, who, len(who), weights[block]])
    assert pushes == [[d, b, text, sorted(who), f, w] for d, b, text, who, f, w in want["pushes"]], label
    delivered = [ids[s] for s in np.flatnonzero(events.delivered[e, k])]
    assert sorted(delivered) == sorted(d[0] for d in want["delivered"]), label
    for name, (status, _, pushing) in want["tasks"].items():
        task = 4 * slots[int(name.split("_")[1])] + FACE_NAMES.index(name.split("_")[2])
        who = state.phantom if status == "completed" else state.aim
        last_only = status == "completed"  # of several frozen sets the last one is kept
        found = set(np.flatnonzero(who[e, k, :n] == task).tolist())
        assert found <= set(pushing) if last_only else found == set(pushing), (label, name)
    got = attempts_of(events, group.actions, e, k)
    whole_team = group.size
    renamed = []
    for name, w, attempting, *rest in got:
        _, slot, face = name.split("_")
        attempting = n if attempting == whole_team else attempting
        renamed.append((f"block_{ids[int(slot)]}_{face}", w, attempting, *rest))
    assert sorted(renamed, key=lambda r: r[0]) == [(t, w, len(who), *rest) for t, w, who, *rest in want["attempts"]]


@pytest.mark.recorded("cube", "scripted*.jsonl.gz", scenes)
def test_cube_scenes_play_out_as_recorded(case):
    group = Scenes(case, revision="current")
    for step in group.check(lambda scene: scene["trace"]):
        check_scene_step(group, *step)


def legacy_scenes(path):
    """Scenes by side; slow where the first revision does in all of them what the current one does."""
    for side, group in scenes(path):
        differs = any(scene.get("legacy_trace") for scene in group)
        yield side, group, *[pytest.mark.slow] * (not differs)


@pytest.mark.recorded("cube", "scripted*.jsonl.gz", legacy_scenes)
def test_cube_scenes_of_the_first_revision_play_out_as_recorded(case):
    group = Scenes(case, revision="legacy")
    for step in group.check(lambda scene: scene.get("legacy_trace") or scene["trace"]):
        check_scene_step(group, *step)


def chains(path):
    """Episodes of the original rules by side, without the one that shows a defect (A.2)."""
    for side, group in scenes(path):
        yield side, [scene for scene in group if scene["name"] != "c_two_blocks_ahead_bug"]


@pytest.mark.recorded("cube", "chain_physics*.jsonl.gz", chains)
def test_cube_chains_move_as_recorded(case):
    group = Scenes(case, physics="chain")
    for e, k, scene, ids, want in group.check(lambda scene: scene["trace"]):
        group.check_positions(e, k, scene, ids, want)
        events, actions = group.steps.events, group.actions[e, k]
        got = defaultdict(list)
        for i in np.flatnonzero(events.pusher[e, k] >= 0):
            got[int(actions[i]), ids[int(events.pusher[e, k, i])]].append(int(i))
        label = f"{scene['name']}, step {k + 1}"
        assert dict(got) == {(d, first): sorted(agents) for d, first, _, _, agents in want["events"]}, label
        moved = defaultdict(set)
        for d, _, members, _, _ in want["events"]:
            moved[d] |= set(members)
        for d in range(1, 5):
            assert {ids[s] for s in np.flatnonzero(events.push[e, k, d - 1]) if s in ids} == moved[d], label


def test_cube_names_of_recorded_codes_are_ours():
    assert ACTION_NAMES == ("stay", "up", "down", "left", "right")
    assert FACES == ("up", "down", "left", "right")


def two_ahead(path):
    """The scene in which the original code overlooks a block."""
    with gzip.open(path) as file:
        for line in file:
            scene = json.loads(line)
            if scene["name"] == "c_two_blocks_ahead_bug":
                yield scene["name"], scene


@pytest.mark.recorded("cube", "chain_physics*.jsonl.gz", two_ahead)
def test_cube_a_chain_takes_both_blocks_ahead_so_that_this_one_stands_still(case):
    group = Scenes([case], physics="chain")
    state, blocks = group.steps.state, case["blocks"]
    assert state.block_row[0, 0, group.slots[0]].tolist() == [b[2] for b in blocks]
    assert state.block_col[0, 0, group.slots[0]].tolist() == [b[3] for b in blocks]
