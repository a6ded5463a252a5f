"""Finding and making policies by name; open to third parties.

Random policies play every environment.  The scripted policies of environment `<name>` are the table
`POLICIES` of the module `jaxcoop.agents.scripted.<name>`, where there is one.  Others are added by
`register_policy`.  Of two policies with one name, the environment's own plays.
"""

import dataclasses
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from jaxcoop.agents.random import RandomPolicy
from jaxcoop.core import Env, Policy
from jaxcoop.core.registry import unknown

SCRIPTED = "jaxcoop.agents.scripted"


@dataclasses.dataclass(frozen=True)
class PolicySpec:
    """What the registry knows of a policy."""

    name: str
    summary: str  # one line
    factory: Callable[[Env], Policy]
    default: bool = False  # plays where nobody is named


RANDOM = (
    PolicySpec("random_any", "uniform over all actions", lambda env: RandomPolicy("any")),
    PolicySpec("random_legal", "uniform over the legal actions", lambda env: RandomPolicy("legal")),
)

_REGISTERED: dict[str | None, dict[str, PolicySpec]] = {}


def scripted_policies(env_name: str) -> dict[str, PolicySpec]:
    """The package's own scripted policies of one environment, by name; empty when there are none."""
    module = f"{SCRIPTED}.{env_name}"
    if not env_name.isidentifier() or find_spec(module) is None:
        return {}
    return import_module(module).POLICIES


def known_policies(env_name: str) -> dict[str, PolicySpec]:
    """Every policy that can play the environment, by name: random, scripted, registered."""
    return {
        **{spec.name: spec for spec in RANDOM},
        **_REGISTERED.get(None, {}),
        **scripted_policies(env_name),
        **_REGISTERED.get(env_name, {}),
    }


def register_policy(spec: PolicySpec, env_name: str | None = None) -> None:
    """Add a policy of one environment, or with `env_name` None of every environment.

    Raises `ValueError` when the name is taken by another policy.
    """
    taken = {**known_policies(env_name or ""), **_REGISTERED.get(env_name, {})}.get(spec.name)
    if taken is not None and taken != spec:
        raise ValueError(f"policy {spec.name!r} is already registered; choose another name")
    _REGISTERED.setdefault(env_name, {})[spec.name] = spec


def list_policies(env_name: str) -> dict[str, str]:
    """Names of the policies that can play the environment, each with a line that describes it."""
    return {name: spec.summary for name, spec in sorted(known_policies(env_name).items())}


def default_policy(env_name: str) -> str:
    """Name of the policy that plays an environment when nobody is named: the one marked so, else `random_any`."""
    return next((spec.name for spec in known_policies(env_name).values() if spec.default), RANDOM[0].name)


def make_policy(name: str, env: Env) -> Policy:
    """The named policy for this environment.

    Raises `ValueError` for an unknown name, with the allowed ones and the nearest of them.
    """
    specs = known_policies(env.name)
    if name not in specs:
        raise unknown(f"policy of {env.name}", name, specs)
    return specs[name].factory(env)
