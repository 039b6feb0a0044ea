"""Queries OpenAI-compatible servers. Everything that a server sends passes through this module.

A response is limited in bytes before it is decompressed or parsed, ends when its request times out, and is read in time
linear in its length. A server may repeat the key that it was sent: it is masked before anything is kept or shown.
"""

import json
import math
import os
import re
import zlib
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.inputs import FieldsOnly
from fairness_pipeline.foundation.text_files import parse_json, whole_text
from fairness_pipeline.models.replies import ANSWER, REFUSED
from fairness_pipeline.models.specification import EndpointSource

_LARGEST = 1 << 22
"""The most bytes of a response. A hundred thousand tokens take a sixth; parsing takes at most forty times as much."""
_SHOWN = 200
_SHOWN_NAME = 80
LONGEST_PAUSE = 60.0
_FILTERS = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
"""Names of content filters in the code of an error or the finish reason of an answer."""
_PACKINGS = frozenset({"gzip", "compress", "deflate", "br", "zstd"})
_MASK = "***"
_LINE_END = r"(?:\\[rn]|\s){0,2}"
"""Base64 is often wrapped; in JSON a line end is written as two characters."""
_SHORTEST_SECRET, _LONGEST_WORD = 8, 16
"""Characters. A key below the first length (`none`) is no secret, nor one below the second without digits (a word)."""


@dataclass(frozen=True)
class Response:
    """The response of a server, without the key.

    Attributes:
        status: The HTTP status.
        text: The whole body, as JSON where it is JSON.
        content: The body's JSON object; empty if it is none.
        location: The target of a redirection; empty if there is none.
        pause: The seconds that the server asks to wait; 0 by default.
    """

    status: int
    text: str
    content: dict[str, Any]
    location: str = ""
    pause: float = 0.0

    @property
    def shown(self) -> str:
        """The beginning of the body, on one line."""
        return _on_one_line(self.text)

    @property
    def served(self) -> str:
        """The name of the model that answered, according to the server; empty if it does not say."""
        name = self.content.get("model")
        return whole_text(name[:_SHOWN]) if isinstance(name, str) else ""

    @property
    def answer(self) -> tuple[str, str] | None:
        """The text of the first choice, or that of its refusal, with its kind; an empty text if both are null.

        None if the response does not follow the protocol.
        """
        try:
            message = self.content["choices"][0]["message"]
            refusal = message.get("refusal")
            refused = bool(refusal) and not message.get("content")
            content = refusal if refused else message["content"]
            if isinstance(content, list):
                content = "".join(part["text"] for part in content if part["type"] == "text")
        except (KeyError, IndexError, TypeError, AttributeError):
            return None
        if content is not None and not isinstance(content, str):
            return None
        return whole_text(content or ""), REFUSED if refused else ANSWER

    @property
    def is_filtered(self) -> bool:
        """Whether the server's content filter withheld the answer or rejected the prompt."""
        try:
            if self.status == httpx.codes.OK:
                choice = self.content["choices"][0]
                return choice.get("finish_reason") in _FILTERS and not choice["message"].get("content")
            error = self.content["error"]
            codes = error.get("code"), error.get("type"), (error.get("innererror") or {}).get("code")
            return any(isinstance(code, str) and code.lower() in _FILTERS for code in codes)
        except (KeyError, IndexError, TypeError, AttributeError):
            return False

    @property
    def models(self) -> list[str]:
        """The names in a list of models; empty if the response is no such list."""
        try:
            return [whole_text(model["id"]) for model in self.content["data"]]
        except (KeyError, TypeError, AttributeError):
            return []


@dataclass(frozen=True)
class Server(FieldsOnly):
    """A server that is queried with the key from the environment.

    Raises:
        FairnessError: the environment has no such key.
    """

    source: EndpointSource

    def __post_init__(self) -> None:
        """Checks the key before the first request."""
        _key(self.source)

    @cached_property
    def _headers(self) -> dict[str, str]:
        key = _key(self.source)
        return {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}

    @cached_property
    def _written_key(self) -> re.Pattern[str] | None:
        key = _key(self.source)
        return written_forms(key) if key else None

    def client(self, timeout: float) -> httpx.AsyncClient:
        """A new HTTP client without cookies; `timeout` is in seconds, to connect or to wait for the next bytes."""
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        return httpx.AsyncClient(headers=self._headers, timeout=timeout, verify=_certificates(), cookies=no_cookies)

    async def ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None = None
    ) -> Response:
        """Sends a request, and returns the response.

        Raises:
            httpx.HTTPError: there is no response, or it is too long, or compressed in another way than once with gzip.
        """
        try:
            async with client.stream(method, f"{self.source.base_url}{path}", json=body) as response:
                received = await _unpacked(response)
        except (httpx.InvalidURL, UnicodeError) as error:  # httpx parses a Location, although it does not follow it
            raise httpx.RemoteProtocolError(f"Location: no address ({error})") from None
        try:
            parsed = parse_json(received)
            text = whole_text(json.dumps(parsed, ensure_ascii=False))
            content = self._without_key(parsed) if is_secret(_key(self.source) or "") else parsed
        except (ValueError, RecursionError):
            content, text = None, received.decode("utf-8", "replace").replace("\0", "")
        headers = response.headers
        return Response(
            response.status_code,
            self._masked(text),
            content if isinstance(content, dict) else {},
            self.shown(headers.get("Location", "")) if response.is_redirect else "",
            _pause(headers.get("Retry-After", "0")),
        )

    def _without_key(self, value: Any) -> Any:
        """A JSON value with the key masked in all texts."""
        if isinstance(value, str):
            return self._masked(value)
        if isinstance(value, list):
            return [self._without_key(item) for item in value]
        if isinstance(value, dict):
            return {self._masked(name): self._without_key(item) for name, item in value.items()}
        return value

    def shown(self, text: str) -> str:
        """A text in a form fit for a log: shortened, on one line, without the key."""
        return _on_one_line(self._masked(text))

    def _masked(self, text: str) -> str:
        return self._written_key.sub(_MASK, text) if self._written_key else text


_certificates = cache(httpx.create_ssl_context)


def written_forms(key: str) -> re.Pattern[str]:
    """A pattern for a key: plain, escaped as in URLs, JSON or HTML, or in Base64, alone or within a longer text.

    Args:
        key: Printable ASCII without backslashes.
    """
    forms = []
    for before in range(3):  # Base64 encodes three bytes as four characters
        encoded = b64encode(bytes(before) + key.encode()).decode()
        # Characters at the ends that depend on the neighbours are left out.
        core = encoded[math.ceil(before * 8 / 6) : (before + len(key)) * 8 // 6]
        if len(core) >= _SHORTEST_SECRET:
            forms.append(_LINE_END.join({"+": "[+-]", "/": "[/_]"}.get(character, character) for character in core))
    return re.compile("|".join(["".join(map(_written, key)), *(f"(?:{form})[A-Za-z0-9+/_-]?=*" for form in forms)]))


def _written(character: str) -> str:
    """A pattern for a character, plain or escaped."""
    code = f"(?i:{ord(character):02x})"
    as_url, as_json = rf"%(?:25){{0,3}}{code}", rf"\\{{1,8}}(?:u00|x){code}"
    as_html = rf"&#(?:[xX]0{{0,4}}{code}|0{{0,4}}{ord(character)});"
    return rf"(?:{as_url}|{as_json}|{as_html}|\\{{0,8}}{re.escape(character)})"


def is_secret(key: str) -> bool:
    """Whether a key is long and unusual enough that no answer contains it by chance.

    Examples:
        >>> is_secret("sk-3kTf9"), is_secret("none"), is_secret("not-needed")
        (True, False, False)
    """
    no_digits = not any(character.isdigit() for character in key)
    return len(key) >= (_LONGEST_WORD if no_digits else _SHORTEST_SECRET)


def _key(source: EndpointSource) -> str | None:
    if source.key_variable is None:
        return None
    key = os.environ.get(source.key_variable, "").strip()
    if not key:
        raise FairnessError(
            f"endpoint.key_variable: the environment has no {source.key_variable}; set it to the endpoint's key"
        )
    if not (key.isascii() and key.isprintable()) or " " in key or "\\" in key:
        raise FairnessError(
            f"endpoint.key_variable: {source.key_variable} does not hold a key: expected printable ASCII without "
            "spaces and backslashes"
        )
    return key


async def _unpacked(response: httpx.Response) -> bytes:
    """The body, decompressed up to the limit: 2 kB of gzip could expand to gigabytes."""
    header = ", ".join(response.headers.get_list("Content-Encoding"))
    packing = [name for name in map(str.strip, header.lower().split(",")) if name.removeprefix("x-") in _PACKINGS]
    if packing not in ([], ["gzip"], ["x-gzip"]):
        raise httpx.DecodingError(
            f"Content-Encoding: asked for none, found '{_on_one_line(header)[:_SHOWN_NAME]}'; let the server send what "
            "it answers unpacked"
        )
    content, received, unpacking = bytearray(), 0, None
    try:
        async for piece in response.aiter_raw():
            received += len(piece)
            while piece:
                if packing and (unpacking is None or unpacking.eof):  # a body may have several gzip members
                    unpacking = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
                content += unpacking.decompress(piece, _LARGEST + 1 - len(content)) if unpacking else piece
                if max(received, len(content)) > _LARGEST:
                    raise httpx.DecodingError(f"a response of more than {_LARGEST >> 20} MiB")
                piece = unpacking.unused_data if unpacking and unpacking.eof else b""
    except zlib.error as error:
        raise httpx.DecodingError(f"Content-Encoding: gzip, but it cannot be unpacked: {error}") from None
    if unpacking and not unpacking.eof:
        raise httpx.DecodingError("Content-Encoding: gzip, but it is cut short")
    return bytes(content)


def _pause(header: str) -> float:
    """The seconds of `Retry-After`, which is a number or a time; 0 if it is neither."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):  # no time, or one without a zone
            return 0.0
    return min(LONGEST_PAUSE, max(0.0, seconds))


def _on_one_line(text: str) -> str:
    return " ".join(text[: 10 * _SHOWN].split())[:_SHOWN]
