"""Recorded episodes of symbolic actions: primitives, statuses, outcomes, positions, face tasks, attempts, rewards."""

import re
from collections import Counter, defaultdict
from functools import cache, partial
from itertools import groupby, islice, permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from recorded import lines_of

from jaxcoop.cooperation import violations
from jaxcoop.core.skills import Status
from jaxcoop.envs.cube import text
from jaxcoop.envs.cube.env import Cube
from jaxcoop.envs.cube.generate import Start
from jaxcoop.envs.cube.skills import CubeSkills
from jaxcoop.envs.cube.types import FACE_OF_ACTION, PUSH_NAMES, Push

STATUS = tuple(status.name.lower() for status in Status)
CONSTRAINTS = ("spatial", "temporal", "dependency")


def teams(revision, slow=()):
    """Reader of the episodes of a file: those that one environment can play, together.

    Teams `(side, agents)` in `slow` are played with the slow tests only: each is a program of its own for rules that
    the episodes of the others obey as well.
    """

    def read(path):
        of_a_kind = defaultdict(list)
        for case in lines_of(path):
            of_a_kind[case["K"], case["N"], case["max_steps"]].append(case)
        for (side, agents, max_steps), cases in of_a_kind.items():
            for weights, together in by_stock(cases):
                listed = ",".join(f"{weight}:{len(list(group))}" for weight, group in groupby(weights))
                options = {"side": side, "agents": agents, "blocks": listed, "max_steps": max_steps}
                marks = [pytest.mark.slow] * ((side, agents) in slow)
                yield f"{side}-{agents}-{listed}", (options | {"revision": revision}, together), *marks

    return read


def weights_of(case):
    """Weights of an episode's blocks by id."""
    return [block[1] for block in sorted(case["blocks"])]


def by_stock(cases):
    """(weights, episodes): one stock of blocks for all, if there is one that holds those of each in their order.

    What an episode does not have counts as delivered before it starts; this spares a compilation for each stock.
    """
    most = Counter()
    for case in cases:
        most |= Counter(weights_of(case))
    for order in islice(permutations(most), 200):
        stock = [weight for weight in order for _ in range(most[weight])]
        if all(slots_of(weights_of(case), stock) for case in cases):
            return [(stock, cases)]
    stocks = defaultdict(list)
    for case in cases:
        stocks[tuple(weights_of(case))].append(case)
    return stocks.items()


def slots_of(weights, stock):
    """Places in the stock of blocks with these weights, in the same order; None if it has no such places."""
    slots, start = [], 0
    for weight in weights:
        if weight not in stock[start:]:
            return None
        slots.append(stock.index(weight, start))
        start = slots[-1] + 1
    return slots


def renamed(case, env):
    """The recorded episode with the block ids of the environment; ids that are no block's stay so."""
    weights = list(env.layout.weights)
    slots = slots_of(weights_of(case), weights)

    def name(block):
        number = int(block)
        if 0 <= number < len(slots):
            return slots[number]
        return number if number < 0 else number + len(weights)

    def words(value):
        """Names of blocks in task ids and reasons, and those in containers."""
        if isinstance(value, str):
            return re.sub(r"(?<=block[ _])\d+", lambda found: str(name(found[0])), value)
        if isinstance(value, list):
            return [words(x) for x in value]
        return {words(key): words(x) for key, x in value.items()} if isinstance(value, dict) else value

    def action(sym):
        if sym["action_type"] == "push":
            return sym | {"block_id": name(sym["block_id"])}
        is_block = sym["action_type"] == "navigate" and sym["entity_type"] == "block"
        return sym | {"entity_id": name(sym["entity_id"])} if is_block else sym

    steps = [
        {key: words(value) for key, value in step.items() if key not in ("sym", "blocks")}
        | {"sym": [action(sym) for sym in step["sym"]]}
        | {"blocks": {str(name(block)): cell for block, cell in step["blocks"].items()}}
        for step in case["steps"]
    ]
    return case | {"steps": steps, "blocks": [[name(block), *rest] for block, *rest in case["blocks"]]}


@cache
def player(env):
    """Compiled play of a batch of episodes `[E, T, ...]`; an op starts where the status before is not pending."""
    skills = CubeSkills(env)

    def episode(state, ops):
        def step(carry, op):
            state, memory, status = carry
            memory = skills.begin(state, memory, op, status != Status.PENDING)
            command, memory = skills.command(state, memory)
            result = env.step(state, command, env.sample_draws(jax.random.key(0), state))
            report = skills.check(result.state, memory)
            return (result.state, memory, report.status), (command, result, report)

        start = (state, skills.idle(), jnp.full((env.num_agents,), Status.SUCCESS, jnp.int8))
        return jax.lax.scan(step, start, ops)[1]

    return jax.jit(jax.vmap(episode))


@partial(jax.jit, static_argnums=0)
def started(env, starts):
    return jax.vmap(env.start_from)(starts)


def start_of(env, cases):
    """The recorded start states, leading axis E."""
    agents = np.array([[cell or (-1, -1) for cell in case["agents"]] for case in cases], np.int16)
    blocks = np.full((len(cases), env.num_blocks, 2), -1, np.int16)
    for cells, case in zip(blocks, cases):
        for block, _, *cell in case["blocks"]:
            cells[block] = cell
    return started(env, Start(agents[..., 0], agents[..., 1], blocks[..., 0], blocks[..., 1]))


def played(env, cases):
    """Start states, op rows, and what came of them, numpy `[E, T, ...]`; after its last step an episode waits."""
    ops = np.full((len(cases), max(len(case["steps"]) for case in cases), env.num_agents, 4), -1, np.int32)
    for rows, case in zip(ops, cases):
        rows[: len(case["steps"])] = [[text.op_row(action) for action in step["sym"]] for step in case["steps"]]
    starts = start_of(env, cases)
    return jax.device_get(starts), ops, jax.device_get(player(env)(starts, jnp.asarray(ops)))


def told(env, ops, command, result, report, frozen):
    """What happened in one step, in the notation of the records; `frozen` are the sets of completed tasks (10.3)."""
    state, events, agents = result.state, result.events, range(env.num_agents)
    sets = dict(frozen)
    outcomes, adapter = {}, []
    for i in agents:
        if state.aim[i] >= 0:
            sets.setdefault(text.task_id(*divmod(int(state.aim[i]), 4)), set()).add(i)
        status, reason = text.push_outcome(state, i, int(ops[i][1]))
        if status:
            outcomes[str(i)] = [status, reason or None]
        adapter.append(adapter_outcome(command, state, events, i))
    statuses = []
    for i in agents:
        reason = text.reason_text(int(report.reason[i]), int(state.last.pushed[i]), int(ops[i][1]))
        statuses.append([STATUS[report.status[i]], reason or None])
    return {
        "prim": command.action.tolist(),
        "status": statuses,
        "outcome": outcomes,
        "adapter": adapter,
        "pushing": sets,
        "agents": np.stack([state.row, state.col], -1).tolist(),
        "blocks": {str(block): list(cell) for block, cell in text.block_cells(state).items()},
        "attempts": attempts_of(events.attempts, adapter),
    }


def adapter_outcome(command, state, events, agent):
    """10.1: (type, status, reason, task) of one agent."""
    action, block = int(command.action[agent]), int(events.pusher[agent])
    if block >= 0:
        result = int(events.push[action - 1, block])
        task = text.task_id(block, FACE_OF_ACTION[action])
        return (
            ["push", "success", None, task] if result == Push.SUCCESS else ["push", "blocked", PUSH_NAMES[result], task]
        )
    named = max(int(state.aim[agent]), int(state.phantom[agent]))
    if named >= 0:
        return ["push", "blocked", "insufficient_force_or_blocked_destination", text.task_id(*divmod(named, 4))]
    return [text.primitive_name(action), "success", None, None]


def attempts_of(attempts, adapter):
    """The attempt events, by task: (required, attempting, successful agents, success, scores)."""
    found = {}
    for row in np.flatnonzero(attempts.task >= 0):
        task = text.task_id(*divmod(int(attempts.task[row]), 4))
        assert task not in found
        done = {i for i, (_, status, _, named) in enumerate(adapter) if (status, named) == ("success", task)}
        numbers = [int(attempts.required[row]), int(attempts.attempting[row]), done, bool(attempts.success[row])]
        found[task] = [*numbers, attempts.score[row].tolist()]
    return found


def recorded_step(step):
    """The same of a recorded step."""
    want = {name: step[name] for name in ("prim", "status", "outcome", "adapter", "blocks")}
    want["agents"] = [cell or [-1, -1] for cell in step["agents"]]
    want["pushing"] = {task: set(agents) for task, agents in step["pushing"].items() if agents}
    want["attempts"] = {
        task: [required, len(attempting), set(done), success, pytest.approx(score, abs=1e-6)]
        for task, required, attempting, done, success, *score in step["attempts"]
    }
    return want


def freeze(frozen, sets, before, after):
    """10.3: the sets of the blocks that were delivered, as they were before that."""
    gone = {int(block) for block in np.flatnonzero((before.block_row >= 0) & (after.block_row < 0))}
    return frozen | {task: agents for task, agents in sets.items() if int(task.split("_")[1]) in gone}


def check_episode(env, case, before, ops, commands, results, reports):
    """Every field of every step, and the numbers of the whole episode."""
    frozen, sets = {}, {}
    for t, step in enumerate(case["steps"]):
        command, result, report = jax.tree.map(lambda x: x[t], (commands, results, reports))  # noqa: B023
        frozen = freeze(frozen, sets, before, result.state)
        got, want = told(env, ops[t], command, result, report, frozen), recorded_step(step)
        for name in want:
            assert got[name] == want[name], f"{case.get('name', case['seed'])}, step {t}, {name}; asked {step['sym']}"
        np.testing.assert_allclose(result.reward, step["reward"], rtol=0, atol=1e-6)
        before, sets = result.state, got["pushing"]
    last = len(case["steps"]) - 1
    assert (bool(results.terminated[last]), bool(results.truncated[last])) == (case["terminated"], case["truncated"])
    totals, want = jax.tree.map(lambda x: x[last], results.state.attempts), case["aggregate"]
    assert int(totals.events) == want["attempt_constraint_events"]
    assert int(totals.successes) == want["successful_attempt_events"]
    deficits = np.asarray(violations(totals))
    for deficit, name in zip(deficits, CONSTRAINTS, strict=True):
        assert deficit == pytest.approx(want[f"{name}_violation_rate"], abs=1e-5)
        assert int(totals.events) == want[f"{name}_checks"]


def check(case):
    """All episodes of one environment in one batch."""
    options, cases = case
    env = Cube(**options)
    cases = [renamed(case, env) for case in cases]
    everything = played(env, cases)
    for e, episode in enumerate(cases):
        starts, ops, seen = jax.tree.map(lambda x: x[e], everything)  # noqa: B023
        check_episode(env, episode, starts, ops, *seen)


@pytest.mark.recorded("cube", "symbolic[0-9.]*jsonl.gz", teams("current", slow=((9, 3), (15, 3))))
def test_cube_symbolic_episodes_replay_without_a_mismatch(case):
    check(case)


@pytest.mark.recorded("cube", "symbolic_scenes*.jsonl.gz", teams("current"))
def test_cube_symbolic_scenes_replay_without_a_mismatch(case):
    check(case)


@pytest.mark.recorded("cube", "symbolic_legacy*.jsonl.gz", teams("legacy", slow=((15, 3),)))
def test_cube_symbolic_episodes_of_the_first_revision_replay_without_a_mismatch(case):
    check(case)


def test_cube_default_data_hold_the_recorded_symbolic_episodes(default_data):
    sizes = {}
    for name in ("symbolic", "symbolic_scenes", "symbolic_legacy"):
        cases = lines_of(default_data / "cube" / f"{name}.jsonl.gz")
        sizes[name] = (len(cases), sum(len(case["steps"]) for case in cases))
    assert sizes == {"symbolic": (22, 2518), "symbolic_scenes": (18, 144), "symbolic_legacy": (5, 440)}
