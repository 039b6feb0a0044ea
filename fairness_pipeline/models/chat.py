"""Queries any OpenAI-compatible chat endpoint concurrently, with retries, and never twice for a saved answer."""

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, replacing
from fairness_pipeline.foundation.plain_text import some
from fairness_pipeline.foundation.text_files import parse_json
from fairness_pipeline.foundation.thoughts import without_thoughts
from fairness_pipeline.foundation.turns import asking
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.models import usage
from fairness_pipeline.models.in_flight import in_flight_to
from fairness_pipeline.models.replies import ANSWER, EMPTY, FAILED, FILTERED, KINDS, Reply
from fairness_pipeline.models.servers import LONGEST_PAUSE, Response, Server
from fairness_pipeline.models.specification import Decoding, EndpointSource

_JOURNAL = "answers.jsonl"
_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP statuses that a retry may resolve."""
_TOO_MANY = frozenset({429, 503, 529})
"""The statuses among them that report too many requests."""
_FIRST_PAUSE = 0.5
_USELESS = frozenset({401, 403, 404, 405, 407})
"""HTTP statuses that every prompt would get: the key, the address or the model is wrong."""
_FIRST_ATTEMPTS = 5
"""Attempts for a prompt before the server's first answer: the server may not exist at all."""
_BROKEN = 10
"""Prompts in a row without an answer after which the system counts as broken, and not a prompt."""
_SILENT = "no answer"
"""The beginning of a reply's problem if no server responded."""
_REPORT_SECONDS = 1.0
"""Seconds between two reports of progress."""
_SHOWN = 200
_SHOWN_ANSWER = 80
_LIST_TIMEOUT = 20.0
_HINTS = {
    401: "; is the key that --key names the right one?",
    403: "; is the key that --key names the right one?",
    404: "; an address of this kind usually ends in /v1",
    429: "; it has had too many requests: try again later",
}

T = TypeVar("T")


class Advice(NamedTuple):
    """Phrases for error messages: what a prompt is called, and how to send fewer of them."""

    prompt_name: str
    less: str


class Chat:
    """Sends prompts to an endpoint and returns the answers.

    Every answer is saved before the next one is awaited, so a killed run only asks for the answers that it lacks. A
    temporary failure (no connection, timeout, 408, 409, 425, 429, most 5xx, a malformed answer) is retried. The pause
    before a retry doubles each time, and is at least as long as the server asks. Refusals in a separate field, answers
    that the server's filter withholds, answers without words and prompts that fail for good are kinds of replies, and
    do not stop the run; a failed prompt is tried once more at the end. Only a broken system stops the run: a wrong key
    or address, or many prompts in a row without an answer. It then keeps the saved answers, and awaits those in flight.
    The options of `decoding` are sent, and it says whether thoughts are kept.

    Raises:
        FairnessError: the key is missing from the environment.
    """

    def __init__(self, source: EndpointSource, decoding: Decoding, folder: Path, seed: int, advice: Advice) -> None:
        self.source = source
        self.decoding = decoding
        self.folder = folder
        self.seed = seed
        self.advice = advice
        self.requests = 0
        self._failed: list[FairnessError] = []
        self._in_a_row = 0
        self._answered = False
        self._server = Server(source)
        self._in_flight = in_flight_to(source.base_url, source.model, source.concurrency)
        self._report: Callable[[int], None] | None = None
        self._answers: dict[str, Reply] = dict(_journal(folder / _JOURNAL))

    def set_report(self, report: Callable[[int], None]) -> None:
        """Sets the function that is called with the number of prompts of the current call that have a reply."""
        self._report = report

    def replies(self, prompts: list[str]) -> list[Reply]:
        """The reply to each prompt; each distinct prompt is sent once.

        Raises:
            FairnessError: the endpoint rejects every request, answers nothing, or `max_requests` is reached.
        """
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._answers]
        self._failed.clear()
        self._in_a_row = 0
        if missing:
            failures: dict[str, str] = {}
            with asking(self.source.base_url, self.source.model):
                _run(self._ask_all(missing, failures))
                if failures:  # the server may have been away for a while
                    failed = list(failures)
                    failures.clear()
                    self._in_a_row = 0
                    _run(self._ask_all(failed, failures, last=True))
        return [self._answers[prompt] for prompt in prompts]

    def meanings(self, prompts: list[str], meaning: Callable[[str], T | None], lack: str) -> list[T]:
        """The meaning of the answer to each prompt. Answers without one are dropped, and asked for again.

        `meaning` gives None for such an answer, and `lack` says what it does, for the error message.

        Raises:
            FairnessError: as in `replies`, or an answer has no meaning.
        """
        replies = self.replies(prompts)
        rows = [(prompt, reply, meaning(reply.text)) for prompt, reply in zip(prompts, replies, strict=True)]
        wrong = [(prompt, reply) for prompt, reply, value in rows if value is None]
        if wrong:
            prompt, reply = wrong[0]
            self.forget([prompt for prompt, _ in wrong])
            example = reply.problem or (f"[{reply.kind}]" if reply.kind != ANSWER else repr(reply.text[:_SHOWN_ANSWER]))
            raise FairnessError(
                f"{len(wrong):,} of {len(replies):,} answers {lack}, such as {example} to {prompt!r}; "
                "they were discarded; change endpoint.prompt, or run again to resend these prompts"
            )
        return [value for _, _, value in rows if value is not None]

    def check_allowed(self, prompts: list[str]) -> None:
        """Raises an error, before anything is sent, if `max_requests` does not allow the prompts, each given once.

        Raises:
            FairnessError: the prompts without a saved answer need more requests than allowed.
        """
        missing, limit = sum(prompt not in self._answers for prompt in prompts), self.source.max_requests
        if limit is not None and missing > limit:
            raise FairnessError(
                f"endpoint.max_requests: {missing:,} requests would be made, {limit:,} are allowed; nothing was sent; "
                f"raise it, or send fewer prompts ({self.advice.less})"
            )

    def forget(self, prompts: list[str]) -> None:
        """Drops the saved answers to some prompts, so that these are sent again."""
        for prompt in prompts:
            self._answers.pop(prompt, None)
        lines = (_line(prompt, reply) for prompt, reply in self._answers.items())
        with replacing(self.folder / _JOURNAL) as path:
            path.write_text("".join(lines), encoding="utf-8")

    async def _ask_all(self, prompts: list[str], failures: dict[str, str], *, last: bool = False) -> None:
        """Sends all prompts. Those without an answer are put into `failures`, and with `last` saved as failed."""
        path = self.folder / _JOURNAL
        waiting = deque(prompts)  # shared by the workers: each prompt goes to one of them
        working, reported = 0, time.monotonic()
        self._in_flight.begins(reported)
        try:
            with path.open("a", encoding="utf-8") as journal:

                async def work() -> None:
                    nonlocal working, reported
                    try:
                        # One client per worker: a shared one checks all its connections before each request.
                        async with self._server.client(self.source.timeout) as client:
                            while waiting and not self._failed and working <= self._in_flight.size:
                                await take(client, waiting.popleft())
                                if self._report and time.monotonic() - reported > _REPORT_SECONDS:
                                    reported = time.monotonic()
                                    self._report(len(prompts) - len(waiting) - working)
                                join_in()
                    except FairnessError as error:  # requests of the others are paid for: they may finish
                        self._failed.append(error)
                    finally:
                        working -= 1

                async def take(client: httpx.AsyncClient, prompt: str) -> None:
                    reply = await self._ask(client, prompt)
                    if reply.kind == FAILED:
                        failures[prompt] = reply.problem
                        # The last time only failed prompts are sent: an error from the server is no sign then.
                        self._in_a_row += not last or reply.problem.startswith(_SILENT)
                        if self._is_broken(last):
                            raise self._broken(prompt, reply)
                    else:
                        self._in_a_row = 0
                    if reply.kind != FAILED or last:
                        self._answers[prompt] = reply
                        journal.write(_line(prompt, reply))
                        journal.flush()

                def join_in() -> None:
                    nonlocal working
                    for _ in range(min(self._in_flight.size - working, len(waiting))):
                        working += 1
                        group.create_task(work())

                async with asyncio.TaskGroup() as group:
                    join_in()
        except ExceptionGroup as errors:  # one worker's error has ended the others
            error = errors.exceptions[0]
            raise (explained(error, path) if isinstance(error, OSError) else error) from None
        except OSError as error:
            raise explained(error, path) from None
        if self._failed:
            raise self._failed[0]

    def _is_broken(self, last: bool) -> bool:
        """Whether the system is broken: many prompts in a row have no answer, or none has one."""
        answered = any(reply.kind != FAILED for reply in self._answers.values())
        return self._in_a_row >= _BROKEN or (last and not answered)

    def _broken(self, prompt: str, reply: Reply) -> FairnessError:
        more = f" and {self._in_a_row - 1} more in a row" if self._in_a_row > 1 else ""
        return FairnessError(
            f"endpoint {self.source.base_url}, model '{self.source.model}': {reply.problem}, for the "
            f"{self.advice.prompt_name} {prompt[:_SHOWN]!r}{more}; the answers so far are saved; run again to continue"
        )

    async def _ask(self, client: httpx.AsyncClient, prompt: str) -> Reply:
        """The reply to one prompt.

        Raises:
            FairnessError: the endpoint cannot be used: a wrong key, address or model; or `max_requests` is reached.
        """
        body = self._body(prompt)
        problem, pause, sent = "", _FIRST_PAUSE, 0
        empty: Reply | None = None
        for attempt in range(self.source.attempts):
            if attempt and (self._failed or (attempt >= _FIRST_ATTEMPTS and not self._answered)):
                break
            if attempt:
                await asyncio.sleep(pause)
            self._count()
            sent += 1
            pause = min(LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.75, 1.25)
            try:
                async with asyncio.timeout(self.source.timeout):
                    response = await self._server.ask(client, "POST", "/chat/completions", body)
            except (TimeoutError, httpx.TimeoutException):
                problem = f"{_SILENT} within {self.source.timeout:g} s"
                self._in_flight.refused(time.monotonic())
                continue
            except httpx.HTTPError as error:
                problem = f"{_SILENT} ({self._server.shown(str(error)) or type(error).__name__})"
                continue
            status = response.status
            if status in _TEMPORARY:
                problem = f"status {status}: {response.shown}"
                pause = max(pause, response.pause)
                if status in _TOO_MANY:
                    self._in_flight.refused(time.monotonic())
                continue
            self._in_flight.answered(time.monotonic())
            if status == httpx.codes.OK:
                try:
                    usage.note(self.source.model, response.content)
                except FairnessError as error:  # ends the run once this reply, which is paid for, is saved
                    self._failed.append(error)
            if response.is_filtered:
                return Reply("", FILTERED, response.served)
            if httpx.codes.is_redirect(status) or status in _USELESS:
                raise self._unusable(response)
            if status != httpx.codes.OK:
                details = f"{status}: {response.shown}{self._advice(status)}"
                return Reply("", FAILED, problem=f"rejected with status {details}")
            self._answered = True
            if response.answer is None:
                problem = f"not an answer: {response.shown}"
                continue
            text, kind = response.answer
            text = (text if self.decoding.keep_thoughts else without_thoughts(text)).strip()
            if text or empty:
                return Reply(text, kind if text else EMPTY, response.served)
            empty = Reply("", EMPTY, response.served)  # asks once more, as the server may have slipped
            pause = 0.0
        return empty or Reply("", FAILED, problem=f"{problem}, {sent} times")

    def _unusable(self, response: Response) -> FairnessError:
        """The error about an endpoint that rejects every request."""
        target = f"endpoint {self.source.base_url}, model '{self.source.model}'"
        if httpx.codes.is_redirect(response.status):
            return FairnessError(
                f"{target}: it sends its callers on (status {response.status}) to {response.location or 'nowhere'}, "
                "where the key is not sent; if that is its address, put it in base_url"
            )
        return FairnessError(f"{target}: status {response.status}: {response.shown}{self._advice(response.status)}")

    def _body(self, prompt: str) -> dict[str, Any]:
        decoding = self.decoding
        settings = {
            "max_tokens": decoding.max_tokens,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": self.seed,
        }
        names = {"max_tokens": self.source.length_key or "max_tokens"}
        left_out = self.source.leave_out or ()
        return {
            "model": self.source.model,
            "messages": self.source.messages(prompt),
            **{names.get(name, name): value for name, value in settings.items() if name not in left_out},
            **({"stop": list(decoding.stop)} if decoding.stop else {}),
        }

    def _count(self) -> None:
        usage.check_budget()
        if self.source.max_requests is not None and self.requests >= self.source.max_requests:
            raise FairnessError(
                f"endpoint.max_requests: {self.requests:,} requests are made, as many as allowed; the answers are "
                "kept: run again to go on, or raise it"
            )
        self.requests += 1

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            name = self.source.key_variable
            return (
                f"; check the key in {name}"
                if name
                else "; name the variable that holds its key: key_variable (or --key)"
            )
        if status in (400, 422):
            return (
                "; what it refuses to be sent, leave out (endpoint.leave_out), or call max_tokens as it does "
                "(endpoint.length_key)"
            )
        if status == 404:
            return "; check base_url (it usually ends in /v1) and model"
        return ""


class Asker:
    """The base of the scorers that query an endpoint.

    Raises:
        FairnessError: the key is missing from the environment.
    """

    CHUNK = 4096
    """The number of texts in a chunk; between two chunks the server is idle."""

    def __init__(self, source: EndpointSource, decoding: Decoding, folder: Path, seed: int, advice: Advice) -> None:
        self.source = source
        self._chat = Chat(source, decoding, folder, seed, advice)

    def set_report(self, report: Callable[[int], None]) -> None:
        """Sets the function that is called with the number of texts of the current chunk that have an answer."""
        self._chat.set_report(report)

    def check_allowed(self, texts: list[str]) -> None:
        """Raises an error, before anything is sent, if `max_requests` does not allow all these texts."""
        self._chat.check_allowed(self._prompts(texts))

    def _prompts(self, texts: list[str]) -> list[str]:
        return [self.source.filled(text) for text in texts]


def only_model(base_url: str, key_variable: str | None) -> str:
    """The only model that an endpoint serves.

    Raises:
        FairnessError: the endpoint cannot be reached, does not list its models, or serves several.
    """
    source = validate(EndpointSource, {"base_url": base_url, "model": "", "key_variable": key_variable}, Path("MODEL"))
    server, responses = Server(source), list[Response]()

    async def query() -> None:
        async with server.client(_LIST_TIMEOUT) as client, asyncio.timeout(_LIST_TIMEOUT):
            responses.append(await server.ask(client, "GET", "/models"))

    try:
        _run(query())
    except (httpx.HTTPError, TimeoutError) as error:
        raise FairnessError(
            f"{base_url}: no answer ({server.shown(str(error)) or type(error).__name__}); is it the address of an "
            "OpenAI-compatible endpoint, such as http://localhost:8000/v1?"
        ) from None
    (response,) = responses
    served = response.models
    if len(served) != 1:
        status = f"it does not say (status {response.status}{_HINTS.get(response.status, '')})"
        answer = f"it serves {some([name[:_SHOWN_ANSWER] for name in served], 10)}" if served else status
        raise FairnessError(f"{base_url}: which of its models? {answer}: name one with --served; --key names its key")
    return served[0]


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` to its end in a separate thread.

    An interruption of the caller (Ctrl-C, Dagster ending a run) then cancels `work` in order, instead of breaking out
    of the event loop at any point. This also works in a notebook, which already runs an event loop.
    """
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def watched() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        await work

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(asyncio.run, watched())
        try:
            future.result()
        except BaseException:
            if not future.done() and started:
                loop, task = started[0]
                loop.call_soon_threadsafe(task.cancel)
            raise


def _line(prompt: str, reply: Reply) -> str:
    optional = {"kind": reply.kind if reply.kind != ANSWER else "", "served": reply.served, "problem": reply.problem}
    fields = {name: value for name, value in optional.items() if value}
    return json.dumps({"prompt": prompt, "answer": reply.text, **fields}) + "\n"


def _journal(path: Path) -> Iterable[tuple[str, Reply]]:
    """The answers that an earlier run saved. If a kill cut off the last line, that line is dropped."""
    if not path.exists():
        return
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        with replacing(path) as temporary:
            temporary.write_bytes(complete)
    for number, line in enumerate(complete.splitlines(), start=1):
        try:
            record = parse_json(line)
            kind = record.get("kind", ANSWER)
            if kind not in KINDS:
                raise ValueError(kind)
            yield (
                record["prompt"],
                Reply(record["answer"], kind, record.get("served", ""), record.get("problem", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FairnessError(
                f"{path}, line {number}: damaged; delete the line, and its prompt is asked again"
            ) from None
