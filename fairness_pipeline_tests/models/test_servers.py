"""Replies of servers are bounded, unpacked with care, and kept without the key."""

import base64
import gzip
import json
import tracemalloc
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.replies import Reply
from fairness_pipeline.models.servers import is_secret, written_forms
from fairness_pipeline.models.specification import Decoding, EndpointSource
from fairness_pipeline_tests.local_server import answer, serve
from fairness_pipeline_tests.verify import fuzz

KEY = "sk-3kTf9/Ab+x?Z"


def reply_of(handler: object, folder: Path, monkeypatch: pytest.MonkeyPatch, *, key: str = KEY) -> Reply:
    """The reply of a server to one prompt."""
    monkeypatch.setenv("A_KEY", key)
    folder.mkdir(exist_ok=True)
    with serve(handler) as address:
        source = EndpointSource(base_url=f"{address}/v1", model="m", key_variable="A_KEY", attempts=1, concurrency=1)
        return Chat(source, Decoding(), folder, 1, Advice("context", "less")).replies(["hello"])[0]


def answers_with(content: str, model: str = "m") -> object:
    """A server that always answers with this content."""

    def handler(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        answer(request, 200, json.dumps({"model": model, "choices": [{"message": {"content": content}}]}).encode())

    return handler


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY, safe="").replace("%2F", "%2f"),
        "".join(f"%{ord(character):02X}" for character in KEY),
        json.dumps(json.dumps({"key": KEY}))[1:-1],
        "".join(f"\\u{ord(character):04x}" for character in KEY),
        *(base64.b64encode(before.encode() + KEY.encode() + b"\n").decode() for before in ("", "a", "ab", "Bearer ")),
        base64.urlsafe_b64encode(KEY.encode()).decode(),
        base64.encodebytes(b"a" * 50 + KEY.encode()).decode(),
        quote(quote(KEY, safe=""), safe=""),
        "".join(f"&#x{ord(character):02X};" for character in KEY),
        "".join(f"&#{ord(character)};" for character in KEY),
    ],
)
def test_a_key_that_a_server_repeats_is_kept_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    reply = reply_of(answers_with(f"You sent {form} to me", f"m {form}"), tmp_path, monkeypatch)
    kept = (tmp_path / "answers.jsonl").read_text()
    for field in (reply.text, reply.served, kept):
        assert "***" in field
        assert form.rstrip("=")[2:-2] not in field
        assert KEY not in field
    assert reply.text.startswith("You sent ")
    assert reply.text.endswith(" to me")


@settings(deadline=None)
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\\"), min_size=12, max_size=40),
    st.binary(max_size=5),
)
def test_a_key_within_base64_is_seen_wherever_it_begins(key: str, before: bytes) -> None:
    packed = base64.b64encode(before + key.encode() + before).decode()
    assert written_forms(key).search(packed)
    assert written_forms(key).sub("", key) == written_forms(key).sub("", quote(key, safe="")) == ""


def test_a_key_is_sought_in_texts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not sought across JSON's punctuation and numbers."""

    def says_when(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        body = {"created": 1764123456, "choices": [{"message": {"content": "a\nanswers1"}}]}
        answer(request, 200, json.dumps(body).encode())

    assert reply_of(says_when, tmp_path / "a", monkeypatch, key="17641234").text == "a\nanswers1"
    assert reply_of(says_when, tmp_path / "b", monkeypatch, key="nanswers1").text == "a\nanswers1"


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("x-gzip", gzip.compress),
        ("gzip, identity", gzip.compress),
        ("none", bytes),
        ("utf-8", bytes),
        ("gzip", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
    ],
)
def test_usual_content_encodings_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str, body: Callable[[bytes], bytes]
) -> None:
    def sends(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        answer(request, 200, body(b'{"choices": [{"message": {"content": "hi"}}]}'), Content_Encoding=packing)

    assert reply_of(sends, tmp_path, monkeypatch).text == "hi"


def test_a_key_that_is_a_word_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reply_of(answers_with("none of us, ollama"), tmp_path, monkeypatch, key="none").text == "none of us, ollama"
    assert not any(map(is_secret, ("none", "EMPTY", "password", "lm-studio", "not-needed")))
    assert all(map(is_secret, ("sk-12345", "a" * 32)))


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b" " * (1 << 28))

    def sends(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        answer(request, 200, bomb, Content_Encoding="gzip")

    tracemalloc.start()
    with pytest.raises(FairnessError, match="a response of more than 4 MiB"):
        reply_of(sends, tmp_path, monkeypatch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26


@pytest.mark.parametrize(
    ("packing", "body", "problem"),
    [
        ("br", b"x", "asked for none, found 'br'"),
        (f"br, {KEY}", b"x", r"asked for none, found 'br, \*\*\*'"),
        ("gzip", b"no gzip", "it cannot be unpacked"),
        ("gzip", gzip.compress(b"{}" * 999)[:-9], "it is cut short"),
    ],
    ids=["br", "key", "no gzip", "cut short"],
)
def test_responses_that_cannot_be_unpacked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packing: str, body: bytes, problem: str
) -> None:
    def sends(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["Content-Length"]))
        answer(request, 200, body, Content_Encoding=packing)

    with pytest.raises(FairnessError, match=problem):
        reply_of(sends, tmp_path, monkeypatch)


def test_a_redirection_to_an_invalid_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FairnessError, match=r"no answer \(Location: no address"):
        reply_of(lambda request: answer(request, 301, b"", Location="A:0"), tmp_path, monkeypatch)


def test_cookies_and_encodings_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[dict[str, str]] = []

    def sets(request: BaseHTTPRequestHandler) -> None:
        headers.append(dict(request.headers))
        request.rfile.read(int(request.headers["Content-Length"]))
        body = json.dumps({"choices": [{"message": {"content": ""}}]}).encode()
        answer(request, 200, gzip.compress(body), Content_Encoding="gzip", Set_Cookie="a=b")

    monkeypatch.setenv("A_KEY", KEY)
    with serve(sets) as address:
        source = EndpointSource(base_url=f"{address}/v1", model="m", attempts=2, concurrency=1)
        Chat(source, Decoding(), tmp_path, 1, Advice("context", "less")).replies(["a", "b"])
    assert len(headers) == 4
    assert {sent["Accept-Encoding"] for sent in headers} == {"identity"}
    assert not any("Cookie" in sent for sent in headers)


def test_whatever_a_server_sends_is_a_reply_or_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make verify` runs this check for five minutes."""
    monkeypatch.setattr("fairness_pipeline.models.chat._FIRST_PAUSE", 0.0)
    monkeypatch.setattr("fairness_pipeline.models.servers.LONGEST_PAUSE", 0.0)
    monkeypatch.setenv(fuzz.VARIABLE, fuzz.KEY)
    before = fuzz.tried
    settings(max_examples=25, deadline=None)(given(fuzz.responses())(fuzz.check))()
    assert fuzz.tried - before >= 25
