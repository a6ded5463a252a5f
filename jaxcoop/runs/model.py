"""Which language model plays, and how it is called."""

import dataclasses
import math
import os
from pathlib import Path
from typing import Literal, get_args

from jaxcoop.core.registry import unknown
from jaxcoop.planning.clients.base import Client
from jaxcoop.planning.front_ends import FRONT_ENDS
from jaxcoop.planning.hub import Hub
from jaxcoop.planning.record import Record

ClientName = Literal["litellm", "direct"]
FrontEndName = Literal["segments", "lanes", "in_graph"]
PER_MILLION = 1e-6
RECORD_NAME = "llm.sqlite"


@dataclasses.dataclass(frozen=True)
class LanguageModel:
    """The model and the way to it.  Raises `ValueError` for a value out of range."""

    model: str | None = None  # litellm name, e.g. openai/gpt-4o-mini, anthropic/claude-sonnet-4-5, ollama/llama3
    client: ClientName = "litellm"  # direct: a local OpenAI-compatible server, far less CPU per call
    api_base: str | None = None  # address of the server, e.g. http://127.0.0.1:8000/v1
    api_key_env: str | None = None  # environment variable with the key; default: the provider's usual one
    temperature: float = 0.7  # 0: equal prompts share one call
    max_tokens: int = 1024  # longest reply
    request_timeout: float = 60.0  # seconds for one call
    attempts: int = 5  # calls for one request before it falls back to waiting
    reasks: int = 0  # further asks after a reply without an action; the reference never asks again
    limit: int = 128  # calls at a time
    front_end: FrontEndName = "segments"  # schedule of asks; all give the same results
    input_price: float | None = None  # dollars per million prompt tokens; default: litellm's list
    output_price: float | None = None  # dollars per million reply tokens
    replay: Path | None = None  # answer from the record of this run folder only; no call is made

    def __post_init__(self) -> None:
        """Check what the clients and the hub do not check."""
        if self.front_end not in FRONT_ENDS:
            raise unknown("front_end", self.front_end, FRONT_ENDS)
        if self.client not in get_args(ClientName):
            raise unknown("client", self.client, get_args(ClientName))
        if self.client == "direct" and self.model and not self.api_base:
            raise ValueError("client 'direct' needs --api-base, e.g. http://127.0.0.1:8000/v1")
        if not 0 < self.request_timeout < math.inf:
            raise ValueError(f"request_timeout {self.request_timeout}: must be above 0 seconds, and finite")
        for name, price in (("input_price", self.input_price), ("output_price", self.output_price)):
            if price is not None and not 0 <= price < math.inf:
                raise ValueError(f"{name} {price}: must be dollars per million tokens, 0 or more")

    def make_client(self) -> Client:
        """The client.  Raises `ValueError` for settings out of range or a key variable that is not set."""
        if self.model is None:
            raise ValueError("no model named; give --model, e.g. --model openai/gpt-4o-mini")
        key = None
        if self.api_key_env is not None:
            key = os.environ.get(self.api_key_env)
            if not key:
                raise ValueError(f"api_key_env {self.api_key_env!r}: that environment variable is not set")
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError(
                f"input_price {self.input_price} and output_price {self.output_price}: give both, in dollars per "
                "million tokens, or none"
            )
        prices = [None if p is None else p * PER_MILLION for p in (self.input_price, self.output_price)]
        common = {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "api_key": key,
            "timeout": self.request_timeout,
            "input_price": prices[0],
            "output_price": prices[1],
        }
        if self.client == "direct":
            from jaxcoop.planning.clients.direct import DirectClient

            return DirectClient(self.model, self.api_base or "", **common)
        from jaxcoop.planning.clients.litellm_client import LitellmClient

        return LitellmClient(self.model, api_base=self.api_base, **common)

    def make_hub(self, record: Record, parser: str) -> Hub:
        """A hub that answers from `record` first.  Raises `RecordError` for a replay that cannot be read."""
        if self.replay is not None:
            record.take_answers(self.replay / RECORD_NAME if self.replay.is_dir() else self.replay)
        return Hub(
            self.make_client(),
            record,
            limit=self.limit,
            attempts=self.attempts,
            timeout=self.request_timeout * 1.5,  # the client's own limit comes first
            replay=self.replay is not None,
            reasks=self.reasks,
            parser=parser,
        )

    def settings(self) -> dict[str, object]:
        """What decides the answers; the rest only decides how fast they come."""
        return {**self.make_client().settings(), "reasks": self.reasks}
