"""Queries any OpenAI-compatible chat endpoint concurrently, with retries, and never twice for a saved answer."""

import asyncio
import json
import os
import random
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import explained, replacing
from fairness_pipeline.foundation.text_files import whole_text
from fairness_pipeline.foundation.yaml_files import validate
from fairness_pipeline.models.specification import FILTERED, Decoding, EndpointSource
from fairness_pipeline.models.thoughts import without_thoughts

_JOURNAL = "answers.jsonl"
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP statuses that a retry may resolve."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_FILTERS = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
"""What servers call their filter, as the code of an error or as the reason why an answer ends."""
_LARGEST = 1 << 24
"""Bytes of a reply; a longer one is no answer."""
_SHOWN = 200
_SHOWN_ANSWER = 80
_LIST_TIMEOUT = 20.0

T = TypeVar("T")


class Advice(NamedTuple):
    """Phrases for error messages: what a prompt is, what to do about empty answers, and how to ask less."""

    what: str
    empty: str
    less: str


class Chat:
    """Sends prompts to an endpoint and returns the answers.

    Every answer is saved before the next one is awaited, so a killed run only asks for the answers that it lacks. A
    passing failure (no connection, time out, 408, 409, 425, 429, 5xx, a malformed answer) is retried. The pause before
    a retry doubles each time, or is as long as the server says. A lasting failure stops the run, but saved answers
    are kept, and those that are on their way are waited for. What the server's filter keeps back is the answer
    `FILTERED`; a refusal that stands in a field of its own is the answer.

    Args:
        source: The address of the endpoint and the limits on asking it.
        decoding: The decoding options to send; also says whether an answer may be empty.
        folder: Holds the saved answers.
        seed: Sent with each request.
        advice: The phrases for error messages.

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
        _key(source)
        self._answers = dict(_journal(folder / _JOURNAL))

    def answers(self, prompts: list[str]) -> list[str]:
        """The answer to each prompt; each distinct prompt is asked once.

        Raises:
            FairnessError: the endpoint refuses or keeps failing (names the prompt and the answer), or `max_requests` is
                reached.
        """
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._answers]
        self._failed.clear()
        if missing:
            _run(self._ask_all(missing))
        return [self._answers[prompt] for prompt in prompts]

    def meanings(self, prompts: list[str], meaning: Callable[[str], T | None], lack: str) -> list[T]:
        """The meaning of the answer to each prompt. Answers without one are dropped, so that they are asked again.

        Args:
            prompts: The prompts, as in `answers`.
            meaning: Gives the meaning of an answer; None if it has none.
            lack: Describes what such answers do, for the error message.

        Raises:
            FairnessError: as in `answers`, or an answer has no meaning.
        """
        answers = self.answers(prompts)
        found = [(prompt, answer, meaning(answer)) for prompt, answer in zip(prompts, answers, strict=True)]
        wrong = [(prompt, answer) for prompt, answer, said in found if said is None]
        if wrong:
            prompt, answer = wrong[0]
            self.forget([prompt for prompt, _ in wrong])
            raise FairnessError(
                f"{len(wrong):,} of {len(answers):,} answers {lack}, such as {answer[:_SHOWN_ANSWER]!r} to {prompt!r}; "
                "they are not kept: change endpoint.prompt, or run again to ask for them again"
            )
        return [said for _, _, said in found if said is not None]

    def check_allowed(self, prompts: list[str]) -> None:
        """Raises an error, before anything is asked, if `max_requests` does not allow the prompts.

        Args:
            prompts: All prompts that will be asked, each once.

        Raises:
            FairnessError: the prompts without a saved answer need more requests than allowed.
        """
        missing, most = sum(prompt not in self._answers for prompt in prompts), self.source.max_requests
        if most is not None and missing > most:
            raise FairnessError(
                f"endpoint.max_requests: {missing:,} requests would be made, {most:,} are allowed; nothing was asked: "
                f"raise it, or ask for less ({self.advice.less})"
            )

    def forget(self, prompts: list[str]) -> None:
        """Drops the saved answers to some prompts, so that they are asked again."""
        for prompt in prompts:
            self._answers.pop(prompt, None)
        lines = (_line(prompt, answer) for prompt, answer in self._answers.items())
        with replacing(self.folder / _JOURNAL) as path:
            path.write_text("".join(lines), encoding="utf-8")

    async def _ask_all(self, prompts: list[str]) -> None:
        key = _key(self.source)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        certificates = httpx.create_ssl_context()
        path = self.folder / _JOURNAL
        waiting = iter(prompts)
        try:
            with path.open("a", encoding="utf-8") as journal:

                async def work() -> None:
                    # A client each: one that is shared looks at all its connections before each request.
                    async with httpx.AsyncClient(
                        headers=headers, timeout=self.source.timeout, verify=certificates
                    ) as client:
                        for prompt in waiting:  # shared between workers: each prompt goes to one of them
                            try:
                                answer = await self._ask(client, prompt)
                            except FairnessError as error:  # what the others have asked for is paid for: it may land
                                self._failed.append(error)
                                return
                            self._answers[prompt] = answer
                            journal.write(_line(prompt, answer))
                            journal.flush()
                            if self._failed:
                                return

                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.source.concurrency, len(prompts))):
                        group.create_task(work())
        except ExceptionGroup as errors:  # one worker's error has ended the others
            error = errors.exceptions[0]
            raise (explained(error, path) if isinstance(error, OSError) else error) from None
        except OSError as error:
            raise explained(error, path) from None
        if self._failed:
            raise self._failed[0]

    async def _ask(self, client: httpx.AsyncClient, prompt: str) -> str:
        body = self._body(prompt)
        problem, pause = "", _FIRST_PAUSE
        for attempt in range(self.source.attempts):
            if attempt and self._failed:
                break
            if attempt:
                await asyncio.sleep(pause)
            self._count()
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt) * random.uniform(0.75, 1.25)
            try:
                async with asyncio.timeout(self.source.timeout):
                    reply = await _posted(client, f"{self.source.base_url}/chat/completions", body)
            except TimeoutError:
                problem = f"no answer within {self.source.timeout:g} s"
                continue
            except httpx.HTTPError as error:
                problem = f"no answer ({self._shown(str(error)) or type(error).__name__})"
                continue
            if reply.status_code in _PASSING:
                problem = f"status {reply.status_code}: {self._shown(reply.text)}"
                pause = max(pause, _retry_after(reply))
                continue
            if _is_filtered(reply):
                return FILTERED
            if reply.status_code != httpx.codes.OK:
                raise FairnessError(
                    f"endpoint {self.source.base_url}, model '{self.source.model}': status {reply.status_code}: "
                    f"{self._shown(reply.text)}{self._advice(reply.status_code)}"
                )
            answer = _content(reply)
            if answer is not None and not self.decoding.keep_thoughts:
                answer = without_thoughts(answer)
            if answer is not None and (answer.strip() or self.decoding.keep_empty):
                return answer.strip()
            problem = "an empty answer" if answer is not None else f"not an answer: {self._shown(reply.text)}"
        raise FairnessError(
            f"endpoint {self.source.base_url}, model '{self.source.model}': {problem}, {self.source.attempts} times, "
            f"for the {self.advice.what} {prompt[:_SHOWN]!r}; what was answered so far is kept: run again to go on"
            + (self.advice.empty if problem == "an empty answer" else "")
        )

    def _body(self, prompt: str) -> dict[str, Any]:
        decoding = self.decoding
        system = [{"role": "system", "content": self.source.system}] if self.source.system is not None else []
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
            "messages": [*system, {"role": "user", "content": prompt}],
            **{names.get(name, name): value for name, value in settings.items() if name not in left_out},
            **({"stop": list(decoding.stop)} if decoding.stop else {}),
        }

    def _count(self) -> None:
        if self.source.max_requests is not None and self.requests >= self.source.max_requests:
            raise FairnessError(
                f"endpoint.max_requests: {self.requests:,} requests are made, as many as allowed; the answers are "
                "kept: run again to go on, or raise it"
            )
        self.requests += 1

    def _shown(self, text: str) -> str:
        """A server's message, fit for a log: shortened, and without the key, which some servers repeat."""
        if key := _key(self.source):
            text = text.replace(key, "***")
        return " ".join(text.split())[:_SHOWN]

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


def only_model(base_url: str, key_variable: str | None) -> str:
    """The only model that an endpoint serves.

    Args:
        base_url: The endpoint's address.
        key_variable: The environment variable with the endpoint's key, if it needs one.

    Raises:
        FairnessError: the endpoint cannot be reached, does not list its models, or serves several.
    """
    source = validate(EndpointSource, {"base_url": base_url, "model": "", "key_variable": key_variable}, Path("MODEL"))
    key = _key(source)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        reply = httpx.get(f"{source.base_url}/models", headers=headers, timeout=_LIST_TIMEOUT)
    except httpx.HTTPError as error:
        raise FairnessError(
            f"{base_url}: no answer ({str(error) or type(error).__name__}); is it the address of an OpenAI-compatible "
            "endpoint, such as http://localhost:8000/v1?"
        ) from None
    try:
        served = [str(model["id"]) for model in reply.json()["data"]]
    except (ValueError, KeyError, TypeError):
        served = []
    if len(served) != 1:
        missing = "; an address of this kind usually ends in /v1" if reply.status_code == httpx.codes.NOT_FOUND else ""
        status = f"it does not say (status {reply.status_code}{missing})"
        found = f"it serves {', '.join(served[:10])}" if served else status
        raise FairnessError(f"{base_url}: which of its models? {found}: name one with --served; --key names its key")
    return served[0]


def _key(source: EndpointSource) -> str | None:
    if source.key_variable is None:
        return None
    key = os.environ.get(source.key_variable, "").strip()
    if not key:
        raise FairnessError(
            f"endpoint.key_variable: the environment has no {source.key_variable}; set it to the endpoint's key"
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise FairnessError(
            f"endpoint.key_variable: {source.key_variable} does not hold a key: expected printable ASCII without spaces"
        )
    return key


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` to its end in a separate thread.

    An interruption of the caller (Ctrl-C, Dagster ending a run) then ends `work` in order, instead of breaking out of
    the event loop at any point. It also works in a notebook, which already runs an event loop of its own.
    """
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def watched() -> None:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        await work

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(asyncio.run, watched())
        try:
            future.result()
        except BaseException:
            if not future.done() and begun:
                loop, task = begun[0]
                loop.call_soon_threadsafe(task.cancel)
            raise


def _line(prompt: str, answer: str) -> str:
    return json.dumps({"prompt": prompt, "answer": answer}) + "\n"


def _journal(path: Path) -> Iterable[tuple[str, str]]:
    """The answers that an earlier run saved. If a kill cut off the last line, that line is dropped."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with replacing(path) as temporary:
            temporary.write_bytes(whole)
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = json.loads(line)
            yield record["prompt"], record["answer"]
        except (ValueError, KeyError, TypeError):
            raise FairnessError(
                f"{path}, line {number}: damaged; delete the line, and its prompt is asked again"
            ) from None


async def _posted(client: httpx.AsyncClient, address: str, body: dict[str, Any]) -> httpx.Response:
    """The whole reply, as far as it is not longer than any answer."""
    content = bytearray()
    async with client.stream("POST", address, json=body) as reply:
        async for piece in reply.aiter_bytes():
            content += piece
            if len(content) > _LARGEST:
                raise httpx.DecodingError(f"a reply of more than {_LARGEST >> 20} MiB")
    said = reply.headers.get("Retry-After")
    return httpx.Response(reply.status_code, content=bytes(content), headers={"Retry-After": said} if said else {})


def _is_filtered(reply: httpx.Response) -> bool:
    """Whether the server's filter of contents has kept back the answer, or refused the prompt."""
    try:
        found = reply.json()
        if reply.status_code == httpx.codes.OK:
            choice = found["choices"][0]
            return choice.get("finish_reason") in _FILTERS and not choice["message"].get("content")
        error = found["error"]
        codes = error.get("code"), error.get("type"), (error.get("innererror") or {}).get("code")
        return any(str(code).lower() in _FILTERS for code in codes)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return False


def _retry_after(reply: httpx.Response) -> float:
    """The seconds that the server asks to wait, as a number or as the time to wait for; 0 if it does not say."""
    said = reply.headers.get("Retry-After", "0")
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):  # no time; or one without a zone
            return 0.0
    return min(_LONGEST_PAUSE, max(0.0, seconds))


def _content(reply: httpx.Response) -> str | None:
    """The text of the first choice, or that of its refusal; an empty text if both are null.

    None if the reply does not follow the protocol.
    """
    try:
        message = reply.json()["choices"][0]["message"]
        refusal = message.get("refusal")
        content = refusal if refusal and not message.get("content") else message["content"]
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if part["type"] == "text")
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return whole_text(content or "") if content is None or isinstance(content, str) else None
