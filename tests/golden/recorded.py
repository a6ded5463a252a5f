"""Playing recorded actions through an environment."""

import jax
import jax.numpy as jnp


def play_recorded(env, actions):
    """(outcomes, done) of episodes with recorded actions [E, T, K], frozen at their ends; numpy."""

    def one(actions):
        state = env.reset(jax.random.key(0))
        draws = env.sample_draws(jax.random.key(0), state)

        def step(carry, action):
            state, done = carry
            nxt = env.step(state, action, draws)
            frozen = jax.tree.map(lambda a, b: jnp.where(done, b, a), nxt.state, state)
            return (frozen, done | nxt.terminated | nxt.truncated), None

        (state, done), _ = jax.lax.scan(step, (state, jnp.bool_(False)), actions)
        return env.outcome(state), done

    return jax.device_get(jax.jit(jax.vmap(one))(jnp.asarray(actions, jnp.int32)))
