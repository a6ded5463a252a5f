"""Options of a configuration: what is taken, what is refused, and how it is said."""

import dataclasses
from typing import Literal

import numpy as np
import pytest

from jaxcoop.core.options import check_ranges, check_types


@dataclasses.dataclass(frozen=True)
class Options:
    mode: Literal["slow", "fast"] = "slow"
    is_on: bool = True
    count: int = 3
    share: float = 0.5
    text: str = "any"

    def __post_init__(self):
        check_types(self)
        check_ranges(self, (("count", 1, 5_000), ("share", 0.0, 1.0)))


def test_numbers_of_other_kinds_become_int_and_float():
    options = Options(count=np.int64(4), share=1)
    assert (type(options.count), type(options.share)) == (int, float)
    assert options == Options(count=4, share=1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": "fats"}, "unknown mode 'fats'; allowed: fast, slow; did you mean 'fast'"),
        ({"mode": np.array(["slow", "fast"])}, "unknown mode array"),
        ({"is_on": 1}, "is_on 1: must be True or False"),
        ({"count": True}, "count True: must be a whole number"),
        ({"count": 2.0}, "count 2.0: must be a whole number"),
        ({"count": 5_001}, "count 5001: must be from 1 to 5,000"),
        ({"share": "half"}, "share 'half': must be a number"),
        ({"share": float("nan")}, "share nan: must be from 0.0 to 1.0"),
    ],
)
def test_what_does_not_fit_is_named_with_what_is_allowed(wrong, message):
    with pytest.raises(ValueError, match=message):
        Options(**wrong)
