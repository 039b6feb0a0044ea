"""What a request to an endpoint costs the client, beside one client that all requests share."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pyarrow as pa

from fairness_pipeline.models.dialogue.endpoint import EndpointResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline_tests.benchmark.shared import Ratio

_REQUESTS, _AT_ONCE = 3000, 64
_SERVER = Path(__file__).parents[1] / "models" / "openai_server.py"


def endpoints() -> list[Ratio]:
    """Chats, 64 at once, with a server that takes a hundredth of a second for each."""
    with _server() as address:
        slow = _processor_seconds(lambda: asyncio.run(_shared_client(address)))
        with tempfile.TemporaryDirectory() as folder:
            specification = ModelSpecification.model_validate(
                {
                    "architecture": "endpoint", "corpus": "any",
                    "endpoint": {"base_url": f"{address}/v1", "model": "m", "concurrency": _AT_ONCE},
                }
            )  # fmt: skip
            texts = pa.table({"text": [f"context number {number}" for number in range(_REQUESTS)]})
            fast = _processor_seconds(lambda: EndpointResponder(specification, Path(folder), 1)(texts))
    note = f"processor time of the client: {1000 * slow / _REQUESTS:.2f} and {1000 * fast / _REQUESTS:.2f} ms a request"
    task = "requests to an endpoint, 64 at once, beside one shared client"
    return [Ratio(task, "requests", _REQUESTS / slow, _REQUESTS / fast, 2, note)]


async def _shared_client(address: str) -> None:
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=_AT_ONCE)) as client:

        async def ask(number: int) -> str:
            messages = [{"role": "user", "content": f"context number {number}"}]
            body = {"model": "m", "messages": messages}
            reply = await client.post(f"{address}/v1/chat/completions", json=body, timeout=60)
            text: str = reply.json()["choices"][0]["message"]["content"]
            return text

        for start in range(0, _REQUESTS, 256):
            await asyncio.gather(*(ask(number) for number in range(start, min(start + 256, _REQUESTS))))


def _processor_seconds(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


@contextmanager
def _server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, _SERVER, str(port)])
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 30
    try:
        while True:
            try:
                urllib.request.urlopen(f"{address}/counted", timeout=10).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield address
    finally:
        process.kill()
        process.wait()
