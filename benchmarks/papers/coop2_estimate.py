"""What the grid of COOP² would ask of language models, before anything is asked: calls, tokens, dollars.

Rounds in which everybody plans anew (5.4 of docs/coop2.md), as many as an episode has plans; the lengths of plans,
prompts and replies are assumptions that can be replaced, not measurements.  Estimates, not bills.
"""

import dataclasses
from collections.abc import Iterable, Sequence

from jaxcoop.benchmarks.papers.coop2_matrix import Planned
from jaxcoop.planning.clients.prices import price_per_token
from jaxcoop.report.tables import Table, table
from jaxcoop.runs.model import PER_MILLION, LanguageModel


@dataclasses.dataclass(frozen=True)
class Assumed:
    """What is assumed of an episode."""

    plan_steps: float = 4.0  # primitive steps from plan to plan of an agent
    prompt_tokens: float = 2500.0  # of a call
    reply_tokens: float = 250.0
    call_seconds: float = 2.0  # of a call; bounds the rounds within the wall-clock budget


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Calls of a cell; `most_calls`: if everybody plans in every step, whatever the clock says."""

    calls: float
    most_calls: float
    tokens_in: float
    tokens_out: float

    def cost(self, prices: tuple[float, float] | None) -> float | None:
        """Dollars, from dollars per token in and out; None without prices."""
        return None if prices is None else self.tokens_in * prices[0] + self.tokens_out * prices[1]


def calls_of_round(world: str, structure: str, agents: int) -> int:
    """5.4: calls when everybody is in R."""
    writes = world == "cube"
    if structure == "centralized":
        return 2 * agents - (0 if writes else 1)
    if structure == "broadcast_chain":
        return 2 * agents - 1 if writes else agents
    return agents


def seconds_of_round(world: str, structure: str, agents: int, call_seconds: float) -> float:
    """How long such a round keeps everybody from acting: the calls that wait for each other."""
    writes = world == "cube"
    in_row = {"centralized": 3 if writes else 2, "broadcast_chain": agents * (2 if writes else 1)}
    return in_row.get(structure, 1) * call_seconds


def estimate(planned: Planned, assumed: Assumed) -> Estimate:
    """Calls and tokens of a cell."""
    steps, options = planned.cell.env.horizon, planned.cell.mind_options
    each = calls_of_round(planned.world, planned.structure, planned.agents)
    rounds = steps / assumed.plan_steps
    if options.budget_seconds > 0:
        seconds = seconds_of_round(planned.world, planned.structure, planned.agents, assumed.call_seconds)
        rounds = min(rounds, max(1.0, options.budget_seconds / seconds))
    repairs = (
        planned.agents * rounds if planned.repair else 0.0
    )  # every other round a channel, a statement and a plan each
    calls = planned.cell.episodes * (each * rounds + repairs)
    most = planned.cell.episodes * steps * (each + (2 * planned.agents if planned.repair else 0))
    return Estimate(calls, most, calls * assumed.prompt_tokens, calls * assumed.reply_tokens)


def prices_of(planned: Planned) -> tuple[float, float] | None:
    """Dollars per token in and out: those given, else litellm's list; None where they are unknown."""
    model = planned.cell.model or LanguageModel()
    if model.input_price is not None and model.output_price is not None:
        return model.input_price * PER_MILLION, model.output_price * PER_MILLION
    return price_per_token(planned.model)


def added(each: Iterable[Estimate]) -> Estimate:
    """The sum of several."""
    columns = list(zip(*map(dataclasses.astuple, each), strict=True))
    return Estimate(*map(sum, columns)) if columns else Estimate(0, 0, 0, 0)


def estimate_table(plan: Sequence[Planned], assumed: Assumed) -> Table:
    """A line for each cell that asks a language model, and their sum."""
    lines, costs = [], []
    for planned in plan:
        found = estimate(planned, assumed)
        costs.append(found.cost(prices_of(planned)))
        lines.append([planned.name, planned.cell.episodes, *_cells(found, costs[-1])])
    total = added(estimate(planned, assumed) for planned in plan)
    known = None if None in costs else sum(cost or 0.0 for cost in costs)
    lines.append(["total", sum(planned.cell.episodes for planned in plan), *_cells(total, known)])
    made = table("What would be asked", ["cell", "n", "calls", "at most", "M in", "M out", "$"], lines)
    return Table(made.title, made.columns, made.rows, (False, *[True] * 6))


def _cells(found: Estimate, cost: float | None) -> list[str]:
    millions = (f"{found.tokens_in / 1e6:.2f}", f"{found.tokens_out / 1e6:.2f}")
    return [f"{found.calls:,.0f}", f"{found.most_calls:,.0f}", *millions, "unknown" if cost is None else f"{cost:,.2f}"]
