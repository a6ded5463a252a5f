"""What the DPBench matrix would ask of a language model, before anything is asked: calls, tokens, dollars.

Estimates from rendered prompts and from published episode lengths and reply lengths, not bills.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from jaxcoop.benchmarks.papers.dpbench import published_name, published_rows
from jaxcoop.benchmarks.papers.dpbench_matrix import Planned
from jaxcoop.envs.dining.text import PromptRenderer
from jaxcoop.planning.clients.prices import estimate_tokens, price_per_token
from jaxcoop.planning.request import Message
from jaxcoop.report.cells import Row
from jaxcoop.report.tables import Table, table
from jaxcoop.runs.model import PER_MILLION

# What a philosopher sees at the start, with one fork, and while eating: the three kinds of position.
_POSITIONS = (
    {
        "eating": False,
        "meals": 0,
        "left_available": True,
        "right_available": True,
        "left": False,
        "right": False,
    },
    {
        "eating": False,
        "meals": 2,
        "left_available": True,
        "right_available": False,
        "left": True,
        "right": False,
    },
    {
        "eating": True,
        "meals": 3,
        "left_available": True,
        "right_available": True,
        "left": True,
        "right": True,
    },
)
_MESSAGE = "I hold my left fork now and will put it down again if the right one stays taken."


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One condition, or several added up."""

    episodes: int
    most_calls: int  # if every episode runs to its time limit
    calls: float  # if episodes are as long as the published ones; as many as `most_calls` where there are none
    tokens_in: float  # of `calls`
    tokens_out: float

    def cost(self, prices: tuple[float, float] | None) -> float | None:
        """Dollars of `calls`, from dollars per token in and out; None without prices."""
        return None if prices is None else self.tokens_in * prices[0] + self.tokens_out * prices[1]

    def most_cost(self, prices: tuple[float, float] | None) -> float | None:
        """Dollars of `most_calls`."""
        cost = self.cost(prices)
        return None if cost is None or not self.calls else cost * self.most_calls / self.calls


def estimate(planned: Planned, reply_tokens: float | None = None) -> Estimate:
    """Calls and tokens of a language model's cell.

    `reply_tokens` is the mean length of a reply; default: that of the published cells nearest to this one.
    """
    if not planned.cell.is_language or planned.cell.talk is None:
        raise ValueError(f"{planned.player} is a policy; only language models make calls")
    env, talk, episodes = planned.cell.env, planned.cell.talk, planned.cell.episodes
    dialogue = talk.dialogue(env)
    actions = env.horizon * env.num_actors
    discussions = (dialogue.max_rounds - env.horizon) * env.num_agents
    ends_early = planned.condition.env.get("deadlock_terminal", True)
    length = _nearest(planned, "avg_timesteps") if ends_early else None
    share = 1.0 if length is None else min(1.0, length / env.horizon)
    renderer = PromptRenderer(talk.prompts(), env.num_agents, communication=dialogue.communication)
    prompt_tokens = actions * _prompt_tokens(planned, renderer, is_discussion=False)
    if discussions:
        prompt_tokens += discussions * _prompt_tokens(planned, renderer, is_discussion=True)
    calls = episodes * (actions + discussions)
    reply = _nearest(planned, "reply_tokens") if reply_tokens is None else reply_tokens
    return Estimate(
        episodes=episodes,
        most_calls=calls,
        calls=calls * share,
        tokens_in=episodes * prompt_tokens * share,
        tokens_out=calls * share * (reply or 0.0),
    )


def _prompt_tokens(planned: Planned, renderer: PromptRenderer, *, is_discussion: bool) -> float:
    """Mean tokens of the prompts of the three positions."""
    talk, n = planned.cell.talk, renderer.num_agents
    entry = {"deadlock": False, **{name: [False] * n for name in ("hl", "hr", "eating")}, "meals": [1] * n}
    total = 0
    for position in _POSITIONS:
        row: dict[str, Any] = {
            **position,
            "agent": 1,
            "holding_left": position["left"],
            "holding_right": position["right"],
            "left_message": _MESSAGE,
            "right_message": _MESSAGE,
            "memory": [{"timestep": t + 1, **entry} for t in range(talk.memory_window)],
            "kind": "discussion" if is_discussion else "action",
            "round": 1,
            "rounds": talk.communication_rounds,
        }
        rendered = renderer.render(row)
        messages = [Message("system", rendered.system), Message("user", rendered.user)]
        total += estimate_tokens(messages, planned.player)
    return total / len(_POSITIONS)


def _nearest(planned: Planned, what: str) -> float | None:
    """Mean over the published cells of model and condition, else of the condition.

    Where there are none: for replies the mean of the model, else of all; for the length of episodes None.
    """
    asked = [row for row in published_rows() if row.get("tokens_out")]
    name, code = published_name(planned.player), planned.condition.code
    groups = [
        [row for row in asked if row["model"] == name and row["condition"] == code],
        [row for row in asked if row["condition"] == code],
    ]
    if what == "reply_tokens":
        groups += [[row for row in asked if row["model"] == name], asked]
    return next((_mean(rows, what) for rows in groups if rows), None)


def _mean(rows: Sequence[Row], what: str) -> float:
    if what == "reply_tokens":
        return sum(row["tokens_out"] for row in rows) / sum(row["calls"] for row in rows)
    return sum(row[what] for row in rows) / len(rows)


def prices_of(planned: Planned) -> tuple[float, float] | None:
    """Dollars per token in and out: those given, else litellm's list; None where one of them is unknown."""
    model = planned.cell.model
    given = (None, None) if model is None else (model.input_price, model.output_price)
    listed = None if None not in given else price_per_token(planned.player)
    both = [
        price * PER_MILLION if price is not None else listed[k] if listed else None for k, price in enumerate(given)
    ]
    return None if None in both else (float(both[0] or 0), float(both[1] or 0))


def estimate_table(plan: Sequence[Planned], reply_tokens: float | None = None) -> Table:
    """The cells of one language model, with a total line."""
    prices = prices_of(plan[0])
    each = [(planned.condition.code, estimate(planned, reply_tokens)) for planned in plan]
    total = added(item for _, item in each)
    heads = ["condition", "n", "at most", "expected", "M in", "M out"]
    # Without prices there is nothing to say in the columns of dollars.
    heads += [] if prices is None else ["$", "$ most"]
    lines = [
        [
            code,
            item.episodes,
            item.most_calls,
            f"{item.calls:,.0f}",
            f"{item.tokens_in / 1e6:.2f}",
            f"{item.tokens_out / 1e6:.2f}",
            f"{item.cost(prices) or 0:,.2f}",
            f"{item.most_cost(prices) or 0:,.2f}",
        ][: len(heads)]
        for code, item in [*each, ("total", total)]
    ]
    made = table(f"{plan[0].player}: {_prices(prices)}", heads, lines)
    return Table(made.title, made.columns, made.rows, (False, *[True] * (len(heads) - 1)))


def added(estimates: Iterable[Estimate]) -> Estimate:
    """The sum of several."""
    columns = zip(*map(dataclasses.astuple, estimates), strict=True)
    return Estimate(*map(sum, columns))


def total_line(plan: Sequence[Planned], reply_tokens: float | None = None) -> str:
    """What all language models of a plan ask and cost together."""
    each = [(estimate(planned, reply_tokens), prices_of(planned)) for planned in plan]
    total = added(item for item, _ in each)
    costs = [(item.cost(prices), item.most_cost(prices)) for item, prices in each if prices is not None]
    if len(costs) < len(each):
        dollars = "price unknown"
    else:
        dollars = f"${sum(c or 0 for c, _ in costs):,.2f} expected, ${sum(m or 0 for _, m in costs):,.2f} at most"
    return (
        f"Total: {total.calls:,.0f} calls expected, {total.most_calls:,} at most; "
        f"{total.tokens_in / 1e6:.2f} M tokens in, {total.tokens_out / 1e6:.2f} M out; {dollars}"
    )


def _prices(prices: tuple[float, float] | None) -> str:
    if prices is None:
        return "price unknown, give --input-price and --output-price"
    return f"${prices[0] / PER_MILLION:.4g} in, ${prices[1] / PER_MILLION:.4g} out per million tokens"
