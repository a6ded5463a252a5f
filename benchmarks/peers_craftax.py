"""Craftax-Classic, the JAX survival game whose rules MA-Crafter's single player follows, played like our programs.

Axes: B episodes.  Its package is optional: `pip install 'jaxcoop[peers]'`.
"""

import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxcoop.benchmarks.harness import Run
from jaxcoop.core.rollout import keep

BATCH = 1024


def missing(package: str, error: ImportError) -> ImportError:
    """The one line that says which reference package is missing, and the fix."""
    return ImportError(f"the reference package {package} cannot be imported ({error}); pip install 'jaxcoop[peers]'")


def strong(tree: Any) -> Any:
    """The same values without weak types, so that a loop carries what it started with."""
    return jax.tree.map(
        lambda x: x if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else jax.lax.convert_element_type(x, x.dtype), tree
    )


class Craftax:
    """Continuous play of `batch` single-agent episodes with uniform random actions as one compiled program.

    The world has its own size, 64x64, whatever that of `env`.  An episode that ends starts again from its slot's
    first state, which is stored: the package's own automatic reset makes a world for every slot at every step.
    Nobody looks at observations, so none are computed; neither are they in our programs.
    """

    def __init__(self, env: Any, run_s: float, *, batch: int = BATCH, seed: int = 0) -> None:
        del env
        try:
            from craftax.craftax_env import make_craftax_env_from_name  # pyright: ignore[reportMissingImports]

            self.game = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=False)
        except ImportError as error:
            raise missing("craftax", error) from error
        self.batch, self.params = batch, self.game.default_params
        key_start, self.key = jax.random.split(jax.random.key(seed))
        make = jax.jit(lambda keys: strong(jax.vmap(lambda k: self.game.reset_env(k, self.params)[1])(keys)))
        self.first = jax.block_until_ready(make(jax.random.split(key_start, batch)))
        self.states = jax.tree.map(jnp.copy, self.first)
        self.program = (
            jax.jit(self.play, donate_argnums=1).lower(self.first, self.states, self.key, jnp.int32(1)).compile()
        )
        self.steps = self.fitting_steps(run_s)

    def play(self, first: Any, states: Any, key: Array, steps: Int[Array, ""]) -> tuple[Any, Array]:
        """`steps` steps of every slot."""

        def one(_: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            states, key = carry
            key, key_act, key_step = jax.random.split(key, 3)
            actions = jax.random.randint(key_act, (self.batch,), 0, self.game.num_actions)
            move = jax.vmap(partial(self.game.step_env, params=self.params))
            _, nxt, _, done, _ = move(jax.random.split(key_step, self.batch), states, actions)
            return jax.vmap(keep)(done, first, strong(nxt)), key

        return jax.lax.fori_loop(0, steps, one, (states, key))

    def fitting_steps(self, run_s: float) -> int:
        """How many steps last about `run_s` seconds."""
        self.steps = 1
        self.run()  # the first run also pays for memory
        while (took := self.run().wall_s) < run_s / 10:
            self.steps *= 4
        return max(1, round(self.steps * run_s / took))

    def run(self) -> Run:
        """Play on for the fixed number of steps."""
        steps = jnp.int32(self.steps)
        wall, cpu = time.perf_counter(), time.process_time()
        self.states, self.key = jax.block_until_ready(self.program(self.first, self.states, self.key, steps))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Run(steps=self.batch * self.steps, wall_s=wall, cpu_s=cpu)
