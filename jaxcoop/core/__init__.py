"""The engine's core: environments, policies, rollouts.  Knows no environment and no agent by name."""

from jaxcoop.core import bits
from jaxcoop.core.env import Env, NoDraws, Step
from jaxcoop.core.policy import Policy, Turn, put_rows, take_rows
from jaxcoop.core.registry import EnvSpec, list_envs, make, register
from jaxcoop.core.rollout import Episode, episode_key, play, rollout

__all__ = [
    "Env",
    "EnvSpec",
    "Episode",
    "NoDraws",
    "Policy",
    "Step",
    "Turn",
    "bits",
    "episode_key",
    "list_envs",
    "make",
    "play",
    "put_rows",
    "register",
    "rollout",
    "take_rows",
]
