"""Specifications of plans as text, and whether recorded outcomes achieve them; host side, plain Python.

Section numbers are those of docs/coop2.md.  An outcome is what the logs say of an op: a dictionary whose `effects` may
hold `inventory_delta`, `achievement_delta`, `collections` (each with `resource_type`, `received`) and `place_results`
(each with `object_type`, `success`), or None.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(|$)")
_GIVES = {"tree": "wood", "cow": "food"}
_COUNTERS = {"food": "eat_cow"}


def task_name(specification: str) -> str:
    """2: what a plan is for, in small letters; empty where the text does not begin with a name and `(` or its end."""
    found = _NAME.match(specification)
    return found.group(1).lower() if found else ""


def goal_missed(specification: str, outcomes: Iterable[Mapping[str, Any] | None]) -> bool:
    """2: whether a plan whose ops all succeeded has failed: it names a task that none of the outcomes achieved."""
    name = task_name(specification)
    verb, _, what = name.partition("_")
    rules = {"collect": _collects, "make": _makes, "place": _places}
    if verb not in rules or not what:
        return False
    return not any(rules[verb](what, _part(outcome, "effects", {})) for outcome in outcomes if outcome)


def is_positive(amount: Any) -> bool:
    """2: a number above 0, also as text; of anything else, whatever is not empty."""
    try:
        return float(amount) > 0
    except (TypeError, ValueError):
        return bool(amount)


def _collects(what: str, effects: Mapping[str, Any]) -> bool:
    counters = {f"collect_{what}", _COUNTERS.get(what, "")}
    if _grew(effects, "inventory_delta", {what}) or _grew(effects, "achievement_delta", counters):
        return True
    for collection in _part(effects, "collections", []):
        source = str(collection.get("resource_type", "")).lower()
        if what in (source, _GIVES.get(source)) or _grew(collection, "received", {what}):
            return True
    return False


def _makes(what: str, effects: Mapping[str, Any]) -> bool:
    return is_positive(_part(effects, "inventory_delta", {}).get(what)) or is_positive(
        _part(effects, "achievement_delta", {}).get(f"make_{what}")
    )


def _places(what: str, effects: Mapping[str, Any]) -> bool:
    results = _part(effects, "place_results", [])
    has_placed = any(str(r.get("object_type", "")).lower() == what and r.get("success") for r in results)
    return has_placed or _grew(effects, "achievement_delta", {f"place_{what}"})


def _grew(effects: Mapping[str, Any], part: str, names: set[str]) -> bool:
    """Whether a part of the effects has a positive amount of one of the names, capitals or not."""
    return any(str(key).lower() in names and is_positive(amount) for key, amount in _part(effects, part, {}).items())


def _part(record: Mapping[str, Any], name: str, default: Any) -> Any:
    """An entry of a record, the default where it is missing or null."""
    return record.get(name) or default
