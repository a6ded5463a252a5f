"""13: the benchmark's conditions, and the readings of the rules of section 14 under names.

A condition names everything that distinguishes one cell of the published tables from another but the model.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

PAPER_HORIZON = 30  # timesteps or turns in every published run


@dataclasses.dataclass(frozen=True)
class Condition:
    """One cell of the condition matrix."""

    code: str
    layer: int  # 1: across models, 2: group sizes, 3: ablations
    episodes: int  # as configured
    env: Mapping[str, Any]  # options of Dining
    dialogue: Mapping[str, Any]  # options of Dialogue
    prompt: str = "default"
    temperature: float | None = None  # None: the caller's
    note: str = ""

    @property
    def labels(self) -> dict[str, Any]:
        """What tables and figures sort by."""
        talks = bool(self.dialogue.get("communication", False))
        return {
            "condition": self.code,
            "mode": self.env.get("mode", "simultaneous"),
            "philosophers": self.env.get("philosophers", 5),
            "communication": talks,
            "communication_rounds": self.dialogue.get("communication_rounds", 1) if talks else 0,
            "memory_window": self.dialogue.get("memory_window", 0),
            "prompt": self.prompt,
        }


def _condition(
    code: str,
    layer: int,
    episodes: int,
    *,
    mode: str = "simultaneous",
    philosophers: int = 5,
    max_timesteps: int = PAPER_HORIZON,
    communication_rounds: int = 0,
    memory_window: int = 0,
    prompt: str = "default",
    temperature: float | None = None,
    note: str = "",
    **env: Any,
) -> Condition:
    talk: dict[str, Any] = {"memory_window": memory_window}
    if communication_rounds:
        talk |= {"communication": True, "communication_rounds": communication_rounds}
    options = {"mode": mode, "philosophers": philosophers, "max_timesteps": max_timesteps, **env}
    return Condition(
        code, layer, episodes, MappingProxyType(options), MappingProxyType(talk), prompt, temperature, note
    )


def _conditions() -> dict[str, Condition]:
    one, two, three = (1, 30), (2, 20), (3, 20)  # layer and episodes
    sequential = {"mode": "sequential"}
    cells = [
        _condition("sim_n5_nocomm", *one),
        _condition("sim_n5_comm", *one, communication_rounds=1),
        _condition("sim_n10_nocomm", *one, philosophers=10),
        _condition("sim_n10_comm", *one, philosophers=10, communication_rounds=1),
        _condition("seq_n5_nocomm", *one, **sequential),
        _condition("seq_n10_nocomm", *one, philosophers=10, **sequential),
        *(_condition(f"sim_n{n}_nocomm", *two, philosophers=n) for n in (7, 15, 20)),
        _condition("seq_n15_nocomm", *two, philosophers=15, **sequential),
        *(
            _condition(f"prompt_{name}", *three, prompt=name)
            for name in ("minimal", "theory_of_mind", "symmetry_breaking", "resource_ordering")
        ),
        *(_condition(f"temperature_{t}", *three, temperature=t) for t in (0.3, 1.0, 1.5)),
        _condition("memory_3", *three, memory_window=3),
        _condition("memory_5", *three, memory_window=5),
        _condition("memory_3_with_comm", *three, memory_window=3, communication_rounds=1),
        _condition("comm_rounds_3", *three, communication_rounds=3),
        _condition("comm_rounds_5", *three, communication_rounds=5),
        _condition("non_terminal_deadlock", *three, max_timesteps=100, deadlock_terminal=False),
        _condition(
            "randomized_backoff",
            *three,
            backoff_threshold=2,
            backoff_probability=0.5,
            note="the package never applies its back-off (7.4); add backoff=True to apply it",
        ),
        _condition("long_episodes", *three, max_timesteps=100),
        # run with the 0.1.0 release only
        _condition("seq_n5_comm", 1, 20, communication_rounds=1, **sequential),
        *(_condition(f"sim_n3_{c}", 1, 20, philosophers=3, communication_rounds=k) for c, k in _TALK),
        *(_condition(f"seq_n3_{c}", 1, 20, philosophers=3, communication_rounds=k, **sequential) for c, k in _TALK),
    ]
    return {cell.code: cell for cell in cells}


_TALK = (("nocomm", 0), ("comm", 1))

CONDITIONS: Mapping[str, Condition] = MappingProxyType(_conditions())
"""The condition matrix by code; codes are `{sim|seq}_n{N}_{comm|nocomm}` or the ablation's name."""

READINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "package": MappingProxyType({}),
        "release_0.1": MappingProxyType({"releases": "index_order"}),
        "paper": MappingProxyType(
            {"meals": "round_end", "clock": "rounds", "max_timesteps": PAPER_HORIZON, "target_meals": 1}
        ),
    }
)
"""14: options of Dining that follow the package (default), its release 0.1, and the paper's text."""

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {code: cell.env for code, cell in CONDITIONS.items()} | {f"{name}_rules": r for name, r in READINGS.items()}
)
"""Options of Dining by preset name."""
