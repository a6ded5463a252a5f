"""Checking the options of a configuration: one wording for all environments."""

import dataclasses
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

from jaxcoop.core.registry import brief, unknown


def check_types(options: Any) -> None:
    """Check the options of a frozen dataclass against their types: `Literal`, bool, int, float; others are left alone.

    Whole numbers and numbers of other kinds (numpy's) become int and float in place.  Raises `ValueError` naming the
    option and its value.
    """
    hints = get_type_hints(type(options))
    for field in (f for f in dataclasses.fields(options) if f.init):
        value, hint = getattr(options, field.name), hints[field.name]
        if get_origin(hint) is Literal:
            if not isinstance(value, str) or value not in get_args(hint):
                raise unknown(field.name, value, get_args(hint))
        elif hint is bool and not isinstance(value, bool):
            raise ValueError(f"{field.name} {brief(value)}: must be True or False")
        elif hint is int:
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise ValueError(f"{field.name} {brief(value)}: must be a whole number")
            object.__setattr__(options, field.name, int(value))
        elif hint is float:
            if isinstance(value, bool) or not isinstance(value, Real):
                raise ValueError(f"{field.name} {brief(value)}: must be a number")
            object.__setattr__(options, field.name, float(value))


def check_ranges(options: Any, ranges: Iterable[tuple[str, float, float]]) -> None:
    """Check that fields lie between two numbers, both included; raises `ValueError` naming value and range."""
    for name, low, high in ranges:
        value = getattr(options, name)
        if not low <= value <= high:  # true of NaN too
            raise ValueError(f"{name} {value!r}: must be from {low:,} to {high:,}")
