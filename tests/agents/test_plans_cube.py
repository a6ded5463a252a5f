"""Whole plans for CUBE: what a team delivers with them, and the rules by which each agent finds its part."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.agents.scripted.cube.jobs import blocks_of, options
from jaxcoop.agents.scripted.plans.cube import COORDINATE, PUSH_BLOCK, CubePlans
from jaxcoop.agents.scripted.plans.cube_crews import assign, shifts, surplus, walks
from jaxcoop.agents.scripted.plans.cube_room import make_room, stuck_on
from jaxcoop.agents.scripted.plans.mistakes import Mistakes
from jaxcoop.cognition import process
from jaxcoop.cognition.config import Setup
from jaxcoop.cognition.latency import Latency
from jaxcoop.cognition.mail import GOT_REPAIR
from jaxcoop.cognition.play import play
from jaxcoop.cognition.records import Capacity
from jaxcoop.cognition.structures import structure_of
from jaxcoop.cognition.types import Call, PlanStatus, Verdict
from jaxcoop.envs.cube import Cube
from jaxcoop.envs.cube.minds import CubeMinds
from jaxcoop.envs.cube.presets import PRESETS
from jaxcoop.envs.cube.rules import Layout
from jaxcoop.envs.cube.skills import Entity, Op
from jaxcoop.envs.cube.types import Action

EPISODES = 16
NOBODY = jnp.full((), -1, jnp.int32)


@cache
def paper_run():
    """Final states of three agents who do not talk."""
    env = Cube(**{**PRESETS["cube_paper_3"], "max_steps": 200})
    setup = Setup(
        CubeMinds(env),
        structure_of("cube", "individual"),
        budget_ms=0,
        latency=Latency(),
        capacity=Capacity(plans=300),
    )
    final = play(setup, CubePlans(env), jax.random.key(0), jnp.arange(EPISODES))
    return jax.device_get((final.totals, final.records.plan_ops))


@pytest.mark.slow
def test_three_silent_agents_deliver_everything_in_most_episodes():
    totals, _ = paper_run()
    assert (totals.score == 18).mean() >= 0.6
    assert totals.score.mean() >= 15


@pytest.mark.slow
def test_most_plans_succeed():
    totals, _ = paper_run()
    closed = totals.closed.sum(0)
    assert closed[PlanStatus.SUCCESS] > 2 * closed[PlanStatus.FAILED]
    assert totals.committed.mean() < 30


@pytest.mark.slow
def test_ops_keep_to_what_language_models_may_write():
    _, ops = paper_run()
    kind, first, second, third = (ops[..., k] for k in range(4))
    assert set(np.unique(kind)) == {-1, Op.MOVE, Op.WAIT, Op.PUSH, Op.NAVIGATE}
    for amount, low, high in (
        (second[kind == Op.MOVE], 1, 5),
        (first[kind == Op.WAIT], 1, 10),
        (second[kind == Op.PUSH], 1, 10),
        (third[kind == Op.NAVIGATE], 1, 100),
    ):
        assert amount.min() >= low
        assert amount.max() <= high
    assert (first[kind == Op.NAVIGATE] == Entity.BLOCK).all()


def scene(*rows):
    """(side, blocks, rows, columns) of a board: digits cover blocks of their number, letters are agents."""
    side = len(rows)
    cells = {}
    for r, line in enumerate(rows):
        for c, mark in enumerate(line):
            cells.setdefault(mark, []).append((r, c))
    blocks = [cells[mark] for mark in sorted(m for m in cells if m.isdigit())]
    agents = [cells[mark][0] for mark in sorted(m for m in cells if m.isalpha())]
    layout = Layout(side, tuple(round(len(block) ** 0.5) for block in blocks))
    top = jnp.array([block[0] for block in blocks], jnp.int32)
    places = jnp.array(agents, jnp.int32)
    return side, blocks_of(layout, top[:, 0], top[:, 1]), places[:, 0], places[:, 1]


def best_of(side, blocks):
    zero = jnp.zeros_like(blocks.row)
    return options(side, blocks, zero > 0, jnp.int32(0), zero)


def crews_of(side, blocks, row, col, bound=None, first=NOBODY):
    bound = jnp.full_like(row, -1) if bound is None else jnp.array(bound, jnp.int32)
    return assign(side, blocks, best_of(side, blocks), walks(side, blocks, row, col), bound, first)


def test_walks_go_round_the_block_itself():
    side, blocks, row, col = scene(
        "......",
        "..a...",
        "b.11c.",
        "..11..",
        "......",
        "d.....",
    )
    # a: left and down; c: up, past the block, down again; d: right and up.
    assert walks(side, blocks, row, col).tolist() == [[2, 1, 5, 3]]


TWO_BLOCKS = (
    "........",
    "a.......",
    "b.11....",
    "..11....",
    "........",
    "c..2....",
    "........",
    "........",
)


def test_the_nearest_make_up_a_team():
    assert crews_of(*scene(*TWO_BLOCKS)).job.tolist() == [0, 0, 1]


def test_who_is_known_to_work_elsewhere_is_not_counted_on():
    crews = crews_of(*scene(*TWO_BLOCKS), bound=[1, -1, -1])
    assert crews.job.tolist() == [1, 0, 0]


def test_a_team_that_lacks_somebody_goes_first():
    crews = crews_of(*scene(*TWO_BLOCKS), bound=[-1, -1, 0])
    assert crews.job.tolist().count(0) == 2


def test_the_block_of_a_repair_goes_before_all_others():
    one = ("......", "a.1...", "......", "......", "..2...", "......")
    assert crews_of(*scene(*one)).job.tolist() == [0]
    assert crews_of(*scene(*one), first=jnp.int32(1)).job.tolist() == [1]


def test_too_few_go_ahead_to_a_block_that_needs_more():
    crews = crews_of(*scene(*TWO_BLOCKS), bound=[-1, 1, 1])
    assert crews.job.tolist() == [-1, 1, 1]
    assert crews.ahead.tolist() == [0, -1, -1]


def test_who_is_not_needed_is_the_farthest():
    side, blocks, row, col = scene("......", "abc1..", "......", "......", "......", "......")
    assert surplus(side, blocks, walks(side, blocks, row, col), jnp.zeros((3,), jnp.int32)).tolist() == [
        True,
        True,
        False,
    ]


def test_two_in_one_cell_part_and_the_upper_one_gives_way_to_those_above():
    side, blocks, row, col = scene("......", ".a11..", "..11..", "......", "......", "......")
    row, col = jnp.array([1, 1], jnp.int32), jnp.array([1, 1], jnp.int32)
    job, start = jnp.zeros((2,), jnp.int32), jnp.int32(0)
    there = walks(side, blocks, row, col)[0]
    assert shifts(blocks, job, there, row, start).tolist() == [0, 1]
    row = jnp.array([1, 0], jnp.int32)
    there = walks(side, blocks, row, col)[0]
    assert shifts(blocks, job, there, row, start).tolist() == [1, 0]


def test_a_block_that_bars_the_way_is_pushed_aside():
    # Neither can be delivered: the left one is blocked, at the face of the right one there is a block.
    side, blocks, row, col = scene(
        "........",
        "........",
        ".a......",
        "...12...",
        "........",
        "........",
        "........",
        "........",
    )
    best = best_of(side, blocks)
    # The right one is free to be delivered but for its face.
    is_stuck, block = stuck_on(side, blocks, best, jnp.full((1,), -1, jnp.int32))
    assert bool(is_stuck)
    room = make_room(side, 8, blocks, best, block, row, col, jnp.ones((1,), bool), jnp.zeros((1,), jnp.int32))
    assert room.block.tolist() == [int(block)]
    kinds = [int(op[0]) for op in room.draft.ops[0, : int(room.draft.length[0])]]
    assert kinds[-1] == Op.PUSH
    assert set(kinds[:-1]) == {Op.MOVE}
    assert int(best.direction[block]) in (Action.UP, Action.DOWN)


def test_nobody_makes_room_while_something_can_be_delivered():
    side, blocks, *_ = scene(*TWO_BLOCKS)
    is_stuck, _ = stuck_on(side, blocks, best_of(side, blocks), jnp.full((3,), -1, jnp.int32))
    assert not bool(is_stuck)


ALL_WRONG = Mistakes(too_few=1, out_of_step=1, follows=0)
ENV = Cube(side=8, agents=3, blocks="2:1,1:1")


@cache
def begun():
    """The start of an episode on the board of `TWO_BLOCKS`; everybody asks for a plan."""
    setup = Setup(CubeMinds(ENV), structure_of("cube", "individual"))
    state = jax.jit(partial(process.begin, setup))(jax.random.key(0), 0)
    _, blocks, row, col = scene(*TWO_BLOCKS)
    small = jnp.int16
    world = state.world.replace(
        row=row.astype(small),
        col=col.astype(small),
        block_row=blocks.row.astype(small),
        block_col=blocks.col.astype(small),
    )
    everybody = jnp.ones((3,), bool)
    minds = state.minds.replace(asks=everybody, kind=jnp.full((3,), int(Call.PLAN), jnp.int32))
    return state.replace(world=world, minds=minds)


@cache
def answering(mistakes, knows_plans=False):
    maker = CubePlans(ENV, mistakes, knows_plans)
    return jax.jit(lambda key, state, asks: maker.answer(key, (), state, asks)[0])


def ask(state, mistakes=None, *, knows_plans=False, key=0):
    answer = answering(mistakes or Mistakes(), knows_plans)
    return jax.device_get(answer(jax.random.key(key), state, state.minds.asks))


def ops_of(answer, agent):
    return [[int(x) for x in op] for op in answer.plan.ops[agent, : answer.plan.length[agent]]]


def test_members_wait_for_each_other_and_push_the_block_home():
    answer = ask(begun())
    assert answer.plan.spec[:, :2].tolist() == [[PUSH_BLOCK, 0], [PUSH_BLOCK, 0], [PUSH_BLOCK, 1]]
    # From (1, 0) it is two steps to the face, from (2, 0) one; then four columns to the goal.
    assert ops_of(answer, 0) == [[Op.NAVIGATE, Entity.BLOCK, 0, 10], [Op.PUSH, 0, 4, -1]]
    assert ops_of(answer, 1) == [[Op.NAVIGATE, Entity.BLOCK, 0, 8], [Op.WAIT, 1, -1, -1], [Op.PUSH, 0, 4, -1]]
    assert ops_of(answer, 2)[-1] == [Op.PUSH, 1, 4, -1]
    assert (answer.verdict == Verdict.OK).all()


def test_who_makes_mistakes_leaves_its_partner_for_another_block_and_acts_too_late():
    answer = ask(begun(), ALL_WRONG)
    assert answer.plan.spec[:, 1].tolist() == [1, 1, 0]
    navigates, waits, pushes = ops_of(answer, 0)
    assert navigates[:3] == [Op.NAVIGATE, Entity.BLOCK, 1]
    assert waits[0] == Op.WAIT  # though nobody else is awaited
    assert pushes == [Op.PUSH, 1, 4, -1]


def after_repair(state, advised=(True, False, False)):
    """A repair channel of everybody that recommends block 1 (a plan of one wait for some) has just closed."""
    channel = state.channel
    plan = channel.plan.replace(
        spec=channel.plan.spec.at[:].set(jnp.array([COORDINATE, 1, -1])),
        ops=channel.plan.ops.at[:, 0].set(jnp.array([Op.WAIT, 7, -1, -1])),
        length=jnp.ones((3,), jnp.int32),
    )
    return state.replace(
        channel=channel.replace(
            members=jnp.ones((3,), bool), target=jnp.int32(4 * 1 + 2), plan=plan, advised=jnp.array(advised)
        ),
        minds=state.minds.replace(got=jnp.full((3,), GOT_REPAIR, jnp.int32)),
    )


def test_who_is_advised_follows_and_the_others_share_out_the_rest():
    answer = ask(after_repair(begun()))
    assert ops_of(answer, 0) == [[Op.WAIT, 7, -1, -1]]
    assert answer.plan.spec[:, 1].tolist() == [1, 0, 0]


def test_who_does_not_follow_goes_for_the_target_by_itself_and_with_care():
    answer = ask(after_repair(begun()), ALL_WRONG)
    assert [op[0] for op in ops_of(answer, 0)] == [Op.NAVIGATE, Op.PUSH]
    assert answer.plan.spec[0].tolist() == [PUSH_BLOCK, 1, -1]
    assert ops_of(answer, 0)[0][:3] == [Op.NAVIGATE, Entity.BLOCK, 1]


def committed(state, blocks, kind=Call.DECIDE, asks=(True, True, True)):
    """Everybody carries out a plan for one of these blocks, and those who ask have got mail."""
    held, agents = state.current, jnp.arange(3)
    spec = jnp.stack([jnp.full((3,), PUSH_BLOCK), jnp.array(blocks), jnp.full((3,), -1)], 1).astype(jnp.int32)
    current = held.replace(
        number=agents + 1,
        status=jnp.full((3,), int(PlanStatus.EXECUTING), jnp.int32),
        plan=held.plan.replace(spec=spec),
    )
    minds = state.minds.replace(asks=jnp.array(asks), kind=jnp.full((3,), int(kind), jnp.int32))
    return state.replace(current=jax.tree.map(lambda n, o: n.astype(o.dtype), current, held), minds=minds)


def test_who_got_mail_goes_on_as_long_as_the_block_is_there():
    state = committed(begun(), [0, 0, 1])
    assert ask(state).verdict.tolist() == [Verdict.RESUME] * 3
    gone = state.replace(world=state.world.replace(block_row=state.world.block_row.at[1].set(-1)))
    assert ask(gone).verdict.tolist() == [Verdict.RESUME, Verdict.RESUME, Verdict.REPLAN]


def test_who_knows_that_nearer_ones_do_it_replans():
    state = committed(begun(), [0, 0, 0])
    assert ask(state).verdict.tolist() == [Verdict.RESUME] * 3
    answer = ask(state, knows_plans=True)
    assert answer.verdict.tolist() == [Verdict.RESUME, Verdict.RESUME, Verdict.REPLAN]
    assert answer.plan.spec[2].tolist() == [PUSH_BLOCK, 1, -1]


def test_plans_of_others_count_only_for_who_knows_them():
    state = committed(begun(), [1, -1, -1], Call.PLAN, asks=(False, True, True))
    assert ask(state).plan.spec[:, 1].tolist()[1:] == [0, 1]
    assert ask(state, knows_plans=True).plan.spec[:, 1].tolist()[1:] == [0, 0]


@pytest.mark.slow
def test_256_agents_get_plans():
    env = Cube(**PRESETS["cube_scale_256"])
    setup = Setup(CubeMinds(env), structure_of("cube", "individual"))
    state = jax.jit(partial(process.begin, setup))(jax.random.key(0), 0)
    asks = jnp.ones((256,), bool)
    state = state.replace(minds=state.minds.replace(asks=asks, kind=jnp.full((256,), int(Call.PLAN), jnp.int32)))
    answer = jax.jit(lambda s: CubePlans(env).answer(jax.random.key(0), (), s, asks)[0])(state)
    pushes = np.asarray(answer.plan.spec[:, 0]) == PUSH_BLOCK
    assert pushes.sum() >= 32
    assert (answer.plan.length > 0).all()
