"""8.2, capability and constraints: what agents gained, and on which tasks the constraints moved."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxcoop.cognition.metrics.messages import NOBODY
from jaxcoop.cognition.metrics.profiles import Profile, mapping, whole
from jaxcoop.cooperation.constraints import SCORED, Constraint

Record = Mapping[str, Any]

GAIN, LOSS = "gain", "loss"


def constraint_names(profile: Profile) -> tuple[str, ...]:
    """Constraints whose changes are counted; macrafter leaves participation out."""
    kinds = tuple(Constraint) if profile == "cube" else SCORED
    return tuple(kind.name.lower() for kind in kinds)


def capability(changes: Sequence[Record]) -> dict[str, Any]:
    """Gains and losses of items; three zeros without any.

    In the tables of agents and steps everything that is no gain is a loss; the total counts only what says so.
    """
    if not changes:
        return {"total_gains": 0, "total_losses": 0, "delta_Z": 0}
    kinds = [change.get("change_type") for change in changes]
    gains, losses = kinds.count(GAIN), kinds.count(LOSS)
    out: dict[str, Any] = {"total_gains": gains, "total_losses": losses, "delta_Z": gains - losses}
    for name, is_gain in (("gains", True), ("losses", False)):
        chosen = [change for change, kind in zip(changes, kinds) if (kind == GAIN) == is_gain]
        out[f"{name}_per_agent"] = dict(Counter(change.get("agent_id", NOBODY) for change in chosen))
        out[f"{name}_per_step"] = dict(Counter(change.get("env_step", 0) for change in chosen))
    return out | {"capability_changes": list(changes)}


def constraint_changes(states: Iterable[Record] | None, profile: Profile) -> dict[str, Any]:
    """Tasks on which each constraint ever improved and ever worsened; empty without records of task states."""
    states = list(states or ())
    if not states:
        return {}
    names = constraint_names(profile)
    tasks = {way: {name: set() for name in names} for way in ("improved", "worsened")}
    sums = dict.fromkeys(("increased", "decreased"), 0)
    for state in states:
        metrics = mapping(state.get("metrics"))
        changes = mapping(metrics.get("constraint_changes"))
        for way, sets in tasks.items():
            for name in names:
                sets[name].update(mapping(changes.get(name)).get(f"{way}_tasks") or ())
        moved = mapping(metrics.get("capability_changes"))
        for way in sums:
            sums[way] += whole(moved.get(way))
    return {
        **{name: {way: len(sets[name]) for way, sets in tasks.items()} for name in names},
        "C_plus": len(set().union(*tasks["improved"].values())),
        "C_minus": len(set().union(*tasks["worsened"].values())),
        **{f"capability_{way}": count for way, count in sums.items()},
    }
