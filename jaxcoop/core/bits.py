"""Sets over N agents as bits, 32 agents a word: the rules of large teams in a few operations for each word.

Axes: N agents, W = ceil(N / 32) words.  Agent i is bit i mod 32 of word i div 32; bits from N on are always 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

WORD = 32

MASK_LIMIT = 2
"""Up to this many words a single bit is written by mask (vectorises over a batch); above, by index (O(1))."""


def num_words(num_agents: int) -> int:
    """W."""
    return -(-num_agents // WORD)


def empty(num_agents: int) -> UInt32[Array, " W"]:
    """Nobody."""
    return jnp.zeros((num_words(num_agents),), jnp.uint32)


def constant(num_agents: int, members: np.ndarray | list[int] | range) -> np.ndarray:
    """The given agents, as a constant uint32[W]."""
    words = np.zeros(num_words(num_agents), np.uint32)
    for i in members:
        words[i // WORD] |= np.uint32(1 << (i % WORD))
    return words


def everybody(num_agents: int) -> np.ndarray:
    """All N agents, as a constant uint32[W]."""
    words = np.full(num_words(num_agents), 0xFFFFFFFF, np.uint32)
    words[-1] >>= np.uint32(WORD * len(words) - num_agents)
    return words


def pack(members: Bool[Array, " N"]) -> UInt32[Array, " W"]:
    """The set of the agents that are marked."""
    n = members.shape[0]
    bit = jnp.uint32(1) << (jnp.arange(n, dtype=jnp.uint32) % WORD)
    values = jnp.where(members, bit, jnp.uint32(0))
    if n <= WORD:
        return values.sum(dtype=jnp.uint32)[None]
    # As a sum over padded lanes [W, 32] this would take several times as long on CPU.
    return jax.lax.reduce_window(values, jnp.uint32(0), jax.lax.add, (WORD,), (WORD,), ((0, -n % WORD),))


def unpack(words: UInt32[Array, " W"], num_agents: int) -> Bool[Array, " N"]:
    """A mark for each agent; the inverse of `pack`."""
    lanes = (words[:, None] >> jnp.arange(WORD, dtype=jnp.uint32)) & jnp.uint32(1)
    return lanes.reshape(-1)[:num_agents] != 0


def get(words: UInt32[Array, " W"], agents: Int[Array, "..."]) -> Bool[Array, "..."]:
    """Whether each of the given agents is in the set."""
    word = words[0] if words.shape[0] == 1 else words[agents // WORD]
    return (word >> (agents % WORD).astype(jnp.uint32)) & jnp.uint32(1) != 0


def put(words: UInt32[Array, " W"], agent: Int[Array, ""], value: Bool[Array, ""]) -> UInt32[Array, " W"]:
    """The set with one agent put in or taken out."""
    bit = jnp.uint32(1) << (agent % WORD).astype(jnp.uint32)
    if words.shape[0] > MASK_LIMIT:
        word = words[agent // WORD]
        return words.at[agent // WORD].set(jnp.where(value, word | bit, word & ~bit))
    bits = jnp.where(jnp.arange(words.shape[0]) == agent // WORD, bit, jnp.uint32(0))
    return jnp.where(value, words | bits, words & ~bits)


def from_previous(words: UInt32[Array, " W"], num_agents: int) -> UInt32[Array, " W"]:
    """The set one seat on: i is in it if i-1 mod N was in `words`."""
    top = (num_agents - 1) % WORD
    wrapped = (words[-1:] >> top) & jnp.uint32(1)
    carry = jnp.concatenate([wrapped, words[:-1] >> (WORD - 1)])
    moved = (words << 1) | carry
    return moved & everybody(num_agents) if num_agents % WORD else moved


def from_next(words: UInt32[Array, " W"], num_agents: int) -> UInt32[Array, " W"]:
    """The set one seat back: i is in it if i+1 mod N was in `words`."""
    top = (num_agents - 1) % WORD
    wrapped = (words[:1] & jnp.uint32(1)) << top
    carry = jnp.concatenate([(words[1:] & jnp.uint32(1)) << (WORD - 1), wrapped])
    return (words >> 1) | carry


def count(words: UInt32[Array, " W"]) -> Int[Array, ""]:
    """How many agents are in the set."""
    return jax.lax.population_count(words).astype(jnp.int32).sum(dtype=jnp.int32)
