"""What a web page of another origin could make a browser send is refused; what Dagster's own pages send is not."""

from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from fairness_pipeline.defs.guard import Guard

JSON = {"content-type": "application/json"}


async def _done(request: Request) -> PlainTextResponse:
    return PlainTextResponse("done")


async def _talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


@pytest.fixture
def client() -> Callable[[str], TestClient]:
    app = Starlette(
        routes=[Route("/graphql", _done, methods=["GET", "POST"]), Route("/", _done), WebSocketRoute("/ws", _talk)]
    )
    guarded = Guard(app, ["localhost", "audits.example"])
    return lambda host: TestClient(guarded, base_url=f"http://{host}")


@pytest.mark.parametrize(
    "host", ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "10.0.0.7:3000", "Audits.example", "localhost"]
)
def test_its_own_pages_work(client: Callable[[str], TestClient], host: str) -> None:
    browser = client(host)
    assert browser.get("/").text == "done"
    assert browser.get("/").headers["content-security-policy"] == "frame-ancestors 'none'"
    assert browser.get("/graphql").text == "done"  # the page on which to try a query
    headers = {**JSON, "origin": f"http://{browser.base_url.netloc.decode()}"}
    assert browser.post("/graphql", headers=headers, content="{}").text == "done"
    assert browser.post("/graphql", headers=JSON, content="{}").text == "done"  # a program


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:3000", "", "[x"])
def test_another_name_is_refused(client: Callable[[str], TestClient], host: str) -> None:
    """An attacker's domain name may resolve to this machine."""
    refused = client("localhost").get("/", headers={"host": host})
    assert refused.status_code == 403
    assert "--trusted-host" in refused.text


def test_what_another_page_sends_is_refused(client: Callable[[str], TestClient]) -> None:
    browser = client("localhost:3000")
    assert browser.get("/graphql?query=mutation{deleteRun}").status_code == 403  # an image
    assert browser.get("/graphql?query=").status_code == 403
    for origin in ("http://evil.example", "http://localhost:4000", "null", "http://[x"):
        assert browser.post("/graphql", headers={**JSON, "origin": origin}, content="{}").status_code == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):  # a form
        assert browser.post("/graphql", headers={"content-type": kind}, content="{}").status_code == 403
    assert browser.post("/graphql", content="{}").status_code == 403


def test_websockets_of_other_pages_are_refused(client: Callable[[str], TestClient]) -> None:
    browser = client("localhost:3000")
    with browser.websocket_connect(
        "/ws", headers={"origin": "http://localhost:3000", "host": "localhost:3000"}
    ) as socket:
        assert socket.receive_text() == "hello"
    with (
        pytest.raises(WebSocketDisconnect),
        browser.websocket_connect("/ws", headers={"origin": "http://evil.example"}),
    ):
        pass
