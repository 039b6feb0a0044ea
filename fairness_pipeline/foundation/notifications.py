"""Notifies somebody of a finding or a failure: posts to an address, or starts a command."""

import json
import logging
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import pydantic

from fairness_pipeline.foundation.plain_text import number_of
from fairness_pipeline.foundation.yaml_files import Specification, check_address, check_variable

Event = Literal["verdict", "check", "failure"]
_SECONDS = 10.0
_MAX_LINES = 20
_LOG = logging.getLogger("fairness_pipeline")


class NotifySettings(Specification):
    """Who is notified when a verdict changes, a check fails or a run fails."""

    webhook_variable: str | None = None
    """The environment variable with the address that messages are posted to. Such an address is a secret."""
    command: tuple[str, ...] = ()
    """A command, word by word, that gets the same message on its standard input."""
    format: Literal["json", "slack"] = "json"
    """`json`: event, profile, title, lines, link. `slack`: what Slack's incoming webhooks take."""
    events: tuple[Event, ...] = ("verdict", "check", "failure")
    """What is sent: a `verdict` that differs from the run before; the `check` that no verdict is biased, if a first run
    fails it; the `failure` of a run."""
    link: str | None = None
    """The address of Dagster's UI, for the link in a message; without one, the report's file is named."""
    texts: bool = False
    """Whether the reasons of failures are sent too. They may quote a text of a corpus or a model's answer."""

    @pydantic.field_validator("webhook_variable")
    @classmethod
    def _is_a_name(cls, name: str | None) -> str | None:
        return check_variable(name, "an address")

    @pydantic.field_validator("link")
    @classmethod
    def _is_an_address(cls, link: str | None) -> str | None:
        if link is not None:
            check_address(link)
        return link and link.rstrip("/")


@dataclass(frozen=True)
class Message:
    """A message to send.

    Args:
        event: What happened.
        profile: The profile's key.
        title: One sentence.
        lines: Further sentences.
        link: Where to read more: an address or a file.
    """

    event: Event
    profile: str
    title: str
    lines: tuple[str, ...]
    link: str


def notify(settings: NotifySettings | None, message: Message) -> None:
    """Sends a message if the profile asks for it. A failure to send it is logged and stops nothing."""
    if settings is None or message.event not in settings.events:
        return
    payload = _slack(message) if settings.format == "slack" else asdict(message)
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
    if settings.webhook_variable:
        _try(f"the address in {settings.webhook_variable}", partial(_post, settings.webhook_variable, body))
    if settings.command:
        _try(settings.command[0], partial(_start, settings.command, body))


def shortened(lines: Sequence[str]) -> tuple[str, ...]:
    """The first lines, and how many more there are."""
    rest = len(lines) - _MAX_LINES
    return (*lines[:_MAX_LINES], *([f"and {number_of(rest, 'other')}"] if rest > 0 else []))


def _slack(message: Message) -> dict[str, str]:
    lines = "".join(f"\n• {line}" for line in message.lines)
    text = f"Fairness pipeline, profile {message.profile}: {message.title}{lines}\n{message.link}"
    return {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}


def _try(recipient: str, send: Callable[[], str | None]) -> None:
    try:
        reason = send()
    except Exception as error:  # any failure of a proxy, a certificate or a program; its text may hold the address
        reason = type(error).__name__
    if reason:
        _LOG.warning(f"notify: {recipient} did not accept the message ({reason}); nobody was notified")


def _post(variable: str, body: bytes) -> str | None:
    """Why an address did not take the message; None if it did."""
    import httpx

    address = os.environ.get(variable)
    if not address:
        return f"the environment variable {variable} is not set"
    with _silenced("httpx"):  # it logs the address
        headers = {"content-type": "application/json"}
        with httpx.stream("POST", address, content=body, headers=headers, timeout=_SECONDS) as reply:
            return None if reply.is_success else f"status {reply.status_code}"


@contextmanager
def _silenced(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled


def _start(command: Sequence[str], body: bytes) -> str | None:
    """Why a command did not take the message; None if it did."""
    try:
        null = subprocess.DEVNULL
        result = subprocess.run(command, input=body, stdout=null, stderr=null, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS:.0f} s"
    return None if result.returncode == 0 else f"exit status {result.returncode}"
