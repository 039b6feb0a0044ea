"""The endpoint client over real HTTP, with a server that speaks the protocol and misbehaves on demand."""

import asyncio
import gzip
import json
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.yaml_files import load
from fairness_pipeline.models import chat, servers, usage
from fairness_pipeline.models.dialogue import registry
from fairness_pipeline.models.dialogue.endpoint import EndpointResponder
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.in_flight import FIRST
from fairness_pipeline.models.replies import EMPTY, FAILED, FILTERED, REFUSED
from fairness_pipeline.models.specification import Decoding, EndpointSource
from fairness_pipeline_tests.local_server import answer, serve

KEY = "sk-very-secret"


class ChatServer:
    """Answers `/v1/chat/completions` with the last message in capitals.

    Args:
        script: What to do instead of answering, request by request: a status, or the name of a misbehaviour, such as
            `garbage`, `empty` or `hang`.
        delay: The seconds before each answer.
    """

    def __init__(self, *script: object, delay: float = 0.0) -> None:
        self.script = list(script)
        self.delay = delay
        self.asked: list[str] = []
        self.bodies: list[dict] = []
        self.keys: list[str | None] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def __call__(self, request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            return answer(request, 404, b"")
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        context = body["messages"][-1]["content"]
        with self._lock:
            self.asked.append(context)
            self.bodies.append(body)
            self.keys.append(request.headers.get("Authorization"))
            act = self.script.pop(0) if self.script else None
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.delay)
        with self._lock:
            self.at_once -= 1
        if request.path != "/v1/chat/completions":
            return answer(request, 404, b'{"error": "no such path"}')
        reply = {"choices": [{"message": {"role": "assistant", "content": context.upper()}}]}
        if isinstance(act, int):
            headers = {"Retry_After": "0"} if act == 429 else {}
            echoed = json.dumps({"error": {"message": f"refused {request.headers.get('Authorization')}"}})
            return answer(request, act, echoed.encode(), **headers)
        if act == "hang":
            time.sleep(1.0)
        if act == "garbage":
            return answer(request, 200, b'{"choices": [')
        if act == "html":
            return answer(request, 200, b"<html>a proxy's page</html>")
        if act == "half":
            return answer(request, 200, b'{"choices": [{"message": {"content": "cut \\ud83d"}}]}')
        if act == "deep":
            return answer(request, 200, b"[" * 200_000)
        if act == "refusal":
            reply["choices"][0]["message"] = {
                "role": "assistant",
                "content": None,
                "refusal": "I can't help with that.",
            }
        if act == "filtered":
            reply["choices"][0] = {"finish_reason": "content_filter", "message": {"role": "assistant", "content": None}}
        if act == "prompt filtered":
            reason = {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}
            return answer(request, 400, json.dumps({"error": {"message": "filtered", **reason}}).encode())
        if act == "drip":
            request.send_response(200)
            request.send_header("Content-Length", "1000")
            request.end_headers()
            for _ in range(10):  # each byte arrives in time, but not the whole answer
                request.wfile.write(b" ")
                time.sleep(0.1)
            return None
        if act == "huge":
            return answer(request, 200, b" " * 3000)
        if act == "no choice":
            reply = {"choices": []}
        if act in ("null", "empty"):
            reply["choices"][0]["message"]["content"] = None if act == "null" else " \n"
        if act == "parts":
            parts = [{"type": "thinking", "thinking": "hm"}, *({"type": "text", "text": t} for t in ("one", " two"))]
            reply["choices"][0]["message"]["content"] = parts
        return answer(request, 200, json.dumps(reply).encode())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_FIRST_PAUSE", 0.01)


def specification(address: str, decoding: object = None, **options: object) -> ModelSpecification:
    return ModelSpecification(
        architecture="endpoint",
        studies=("dialogue_fairness",),
        corpus="c",
        endpoint={"base_url": f"{address}/v1", "model": "m", "concurrency": 2, "attempts": 3, **options},
        decoding=decoding or {},
    )


def replies(spec: ModelSpecification, folder: Path, *contexts: str) -> list[dict[str, str]]:
    folder.mkdir(exist_ok=True)
    responder = registry.responder(spec, folder, folder, seed=7)
    return responder(pa.table({"text": contexts})).to_pylist()


def ask(spec: ModelSpecification, folder: Path, *contexts: str) -> list[str]:
    return [reply["response"] for reply in replies(spec, folder, *contexts)]


def kinds(spec: ModelSpecification, folder: Path, *contexts: str) -> list[tuple[str, str]]:
    return [(reply["response"], reply["kind"]) for reply in replies(spec, folder, *contexts)]


def test_the_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server = ChatServer()
    with serve(server) as address:
        spec = specification(
            address, {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ["\n"]}, key_variable="MY_KEY",
            prompt="reply to: {context}", system="be kind",
        )  # fmt: skip
        assert ask(spec, tmp_path, "hi {x}") == ["REPLY TO: HI {X}"]
    assert server.keys == [f"Bearer {KEY}"]
    assert server.bodies == [
        {
            "model": "m",
            "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "reply to: hi {x}"}],
            "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["\n"],
        }
    ]  # fmt: skip


def test_concurrent_requests_are_sent_once_and_answered_in_order(tmp_path: Path) -> None:
    server = ChatServer(delay=0.02)
    contexts = [f"context {i}" for i in range(40)]
    with serve(server) as address:
        responses = ask(specification(address, concurrency=8), tmp_path, *contexts, "context 3")
    assert responses == [text.upper() for text in [*contexts, "context 3"]]
    assert Counter(server.asked) == Counter(contexts)
    assert 2 <= server.most_at_once <= 8


@pytest.mark.parametrize("act", [429, 500, 503, 408, "garbage", "html", "no choice", "hang"])
def test_temporary_failures_are_tried_again(tmp_path: Path, act: object) -> None:
    server = ChatServer(act, act)
    with serve(server) as address:
        assert ask(specification(address, timeout=0.3, concurrency=1), tmp_path, "a") == ["A"]
    assert server.asked == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (503, "status 503"),
        ("garbage", "not an answer"),
        ("no choice", r"not an answer: {"),
        ("hang", "no answer"),
    ],
)
def test_a_prompt_that_keeps_failing_is_tried_once_more_at_the_end(tmp_path: Path, act: object, expected: str) -> None:
    server = ChatServer(None, act, act, act)
    with serve(server) as address:
        spec = specification(address, timeout=0.3, concurrency=1)
        assert ask(spec, tmp_path, "a", "b", "c") == ["A", "B", "C"]
    assert server.asked == ["a", "b", "b", "b", "c", "b"]
    server = ChatServer(None, act, act, act, None, act, act, act)
    with serve(server) as address:
        spec = specification(address, timeout=0.3, concurrency=1)
        kept = replies(spec, tmp_path / "for good", "a", "b", "c")
        assert [reply["kind"] for reply in kept] == ["answer", FAILED, "answer"]
        assert kept[1]["problem"].startswith(expected.replace("\\", ""))
        assert kept == replies(spec, tmp_path / "for good", "a", "b", "c")  # not asked a third time
    assert Counter(server.asked) == {"a": 1, "b": 6, "c": 1}


def test_a_prompt_that_is_refused_for_good_stops_nothing(tmp_path: Path) -> None:
    with serve(ChatServer(None, 400, None, 400)) as address:
        spec = specification(address, concurrency=1)
        assert kinds(spec, tmp_path, "a", "b", "c") == [("A", "answer"), ("", FAILED), ("C", "answer")]
    for status in (413, 500):  # many failures, but in a row only in the second attempt
        script = [act for number in range(30) for act in (None, status)]
        with serve(ChatServer(*script, *[status] * 30)) as address:
            spec = specification(address, concurrency=1, attempts=1)
            responses = kinds(spec, tmp_path / f"many-{status}", *(f"p{n}" for n in range(60)))
        assert Counter(kind for _, kind in responses) == {"answer": 30, FAILED: 30}


def test_a_broken_system_stops_the_run_and_is_taken_up_again(tmp_path: Path) -> None:
    server = ChatServer(None, *([500] * 90))
    names = [f"p{number}" for number in range(30)]
    with serve(server) as address:
        spec = specification(address, attempts=1, concurrency=1)
        with pytest.raises(FairnessError, match=r"status 500: .*, 1 times, for the context 'p10' and 9 more in a row"):
            ask(spec, tmp_path, *names)
        assert len(server.asked) == 1 + chat._BROKEN
        server.script.clear()
        server.asked.clear()
        assert ask(spec, tmp_path, *names) == [name.upper() for name in names]
        assert sorted(server.asked) == sorted(names[1:])  # no failure was taken for an answer


def test_a_server_is_sent_only_the_keys_that_it_accepts(tmp_path: Path) -> None:
    server = ChatServer()
    with serve(server) as address:
        ask(
            specification(address, leave_out=["temperature", "seed"], length_key="max_completion_tokens"), tmp_path, "a"
        )
    expected = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    assert server.bodies == [{**expected, "max_completion_tokens": 40, "top_p": 1.0}]
    plain, without_seed = specification("http://x"), specification("http://x", leave_out=["seed"])
    assert "leave_out" not in plain.identity()["endpoint"]  # answers from before this key existed are kept
    assert plain.identity() != without_seed.identity()
    with pytest.raises(ValueError, match="give either 'length_key', or 'max_tokens' in 'leave_out', not both"):
        specification("http://x", leave_out=["max_tokens"], length_key="max_completion_tokens")


@pytest.mark.parametrize("act", ["empty", "null"])
def test_an_empty_answer_is_asked_for_once_more_and_then_kept(tmp_path: Path, act: str) -> None:
    server = ChatServer(act, act, act)
    with serve(server) as address:
        spec = specification(address, concurrency=1)
        assert kinds(spec, tmp_path, "a", "b") == [("", EMPTY), ("B", "answer")]  # the first answer to `b` was empty
        assert kinds(spec, tmp_path, "a", "b") == [("", EMPTY), ("B", "answer")]
    assert server.asked == ["a", "a", "b", "b"]


def test_a_refusal_in_a_field_of_its_own_is_the_answer(tmp_path: Path) -> None:
    with serve(ChatServer("refusal")) as address:
        assert kinds(specification(address), tmp_path, "a") == [("I can't help with that.", REFUSED)]


@pytest.mark.parametrize("act", ["filtered", "prompt filtered"])
def test_a_filtered_answer_has_its_own_kind_and_stops_nothing(tmp_path: Path, act: str) -> None:
    server = ChatServer(act)
    with serve(server) as address:
        for _ in range(2):
            responses = kinds(specification(address, concurrency=1), tmp_path, "a", "b")
            assert responses == [("", FILTERED), ("B", "answer")]
    assert len(server.asked) == 2


def test_the_model_that_has_answered_is_kept(tmp_path: Path) -> None:
    class Served(ChatServer):
        def __call__(self, request: BaseHTTPRequestHandler) -> None:
            request.rfile.read(int(request.headers["Content-Length"]))
            self.asked.append("")
            model = "m-2026-11" if len(self.asked) == 1 else "m-2026-12"
            content = {"model": model, "choices": [{"message": {"content": "yes"}}]}
            return answer(request, 200, json.dumps(content).encode())

    with serve(Served()) as address:
        for _ in range(2):
            kept = replies(specification(address, concurrency=1), tmp_path, "a", "b")
            assert [reply["served"] for reply in kept] == ["m-2026-11", "m-2026-12"]


def test_the_model_of_an_empty_answer_is_kept_although_the_server_fails_afterwards(tmp_path: Path) -> None:
    class Failing(ChatServer):
        def __call__(self, request: BaseHTTPRequestHandler) -> None:
            self.asked.append("")
            content = {"model": "m-2026-11", "choices": [{"message": {"content": ""}}]}
            return answer(request, 200 if len(self.asked) == 1 else 503, json.dumps(content).encode())

    with serve(Failing()) as address:
        (reply,) = replies(specification(address), tmp_path, "a")
    assert (reply["kind"], reply["served"]) == (EMPTY, "m-2026-11")


def test_a_paid_answer_is_kept_when_the_budget_cannot_count_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = ChatServer()
    with serve(server) as address:
        spec = specification(address, concurrency=1)
        monkeypatch.setenv(usage.BUDGET, "1@0")
        with pytest.raises(FairnessError, match="does not say how many tokens 'm' took"):
            ask(spec, tmp_path, "a", "b")
        monkeypatch.delenv(usage.BUDGET)
        assert ask(spec, tmp_path, "a", "b") == ["A", "B"]
    assert server.asked == ["a", "b"]


def test_whichever_clock_ends_a_request_fewer_are_sent_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def too_late(*request: object) -> None:
        raise httpx.ReadTimeout("")

    monkeypatch.setattr(servers.Server, "ask", too_late)
    source = EndpointSource(base_url="http://x/v1", model="m", attempts=1, timeout=9)
    client = chat.Chat(source, Decoding(), tmp_path, 7, chat.Advice("prompt", "fewer"))
    with pytest.raises(FairnessError, match="no answer within 9 s"):
        client.replies(["a"])
    assert client._in_flight.size == FIRST // 2


def test_an_answer_that_trickles_or_is_too_large_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    too_late = pytest.raises(FairnessError, match=r"no answer within 0\.3 s, 3 times")
    with serve(ChatServer(*(["drip"] * 6))) as address, too_late:
        ask(specification(address, timeout=0.3), tmp_path / "drip", "a")
    monkeypatch.setattr(servers, "_LARGEST", 2000)
    with (
        serve(ChatServer(*(["huge"] * 6))) as address,
        pytest.raises(FairnessError, match="a response of more than"),
    ):
        ask(specification(address), tmp_path / "huge", "a")


def test_an_answer_that_is_packed_twice_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    def twice(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length", 0)))
        answer(request, 200, b"not gzip", Content_Encoding="gzip, gzip")

    refused = r"no answer \(Content-Encoding: asked for none, found 'gzip, gzip'; let the server"
    with serve(twice) as address:
        with pytest.raises(FairnessError, match=rf"endpoint {address}/v1, model 'm': {refused}"):
            ask(specification(address), tmp_path, "a")
        with pytest.raises(FairnessError, match=rf"{address}/v1: {refused}"):
            chat.only_model(f"{address}/v1", None)


def test_answers_in_flight_are_kept_when_another_fails(tmp_path: Path) -> None:
    class Failing(ChatServer):
        def __call__(self, request: BaseHTTPRequestHandler) -> None:
            body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
            context = body["messages"][-1]["content"]
            self.asked.append(context)
            if context == "bad":
                return answer(request, 401, b"{}")
            time.sleep(0.3)
            return answer(request, 200, json.dumps({"choices": [{"message": {"content": "slow"}}]}).encode())

    server = Failing()
    with serve(server) as address:
        spec = specification(address, concurrency=2)
        with pytest.raises(FairnessError, match="status 401"):
            ask(spec, tmp_path, "good", "bad", "never asked")
        assert sorted(server.asked) == ["bad", "good"]
        assert "slow" in (tmp_path / "answers.jsonl").read_text()


def test_a_retry_time_may_be_a_date(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    seconds = [servers._pause(header) for header in (soon, "7", "soon", "-3", "1e9")]
    assert 17 < seconds[0] <= 20
    assert seconds[1:] == [7, 0, 0, 60]


def test_an_address_without_its_path_is_asked_for(tmp_path: Path) -> None:
    with serve(ChatServer()) as address, pytest.raises(FairnessError, match=r"status 404; .* usually ends in /v1\)"):
        chat.only_model(address, None)


def drips(request: BaseHTTPRequestHandler) -> None:
    """Sends the beginning of a list of models, one byte at a time."""
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    for _ in range(30):
        request.wfile.write(b" ")
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("handler", "expected"),
    [
        (drips, "no answer"),
        (lambda request: answer(request, 200, b" " * 3000), "a response of more than"),
        (
            lambda request: answer(request, 200, gzip.compress(b" " * 3000), Content_Encoding="gzip"),
            "a response of more",
        ),
        (lambda request: answer(request, 200, b"[" * 1900), "which of its models"),
        (lambda request: answer(request, 401, b"{}"), "the right one"),
        (lambda request: answer(request, 429, b"{}"), "too many requests"),
    ],
)
def test_an_invalid_list_of_models_is_an_error(
    monkeypatch: pytest.MonkeyPatch, handler: Callable[[BaseHTTPRequestHandler], None], expected: str
) -> None:
    monkeypatch.setattr(chat, "_LIST_TIMEOUT", 0.5)
    monkeypatch.setattr(servers, "_LARGEST", 2000)
    with serve(handler) as address, pytest.raises(FairnessError, match=expected):
        chat.only_model(f"{address}/v1", None)


def test_half_a_letter_in_a_models_name(tmp_path: Path) -> None:
    def half(request: BaseHTTPRequestHandler) -> None:
        answer(request, 200, b'{"model": "m\\ud83d", "choices": [{"message": {"content": "hi"}}]}')

    with serve(half) as address:
        (reply,) = replies(specification(address), tmp_path, "a")
    assert reply["served"] == "m\ufffd"


def test_a_redirection_is_named_and_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "sk-secret")
    reached: list[str] = []

    def elsewhere(request: BaseHTTPRequestHandler) -> None:
        reached.append(request.path)
        answer(request, 200, b"{}")

    def moved(request: BaseHTTPRequestHandler) -> None:
        answer(request, 307, b"", Location=f"{target}/v1?key=sk-secret")

    with (
        serve(elsewhere) as target,
        serve(moved) as address,
        pytest.raises(FairnessError, match=r"status 307\) to http://127.0.0.1:\d+/v1\?key=\*\*\*.* put it in base_url"),
    ):
        ask(specification(address, key_variable="KEY"), tmp_path, "a")
    assert reached == []


def test_an_answer_in_parts_is_its_text(tmp_path: Path) -> None:
    with serve(ChatServer("parts")) as address:
        assert ask(specification(address), tmp_path, "a") == ["one two"]


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "check the key in MY_KEY"), (404, "check base_url"), (400, "refused .*leave_out")]
)
def test_a_refusal_is_not_tried_again_and_never_shows_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, advice: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server = ChatServer(status, status)
    with serve(server) as address, pytest.raises(FairnessError, match=f"status {status}: .*{advice}") as error:
        ask(specification(address, key_variable="MY_KEY", concurrency=1), tmp_path, "a")
    assert len(server.asked) == (2 if status == 400 else 1)  # another prompt might be accepted
    assert KEY not in str(error.value)
    assert "***" in str(error.value)


def test_a_missing_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(FairnessError, match="key_variable: the environment has no MY_KEY; set it"):
        ask(specification("http://127.0.0.1:9", key_variable="MY_KEY"), tmp_path, "a")


@pytest.mark.parametrize("key", ["sk-abc\nsecond", "sk abc", "schlüssel"])
def test_a_malformed_key_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(FairnessError, match="MY_KEY does not hold a key") as error:
        ask(specification("http://127.0.0.1:9", key_variable="MY_KEY"), tmp_path, "a")
    assert key not in str(error.value)


def test_the_key_is_not_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    responder = registry.responder(specification("http://h", key_variable="MY_KEY"), tmp_path, tmp_path, seed=1)
    assert KEY.encode() not in pickle.dumps(responder)


def test_pauses_double_and_are_as_long_as_the_server_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(chat.asyncio, "sleep", sleep)
    monkeypatch.setattr(chat, "_FIRST_PAUSE", 0.5)
    with serve(ChatServer(500, 500, 429, 503)) as address:
        spec = specification(address, attempts=5, concurrency=1)
        retry_after = iter([0.0, 0.0, 20.0, 0.0, 0.0])
        monkeypatch.setattr(servers, "_pause", lambda header: next(retry_after))
        assert ask(spec, tmp_path, "a") == ["A"]
    assert 0.3 < pauses[0] < 0.7 < pauses[1] < 1.3
    assert pauses[2] == 20.0
    assert 2.9 < pauses[3] < 5.1


def test_it_works_in_a_notebook(tmp_path: Path) -> None:
    async def cell(address: str) -> list[str]:
        return ask(specification(address), tmp_path, "a", "b")

    with serve(ChatServer()) as address:
        assert asyncio.run(cell(address)) == ["A", "B"]


def test_halves_of_characters_and_a_damaged_journal(tmp_path: Path) -> None:
    with serve(ChatServer("half", "deep")) as address:
        spec = specification(address, concurrency=1)
        assert ask(spec, tmp_path, "a", "b") == ["cut \ufffd", "B"]
        assert ask(spec, tmp_path, "a", "b") == ["cut \ufffd", "B"]
        journal = tmp_path / "answers.jsonl"
        journal.write_text("{nonsense\n" + journal.read_text())
        with pytest.raises(FairnessError, match="answers.jsonl, line 1: damaged; delete the line"):
            ask(spec, tmp_path, "a")


def test_an_unreachable_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FairnessError, match=r"endpoint http://127.0.0.1:9/v1, model 'm': no answer"):
        ask(specification("http://127.0.0.1:9"), tmp_path, "a")


def test_the_number_of_requests_is_bounded(tmp_path: Path) -> None:
    server = ChatServer(500, 500)
    with serve(server) as address:
        spec = specification(address, max_requests=3, concurrency=1)
        with pytest.raises(FairnessError, match="max_requests: 3 requests are made, as many as allowed"):
            ask(spec, tmp_path, "a", "b")
        assert server.asked == ["a", "a", "a"]
        assert ask(spec, tmp_path, "a", "b") == ["A", "B"]
    assert server.asked[3:] == ["b"]


def test_more_than_is_allowed_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    server = ChatServer()
    with serve(server) as address:
        responder = EndpointResponder(specification(address, max_requests=2), tmp_path, 0)
        with pytest.raises(FairnessError, match="max_requests: 3 requests would be made, 2 are allowed; nothing was"):
            responder.check_allowed(["a", "b", "c"])
        assert server.asked == []
        ask(specification(address), tmp_path, "b")
        responder = EndpointResponder(specification(address, max_requests=2), tmp_path, 0)
        responder.check_allowed(["a", "b", "c"])  # kept answers cost nothing
        responder._chat.forget(["b"])
        with pytest.raises(FairnessError, match="3 requests would be made"):
            responder.check_allowed(["a", "b", "c"])
    with pytest.raises(FairnessError, match="3 requests would be made"):  # forgotten on disk, too
        EndpointResponder(specification(address, max_requests=2), tmp_path, 0).check_allowed(["a", "b", "c"])


def test_an_answer_in_an_incomplete_line_is_asked_for_again(tmp_path: Path) -> None:
    server = ChatServer()
    with serve(server) as address:
        ask(specification(address), tmp_path, "a", "b")
        journal = tmp_path / "answers.jsonl"
        journal.write_bytes(journal.read_bytes()[:-5])
        lost = [text for text in ("a", "b") if text not in dict(chat._journal(journal))]
        server.asked.clear()
        assert ask(specification(address), tmp_path, "a", "b", "c") == ["A", "B", "C"]
        assert sorted(server.asked) == [*lost, "c"]
        server.asked.clear()
        assert ask(specification(address), tmp_path, "a", "b", "c") == ["A", "B", "C"]
        assert not server.asked


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"base_url": "localhost"}, "expected an address such as"),
        ({"base_url": "http://host:abc/v1"}, "expected an address such as"),
        ({"base_url": "https://me:secret@host/v1"}, "an address that carries a key"),
        ({"base_url": "https://host/v1?key=secret"}, "an address that carries a key"),
        ({"prompt": "hello"}, "expected {context} where the context goes"),
    ],
)
def test_invalid_sources_are_refused(options: dict[str, str], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        specification("http://h", **options)


def test_a_key_in_a_file_is_refused_and_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    for source in ("{base_url: 'https://h/v1', model: m, key_variable: sk-very-secret}",
                   "{base_url: 'https://h/v1?key=sk-very-secret', model: m}"):  # fmt: skip
        path.write_text(f"architecture: endpoint\nstudies: [dialogue_fairness]\ncorpus: c\nendpoint: {source}\n")
        with pytest.raises(FairnessError, match="m.yaml, line 4: endpoint.*(not a key|carries a key)") as error:
            load(ModelSpecification, path)
        assert KEY not in str(error.value)
