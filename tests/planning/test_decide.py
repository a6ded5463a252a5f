"""Answers asked for from inside a compiled program: `make_decide`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxcoop.planning import FunctionPlanner, Status, make_decide


def count_down(decide, steps):
    """A rollout of `steps` for one agent that needs an answer whenever its counter is 0."""

    def step(left, _):
        need = left == 0
        answer = decide(need, {"left": left})
        return jnp.where(need, answer[0], left - 1), need

    return lambda left: jax.lax.scan(step, left, None, length=steps)


def planner_of(seen, value=2):
    def answer(rows):
        seen.append(len(rows["left"]))
        return np.tile(np.array([value, 0], np.int32), (len(rows["left"]), 1))

    return FunctionPlanner(answer, 2)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_decide_makes_one_host_call_for_each_step_with_any_need(depth):
    seen = []
    decide, caller = make_decide(planner_of(seen), 2)
    rollout = count_down(decide, 12)
    for _ in range(depth):
        rollout = jax.vmap(rollout)
    shape = (2, 3)[:depth] if depth else ()
    left = jnp.arange(np.prod(shape, dtype=int), dtype=jnp.int32).reshape(shape) % 2 + 3
    _, need = jax.jit(rollout)(left)
    need = np.moveaxis(np.asarray(need), -1, 0).reshape(12, -1)
    caller.check()
    assert caller.calls == need.any(1).sum() < 12
    assert seen == [int(row.sum()) for row in need if row.any()]


def test_decide_calls_nobody_when_nobody_needs_and_answers_minus_one():
    seen = []
    decide, caller = make_decide(planner_of(seen), 2)
    out = jax.jit(jax.vmap(decide))(jnp.zeros(5, bool), {"left": jnp.arange(5)})
    assert (np.asarray(out) == -1).all()
    assert (caller.calls, seen) == (0, [])


def test_decide_is_traced_once_and_its_failure_comes_out_after_the_program():
    traced = []

    def fail(rows):
        raise OSError("no such model")

    decide, caller = make_decide(FunctionPlanner(fail, 2), 2)

    @jax.jit
    def program(need):
        traced.append(1)
        return jax.vmap(decide)(need, {"left": jnp.arange(4)})

    for _ in range(3):
        out = np.asarray(program(jnp.array([True, False, True, False])))
    assert len(traced) == 1
    assert out[:, 1].tolist() == [Status.FALLBACK, -1, Status.FALLBACK, -1]
    with pytest.raises(OSError, match="no such model"):
        caller.check()


def test_no_jax_runs_inside_a_host_function(monkeypatch):
    decide, caller = make_decide(planner_of([]), 2)
    program = jax.jit(jax.vmap(decide))
    need, left = jnp.ones(4, bool), jnp.arange(4)
    np.asarray(program(need, {"left": left}))

    def refuse(*_, **__):
        raise AssertionError("jax was called on the host side of a callback")

    # Dispatch itself is C++ once compiled, so whatever trips over these was called by the host function.
    for name in ("asarray", "array"):
        monkeypatch.setattr(jnp, name, refuse)
    monkeypatch.setattr(jax, "device_put", refuse)
    np.asarray(program(need, {"left": left}))
    caller.check()
    assert caller.calls == 2
