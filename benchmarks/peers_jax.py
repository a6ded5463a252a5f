"""Other environments in JAX, played like our programs: continuously, many at once, with random actions.

Axes: B episodes.  Their packages are optional: `pip install 'jaxcoop[peers]'`.
"""

import contextlib
import io
import time
import warnings
from abc import ABC, abstractmethod
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


class Continuous(ABC):
    """Continuous play of `batch` episodes as one compiled program.

    An episode that ends starts again from its slot's first state, which is stored: automatic resets make a state for
    every slot at every step.  With `observe` observations are summed up, as our programs do, else none are computed.
    """

    def __init__(self, run_s: float, *, batch: int = BATCH, seed: int = 0, observe: bool = False) -> None:
        self.batch, self.observe = batch, observe
        key_start, self.key = jax.random.split(jax.random.key(seed))
        make = jax.jit(lambda keys: strong(jax.vmap(self.first_state)(keys)))
        self.first = jax.block_until_ready(make(jax.random.split(key_start, batch)))
        self.states = jax.tree.map(jnp.copy, self.first)
        self.seen = jnp.zeros((batch,), jnp.float32)
        program = jax.jit(self.play, donate_argnums=1)
        self.program = program.lower(self.first, self.states, self.seen, self.key, jnp.int32(1)).compile()
        self.steps = self.fitting_steps(run_s)

    @abstractmethod
    def first_state(self, key: Array) -> Any:
        """A state at the start of an episode."""

    @abstractmethod
    def move(self, key: Array, state: Any) -> tuple[Any, Any, Array]:
        """Observations, the next state and whether the episode has ended after random actions."""

    def play(self, first: Any, states: Any, seen: Array, key: Array, steps: Int[Array, ""]) -> tuple[Any, Array, Array]:
        """`steps` steps of every slot."""

        def one(_: Array, carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
            states, seen, key = carry
            key, key_step = jax.random.split(key)
            obs, nxt, done = jax.vmap(self.move)(jax.random.split(key_step, self.batch), states)
            if self.observe:
                looks = [x.astype(jnp.float32).reshape(self.batch, -1).sum(1) for x in jax.tree.leaves(obs)]
                seen = sum(looks, seen)
            return jax.vmap(keep)(done, first, strong(nxt)), seen, key

        return jax.lax.fori_loop(0, steps, one, (states, seen, key))

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
        played = self.program(self.first, self.states, self.seen, self.key, steps)
        self.states, self.seen, self.key = jax.block_until_ready(played)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Run(steps=self.batch * self.steps, wall_s=wall, cpu_s=cpu)


class Craftax(Continuous):
    """Craftax-Classic, the survival game whose rules MA-Crafter's single player follows; its world is 64x64."""

    def __init__(self, env: Any, run_s: float, **options: Any) -> None:
        del env
        try:
            from craftax.craftax_env import make_craftax_env_from_name  # pyright: ignore[reportMissingImports]

            self.game = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=False)
        except ImportError as error:
            raise missing("craftax", error) from error
        self.params = self.game.default_params
        super().__init__(run_s, **options)

    def first_state(self, key: Array) -> Any:
        """A new world."""
        return self.game.reset_env(key, self.params)[1]

    def move(self, key: Array, state: Any) -> tuple[Any, Any, Array]:
        """One step of the single player."""
        key_act, key_step = jax.random.split(key)
        action = jax.random.randint(key_act, (), 0, self.game.num_actions)
        obs, nxt, _, done, _ = self.game.step_env(key_step, state, action, params=self.params)
        return obs, nxt, done


JAXMARL_LAYOUTS = {
    "cramped_room": "cramped_room",
    "asymmetric_advantages": "asymm_advantages",
    "coordination_ring": "coord_ring",
    "forced_coordination": "forced_coord",
}
JAXMARL_LAYOUT = "counter_circuit"
"""The layout in place of those that the package does not have."""


class JaxMARL(Continuous):
    """JaxMARL's Overcooked: two cooks, onion soups, 400 steps; in the layout of `env` or in counter_circuit."""

    def __init__(self, env: Any, run_s: float, **options: Any) -> None:
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from jaxmarl.environments.overcooked import (  # pyright: ignore[reportMissingImports]
                    Overcooked,
                    overcooked_layouts,
                )

                name = JAXMARL_LAYOUTS.get(env.layout, JAXMARL_LAYOUT)
                self.game = Overcooked(layout=overcooked_layouts[name])
        except ImportError as error:
            raise missing("jaxmarl", error) from error
        super().__init__(run_s, **options)

    def first_state(self, key: Array) -> Any:
        """The layout's start, looking somewhere."""
        return self.game.reset(key)[1]

    def move(self, key: Array, state: Any) -> tuple[Any, Any, Array]:
        """One step of both cooks."""
        key_act, key_step = jax.random.split(key)
        actions = jax.random.randint(key_act, (2,), 0, 6)
        given = dict(zip(self.game.agents, actions, strict=True))
        obs, nxt, _, done, _ = self.game.step_env(key_step, state, given)
        return obs, nxt, done["__all__"]
