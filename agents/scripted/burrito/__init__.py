"""Scripted teams of the Burrito kitchen, by name."""

from jaxcoop.agents.registry import PolicySpec
from jaxcoop.agents.scripted.burrito.cook import Cook
from jaxcoop.agents.scripted.burrito.uniform import RandomSkills
from jaxcoop.agents.skilled import SkilledPolicy
from jaxcoop.core import Env, Policy
from jaxcoop.envs.burrito import Burrito


def _kitchen(env: Env) -> Burrito:
    if not isinstance(env, Burrito):
        raise ValueError(f"{env.name}: the cooks of the Burrito kitchen play burrito only")
    return env


def _cook(env: Env) -> Policy:
    return SkilledPolicy(env, Cook(_kitchen(env)))


def _random_skill(env: Env) -> Policy:
    return SkilledPolicy(env, RandomSkills(_kitchen(env)))


POLICIES: dict[str, PolicySpec] = {
    "cook": PolicySpec(
        "cook",
        "one plan for the whole team: serves the first order first and prepares the next ones; sees the whole state",
        _cook,
        default=True,
    ),
    "random_skill": PolicySpec(
        "random_skill", "uniform over the macro-skills that can be started; sees the whole state", _random_skill
    ),
}

__all__ = ["POLICIES", "Cook", "RandomSkills"]
