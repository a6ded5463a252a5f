"""1 and 12: block lists and named configurations."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jaxcoop.core.registry import brief

PAPER_BLOCKS = "1:3,2:3,3:3"
MAX_SCALE = 256
MAX_BLOCKS = 1000

_SCALE = re.compile(r"cube_scale_([1-9][0-9]{0,8})")


def parse_blocks(blocks: str) -> tuple[tuple[int, int], ...]:
    """`"2:1,3:1"` as ((weight, count), ...), in order.

    Raises `ValueError` for anything but a list of `weight:count` with distinct weights and numbers of 1 or more.
    """
    form = "must be weight:count pairs with a comma between them, such as 2:1,3:1"
    if not isinstance(blocks, str):
        raise ValueError(f"blocks {brief(blocks)}: {form}")
    pairs = []
    for part in blocks.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*", part)
        if not match:
            raise ValueError(f"blocks {brief(blocks)}: {form}")
        pairs.append((int(match[1]), int(match[2])))
    if any(number < 1 for pair in pairs for number in pair):
        raise ValueError(f"blocks {brief(blocks)}: weights and counts must be 1 or more")
    if len({weight for weight, _ in pairs}) < len(pairs):
        raise ValueError(f"blocks {brief(blocks)}: a weight is listed twice; add its counts up")
    if sum(count for _, count in pairs) > MAX_BLOCKS:
        raise ValueError(f"blocks {brief(blocks)}: at most {MAX_BLOCKS} blocks")
    return tuple(pairs)


def scale(n: int) -> Mapping[str, Any]:
    """12: n agents, the heaviest block n // 2 + 1, then half of it, twice; a quarter, three times; and so on."""
    weight, pairs = float(n // 2 + 1), []
    while weight >= 1:
        pairs.append(f"{int(weight)}:{len(pairs) + 1}")
        weight /= 2
    return MappingProxyType({"side": max(20, n), "agents": n, "blocks": ",".join(pairs)})


class Presets(Mapping[str, Mapping[str, Any]]):
    """Named options of the environment; `cube_scale_<n>` exists for every n from 2 to 256, powers of two are listed."""

    def __init__(self, named: Mapping[str, Mapping[str, Any]]) -> None:
        self._named = MappingProxyType(dict(named))

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        if name in self._named:
            return self._named[name]
        match = _SCALE.fullmatch(name) if isinstance(name, str) else None
        if match and 2 <= int(match[1]) <= MAX_SCALE:
            return scale(int(match[1]))
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


def _paper(agents: int) -> Mapping[str, Any]:
    # 14: the limits of the published runs are not public.  The run script that belongs to the paper stops after 50
    # steps by default, but the paper's table 8 has episodes of up to 116, so this keeps the limit of the class.
    return MappingProxyType({"side": 15, "agents": agents, "blocks": PAPER_BLOCKS, "max_steps": 500})


PRESETS = Presets(
    {
        "cube_default": MappingProxyType({}),
        "cube_paper_3": _paper(3),
        "cube_paper_6": _paper(6),
        **{f"cube_scale_{2**k}": scale(2**k) for k in range(1, 9)},
    }
)
"""Options of `Cube` by preset name."""
