"""Drives Chromium in tests (needs Debian's chromium-driver)."""

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PATIENCE = 120.0


def wait(until: Callable[[], object], patience: float = _PATIENCE) -> Any:
    deadline = time.monotonic() + patience
    while not (value := until()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.3)
    return value


class Browser:
    """A browser with one window.

    Args:
        driver: The path of chromedriver.
        profile: A folder for the browser's profile.
        size: The window's width and height in pixels.
    """

    def __init__(self, driver: str, profile: Path, size: tuple[int, int] = (1440, 900)) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._process = subprocess.Popen(
            [driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._url = f"http://127.0.0.1:{port}/session"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        flags.append(f"--window-size={size[0]},{size[1]}")
        capabilities = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": flags}}}}
        self._url += "/" + wait(lambda: self._opened(capabilities))["sessionId"]

    def _opened(self, capabilities: dict[str, Any]) -> Any:
        try:
            return self.call("", capabilities)
        except OSError:  # the driver is starting
            return None

    def call(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())["value"]

    def run(self, script: str) -> Any:
        return self.call("/execute/sync", {"script": f"return {script}", "args": []})

    def close(self) -> None:
        urllib.request.urlopen(urllib.request.Request(self._url, method="DELETE"), timeout=60).close()  # and Chromium
        self._process.kill()
        self._process.wait()
