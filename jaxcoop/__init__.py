"""Cooperation benchmarks of multi-agent systems, simulated by the thousand in JAX.

`import jaxcoop` loads nothing; the engine's core, and jax with it, loads with the first name that is used, planners,
tables and figures when they are needed.  So the command line can answer Ctrl-C before anything heavy is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxcoop.core import (
        Env,
        EnvSpec,
        Policy,
        Step,
        Turn,
        list_envs,
        make,
        register,
        rollout,
    )

    __version__: str

__all__ = [
    "Env",
    "EnvSpec",
    "Policy",
    "Step",
    "Turn",
    "__version__",
    "list_envs",
    "make",
    "register",
    "rollout",
]


def __getattr__(name: str) -> Any:
    """Public names, loaded when first used (PEP 562)."""
    if name == "__version__":
        value: Any = _version()
    elif name in __all__:
        value = getattr(import_module("jaxcoop.core"), name)
    elif name == "core":
        return import_module("jaxcoop.core")
    else:
        raise AttributeError(f"module 'jaxcoop' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("jaxcoop")
    except PackageNotFoundError:  # a source tree on the path, not installed
        return "0+unknown"
