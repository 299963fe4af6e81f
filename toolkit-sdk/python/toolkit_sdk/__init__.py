"""The library of Python toolkits."""

from .context import clock, context, log, state
from .declare import Toolkit, api_key, basic, bearer_token, flow, no_auth, oauth1, oauth2, secret, text
from .error import ToolError
from .file import File
from .http import Client, Request, Response, http, send_all
from .trigger import Inbound, Polled, Received

__all__ = [
    "Client",
    "File",
    "Inbound",
    "Polled",
    "Received",
    "Request",
    "Response",
    "ToolError",
    "Toolkit",
    "api_key",
    "basic",
    "bearer_token",
    "clock",
    "context",
    "flow",
    "http",
    "log",
    "no_auth",
    "oauth1",
    "oauth2",
    "secret",
    "send_all",
    "state",
    "text",
]
