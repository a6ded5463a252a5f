"""Logs of made-up episodes, consistent in what the measures and figures read."""

import dataclasses

import numpy as np

from jaxcoop.cognition.logs import Check, EpisodeLog, none_of
from jaxcoop.cognition.metrics import QUANTITIES
from jaxcoop.cognition.types import Call, Ended, Mail, PlanStatus, Stage, Verdict
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube.skills import Op as CubeOp
from jaxcoop.envs.cube.vocabulary import CubeVocabulary
from jaxcoop.envs.macrafter import MACrafter
from jaxcoop.envs.macrafter.skills import Op
from jaxcoop.envs.macrafter.types import Item, Material
from jaxcoop.envs.macrafter.vocabulary import MACrafterVocabulary

CUBE_TASKS = ("push_block", "coordinate", "wait")
CRAFTER_TASKS = (
    "collect_wood",
    "collect_stone",
    "collect_coal",
    "collect_iron",
    "collect_diamond",
    "make_wood_pickaxe",
)
CUBE = CubeVocabulary(Cube(side=12, blocks="1:1,2:1,3:1"), CUBE_TASKS)
CRAFTER = MACrafterVocabulary(MACrafter(width=16, height=8), CRAFTER_TASKS)
LENGTH, WIDTH = 3, 5  # ops of a plan, words of an op
MATERIALS = (Material.TREE, Material.STONE, Material.COAL, Material.IRON, Material.DIAMOND)
ITEMS = (Item.WOOD, Item.STONE, Item.COAL, Item.IRON, Item.DIAMOND)


def ints(values):
    return np.asarray(values, np.int32)


def made(vocabulary, agents=3, steps=30, seed=0, repairs=True):
    """A log in which agents think, execute plans towards changing targets, interrupt each other and repair."""
    rng = np.random.default_rng(seed)
    spans = [_spans(rng, steps) for _ in range(agents)]
    seq = iter(range(10**6))
    line, process = _timeline(rng, spans, agents, steps, seq), _process(rng, vocabulary, spans, agents, steps)
    empty = {name: none_of(name, agents=agents, ops=LENGTH, width=WIDTH) for name in ("changes", "holdings")}
    log = EpisodeLog(
        agents=agents,
        end_ms=int(line.time_ms.max()),
        timed_out=False,
        committed=ints([len(own) + 1 for own in spans]),
        timeline=line,
        messages=_messages(rng, agents, steps, seq, repairs),
        plans=_plans(vocabulary, process, spans, agents, seq),
        calls=_calls(rng, agents, steps, seq),
        repairs=none_of("repairs", agents=agents),
        failures=none_of("failures", agents=agents),
        process=process,
        **empty,
    )
    return _with_repairs(log, rng) if repairs else log


def _spans(rng, steps):
    """Steps at which an agent's plans begin and end."""
    cuts = np.unique(np.concatenate([[0, steps], rng.integers(1, steps, steps // 6)]))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist()))


def _timeline(rng, spans, agents, steps, seq):
    rows = []
    for agent in range(agents):
        now = 0
        for start, end in spans[agent]:
            first = Stage.REASONING if start == 0 or rng.random() < 0.6 else Stage.INTERRUPTED
            for stage in (first, Stage.WAITING, Stage.EXECUTING):
                rows.append((now, start, agent, stage))
                now += int(rng.integers(200, 1500))
            now += 100 * (end - start)
    rows.sort()
    time, step, agent, stage = np.array(rows).T
    kind = type(none_of("timeline", agents=agents))
    return kind(ints([next(seq) for _ in rows]), ints(time), ints(step), ints(agent), ints(stage))


def _process(rng, vocabulary, spans, agents, steps):
    is_cube = vocabulary.profile == "cube"
    shape = (steps, agents)
    data = {name: np.full(shape, -1, np.int32) for name in ("target", "target_kind", "task", "event")}
    data |= {name: np.zeros(shape, np.int32) for name in ("plan", "index", "index_after", "required", "attempting")}
    data["status"] = np.full(shape, PlanStatus.EXECUTING, np.int32)
    data["op"] = np.full((*shape, WIDTH), -1, np.int32)
    data["scores"] = np.zeros((*shape, 3), np.float32)
    data["success"] = np.zeros(shape, bool)
    for agent in range(agents):
        for number, (start, end) in enumerate(spans[agent], start=1):
            choice = int(rng.integers(-1, 3 if is_cube else len(MATERIALS)))
            data["plan"][start:end, agent] = number
            data["op"][start:end, agent] = _op(is_cube, choice, False)
            half = (start + end) // 2
            data["op"][half:end, agent] = _op(is_cube, choice, True)
            data["index"][half:end, agent] = data["index_after"][half:end, agent] = 1
            data["index_after"][end - 1, agent] = 2
            data["status"][end - 1, agent] = PlanStatus.SUCCESS
            if choice >= 0:
                data["target"][start:end, agent] = 4 * choice + 2 if is_cube else 10 + choice
                data["target_kind"][start:end, agent] = choice + 1 if is_cube else MATERIALS[choice]
    score = 0.0
    scores = np.zeros(steps, np.float32)
    for t in range(steps):
        acts = (data["op"][t, :, 0] == (CubeOp.PUSH if is_cube else Op.COLLECT)) & (data["target"][t] >= 0)
        score += _attempt(rng, vocabulary, data, t, np.where(acts, data["target"][t], -1))
        scores[t] = score
    return type(none_of("process", agents=agents))(**data, score=scores)


def _op(is_cube, choice, acts):
    if is_cube:
        return [CubeOp.PUSH, max(choice, 0), 2, -1, -1] if acts else [CubeOp.MOVE, 4, 3, -1, -1]
    if choice < 0:
        return [Op.CRAFT, 11, -1, -1, -1]
    return (
        [Op.COLLECT, ITEMS[choice], 11 + choice, 3, -1] if acts else [Op.NAVIGATE, MATERIALS[choice], 11 + choice, 9, 1]
    )


def _attempt(rng, vocabulary, data, t, named):
    """The events of a step; what they are worth."""
    gained = 0.0
    for slot in np.unique(named[named >= 0]).tolist():
        members = np.flatnonzero(named == slot)
        row = members[0]
        task = vocabulary.task(slot, int(data["target_kind"][t, row]))
        acting = len(members)
        near = min(acting, int(rng.integers(0, acting + 1)))
        wins = near >= task.required and rng.random() < 0.7
        counts = [near, acting, task.required if task.tool is None else near]
        if vocabulary.profile == "cube":
            counts = [min(count, task.required) for count in counts]
        elif wins:
            counts = [task.required] * 3
        data["task"][t, row], data["required"][t, row], data["attempting"][t, row] = slot, task.required, acting
        data["success"][t, row] = wins
        data["scores"][t, row] = np.float32(counts) / np.float32(task.required)
        data["event"][t, members] = row
        gained += float(task.required) * wins
    return gained


def _plans(vocabulary, process, spans, agents, seq):
    rows = [
        (end, agent, number, start) for agent in range(agents) for number, (start, end) in enumerate(spans[agent], 1)
    ]
    rows.sort()
    end, agent, number, start = np.array(rows).T
    kinds = process.target_kind[start, agent]
    is_cube = vocabulary.profile == "cube"
    spec = np.stack(
        [np.where(kinds < 0, 2, 0), np.where(kinds < 0, -1, kinds - 1 if is_cube else kinds), np.full(len(rows), 11)], 1
    )
    last = end == end.max()
    status = np.where(last, PlanStatus.INTERRUPTED, np.arange(len(rows)) % 3 + PlanStatus.SUCCESS)
    reasons = {
        PlanStatus.SUCCESS: Ended.NONE,
        PlanStatus.FAILED: Ended.SKILL + 1,
        PlanStatus.INTERRUPTED: Ended.REPLANNED,
    }
    reason = np.where(last, Ended.EPISODE_ENDED, [reasons[code] for code in status.tolist()])
    ops = np.full((len(rows), LENGTH, WIDTH), -1, np.int32)
    ops[:, :2] = np.stack([process.op[start, agent], process.op[end - 1, agent]], 1)
    op_steps = np.full((len(rows), LENGTH, 2), -1, np.int32)
    half = (start + end) // 2
    op_steps[:, 0], op_steps[:, 1, 0] = np.stack([start, half], 1), half
    return type(none_of("plans", agents=agents))(
        seq=ints([next(seq) for _ in rows]), agent=ints(agent), plan_id=ints(number), created_step=ints(start),
        start_step=ints(start), end_step=ints(end), status=ints(status), reason=ints(reason),
        done=ints(np.where(status == PlanStatus.SUCCESS, 2, 1)), length=ints(np.full(len(rows), 2)),
        created_ms=ints(start * 400), end_ms=ints(end * 400), spec=ints(spec), ops=ops, op_steps=op_steps,
    )  # fmt: skip


def _messages(rng, agents, steps, seq, repairs):
    count = steps // 3
    step = np.sort(rng.integers(0, steps, count))
    sender = rng.integers(0, agents, count)
    kinds = np.array([Mail.LEADER_BROADCAST, Mail.FOLLOWER_RESPONSE, Mail.BROADCAST_CHAIN, Mail.OTHER])
    mail = kinds[rng.integers(0, 4, count)]
    call = rng.integers(-1, 3, count)
    if repairs:
        sender[-2:], mail[-2:], call[-2:] = agents, Mail.REPAIR_REQUEST, -1
    recipients = rng.random((count, agents)) < 0.6
    return type(none_of("messages", agents=agents))(
        seq=ints([next(seq) for _ in range(count)]), time_ms=ints(step * 400 + 50), env_step=ints(step),
        sender=ints(sender), mail=ints(mail), call=ints(call), plan=ints(np.ones(count)), recipients=recipients,
    )  # fmt: skip


def _calls(rng, agents, steps, seq):
    count = steps
    step = np.sort(rng.integers(0, steps, count))
    # The first three wrote texts, so that messages can quote them.
    kind = np.where(np.arange(count) < 3, Call.TEXT, rng.integers(0, len(Call), count))
    return type(none_of("calls", agents=agents))(
        seq=ints([next(seq) for _ in range(count)]), agent=ints(rng.integers(0, agents, count)),
        kind=ints(kind), start_ms=ints(step * 400), end_ms=ints(step * 400 + 300),
        verdict=ints(np.where(rng.random(count) < 0.1, Verdict.ERROR, Verdict.OK)), env_step=ints(step),
        turn=ints(np.arange(count)),
    )  # fmt: skip


def _with_repairs(log, rng):
    """Five checks; the last two open channels, whose messages are the last two of the log."""
    step = ints([2, 5, 9, *log.messages.env_step[-2:]])
    check = ints([Check.PASSED, Check.REPAIRED, Check.COOLING, Check.REPAIRED, Check.REPAIRED])
    check[1] = Check.PASSED
    members = np.zeros((5, log.agents), bool)
    members[3:] = log.messages.recipients[-2:]
    repairs = type(log.repairs)(
        seq=log.messages.seq[-1:] - ints([60, 50, 40, 30, 1]), time_ms=ints(step * 400), env_step=step, check=check,
        is_new=np.array([True, True, False, True, True]), members=members,
    )  # fmt: skip
    slot = log.process.target[log.process.target >= 0][0]
    kind = log.process.target_kind[log.process.target >= 0][0]
    failures = type(log.failures)(
        repair=ints([2, 3, 3, 4]), task=ints([slot] * 4), kind=ints([kind] * 4), constraint=ints([0, 0, 1, 2]),
        score=np.float32([0.5, 0.5, 0.5, 0.0]),
    )  # fmt: skip
    return dataclasses.replace(log, repairs=repairs, failures=failures)


def run(score, *, agents=3, model="big", structure="individual", repair=False, seed=42, stamp="1"):
    """A row of the results table."""
    row = dict.fromkeys(QUANTITIES, 0.0) | {"score": score, "steps": 10, "score_per_step": score / 10}
    row |= {"agents": agents, "model": model, "structure": structure, "repair": repair, "seed": seed, "stamp": stamp}
    return row
