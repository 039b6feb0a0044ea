"""Keeps other web pages away from Dagster's UI.

Dagster's server carries out what any page in the user's browser asks for, even with an `<img>`: it takes mutations by
GET, does not look at where a request comes from, and answers under any host name.
"""

import ipaddress
from collections.abc import Collection
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

_READING = ("GET", "HEAD", "OPTIONS")


class Guard:
    """Refuses what a page of another origin could make a browser send. A program that sends JSON is let in.

    Args:
        app: The server to guard.
        hosts: The names under which it may be reached, besides IP addresses. An attacker can let a name of his own
            point here, but not an address.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or answers it with the reason why not."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, _unframed(send) if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await WebSocketClose(code=1008, reason=refusal)(scope, receive, send)
        else:
            await PlainTextResponse(f"Refused: {refusal}.\n", status_code=403)(scope, receive, send)

    def _refusal(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._is_ours(host):
            return f"the host '{host}' is not a name of this server; start the UI with --trusted-host NAME to allow it"
        if origin is not None and _netloc(origin) != host:
            return f"the page {origin} is not of this server"
        if scope["type"] == "websocket":
            return None
        if scope["method"] in _READING:
            is_query = "query" in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            return "send GraphQL queries by POST" if is_query and scope["path"].endswith("/graphql") else None
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return "expected the content type application/json"
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _unframed(send: Send) -> Send:
    """Lets no other page show this one in a frame, where it could steer clicks to it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["x-frame-options"] = "DENY"
            headers.append("content-security-policy", "frame-ancestors 'none'")
        await send(message)

    return sending
