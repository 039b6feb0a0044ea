"""A large model behind a server: a hundred thousand requests with a kill in the middle, and several workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fairness_pipeline.models.dialogue.endpoint import EndpointResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.workspace.distinct import each_distinct

REQUESTS, AT_ONCE = 100_000, 64
SERVER = Path(__file__).with_name("openai_server.py")


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a running server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, SERVER, str(port)])
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 30
    while True:
        try:
            counted(address)
            break
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    yield address
    process.kill()
    process.wait()


def counted(address: str) -> dict[str, int]:
    """The server's counts of requests."""
    with urllib.request.urlopen(f"{address}/counted", timeout=10) as reply:
        counts: dict[str, int] = json.loads(reply.read())
    return counts


def ask(address: str, folder: Path, count: int = REQUESTS) -> pa.Table:
    """Asks for all contexts that are not answered yet."""
    specification = ModelSpecification.model_validate(
        {
            "architecture": "endpoint",
            "corpus": "any",
            "endpoint": {"base_url": f"{address}/v1", "model": "large", "concurrency": AT_ONCE},
        }
    )
    contexts = pa.array([f"context number {number}" for number in range(count)])
    return each_distinct(contexts, EndpointResponder(specification, folder, 1), folder=folder)


@pytest.mark.verify
def test_each_context_is_asked_once_even_across_a_kill(server: str, tmp_path: Path) -> None:
    code = f"from {__name__} import *; ask({server!r}, Path({str(tmp_path)!r}))"
    first = subprocess.Popen([sys.executable, "-c", code])
    while counted(server)["asked"] < REQUESTS // 3:
        assert first.poll() is None
        time.sleep(0.2)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    time.sleep(0.5)
    asked_before, begun = counted(server)["asked"], time.monotonic()
    answers = ask(server, tmp_path)["response"]
    seconds = time.monotonic() - begun
    counts = counted(server)
    assert answers[7].as_py() == "context number 7"[::-1]
    assert answers[REQUESTS - 1].as_py() == f"context number {REQUESTS - 1}"[::-1]
    assert len(answers.unique()) == REQUESTS
    assert REQUESTS <= counts["asked"] <= REQUESTS + AT_ONCE  # requests in flight at the kill were sent again
    assert AT_ONCE // 2 < counts["most"] <= AT_ONCE
    print(f"{(counts['asked'] - asked_before) / seconds:,.0f} requests a second")


def test_workers_of_one_machine_share_the_requests_at_once(server: str, tmp_path: Path) -> None:
    code = (
        f"from {__name__} import *; from fairness_pipeline.foundation.turns import wait_for_turns; wait_for_turns();"
        f"ask({server!r}, Path(sys.argv[1]), 300)"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / str(number))], env=env) for number in range(3)
    ]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    counts = counted(server)
    assert counts["asked"] == 900 and AT_ONCE // 2 < counts["most"] <= AT_ONCE
