"""Clients: the doors to models.  Importing this package imports no provider library."""

from jaxcoop.planning.clients.base import Client
from jaxcoop.planning.clients.direct import DirectClient
from jaxcoop.planning.clients.function import FunctionClient
from jaxcoop.planning.clients.litellm_client import LitellmClient

__all__ = ["Client", "DirectClient", "FunctionClient", "LitellmClient"]
