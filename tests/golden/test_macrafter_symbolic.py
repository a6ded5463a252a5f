"""Recorded symbolic episodes of the crafting world: primitives, statuses, states and attempt events, exactly."""

import numpy as np
import pytest
from symbolic_replay import replay, sides

from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import Action

FILES = ("macrafter", "symbolic*.npz", sides)


def recorded_events(path):
    """Cases with the attempt events of the file."""
    events = np.load(path)["events"]
    return ((name, (case, events), *marks) for name, case, *marks in sides(path))


def compare(label, got, want, episode):
    """Every element; the first difference is named with its step and agent."""
    differs = np.argwhere(np.asarray(got) != np.asarray(want))
    if differs.size:
        at = tuple(differs[0])
        pytest.fail(
            f"episode {episode}: {len(differs)} differences in {label}, first at {at}: "
            f"got {np.asarray(got)[at]}, want {np.asarray(want)[at]}"
        )


@pytest.mark.recorded(*FILES)
def test_macrafter_symbolic_actions_become_the_recorded_primitives(case):
    for number, want, got in replay(*case)[1]:
        n = int(want["n"])
        action, lost = got["command"].action[:, :n], ~got["has_path"][:, :n] & (want["op"] == Op.NAVIGATE)
        compare("action", action, want["action"], number)
        compare("prim", np.where(lost, -1, action), want["prim"], number)


@pytest.mark.recorded(*FILES)
def test_macrafter_symbolic_actions_end_as_recorded(case):
    for number, want, got in replay(*case)[1]:
        n = int(want["n"])
        compare("status", got["report"].status[:, :n], want["status"], number)
        compare("fail", got["report"].reason[:, :n], want["fail"], number)
        late = want["elapsed_at_timeout"] > 0
        compare("elapsed", got["elapsed"][:, :n][late], want["elapsed_at_timeout"][late], number)


@pytest.mark.recorded(*FILES)
def test_macrafter_symbolic_episodes_pass_the_recorded_states(case):
    for number, want, got in replay(*case)[1]:
        n, state = int(want["n"]), got["state"]
        last = state.last
        fields = {
            "pos": np.stack([state.x, state.y], -1),
            "facing": state.facing,
            "inv": state.inventory,
            "counters": state.counters / 2,
            "sleeping": state.sleeping,
            "ach": state.achievements,
            "removed": state.removed,
            "reward": got["reward"],
            "out_status": last.status,
            "out_reason": last.reason,
            "out_need": last.need,
            "out_have": last.have,
            "share_q": np.where(got["command"].action == Action.SHARE, last.shared, -99),
        }
        for name, value in fields.items():
            compare(name, value[:, :n], want[name], number)
        compare("score", state.score, want["score"], number)


@pytest.mark.recorded(*FILES)
def test_macrafter_symbolic_episodes_change_the_map_and_the_cows_as_recorded(case):
    for number, want, got in replay(*case)[1]:
        before = np.concatenate([want["init_mat"][None], got["state"].material[:-1] & 15])
        after = got["state"].material & 15
        at = np.argwhere(after != before)
        changes = np.concatenate([at, after[tuple(at.T)][:, None]], axis=1)
        compare("mat_changes", changes, want["mat_changes"][np.lexsort(want["mat_changes"].T[2::-1])], number)
        cows = len(want["init_cow_pos"])
        cow = np.stack([got["state"].cow_x[-1, :cows], got["state"].cow_y[-1, :cows]], -1)
        alive = want["cow_alive_end"]
        compare("cow_alive_end", cow[:, 0] >= 0, alive, number)
        compare("cow_pos_end", cow[alive], want["cow_pos_end"][alive], number)


@pytest.mark.recorded(*FILES)
def test_macrafter_symbolic_places_are_where_and_have_the_ids_that_are_recorded(case):
    env, played = replay(*case)
    for number, want, got in played:
        n, state = int(want["n"]), got["state"]
        placed = np.where(got["command"].place >= 0, state.last.placed, -1)[:, :n]
        cell = np.where(placed[..., None] < 0, -1, np.stack(np.divmod(placed, env.height), -1))
        compare("place_pos", cell, want["place_pos"], number)
        ids = np.full((*placed.shape, 2), -1)
        for t, agent in np.argwhere(placed >= 0):
            where = placed[t, agent]
            for slots in (state.table[t], state.furnace[t]):
                if where in slots:
                    ids[t, agent, 1] = list(slots).index(where) + 1
            plant = list(state.plant[t]).index(where) if where in state.plant[t] else None
            ids[t, agent, 0] = where + 1 if plant is None else state.plant_id[t, plant]
        compare("place_id", ids, want["place_id"], number)


@pytest.mark.recorded("macrafter", "symbolic*.npz", recorded_events)
def test_macrafter_symbolic_collects_are_the_recorded_attempt_events(case):
    (path, side), events = case
    for number, _, got in replay(path, side)[1]:
        recorded = events[events[:, 0] == number]
        rows = sorted((tuple(row[[1, 2, 4, 7]]), int(row[5]), tuple(row[8:14])) for row in recorded)
        attempts, found = got["attempts"], []
        for t, row in np.argwhere(attempts.task >= 0):
            agents = np.flatnonzero(attempts.event[t] == row)
            score = attempts.score[t, row]
            found.append(
                (
                    (t, attempts.task[t, row] + 1, attempts.required[t, row], attempts.success[t, row]),
                    int((1 << agents).sum()),
                    (*score, *np.maximum(0, 1 - np.minimum(score, 1))),
                )
            )
            assert attempts.attempting[t, row] == len(agents), (number, t)
        found.sort()
        assert len(found) == len(rows), number
        totals = got["state"].attempts
        assert (int(totals.events[-1]), int(totals.successes[-1])) == (len(rows), sum(row[0][3] for row in rows))
        for ours, theirs in zip(found, rows, strict=True):
            assert ours[:2] == theirs[:2], number
            np.testing.assert_allclose(ours[2], theirs[2], atol=1e-6, err_msg=str((number, theirs)))
