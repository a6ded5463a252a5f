"""The two worlds whose measures differ in details, and how loosely typed entries of logs are read."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np

Profile = Literal["cube", "macrafter"]

PROFILES: tuple[Profile, ...] = get_args(Profile)


def checked(profile: str) -> Profile:
    """The profile of this name.  Raises ValueError for any other."""
    for known in PROFILES:
        if profile == known:
            return known
    raise ValueError(f"profile is {profile!r}; choose one of {', '.join(PROFILES)}")


def number(value: Any) -> float:
    """A finite number, or text of one; 0 for anything else."""
    try:
        read = float(value)
    except (TypeError, ValueError):
        return 0.0
    return read if math.isfinite(read) else 0.0


def whole(value: Any) -> int:
    """A number as an integer, cut; 0 for anything that is none."""
    return int(number(value))


def first_positive(values: Iterable[Any]) -> int:
    """The first entry that is a positive number, else 1."""
    return next((whole(value) for value in values if whole(value) > 0), 1)


def text_id(value: Any) -> str:
    """An id as text; ids that count as nothing (null, 0, empty) are empty."""
    return str(value) if value else ""


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def share(part: float, whole_of: float) -> float:
    """`part / whole_of`; 0 where there is nothing to share."""
    return part / whole_of if whole_of else 0.0


def mean_and_std(values: Iterable[float]) -> tuple[float, float]:
    """Mean and population standard deviation; zeros without values."""
    array = np.fromiter(values, np.float64)
    return (float(array.mean()), float(array.std())) if array.size else (0.0, 0.0)
