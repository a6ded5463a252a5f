"""Cooperation benchmarks of multi-agent systems, simulated by the thousand in JAX.

`import jaxcoop` loads jax and the engine's core only; planners, tables and figures load when first used.
"""

from importlib.metadata import PackageNotFoundError, version

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

try:
    __version__ = version("jaxcoop")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"

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
