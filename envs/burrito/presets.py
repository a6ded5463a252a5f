"""9: named configurations: one for each layout that comes with the package, and those of learners."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jaxcoop.envs.burrito.layouts import names


def _presets() -> dict[str, Mapping[str, Any]]:
    found = {name: {"layout": name} for name in names()}
    # 2.1: learners of the reference train from random cells.
    found |= {f"{name}_train": {"layout": name, "start": "random", "shaping": 1.0} for name in names()}
    return {name: MappingProxyType(options) for name, options in found.items()}


PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(_presets())
"""Options of `Burrito` by preset name."""
