"""2: named configurations.

The published experiments have 3 or 6 agents, 200 steps and a world of 64 x 64; their levels 1 to 3 are mentioned
without numbers, so those here are our own (`config.TASKS`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PAPER_STEPS = 200


def _presets() -> dict[str, Mapping[str, Any]]:
    paper = {"max_steps": PAPER_STEPS, "requirements": "paper"}
    found = {f"paper_{agents}": {**paper, "agents": agents} for agents in (3, 6)}
    found |= {f"level{k}": {**paper, "agents": 3 if k < 3 else 4, "requirements": f"level{k}"} for k in (1, 2, 3)}
    found["first_diamond"] = {**paper, "agents": 3, "terminate_on_diamond": True}
    found["reference"] = {**paper, "agents": 3, "end_on_death": False}
    found["grassland"] = {**paper, "agents": 3, "mode": "grassland", "vitals": False}
    return {name: MappingProxyType(options) for name, options in found.items()}


PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(_presets())
"""Options of MACrafter by preset name; "reference" is the environment without its runner's stop at a death."""
