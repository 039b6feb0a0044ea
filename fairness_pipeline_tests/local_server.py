"""Serves tests that speak real HTTP from this machine."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Handler = Callable[[BaseHTTPRequestHandler], None]
TOLD_AT = "TOLD_AT"
"""The environment variable with the address that a profile's `notify` posts to."""


@contextmanager
def serve(handler: Handler) -> Iterator[str]:
    """Serves GET and POST with `handler` while the block runs; yields the server's address."""

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            handler(self)

        do_POST = do_GET

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # more than connect at once: a refused client tries again only a second later

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that was killed

    server = Server(("127.0.0.1", 0), Requests)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(request: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Sends one response."""
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def chat(reply: Callable[[str], str]) -> Handler:
    """Returns a handler of a chat endpoint with one model, which gives `reply` of a request's messages, one a line."""

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            return answer(request, 200, b'{"data": [{"id": "our-bot"}]}')
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        content = reply("\n".join(message["content"] for message in body["messages"]))
        answer(request, 200, json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    return handle


@contextmanager
def hearing() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serves an address for posted messages; yields it and the list of messages."""
    messages: list[dict[str, Any]] = []

    def handler(request: BaseHTTPRequestHandler) -> None:
        messages.append(json.loads(request.rfile.read(int(request.headers["Content-Length"]))))
        answer(request, 200, b"ok")

    with serve(handler) as address:
        yield f"{address}/services/SECRET", messages
