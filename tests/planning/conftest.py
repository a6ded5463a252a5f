"""Fixtures of the planning tests."""

import asyncio

import pytest

from jaxcoop.planning.backoff import Clock
from jaxcoop.planning.clients import FunctionClient
from jaxcoop.planning.hub import Hub


class VirtualTime:
    """A clock that jumps: sleeping takes no real time and is written down."""

    def __init__(self):
        self.now, self.sleeps = 0.0, []

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        until = self.now + seconds
        await asyncio.sleep(0)
        self.now = max(self.now, until)

    def clock(self):
        return Clock(self.sleep, lambda: self.now)


@pytest.fixture
def time():
    return VirtualTime()


@pytest.fixture
def make_hub(time):
    """Hub over a function or client, closed at the end; back-off takes no time."""
    made = []

    def make(client, record=None, **options):
        if callable(client):
            client = FunctionClient(client, "scripted")
        hub = Hub(client, record, **({"clock": time.clock()} | options))
        made.append(hub)
        return hub

    yield make
    for hub in made:
        hub.close()
