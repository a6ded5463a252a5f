"""Requests to a hub, and functions that answer them well or badly."""

from jaxcoop.planning import Message, Request
from jaxcoop.planning.request import Transient


def ask(text, draw=None, malformed=None):
    return Request((Message("user", text),), draw, malformed=malformed)


def status(hub, requests):
    return [a.status for a in hub.submit(requests).result(20)]


def echo(request):
    return request.messages[-1].content


def flaky(failures, error=lambda: Transient("server")):
    """A function that fails each request `failures` times before it answers."""
    seen = {}

    def fn(request):
        seen[request] = seen.get(request, 0) + 1
        if seen[request] <= failures:
            raise error()
        return echo(request)

    return fn, seen
