"""1: named configurations: one for each layout that comes with the package."""

from types import MappingProxyType

PAPER = (
    "cramped_room",
    "asymmetric_advantages",
    "coordination_ring",
    "forced_coordination",
    "counter_circuit_o_1order",
)
"""The five layouts of the published experiments."""

PRESETS = MappingProxyType(
    {
        **{name: MappingProxyType({"layout": name}) for name in (*PAPER, "counter_circuit")},
        **{f"{name}_old": MappingProxyType({"layout": name, "old_dynamics": True}) for name in PAPER},
    }
)
"""Options of `Overcooked` by preset name; `_old`: with the rules of the published experiments."""
