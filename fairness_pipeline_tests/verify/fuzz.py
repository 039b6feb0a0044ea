"""Fuzzes a server's responses: an audit must get a reply or a clear error, in bounded memory, without the key.

    python -m fairness_pipeline_tests.verify.fuzz --minutes 60

draws responses with Hypothesis; where Atheris is installed (`pip install atheris`), half of the time goes to it: it seeks
those that reach new code. An example that fails is printed, and kept for the next time.
"""

import argparse
import base64
import faulthandler
import gzip
import json
import os
import re
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models import chat, servers
from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.replies import KINDS, Reply
from fairness_pipeline.models.specification import Decoding, EndpointSource

KEY, VARIABLE = "sk-3kTf9/Ab+x?Z", "KEY_OF_FUZZ"
_WRITTEN = [KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode(), json.dumps(KEY)[1:-1]]
_SEEN = re.compile("|".join(re.escape(form.rstrip("=")[:-1]) for form in _WRITTEN))
_ENDLESS = 1 << 26
"""Bytes of a bomb: many times the longest allowed answer."""
_PATIENCE = 20.0
"""Seconds after which an example counts as hanging: ten times what its requests may take."""


def _text() -> st.SearchStrategy[str]:
    tags = st.sampled_from(
        ["<think>", "</think>", "<reasoning>", "<", "\\", "=1+1", "\x1b[31m", "\ud83d", "\u202e", "a b"]
    )
    repeated = st.builds(lambda piece, count: piece * count, tags, st.sampled_from([1, 2, 1000, 50_000]))
    key = st.builds(lambda form, before: before + form, st.sampled_from(_WRITTEN), st.text(max_size=3))
    return st.one_of(st.text(max_size=40), repeated, key, st.lists(st.one_of(tags, key), max_size=6).map(" ".join))


def _json() -> st.SearchStrategy[object]:
    numbers = st.one_of(st.integers(), st.floats(), st.just(10**400))
    return st.recursive(
        st.one_of(st.none(), st.booleans(), numbers, _text()),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_text(), inner, max_size=4)),
        max_leaves=8,
    )


def _protocol() -> st.SearchStrategy[object]:
    """Objects like an answer, a refusal, an error or a list of models, with anything in their fields."""
    anything = st.one_of(_text(), _json())
    message = st.fixed_dictionaries({}, optional={"content": anything, "refusal": anything})
    choice = st.fixed_dictionaries({"message": st.one_of(message, anything)}, optional={"finish_reason": anything})
    usage = st.fixed_dictionaries({"prompt_tokens": anything}, optional={"completion_tokens": anything})
    error = st.fixed_dictionaries({}, optional={"code": anything, "message": anything, "innererror": anything})
    fields = {"choices": st.one_of(st.lists(choice, max_size=2), anything), "error": st.one_of(error, anything)}
    return st.fixed_dictionaries({}, optional={**fields, "model": anything, "usage": st.one_of(usage, anything)})


def _bodies() -> st.SearchStrategy[bytes]:
    spelt = st.builds(
        lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"),
        st.one_of(_protocol(), _json()),
        st.booleans(),
    )
    packed = st.builds(lambda body, length: gzip.compress(body)[:length], spelt, st.sampled_from([None, 5, 40]))
    nested = st.sampled_from([b"[" * 100_000, b'{"a":' * 50_000, b"[" * 900 + b"]" * 900])
    bomb = st.builds(lambda byte: gzip.compress(byte * _ENDLESS, 1), st.sampled_from([b"\0", b"["]))
    return st.one_of(spelt, spelt, st.binary(max_size=60), packed, nested, bomb)


def _headers() -> st.SearchStrategy[list[tuple[str, str]]]:
    codings = st.sampled_from([f"br, {KEY}", "gzip", "gzip, gzip", "br", "deflate", "identity", "GZIP", "x" * 500])
    lengths = st.sampled_from(["0", "7", "-1", "99999999999", "1e3", "a"])
    texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
    named = [
        st.tuples(st.just("Content-Encoding"), codings),
        st.tuples(st.just("Content-Length"), lengths),
        st.tuples(st.just("Transfer-Encoding"), st.sampled_from(["chunked", "gzip, chunked", "x"])),
        st.tuples(
            st.just("Retry-After"), st.sampled_from(["0", "-1", "nan", "1e-9", "Fri, 31 Dec 9999 23:59:59", "x"])
        ),
        st.tuples(st.just("Location"), st.one_of(texts, st.just(f"https://elsewhere/?key={quote(KEY)}"))),
        st.tuples(st.just("Set-Cookie"), texts.map(lambda value: f"a={value}")),
        st.tuples(st.just("Content-Type"), st.sampled_from(["text/html; charset=utf-16", "application/json", "x"])),
    ]
    return st.lists(st.one_of(named), max_size=4)


def responses() -> st.SearchStrategy[bytes]:
    """Everything that a server sends on a connection, from the first byte to the last."""

    def written(status: object, headers: list[tuple[str, str]], body: bytes) -> bytes:
        all_headers = {"Content-Length": str(len(body)), **dict(headers)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items())
        return f"HTTP/1.1 {status} said\r\n{lines}\r\n".encode("latin-1", "replace") + body

    status = st.sampled_from([200, 200, 200, 200, 204, 301, 304, 400, 401, 404, 422, 429, 500, 529, 599, 100, 7, "x"])
    return st.one_of(st.builds(written, status, _headers(), _bodies()), st.binary(max_size=200))


class Sends:
    """A server that sends these bytes to whoever connects, and closes."""

    def __init__(self) -> None:
        self.content = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with closing(connection):
            try:
                connection.recv(1 << 16)
                connection.sendall(self.content)
            except OSError:  # the client has closed the connection
                return


@contextmanager
def in_time() -> Iterator[None]:
    """Ends the process with the traces of all threads if the block hangs."""
    faulthandler.dump_traceback_later(_PATIENCE, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


_server = cache(Sends)
tried = 0


def check(content: bytes) -> None:
    """Asks a server that sends this; raises AssertionError if the outcome is not allowed."""
    global tried
    tried += 1
    server = _server()
    server.content = content
    os.environ[VARIABLE] = KEY
    source = EndpointSource(
        base_url=server.address, model="m", key_variable=VARIABLE, timeout=1.0, attempts=2, concurrency=1
    )
    with TemporaryDirectory() as folder, in_time():
        try:
            asking = Chat(source, Decoding(), Path(folder), 1, Advice("context", "less"))
            (reply,) = asking.replies(["hello"])
            assert isinstance(reply, Reply)
            assert reply.kind in KINDS
            text = json.dumps(reply._asdict(), ensure_ascii=False)
            text.encode()  # what a file can hold
        except FairnessError as error:
            text = str(error)
        kept = "".join(path.read_text(encoding="utf-8") for path in Path(folder).iterdir())
    assert not _SEEN.search(text + json.dumps(json.loads(f"[{','.join(kept.splitlines())}]"), ensure_ascii=False))


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(responses())
def check_drawn(content: bytes) -> None:
    """`check` of what Hypothesis, or Atheris through it, draws."""
    check(content)


def main() -> None:
    """Draws responses for these minutes; prints their number and the peak memory as JSON on the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    minutes = parser.parse_args().minutes
    chat._FIRST_PAUSE = servers.LONGEST_PAUSE = 0.0
    try:
        import atheris
    except ImportError:
        atheris = None
    end = time.monotonic() + 60 * (minutes / 2 if atheris else minutes)
    while time.monotonic() < end:
        check_drawn()
    drawn = tried

    def ended() -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"drawn": drawn, "sought": tried - drawn, "peak_mib": round(peak)}), flush=True)
        os._exit(0)  # the library's loop does not end by itself

    def fuzz_one(content: bytes) -> None:
        check_drawn.hypothesis.fuzz_one_input(content)
        if time.monotonic() > end + 30 * minutes:
            ended()

    if atheris:
        atheris.instrument_all()
        atheris.Setup(sys.argv[:1], fuzz_one)
        atheris.Fuzz()
    ended()


if __name__ == "__main__":
    main()
