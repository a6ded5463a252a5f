"""Finding and making environments by name; open to third parties.

A package offers an environment by an entry point of the group `jaxcoop.envs` that points at a module with a
module-level `SPEC`, or at run time by `register(SPEC)`.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from jaxcoop.core.env import Env
from jaxcoop.core.results import Results

_REGISTERED: dict[str, "EnvSpec"] = {}


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """What the registry knows of an environment."""

    name: str
    summary: str  # one line
    factory: Callable[..., Env]  # a dataclass: its fields are the options
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    preset_note: str = ""  # presets that are not listed, in words
    origin: str = ""  # the published rules it follows
    results: Results | None = None  # how outcomes are counted; None: every number of the outcome
    renderer: str = ""  # module with `frame(env, state) -> uint8[height, width, 3]`, imported when needed; "": none

    def options(self) -> dict[str, Any]:
        """Option names with their defaults."""
        return {f.name: f.default for f in dataclasses.fields(self.factory) if f.init}  # type: ignore[arg-type]


def register(spec: EnvSpec) -> None:
    """Add an environment; raises `ValueError` when the name is taken by another one."""
    known = _REGISTERED.get(spec.name)
    if known is not None and known != spec:
        raise ValueError(f"environment {spec.name!r} is already registered; choose another name")
    _REGISTERED[spec.name] = spec


def brief(value: object, limit: int = 80) -> str:
    """A value as an error names it; the middle of a long one is left out."""
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-limit // 4 :]}"


def unknown(kind: str, value: object, allowed: Any) -> ValueError:
    """The error for a name that does not exist: the value, the allowed ones and the nearest of them."""
    names = sorted(str(a) for a in allowed)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ValueError(f"unknown {kind} {brief(value)}; allowed: {', '.join(names)}{hint}")


def list_envs() -> dict[str, EnvSpec]:
    """All known environments by name, those of installed packages included."""
    for point in entry_points(group="jaxcoop.envs"):
        if point.name not in _REGISTERED:
            register(point.load().SPEC)
    return dict(sorted(_REGISTERED.items()))


def get_spec(name: str) -> EnvSpec:
    """The entry of one environment; raises `ValueError` naming the known ones."""
    specs = list_envs()
    if name not in specs:
        raise unknown("environment", name, specs)
    return specs[name]


def make(name: str, preset: str | None = None, **options: Any) -> Env:
    """Make an environment: the options of `preset`, overridden by `options`.

    Raises `ValueError` for an unknown name, preset or option (naming the allowed ones) and for option values
    out of range (raised by the environment).
    """
    spec = get_spec(name)
    if preset is not None and preset not in spec.presets:
        listed = (*spec.presets, *([spec.preset_note] if spec.preset_note else []))
        raise unknown(f"preset of {name}", preset, listed)
    chosen = {**(spec.presets[preset] if preset is not None else {}), **options}
    for option in chosen:
        if option not in spec.options():
            raise unknown(f"option of {name}", option, spec.options())
    return spec.factory(**chosen)
