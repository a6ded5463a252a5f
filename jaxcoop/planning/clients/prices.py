"""Prices and token counts before a run, offline, from litellm's own tables.  Estimates, not bills."""

from collections.abc import Sequence

from jaxcoop.planning.clients.litellm_client import import_litellm
from jaxcoop.planning.request import Message


def estimate_tokens(messages: Sequence[Message], model: str) -> int:
    """Prompt tokens of `messages`, counted with the tokenizer litellm associates with `model`.

    An estimate: models without a public tokenizer are counted with a stand-in, and providers add a few tokens
    of their own.  The usage ledger has the true figure after the calls.
    """
    chat = [{"role": role, "content": content} for role, content in messages]
    return int(import_litellm().token_counter(model=model, messages=chat))


def price_per_token(model: str) -> tuple[float, float] | None:
    """Dollars per token (input, output) in litellm's bundled price list, or None for a model it does not
    list.
    """
    try:
        info = import_litellm().get_model_info(model)
    except Exception:  # litellm raises several types for an unlisted model, none of them public
        return None
    prices = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    return None if None in prices else (float(prices[0]), float(prices[1]))
