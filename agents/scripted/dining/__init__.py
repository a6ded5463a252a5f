"""Scripted philosophers of the dining table, by name.

Definitions: section 16 of the DPBench behaviour notes, docs/envs/dining.md.
"""

from collections.abc import Callable

from jaxcoop.agents.registry import PolicySpec
from jaxcoop.agents.scripted.dining.local import CoinWait, Constant, Greedy, LehmannRabin, RandomWait
from jaxcoop.agents.scripted.dining.shared import ChandyMisra, ColourTimetable
from jaxcoop.agents.scripted.dining.uniform import UniformOver
from jaxcoop.core import Env, Policy
from jaxcoop.envs.dining.types import Action

Make = Callable[[int], Policy]
"""Makes a policy for N philosophers."""

_TABLE: tuple[tuple[str, str, Make], ...] = (
    ("always_wait", "waits", lambda n: Constant(Action.WAIT)),
    ("always_grab_left", "grabs left, never a second fork", lambda n: Constant(Action.GRAB_LEFT)),
    ("left_first", "greedy, left fork first", lambda n: Greedy(n)),
    ("right_first", "greedy, right fork first", lambda n: Greedy(n, "right")),
    ("parity_ordering", "greedy, even ids right first, odd ids left first", lambda n: Greedy(n, "parity")),
    (
        "parity_ordering_ungated",
        "as parity_ordering, but grabs taken forks too instead of waiting",
        lambda n: Greedy(n, "parity", gated=False),
    ),
    ("dijkstra_ordered_forks", "greedy, lower fork number first", lambda n: Greedy(n, "lower_fork")),
    ("one_right_first", "greedy, id 0 right first, the others left first", lambda n: Greedy(n, "one_right")),
    (
        "polite_release",
        "greedy, left first; puts a fork down when the other is taken",
        lambda n: Greedy(n, polite=True),
    ),
    (
        "random_wait_1_2",
        "left first after one or two decisions of waiting, drawn anew after each meal",
        lambda n: RandomWait(n, 1, 2),
    ),
    (
        "random_wait_0_1_2",
        "left first after none to two decisions of waiting, drawn anew after each meal",
        lambda n: RandomWait(n, 0, 2),
    ),
    ("coin_wait_half", "left first, empty-handed ones wait with probability 1/2", lambda n: CoinWait()),
    (
        "lehmann_rabin",
        "random first side; puts the fork down and redraws when the other is taken",
        lambda n: LehmannRabin(n),
    ),
    (
        "chandy_misra_low",
        "precedence passes on with each meal, at first with lower ids; sees all meal counts",
        lambda n: ChandyMisra(n, "low"),
    ),
    (
        "chandy_misra_even",
        "precedence passes on with each meal, at first with even ids; sees all meal counts",
        lambda n: ChandyMisra(n, "even"),
    ),
    (
        "colour_timetable",
        "two or three colours of philosophers eat in turn; sees the clock",
        lambda n: ColourTimetable(n),
    ),
    (
        "random_not_held",
        "uniform over grabs of forks not in hand, RELEASE with one, WAIT",
        lambda n: UniformOver("not_held"),
    ),
    (
        "random_available",
        "uniform over grabs of available forks, RELEASE with one, WAIT",
        lambda n: UniformOver("available"),
    ),
    (
        "random_any_release",
        "uniform over grabs of free forks, RELEASE, WAIT",
        lambda n: UniformOver("any_release"),
    ),
    (
        "random_no_wait",
        "as random_legal, but WAIT only when nothing else is legal",
        lambda n: UniformOver("no_wait"),
    ),
)


def _spec(name: str, summary: str, make: Make) -> PolicySpec:
    """An entry of the table for the registry."""

    def factory(env: Env) -> Policy:
        return make(env.num_agents)

    return PolicySpec(name, summary, factory)


POLICIES: dict[str, PolicySpec] = {name: _spec(name, summary, make) for name, summary, make in _TABLE}

__all__ = [
    "POLICIES",
    "ChandyMisra",
    "CoinWait",
    "ColourTimetable",
    "Constant",
    "Greedy",
    "LehmannRabin",
    "RandomWait",
    "UniformOver",
]
