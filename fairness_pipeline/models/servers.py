"""An OpenAI-compatible server: the only way by which anything that a server sends comes in.

Whatever is sent is bounded in bytes before it is unpacked or parsed, ends with the time of its request, and is read in
time that is linear in its length. A server may repeat the key that it was sent: it is masked before anything is kept or
shown.
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
"""Bytes of a response. A hundred thousand tokens take a sixth of it; parsed, it takes at most forty times as much."""
_SHOWN = 200
_SHOWN_NAME = 80
LONGEST_PAUSE = 60.0
_FILTERS = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
"""What servers call their filter, as the code of an error or as the reason why an answer ends."""
_PACKINGS = frozenset({"gzip", "compress", "deflate", "br", "zstd"})
_MASK = "***"
_LINE_END = r"(?:\\[rn]|\s){0,2}"
"""Base64 is often wrapped; in JSON a line end is written as two characters."""
_SHORTEST_SECRET, _LONGEST_WORD = 8, 16
"""Characters. A shorter key (`none`), or one without digits, which may be a word, is no secret; answers may hold it."""


@dataclass(frozen=True)
class Response:
    """What a server has sent, without the key.

    Attributes:
        status: The HTTP status.
        text: The whole body, as JSON where it is JSON.
        content: The body's JSON object; empty if it is none.
        location: Where a redirection leads; empty if it does not say.
        pause: The seconds that the server asks to wait; 0 if it does not say.
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
        """The name of the model that the server says has answered; empty if it does not say."""
        said = self.content.get("model")
        return whole_text(said[:_SHOWN]) if isinstance(said, str) else ""

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
        """Whether the server's filter of contents has kept back the answer, or refused the prompt."""
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
        """The models of a list of models; empty if it is none."""
        try:
            return [whole_text(model["id"]) for model in self.content["data"]]
        except (KeyError, TypeError, AttributeError):
            return []


@dataclass(frozen=True)
class Server(FieldsOnly):
    """A server, asked with the key that the environment holds.

    Args:
        source: Its address, and the variable with the key.

    Raises:
        FairnessError: the environment has no such key.
    """

    source: EndpointSource

    def __post_init__(self) -> None:
        """Checks the key before anything is asked."""
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
        """A client of its own, which keeps nothing that the server sets.

        Args:
            timeout: Seconds between two signs of life.
        """
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        return httpx.AsyncClient(headers=self._headers, timeout=timeout, verify=_certificates(), cookies=no_cookies)

    async def ask(
        self, client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any] | None = None
    ) -> Response:
        """What the server sends.

        Raises:
            httpx.HTTPError: it did not come, is longer than any answer, or is packed otherwise than once with gzip.
        """
        try:
            async with client.stream(method, f"{self.source.base_url}{path}", json=body) as response:
                received = await _unpacked(response)
        except (httpx.InvalidURL, UnicodeError) as error:  # a Location is read, although it is not followed
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
        """A JSON value in which no text holds the key."""
        if isinstance(value, str):
            return self._masked(value)
        if isinstance(value, list):
            return [self._without_key(each) for each in value]
        if isinstance(value, dict):
            return {self._masked(name): self._without_key(each) for name, each in value.items()}
        return value

    def shown(self, text: str) -> str:
        """A message of whoever, fit for a log: shortened, on one line, without the key."""
        return _on_one_line(self._masked(text))

    def _masked(self, text: str) -> str:
        return self._written_key.sub(_MASK, text) if self._written_key else text


_certificates = cache(httpx.create_ssl_context)


def written_forms(key: str) -> re.Pattern[str]:
    """Matches a key: plain, with characters as URLs, JSON or HTML write them, and in Base64, alone or in a longer text.

    Args:
        key: Printable ASCII without backslashes.
    """
    forms = []
    for before in range(3):  # of three bytes each, Base64 makes four characters
        packed = b64encode(bytes(before) + key.encode()).decode()
        sure = packed[math.ceil(before * 8 / 6) : (before + len(key)) * 8 // 6]  # not shared with what stands beside
        if len(sure) >= _SHORTEST_SECRET:
            forms.append(_LINE_END.join({"+": "[+-]", "/": "[/_]"}.get(one, one) for one in sure))
    return re.compile("|".join(["".join(map(_written, key)), *(f"(?:{form})[A-Za-z0-9+/_-]?=*" for form in forms)]))


def _written(one: str) -> str:
    """An expression for a character, however it is written."""
    code = f"(?i:{ord(one):02x})"
    as_url, as_json = rf"%(?:25){{0,3}}{code}", rf"\\{{1,8}}(?:u00|x){code}"
    as_html = rf"&#(?:[xX]0{{0,4}}{code}|0{{0,4}}{ord(one)});"
    return rf"(?:{as_url}|{as_json}|{as_html}|\\{{0,8}}{re.escape(one)})"


def is_secret(key: str) -> bool:
    """Whether a key is long and odd enough that no answer holds it by chance.

    Examples:
        >>> is_secret("sk-3kTf9"), is_secret("none"), is_secret("not-needed")
        (True, False, False)
    """
    words_alone = not any(one.isdigit() for one in key)
    return len(key) >= (_LONGEST_WORD if words_alone else _SHORTEST_SECRET)


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
    """The body. 2 kB that are packed could unpack to gigabytes: no more is unpacked than an answer may be long."""
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
                if packing and (unpacking is None or unpacking.eof):  # a body may be several packed ones
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
        except (ValueError, TypeError, OverflowError):  # no time; or one without a zone
            return 0.0
    return min(LONGEST_PAUSE, max(0.0, seconds))


def _on_one_line(text: str) -> str:
    return " ".join(text[: 10 * _SHOWN].split())[:_SHOWN]
